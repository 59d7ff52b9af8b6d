"""The program, from its start to its end."""

import math
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Final, Self

from footprint.errors import AccessError, Note
from footprint.process.launch.child import become, fill_standard_descriptors
from footprint.process.launch.followed import Followed
from footprint.process.launch.members import Members
from footprint.process.launch.memory import peak_and_resident_bytes
from footprint.process.launch.moment import Calm, Lines, Moment, When
from footprint.process.launch.onlooker import Onlooker
from footprint.process.launch.own_process import ENDING, has_children, signal_descriptor
from footprint.process.launch.streams import Sink, Streams, pass_on
from footprint.process.launch.tracee import HOLD_SECONDS, STOP_SECONDS, Tracee
from footprint.process.stat import Stat, stands_still
from footprint.units import format_bytes

__all__ = ("LaunchedProgram",)

_TERM_SECONDS: Final = 3.0  # how long a program may take to end by itself
_KILL_SECONDS: Final = 10.0  # how long the kernel may take to end it
_TURN_SECONDS: Final = 0.025  # the longest wait for an event where no signal reports it
_MOST_EVENTS: Final = 256  # at a time, before other work
_PEAK_BYTES: Final = 1 << 20  # freed before the exit: from this size on a note says so
_WALL: Final = 0x40000000
_WAITED_FOR: Final = {
    When.SETTLED: "its private memory still changed",
    When.OUTPUT: "no line of its output had matched",
    When.PEAK: "it had not come near its peak again",
}


class LaunchedProgram:
    """A program from its start to its end. However the context is left, no process of it stays behind.

    Args:
        command: The program and its arguments.
        moment: When to read it.
        adopts: Whether its orphans become our children.
        executable: The file to run; None for the file that the first word names.
        streams: Its input, and the receivers of its output; None where it shares our streams.
        watch: What looks at its memory while it runs; None where nobody asks for it.
        follows: Whether its descendants are traced, too, so that the watch sees each of them.
    """

    def __init__(
        self,
        command: Sequence[str],
        moment: Moment,
        *,
        adopts: bool,
        executable: str | None = None,
        streams: Streams | None = None,
        watch: Onlooker | None = None,
        follows: bool = False,
    ) -> None:
        self.pid = 0
        self.most_resident_bytes = 0
        self._watch = watch
        self._followed = Followed(watch.see) if watch is not None and follows and adopts else None
        self.notes: list[Note] = []
        self.ending: tuple[int | None, str | None] = (None, None)
        self._command = command
        self._executable = command[0] if executable is None else executable
        self._streams = streams
        self._name = command[0]
        self._moment = moment
        self._adopts = adopts
        self._tracee = Tracee(0)
        self._calm = Calm()
        self._lines = Lines(moment.pattern)
        self._poll = select.poll()
        self._readers: dict[int, Callable[[int], bool]] = {}
        self._outputs: set[int] = set()
        self._gate = -1
        self._mask: set[int] | None = None
        self._interrupts: set[int] = set()
        self._started_at: float | None = None
        self._pause_seconds = 0.001
        self._members = Members(0, adopts=adopts)
        self._is_gone = False
        self._is_ending = False
        self._has_ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.pid and not self._is_ending:
                self.end()
        finally:
            # Where `end` was interrupted, kill it now with signals blocked.
            signal.pthread_sigmask(signal.SIG_BLOCK, self._interrupts)
            self._interrupts = set()
            if self.pid and not self._has_ended:
                self._end_by(signal.SIGKILL, _KILL_SECONDS)
                self._reap()
            for descriptor in (*self._readers, self._gate):
                if descriptor >= 0:
                    os.close(descriptor)
            if self._mask is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Unblock interrupts in this context only: elsewhere they could separate steps that belong together."""
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._interrupts)
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, self._interrupts)

    @property
    def crashes(self) -> tuple[str, ...]:
        """How processes crashed that it started, where they are traced: each with its signal and name."""
        return () if self._followed is None else tuple(self._followed.crashes)

    @property
    def is_at_exit(self) -> bool:
        """Whether it is stopped at its exit."""
        return self._tracee.is_exiting and self._started_at is not None

    # --- starting

    def start(self) -> None:
        """Start the program, traced from its first instruction where that is allowed.

        Raises:
            AccessError: Where the moment is its exit, and ptrace is not allowed.
            OSError: Where the fork fails.
        """
        fill_standard_descriptors()
        has_outputs = self._moment.pattern is not None or self._streams is not None
        (opening, self._gate), (errors, errors_end), *output_pipes = _open_pipes(4 if has_outputs else 2)
        outputs, ends = self._outputs_of(output_pipes)
        self._mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()))
        self._interrupts = set[int]((signal.SIGINT, *ENDING)) - self._mask
        try:
            self._fork(opening, errors_end, ends, self._mask)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask | self._interrupts | {signal.SIGCHLD})
            for descriptor in {opening, errors_end, *ends} - {2}:
                os.close(descriptor)
            self._listen_to(errors, self._on_start)
            for descriptor, sink in outputs:
                os.set_blocking(descriptor, False)
                self._listen_to(descriptor, partial(self._lines.feed, sink))
                self._outputs.add(descriptor)
        self._listen_to(signal_descriptor(signal.SIGCHLD), _empty)
        self._tracee = Tracee(self.pid, None if self._followed is None else self._followed.on_stop)
        try:
            self._tracee.seize()
        except OSError as error:
            if self._moment.when is When.EXIT:
                cause = f"its exit cannot be caught (ptrace: {error.strerror}): take it when settled, or after a time"
                raise AccessError(self._name, cause) from error
        if self._watch is not None:
            self._watch.begin(self.pid, adopter=os.getpid() if self._adopts else None)
        with suppress(BrokenPipeError):
            os.write(self._gate, b"\n")

    def _outputs_of(self, pipes: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, Sink]], tuple[int, int]]:
        """Return our ends of the pipes for its output with their receivers, and its ends."""
        if not pipes:
            return [], (2, 2)
        to_output, to_errors = (pass_on, pass_on) if self._streams is None else self._streams[1:]
        (output, output_end), (error, error_end) = pipes
        return [(output, to_output), (error, to_errors)], (output_end, error_end)

    def _fork(self, opening: int, errors: int, outputs: tuple[int, int], mask: set[int]) -> None:
        with warnings.catch_warnings():
            # Python warns about threads that hold locks; the new process only makes a few system calls.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            os.close(self._gate)
            input_path = None if self._streams is None else self._streams.input_path
            become(self._executable, self._command, opening, errors, (input_path, *outputs), mask)
        self.pid = pid
        self._members = Members(pid, adopts=self._adopts)

    def _listen_to(self, descriptor: int, reader: Callable[[int], bool]) -> None:
        self._readers[descriptor] = reader
        self._poll.register(descriptor, select.POLLIN)

    def _on_start(self, errors: int) -> bool:
        """Read the error number from the new process; none arrives where exec succeeds."""
        said = os.read(errors, 64)
        if said:
            cause = os.strerror(int(said)) if said.isdigit() else "interrupted"
            raise AccessError(self._name, f"it cannot be started: {cause}")
        if self._started_at is None:
            self._started_at = time.monotonic()
        return False

    # --- events

    def _turn(self, seconds: float) -> None:
        """Wait for an event, at most so many seconds, and handle it."""
        with self.interruptible():
            ready = self._poll.poll(math.ceil(seconds * 1000))
        for descriptor, _ in ready:
            if not self._readers[descriptor](descriptor):
                self._poll.unregister(descriptor)
                del self._readers[descriptor]
                self._outputs.discard(descriptor)
                os.close(descriptor)
        # Outside the main thread no signal reports events: poll, and more often while there are many.
        self._pause_seconds = 0.001 if self._collect() else min(2 * self._pause_seconds, _TURN_SECONDS)
        self._tracee.release_awaited()

    def _collect(self) -> bool:
        """Collect the threads that have stopped or ended; return whether there were any."""
        # Wait for any child only where all are its own; else for its process group, which it has from its start on.
        whom = -1 if self._adopts else self.pid if self._started_at is None else -self.pid
        for turn in range(_MOST_EVENTS):
            try:
                task, status, usage = os.wait4(whom, os.WNOHANG | _WALL)
            except ChildProcessError:
                self._is_gone = True
                return turn > 0
            if task == 0:
                return turn > 0
            if os.WIFSTOPPED(status):
                self._tracee.on_stop(task, status)
                continue
            self._tracee.forget(task)
            self.most_resident_bytes = max(self.most_resident_bytes, usage.ru_maxrss * 1024)
            if task == self.pid:
                self._is_gone = True
                code = os.waitstatus_to_exitcode(status)
                self.ending = (code, None) if code >= 0 else (None, _signal_name(-code))
        return True

    # --- the moment

    def reach_moment(self, *, has_family: bool) -> None:
        """Wait for the moment, and stop all processes that will be read.

        Raises:
            AccessError: Where the program cannot be started, or ends before we can read it.
        """
        is_due = False
        while not self.is_at_exit and not is_due:
            self._turn(self._pause_seconds if self._watch is None else self._watch.seconds_to_look)
            self._fail_if_gone()
            if self._watch is not None:
                self._look(self._watch)
            is_due = self._is_due()
        if self._watch is not None and is_due:
            self._hold_largest(self._watch)
        if not is_due and self._moment.when is When.OUTPUT:
            # It may have printed the line just before its end.
            self._turn(0)
            is_due = self._lines.is_found()
        if not is_due and self._moment.when is not When.EXIT:
            detail = f"it ended before the moment asked for ({_moment_text(self._moment)}): it was read at its exit"
            self.notes.append(Note("moment-not-reached", self._name, detail))
        if has_family or not self.is_at_exit:
            self._stop()
        if self._watch is not None:
            self._watch.look(is_forced=True)
        if self.is_at_exit:
            self._await_ended_threads()
            self._note_peak()

    def _look(self, watch: Onlooker) -> None:
        if self._started_at is not None:
            # At its exit there is one look, when all of it stands still.
            if not self.is_at_exit:
                watch.look()
        # Before its start it is a copy of us, which may itself hold more than a small program does.
        elif watch.has_reached(sys.maxsize):
            watch.let_go()

    def _hold_largest(self, watch: Onlooker) -> None:
        """Stop the processes that hold most at once, before they free anything; the others are stopped later."""
        if self._moment.when is When.PEAK:
            for pid in watch.largest():
                _send(pid, signal.SIGSTOP)
        watch.let_go()

    def _fail_if_gone(self) -> None:
        """Raise the cause where there is nothing to read."""
        if not self._is_gone:
            return
        for descriptor, reader in tuple(self._readers.items()):
            if reader == self._on_start:
                reader(descriptor)
        code, name = self.ending
        how = f"{name} ended it" if name else f"it ended, exit code {code}," if code is not None else "it ended"
        raise AccessError(self._name, f"{how} before its memory could be read")

    def _is_due(self) -> bool:
        when = self._moment.when
        if self._started_at is None or when is When.EXIT:
            return False
        if when is When.OUTPUT and self._lines.is_found():
            return True
        if when is When.PEAK and self._watch is not None and self._watch.has_reached(self._moment.peak_bytes):
            return True
        if when is When.SETTLED and self._calm.is_calm(self._tracee.task):
            return True
        if time.monotonic() - self._started_at < self._moment.seconds:
            return False
        if when is not When.TIME:
            detail = f"{_WAITED_FOR[when]} {self._moment.seconds:g} s after its start: it was read then"
            self.notes.append(Note("moment-not-reached", self._name, detail))
        return True

    def _await_ended_threads(self) -> None:
        """Wait until /proc no longer lists ended threads, so that all starts have equal counts."""
        patience_end = time.monotonic() + HOLD_SECONDS
        while self._tracee.has_ended_threads and time.monotonic() < patience_end:
            self._turn(self._pause_seconds)

    def _note_peak(self) -> None:
        """Add a note where it held much more before: some programs free everything when they end."""
        peak_bytes, now_bytes = peak_and_resident_bytes(self._tracee.task)
        if peak_bytes - now_bytes > max(_PEAK_BYTES, now_bytes // 10):
            sizes = f"{format_bytes(peak_bytes)} of it were resident at the peak, {format_bytes(now_bytes)} at its exit"
            detail = f"{sizes}: memory that it freed is not in the figures; choose an earlier moment"
            self.notes.append(Note("freed-before-exit", self._name, detail))

    def _stop(self) -> None:
        """Stop all processes, so that all are read at one moment; one at its exit is already stopped."""
        patience_end = time.monotonic() + STOP_SECONDS
        asked: set[int] = set()
        while moving := {pid: stat.parent_pid for pid, stat in self._alive().items() if not self._stands_still(pid)}:
            if time.monotonic() > patience_end:
                detail = f"{len(moving)} of its processes did not stop: their figures may be inconsistent"
                self.notes.append(Note("not-stopped", self._name, detail))
                return
            # A parent that waits for its child to exec (vfork) stops only after that: stop parents before children.
            ready = {pid for pid, parent in moving.items() if parent not in moving} - asked
            for pid in ready:
                _send(pid, signal.SIGSTOP)
            asked |= ready
            self._turn(self._pause_seconds)
            self._fail_if_gone()

    def _stands_still(self, pid: int) -> bool:
        if pid == self.pid and self._tracee.has_any:
            return self._tracee.is_still
        return stands_still(pid)

    def tasks(self, *, has_family: bool) -> tuple[int, ...]:
        """Return the task IDs to read in /proc: its own first, then on request those of all its descendants."""
        if not has_family:
            return (self._tracee.task,)
        alive = self._alive()
        family = sorted((pid for pid in alive if pid != self.pid), key=lambda pid: (alive[pid].start_ticks, pid))
        return (self._tracee.task, *family)

    def _alive(self) -> dict[int, Stat]:
        return self._members.alive(is_gone=self._is_gone)

    # --- its end

    def end(self) -> None:
        """End the program and its descendants; a program at its exit ends by itself."""
        self._is_ending = True
        if self._gate >= 0:
            os.close(self._gate)
            self._gate = -1
        self._alive()
        is_at_exit = self.is_at_exit
        self._tracee.release_all()
        end_seconds = self._moment.end_seconds or _TERM_SECONDS
        patience_end = time.monotonic() + end_seconds
        while is_at_exit and not self._is_gone and time.monotonic() < patience_end:
            self._turn(_TURN_SECONDS)
        if not self._end_by(signal.SIGTERM, end_seconds) and not self._end_by(signal.SIGKILL, _KILL_SECONDS):
            pids = ", ".join(map(str, sorted(self._alive())))
            self.notes.append(Note("left-behind", self._name, f"processes that could not be ended: {pids}"))
        self._reap()
        self._has_ended = True

    def _end_by(self, number: signal.Signals, patience_seconds: float) -> bool:
        """Send a signal to all its processes, and return whether they ended."""
        patience_end = time.monotonic() + patience_seconds
        asked: set[int] = set()
        self._tracee.release_all()
        while alive := self._alive():
            for pid in alive.keys() - asked:
                _send(pid, number)
                _send(pid, signal.SIGCONT)
            asked |= alive.keys()
            if time.monotonic() > patience_end:
                return False
            with suppress(AccessError):
                self._turn(_TURN_SECONDS)
        return True

    def _reap(self) -> None:
        """Wait for the program and adopted orphans, and forward the rest of the output."""
        patience_end = time.monotonic() + _TERM_SECONDS
        while time.monotonic() < patience_end:
            with suppress(AccessError):
                self._turn(0)
            if self._is_gone and not (self._adopts and has_children()):
                break
            time.sleep(0.001)
        while any(ready in self._outputs for ready, _ in self._poll.poll(0)) and time.monotonic() < patience_end:
            self._turn(0)


def _open_pipes(count: int) -> list[tuple[int, int]]:
    """Open some pipes, or none of them.

    Raises:
        OSError: Where too many files are open.
    """
    opened: list[tuple[int, int]] = []
    try:
        opened.extend(os.pipe() for _ in range(count))
    except OSError:
        for descriptor in chain.from_iterable(opened):
            os.close(descriptor)
        raise
    return opened


def _empty(descriptor: int) -> bool:
    with suppress(BlockingIOError):
        os.read(descriptor, 4096)
    return True


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def _moment_text(moment: Moment) -> str:
    if moment.when is When.TIME:
        return f"{moment.seconds:g} s after its start"
    return {When.SETTLED: "its memory settled", When.PEAK: "its peak"}.get(moment.when, "a matching line of output")
