"""Large variables: those that only dead code uses, those that the file holds as zeros, and buffers."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from footprint.elf.image import read_image
from footprint.elf.statics import Statics, read_statics
from footprint.findings.copies import Declared
from footprint.findings.variable_rules.large_static import large_ones, large_statics
from footprint.model.finding import Confidence, Finding, SourceLocation
from tests.elfwriter import (
    EM_RISCV,
    ET_DYN,
    ET_EXEC,
    RO,
    RW,
    RX,
    SHT_NOBITS,
    STB_LOCAL,
    STT_FUNC,
    STT_TLS,
    TLS,
    At,
    ElfFile,
    Section,
    Sym,
    write,
)

TEXT, DATA, BSS = 0x401000, 0x403000, 0x406000
PAGE = 4096


def lea(at: int, target: int) -> bytes:
    """Return `lea rax, [rip + target]` for a place in .text."""
    return b"\x48\x8d\x05" + (target - TEXT - at - 7).to_bytes(4, "little", signed=True)


def call(at: int, target: int) -> bytes:
    return b"\xe8" + (target - at - 5).to_bytes(4, "little", signed=True)


def code(pieces: dict[int, bytes]) -> bytes:
    """Put instructions at their places in .text, with what means nothing in between."""
    raw = bytearray(b"\x90" * 128)
    for at, piece in pieces.items():
        raw[at : at + len(piece)] = piece
    return bytes(raw)


def buffer(name: str = "buffer", at: int = 0, size: int = PAGE, section: str = ".bss") -> Sym:
    return Sym(name, At(section, at), size, binding=STB_LOCAL)


def function(name: str, at: int, size: int = 16) -> Sym:
    return Sym(name, At(".text", at), size, STT_FUNC, STB_LOCAL)


def read(text: bytes, symbols: Sequence[Sym], **what: Any) -> Statics:  # noqa: ANN401 # of ElfFile
    sections = [
        Section(".text", flags=RX, data=text, addr=TEXT),
        Section(".data", flags=RW, data=bytes(2 * PAGE) + b"\1", addr=DATA),
        Section(".bss", SHT_NOBITS, RW, size=3 * PAGE, addr=BSS),
    ]
    file = ElfFile(**{"type": ET_DYN, "sections": sections, "symbols": symbols, **what})
    return read_statics(read_image(write(file), "/opt/bin/program"))


def result(text: bytes, *symbols: Sym, **what: Any) -> dict[str, Finding]:  # noqa: ANN401 # of ElfFile
    return {static.subject: static for static in large_statics(read(text, symbols, **what))}


# --- which are large --------------------------------------------------------------------------------------------------


def test_writable_variables_of_a_page_and_more_are_large_and_the_largest_come_first() -> None:
    symbols = [buffer("b"), buffer("a", PAGE), buffer("larger", 2 * PAGE, PAGE + 1), buffer("small", 0, PAGE - 1)]
    assert [static.name for static in large_ones(read(b"", symbols))] == ["larger", "a", "b"]
    assert [static.name for static in large_ones(read(b"", symbols), PAGE + 1)] == ["larger"]


def test_constants_and_thread_locals_are_none() -> None:
    sections = [
        Section(".rodata", flags=RO, data=bytes(PAGE)),
        Section(".tbss", SHT_NOBITS, TLS, size=PAGE),
        Section(".text", flags=RX, data=bytes(16)),
    ]
    symbols = [buffer("constant", section=".rodata"), Sym("of_thread", At(".tbss"), PAGE, STT_TLS)]
    assert large_ones(read(b"", symbols, sections=sections)) == []


# --- dead code --------------------------------------------------------------------------------------------------------


def test_a_variable_that_nothing_refers_to_is_dead() -> None:
    one = result(code({}), buffer())["buffer"]
    assert (one.rule, one.kind, one.confidence) == ("large-static", "dead-code", Confidence.HIGH)
    assert one.message == "buffer takes 4 KiB of .bss of program, and nothing refers to it"
    assert one.reasons == ("no code, table or relocation refers to it",)


def test_a_variable_of_a_function_that_nothing_calls_is_dead() -> None:
    one = result(code({0: lea(0, BSS)}), function("answer", 0), buffer())["buffer"]
    assert (one.kind, one.message) == (
        "dead-code",
        "buffer takes 4 KiB of .bss of program, only for answer, which nothing calls",
    )


@pytest.mark.parametrize("name", ["counters", ".init_calls"])
def test_a_variable_of_a_section_with_a_name_of_its_own_is_alive(name: str) -> None:
    """The linker puts such variables one behind the other, and code walks from `__start_counters` to the end."""
    sections = [
        Section(".text", flags=RX, data=code({}), addr=TEXT),
        Section(name, flags=RW, data=bytes(2 * PAGE), addr=DATA),
    ]
    symbols = [buffer("first", section=name), buffer("second", PAGE, section=name)]
    result = large_statics(read(b"", symbols, sections=sections))
    # In .bss it would be no longer between the others.
    assert [(static.kind, static.confidence) for static in result] == [("buffer", Confidence.LOW)] * 2
    assert result[1].message == f"second takes 4 KiB of {name} of program"


def test_a_function_that_only_calls_itself_is_dead() -> None:
    text = code({0: lea(0, BSS), 7: call(7, 0)})
    assert result(text, function("answer", 0), buffer())["buffer"].kind == "dead-code"


def test_a_function_that_another_calls_is_alive() -> None:
    text = code({0: lea(0, BSS), 32: call(32, 0)})
    one = result(text, function("answer", 0), function("main", 32), buffer())["buffer"]
    assert (one.kind, one.message) == ("buffer", "buffer takes 4 KiB of .bss of program, for answer")
    assert one.confidence is Confidence.LOW


def test_of_a_living_and_a_dead_function_the_living_one_counts() -> None:
    text = code({0: lea(0, BSS), 16: lea(16, BSS), 32: call(32, 0)})
    symbols = [function("alive", 0), function("dead", 16), function("main", 32), buffer()]
    assert result(text, *symbols)["buffer"].message.endswith(", for alive")


def test_code_without_a_symbol_is_alive() -> None:
    one = result(code({0: lea(0, BSS)}), buffer())["buffer"]
    assert (one.kind, one.message) == ("buffer", "buffer takes 4 KiB of .bss of program")


def test_a_function_that_a_table_names_is_alive() -> None:
    sections = [
        Section(".text", flags=RX, data=code({0: lea(0, BSS)}), addr=TEXT),
        Section(".data", flags=RW, data=TEXT.to_bytes(8, "little"), addr=DATA),
        Section(".bss", SHT_NOBITS, RW, size=PAGE, addr=BSS),
    ]
    assert result(b"", function("answer", 0), buffer(), sections=sections)["buffer"].kind == "buffer"


def test_a_function_that_other_objects_can_call_is_alive() -> None:
    exported = [Sym("answer", At(".text"), 16, STT_FUNC)]
    text = code({0: lea(0, BSS)})
    assert result(text, function("answer", 0), buffer(), dynamic_symbols=exported)["buffer"].kind == "buffer"


def test_a_variable_that_other_objects_can_use_is_alive() -> None:
    exported = [Sym("buffer", At(".bss"), PAGE)]
    assert result(code({}), buffer(), dynamic_symbols=exported)["buffer"].kind == "buffer"


def test_a_variable_that_is_reached_from_beside_it_is_alive() -> None:
    before = code({0: lea(0, BSS + PAGE - 8)})
    assert result(before, buffer("table", PAGE))["table"].kind == "buffer"
    behind = code({0: lea(0, BSS + 2 * PAGE)})
    assert result(behind, buffer("table", PAGE))["table"].kind == "buffer"


def test_what_leads_to_its_neighbours_leads_not_to_it() -> None:
    text = code({0: lea(0, BSS), 16: lea(16, BSS + 2 * PAGE)})
    symbols = [buffer("first"), buffer("second", PAGE), buffer("third", 2 * PAGE)]
    assert {name: one.kind for name, one in result(text, *symbols).items()} == {
        "first": "buffer",
        "second": "dead-code",
        "third": "buffer",
    }


def test_at_a_fixed_address_an_address_in_code_keeps_it_alive() -> None:
    text = code({0: b"\xbf" + BSS.to_bytes(4, "little")})
    assert result(text, buffer(), type=ET_EXEC)["buffer"].kind == "buffer"
    assert result(code({}), buffer(), type=ET_EXEC)["buffer"].kind == "dead-code"


def test_of_other_machines_nothing_is_called_dead() -> None:
    assert result(code({}), buffer(), machine=EM_RISCV)["buffer"].kind == "buffer"


# --- what the file holds ----------------------------------------------------------------------------------------------


def test_zeros_that_the_file_holds_could_be_in_bss() -> None:
    one = result(code({}), buffer(section=".data"), machine=EM_RISCV)["buffer"]
    assert (one.kind, one.confidence) == ("zero-filled", Confidence.HIGH)
    assert one.remedy == "leave out its initialiser: in .bss it costs nothing until it is touched"


def test_one_byte_that_is_not_zero_makes_it_a_buffer() -> None:
    one = result(code({}), buffer(at=1, size=2 * PAGE, section=".data"), machine=EM_RISCV)["buffer"]
    assert one.kind == "buffer"


@pytest.mark.parametrize("machine", [62, EM_RISCV])
def test_the_line_that_declares_it_is_told(machine: int) -> None:
    statics = read(code({}), [buffer()], machine=machine)
    (one,) = large_statics(statics, {(False, BSS): Declared("/src/a.c", 7, is_in_header=False)})
    assert one.location == SourceLocation("/src/a.c", 7)


def test_a_private_part_is_said_and_of_other_files_nothing() -> None:
    statics = read(code({}), [buffer(), buffer("other", PAGE)])

    def private_of(spans: Iterable[tuple[int, int]]) -> int | None:
        ((start, end),) = spans
        assert end == start + PAGE
        return 512 if start == BSS else 0

    first, other = large_statics(statics, private_of=private_of)
    assert (first.private_bytes, other.private_bytes) == (512, 0)
    assert first.message.endswith("; 512 B of it is private now")
    assert other.message.endswith("; none of it is private now")
    assert {static.private_bytes for static in large_statics(statics, private_of=lambda _: None)} == {None}


def test_only_a_sure_user_is_named() -> None:
    # lea rax, [rip + 8 before the second buffer], which is in the first; and cmp dword [rip + its last byte], 0.
    last = b"\x81\x3d" + (BSS + PAGE - 1 - TEXT - 16 - 10).to_bytes(4, "little", signed=True) + bytes(4)
    text = code({0: lea(0, BSS + PAGE - 8), 16: last, 32: call(32, 0), 37: call(37, 16)})
    symbols = [function("first", 0), function("second", 16), function("main", 32), buffer(), buffer("behind", PAGE)]
    messages = {name: one.message for name, one in result(text, *symbols).items()}
    assert messages["buffer"].endswith(", for first, second")
    assert messages["behind"] == "behind takes 4 KiB of .bss of program"


def test_a_destructor_of_the_compiler_is_named_only_where_nobody_else_is() -> None:
    """It walks an array from its end, and there the next variable begins."""
    calls = {48: call(48, 0), 64: call(64, 16)}
    pieces = {0: lea(0, BSS), 16: lea(16, BSS), **calls}
    own, made, main = function("own", 0), function("__tcf_0", 16), function("main", 48, 32)
    assert result(code(pieces), own, made, main, buffer())["buffer"].message.endswith(", for own")
    del pieces[0]
    assert result(code(pieces), own, made, main, buffer())["buffer"].message.endswith(", for __tcf_0")
