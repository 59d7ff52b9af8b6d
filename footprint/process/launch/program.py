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
from typing import Final, NoReturn, Protocol, Self

from footprint.errors import AccessError, Note, UsageError
from footprint.process.freezer import (
    EVENT_EXEC,
    EVENT_EXIT,
    EVENT_STOP,
    STOPPING,
    cont,
    detach,
    event_message,
    is_tracer,
    listen,
)
from footprint.process.launch.moment import Calm, Lines, Moment, Sink, Streams, When, pass_on, peak_and_resident_bytes
from footprint.process.launch.own_process import ENDING, has_children, signal_descriptor
from footprint.process.launch.tracee import HOLD_SECONDS, STOP_SECONDS, Tracee
from footprint.process.start_counters import StartCounters
from footprint.process.status import Stat, processes, stands_still
from footprint.text.units import format_bytes


class Onlooker(Protocol):
    """Is called between the events of a program; it decides how often."""

    def begin(self, pid: int, *, adopter: int | None) -> None:
        """Look at a process that is about to execute the program; its orphans become children of the adopter."""

    @property
    def seconds_to_look(self) -> float:
        """Return how long to wait for the next look."""

    def look(self, *, is_forced: bool = False) -> None:
        """Read the counters, but not too often."""

    def see(self, pid: int) -> object:
        """Read a process that is stopped at its exit."""

    def has_reached(self, peak_bytes: int) -> bool:
        """Return whether the program holds so much."""

    @property
    def is_at_brink(self) -> bool:
        """Whether the program is about to meet a limit, and was not let go."""

    def killed_at(self) -> str | None:
        """Return the limit at which the kernel has killed a process for want of memory; None if it has not."""

    def largest(self) -> list[int]:
        """Find the processes that hold most, the largest first."""

    def let_go(self) -> None:
        """Hold the program no longer, where the kernel was asked to."""


class Members:
    """A program, its session, and all descendants of every process seen there.

    Args:
        pid: The program, which leads its session.
        adopts: Whether its orphans become our children, and we have no other children.
    """

    def __init__(self, pid: int, *, adopts: bool) -> None:
        self._pid = pid
        self._adopts = adopts
        self._start_ticks: dict[int, int] = {}

    def alive(self, *, is_gone: bool) -> dict[int, Stat]:
        """Return the living ones. Once the program is gone, its PID may be that of another process."""
        table = processes()
        members = {pid for pid, ticks in self._start_ticks.items() if pid in table and table[pid].start_ticks == ticks}
        # The kernel gives no PID again whose session is there: where a later process has it, ours has ended.
        if not is_gone or self._pid not in table:
            members.update(pid for pid, stat in table.items() if stat.session == self._pid)
        if not is_gone:
            members.add(self._pid)
        parents = members | {os.getpid()} if self._adopts else set(members)
        while children := {pid for pid, stat in table.items() if stat.parent_pid in parents} - members:
            members |= children
            parents |= children
        self._start_ticks = {pid: table[pid].start_ticks for pid in members if pid in table}
        return {pid: table[pid] for pid in self._start_ticks if table[pid].state not in "ZX"}


def become(
    executable: str,
    command: Sequence[str],
    opening: int,
    errors: int,
    streams: tuple[str | None, int, int],
    mask: set[int],
) -> NoReturn:
    """Wait at the gate, then execute the program; write the cause to `errors` where that fails.

    Args:
        executable: The file to run, searched in PATH where it names no directory.
        command: Its argv.
        opening: The read end of the gate.
        errors: The descriptor for the error number.
        streams: The file for its standard input, None for ours; the descriptors of its standard output and error.
        mask: The signals that are blocked at its start.
    """
    try:
        os.setsid()
        input_path, output_end, error_end = streams
        if input_path is not None:
            os.dup2(os.open(input_path, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC), 0)
        os.dup2(output_end, 1)
        os.dup2(error_end, 2)
        # Python ignores these signals, and the program would inherit that.
        for name in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        if os.read(opening, 1):
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.execvp(executable, list(command))  # noqa: S606 # the purpose of the caller
    except OSError as error:
        os.write(errors, str(error.errno).encode())
    except BaseException:  # noqa: BLE001 # no handler of the parent may run here
        os.write(errors, b"?")
    finally:
        os._exit(127)


def fill_standard_descriptors() -> None:
    """Open standard descriptors that are closed, so that no pipe of ours gets their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


# Those of which signal(7) says `Core`: no program sends them to another one to end it.
_CRASHES: Final = frozenset(
    {
        *(signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL),
        *(signal.SIGSEGV, signal.SIGSYS, signal.SIGTRAP, signal.SIGXCPU, signal.SIGXFSZ),
    }
)
_SIGNAL: Final = 0x7F


class Followed:
    """The descendants of a program. They run as if not traced.

    Args:
        see_exit: Called with a thread that is stopped at its exit, its memory still mapped.
    """

    def __init__(self, see_exit: Callable[[int], object]) -> None:
        self._see_exit = see_exit
        self.crashes: list[str] = []

    def on_stop(self, task: int, status: int) -> None:
        """Handle the stop of a thread, reported by waitpid(2)."""
        number, event = os.WSTOPSIG(status), status >> 16
        with suppress(ProcessLookupError):
            if event == EVENT_EXIT:
                self._see_exit(task)
                self._see_crash(task)
            if event == EVENT_STOP and number in STOPPING:
                listen(task)
            elif event == EVENT_EXEC and is_tracer(task):
                detach(task)
            else:
                cont(task, 0 if event else number)

    def _see_crash(self, task: int) -> None:
        """Remember what crashed: each thread of a process ends by its signal, and its first thread counts."""
        number = event_message(task) & _SIGNAL
        if number not in _CRASHES:
            return
        with suppress(OSError), open(f"/proc/{task}/status", encoding="utf-8", errors="replace") as file:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            if fields.get("Tgid") == str(task):
                self.crashes.append(f"{signal.Signals(number).name} ended {fields.get('Name', task)}, which it started")


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


def check_words(command: Sequence[str], verb: str) -> None:
    """Raise a UsageError if words are no command that the kernel could execute."""
    if not command or not command[0]:
        raise UsageError(f"say which program to {verb}")
    if any("\0" in word for word in command):
        raise UsageError("a word of a command cannot have a null byte")


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
        read_at_brink: Called with its tasks and those of its descendants, all stopped, when it is about to meet a limit
            of memory; it runs on then.
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
        read_at_brink: Callable[[tuple[int, ...]], object] | None = None,
    ) -> None:
        self.pid = 0
        self.most_resident_bytes = 0
        self._watch = watch
        self._read_at_brink = read_at_brink
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
    def spent(self) -> StartCounters | None:
        """What it costs since it executed the program; None where that was not seen."""
        return self._tracee.spent

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
        number = os.read(errors, 64)
        if number:
            cause = os.strerror(int(number)) if number.isdigit() else "interrupted"
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
        if self._tracee.is_ending_early:
            # Somebody has killed it before its start: there is nothing to read, and it ends only when it goes on.
            self._tracee.release_all()

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
            if self._watch is None or self._watch.killed_at() is None:
                self._note_peak()

    def _look(self, watch: Onlooker) -> None:
        if self._started_at is not None:
            # At its exit there is one look, when all of it stands still.
            if not self.is_at_exit:
                watch.look()
                if watch.is_at_brink:
                    self._pause_at_brink(watch)
        # Before its start it is a copy of us, which may itself hold more than a small program does.
        elif watch.has_reached(sys.maxsize):
            watch.let_go()

    def _pause_at_brink(self, watch: Onlooker) -> None:
        """Stop all processes, have them read, and let them run on."""
        for pid in watch.largest():
            _send(pid, signal.SIGSTOP)
        watch.let_go()
        self._stop()
        if self._read_at_brink is not None:
            with self.interruptible():
                self._read_at_brink(self.tasks(has_family=True))
        for pid in self._alive():
            _send(pid, signal.SIGCONT)

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
        stopped: set[int] = set()
        while moving := {pid: stat.parent_pid for pid, stat in self._alive().items() if not self._stands_still(pid)}:
            if time.monotonic() > patience_end:
                detail = f"{len(moving)} of its processes did not stop: their figures may be inconsistent"
                self.notes.append(Note("not-stopped", self._name, detail))
                return
            # A parent that waits for its child to exec (vfork) stops only after that: stop parents before children.
            ready = {pid for pid, parent in moving.items() if parent not in moving} - stopped
            for pid in ready:
                _send(pid, signal.SIGSTOP)
            stopped |= ready
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
        signalled: set[int] = set()
        self._tracee.release_all()
        while alive := self._alive():
            for pid in alive.keys() - signalled:
                _send(pid, number)
                _send(pid, signal.SIGCONT)
            signalled |= alive.keys()
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
