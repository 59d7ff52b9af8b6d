"""Start a program, stop it at a chosen moment, and end it with all its descendants.

Source: ptrace(2), waitpid(2), signalfd(2), PR_SET_CHILD_SUBREAPER(2const).
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from footprint.errors import AccessError, Note, UsageError
from footprint.model.peak import Peak
from footprint.process.launch.moment import Moment, When
from footprint.process.launch.own_process import adopting, interrupted_by_signals
from footprint.process.launch.peak import PeakWatch
from footprint.process.launch.program import LaunchedProgram
from footprint.process.launch.streams import Streams

if TYPE_CHECKING:
    from footprint.process.cgroup import MemoryGroup

__all__ = ("Moment", "Streams", "Taken", "When", "interrupted_by_signals", "launch")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Taken(Generic[T]):
    """The answer of the reader for a program, and how the program ended.

    Attributes:
        pid: The process ID of the program.
        answer: The answer of the reader.
        when: The actual moment of the read.
        exit_code: The exit code; None where a signal or footprint ended the program.
        signal: The name of the signal that ended it; None where it exited or footprint ended it.
        notes: Problems on the way.
        peak: The peak of it and its descendants until the read; None where nobody asked for it.
        read_at_bytes: What they held when they were read, as the peak counts it.
        crashes: How descendants crashed until then, where they are read, too.
    """

    pid: int
    answer: T
    when: When
    exit_code: int | None
    signal: str | None
    notes: tuple[Note, ...]
    peak: Peak | None = None
    read_at_bytes: int = 0
    crashes: tuple[str, ...] = ()


def launch(
    command: Sequence[str],
    moment: Moment,
    read: Callable[[tuple[int, ...]], T],
    *,
    has_family: bool = False,
    executable: str | None = None,
    streams: Streams | None = None,
    has_peak: bool = False,
) -> Taken[T]:
    """Start a program, read it at a moment while it is stopped, and end it.

    It runs in a session of its own with our standard input, and its output goes to our standard error, unless it has
    streams of its own. In the end, also after an error, its session and all descendants get SIGTERM, and SIGKILL after
    3 seconds, or those of the moment.

    Args:
        command: The program and its arguments.
        moment: When to read it. Where it ends before that, it is read at its exit, and a note says so.
        read: Called with the task IDs to read in /proc: the program first, then its descendants, all stopped.
        has_family: Whether to read the descendants, too.
        executable: The file to run with the first word as its argv[0]; None for the file that this word names.
        streams: Its input, and the receivers of its output.
        has_peak: Whether to look for the peak of its memory, and that of its descendants, in a memory cgroup of their
            own where one can be made.

    Raises:
        AccessError: Where the program cannot be started, or ends before we can read it.
        UsageError: Where the command is empty or has a null byte.
    """
    if not command or not command[0]:
        raise UsageError("say which program to run")
    if any("\0" in word for word in command):
        raise UsageError("a word of a command cannot have a null byte")
    with ExitStack() as opened:
        opened.enter_context(interrupted_by_signals())
        watch = PeakWatch(_group(opened), moment.peak_bytes if moment.is_held else None) if has_peak else None
        adopts = opened.enter_context(adopting())
        program = LaunchedProgram(
            command,
            moment,
            adopts=adopts,
            executable=executable,
            streams=streams,
            watch=watch,
            follows=has_family,
        )
        opened.enter_context(program)
        try:
            program.start()
        except OSError as error:
            raise AccessError(command[0], f"it cannot be started: {error.strerror}") from error
        program.reach_moment(has_family=has_family)
        when = When.EXIT if program.is_at_exit else moment.when
        read_at_bytes = 0 if watch is None else watch.now_bytes
        tasks = program.tasks(has_family=has_family)
        with program.interruptible():
            answer = read(tasks)
        crashes = program.crashes
        program.end()
        code, name = program.ending if when is When.EXIT else (None, None)
        peak = None if watch is None else watch.result(program.most_resident_bytes)
        return Taken(program.pid, answer, when, code, name, tuple(program.notes), peak, read_at_bytes, crashes)


def _group(opened: ExitStack) -> "MemoryGroup | None":
    """Make a memory cgroup with the limits of our own, where we may, and leave its removal to the stack."""
    from footprint.process.cgroup import make_group  # noqa: PLC0415 # only a peak needs it

    try:
        return opened.enter_context(make_group(keeps_limits=True))
    except AccessError:
        return None
