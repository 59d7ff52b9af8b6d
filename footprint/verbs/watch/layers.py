"""What memory consists of over time: what each owner holds, and what each process costs."""

from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest
from typing import Final, NamedTuple

from footprint.series.timeline import Timeline, WatchedProcess

_MOST_LAYERS: Final = 24
_MOST_MOMENTS: Final = 96


class WatchMoment(NamedTuple):
    """A moment of which the layers are known.

    Attributes:
        ms: The time.
        audit: Why a whole audit was made then: `start`, `peak`, `growth`, `end` or `signal`; null without one.
        cost_bytes: The cost of all processes at the last tick.
        layer_bytes: The bytes of each layer, in the order of their names.
        others_bytes: The bytes of all that have no layer.
    """

    ms: int
    audit: str | None
    cost_bytes: int
    layer_bytes: tuple[int, ...]
    others_bytes: int


class WatchLayers(NamedTuple):
    """What memory consists of over time; of a long watch, moments that are evenly spread, and those of audits.

    Attributes:
        names: Those that held most at some moment, the largest first.
        moments: The moments.
    """

    names: tuple[str, ...]
    moments: tuple[WatchMoment, ...]


def owner_layers(timeline: Timeline) -> WatchLayers | None:
    """Compute what each owner held; None where fewer than two moments are known."""
    times = sorted({ms for course in timeline.owners.values() for ms in course.times})
    return _layers(timeline, times, {owner: course.value_at for owner, course in timeline.owners.items()})


def process_layers(timeline: Timeline) -> WatchLayers | None:
    """Compute what each process cost; None where there are fewer than two processes, or moments."""
    every = [p for p in (*timeline.alive.values(), *timeline.ended.values()) if p.peak_cost_bytes]
    if len(every) < 2:
        return None
    costs: dict[str, Callable[[int], int]] = {}
    for p in every:
        name = f"{p.came.pid} {p.came.command}"
        # A PID can return.
        costs[f"{name} (from {p.came.ms:,} ms)" if name in costs else name] = _cost_at(p)
    return _layers(timeline, timeline.course.times, costs)


def _cost_at(process: WatchedProcess) -> Callable[[int], int]:
    return lambda ms: 0 if process.ended is not None and ms >= process.ended.ms else process.course.value_at(ms)


def _layers(
    timeline: Timeline, times: Iterable[int], value_at: Mapping[str, Callable[[int], int]]
) -> WatchLayers | None:
    audits = {entry.ms: entry.moment for entry in timeline.taken}
    spread = _spread(list(times), audits)
    if len(spread) < 2:
        return None
    values = {name: [value(ms) for ms in spread] for name, value in value_at.items()}
    names = nlargest(_MOST_LAYERS, values, key=lambda name: max(values[name]))
    others = [sum(column) for column in zip(*values.values(), strict=True)]
    moments = []
    for place, ms in enumerate(spread):
        layer_bytes = tuple([values[name][place] for name in names])
        cost_bytes = timeline.course.value_at(ms)
        moments.append(WatchMoment(ms, audits.get(ms), cost_bytes, layer_bytes, others[place] - sum(layer_bytes)))
    return WatchLayers(tuple(names), tuple(moments))


def _spread(times: list[int], audits: Mapping[int, str]) -> list[int]:
    """Choose moments that are evenly spread, the last one, and those of audits."""
    step = -(-len(times) // _MOST_MOMENTS) or 1
    return [ms for place, ms in enumerate(times) if not place % step or ms in audits or place == len(times) - 1]
