"""Memory over time as a trace that Perfetto shows (https://ui.perfetto.dev).

Source: the Trace Event Format of Chromium: counters (`C`), spans (`X`), instants (`i`) and names (`M`); times are
microseconds.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from footprint.formats.document import About
from footprint.text.escape import printable


class TraceCounter(NamedTuple):
    """A value over time.

    Attributes:
        name: Its name.
        points: Milliseconds, and the bytes from then on.
    """

    name: str
    points: Sequence[tuple[int, int]]


class TraceInstant(NamedTuple):
    """Something that happened at one moment."""

    ms: int
    name: str


class TraceProcess(NamedTuple):
    """A process with its counters; what is about all processes is one, too.

    Attributes:
        name: What to show for it.
        from_ms: When it came.
        until_ms: When it ended.
        counters: Its values.
        facts: What else is known of it.
    """

    name: str
    from_ms: int
    until_ms: int
    counters: Sequence[TraceCounter]
    facts: dict[str, str | int]


class Trace(NamedTuple):
    """A trace.

    Attributes:
        whole: What is about all processes.
        processes: The processes.
        instants: What happened.
    """

    whole: TraceProcess
    processes: Sequence[TraceProcess]
    instants: Sequence[TraceInstant]


def perfetto(trace: Trace, about: About) -> str:
    """Format the events, one a line."""
    events = [*_of_process(0, trace.whole), *map(_instant, trace.instants)]
    for number, process in enumerate(trace.processes, 1):
        events += _of_process(number, process)
    lines = ",\n".join(map(json.dumps, events))
    # Events are in microseconds; this is how the viewer shows them.
    other = {"version": f"footprint {about.version}", "asked": printable(about.name)}
    return f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(other)}, "traceEvents": [\n{lines}\n]}}\n'


def _of_process(number: int, process: TraceProcess) -> Iterator[dict[str, Any]]:
    place = {"pid": number, "tid": number}
    name = printable(process.name)
    yield {"ph": "M", "name": "process_name", **place, "args": {"name": name}}
    facts = {key: printable(value) if isinstance(value, str) else value for key, value in process.facts.items()}
    duration = max(1, 1000 * (process.until_ms - process.from_ms))
    yield {"ph": "X", "name": name, **place, "ts": 1000 * process.from_ms, "dur": duration, "args": facts}
    for counter in process.counters:
        shown = printable(counter.name)
        for ms, value in counter.points:
            yield {"ph": "C", "name": shown, **place, "ts": 1000 * ms, "args": {"bytes": value}}


def _instant(instant: TraceInstant) -> dict[str, Any]:
    return {"ph": "i", "s": "g", "name": printable(instant.name), "pid": 0, "tid": 0, "ts": 1000 * instant.ms}
