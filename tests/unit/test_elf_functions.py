"""Which function an address of an ELF file lies in."""

from pathlib import Path

import pytest

from footprint.elf.functions import Functions, read_functions
from footprint.elf.image import read_image
from footprint.elf.symbols import Symbol
from footprint.errors import InputError
from tests.elfwriter import (
    EM_ARM,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHT_PROGBITS,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_GNU_IFUNC,
    ElfFile,
    Section,
    Sym,
    patch,
    write,
)

SAMPLE = Path(__file__).resolve().parents[2] / "sample_binaries" / "heap_by_function"
TEXT = Section(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, addr=0x1000, data=bytes(0x100))


def sym(name: str, offset: int, size_bytes: int, kind: int = STT_FUNC, binding: int = 1) -> Sym:
    return Sym(name, 0x1000 + offset, size_bytes, type=kind, binding=binding, section=".text")


def functions(*symbols: Sym, machine: int | None = None) -> Functions:
    file = ElfFile(sections=[TEXT], symbols=list(symbols))
    if machine is not None:
        file = ElfFile(sections=[TEXT], symbols=list(symbols), machine=machine, bits=32)
    return read_functions(read_image(write(file), "a file"))


def name_at(result: Functions, vaddr: int) -> str | None:
    function = result.at(vaddr)
    return None if function is None else function.name


def test_an_address_lies_in_the_function_that_begins_before_it_and_reaches_beyond() -> None:
    result = functions(sym("second", 0x40, 8), sym("first", 0x10, 0x10))
    assert [name_at(result, 0x1000 + offset) for offset in (0x0F, 0x10, 0x1F, 0x20, 0x40, 0x47, 0x48)] == [
        None,
        "first",
        "first",
        None,
        "second",
        "second",
        None,
    ]
    assert list(result) == [Symbol("first", 0x1010, 0x10, STT_FUNC, 1), Symbol("second", 0x1040, 8, STT_FUNC, 1)]
    assert list(result.extents()) == [("first", 0x1010, 0x10), ("second", 0x1040, 8)]
    assert (len(result), result.source) == (2, ".symtab")


@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_names_are_the_same_however_many_are_read_at_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.elf.image._NAMES_AT_ONCE", count)
    names = ["one", "two", "gr\udcfcn", "x" * 5000, "one", "three", ""]
    result = functions(*[sym(name, 8 * place, 8) for place, name in enumerate(names)])
    for _ in range(2):
        assert [name for name, _, _ in result.extents()] == names


def test_functions_with_the_first_letters_of_a_word_are_read_alone() -> None:
    result = functions(*[sym(name, 8 * place, 8) for place, name in enumerate(("far", "main", "fan@@V2", "f", ""))])
    assert [[name for name, _, _ in result.extents(words)] for words in (["fan"], ["main", "fan"], ["f"], [])] == [
        ["fan@@V2"],
        ["main", "fan@@V2"],
        ["far", "fan@@V2", "f"],
        [],
    ]


def test_half_a_character_is_the_name_of_no_function() -> None:
    result = functions(sym("far", 0, 8), sym("gr\udcfcn", 8, 8))
    assert [name for name, _, _ in result.extents(["\ud800", "gr\udcfcn"])] == ["gr\udcfcn"]


def test_a_function_without_a_size_reaches_to_the_next() -> None:
    found = functions(sym("start", 0, 0), sym("next", 0x20, 4))
    assert [name_at(found, vaddr) for vaddr in (0x1000, 0x101F, 0x1020, 0x1024)] == ["start", "start", "next", None]


def test_of_several_names_a_sized_one_and_a_global_one_is_shown() -> None:
    names = (sym("local", 0, 8, binding=STB_LOCAL), sym("weak", 0, 8, binding=STB_WEAK), sym("shown", 0, 8))
    assert name_at(functions(*names), 0x1001) == "shown"
    assert name_at(functions(*names[:2], sym("label", 0, 0)), 0x1001) == "weak"
    assert len(functions(*names)) == 3


def test_variables_and_undefined_functions_are_no_functions_and_chosen_ones_are() -> None:
    found = functions(
        sym("table", 0, 8, kind=1), Sym("elsewhere", 0, 8, type=STT_FUNC), sym("memcpy", 0x10, 8, kind=STT_GNU_IFUNC)
    )
    assert [function.name for function in found] == ["memcpy"]


def test_bit_0_of_a_thumb_function_is_no_part_of_its_address() -> None:
    assert name_at(functions(sym("thumb", 0x11, 8), machine=EM_ARM), 0x1010) == "thumb"


def test_the_sample_has_the_functions_of_its_source() -> None:
    found = read_functions(read_image((SAMPLE / "libtable.so").read_bytes(), "libtable.so"))
    assert [function.name for function in found] == ["xmalloc", "table_new"]


def test_a_file_without_symbols_has_no_functions() -> None:
    found = read_functions(read_image(write(ElfFile(sections=[TEXT])), "a file"))
    assert (len(found), found.source, found.at(0x1000)) == (0, None, None)


@pytest.mark.parametrize(("field", "value"), [("sh_entsize", 7), ("sh_link", 999), ("sh_size", 1 << 40)])
def test_a_damaged_table_is_refused(field: str, value: int) -> None:
    image = patch(write(ElfFile(sections=[TEXT], symbols=[sym("f", 0, 8)])), field, value, ".symtab")
    with pytest.raises(InputError, match="a file"):
        read_functions(read_image(image, "a file"))


def test_a_name_outside_of_its_table_is_refused_when_it_is_asked_for() -> None:
    image = write(ElfFile(sections=[TEXT], symbols=[sym("f", 0, 8)]))
    found = read_functions(read_image(patch(image, "sh_size", 1, ".strtab"), "a file"))
    with pytest.raises(InputError, match="symbol names"):
        found.at(0x1000)
