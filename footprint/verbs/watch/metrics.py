"""The metrics of a watch: the figures of now, for a program that asks again and again.

What it asks keeps a series for each value of a label for months: no label has PIDs or arguments, and few values.
"""

import ipaddress
import re
import socket
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from footprint.errors import AccessError, UsageError, cause_of
from footprint.formats.document import About
from footprint.formats.metrics import MetricFamily, MetricSample, openmetrics, target_labels
from footprint.formats.perfetto import Trace, TraceCounter, TraceInstant, TraceProcess
from footprint.series.timeline import Course, Timeline, WatchedProcess
from footprint.text.escape import shortened
from footprint.verbs.watch.result import WatchResult

_MOST_VALUES: Final = 20
_MOST_NAME_CHARS: Final = 60
_PORT: Final = re.compile(r"[0-9]{1,5}")
_HOST: Final = re.compile(rb"^host:[ \t]*([^\r\n]*?)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_PATIENCE_SECONDS: Final = 5
_MOST_REQUEST_BYTES: Final = 8192
_MOST_CONNECTIONS: Final = 32
_MOST_AT_ONCE: Final = 64
_NOT_HERE: Final = b"not a name of this machine: name it in --listen, or use an address\n"
_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def watch_trace(result: WatchResult) -> Trace:
    """Return the cost of all processes and of each, the memory of each owner, the audits and the peak."""
    timeline = result.timeline
    owners = [_counter(f"owner {owner}", course) for owner, course in timeline.owners.items()]
    whole = TraceProcess(
        f"footprint watch: {timeline.began.target}", 0, timeline.ms, [_counter("cost", timeline.course), *owners], {}
    )
    instants = [TraceInstant(entry.ms, f"audit: {entry.moment}") for entry in timeline.taken]
    instants.append(TraceInstant(timeline.peak_ms, "peak"))
    every = sorted([*timeline.alive.values(), *timeline.ended.values()], key=lambda p: p.came.number)
    return Trace(whole, [_process(p, timeline.ms) for p in every], instants)


def _counter(name: str, course: Course) -> TraceCounter:
    return TraceCounter(name, [(round(1000 * at), round(value)) for at, value in course.points])


def _process(process: WatchedProcess, now_ms: int) -> TraceProcess:
    facts: dict[str, str | int] = {"pid": process.came.pid}
    if process.peak_resident_bytes is not None:
        facts["peak_resident_bytes"] = process.peak_resident_bytes
    if process.ended is not None and process.ended.exit_code is not None:
        facts["exit_code"] = process.ended.exit_code
    until_ms = now_ms if process.ended is None else process.ended.ms
    counters = [_counter("cost", process.course)] if process.course.values else []
    return TraceProcess(process.came.command, process.came.ms, until_ms, counters, facts)


def watch_metrics(result: WatchResult) -> list[MetricFamily]:
    """Return the figures of a watch, and its growth."""
    target = _target(result.timeline)
    growth = [({}, result.growth), *(({"owner": owner.owner}, owner.growth) for owner in result.owners[:_MOST_VALUES])]
    rates = [
        MetricSample({**target, **labels, "kind": trend.kind.value}, round(3600 * trend.slope.per_second))
        for labels, trend in growth
        if trend.slope is not None
    ]
    return [*timeline_metrics(result.timeline), MetricFamily("watch_growth_per_hour", "The growth in an hour.", rates)]


def timeline_metrics(timeline: Timeline) -> list[MetricFamily]:
    """Return the figures of the last tick: the cost of all processes, and of those that run the same program."""
    target = _target(timeline)
    programs: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for process in timeline.alive.values():
        name = _program(process.came.command)
        programs[name] += process.cost_bytes
        counts[name] += 1
    owners = {owner: course.values[-1] for owner, course in timeline.owners.items() if course.values}
    whole = (
        (
            "watch_cost",
            "What all processes cost: private memory, files in memory of their own, kernel memory.",
            timeline.sums.cost_bytes,
            "bytes",
        ),
        ("watch_peak", "The largest cost at a tick.", timeline.peak_bytes, "bytes"),
        ("watch_processes", "The number of processes now.", len(timeline.alive), ""),
        ("watch_processes_seen", "The number of processes in all.", timeline.process_count, ""),
        ("watch_own_cpu", "The processor time of the watch itself.", timeline.own_cpu_ms / 1000, "seconds"),
    )
    return [
        *(MetricFamily(name, text, [MetricSample(target, value)], unit) for name, text, value, unit in whole),
        MetricFamily("watch_program_cost", "What processes cost, by program.", _samples(programs, "program", target)),
        MetricFamily(
            "watch_program_processes", "The processes now, by program.", _samples(counts, "program", target), ""
        ),
        MetricFamily("watch_owner", "What each owner costs at the last audit.", _samples(owners, "owner", target)),
    ]


def _target(timeline: Timeline) -> dict[str, str]:
    target = timeline.began.target
    processes = (*timeline.alive.values(), *timeline.ended.values())
    program = next((_program(process.came.command) for process in processes if str(process.came.pid) == target), "")
    return {name: shortened(value, _MOST_NAME_CHARS) for name, value in target_labels(target, program).items()}


def _program(command: str) -> str:
    """Return the name of the program of a command line, without folders."""
    words = command.split()
    return shortened(words[0].rpartition("/")[2] or words[0], _MOST_NAME_CHARS) if words else ""


def _samples(sizes: Mapping[str, int], label: str, target: Mapping[str, str]) -> list[MetricSample]:
    """Return the largest ones, and the sum of the rest."""
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(size for _, size in ordered[_MOST_VALUES:])
    shown = [*ordered[:_MOST_VALUES], *([("[others]", rest)] if len(ordered) > _MOST_VALUES else [])]
    return [MetricSample({**target, label: name}, size) for name, size in shown]


class _Connection:
    """A connection: what it has sent so far, and what is still to be sent to it."""

    def __init__(self, peer: socket.socket, now_seconds: float) -> None:
        peer.settimeout(0)
        self.peer = peer
        self.end_seconds = now_seconds + _PATIENCE_SECONDS
        self.request = b""
        self.answer: memoryview | None = None

    def is_asking(self) -> bool:
        """Receive what is there; return whether a request is whole.

        Raises:
            OSError: If the connection broke.
        """
        if self.answer is not None:
            return False
        with suppress(BlockingIOError):
            piece = self.peer.recv(_MOST_REQUEST_BYTES)
            self.request += piece
            return not piece or b"\r\n\r\n" in self.request or len(self.request) >= _MOST_REQUEST_BYTES
        return False

    def is_done(self) -> bool:
        """Send what the kernel takes; return whether that was all.

        Raises:
            OSError: If the connection broke.
        """
        if self.answer is None:
            return False
        with suppress(BlockingIOError):
            self.answer = self.answer[self.peer.send(self.answer) :]
        return not self.answer


class Listener:
    """Listens at an address.

    Args:
        address: Such as `127.0.0.1:9123`.

    Raises:
        AccessError: If it is taken.
        UsageError: If it is no address.
    """

    def __init__(self, address: str) -> None:
        host, colon, port = address.rpartition(":")
        if not colon or not host or not _PORT.fullmatch(port) or int(port) > 65535:
            raise UsageError(f"{shortened(address, 80)!r} is no address to listen at: write it like 127.0.0.1:9123")
        try:
            self._socket = socket.create_server(
                (host.strip("[]"), int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET
            )
        except OSError as error:
            raise AccessError(address, cause_of(error)) from error
        self._socket.settimeout(0)
        self._names = {"localhost", socket.gethostname().lower(), host.strip("[]").lower()}
        self._connections: list[_Connection] = []

    @property
    def port(self) -> int:
        """Return the port, which the kernel chooses for 0."""
        return int(self._socket.getsockname()[1])

    def answer(self, timeline: Timeline) -> None:
        """Accept who connects, and go on with those who are connected; nobody is waited for."""
        now_seconds = time.monotonic()
        for _ in range(_MOST_AT_ONCE):
            try:
                peer, _ = self._socket.accept()
            except OSError:
                break
            self._connections.append(_Connection(peer, now_seconds))
            if len(self._connections) > _MOST_CONNECTIONS:
                self._go_on(timeline, now_seconds)
            # Who has been silent longest gives way.
            for silent in self._connections[:-_MOST_CONNECTIONS]:
                silent.end_seconds = now_seconds
        self._go_on(timeline, now_seconds)

    def _go_on(self, timeline: Timeline, now_seconds: float) -> None:
        for connection in list(self._connections):
            is_over = now_seconds >= connection.end_seconds
            with suppress(OSError):
                if connection.is_asking():
                    connection.answer = memoryview(self._answer_to(connection.request, timeline))
                is_over = connection.is_done() or is_over
                if not is_over:
                    continue
            connection.peer.close()
            self._connections.remove(connection)

    def _answer_to(self, request: bytes, timeline: Timeline) -> bytes:
        body = b""
        host = _HOST.search(request)
        if not request.startswith(b"GET "):
            status = "405 Method Not Allowed"
        elif host is not None and not self._is_here(host[1].decode("latin-1")):
            status, body = "421 Misdirected Request", _NOT_HERE
        else:
            status, body = "200 OK", openmetrics(timeline_metrics(timeline), About("watch", "")).encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: {_TYPE}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        return head.encode() + body

    def _is_here(self, host: str) -> bool:
        """Return whether a Host is a name of this machine or any address."""
        name = re.sub(r":[0-9]*\Z", "", host).strip("[]").lower()
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True

    def close(self) -> None:
        """Listen no longer."""
        for connection in self._connections:
            connection.peer.close()
        self._socket.close()
