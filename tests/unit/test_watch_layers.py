"""What memory consists of over time: the layers of the chart of a watch."""

from footprint.model.over_time import ProcessCounters
from footprint.series.records import AuditKept, Began, Came, Ended, OwnersSeen, Record, Sampled
from footprint.series.timeline import Timeline
from footprint.verbs.watch.json import owner_layers, process_layers

MIB = 1 << 20
BEGAN = Began("server", 1_700_000_000, 1000, 0, {"kernel": "6.18", "machine": "x86_64"}, "0.1.0")


def timeline(*records: Record) -> Timeline:
    return Timeline.of([BEGAN, *records], "server.fps")


def tick(ms: int, **costs: int) -> Sampled:
    """Return a tick at which processes, by their numbers, have so many MiB."""
    sizes = {int(name[1:]): size * MIB for name, size in costs.items()}
    return Sampled(ms, {number: ProcessCounters(size, 0, 0, size, size, 1) for number, size in sizes.items()}, 0)


def test_a_layer_has_what_its_owner_held_at_each_look_and_nothing_before_it_was_there() -> None:
    result = owner_layers(
        timeline(
            Came(0, 1, 71, 1, "server"),
            tick(0, p1=5),
            OwnersSeen(10, {"[heap]": 3 * MIB}),
            AuditKept(10, "start", 3 * MIB, ""),
            tick(1000, p1=9),
            OwnersSeen(1010, {"[heap]": 3 * MIB, "/lib/a.so": 4 * MIB}),
        )
    )
    assert result is not None
    assert result.names == ("/lib/a.so", "[heap]")
    assert [moment[:4] for moment in result.moments] == [
        (10, "start", 5 * MIB, (0, 3 * MIB)),
        (1010, None, 9 * MIB, (4 * MIB, 3 * MIB)),
    ]


def test_a_process_costs_nothing_before_it_came_and_after_it_has_ended() -> None:
    result = process_layers(
        timeline(
            Came(0, 1, 71, 1, "server"),
            tick(0, p1=2),
            Came(500, 2, 72, 71, "worker"),
            tick(1000, p2=8),
            Ended(1500, 2, 8 * MIB, "taskstats", 0),
            tick(2000, p1=3),
        )
    )
    assert result is not None
    assert result.names == ("72 worker", "71 server")
    assert [moment.layer_bytes for moment in result.moments] == [(0, 2 * MIB), (8 * MIB, 2 * MIB), (0, 3 * MIB)]
    assert [moment.cost_bytes for moment in result.moments] == [2 * MIB, 10 * MIB, 3 * MIB]


def test_two_processes_with_one_pid_are_two_layers() -> None:
    records: list[Record] = [Came(0, 1, 71, 1, "server"), tick(0, p1=2), Ended(1000, 1, None, "status", 0)]
    found = process_layers(timeline(*records, Came(2000, 2, 71, 1, "server"), tick(2000, p2=1)))
    assert found is not None
    # `Timeline` has those that are alive first.
    assert found.names == ("71 server (from 0 ms)", "71 server")


def test_what_has_no_layer_of_its_own_is_with_the_others() -> None:
    came = [Came(0, number, 70 + number, 1, "worker") for number in range(1, 31)]
    costs = {f"p{number}": number for number in range(1, 31)}
    found = process_layers(timeline(*came, tick(0, **costs), tick(1000, **costs)))
    assert found is not None
    assert len(found.names) == 24
    assert [moment.others_bytes for moment in found.moments] == [sum(range(1, 7)) * MIB] * 2


def test_one_process_has_no_layers_and_one_look_compares_nothing() -> None:
    found = timeline(Came(0, 1, 71, 1, "server"), tick(0, p1=2), tick(1000, p1=3), OwnersSeen(1000, {"[heap]": 1}))
    assert (owner_layers(found), process_layers(found)) == (None, None)


def test_a_long_watch_has_some_hundred_moments_and_those_of_audits() -> None:
    looks = [OwnersSeen(ms, {"[heap]": ms}) for ms in range(0, 500_000, 1000)]
    result = owner_layers(
        timeline(Came(0, 1, 71, 1, "server"), *looks, AuditKept(101_000, "peak", 0, ""), OwnersSeen(500_000, {}))
    )
    assert result is not None
    assert [moment.ms for moment in result.moments if moment.audit] == [101_000]
    assert result.moments[-1].ms == 500_000
    assert len(result.moments) < 100
