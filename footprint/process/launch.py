"""Starting a program, holding it still at a chosen moment, and ending it with all that it started.

Source: ptrace(2), waitpid(2), signalfd(2), PR_SET_CHILD_SUBREAPER(2const).
"""

import ctypes
import math
import os
import re
import select
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, NoReturn, Self, TypeVar

from footprint.errors import AccessError, Note, UsageError
from footprint.process.stat import Stat, processes, read_stat, stands_still
from footprint.units import format_bytes

__all__ = ("Moment", "Taken", "When", "launch")

T = TypeVar("T")

_QUIET_SECONDS: Final = 1.0  # how long private memory keeps still before it counts as settled
_QUIET_SHARE: Final = 0.005  # what it may move by meanwhile
_LOOK_SECONDS: Final = 0.1  # between two looks at it
_PROMPT_SECONDS: Final = 0.1  # after which a line without an end is taken for a prompt
_STOP_SECONDS: Final = 5.0  # what stopping may take
_TERM_SECONDS: Final = 3.0  # what a program may take to end by itself
_KILL_SECONDS: Final = 10.0  # what the kernel may take to end it
_MOST_LINE_BYTES: Final = 1 << 16
# A thread that waits for one that is held at its exit is let wait for so long.
_HOLD_SECONDS: Final = 0.05
_TURN_SECONDS: Final = 0.025  # the longest wait for news, where no signal tells of them
_MOST_NEWS: Final = 256  # at a time, before anything else is looked at
_PEAK_BYTES: Final = 1 << 20  # given back before the exit, from where on it is worth a word

_SIZE = re.compile(rb"^(\w+):\s+([0-9]+) kB$", re.MULTILINE)


class When(StrEnum):
    """What a program is taken at."""

    EXIT = "exit"
    SETTLED = "settled"
    TIME = "time"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Moment:
    """When to take a program.

    Attributes:
        when: What happens then.
        seconds: For `TIME` how long after its start; for `SETTLED` and `OUTPUT` after how long it is taken anyway.
        pattern: For `OUTPUT` what to find in a line of its output.
    """

    when: When
    seconds: float = 60.0
    pattern: re.Pattern[bytes] | None = None


@dataclass(frozen=True, slots=True)
class Taken(Generic[T]):
    """What was read of a program, and how it ended.

    Attributes:
        pid: The process ID that it had.
        answer: What the reader gave.
        when: The moment it was really taken at.
        exit_code: What it exited with; None where a signal or footprint ended it.
        signal: The name of the signal that ended it; None where it exited or footprint ended it.
        notes: What was odd.
    """

    pid: int
    answer: T
    when: When
    exit_code: int | None
    signal: str | None
    notes: tuple[Note, ...]


def launch(
    command: Sequence[str], moment: Moment, read: Callable[[tuple[int, ...]], T], *, has_family: bool = False
) -> Taken[T]:
    """Start a program, read it at a moment while it stands still, and end it.

    It runs in a session of its own and has our standard input; what it prints goes to our standard error. In the end
    its whole session and all descendants get SIGTERM, after 3 seconds SIGKILL; so they do on any error.

    Args:
        command: The program and its arguments.
        moment: When to read it. Where it ends before, it is read at its exit, and a note says so.
        read: Called with the numbers under /proc to read: first the program's, then, each stopped, its descendants'.
        has_family: Whether to give the descendants too.

    Raises:
        AccessError: Where it cannot be started, or ends without being seen.
        UsageError: Where the words are no command.
    """
    if not command or not command[0]:
        raise UsageError("say which program to run")
    if any("\0" in word for word in command):
        raise UsageError("a word of a command cannot have a null byte")
    with _interrupted_by_signals(), _adopting() as adopts, _Program(command, moment, adopts=adopts) as program:
        try:
            program.start()
        except OSError as error:
            raise AccessError(command[0], f"it cannot be started: {error.strerror}") from error
        program.reach_moment(has_family=has_family)
        when = When.EXIT if program.is_at_exit else moment.when
        tasks = program.tasks(has_family=has_family)
        with program.interruptible():
            answer = read(tasks)
        program.end()
        code, name = program.ending if when is When.EXIT else (None, None)
        return Taken(program.pid, answer, when, code, name, tuple(program.notes))


# --- the world around it ----------------------------------------------------------------------------------------------

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.restype = ctypes.c_long
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_GET_CHILD_SUBREAPER: Final = 37


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Turn signals that would end us at once into an interrupt, so that nothing is left behind."""
    received: list[int] = []

    def interrupt(number: int, _frame: object) -> NoReturn:
        received.append(number)
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    ours = [number for number in _ENDING if is_main and signal.getsignal(number) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if received:
            os.kill(os.getpid(), received[0])


@contextmanager
def _adopting() -> Iterator[bool]:
    """Let orphans of the program become our children, where all our children must then be its.

    That is so where nothing else could start any: no other thread, and none that are there before.
    """
    before = ctypes.c_int()
    if (
        threading.active_count() > 1
        or _has_children()
        or _LIBC.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
        or _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ):
        yield False
        return
    try:
        yield True
    finally:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _signal_descriptor(number: int) -> int:
    """Give a descriptor that can be read when a blocked signal has come."""
    mask = (ctypes.c_ulong * 16)()
    _LIBC.sigemptyset(mask)
    _LIBC.sigaddset(mask, number)
    descriptor = int(_LIBC.signalfd(-1, mask, os.O_CLOEXEC | os.O_NONBLOCK))
    if descriptor < 0:
        raise _os_error()
    return descriptor


def _os_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def _sizes(task: int, name: str) -> dict[bytes, int]:
    """Read the sizes in a text of /proc, in bytes; none where it cannot be read."""
    with suppress(OSError), open(f"/proc/{task}/{name}", "rb") as file:
        return {key: int(number) * 1024 for key, number in _SIZE.findall(file.read())}
    return {}


def _private_bytes(task: int) -> int | None:
    """Give anonymous and swapped memory from the cheapest source that is exact, else from what is left."""
    exact = _sizes(task, "smaps_rollup")
    if b"Anonymous" in exact:
        return exact[b"Anonymous"] + exact.get(b"Swap", 0)
    counted = _sizes(task, "status")
    return counted[b"RssAnon"] + counted.get(b"VmSwap", 0) if b"RssAnon" in counted else None


# --- the threads of the program ---------------------------------------------------------------------------------------

_CONT: Final = 7
_DETACH: Final = 17
_GETEVENTMSG: Final = 0x4201
_SEIZE: Final = 0x4206
_LISTEN: Final = 0x4208
_EVENT_CLONE: Final = 3
_EVENT_EXEC: Final = 4
_EVENT_EXIT: Final = 6
_EVENT_STOP: Final = 128
_OPTIONS: Final = 1 << _EVENT_CLONE | 1 << _EVENT_EXEC | 1 << _EVENT_EXIT | 1 << 20  # PTRACE_O_EXITKILL
_WALL: Final = 0x40000000
_STOPPING: Final = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})


def _ptrace(request: int, task: int, data: int = 0) -> None:
    """Make a request of ptrace(2).

    Raises:
        OSError: Where the kernel refuses.
    """
    if _LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(task), None, ctypes.c_void_p(data)) == -1:
        raise _os_error()


def _event_message(task: int) -> int:
    message = ctypes.c_ulong()
    _ptrace(_GETEVENTMSG, task, ctypes.addressof(message))
    return message.value


class _Traced:
    """The threads of one traced process. They run as if they were not, until all have come to their exit."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._running: set[int] = set()
        self._stopped: set[int] = set()
        self._exiting: set[int] = set()
        self._held_since = 0.0
        self._is_let_go = False

    @property
    def has_any(self) -> bool:
        """Whether any thread is traced and alive."""
        return bool(self._running or self._exiting)

    @property
    def is_exiting(self) -> bool:
        """Whether every thread is held at its exit, the memory still there."""
        return bool(self._exiting) and not self._running

    @property
    def is_still(self) -> bool:
        """Whether every thread has stopped, or is held at its exit."""
        return self._running <= self._stopped

    @property
    def has_ended_threads(self) -> bool:
        """Whether some are gone but for their place in /proc; the first one keeps its place to the last."""
        with suppress(FileNotFoundError, ProcessLookupError):
            threads = {int(name) for name in os.listdir(f"/proc/{self._pid}/task")}
            return bool(threads - self._exiting - self._running - {self._pid})
        return False

    @property
    def task(self) -> int:
        """A thread that still has the memory: the first one may be gone before the others."""
        alive = self._exiting or self._running
        return self._pid if self._pid in alive or not alive else min(alive)

    def seize(self) -> None:
        """Begin to trace.

        Raises:
            OSError: Where that is not allowed.
        """
        _ptrace(_SEIZE, self._pid, _OPTIONS)
        self._running = {self._pid}

    def on_stop(self, task: int, status: int) -> None:
        """Deal with a thread that has stopped, as waitpid(2) tells."""
        number, event = os.WSTOPSIG(status), status >> 16
        self._stopped.discard(task)
        # Any thread may be gone at any time.
        with suppress(ProcessLookupError):
            if task not in self._running and not self._is_own(task):
                # A process that was cloned with another signal than SIGCHLD came along.
                _ptrace(_DETACH, task, 0 if event else number)
            elif event == _EVENT_EXIT:
                self._on_exit(task)
            else:
                self._running.add(task)
                self._on_event(task, event, number)

    def _on_event(self, task: int, event: int, number: int) -> None:
        if event == _EVENT_STOP and number in _STOPPING:
            self._stopped.add(task)
            _ptrace(_LISTEN, task)
            return
        if event == _EVENT_EXEC:
            # The thread that called it is the only one left, and has the number of the first one.
            self._running, self._stopped, self._exiting = {self._pid}, set(), set()
        elif event == _EVENT_CLONE and self._is_own(thread := _event_message(task)):
            self._running.add(thread)
        _ptrace(_CONT, task, 0 if event else number)

    def _is_own(self, task: int) -> bool:
        return os.path.exists(f"/proc/{self._pid}/task/{task}")

    def _on_exit(self, task: int) -> None:
        """Hold a thread at its exit where the whole process ends; one that ends alone is let go: others may wait."""
        self._running.discard(task)
        self._exiting.add(task)
        stats = self._running_stats()
        if stats and len(self._exiting) == 1:
            self._held_since = time.monotonic()
        own = read_stat(self._pid, task)
        is_ending = any(stat.is_killed for stat in (*stats, *([own] if own else [])))
        if self._is_let_go or (stats and not is_ending):
            self._resume(task)

    def _running_stats(self) -> list[Stat]:
        """Look at the threads that have not come to their exit; SIGKILL makes some end without."""
        found = []
        for task in tuple(self._running):
            stat = read_stat(self._pid, task)
            if stat is None or stat.is_dead:
                self._running.discard(task)
            else:
                found.append(stat)
        return found

    def _resume(self, task: int) -> None:
        self._exiting.discard(task)
        with suppress(ProcessLookupError):
            _ptrace(_CONT, task)

    def relent(self) -> None:
        """Let threads go that a live one waits for: it execs, or dumps core, and does not come to its exit before."""
        if not self._exiting or not self._running:
            return
        held_seconds = time.monotonic() - self._held_since
        is_waited_for = any(stat.state in "DS" and not stat.is_killed for stat in self._running_stats())
        if held_seconds > _STOP_SECONDS or (held_seconds > _HOLD_SECONDS and is_waited_for):
            for task in tuple(self._exiting):
                self._resume(task)

    def forget(self, task: int) -> None:
        """Take note that a thread is gone."""
        for tasks in (self._running, self._stopped, self._exiting):
            tasks.discard(task)

    def let_go(self) -> None:
        """Let all threads exit that are held, and hold none any more."""
        self._is_let_go = True
        for task in tuple(self._exiting):
            self._resume(task)


# --- what tells the moment --------------------------------------------------------------------------------------------


class _Calm:
    """Watches private memory until it keeps still."""

    def __init__(self) -> None:
        self._size_bytes = -1
        self._since = 0.0
        self._next_look = 0.0

    def is_calm(self, task: int) -> bool:
        """Look at a process, but not too often, and tell whether its memory has kept still for long enough."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        size_bytes = _private_bytes(task)
        # The kernel walks all pages to tell: a large process is not to be slowed down by the question.
        self._next_look = now + max(_LOOK_SECONDS, 4 * (time.monotonic() - now))
        slack_bytes = max(os.sysconf("SC_PAGE_SIZE"), self._size_bytes * _QUIET_SHARE)
        if size_bytes is None or abs(size_bytes - self._size_bytes) > slack_bytes:
            self._size_bytes = -1 if size_bytes is None else size_bytes
            self._since = now
        return now - self._since >= _QUIET_SECONDS


class _Lines:
    """Passes on what a program prints, and looks for a line."""

    def __init__(self, pattern: re.Pattern[bytes] | None) -> None:
        self._pattern = pattern
        self._rests: dict[int, bytes] = {}
        self._fed_at = math.inf
        self._is_found = False

    def feed(self, descriptor: int) -> bool:
        """Read a piece of output; False at its end."""
        try:
            piece = os.read(descriptor, _MOST_LINE_BYTES)
        except BlockingIOError:
            return True
        _pass_on(piece)
        self._fed_at = time.monotonic()
        if self._pattern is not None and not self._is_found:
            *lines, rest = (self._rests.get(descriptor, b"") + piece).split(b"\n")
            if len(rest) > _MOST_LINE_BYTES:
                lines.append(rest)
                rest = b""
            self._rests[descriptor] = rest
            self._look_at(lines)
        return bool(piece)

    def is_found(self) -> bool:
        """Tell whether a line was found; one without an end counts when nothing has followed it for a while."""
        if time.monotonic() - self._fed_at >= _PROMPT_SECONDS:
            self._look_at(rest for rest in self._rests.values() if rest)
            self._fed_at = math.inf
        return self._is_found

    def _look_at(self, lines: Iterable[bytes]) -> None:
        pattern = self._pattern
        if pattern is not None and any(pattern.search(line.removesuffix(b"\r")) for line in lines):
            self._is_found = True
            self._rests.clear()


def _pass_on(piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        try:
            rest = rest[os.write(2, rest) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(2, select.POLLOUT)
            poll.poll()
        except OSError:
            # Nobody reads it: the program runs on all the same.
            return


# --- the program ------------------------------------------------------------------------------------------------------


class _Program:
    """A program from its start to its end. Left in any way, nothing of it stays behind."""

    def __init__(self, command: Sequence[str], moment: Moment, *, adopts: bool) -> None:
        self.pid = 0
        self.notes: list[Note] = []
        self.ending: tuple[int | None, str | None] = (None, None)
        self._command = command
        self._name = command[0]
        self._moment = moment
        self._adopts = adopts
        self._traced = _Traced(0)
        self._calm = _Calm()
        self._lines = _Lines(moment.pattern)
        self._poll = select.poll()
        self._readers: dict[int, Callable[[int], bool]] = {}
        self._gate = -1
        self._mask: set[int] | None = None
        self._interrupts: set[int] = set()
        self._started_at: float | None = None
        self._pause_seconds = 0.001
        self._members: dict[int, int] = {}
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
            # Where ending it was interrupted, it is ended at once, and nothing interrupts that.
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
        """Let interrupts come: where they come at any place, they cut in two what belongs together."""
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._interrupts)
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, self._interrupts)

    @property
    def is_at_exit(self) -> bool:
        """Whether it is held at its exit."""
        return self._traced.is_exiting and self._started_at is not None

    # --- starting

    def start(self) -> None:
        """Start it; it is traced from its first instruction on, where that is allowed.

        Raises:
            AccessError: Where its exit is the moment and cannot be caught.
            OSError: Where there can be no new process.
        """
        self._mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()))
        self._interrupts = set[int]((signal.SIGINT, *_ENDING)) - self._mask
        _fill_standard_descriptors()
        opening, self._gate = os.pipe()
        errors, errors_end = os.pipe()
        outputs, ends = self._output_pipes()
        try:
            self._fork(opening, errors_end, ends, self._mask)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask | self._interrupts | {signal.SIGCHLD})
            for descriptor in {opening, errors_end, *ends} - {2}:
                os.close(descriptor)
            self._listen_to(errors, self._on_start)
            for descriptor in outputs:
                os.set_blocking(descriptor, False)
                self._listen_to(descriptor, self._lines.feed)
        self._listen_to(_signal_descriptor(signal.SIGCHLD), _empty)
        self._traced = _Traced(self.pid)
        try:
            self._traced.seize()
        except OSError as error:
            if self._moment.when is When.EXIT:
                cause = f"its exit cannot be caught (ptrace: {error.strerror}): take it when settled, or after a time"
                raise AccessError(self._name, cause) from error
        with suppress(BrokenPipeError):
            os.write(self._gate, b"\n")

    def _output_pipes(self) -> tuple[list[int], tuple[int, int]]:
        """Give where we read its output, and where it writes standard output and error."""
        if self._moment.pattern is not None:
            (output, output_end), (error, error_end) = os.pipe(), os.pipe()
            return [output, error], (output_end, error_end)
        return [], (2, 2)

    def _fork(self, opening: int, errors: int, outputs: tuple[int, int], mask: set[int]) -> None:
        with warnings.catch_warnings():
            # Python warns of threads that hold locks: the new process runs a few system calls, then the program.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            os.close(self._gate)
            _become(self._command, opening, errors, outputs, mask)
        self.pid = pid

    def _listen_to(self, descriptor: int, reader: Callable[[int], bool]) -> None:
        self._readers[descriptor] = reader
        self._poll.register(descriptor, select.POLLIN)

    def _on_start(self, errors: int) -> bool:
        """Read what the new process says: nothing where it has become the program, else why not."""
        said = os.read(errors, 64)
        if said:
            cause = os.strerror(int(said)) if said.isdigit() else "interrupted"
            raise AccessError(self._name, f"it cannot be started: {cause}")
        if self._started_at is None:
            self._started_at = time.monotonic()
        return False

    # --- what happens meanwhile

    def _turn(self, seconds: float) -> None:
        """Wait for something to happen, not longer than that, and deal with it."""
        with self.interruptible():
            ready = self._poll.poll(math.ceil(seconds * 1000))
        for descriptor, _ in ready:
            if not self._readers[descriptor](descriptor):
                self._poll.unregister(descriptor)
                del self._readers[descriptor]
                os.close(descriptor)
        # Beside the main thread no signal tells of news: then they are asked for, often while there are many.
        self._pause_seconds = 0.001 if self._collect() else min(2 * self._pause_seconds, _TURN_SECONDS)
        self._traced.relent()

    def _collect(self) -> bool:
        """Ask which of its threads have stopped or ended, and tell whether any has."""
        # Any child is asked for only where all are its. Else its process group, in which it is for good once it runs.
        whom = -1 if self._adopts else self.pid if self._started_at is None else -self.pid
        for turn in range(_MOST_NEWS):
            try:
                task, status = os.waitpid(whom, os.WNOHANG | _WALL)
            except ChildProcessError:
                self._is_gone = True
                return turn > 0
            if task == 0:
                return turn > 0
            if os.WIFSTOPPED(status):
                self._traced.on_stop(task, status)
                continue
            self._traced.forget(task)
            if task == self.pid:
                self._is_gone = True
                code = os.waitstatus_to_exitcode(status)
                self.ending = (code, None) if code >= 0 else (None, _signal_name(-code))
        return True

    # --- the moment

    def reach_moment(self, *, has_family: bool) -> None:
        """Wait for the moment, and make everything stand still that is to be read.

        Raises:
            AccessError: Where it cannot be started, or ends without being seen.
        """
        is_due = False
        while not self.is_at_exit and not is_due:
            self._turn(self._pause_seconds)
            self._fail_if_gone()
            is_due = self._is_due()
        if not is_due and self._moment.when is not When.EXIT:
            detail = f"it ended before the moment asked for ({_moment_text(self._moment)}): taken at its exit"
            self.notes.append(Note("moment-not-reached", self._name, detail))
        if has_family or not self.is_at_exit:
            self._stop()
        if self.is_at_exit:
            self._await_ended_threads()
            self._note_peak()

    def _fail_if_gone(self) -> None:
        """Say why there is nothing to read."""
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
        if when is When.SETTLED and self._calm.is_calm(self._traced.task):
            return True
        if time.monotonic() - self._started_at < self._moment.seconds:
            return False
        if when is not When.TIME:
            what = "its private memory still changed" if when is When.SETTLED else "no line of its output had matched"
            detail = f"{what} {self._moment.seconds:g} s after its start: taken then"
            self.notes.append(Note("moment-not-reached", self._name, detail))
        return True

    def _await_ended_threads(self) -> None:
        """Wait for threads that had ended before and are still counted, so that all starts count alike."""
        patience_end = time.monotonic() + _HOLD_SECONDS
        while self._traced.has_ended_threads and time.monotonic() < patience_end:
            self._turn(self._pause_seconds)

    def _note_peak(self) -> None:
        """Say where it held much more before: some programs clear up all they have when they end."""
        task = self._traced.task
        status = _sizes(task, "status")
        peak_bytes = status.get(b"VmHWM", 0)
        now_bytes = _sizes(task, "smaps_rollup").get(b"Rss", status.get(b"VmRSS", 0))
        if peak_bytes - now_bytes > max(_PEAK_BYTES, now_bytes // 10):
            sizes = f"{format_bytes(peak_bytes)} of it were resident at the peak, {format_bytes(now_bytes)} at its exit"
            detail = f"{sizes}: what it gave back is not in the figures; take it earlier"
            self.notes.append(Note("freed-before-exit", self._name, detail))

    def _stop(self) -> None:
        """Stop all processes, so that what is read is of one moment; one held at its exit stands still anyway."""
        patience_end = time.monotonic() + _STOP_SECONDS
        asked: set[int] = set()
        while moving := {pid: stat.parent_pid for pid, stat in self._alive().items() if not self._stands_still(pid)}:
            if time.monotonic() > patience_end:
                detail = f"{len(moving)} of its processes did not stop: their figures may be blurred"
                self.notes.append(Note("not-stopped", self._name, detail))
                return
            # One that waits for its child to exec (vfork) stops after that: a child is stopped after its parent.
            ready = {pid for pid, parent in moving.items() if parent not in moving} - asked
            for pid in ready:
                _send(pid, signal.SIGSTOP)
            asked |= ready
            self._turn(self._pause_seconds)
            self._fail_if_gone()

    def _stands_still(self, pid: int) -> bool:
        if pid == self.pid and self._traced.has_any:
            return self._traced.is_still
        return stands_still(pid)

    def tasks(self, *, has_family: bool) -> tuple[int, ...]:
        """Give the numbers to read under /proc: its own first, then, if asked, those of all that it started."""
        if not has_family:
            return (self._traced.task,)
        alive = self._alive()
        family = sorted((pid for pid in alive if pid != self.pid), key=lambda pid: (alive[pid].start_ticks, pid))
        return (self._traced.task, *family)

    def _alive(self) -> dict[int, Stat]:
        """Give the processes that run: it, its session, and all descendants of those ever seen."""
        table = processes()
        own = {pid for pid, ticks in self._members.items() if pid in table and table[pid].start_ticks == ticks}
        own.update(pid for pid, stat in table.items() if stat.session == self.pid)
        if not self._is_gone:
            own.add(self.pid)
        parents = own | {os.getpid()} if self._adopts else set(own)
        while found := {pid for pid, stat in table.items() if stat.parent_pid in parents} - own:
            own |= found
            parents |= found
        self._members = {pid: table[pid].start_ticks for pid in own if pid in table}
        return {pid: table[pid] for pid in self._members if table[pid].state not in "ZX"}

    # --- its end

    def end(self) -> None:
        """End it, and all that it started; one that is at its exit ends by itself."""
        self._is_ending = True
        if self._gate >= 0:
            os.close(self._gate)
            self._gate = -1
        self._alive()
        is_at_exit = self.is_at_exit
        self._traced.let_go()
        patience_end = time.monotonic() + _TERM_SECONDS
        while is_at_exit and not self._is_gone and time.monotonic() < patience_end:
            self._turn(_TURN_SECONDS)
        if not self._end_by(signal.SIGTERM, _TERM_SECONDS) and not self._end_by(signal.SIGKILL, _KILL_SECONDS):
            pids = ", ".join(map(str, sorted(self._alive())))
            self.notes.append(Note("left-behind", self._name, f"processes that could not be ended: {pids}"))
        self._reap()
        self._has_ended = True

    def _end_by(self, number: signal.Signals, patience_seconds: float) -> bool:
        """Send a signal to all its processes, and tell whether they ended by it."""
        patience_end = time.monotonic() + patience_seconds
        asked: set[int] = set()
        self._traced.let_go()
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
        """Take note of the last ends: the program's own, and those of adopted orphans; pass on what is unread."""
        patience_end = time.monotonic() + _TERM_SECONDS
        while time.monotonic() < patience_end:
            with suppress(AccessError):
                self._turn(0)
            if self._is_gone and not (self._adopts and _has_children()):
                break
            time.sleep(0.001)
        outputs = {descriptor for descriptor, reader in self._readers.items() if reader == self._lines.feed}
        while any(ready in outputs for ready, _ in self._poll.poll(0)) and time.monotonic() < patience_end:
            self._turn(0)


def _fill_standard_descriptors() -> None:
    """Open what is closed of input, output and error, or a pipe of ours would be taken for it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


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
    return "its memory settled" if moment.when is When.SETTLED else "a matching line of output"


def _become(command: Sequence[str], opening: int, errors: int, outputs: tuple[int, int], mask: set[int]) -> NoReturn:
    """Turn the new process into the program when the gate opens; where that fails, tell why."""
    try:
        os.setsid()
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        # Python ignores these, and a program would inherit that.
        for name in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        if os.read(opening, 1):
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.execvp(command[0], list(command))  # noqa: S606 # this verb's purpose is to run it
    except OSError as error:
        os.write(errors, str(error.errno).encode())
    except BaseException:  # noqa: BLE001 # nothing of the parent's may run here
        os.write(errors, b"?")
    finally:
        os._exit(127)
