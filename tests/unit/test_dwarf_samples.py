"""However compilers write it, debug information says the same of `sample_binaries/declared_in_header`."""

import posixpath
from pathlib import Path

import pytest

import footprint
from footprint.dwarf.declarations import read_declarations
from footprint.dwarf.description import Declaration
from footprint.dwarf.places import VariablePlaces
from footprint.elf.image import Image, read_image
from footprint.elf.symbols import read_symbol_table, section_bases
from footprint.model.finding import Confidence

FOLDER = Path(__file__).resolve().parents[2] / "sample_binaries" / "declared_in_header"
FILES = [*sorted(path.name for path in FOLDER.glob("*.so")), "gcc_objects.o"]
LINKED = [name for name in FILES if name.endswith(".so")]
OF_HEADER = {
    "header_counters": ("header.h", 3, "int[16]", 64),
    "header_names": ("header.h", 4, "const char *const [4]", 32),
    "header_thread": ("header.h", 6, "long[8]", 64),
    "header_pairs": ("header.h", 8, "struct pair[2]", 32),
}
BY_UNIT = {
    unit: OF_HEADER
    | {"same_name": (unit, 3, "int[8]", 32), "calls": (unit, 5, "int[4]", 16)}
    | ({"shared_counter": ("one.c", 2, "int", 4)} if unit == "one.c" else {})
    for unit in ("one.c", "two.c")
}


def image(name: str) -> Image:
    return read_image((FOLDER / name).read_bytes(), name)


def declarations(of: Image) -> list[Declaration]:
    """Return what is declared of all variables that the symbols name: for each address one, here."""
    in_memory = section_bases(of, [(section.index, section) for section in of.sections if section.is_in_memory])
    symbols = [variable for variable in read_symbol_table(of).variables(in_memory) if variable.size_bytes]
    found = read_declarations(of, map(VariablePlaces(of).of, symbols))
    assert found.notes == ()
    return [one for here in found.by_place.values() for one in here]


@pytest.mark.parametrize("name", FILES)
def test_each_copy_is_declared_by_its_own_unit_at_the_line_of_the_header(name: str) -> None:
    by_unit: dict[str, dict[str, tuple[str, int | None, str, int | None]]] = {"one.c": {}, "two.c": {}}
    for declaration in declarations(image(name)):
        assert declaration.defined_in is not None
        assert declaration.is_in_header == declaration.defined_in.endswith(".h")
        # gcc calls it `long int`.
        type_name = (declaration.type_name or "").replace("long int", "long")
        here = by_unit[posixpath.basename(declaration.unit)]
        assert declaration.source_name not in here
        here[str(declaration.source_name)] = (
            posixpath.basename(declaration.defined_in),
            declaration.defined_at_line,
            type_name,
            declaration.size_bytes,
        )
    assert by_unit == BY_UNIT


@pytest.mark.parametrize("name", LINKED)
def test_what_the_header_defines_is_there_twice_and_one_will_do_of_what_nothing_writes(name: str) -> None:
    found = footprint.duplicates(str(FOLDER / name)).files[0].copies
    expected = dict.fromkeys(OF_HEADER, (2, Confidence.MEDIUM)) | {"header_names": (2, Confidence.PROOF)}
    assert {one.name: (len(one.copies), one.confidence) for one in found} == expected
    for one in found:
        assert one.location is not None
        assert (posixpath.basename(one.location.file), one.location.line) == OF_HEADER[one.name][:2]
