"""What a watch cannot tell: how sure its peak is, and what makes a gate fail."""

import json

import pytest

from footprint.errors import Note, UsageError
from footprint.model.over_time import ProcessCounters, WatchGapKind, parse_accepted
from footprint.series.moments import WatchedPeak, gaps_of, peak_of
from footprint.series.records import Began, Came, Closed, Ended, GroupPeak, NoteRecord, Record, Sampled, record_of
from footprint.series.timeline import Timeline
from footprint.verbs.watch.result import result_of

MIB = 1 << 20
BEGAN = Began("server", 0, 1000, 0, {"kernel": "6.18", "machine": "x86_64"}, "0.1.0")


def counters(private_mib: float, resident_mib: float, peak_mib: float, file_mib: float = 0) -> ProcessCounters:
    sizes = [round(size * MIB) for size in (private_mib, resident_mib, peak_mib, file_mib)]
    return ProcessCounters(sizes[0], 0, 0, sizes[1], sizes[2], 0, file_bytes=sizes[3])


def timeline(*records: Record, how: str = "named", is_closed: bool = True) -> Timeline:
    closed = [Closed(9000, 0, 0, how)] if is_closed else []
    return Timeline.of([BEGAN, *records, *closed], "server.fps")


SERVER = Came(0, 1, 4711, 1, "server", is_older=True)


def test_the_peak_of_a_single_process_that_the_ticks_have_seen_is_no_lower_bound() -> None:
    found = timeline(
        SERVER, Sampled(0, {1: counters(10, 15, 15, 5)}, 0), Sampled(1000, {1: counters(12, 17, 17, 5)}, 0)
    )
    assert peak_of(found) == WatchedPeak(12 * MIB, "ticks", is_lower_bound=False)


def test_a_process_that_held_more_between_two_ticks_has_its_own_peak_without_files() -> None:
    found = timeline(
        SERVER, Sampled(0, {1: counters(10, 15, 15, 5)}, 0), Sampled(1000, {1: counters(10, 15, 95, 5)}, 0)
    )
    assert peak_of(found) == WatchedPeak(90 * MIB, "VmHWM of pid 4711", is_lower_bound=True)


def test_a_peak_before_the_watch_is_none_of_it_but_hides_what_came_later() -> None:
    found = timeline(
        SERVER, Sampled(0, {1: counters(10, 15, 95, 5)}, 0), Sampled(1000, {1: counters(10, 15, 95, 5)}, 0)
    )
    assert peak_of(found) == WatchedPeak(10 * MIB, "ticks", is_lower_bound=True)


@pytest.mark.parametrize("source", ["exit stop", "taskstats"])
def test_a_short_child_counts_with_what_it_held(source: str) -> None:
    result = timeline(
        SERVER,
        Sampled(0, {1: counters(4, 5, 5)}, 0),
        Came(500, 2, 4712, 4711, "child"),
        Ended(520, 2, round(101.4 * MIB), source, 0, file_bytes=round(1.4 * MIB)),
        Sampled(1000, {1: counters(4, 5, 5)}, 0),
        how="ptrace",
    )
    counter = "taskstats" if source == "taskstats" else "VmHWM"
    assert peak_of(result) == WatchedPeak(100 * MIB, f"{counter} of pid 4712", is_lower_bound=True)


def test_what_a_cgroup_has_counted_is_no_lower_bound() -> None:
    found = timeline(
        SERVER, Sampled(0, {1: counters(10, 15, 95)}, 0), GroupPeak(1000, 80 * MIB, "memory.peak"), how="events"
    )
    assert peak_of(found) == WatchedPeak(80 * MIB, "memory.peak", is_lower_bound=False)


def test_where_processes_are_only_looked_for_one_may_have_been_missed() -> None:
    found = timeline(SERVER, Sampled(0, {1: counters(10, 15, 15)}, 0), how="polling")
    assert peak_of(found).is_lower_bound


# --- what fails -------------------------------------------------------------------------------------------------------


def steady(*records: Record, seconds: int = 20, is_closed: bool = True) -> Timeline:
    ticks = [Sampled(1000 * second, {1: counters(10, 15, 15)}, 0) for second in range(seconds)]
    return timeline(SERVER, *ticks, *records, is_closed=is_closed)


def gap_names(result: Timeline) -> list[str]:
    return [gap.kind.value for gap in gaps_of(result, result.growth())]


def test_each_gap_has_the_name_by_which_it_is_accepted() -> None:
    assert gap_names(steady()) == []
    assert gap_names(steady(seconds=3)) == ["too-short"]
    assert gap_names(steady(NoteRecord(0, Note("audit-failed", "server", "permission denied")))) == ["no-audit"]
    assert gap_names(steady(NoteRecord(0, Note("events-lost", "server", "too many")))) == ["not-watched"]
    assert gap_names(steady(is_closed=False)) == ["lower-bound", "cut"]


def test_a_gate_on_growth_passes_only_what_was_told() -> None:
    assert result_of(steady(), None, 0.0).fails is None
    short = steady(seconds=3)
    assert result_of(short, None).fails is None
    assert result_of(short, None, 0.0).fails == (
        "it was watched too short to tell whether it grows (--accept too-short accepts that)"
    )
    assert result_of(short, None, 0.0, accepted={WatchGapKind.TOO_SHORT}).fails is None
    cut = steady(is_closed=False)
    assert "--accept cut" in str(result_of(cut, None, 0.0).fails)
    # How high the peak was says nothing about growth.
    assert result_of(cut, None, 0.0, accepted={WatchGapKind.CUT}).fails is None


def test_an_unknown_name_is_wrong_use() -> None:
    assert parse_accepted(["cut", "too-short"]) == {WatchGapKind.CUT, WatchGapKind.TOO_SHORT}
    with pytest.raises(UsageError, match=r"'short' is nothing that can be accepted: too-short, lower-bound"):
        parse_accepted(["short"])


def test_figures_of_an_earlier_footprint_have_what_is_neither_private_nor_shared_for_pages_of_files() -> None:
    line = {"ms": 9, "own_cpu_ms": 0, "figures": {"1": [12 * MIB, MIB, 2 * MIB, 20 * MIB, 20 * MIB, 1]}}
    sampled = record_of(json.dumps(line).encode(), "server.fps", "line 2")
    assert isinstance(sampled, Sampled)
    assert sampled.figures[1].file_bytes == 6 * MIB
    assert peak_of(timeline(SERVER, sampled)).source == "ticks"
