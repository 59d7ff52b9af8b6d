"""Declarations found by their addresses are those that a full walk with pyelftools finds, whatever the compiler did."""

import posixpath
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.descriptions import describe_form_class
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.dwarf.typeunit import TypeUnit
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationHandler

from footprint.dwarf.declarations import Declarations, declarations_by_name, read_declarations
from footprint.dwarf.description import Declaration
from footprint.dwarf.places import VariablePlaces
from footprint.dwarf.units import DebugInfo
from footprint.elf.abi import STT_FUNC, STT_TLS
from footprint.elf.archive import read_members
from footprint.elf.image import Image, read_image
from footprint.elf.symbols import Symbol, read_symbol_table, section_bases
from footprint.system.files import open_input

HEADER = """
#pragma once
static const char *const header_names[] = {"a", "bc", "def"};
static int header_counter[4];
static const int header_table[5] = {1, 2, 3, 4, 5};
extern int defined_below;
struct pair { int x; struct pair *next; char tail[]; };
"""
MORE_HEADER = """
template <class T> struct Box { static T member; static inline long shared = 4; };
template <class T> T Box<T>::member = T(5);
struct S { static int sm; struct In { static char q[9]; }; };
namespace ns { inline int in_all = 3; const double ratios[2] = {1, 2}; }
inline int counted() { static int calls[3]; return ++calls[0]; }
inline thread_local long per_thread = 4;
"""
C_SOURCE = """
#include "header.h"
int defined_below = 4;
static __thread int own_thread = 3;
__thread long its_thread;
long long LONG;
int i;
static struct pair pairs[2];
static volatile unsigned char (*by_pointer[3])[7];
static int (*const hooks[2])(int, const char *);
union { int a; double b; } nameless;
enum color { RED, GREEN } shade = GREEN;
static inline int twice(int x) { static int in_twice[7]; in_twice[x & 3]++; return in_twice[x & 1]; }
int other(int);
int use(int n) {
    static const char *local_names[] = {"x", "y"};
    by_pointer[n & 1] = 0;
    pairs[n & 1].x = n;
    return twice(n) + twice(n + 1) + *header_names[n & 1] + header_counter[n & 3] + header_table[n & 3] + own_thread +
           (int)its_thread + i + (int)LONG + *local_names[n & 1] + (hooks[n & 1] ? 1 : 0) + nameless.a + (int)shade;
}
int main(int count, char **words) {
    header_counter[count & 3]++;
    own_thread = count;
    return use(count) + other(count);
}
"""
C_OTHER = """
#include "header.h"
static int i;
int other(int n) {
    static int i2;
    header_counter[n & 3] += n;
    i += n;
    i2 ^= i;
    return i2 + *header_names[n & 1] + header_table[n & 3] + defined_below;
}
"""
CXX_SOURCE = (
    C_SOURCE.replace('header.h"', 'header.hpp"')
    .replace("hooks[2])(int, const char *)", "hooks[2])(int, const char *) = {}")
    .replace(
        "int other(int);",
        """
int other(int);
int S::sm = 3; char S::In::q[9];
namespace { struct Hidden { int x, y; } hidden; volatile int anonymous = 4; }
extern "C" { int c_name = 1; }
auto lambda = [](int n) { static int in_lambda[2]; return in_lambda[n & 1]++; };
struct Virtual { virtual ~Virtual() {} int member = 2; static constexpr int never = 3; } object;
int more(int n) {
    return S::sm + S::In::q[1] + hidden.x + anonymous + c_name + lambda(n) + Box<int>::member +
           (int)Box<char>::shared + ns::in_all + (int)ns::ratios[n & 1] + counted() + (int)per_thread + object.member;
}
""",
    )
    .replace("return use(count)", "return more(count) + use(count)")
)
CXX_OTHER = C_OTHER.replace('header.h"', 'header.hpp"').replace(
    "return i2", "return counted() + Box<int>::member + ns::in_all + (int)per_thread + (int)ns::ratios[n & 1] + i2"
)
SOURCES = {"header.h": HEADER, "header.hpp": HEADER + MORE_HEADER, "one.c": C_SOURCE, "two.c": C_OTHER}
SOURCES |= {"one.cpp": CXX_SOURCE, "two.cpp": CXX_OTHER}

COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}


def tool(*names: str) -> str:
    """Return the path of the first program that is there, or skip the test."""
    for name in names:
        if (found := shutil.which(name)) is not None:
            return found
    pytest.skip(f"{names[0]} is not installed")


def run_or_skip(command: Sequence[str | Path], folder: Path) -> None:
    """Run a tool, or skip the test where it does not do what it should: gold's dwp hangs on DWARF 5."""
    text = " ".join(map(str, command))
    try:
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{text}: it does not end")
    if run.returncode:
        pytest.skip(f"{text}: {run.stderr.strip().splitlines()[-1]}")


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that compiles the fixture of a language with some options."""

    @cache
    def built(compiler: str, language: str, *options: str) -> Path:
        number = COMPILERS[compiler][language == "cpp"]
        program = tool(number, f"{number}-14", f"{number}-16", f"{number}-19")
        folder = tmp_path_factory.mktemp("dwarf")
        (folder / "inc").mkdir()
        for name, text in SOURCES.items():
            (folder / ("inc/" + name if name.startswith("header") else name)).write_text(text)
        standard = ["-std=c++17"] if language == "cpp" else []
        sources = f"one.{language}", f"two.{language}"
        run_or_skip([program, "-Iinc", "-w", *standard, *options, *sources, "-o", "program"], folder)
        return folder / "program"

    return built


# --- our answer -------------------------------------------------------------------------------------------------------


def image(path: str | Path) -> Image:
    return read_image(open_input(str(path)), str(path))


def variables(of: Image) -> list[Symbol]:
    in_memory = section_bases(of, [(section.index, section) for section in of.sections if section.is_in_memory])
    found = read_symbol_table(of).variables(in_memory)
    return [symbol for symbol in found if symbol.type != STT_FUNC and symbol.size_bytes]


def split(path: str) -> Image | None:
    return image(path) if Path(path).is_file() else None


def declared(of: Image, alternate: Image | None = None) -> Declarations:
    places = map(VariablePlaces(of).of, variables(of))
    return read_declarations(of, places, split=split, alternate=alternate, with_functions=True)


def by_symbol(path: str | Path, alternate: Image | None = None) -> dict[str, set[Declaration]]:
    return in_image(image(path), alternate)


def in_image(of: Image, alternate: Image | None = None) -> dict[str, set[Declaration]]:
    """Return what is declared, by symbol, but where the unit starts: each way to write it puts the units elsewhere."""
    found, places = declared(of, alternate), VariablePlaces(of)
    named: dict[str, set[Declaration]] = {}
    for symbol in variables(of):
        said = found.by_place.get(places.of(symbol), ())
        named.setdefault(symbol.name, set()).update(one._replace(unit_start=None) for one in said)
    return named


# --- the walk ---------------------------------------------------------------------------------------------------------

Fact = tuple[str | None, str | None, str | None, int | None, str | None, int | None, str, int | None, bool]


def reduced(declaration: Declaration) -> Fact:
    places = declaration.file, declaration.line, declaration.defined_in, declaration.defined_at_line
    return (
        declaration.name,
        declaration.source_name,
        *places,
        declaration.unit,
        declaration.size_bytes,
        declaration.is_external,
    )


def walked(path: str | Path) -> dict[tuple[bool, int], set[Fact]]:
    """Find all variables with an address by looking at every entry of every unit."""
    result: dict[tuple[bool, int], set[Fact]] = {}
    with open(path, "rb") as file:
        debug = ELFFile(file).get_dwarf_info()
        for unit in debug.iter_CUs():
            for entry in unit.iter_DIEs():
                if entry.tag == "DW_TAG_variable" and (place := place_of(debug, unit, entry)) is not None:
                    result.setdefault(place, set()).add(fact(debug, entry))
    return result


def place_of(debug: DWARFInfo, unit: CompileUnit, entry: DIE) -> tuple[bool, int] | None:
    attribute = entry.attributes.get("DW_AT_location")
    if attribute is None or describe_form_class(attribute.form) not in {"exprloc", "block"}:
        return None
    operations = [(op.op_name, op.args) for op in DWARFExprParser(unit.structs).parse_expr(attribute.value)]
    match operations:
        case [("DW_OP_addr", [value]), *rest] if all(name == "DW_OP_piece" for name, _ in rest):
            return False, value
        case [("DW_OP_addrx", [index]), *rest] if all(name == "DW_OP_piece" for name, _ in rest):
            return False, debug.get_addr(unit, index)
        case [(str(name), [value]), ("DW_OP_form_tls_address" | "DW_OP_GNU_push_tls_address", _)] if "const" in name:
            return True, value
    return None


def way(entry: DIE) -> Iterator[DIE]:
    while True:
        yield entry
        names = [name for name in ("DW_AT_specification", "DW_AT_abstract_origin") if name in entry.attributes]
        if not names:
            return
        entry = entry.get_DIE_from_attribute(names[0])


def fact(debug: DWARFInfo, entry: DIE) -> Fact:
    entries = list(way(entry))

    def all_of(name: str) -> list[Any]:
        return [one.attributes[name].value for one in entries if name in one.attributes]

    linkage = [*all_of("DW_AT_linkage_name"), *all_of("DW_AT_MIPS_linkage_name")]
    files = [path for one in entries if (path := file_of(debug, one)) is not None]
    lines, names = all_of("DW_AT_decl_line"), all_of("DW_AT_name")
    source_name = names[0].decode() if names else None
    typed = next((one for one in entries if "DW_AT_type" in one.attributes), None)
    sources = [source for one in entries if (source := source_of(one.cu))]
    return (
        linkage[0].decode() if linkage else source_name,
        source_name,
        files[-1] if files else None,
        lines[-1] if lines else None,
        files[0] if files else None,
        lines[0] if lines else None,
        sources[0] if sources else "",
        None if typed is None else size_of(typed),
        any(all_of("DW_AT_external")),
    )


def joined(*parts: str) -> str:
    return posixpath.normpath(posixpath.join(*parts))


def folder_of(unit: CompileUnit | TypeUnit) -> str:
    attribute = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
    return "" if attribute is None else str(attribute.value.decode())


def source_of(unit: CompileUnit | TypeUnit) -> str:
    name = unit.get_top_DIE().attributes.get("DW_AT_name")
    return "" if name is None or name.value == b"<artificial>" else joined(folder_of(unit), name.value.decode())


def file_of(debug: DWARFInfo, entry: DIE) -> str | None:
    attribute = entry.attributes.get("DW_AT_decl_file")
    program = debug.line_program_for_CU(entry.cu)  # type: ignore[arg-type] # type units have one, too
    if attribute is None or program is None:
        return None
    header = program.header
    number = attribute.value - (header.version < 5)
    if not 0 <= number < len(header.file_entry):
        return None
    one = header.file_entry[number]
    directory = one.dir_index - (header.version < 5)
    inside = header.include_directory[directory].decode() if directory >= 0 else ""
    return joined(folder_of(entry.cu), inside, one.name.decode())


def size_of(entry: DIE) -> int | None:
    """Return the size of what the type of an entry stands for."""
    target = type_of(entry)
    if "DW_AT_signature" in target.attributes:
        target = signed(target.cu.dwarfinfo, target.attributes["DW_AT_signature"].value)
    if "DW_AT_byte_size" in target.attributes:
        return int(target.attributes["DW_AT_byte_size"].value)
    if target.tag in {"DW_TAG_pointer_type", "DW_TAG_reference_type"}:
        return int(target.cu["address_size"])
    if "DW_AT_type" not in target.attributes:
        return None
    size_bytes = size_of(target)
    for child in target.iter_children() if target.tag == "DW_TAG_array_type" else ():
        if child.tag == "DW_TAG_subrange_type" and size_bytes is not None:
            count = child.attributes.get("DW_AT_count")
            bound = child.attributes.get("DW_AT_upper_bound")
            factor = count.value if count is not None else bound.value + 1 if bound is not None else None
            size_bytes = None if factor is None else size_bytes * factor
    return size_bytes


def type_of(entry: DIE) -> DIE:
    attribute = entry.attributes["DW_AT_type"]
    if attribute.form == "DW_FORM_ref_sig8":
        return signed(entry.cu.dwarfinfo, attribute.value)
    return entry.get_DIE_from_attribute("DW_AT_type")


def signed(debug: DWARFInfo, signature: int) -> DIE:
    """Find the type of a type unit; pyelftools does not look for those of version 5."""
    for unit in debug.iter_CUs():
        if unit.header.get("unit_type") == "DW_UT_type" and unit["type_signature"] == signature:
            return unit.get_DIE_from_refaddr(unit.cu_offset + unit["type_offset"])
    return debug.get_DIE_by_sig8(signature)


def check(path: str | Path, *, fewest: int) -> Declarations:
    """Check that all is found that a walk finds at the addresses of symbols, and nothing else."""
    of = image(path)
    found, reference = declared(of), walked(path)
    ours = {(is_tls, value): {reduced(one) for one in here} for (value, is_tls), here in found.by_place.items()}
    wanted = {(symbol.type == STT_TLS, symbol.vaddr) for symbol in variables(of)}
    assert ours == {place: facts for place, facts in reference.items() if place in wanted}
    assert len(ours) >= fewest
    return found


# --- compilers and their options --------------------------------------------------------------------------------------

VERSIONS = ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"]
OPTIONS = [
    *((version, level) for version in VERSIONS for level in ("-O0", "-O2")),
    ("-gdwarf-4", "-O1", "-fdebug-types-section"),
    ("-gdwarf-5", "-O1", "-fdebug-types-section"),
    ("-g", "-O2", "-flto"),
    ("-g", "-O2", "-flto", "-fuse-ld=lld"),
    ("-g", "-O2", "-flto=thin", "-fuse-ld=lld"),
    ("-g", "-O2", "-ffunction-sections", "-fdata-sections", "-fuse-ld=lld", "-Wl,--icf=all", "-Wl,--gc-sections"),
    ("-g", "-O2", "-ffunction-sections", "-fdata-sections", "-fuse-ld=gold", "-Wl,--icf=all"),
    ("-g", "-O1", "-gz=zlib"),
    ("-g", "-O1", "-m32"),
    ("-gdwarf-2", "-O0", "-m32"),
    ("-g", "-O2", "-fno-pie", "-no-pie"),
    ("-g", "-O2", "-fPIC", "-shared"),
]


# lld cannot read what gcc leaves for the linker to compile.
BUILDS = [
    pytest.param(compiler, options, id=f"{compiler}{''.join(options)}")
    for compiler in COMPILERS
    for options in OPTIONS
    if compiler == "clang" or not ("-fuse-ld=lld" in options and {"-flto", "-flto=thin"}.intersection(options))
]


@pytest.mark.parametrize(("compiler", "options"), BUILDS)
@pytest.mark.parametrize("language", ["c", "cpp"])
def test_all_is_found_that_a_full_walk_finds(
    build: Callable[..., Path], compiler: str, language: str, options: tuple[str, ...]
) -> None:
    path = build(compiler, language, *options)
    found = check(path, fewest=8 if {"-flto", "-flto=thin"}.intersection(options) else 12)
    assert found.notes == ()


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_constants_to_which_gcc_gives_no_address_are_found_by_name(build: Callable[..., Path], version: str) -> None:
    path = build("gcc", "cpp", version, "-O2")
    assert by_symbol(path)["_ZN2nsL6ratiosE"] == set()
    found = declarations_by_name(DebugInfo(image(path)), ["ratios", "header_table"])
    assert [*found] == ["ratios"]
    folder = path.parent
    assert {(one.unit, one.file, one.line, one.type_name, one.size_bytes) for one in found["ratios"]} == {
        (f"{folder}/{unit}.cpp", f"{folder}/inc/header.hpp", 12, "const double[2]", 16) for unit in ("one", "two")
    }


def test_gdb_names_the_same_files_and_lines(build: Callable[..., Path]) -> None:
    path = build("gcc", "c", "-gdwarf-5", "-O0")
    command = [tool("gdb"), "-nx", "-batch", "-ex", "set width 0", "-ex", "info variables -n", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    expected, file = set(), ""
    for line in text.splitlines():
        if line.startswith("File "):
            file = posixpath.normpath(posixpath.join(path.parent, line[5:-1]))
        elif match := re.match(r"(\d+):", line):
            expected.add((file, int(match[1])))
    ours = [one for here in by_symbol(path).values() for one in here]
    assert {(our.defined_in, our.defined_at_line) for our in ours if our.function is None} == expected
    # gdb lists none of these.
    assert {(our.name, our.function) for our in ours if our.function} == {
        ("in_twice", "twice"),
        ("local_names", "use"),
        ("i2", "other"),
    }


# --- what changes how it is written, and not what is said -------------------------------------------------------------


@pytest.mark.parametrize(
    ("compiler", "option"),
    [*product(COMPILERS, ["-gdwarf64", "-gsplit-dwarf"]), ("gcc", "-gz=zlib-gnu")],  # clang knows it no longer
)
@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("language", ["c", "cpp"])
def test_how_it_is_written_changes_nothing(
    build: Callable[..., Path], compiler: str, language: str, version: str, option: str
) -> None:
    plain, other = (build(compiler, language, version, "-O1", *more) for more in ((), (option,)))
    assert alike(by_symbol(other), other) == alike(by_symbol(plain), plain)


@pytest.mark.parametrize(
    ("compiler", "packer", "version"),
    [
        ("gcc", "dwp", "-gdwarf-4"),
        ("gcc", "llvm-dwp", "-gdwarf-4"),
        ("clang", "dwp", "-gdwarf-4"),
        ("clang", "llvm-dwp", "-gdwarf-4"),
        ("clang", "llvm-dwp", "-gdwarf-5"),  # the others that are at hand hang on DWARF 5
    ],
)
def test_split_units_in_a_package_are_found_there(
    build: Callable[..., Path], compiler: str, packer: str, version: str, tmp_path: Path
) -> None:
    types = ["-fdebug-types-section"] if version == "-gdwarf-4" else []  # llvm-dwp 14 hangs on those of version 5
    path = build(compiler, "cpp", version, "-O1", "-gsplit-dwarf", *types)
    package = tmp_path / "program.dwp"
    run_or_skip([tool(packer, f"{packer}-14"), "-e", path, "-o", package], path.parent)
    of = image(path)
    places = [one for one in map(VariablePlaces(of).of, variables(of)) if not one.is_tls]
    alone = read_declarations(of, places, split=split)
    packed = read_declarations(of, places, package=image(package))
    assert packed == alone
    assert len(packed.by_place) >= 12


def test_absent_split_units_are_said_to_be_absent(build: Callable[..., Path]) -> None:
    of = image(build("gcc", "c", "-gdwarf-5", "-O1", "-gsplit-dwarf"))
    found = read_declarations(of, map(VariablePlaces(of).of, variables(of)))
    assert found.by_place == {}
    (note,) = found.notes
    assert note.slug == "debug-info-split"
    assert "2 files" in note.detail
    assert ".dwo" in note.detail


# dwz 0.15 does not read the forms of clang's DWARF 5.
DWZ_READS = [("gcc", "-gdwarf-4"), ("gcc", "-gdwarf-5"), ("clang", "-gdwarf-4")]


@pytest.mark.parametrize(("compiler", "version"), DWZ_READS)
def test_what_dwz_took_out_is_followed_or_said_to_be_absent(
    build: Callable[..., Path], compiler: str, version: str, tmp_path: Path
) -> None:
    plain = build(compiler, "cpp", version, "-O1", "-fno-lto")
    other = build(compiler, "cpp", version, "-O2", "-fno-lto")
    names = [shutil.copy(plain, tmp_path / "one"), shutil.copy(other, tmp_path / "two")]
    run_or_skip([tool("dwz"), "-m", "common", "one", "two"], tmp_path)
    if not (tmp_path / "common").exists():
        pytest.skip("dwz found nothing to share")
    for before, after in zip((plain, other), names, strict=True):
        was, now = by_symbol(before), by_symbol(after, alternate=image(tmp_path / "common"))
        # What both units of a file declare stands in a unit of its own now, which has no source.
        assert without_units(now) == without_units(was)
        lacking = declared(image(after))
        assert [note.slug for note in lacking.notes] == ["debug-info-alternate"]
        assert len(lacking.by_place) == len(declared(image(before)).by_place)


@pytest.mark.parametrize(("compiler", "version"), DWZ_READS)
def test_a_thread_local_that_dwz_took_out_is_that_of_the_files_that_import_it(
    compiler: str, version: str, tmp_path: Path
) -> None:
    """Thread-locals have one offset in several programs, so dwz moves them; two pairs of programs have other ones."""
    names = ["a", "b", "c", "d"]
    for name, header in zip(names, ["one", "one", "two", "two"], strict=True):
        (tmp_path / f"{header}.h").write_text(
            f"struct {header} {{ long x, y; }};\nstatic __thread struct {header} of_{header}[4] = {{{{1, 2}}}};\n"
        )
        (tmp_path / f"{name}.c").write_text(
            f'#include "{header}.h"\nint main(int i, char **v) {{ (void)v; return (int)of_{header}[i & 3].x++; }}\n'
        )
        run_or_skip([tool(compiler), version, "-O1", f"{name}.c", "-o", name], tmp_path)
    was = [by_symbol(tmp_path / name) for name in names]
    run_or_skip([tool("dwz"), "-m", "common", *names], tmp_path)
    common = image(tmp_path / "common")
    now = [by_symbol(tmp_path / name, alternate=common) for name in names]
    for found, before, header in zip(now, was, ["one", "one", "two", "two"], strict=True):
        (one,), (old,) = found[f"of_{header}"], before[f"of_{header}"]
        assert (one.file, one.line, one.size_bytes) == (f"{tmp_path}/{header}.h", 2, 64)
        # Only the unit of a source file states its language.
        assert (one.type_name, old.type_name) == (f"{header}[4]", f"struct {header}[4]")
    assert [note.slug for note in declared(image(tmp_path / "a")).notes] == ["debug-info-alternate"]


@pytest.mark.parametrize("options", [["-O0"], ["-O2", "-gdwarf-4"]])
def test_a_common_block_of_fortran_has_the_line_that_names_it(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.f90").write_text(
        "subroutine first(i)\n  integer :: i, steps, own\n  real :: grid(100)\n  common /shared/ steps, grid\n"
        "  common own\n  steps = steps + i\n  own = own + 1\n  grid(i) = 2.0\nend subroutine\n"
    )
    (tmp_path / "b.f90").write_text(
        "program main\n  real :: grid(100)\n  integer :: steps\n  common /shared/ steps, grid\n"
        "  call first(3)\n  print *, steps, grid(3)\nend program\n"
    )
    run_or_skip([tool("gfortran"), "-g", *options, "a.f90", "b.f90", "-o", "program"], tmp_path)
    found = by_symbol(tmp_path / "program")
    lines = {
        name: {(one.file, one.line) for one in found[name] if one.name == name} for name in ("shared_", "__BLNK__")
    }
    assert lines == {
        "shared_": {(f"{tmp_path}/a.f90", 4), (f"{tmp_path}/b.f90", 4)},
        "__BLNK__": {(f"{tmp_path}/a.f90", 5)},
    }


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_what_dwz_joins_within_one_file_is_followed(build: Callable[..., Path], version: str, tmp_path: Path) -> None:
    plain = build("gcc", "cpp", version, "-O1", "-fno-lto")
    small = shutil.copy(plain, tmp_path / "small")
    run_or_skip([tool("dwz"), small], tmp_path)
    assert without_units(by_symbol(small)) == without_units(by_symbol(plain))
    assert declared(image(small)).notes == ()


@pytest.mark.parametrize("kind", ["zlib", "zlib-gnu", "zstd"])
def test_compressed_sections_are_read(build: Callable[..., Path], kind: str, tmp_path: Path) -> None:
    path, packed = build("gcc", "cpp", "-g", "-O1"), tmp_path / "packed"
    run_or_skip([tool("objcopy"), f"--compress-debug-sections={kind}", path, packed], tmp_path)
    assert by_symbol(packed) == by_symbol(path)


# --- what is not linked yet -------------------------------------------------------------------------------------------

OBJECT_OPTIONS = [
    *((version, "-O1") for version in VERSIONS),
    ("-gdwarf-5", "-O0"),
    ("-gdwarf-4", "-O1", "-fdebug-types-section"),
    ("-gdwarf-5", "-O1", "-fdebug-types-section"),
    ("-gdwarf-5", "-O1", "-fdata-sections", "-gz=zlib"),
    ("-gdwarf-5", "-O1", "-m32"),
    ("-gdwarf-4", "-O1", "-fcommon"),
    ("-gdwarf-5", "-O1", "-gdwarf64"),
    ("-gdwarf-5", "-O1", "-gsplit-dwarf"),
]


@pytest.fixture(scope="session")
def compiled(build: Callable[..., Path]) -> Callable[..., tuple[Path, Path, Path]]:
    """Return a function that compiles the two sources alone, and links them: objects and program."""

    @cache
    def made(compiler: str, language: str, *options: str) -> tuple[Path, Path, Path]:
        folder = build(compiler, language, *options, "-O1").parent
        program = tool(COMPILERS[compiler][language == "cpp"])
        standard = ["-std=c++17"] if language == "cpp" else []
        for name in ("one", "two"):
            run_or_skip(
                [program, "-Iinc", "-w", *standard, *options, "-c", f"{name}.{language}", "-o", f"{name}.o"], folder
            )
        bits = [option for option in options if option == "-m32"]
        run_or_skip([program, *bits, "one.o", "two.o", "-o", "linked"], folder)
        return folder / "one.o", folder / "two.o", folder / "linked"

    return made


def linked_by_symbol(*result: dict[str, set[Declaration]]) -> dict[str, set[Declaration]]:
    """Join what objects declare, without the local labels of literals, which ld leaves out of the program."""
    return {name: here for name, here in joined_by_symbol(*result).items() if not name.startswith(".L")}


def joined_by_symbol(*result: dict[str, set[Declaration]]) -> dict[str, set[Declaration]]:
    named: dict[str, set[Declaration]] = {}
    for one in result:
        for name, declarations in one.items():
            named.setdefault(name, set()).update(declarations)
    return {name: declarations for name, declarations in named.items() if declarations}


@pytest.mark.parametrize("options", OBJECT_OPTIONS, ids="".join)
@pytest.mark.parametrize("language", ["c", "cpp"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_objects_declare_what_the_program_declares_that_is_linked_of_them(
    compiled: Callable[..., tuple[Path, Path, Path]], compiler: str, language: str, options: tuple[str, ...]
) -> None:
    one, two, linked = compiled(compiler, language, *options)
    expected = joined_by_symbol(by_symbol(linked))
    assert linked_by_symbol(by_symbol(one), by_symbol(two)) == expected
    assert len(expected) >= 12
    assert declared(image(one)).notes == ()


@pytest.mark.parametrize("options", [("-gdwarf-4", "-O1"), ("-gdwarf-5", "-O1"), ("-gdwarf-5", "-O1", "-m32")])
@pytest.mark.parametrize("language", ["c", "cpp"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_all_is_found_in_an_object_that_a_full_walk_finds_there(
    compiled: Callable[..., tuple[Path, Path, Path]],
    compiler: str,
    language: str,
    options: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """pyelftools applies the relocations, too, but leaves out which section an address is in: offsets are compared."""
    # It does not know those of thread-local storage, which are symbol plus addend as well.
    for recipes, address, tls in (
        (RelocationHandler._RELOCATION_RECIPES_X64, 1, 17),
        (RelocationHandler._RELOCATION_RECIPES_X64, 10, 21),
        (RelocationHandler._RELOCATION_RECIPES_X86, 1, 32),
    ):
        monkeypatch.setitem(recipes, tls, recipes[address])
    path, _, _ = compiled(compiler, language, *options)
    of = image(path)
    found, places = declared(of), VariablePlaces(of)
    offsets = {places.of(symbol): (symbol.type == STT_TLS, symbol.vaddr) for symbol in variables(of)}
    ours: dict[tuple[bool, int], set[Fact]] = {}
    for place, here in found.by_place.items():
        ours.setdefault(offsets[place], set()).update(map(reduced, here))
    # A literal without a symbol has the offset of a variable in another section.
    reference = {
        place: {one for one in facts if one[1] is not None or one in ours.get(place, ())}
        for place, facts in walked(path).items()
    }
    assert ours == {place: facts for place, facts in reference.items() if place in offsets.values()}
    assert len(ours) >= 5


def test_what_ld_joins_without_linking_it_says_what_its_parts_say(
    compiled: Callable[..., tuple[Path, Path, Path]], tmp_path: Path
) -> None:
    for compiler, options in (("gcc", ("-gdwarf-5", "-O1", "-fdebug-types-section")), ("clang", ("-gdwarf-5", "-O1"))):
        one, two, _ = compiled(compiler, "cpp", *options)
        joined_path = tmp_path / f"{compiler}.ro"
        run_or_skip([tool("ld"), "-r", one, two, "-o", joined_path], tmp_path)
        assert joined_by_symbol(by_symbol(joined_path)) == joined_by_symbol(by_symbol(one), by_symbol(two))


def test_the_members_of_an_archive_are_objects(
    compiled: Callable[..., tuple[Path, Path, Path]], tmp_path: Path
) -> None:
    one, two, _ = compiled("gcc", "cpp", "-gdwarf-5", "-O1")
    run_or_skip([tool("ar"), "rcs", tmp_path / "lib.a", one, two], tmp_path)
    members = list(read_members(open_input(str(tmp_path / "lib.a")), "lib.a"))
    found = [in_image(read_image(member.data, member.name)) for member in members if member.data is not None]
    assert found == [by_symbol(one), by_symbol(two)]


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize(
    "machine",
    [
        *("i386", "aarch64", "aarch64_be", "arm", "riscv64", "riscv32", "s390x"),
        *("powerpc64le", "powerpc64", "powerpc", "mips64el", "mips", "mipsel"),
    ],
)
def test_objects_of_other_machines_are_relocated_by_their_own_types(machine: str, version: str, tmp_path: Path) -> None:
    for name in ("header.h", "one.c"):
        (tmp_path / name).write_text(SOURCES[name])
    command = [tool("clang"), "-w", version, "-O1", "-c", "one.c", "-o"]
    run_or_skip([*command, "here.o", "--target=x86_64-linux-gnu"], tmp_path)
    run_or_skip([*command, "there.o", f"--target={machine}-linux-gnu"], tmp_path)
    here, there = by_symbol(tmp_path / "here.o"), by_symbol(tmp_path / "there.o")
    assert declared(image(tmp_path / "there.o")).notes == ()
    # For these two clang says nothing of where thread-locals are.
    is_silent = machine.startswith("aarch64") or machine == "powerpc"
    meant = here.keys() - ({"own_thread", "its_thread"} if is_silent else set())
    assert {name: {(one.file, one.line) for one in there[name]} for name in meant} == {
        name: {(one.file, one.line) for one in here[name]} for name in meant
    }
    assert sum(map(bool, here.values())) >= 12


def test_a_debug_file_says_what_was_stripped(build: Callable[..., Path], tmp_path: Path) -> None:
    path, debug_file = build("gcc", "cpp", "-g", "-O1"), tmp_path / "program.debug"
    run_or_skip([tool("objcopy"), "--only-keep-debug", path, debug_file], tmp_path)
    assert by_symbol(debug_file) == by_symbol(path)


def without_units(result: dict[str, set[Declaration]]) -> dict[str, set[Declaration]]:
    """Return declarations without what only the unit says: its source, and its producer, which names the standard."""
    return {name: {one._replace(unit="", standard=None) for one in here} for name, here in result.items()}


def alike(result: dict[str, set[Declaration]], path: Path) -> dict[str, set[str]]:
    """Return declarations as texts in which folders of fixtures do not tell."""
    return {name: {str(one).replace(str(path.parent), "") for one in here} for name, here in result.items()}
