"""Answers as stacks with amounts, in the three formats that viewers of profiles read."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final
from unittest import mock

import pytest
from jsonschema import Draft202012Validator

import footprint
from footprint.attribution.heap_usage import HeapUsage, heap_usage, name_frames
from footprint.errors import UsageError
from footprint.formats import stacks as module
from footprint.formats.document import About
from footprint.formats.stacks import (
    Measure,
    StackFrame,
    Stacks,
    StackSample,
    folded,
    heap_stacks,
    ledger_stacks,
    pprof,
    speedscope,
    symbol_stacks,
)
from footprint.heap.allocators import Allocators
from footprint.heap.formats import read_profile
from footprint.text.escape import printable
from tests.formatschemas import SPEEDSCOPE_SCHEMA
from tests.hostile import HOSTILE
from tests.massifwriter import ROOT, Line, Moment, massif

ABOUT: Final = About("audit server", "1.2.3")
SLEEP: Final = "tests/corpus/smaps-sleep.txt"
HEAP: Final = "sample_binaries/heap_by_function"

SMALL: Final = Stacks(
    (Measure("live", "bytes"), Measure("live_blocks", "count")),
    (
        StackFrame("main", "main", "/bin/a", "a.c", 7, 0x1000),
        StackFrame("std::f()", "_ZSt1fv", "/lib/b.so"),
        StackFrame("[no symbol]"),
    ),
    (StackSample((0, 1), (4096, 1)), StackSample((0, 1, 2), (8, 0)), StackSample((2,), (0, 3))),
)


def usage(*below: Line) -> HeapUsage:
    size_bytes = sum(one.size_bytes for one in below)
    profile = read_profile(massif([Moment(0, size_bytes, tree=Line(size_bytes, ROOT, below), is_peak=True)]), "a text")
    return heap_usage("a text", profile, 0, name_frames(profile, "a text", Allocators()))


def named(stacks: Stacks) -> list[tuple[str, tuple[int, ...]]]:
    return [(";".join(stacks.frames[place].name for place in one.frames), one.amounts) for one in stacks.samples]


# --- what the stacks are ----------------------------------------------------------------------------------------------


def test_a_ledger_is_owner_section_and_symbol_and_adds_up_to_its_totals() -> None:
    audit = footprint.audit("sample_binaries/condor_shadow/base")
    stacks = ledger_stacks(audit.ledger)
    assert stacks.measures == (Measure("private", "bytes"), Measure("mapped", "bytes"))
    private, mapped = map(sum, zip(*(sample.amounts for sample in stacks.samples), strict=True))
    assert private == audit.totals.per_process.bytes
    assert mapped == audit.totals.mapped.bytes
    names = [stack for stack, _ in named(stacks)]
    assert "sample_binaries/condor_shadow/base;.bss;answer.0" in names
    # What an owner in brackets is for is not told twice.
    assert "[stack]" in names


def test_a_ledger_of_virtual_sizes_has_only_these() -> None:
    audit = footprint.audit("tests/cases/condor_shadow/pmap-d.base.txt")
    stacks = ledger_stacks(audit.ledger)
    assert stacks.measures == (Measure("mapped", "bytes"),)
    assert sum(sample.amounts[0] for sample in stacks.samples) == audit.totals.mapped.bytes


def test_the_variables_of_a_file_add_up_to_its_sections() -> None:
    found = footprint.symbols("sample_binaries/condor_shadow/base").files
    stacks = symbol_stacks(found)
    sizes: Counter[str] = Counter()
    for stack, (size_bytes,) in named(stacks):
        sizes[stack.split(";")[1]] += size_bytes
    assert sizes == {section.section.name: section.size_bytes for section in found[0].sections if section.size_bytes}


def test_a_call_tree_has_the_outermost_function_first_and_adds_up_to_the_peak() -> None:
    found = footprint.heap_profile(f"{HEAP}/massif.out", binaries=[f"{HEAP}/heap"]).files[0]
    # By hand in the README of the sample.
    assert sorted(named(heap_stacks(found))) == [
        ("main;load_parameters", (800,)),
        ("main;load_parameters;filled", (99_200,)),
        ("main;parse_file;filled", (30_000,)),
        ("main;table_new;xmalloc", (50_000,)),
    ]


def test_blocks_are_told_where_the_profile_counts_them() -> None:
    stacks = heap_stacks(footprint.heap_profile(f"{HEAP}/dhat.json").files[0])
    sums = [sum(amounts) for amounts in zip(*(sample.amounts for sample in stacks.samples), strict=True)]
    assert list(zip(stacks.measures, sums, strict=True)) == [
        (Measure("live", "bytes"), 180_000),
        (Measure("live_blocks", "count"), 103),
        (Measure("allocated", "bytes"), 180_000),
        (Measure("allocated_blocks", "count"), 103),
        (Measure("read", "bytes"), 11),
        (Measure("written", "bytes"), 130_001),
    ]


def test_of_a_stack_that_is_too_deep_the_inner_frames_are_kept() -> None:
    line = Line(8, "0x1: outermost (in /a.so)")
    for number in range(20):
        line = Line(8, f"0x{number + 2:X}: f{number} (in /a.so)", (line,))
    with mock.patch.object(module, "_DEEPEST", 3):
        ((stack, amounts),) = named(heap_stacks(usage(line)))
    assert (stack, amounts) == ("[more callers];f17;f18;f19", (8,))


def test_of_a_profile_of_very_many_deep_stacks_the_later_ones_are_cut_shorter() -> None:
    line = Line(1, "0x1: f (in /a.so)")
    for number in range(40):
        line = Line(number + 2, f"0x{number + 2:X}: f (in /a.so)", (line,))
    with mock.patch.object(module, "_MOST_FRAMES", 100):
        stacks = heap_stacks(usage(line))
    assert sum(sample.amounts[0] for sample in stacks.samples) == 41
    assert sum(len(sample.frames) for sample in stacks.samples) < 41 * 18


def test_a_profile_without_a_call_tree_is_refused() -> None:
    profile = read_profile(massif([Moment(0, 8)]), "a text")
    with pytest.raises(UsageError, match="a text has no call tree at that moment: choose another with --at"):
        heap_stacks(heap_usage("a text", profile, 0, name_frames(profile, "a text", Allocators())))


# --- folded -----------------------------------------------------------------------------------------------------------


def test_folded_stacks_are_lines_with_the_first_measure() -> None:
    assert folded(SMALL, ABOUT) == "main;std::f() 4096\nmain;std::f();[no symbol] 8\n"


def test_stacks_of_equal_names_are_one_line() -> None:
    frames = (StackFrame("a;b", object="/1"), StackFrame("a;b", object="/2"))
    found = Stacks((Measure("live", "bytes"),), frames, (StackSample((0,), (1,)), StackSample((1,), (2,))))
    assert folded(found, ABOUT) == "a:b 3\n"


# --- speedscope -------------------------------------------------------------------------------------------------------


def speedscope_of(stacks: Stacks) -> dict[str, Any]:
    text = speedscope(stacks, ABOUT)
    assert text.isascii()
    result: dict[str, Any] = json.loads(text)
    Draft202012Validator(SPEEDSCOPE_SCHEMA).validate(result)
    for profile in result["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"]
        assert all(place < len(result["shared"]["frames"]) for stack in profile["samples"] for place in stack)
    return result


def test_a_speedscope_file_has_one_profile_for_each_measure() -> None:
    result = speedscope_of(SMALL)
    assert result["shared"]["frames"] == [
        {"name": "main", "file": "a.c", "line": 7},
        {"name": "std::f()", "file": "/lib/b.so"},
        {"name": "[no symbol]"},
    ]
    first, second = result["profiles"]
    assert (first["name"], first["unit"], first["samples"]) == ("live: audit server", "bytes", [[0, 1], [0, 1, 2]])
    assert (second["unit"], second["samples"], second["weights"]) == ("none", [[0, 1], [2]], [1, 3])


# --- pprof ------------------------------------------------------------------------------------------------------------

Fields = dict[int, list[int | bytes]]


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> Fields:
    """Decode one message: its fields by number, those of variable length as bytes."""
    result: Fields = {}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
            result.setdefault(key >> 3, []).append(value)
        else:
            assert key & 7 == 2
            length, at = varint(data, at)
            assert at + length <= len(data)
            result.setdefault(key >> 3, []).append(data[at : at + length])
            at += length
    return result


def numbers(packed: int | bytes) -> Iterator[int]:
    assert isinstance(packed, bytes)
    at = 0
    while at < len(packed):
        value, at = varint(packed, at)
        yield value


class Decoded:
    """A profile of pprof, with the names of its proto: profile.proto of google/pprof."""

    def __init__(self, data: bytes) -> None:
        top = fields(gzip.decompress(data))
        self.strings = [one.decode() for one in top[6] if isinstance(one, bytes)]
        self.types = [(self.text(message, 1), self.text(message, 2)) for message in self.messages(top, 1)]
        self.default = self.strings[int(top[14][0])]
        self.comments = [self.strings[int(one)] for one in top[13]]
        self.mappings = {int(message[1][0]): self.text(message, 5) for message in self.messages(top, 3)}
        self.functions = {
            int(one[1][0]): (self.text(one, 2), self.text(one, 3), self.text(one, 4)) for one in self.messages(top, 5)
        }
        self.locations: dict[int, tuple[str, str, str, str, int, int]] = {}
        for message in self.messages(top, 4):
            (line,) = self.messages(message, 4)
            mapping = self.mappings.get(int(message.get(2, [0])[0]), "")
            addr, number = int(message.get(3, [0])[0]), int(line.get(2, [0])[0])
            self.locations[int(message[1][0])] = (*self.functions[int(line[1][0])], mapping, addr, number)
        # Innermost first.
        self.samples = [
            ([self.locations[place] for place in numbers(message[1][0])], list(numbers(message[2][0])))
            for message in self.messages(top, 2)
        ]

    @staticmethod
    def messages(result: Fields, number: int) -> list[Fields]:
        return [fields(one) for one in result.get(number, []) if isinstance(one, bytes)]

    def text(self, result: Fields, number: int) -> str:
        return self.strings[int(result.get(number, [0])[0])]


def test_a_profile_of_pprof_has_its_main_measure_last_and_as_default() -> None:
    result = Decoded(pprof(SMALL, ABOUT))
    assert result.strings[0] == ""
    assert result.types == [("live_blocks", "count"), ("live", "bytes")]
    assert result.default == "live"
    assert result.comments == ["footprint 1.2.3: audit server"]
    main = ("main", "main", "a.c", "/bin/a", 0x1000, 7)
    f = ("std::f()", "_ZSt1fv", "", "/lib/b.so", 0, 0)
    unknown = ("[no symbol]", "[no symbol]", "", "", 0, 0)
    assert result.samples == [([f, main], [1, 4096]), ([unknown, f, main], [0, 8]), ([unknown], [3, 0])]


def test_equal_answers_are_equal_files() -> None:
    assert pprof(SMALL, ABOUT) == pprof(SMALL, ABOUT)


def test_amounts_of_63_bits_are_kept() -> None:
    stacks = SMALL._replace(samples=(StackSample((0,), ((1 << 63) - 1, 300)),))
    assert Decoded(pprof(stacks, ABOUT)).samples[0][1] == [300, (1 << 63) - 1]


def test_a_ledger_and_a_heap_come_back_with_their_totals() -> None:
    audit = footprint.audit(SLEEP)
    found = Decoded(pprof(ledger_stacks(audit.ledger), ABOUT))
    # The `Anonymous:` of this text add up to 108 KiB.
    assert found.types[-1] == ("private", "bytes")
    assert sum(amounts[-1] for _, amounts in found.samples) == 108 * 1024
    heap = Decoded(pprof(heap_stacks(footprint.heap_profile(f"{HEAP}/dhat.json").files[0]), ABOUT))
    assert sum(amounts[-1] for _, amounts in heap.samples) == 180_000


# --- any name, in all three -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_any_name_is_one_frame(name: str) -> None:
    frames = (StackFrame(name, name, name, name, 1), StackFrame("inner"))
    stacks = Stacks((Measure("live", "bytes"),), frames, (StackSample((0, 1), (12,)),))
    (line,) = folded(stacks, ABOUT).splitlines()
    match = re.fullmatch(r"([^;]+);inner 12", line)
    assert match is not None
    assert line.isprintable()
    assert not line.startswith(("#", "::"))
    frame = speedscope_of(stacks)["shared"]["frames"][0]
    assert frame["name"] == printable(name)
    decoded = Decoded(pprof(stacks, About(name, "1")))
    ((stack, _),) = decoded.samples
    assert stack[1][:4] == (printable(name),) * 4
    assert all(text.isprintable() for text in decoded.strings)
