"""What variables begin with, so that copies at different addresses compare equal: bytes, and what pointers mean."""

from collections.abc import Sequence
from typing import Any, Literal

import pytest

from footprint.elf.image import read_image
from footprint.elf.initial import Initial, Initials
from footprint.elf.statics import read_statics
from tests.elfwriter import (
    EM_386,
    EM_S390,
    ET_DYN,
    ET_EXEC,
    RO,
    RW,
    RX,
    SHT_NOBITS,
    SHT_REL,
    SHT_RELA,
    SHT_RELR,
    STB_LOCAL,
    STT_FUNC,
    STT_OBJECT,
    STT_TLS,
    TLS,
    At,
    Dyn,
    ElfFile,
    Piece,
    Rel,
    Section,
    Sym,
    relr,
    write,
)

DT_NEEDED = 1
R_X86_64_64, R_X86_64_RELATIVE = 1, 8
LIBRARY: dict[str, Any] = {"dynamic": [Dyn(DT_NEEDED, "libc.so.6")], "type": ET_DYN}
TEXT = Section(".text", flags=RX, data=bytes(64), addr=0x1000)
STRINGS = Section(".rodata", flags=RO, data=b"red\0green\0red\0", addr=0x2000)
RED, GREEN, RED_AGAIN = 0x2000, 0x2004, 0x200A


def local(name: str, value: At, size: int, type_: int = STT_OBJECT) -> Sym:
    return Sym(name, value, size, type_, STB_LOCAL)


def initials(
    *sections: Section,
    symbols: Sequence[Sym],
    **what: Any,  # noqa: ANN401 # what an ElfFile takes
) -> dict[str, Initial | None]:
    """Read what the variables of a file begin with, by name."""
    image = read_image(write(ElfFile(sections=[TEXT, STRINGS, *sections], symbols=symbols, **what)), "program")
    statics = read_statics(image)
    found = Initials(statics)
    found.prepare(statics.statics)
    return {static.name: found.of(static) for static in statics.statics}


def words(*numbers: int, bits: int = 64, order: Literal["little", "big"] = "little") -> bytes:
    return b"".join(number.to_bytes(bits // 8, order) for number in numbers)


def in_data(*numbers: int) -> Section:
    return Section(".data", flags=RW, data=words(*numbers), addr=0x4000)


def pointers(*targets: int) -> Section:
    """Have the loader write a word of .data for each target, one after the other."""
    rows: list[Piece] = [
        Rel(0x4000 + 8 * at, R_X86_64_RELATIVE, addend=target) for at, target in enumerate(targets) if target
    ]
    return Section(".rela.dyn", SHT_RELA, RO, rows)


def of_two_words(*names: str) -> list[Sym]:
    return [local(name, At(".data", 16 * number), 16) for number, name in enumerate(names)]


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_bytes_are_given_as_they_are() -> None:
    found = initials(in_data(1, 2, 3, 4), symbols=of_two_words("a", "b"))
    assert found == {"a": Initial(words(1, 2), ()), "b": Initial(words(3, 4), ())}


def test_what_the_file_does_not_hold_is_blank_and_so_are_zeros() -> None:
    bss = Section(".bss", SHT_NOBITS, RW, size=16)
    found = initials(in_data(0, 0, 1, 0), bss, symbols=[*of_two_words("zeros", "one"), local("x", At(".bss"), 16)])
    assert found["x"] == Initial(None, ())
    assert {name: one is not None and one.is_blank for name, one in found.items()} == {
        "zeros": True,
        "one": False,
        "x": True,
    }


def test_a_thread_local_is_read_from_the_block_that_threads_get_a_copy_of() -> None:
    tdata = Section(".tdata", flags=TLS, data=b"abcdefgh", addr=0x4000)
    tbss = Section(".tbss", SHT_NOBITS, TLS, size=8, addr=0x4008)
    symbols = [local("t", At(".tdata", 4), 4, STT_TLS), local("u", At(".tbss"), 8, STT_TLS)]
    assert initials(tdata, tbss, symbols=symbols) == {"t": Initial(b"efgh", ()), "u": Initial(None, ())}


def test_a_variable_that_goes_on_behind_its_section_cannot_be_compared() -> None:
    assert initials(in_data(1), symbols=[local("x", At(".data"), 16)]) == {"x": None}


# --- pointers that the loader relocates ----------------------------------------------------------------------------


def test_pointers_to_two_strings_of_one_text_are_the_same_and_to_another_are_not() -> None:
    symbols = of_two_words("a", "b", "c")
    table = pointers(RED, GREEN, RED_AGAIN, GREEN, GREEN, GREEN)
    found = initials(table, in_data(*[0] * 6), symbols=symbols, **LIBRARY)
    assert found["a"] == found["b"] == Initial(bytes(16), ((0, b"red"), (8, b"green")))
    assert found["c"] != found["a"]


def test_the_same_words_at_other_places_of_a_variable_are_something_else() -> None:
    found = initials(pointers(RED, 0, 0, RED), in_data(*[0] * 4), symbols=of_two_words("a", "b"), **LIBRARY)
    assert found == {"a": Initial(bytes(16), ((0, b"red"),)), "b": Initial(bytes(16), ((8, b"red"),))}


def test_pointers_to_copies_of_a_function_are_the_same() -> None:
    functions = [
        local("compare.lto_priv.0", At(".text"), 16, STT_FUNC),
        local("compare.lto_priv.1", At(".text", 16), 16, STT_FUNC),
        local("print", At(".text", 32), 16, STT_FUNC),
    ]
    symbols = [*functions, *of_two_words("a", "b", "c")]
    found = initials(pointers(0x1000, 0, 0x1010, 0, 0x1020), in_data(*[0] * 6), symbols=symbols, **LIBRARY)
    assert found["a"] == found["b"] == Initial(bytes(16), ((0, ("compare", 0)),))
    assert found["c"] == Initial(bytes(16), ((0, ("print", 0)),))


def test_copies_that_point_into_themselves_are_the_same() -> None:
    symbols = [local(name, At(".data", at), 16) for name, at in (("ring.1", 0), ("ring.2", 16))]
    found = initials(pointers(0x4008, 0, 0x4018), in_data(*[0] * 4), symbols=symbols, **LIBRARY)
    assert found["ring.1"] == found["ring.2"] == Initial(bytes(16), ((0, ("ring", 8)),))


def test_pointers_to_two_functions_of_other_libraries_differ() -> None:
    asked = [Sym("malloc", type=STT_FUNC), Sym("free", type=STT_FUNC)]
    rows = [Rel(0x4000, R_X86_64_64, "malloc", 0), Rel(0x4010, R_X86_64_64, "free", 0)]
    rows += [Rel(0x4020, R_X86_64_64, "free", 0), Rel(0x4030, R_X86_64_64, "free", 8)]
    table = Section(".rela.dyn", SHT_RELA, RO, rows)
    found = initials(
        table, in_data(*[0] * 8), symbols=of_two_words("a", "b", "c", "d"), dynamic_symbols=asked, **LIBRARY
    )
    assert found["a"] == Initial(bytes(16), ((0, ("malloc", 0)),))
    assert found["b"] == found["c"] == Initial(bytes(16), ((0, ("free", 0)),))
    assert found["d"] == Initial(bytes(16), ((0, ("free", 8)),))


def test_what_stands_in_place_is_no_part_of_a_pointer_that_has_an_addend() -> None:
    found = initials(pointers(RED, 0, RED), in_data(RED, 7, 0, 7), symbols=of_two_words("a", "b"), **LIBRARY)
    assert found["a"] == found["b"] == Initial(words(0, 7), ((0, b"red"),))


def test_a_packed_pointer_is_found_at_any_place() -> None:
    rows = [Rel(0x4003, R_X86_64_RELATIVE, addend=RED)]
    table = Section(".rela.dyn", SHT_RELA, RO, rows)
    found = initials(table, in_data(0, 1 << 40), symbols=[local("a", At(".data"), 16)], **LIBRARY)
    assert found == {"a": Initial(words(0, 1 << 40), ((3, b"red"),))}


def test_a_word_that_is_only_half_in_a_variable_is_none_of_it() -> None:
    found = initials(pointers(RED), in_data(0, 5), symbols=[local("a", At(".data"), 4)], **LIBRARY)
    assert found == {"a": Initial(bytes(4), ())}


def test_pointers_of_thread_locals_are_read_as_well() -> None:
    tdata = Section(".tdata", flags=TLS, data=bytes(16), addr=0x4000)
    symbols = [local("a", At(".tdata"), 8, STT_TLS), local("b", At(".tdata", 8), 8, STT_TLS)]
    found = initials(pointers(RED, GREEN), tdata, symbols=symbols, **LIBRARY)
    assert found == {"a": Initial(bytes(8), ((0, b"red"),)), "b": Initial(bytes(8), ((0, b"green"),))}


@pytest.mark.parametrize("kind", [SHT_REL, SHT_RELR], ids=["REL", "RELR"])
@pytest.mark.parametrize(("bits", "order"), [(64, "little"), (64, "big"), (32, "little"), (32, "big")])
def test_without_addends_the_target_stands_in_place(
    kind: int, bits: Literal[32, 64], order: Literal["little", "big"]
) -> None:
    word_bytes = bits // 8
    places = [0x4000, 0x4000 + word_bytes]
    rows: list[Piece] = [*relr(places, bits)] if kind == SHT_RELR else [Rel(place, 8) for place in places]
    data = Section(".data", flags=RW, data=words(RED, RED_AGAIN, bits=bits, order=order), addr=0x4000)
    symbols = [local(name, At(".data", at * word_bytes), word_bytes) for at, name in enumerate("ab")]
    machine = EM_S390 if order == "big" else EM_386
    kinds = {"bits": bits, "order": order, "machine": machine}
    found = initials(Section(".relocations", kind, RO, rows), data, symbols=symbols, **kinds, **LIBRARY)
    assert found["a"] == found["b"] == Initial(bytes(word_bytes), ((0, b"red"),))


# --- programs at a fixed address -----------------------------------------------------------------------------------


def test_at_a_fixed_address_a_word_that_leads_into_the_program_is_a_pointer() -> None:
    data = in_data(RED, 2, RED_AGAIN, 2, GREEN, 2)
    found = initials(data, symbols=of_two_words("a", "b", "c"), type=ET_EXEC)
    assert found["a"] == found["b"] == Initial(words(0, 2), ((0, b"red"),))
    assert found["c"] == Initial(words(0, 2), ((0, b"green"),))


def test_at_a_fixed_address_read_only_copies_may_point_into_themselves() -> None:
    # The second word of a ring would look like the text `\x08\x30` if it were read as one.
    rings = Section(".rodata2", flags=RO, data=words(0x3008, 0x3000, 0x3018, 0x3010), addr=0x3000)
    symbols = [local("ring.1", At(".rodata2"), 16), local("ring.2", At(".rodata2", 16), 16)]
    found = initials(rings, symbols=symbols, type=ET_EXEC)
    assert found["ring.1"] == found["ring.2"] == Initial(bytes(16), ((0, ("ring", 8)), (8, ("ring", 0))))


def test_at_a_fixed_address_relocations_name_what_other_libraries_have() -> None:
    table = Section(".rela.dyn", SHT_RELA, RO, [Rel(0x4000, R_X86_64_64, "environ", 0)])
    asked = [Sym("environ")]
    result = initials(
        table,
        in_data(0, RED),
        symbols=of_two_words("a"),
        dynamic_symbols=asked,
        dynamic=[Dyn(DT_NEEDED, "libc.so.6")],
        type=ET_EXEC,
    )
    assert result == {"a": Initial(bytes(16), ((0, ("environ", 0)), (8, b"red")))}


def test_a_pointer_to_unnamed_writable_memory_is_told_by_its_section() -> None:
    found = initials(in_data(0x4018, 0, 0, 0), symbols=of_two_words("a"), type=ET_EXEC)
    assert found == {"a": Initial(bytes(16), ((0, (".data", 0x18)),))}


def test_a_variable_of_the_largest_size_is_compared_and_a_larger_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.elf.initial._LARGEST_COMPARED_BYTES", 8)
    data = Section(".data", flags=RW, data=b"red\0red\0green\0red", addr=0x3000)
    found = initials(data, symbols=[local("eight", At(".data"), 8), local("nine", At(".data", 8), 9)])
    eight, nine = found["eight"], found["nine"]
    assert eight is not None
    assert nine is not None
    assert (eight.raw, nine.raw) == (b"red\0red\0", None)
