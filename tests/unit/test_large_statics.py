"""Large variables: those that the file holds as zeros, and buffers."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from footprint.elf import read_image
from footprint.elf.statics import Statics, read_statics
from footprint.findings.copies import Declared
from footprint.findings.variable_rules.large_static import large_ones, large_statics
from footprint.model.finding import Confidence, Finding, SourceLocation
from tests.elfwriter import (
    EM_AARCH64,
    ET_DYN,
    RO,
    RW,
    RX,
    SHT_NOBITS,
    STB_LOCAL,
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


def buffer(name: str = "buffer", at: int = 0, size: int = PAGE, section: str = ".bss") -> Sym:
    return Sym(name, At(section, at), size, binding=STB_LOCAL)


def read(symbols: Sequence[Sym], **what: Any) -> Statics:  # noqa: ANN401 # of ElfFile
    sections = [
        Section(".text", flags=RX, data=bytes(16), addr=TEXT),
        Section(".data", flags=RW, data=bytes(2 * PAGE) + b"\1", addr=DATA),
        Section(".bss", SHT_NOBITS, RW, size=3 * PAGE, addr=BSS),
    ]
    file = ElfFile(**{"type": ET_DYN, "sections": sections, "symbols": symbols, **what})
    return read_statics(read_image(write(file), "/opt/bin/program"))


def found(*symbols: Sym, **what: Any) -> dict[str, Finding]:  # noqa: ANN401 # of ElfFile
    return {one.subject: one for one in large_statics(read(symbols, **what))}


# --- which are large --------------------------------------------------------------------------------------------------


def test_writable_variables_of_a_page_and_more_are_large_and_the_largest_come_first() -> None:
    symbols = [buffer("b"), buffer("a", PAGE), buffer("larger", 2 * PAGE, PAGE + 1), buffer("small", 0, PAGE - 1)]
    assert [one.name for one in large_ones(read(symbols))] == ["larger", "a", "b"]
    assert [one.name for one in large_ones(read(symbols), PAGE + 1)] == ["larger"]


def test_constants_and_thread_locals_are_none() -> None:
    sections = [
        Section(".rodata", flags=RO, data=bytes(PAGE)),
        Section(".tbss", SHT_NOBITS, TLS, size=PAGE),
        Section(".text", flags=RX, data=bytes(16)),
    ]
    symbols = [buffer("constant", section=".rodata"), Sym("of_thread", At(".tbss"), PAGE, STT_TLS)]
    assert large_ones(read(symbols, sections=sections)) == []


# --- what the file holds ----------------------------------------------------------------------------------------------


def test_zeros_that_the_file_holds_could_be_in_bss() -> None:
    one = found(buffer(section=".data"), machine=EM_AARCH64)["buffer"]
    assert (one.kind, one.confidence) == ("zero-filled", Confidence.HIGH)
    assert one.remedy == "leave out its initialiser: in .bss it costs nothing until it is touched"


def test_one_byte_that_is_not_zero_makes_it_a_buffer() -> None:
    one = found(buffer(at=1, size=2 * PAGE, section=".data"), machine=EM_AARCH64)["buffer"]
    assert one.kind == "buffer"


@pytest.mark.parametrize("machine", [62, EM_AARCH64])
def test_the_line_that_declares_it_is_told(machine: int) -> None:
    statics = read([buffer()], machine=machine)
    (one,) = large_statics(statics, {(False, BSS): Declared("/src/a.c", 7, is_in_header=False)})
    assert one.location == SourceLocation("/src/a.c", 7)


def test_a_private_part_is_said_and_of_other_files_nothing() -> None:
    statics = read([buffer(), buffer("other", PAGE)])

    def private_of(spans: Iterable[tuple[int, int]]) -> int | None:
        ((start, end),) = spans
        assert end == start + PAGE
        return 512 if start == BSS else 0

    first, other = large_statics(statics, private_of=private_of)
    assert (first.private_bytes, other.private_bytes) == (512, 0)
    assert first.message.endswith("; 512 B of it is private now")
    assert other.message.endswith("; none of it is private now")
    assert {one.private_bytes for one in large_statics(statics, private_of=lambda _: None)} == {None}
