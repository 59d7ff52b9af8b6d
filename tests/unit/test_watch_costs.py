"""The cost at a tick: prices of kernel objects and open files, and owners that add up to the whole."""

from collections.abc import Mapping, Sequence

import pytest

from footprint.attribution.kernel import BUILT_IN
from footprint.model.over_time import ProcessCounters
from footprint.process.descriptions import OpenFile, OpenFileKind
from footprint.process.status import KernelHoldings
from footprint.series.growth import GrowthKind, GrowthTrend, Slope
from footprint.series.records import Began, Came, Closed, OwnersSeen, Sampled
from footprint.series.timeline import Timeline
from footprint.verbs.watch import tick_costs
from footprint.verbs.watch.tick_costs import KernelPrices, TickCosts, kernel_prices
from tests.groupmembers import heap, member

KIB = 1024
MIB = 1 << 20
# Round prices, so that each figure below can be seen.
PRICES = BUILT_IN._replace(
    process_bytes=10_000,
    thread_bytes=6_000,
    mapping_bytes=200,
    written_bytes=0,
    file_bytes=0,
    open_file_bytes={OpenFileKind.EVENT: 400},
)


def counters(threads: int = 1, mappings: int = 0, descriptors: int = 3) -> ProcessCounters:
    return ProcessCounters(0, 0, 0, 0, 0, threads, mapping_count=mappings, descriptor_count=descriptors)


class Machine:
    """The open files of one process, and how often they are read."""

    def __init__(self) -> None:
        self.files: Sequence[OpenFile] = ()
        self.read_count = 0

    def read(self, pids: Sequence[int]) -> Mapping[int, Sequence[OpenFile]]:
        self.read_count += 1
        return dict.fromkeys(pids, self.files)


def test_between_two_readings_threads_and_mappings_have_their_usual_price() -> None:
    costs = TickCosts(PRICES, Machine().read)
    costs.learn({1: KernelPrices(20_000, 0, 0, thread_count=1, mapping_count=50)}, [], {})
    (priced,) = costs.priced({1: counters(threads=3, mappings=54)}, 0).values()
    assert priced.object_bytes == 20_000 + 2 * 6_000 + 4 * 200


def test_the_timers_of_a_process_are_part_of_its_price_at_each_tick() -> None:
    snapshot, _ = member(1, heap(64))
    with_timers = snapshot._replace(kernel_holdings=KernelHoldings(timer_count=2_000))
    prices = [kernel_prices(process, (), BUILT_IN) for process in (with_timers, snapshot)]
    many, none = [price.object_bytes for price in prices if price is not None]
    assert many - none == 2_000 * (384 + 8)


def test_a_process_that_no_reading_has_seen_has_usual_prices_and_nothing_open_of_its_own() -> None:
    costs = TickCosts(PRICES, Machine().read)
    (priced,) = costs.priced({1: counters(threads=2, mappings=10, descriptors=40)}, 0).values()
    assert (priced.object_bytes, priced.descriptor_bytes) == (10_000 + 2 * 6_000 + 10 * 200, 0)


def test_where_the_number_of_descriptors_changes_the_open_files_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    costs = TickCosts(PRICES, machine.read)
    now = 0.0

    def thread_time() -> float:
        nonlocal now
        now += 0.01  # one reading takes 10 ms: 0.2 % of 5 s
        return now

    monkeypatch.setattr("time.thread_time", thread_time)
    event = OpenFile(3, OpenFileKind.EVENT, 0, 1)

    def at(seconds: float, count: int) -> int:
        machine.files = [event] * count
        (priced,) = costs.priced({1: counters(descriptors=3 + count)}, seconds).values()
        return priced.descriptor_bytes

    assert at(0, 1) == 400
    assert at(1, 3) == 3 * 400  # as many more of the same price
    assert machine.read_count == 1
    assert at(6, 3) == 3 * 400
    assert machine.read_count == 2


def test_what_open_files_hold_is_read_again_where_their_number_stays() -> None:
    machine = Machine()
    costs = TickCosts(PRICES, machine.read)
    machine.files = [OpenFile(3, OpenFileKind.EVENT, 0, 1)]
    costs.priced({1: counters()}, 0)
    machine.files = [OpenFile(3, OpenFileKind.EVENT, 0, 1, content_bytes=MIB)]
    (priced,) = costs.priced({1: counters()}, 1000).values()
    assert priced.descriptor_bytes == MIB + 400


def test_processes_of_one_address_space_pay_for_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []

    def order(pid: int, other: int) -> int:
        compared.append((pid, other))
        return 0 if pid == 2 else 1

    monkeypatch.setattr(tick_costs, "address_space_order", order)
    costs = TickCosts(PRICES, Machine().read)
    space = counters(mappings=10)._replace(private_bytes=8 * MIB, page_table_bytes=8 * KIB)
    # The second one is a child of vfork, the third one was forked; the fourth has other page tables.
    first = {1: space, 2: space, 3: space, 4: space._replace(page_table_bytes=4 * KIB)}
    result = costs.priced(first, 0)
    assert {pid: one.private_bytes for pid, one in result.items()} == {1: 8 * MIB, 2: 0, 3: 8 * MIB, 4: 8 * MIB}
    assert result[2].object_bytes == 10_000 + 6_000
    assert compared == [(2, 1), (3, 1)]
    # It executes a program: then it has its own.
    costs.drop(2)
    result = costs.priced({1: space, 2: space._replace(page_table_bytes=12 * KIB)}, 1)
    assert result[2].private_bytes == 8 * MIB


# --- owners -----------------------------------------------------------------------------------------------------------

BEGAN = Began("server", 0, 1000, 16 * KIB, {"kernel": "6.18", "machine": "x86_64"}, "0.1.0")


def timeline(cost_at: Mapping[int, int], owners_at: Mapping[int, Mapping[str, int]]) -> Timeline:
    result = Timeline(BEGAN)
    result.add(Came(0, 1, 4711, 1, "server"))
    for second, size_bytes in cost_at.items():
        result.add(Sampled(1000 * second, {1: ProcessCounters(size_bytes, 0, 0, size_bytes, size_bytes, 0)}, 0))
        if second in owners_at:
            result.add(OwnersSeen(1000 * second, owners_at[second]))
    result.add(Closed(1000 * max(cost_at), 0, 0, "named"))
    return result


def rates(result: Timeline) -> dict[str, tuple[GrowthKind, int]]:
    return {
        one.owner: (one.growth.kind, 0 if one.growth.slope is None else round(one.growth.slope.per_second))
        for one in result.owner_growth()
    }


def test_the_rates_of_owners_add_up_to_the_trend_also_where_audits_are_few() -> None:
    # 100 KiB a second in all; three audits saw it a little uneven.
    grown = {second: MIB + 100 * KIB * second for second in range(60)}
    audits = {
        0: {"[heap]": MIB, "[kernel]": 0},
        20: {"[heap]": MIB + 1510 * KIB, "[kernel]": 500 * KIB},
        59: {"[heap]": MIB + 4400 * KIB, "[kernel]": 1480 * KIB},
    }
    found = rates(timeline(grown, audits))
    assert sum(rate for _, rate in found.values()) == pytest.approx(100 * KIB, rel=1e-4)
    assert found["[heap]"][1] == pytest.approx(75 * KIB, rel=0.01)
    assert found["[kernel]"][1] == pytest.approx(25 * KIB, rel=0.01)
    assert {kind for kind, _ in found.values()} == {GrowthKind.GROWS}


def test_what_shrinks_while_the_whole_grows_is_taken_off() -> None:
    grown = {second: 10 * MIB + 100 * KIB * second for second in range(60)}
    audits = {
        second: {"[heap]": 4 * MIB + 150 * KIB * second, "[anonymous]": 6 * MIB - 50 * KIB * second}
        for second in range(0, 60, 10)
    }
    found = rates(timeline(grown, audits))
    assert found["[heap]"] == (GrowthKind.GROWS, 150 * KIB)
    assert found["[anonymous]"] == (GrowthKind.SHRINKS, -50 * KIB)


def test_growth_that_the_audits_have_not_seen_has_a_row_of_its_own() -> None:
    grown = {second: 10 * MIB + 100 * KIB * second for second in range(60)}
    audits = {second: {"[heap]": 4 * MIB + 10 * KIB * second} for second in range(0, 60, 10)}
    found = rates(timeline(grown, audits))
    assert found["[heap]"] == (GrowthKind.GROWS, 10 * KIB)
    assert found["[between the audits]"] == (GrowthKind.GROWS, 90 * KIB)


@pytest.mark.parametrize(("warm_up", "kind"), [(20, GrowthKind.WARMED_UP), (8, GrowthKind.STEADY)])
def test_no_owner_grows_while_the_whole_does_not(warm_up: int, kind: GrowthKind) -> None:
    # All audits but the last one are of the warm-up, as where audits have used up their time.
    warm = {second: MIB * min(second, warm_up) for second in range(60)}
    audits = {second: {"[heap]": warm[second]} for second in (1, 2, 3, 4, 5, 6, 7, 8, 59)}
    found = timeline(warm, audits)
    assert found.growth().kind is kind
    assert rates(found) == {"[heap]": (kind, 0)}


def test_of_a_whole_that_was_watched_too_short_no_owner_has_a_trend() -> None:
    found = timeline({0: MIB, 1: 2 * MIB}, {0: {"[heap]": MIB}, 1: {"[heap]": 2 * MIB}})
    assert found.growth() == GrowthTrend(GrowthKind.UNKNOWN, None, 0.0)
    assert rates(found) == {"[heap]": (GrowthKind.UNKNOWN, 0)}


def test_a_slope_is_scaled_with_its_interval() -> None:
    assert Slope(2.0, 1.0, 4.0).scaled(1.5) == Slope(3.0, 1.5, 6.0)
