"""Laws of copies: the order of symbols changes nothing, damage gives an answer or one error, and work grows evenly."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.elf.image import read_image
from footprint.elf.statics import read_statics
from footprint.errors import InputError
from footprint.findings.copies import CopiedVariable, Declared, find_copies
from footprint.findings.linked_twice import linked_twice
from footprint.findings.variable_rules.large_static import large_statics
from tests.elfwriter import (
    RO,
    RW,
    SHN_ABS,
    SHT_NOBITS,
    STB_LOCAL,
    STT_FILE,
    STT_OBJECT,
    STT_TLS,
    TLS,
    At,
    ElfFile,
    Section,
    Sym,
    write,
)

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = (ROOT / "sample_binaries" / "condor_shadow" / "base").read_bytes()
HEADER_BYTES = 64
SLOT_BYTES = 32
SLOTS = 16
SECTIONS = {
    ".rodata": Section(".rodata", flags=RO, data=bytes(range(1, 33)) * SLOTS),
    ".tdata": Section(".tdata", flags=TLS, data=bytes(SLOT_BYTES * SLOTS)),
    ".data": Section(".data", flags=RW, data=bytes(SLOT_BYTES * SLOTS // 2) + bytes(range(1, 33)) * (SLOTS // 2)),
    ".bss": Section(".bss", SHT_NOBITS, RW, size=SLOT_BYTES * SLOTS),
}
NAMES = ["table", "table.1", "table.lto_priv.0", "_ZN2nsL5tableE", "_ZL5table", "_ZGVZL1fvE1x", "_ZStL8__ioinit", "C.1"]

variables = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(sorted(SECTIONS)),
    st.integers(0, SLOTS - 1),
    st.integers(0, SLOT_BYTES),
)
units = st.lists(st.tuples(st.sampled_from(["a.c", "b.c", ""]), st.lists(variables, max_size=6)), max_size=5)
Units = list[tuple[str, list[tuple[str, str, int, int]]]]


def copies(result: Units) -> tuple[CopiedVariable, ...]:
    symbols = []
    for name, held in result:
        symbols.append(Sym(name, type=STT_FILE, binding=STB_LOCAL, section=SHN_ABS))
        for symbol, section, slot, size in held:
            kind = STT_TLS if section == ".tdata" else STT_OBJECT
            symbols.append(Sym(symbol, At(section, slot * SLOT_BYTES), size, kind, STB_LOCAL))
    image = write(ElfFile(sections=list(SECTIONS.values()), symbols=symbols))
    return find_copies(read_statics(read_image(image, "program")))


@given(units)
def test_waste_is_what_all_copies_but_one_take_and_no_address_counts_twice(result: Units) -> None:
    seen: set[tuple[str, int]] = set()
    for one in copies(result):
        places = {(one.section, copy.vaddr) for copy in one.copies}
        assert len(places) == len(one.copies) > 1
        assert one.waste_bytes == (len(places) - 1) * one.size_bytes > 0
        assert {copy.size_bytes for copy in one.copies} == {one.size_bytes}
        assert seen.isdisjoint(places)
        seen |= places


@given(st.data(), units)
def test_the_order_of_source_files_and_of_their_symbols_changes_nothing(data: Any, result: Units) -> None:  # noqa: ANN401 # of Hypothesis
    # At one address only the first name counts: each slot is given once.
    slots: set[tuple[str, int]] = set()
    once: Units = []
    for name, held in result:
        kept = [one for one in held if (one[1], one[2]) not in slots and not slots.add((one[1], one[2]))]  # type: ignore[func-returns-value] # None
        once.append((name, kept))
    shuffled = [(name, data.draw(st.permutations(held))) for name, held in data.draw(st.permutations(once))]

    def told(units_: Units) -> set[tuple[Any, ...]]:
        return {
            (one.name, one.size_bytes, one.section, one.origin, one.confidence, frozenset(c.vaddr for c in one.copies))
            for one in copies(units_)
        }

    assert told(once) == told(shuffled)


@given(st.lists(st.tuples(st.integers(HEADER_BYTES, len(SAMPLE) - 1), st.integers(0, 255)), min_size=1, max_size=20))
def test_a_damaged_file_gives_an_answer_or_one_of_our_errors(damage: list[tuple[int, int]]) -> None:
    raw = bytearray(SAMPLE)
    for at, byte in damage:
        raw[at] = byte
    try:
        statics = read_statics(read_image(bytes(raw), "program"))
        found = find_copies(statics)
        linked_twice([statics, statics], [found, found])
        large_statics(statics)
    except InputError as error:
        assert error.file == "program"  # noqa: PT017 # an answer is as good


@given(st.integers(0, len(SAMPLE)))
def test_a_file_that_is_cut_gives_an_answer_or_one_of_our_errors(size: int) -> None:
    try:
        find_copies(read_statics(read_image(SAMPLE[:size], "program")))
    except InputError as error:
        assert error.file == "program"  # noqa: PT017 # an answer is as good


def lines_run(count: int, *, is_one_name: bool, is_declared: bool, is_guarded: bool = False) -> int:
    """Count the lines of ours that run to find copies among so many variables, or half of them and their guards."""
    symbols = []
    for at in range(count):
        symbols.append(Sym(f"{at}.c", type=STT_FILE, binding=STB_LOCAL, section=SHN_ABS))
        name = "table" if is_one_name else f"table_{at // 2}"
        if is_guarded:
            name = "_ZZL1fvE1x" if at < count // 2 else "_ZGVZL1fvE1x"
        symbols.append(Sym(name, At(".data", at * SLOT_BYTES), SLOT_BYTES, binding=STB_LOCAL))
    data = Section(".data", flags=RW, data=bytes(range(1, 33)) * count)
    image = read_image(write(ElfFile(sections=[data], symbols=symbols)), "program")
    ran = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 # a tracer gives itself
        nonlocal ran
        ran += event == "line"
        return trace if "footprint" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        statics = read_statics(image)
        lines = {
            (False, one.vaddr): Declared("x.h", at // 2, is_in_header=True) for at, one in enumerate(statics.statics)
        }
        find_copies(statics, lines if is_declared else {})
    finally:
        sys.settrace(before)
    return ran


@pytest.mark.parametrize("is_one_name", [True, False], ids=["one-name", "many-names"])
@pytest.mark.parametrize("is_declared", [True, False], ids=["with-lines", "without"])
def test_ten_times_the_variables_take_ten_times_the_steps(*, is_one_name: bool, is_declared: bool) -> None:
    few, many = (lines_run(count, is_one_name=is_one_name, is_declared=is_declared) for count in (200, 2000))
    assert many < 12 * few


def test_ten_times_the_guards_take_ten_times_the_steps() -> None:
    few, many = (lines_run(count, is_one_name=False, is_declared=True, is_guarded=True) for count in (200, 2000))
    assert many < 12 * few
