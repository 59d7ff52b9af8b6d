"""Memory that nothing reads or nothing writes: what DHAT counts of it, and what is none."""

from typing import Any

import pytest

from footprint.findings.heap_rules.heap_at_start import heap_at_start
from footprint.findings.heap_rules.heap_unused import heap_unused
from footprint.findings.registry import HeapFacts
from tests.heapjoins import PROGRAM, dhat, moment, profiled

SMALL_BLOCKS = {"tb": 50_000, "tbk": 500}


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ({**SMALL_BLOCKS, "rb": 0, "wb": 0}, ("untouched", "medium", 50_000)),
        ({**SMALL_BLOCKS, "rb": 0, "wb": 1}, ("unread", "medium", 50_000)),
        ({**SMALL_BLOCKS, "rb": 1, "wb": 0}, ("unwritten", "medium", 50_000)),
        # Pages that nothing touches are not in memory.
        ({"tb": 50_000, "rb": 0, "wb": 0}, ("untouched", "low", 0)),
        ({"tb": 50_000, "rb": 9, "wb": 0}, ("unwritten", "low", 0)),
        ({"tb": 50_000, "rb": 0, "wb": 50_000}, ("unread", "medium", 50_000)),
        # What counts is what is there at the peak.
        ({**SMALL_BLOCKS, "tb": 90_000, "gb": 20_000, "gbk": 200, "rb": 0}, ("untouched", "medium", 20_000)),
    ],
)
def test_memory_that_nothing_reads_or_writes_is_found(point: dict[str, Any], expected: tuple[str, str, int]) -> None:
    (found,) = heap_unused(HeapFacts(dhat(point)))
    assert (found.kind, found.confidence.value, found.saving_bytes) == expected


@pytest.mark.parametrize(
    "point",
    [
        {**SMALL_BLOCKS, "rb": 1, "wb": 1},
        {"tb": 16_383, "rb": 0, "wb": 0},
        {**SMALL_BLOCKS, "gb": 0, "gbk": 0, "rb": 0, "wb": 0},
    ],
    ids=["used", "small", "not there at the peak"],
)
def test_other_memory_is_not(point: dict[str, Any]) -> None:
    assert heap_unused(HeapFacts(dhat(point))) == ()


def test_the_finding_says_what_was_counted_and_where_the_memory_is_asked_for() -> None:
    (result,) = heap_unused(HeapFacts(dhat({**SMALL_BLOCKS, "rb": 0, "wb": 60_000})))
    assert result.message == (
        "f1 of program asks for 50,000 bytes in 500 blocks at the peak, and nothing reads what is written there"
    )
    assert result.reasons == (
        "DHAT counts 60,000 bytes written and 0 read in the profiled run; another run may use them",
    )
    assert (result.subject, result.object_path, result.location) == (f"{PROGRAM} f1", PROGRAM, None)


def test_what_is_not_there_at_the_peak_is_no_part_of_what_was_counted() -> None:
    before = {"tb": 9, "gb": 0, "gbk": 0, "eb": 0, "ebk": 0, "rb": 0, "wb": 9, "fs": [1, 2]}
    (result,) = heap_unused(HeapFacts(dhat({**SMALL_BLOCKS, "rb": 0, "wb": 60_000}, before)))
    assert result.reasons[0].startswith("DHAT counts 60,000 bytes written and 0 read")


def test_no_more_is_saved_than_a_process_holds() -> None:
    usage = dhat({**SMALL_BLOCKS, "rb": 0, "wb": 9})
    (found,) = heap_unused(HeapFacts(usage, {(PROGRAM, "f1"): 20_480}))
    assert (found.saving_bytes, found.reasons[-1]) == (20_480, "of it the process surely holds 20 KiB")


def test_a_table_that_nothing_reads_is_not_called_constant() -> None:
    unread = {"tb": 50_000, "tl": 990 * 10**6, "wb": 50_000, "rb": 0}
    assert heap_at_start(HeapFacts(dhat(unread))) == ()
    assert [one.kind for one in heap_unused(HeapFacts(dhat(unread)))] == ["unread"]


def test_a_profile_that_does_not_count_reads_finds_nothing() -> None:
    assert heap_unused(HeapFacts(profiled(moment((PROGRAM, "load", 50_000), is_peak=True)))) == ()
