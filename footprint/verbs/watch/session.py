"""What every watch needs: the events of the kernel, the file, the clock, and the signal that asks for an audit."""

import platform
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple

from footprint import __version__
from footprint.errors import Note
from footprint.model.audit import Audit
from footprint.process.counters import CounterReader
from footprint.process.kernel_events import KernelEvents
from footprint.series.file import SeriesFile
from footprint.series.records import Began, Closed, Record
from footprint.series.timeline import Timeline
from footprint.verbs.watch.audits import AuditMoment, Audits, is_there
from footprint.verbs.watch.metrics import Listener
from footprint.verbs.watch.roster import Roster
from footprint.verbs.watch.tick_costs import TickCosts
from footprint.verbs.watch.watcher import Sources, Watcher

KEPT_BYTES: Final = 28 << 20
"""What the file of a series may take."""

_CLOCK_JUMP_SECONDS: Final = 2.0
_TURN_SECONDS: Final = 0.1
# SIGUSR1 does not end a sleep.
_MOST_SLEEP_SECONDS: Final = 1.0


class WatchOptions(NamedTuple):
    """How a watch goes.

    Attributes:
        every_seconds: The time between two ticks.
        most_seconds: How long to watch; None until all processes have ended, or an interrupt.
        series: The file that keeps what is seen; None for none.
        kept_bytes: What that file may take.
        on_tick: Is called after each tick.
        on_turn: Is called between ticks, ten times a second; whether an audit is asked for.
        listen: The address at which the figures are told by HTTP; None for none.
    """

    every_seconds: float = 1.0
    most_seconds: float | None = None
    series: str | None = None
    kept_bytes: int = KEPT_BYTES
    on_tick: Callable[[Timeline], None] | None = None
    on_turn: Callable[[Timeline], bool] | None = None
    listen: str | None = None


class Session:
    """What every watch needs: the events of the kernel, the file, the clock, and the signal that asks for an audit.

    Args:
        options: How the watch goes.
        opened: Closes all of it.
        has_starts: Whether processes that start meanwhile can belong to the target.
    """

    def __init__(self, options: WatchOptions, opened: ExitStack, *, has_starts: bool) -> None:
        self._options = options
        self._opened = opened
        self.own_file_limits = opened.enter_context(_most_files())
        self.has_starts = has_starts
        self.events = self._open_events()
        self._file = None if options.series is None else SeriesFile(options.series, options.kept_bytes)
        if self._file is not None:
            opened.callback(self._file.close)
        self._listener = None if options.listen is None else Listener(options.listen)
        if self._listener is not None:
            opened.callback(self._listener.close)
        self._is_asked = False
        self.is_over = False
        """Whether a signal has asked for the end."""
        opened.enter_context(self._asked_by_signals())
        self._clock_difference = _clock_difference()
        self._fork_start = fork_count()
        self.watcher: Watcher | None = None
        self._start = time.monotonic()

    def _open_events(self) -> KernelEvents | None:
        try:
            return self._opened.enter_context(KernelEvents(has_starts=self.has_starts))
        except OSError:
            return None

    @contextmanager
    def _asked_by_signals(self) -> Iterator[None]:
        """SIGUSR1 asks for an audit; what stops a service or closes a terminal asks for the end, with its report."""

        def ask(number: int, _frame: object) -> None:
            self._is_asked |= number == signal.SIGUSR1
            self.is_over |= number != signal.SIGUSR1

        with ExitStack() as restored:
            # Only the main thread may do that.
            if threading.current_thread() is threading.main_thread():
                ending = [s for s in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) == signal.SIG_DFL]
                for number in (signal.SIGUSR1, *ending):
                    restored.callback(signal.signal, number, signal.signal(number, ask))
            yield

    def start(self, target: str, roster: Roster, audits: Audits, first_audit_seconds: float = 0.0) -> Watcher:
        """Begin the watch."""
        host = {"kernel": platform.release(), "machine": platform.machine()}
        every_ms = round(self._options.every_seconds * 1000)
        began = Began(target, int(time.time()), every_ms, audits.constants.stack_bytes, host, __version__)
        costs = TickCosts(audits.constants)
        sources = Sources(CounterReader, audits.read, is_there, _audit_line, time.process_time, self._sink, costs)
        self._start = time.monotonic()
        self.watcher = Watcher(began, roster, sources, first_audit_seconds)
        return self.watcher

    def _sink(self, records: Sequence[Record]) -> None:
        if self._file is not None:
            self._file.add(records)

    @property
    def turn_seconds(self) -> float:
        """Return how long to sleep at most: between ticks somebody may start, ask, or press a key."""
        has_turns = self.has_starts or self._listener is not None or self._options.on_turn is not None
        return _TURN_SECONDS if has_turns else _MOST_SLEEP_SECONDS

    @property
    def seconds(self) -> float:
        """Return the time since the watch began."""
        return time.monotonic() - self._start

    def turn(self, watcher: Watcher) -> None:
        """See who came and who ended, and who asks for something."""
        watcher.refresh(self.seconds)
        if self._listener is not None:
            self._listener.answer(watcher.timeline)
        if self._options.on_turn is not None and self._options.on_turn(watcher.timeline):
            self._is_asked = True

    def tick(self, watcher: Watcher, *, is_last: bool = False) -> None:
        """Tick, and see to everything else that is due; after the last tick the audit of the end is made anyway."""
        seconds = self.seconds
        difference = _clock_difference()
        if abs(difference - self._clock_difference) > _CLOCK_JUMP_SECONDS:
            detail = f"the clock was set by {difference - self._clock_difference:+.0f} s: times here go on without it"
            watcher.tell(Note("clock-set", watcher.timeline.began.target, detail), round(seconds * 1000))
            self._clock_difference = difference
        self._tell_of_file(watcher)
        if self.events is not None and self.events.lost_count:
            detail = "the kernel reported more starts and ends than could be read in time: some are missing"
            watcher.tell(Note("events-lost", watcher.timeline.began.target, detail), round(seconds * 1000))
        watcher.tick(seconds, is_last=is_last)
        if self._is_asked and watcher.pids:
            self._is_asked = False
            watcher.audit(AuditMoment.SIGNAL, seconds)
            watcher.finish_audits(seconds)
            watcher.flush()
        if self._options.on_tick is not None and (watcher.pids or not is_last):
            self._options.on_tick(watcher.timeline)

    def _tell_of_file(self, watcher: Watcher) -> None:
        for note in () if self._file is None else self._file.notes:
            watcher.tell(note, round(self.seconds * 1000))

    def close(self, watcher: Watcher, seen_count: int, how: str) -> Timeline:
        """End the watch, and return what it saw."""
        forks = max(0, fork_count() - self._fork_start)
        seen = self.events.fork_count if self.events is not None else seen_count
        ended = self.seconds
        watcher.end_audits(ended)
        # The audit of the end is the largest record: the disk may refuse it alone.
        self._tell_of_file(watcher)
        watcher.close(Closed(round(ended * 1000), forks, min(seen, forks), how))
        self._tell_of_file(watcher)
        return watcher.timeline


@contextmanager
def _most_files() -> Iterator[tuple[int, int]]:
    """Allow as many open files as may be, three for each process; yield what was allowed before."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    try:
        yield before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _audit_line(audit: Audit) -> str:
    """Format an audit as JSON in one line."""
    import json  # noqa: PLC0415 # few ticks write one

    from footprint.formats.audit_json import audit_members  # noqa: PLC0415 # the same

    return json.dumps(audit_members(audit, __version__), separators=(",", ":"))


def fork_count() -> int:
    """Return how many processes and threads this machine has started since it runs; 0 where that is not told."""
    with suppress(OSError), open("/proc/stat", "rb") as file:
        for line in file:
            if line.startswith(b"processes "):
                return int(line.split()[1])
    return 0


def _clock_difference() -> float:
    return time.time() - time.monotonic()
