"""What profiles count over the whole run, by function; the figures are by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

import footprint
from footprint.attribution.heap_totals import FunctionTotals, counted_by, run_totals, sorted_totals
from footprint.attribution.heap_usage import HeapUsage
from footprint.heap.profile import Tally
from tests.heapjoins import PROGRAM, dhat, moment, profiled

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "heap"


def of(name: str) -> HeapUsage:
    return footprint.heap_profile(CORPUS / name).files[0]


def test_dhat_counts_allocations_lives_accesses_and_leaks() -> None:
    kept = {"tb": 300, "tbk": 3, "tl": 3_000, "rb": 5, "wb": 7, "eb": 100, "ebk": 1}
    freed = {"tb": 900, "tbk": 1, "tl": 50, "rb": 0, "wb": 900, "eb": 0, "ebk": 0}
    totals = run_totals(dhat(kept, freed))
    assert totals == (
        FunctionTotals(PROGRAM, "f2", 900, 1, None, 50, 0, 900, 0, 0),
        FunctionTotals(PROGRAM, "f1", 300, 3, None, 3_000, 5, 7, 100, 1),
    )
    assert [total.lifetime for total in totals] == [50, 1_000]
    assert counted_by(totals) == ["allocated", "blocks", "lifetime", "read", "written", "leaked"]
    for order, first in (("blocks", "f1"), ("lifetime", "f1"), ("written", "f2"), ("leaked", "f1")):
        assert sorted_totals(totals, order)[0].function == first


def test_blocks_that_were_freed_right_away_are_counted_where_the_profile_counts_them() -> None:
    usage = dhat({"tb": 300, "tbk": 3}, {"tb": 900, "tbk": 1})
    (allocated, *_) = usage.profile.tallies
    profile = replace(usage.profile, tallies=(allocated, Tally("temporary", allocated.tree)))
    totals = sorted_totals(run_totals(replace(usage, profile=profile)), "temporary")
    assert [(total.function, total.temporary_blocks) for total in totals] == [("f1", 3), ("f2", 1)]


def test_totals_add_up_to_the_tallies_of_the_profile() -> None:
    usage = of("dhat-3.19-heap.json")
    totals = run_totals(usage)
    sums = {tally.name: (tally.tree.total_bytes, tally.tree.total_blocks) for tally in usage.profile.tallies}
    assert sum(total.allocated_bytes or 0 for total in totals) == sums["allocated"][0]
    assert sum(total.allocated_blocks or 0 for total in totals) == sums["allocated"][1]
    assert sum(total.read_bytes or 0 for total in totals) == sums["read"][0]
    assert sum(total.leaked_bytes or 0 for total in totals) == usage.profile.snapshots[-1].live_bytes


def test_an_xtree_counts_what_was_allocated_and_what_is_left() -> None:
    totals = run_totals(of("massif-3.19-xtmemory-full.ms.gz"))
    assert sum(total.allocated_bytes or 0 for total in totals) == 2_315_468
    assert sum(total.leaked_bytes or 0 for total in totals) == 123_456
    assert counted_by(totals) == ["allocated", "blocks", "leaked"]


@pytest.mark.parametrize("name", ["heapprofile-gperftools2.10-heap.txt", "massif-3.19-default.out"])
def test_a_profile_that_is_written_at_any_time_knows_no_leaks(name: str) -> None:
    assert "leaked" not in counted_by(run_totals(of(name)))


def test_massif_counts_nothing_over_the_run() -> None:
    assert run_totals(profiled(moment((PROGRAM, "load", 50_000)))) == ()


def test_a_report_of_leaks_counts_what_leaked() -> None:
    totals = run_totals(of("leaksanitizer-gcc12-leaks.txt"))
    assert counted_by(totals) == ["leaked"]
    assert [total.leaked_bytes for total in totals] == sorted(
        [total.leaked_bytes or 0 for total in totals], reverse=True
    )
