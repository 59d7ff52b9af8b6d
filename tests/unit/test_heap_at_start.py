"""Tables that are filled at start and kept: what each kind of profile can say of them, and what is none."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.attribution.heap_usage import HeapUsage, heap_usage, name_frames
from footprint.findings.heap_rules.heap_at_start import heap_at_start
from footprint.findings.registry import HeapFacts
from footprint.heap.allocators import Allocators
from footprint.heap.formats import read_profile
from footprint.model.finding import Confidence, Finding
from tests.heapjoins import PROGRAM, dhat, moment, profiled
from tests.massifwriter import Moment

SAMPLE = Path(__file__).resolve().parents[2] / "sample_binaries" / "heap_by_function"
MILLION = 10**6


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str, int]]:
    return [(finding.kind, finding.confidence.value, finding.saving_bytes) for finding in findings]


# --- DHAT -------------------------------------------------------------------------------------------------------------


EARLY = 990 * MILLION  # the life of a block that was asked for after 1 % of the run


def test_a_table_that_was_written_once_and_kept_is_constant() -> None:
    (found,) = heap_at_start(HeapFacts(dhat({"tb": 50_000, "tl": EARLY, "wb": 50_000})))
    assert (found.rule, found.kind, found.saving_bytes) == ("heap-at-start", "filled-once", 50_000)
    assert found.confidence is Confidence.HIGH
    assert (found.subject, found.object_path) == (f"{PROGRAM} f1", PROGRAM)
    assert found.message == "f1 of program asks for 50,000 bytes in 1 block at the start, and keeps them"
    assert found.reasons == ("its blocks live from the start to the end", "50,000 bytes were written, once each")


def test_what_is_freed_at_the_very_end_was_kept() -> None:
    freed = {"tb": 50_000, "tl": EARLY, "wb": 50_000, "eb": 0, "ebk": 0}
    assert told(heap_at_start(HeapFacts(dhat(freed)))) == [("filled-once", "high", 50_000)]


@pytest.mark.parametrize(
    "point",
    [
        {"tb": 50_000, "tl": EARLY, "wb": 50_001},  # some of it is written again
        {"tb": 50_000, "tl": EARLY, "wb": 24_000},  # most of it is never touched, and costs nothing
        {"tb": 50_000, "tl": EARLY // 2, "wb": 50_000},  # asked for in the middle
        {"tb": 50_000, "tl": EARLY // 2, "wb": 50_000, "eb": 0, "ebk": 0},  # freed in the middle
        {"tb": 16_383, "tl": EARLY, "wb": 16_383},  # small
    ],
)
def test_what_is_no_constant_table(point: dict[str, Any]) -> None:
    assert heap_at_start(HeapFacts(dhat(point))) == ()


def test_what_is_asked_for_at_the_end_of_the_start_is_kept_from_the_start() -> None:
    # Of a run of 20 million instructions the first 10 million are all start.
    asked_for = {"tb": 50_000, "tl": 10 * MILLION, "wb": 50_000}
    assert told(heap_at_start(HeapFacts(dhat(asked_for, end=20 * MILLION)))) == [("filled-once", "high", 50_000)]
    assert heap_at_start(HeapFacts(dhat({**asked_for, "tl": 10 * MILLION - 1}, end=20 * MILLION))) == ()


def test_what_go_collects_is_no_constant_table() -> None:
    path = Path(__file__).resolve().parents[1] / "corpus" / "heap" / "pprof-go1.26-kept.pb.gz"
    profile = read_profile(path.read_bytes(), "a text")
    named = name_frames(profile, "a text", Allocators())
    # 73,728 bytes of one call are among it, which of malloc could be a table.
    assert heap_at_start(HeapFacts(heap_usage("a text", profile, 0, named))) == ()
    of_malloc = heap_usage("a text", replace(profile, heap_owner=None), 0, named)
    assert [one.saving_bytes for one in heap_at_start(HeapFacts(of_malloc)) if "inlined" in one.subject] == [73_728]


def test_many_blocks_of_one_size_from_one_call_may_hold_the_same() -> None:
    # They are written again, so that they are no table.
    (found,) = heap_at_start(HeapFacts(dhat({"tb": 64_000, "tbk": 1000, "tl": 1000 * EARLY, "wb": 10**6})))
    assert (found.kind, found.confidence, found.saving_bytes) == ("alike", Confidence.LOW, 0)
    assert found.message == "f1 of program keeps 1,000 blocks of 64 bytes, all asked for by one call"
    assert found.reasons == ("the profile does not say what they hold: 62.4 KiB if it is the same in all",)


def test_blocks_of_different_sizes_are_not_alike() -> None:
    assert heap_at_start(HeapFacts(dhat({"tb": 64_001, "tbk": 1000, "tl": 1000 * EARLY, "wb": 10**6}))) == ()


def test_no_more_is_saved_than_a_process_holds() -> None:
    usage = dhat({"tb": 50_000, "tl": EARLY, "wb": 50_000})
    (found,) = heap_at_start(HeapFacts(usage, {(PROGRAM, "f1"): 20_480}))
    assert found.saving_bytes == 20_480
    assert found.reasons[-1] == "of it the process surely holds 20 KiB"


# --- massif -----------------------------------------------------------------------------------------------------------


def massif(*sizes: int) -> HeapUsage:
    """Return a run of a billion instructions in which one function has so much at each of its snapshots."""
    step = 1000 * MILLION // len(sizes)
    moments = [moment((PROGRAM, "load", size), time=step * place + 1) for place, size in enumerate(sizes)]
    return profiled(*moments)


def test_what_is_there_from_the_first_tenth_on_and_stays_as_large_may_be_constant() -> None:
    (found,) = heap_at_start(HeapFacts(massif(*[50_000] * 10)))
    assert told((found,)) == [("kept", "medium", 50_000)]
    assert found.reasons == (
        "it is there from the first tenth of the run on, as large in 9 snapshots",
        "the profile does not say whether it is written later, or touched at all",
    )


@pytest.mark.parametrize(
    "sizes",
    [
        [20_000, 20_000, *[50_000] * 8],  # it grows after the start
        [50_000, 50_000, 50_000, 60_000, 50_000, 50_000],  # it shrinks
        [50_000, 50_000, 50_000, 50_000, 0],
        [0, 0, 0, 0, 50_000],
        [50_000],
    ],
)
def test_what_changes_after_the_start_is_none(sizes: list[int]) -> None:
    assert heap_at_start(HeapFacts(massif(*sizes))) == ()


def test_what_is_more_than_all_that_is_left_later_was_freed() -> None:
    # 50,000 bytes of 8 million instructions: the last tree is not the end, at which 4,000 are left.
    early = [moment((PROGRAM, "load", 50_000), time=time * MILLION) for time in (2, 3, 4)]
    assert told(heap_at_start(HeapFacts(profiled(*early, Moment(8 * MILLION, 50_000))))) == [("kept", "low", 50_000)]
    assert heap_at_start(HeapFacts(profiled(*early, Moment(8 * MILLION, 4_000)))) == ()


def test_what_is_freed_at_the_very_end_of_a_run_under_massif_was_kept() -> None:
    moments = [moment((PROGRAM, "load", 50_000), time=time * 100 * MILLION) for time in range(1, 10)]
    assert told(heap_at_start(HeapFacts(profiled(*moments, Moment(1000 * MILLION, 0))))) == [("kept", "medium", 50_000)]


def test_the_index_of_arenas_of_python_is_left_alone() -> None:
    moments = [
        moment((PROGRAM, "arena_map_mark_used", 393_216), time=time * 100 * MILLION + 1, is_peak=time == 9)
        for time in range(10)
    ]
    assert heap_at_start(HeapFacts(profiled(*moments))) == ()


def test_of_few_snapshots_little_is_known() -> None:
    assert told(heap_at_start(HeapFacts(massif(50_000, 50_000, 50_000)))) == [("kept", "low", 50_000)]


def test_a_profile_of_address_space_has_no_tables() -> None:
    pages = footprint.heap_profile(str(SAMPLE.parents[1] / "tests/corpus/heap/massif-3.19-pages-as-heap.out"))
    assert pages.findings == ()


# --- the sample -------------------------------------------------------------------------------------------------------


def test_the_parameters_of_the_sample_are_found() -> None:
    # Of the table of the library one byte is written; the file is freed.
    found = footprint.heap_profile(str(SAMPLE / "dhat.json"), binaries=[str(SAMPLE / "heap")]).findings
    assert told(found) == [("filled-once", "high", 100_000)]
    assert found[0].message.startswith("load_parameters of heap asks for 100,000 bytes in 101 blocks")


def test_heaptrack_does_not_tell_what_is_written() -> None:
    # libstdc++ keeps 72,704 bytes for exceptions, which it never touches.
    found = footprint.heap_profile(str(SAMPLE / "heaptrack.txt")).findings
    assert told(found) == [("kept", "low", 100_000), ("kept", "low", 50_000)]


# --- what comes late --------------------------------------------------------------------------------------------------


def test_what_comes_late_in_a_short_run_is_not_called_its_start() -> None:
    # 8 million instructions, and a table after 92 % of them.
    late = [
        moment((PROGRAM, "load", size), time=time)
        for size, time in ((1, 10**6), (50_000, 7_360_000), (50_000, 8 * 10**6))
    ]
    (found,) = heap_at_start(HeapFacts(profiled(*late)))
    assert found.message == "load of program asks for 50,000 bytes, and keeps them"
    assert found.reasons[0] == "it is first seen at 92% of the run, and so short a run is all start"
    early = [late[1]._replace(time=1000), *late[1:]]
    (found,) = heap_at_start(HeapFacts(profiled(*early)))
    assert found.message == "load of program asks for 50,000 bytes at the start, and keeps them"


def test_heaptrack_does_not_tell_when_a_table_was_asked_for() -> None:
    found = footprint.heap_profile(str(SAMPLE / "heaptrack.txt")).findings
    assert all("at the start" not in one.message for one in found)
    assert all(one.reasons[-1] == "the profile does not say when it was asked for" for one in found)
