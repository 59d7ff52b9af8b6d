"""Start a program, stop it at a chosen moment or look at it to its end, and end it with all its descendants.

Source: ptrace(2), waitpid(2), signalfd(2), PR_SET_CHILD_SUBREAPER(2const).
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from footprint.errors import AccessError, InputError
from footprint.process.launch.moment import Ending, Moment, Streams, When
from footprint.process.launch.own_process import adopting, go_on_where, interrupted_by_signals
from footprint.process.launch.peak import PeakWatch
from footprint.process.launch.program import LaunchedProgram, Onlooker, check_words

if TYPE_CHECKING:
    from footprint.process.cgroup import MemoryGroup


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken(Ending, Generic[T]):
    """The answer of the reader for a program, and how the program ended.

    Attributes:
        pid: The process ID of the program.
        answer: The answer of the reader.
        when: The actual moment of the read.
    """

    pid: int
    answer: T
    when: When


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
    check_words(command, "run")
    with ExitStack() as opened:
        opened.enter_context(interrupted_by_signals())
        watch = _watch(opened, moment) if has_peak else None
        if watch is not None:
            # systemd sends SIGTERM to a unit of which the kernel has killed a process: the answer is of use even so.
            go_on_where(lambda: watch.killed_at() is not None)
        at_brink: list[tuple[T, int]] = []

        adopts = opened.enter_context(adopting())
        program = opened.enter_context(
            LaunchedProgram(
                command,
                moment,
                adopts=adopts,
                executable=executable,
                streams=streams,
                watch=watch,
                follows=has_family,
                read_at_brink=partial(_keep_reading, read, watch, at_brink),
            )
        )
        try:
            program.start()
        except OSError as error:
            raise AccessError(command[0], f"it cannot be started: {error.strerror}") from error
        killed_at = _reach_moment(program, watch, at_brink, has_family=has_family)
        if killed_at is not None and at_brink:
            when, (answer, read_at_bytes), spent = When.PEAK, at_brink[0], None
        else:
            when = When.EXIT if program.is_at_exit else moment.when
            read_at_bytes = 0 if watch is None else watch.now_bytes
            tasks, spent = program.tasks(has_family=has_family), program.spent
            with program.interruptible():
                answer = read(tasks)
        crashes = program.crashes
        program.end()
        code, name = program.ending if when is When.EXIT or killed_at is not None else (None, None)
        peak = None if watch is None else watch.result(program.most_resident_bytes)
        ending = (code, name, tuple(program.notes), peak, read_at_bytes, crashes, killed_at, spent)
        return Taken(*ending, pid=program.pid, answer=answer, when=when)


def _keep_reading(
    read: Callable[[tuple[int, ...]], T],
    watch: PeakWatch | None,
    kept: list[tuple[T, int]],
    tasks: tuple[int, ...],
) -> None:
    """Read a program that is about to meet a limit, and keep the answer with what it and its descendants held."""
    with suppress(AccessError, InputError):
        kept.append((read(tasks), 0 if watch is None else watch.now_bytes))


def _reach_moment(
    program: LaunchedProgram, watch: PeakWatch | None, at_brink: Sequence[object], *, has_family: bool
) -> str | None:
    """Wait for the moment; return the limit at which the kernel killed a process for want of memory, or None.

    Raises:
        AccessError: Where the program ended before anyone could read it.
    """
    try:
        program.reach_moment(has_family=has_family)
    except AccessError as error:
        killed_at = None if watch is None else watch.killed_at()
        if killed_at is not None and not at_brink:
            detail = f"the kernel killed it for want of memory ({killed_at}) before its memory could be read"
            raise AccessError(error.subject, detail) from error
        if killed_at is None:
            raise
        return killed_at
    return None if watch is None else watch.killed_at()


def _watch(opened: ExitStack, moment: Moment) -> PeakWatch:
    from footprint.process.cgroup import read_room  # noqa: PLC0415 # only a peak needs it

    group = group_with_limits(opened)
    return PeakWatch(group, moment.peak_bytes if moment.is_held else None, read_room(group))


def group_with_limits(opened: ExitStack) -> "MemoryGroup | None":
    """Make a memory cgroup with the limits of our own, where we may, and leave its removal to the stack."""
    from footprint.process.cgroup import make_group  # noqa: PLC0415 # only a peak needs it

    try:
        return opened.enter_context(make_group(keeps_limits=True))
    except AccessError:
        return None


def watch_program(
    command: Sequence[str],
    onlooker: Onlooker,
    read_at_end: Callable[[], None],
    *,
    most_seconds: float,
    follows: bool,
) -> Ending:
    """Start a program, and look at it until it ends, or until an interrupt; what it leaves behind is ended.

    It runs in a session of its own with our standard input, and its output goes to our standard error.

    Args:
        command: The program and its arguments.
        onlooker: What looks at it.
        read_at_end: Called while it is stopped at its exit, or when the time is over: its memory can be read.
        most_seconds: After how long it is ended.
        follows: Whether its descendants are traced, so that the onlooker sees each of them at its exit.

    Raises:
        AccessError: Where it cannot be started.
        UsageError: Where the command is empty or has a null byte.
    """
    check_words(command, "watch")
    moment = Moment(When.TIME, most_seconds)
    has_started = False
    with interrupted_by_signals(), adopting() as adopts:
        program = LaunchedProgram(command, moment, adopts=adopts, watch=onlooker, follows=follows)
        with program:
            try:
                program.start()
                with suppress(KeyboardInterrupt):
                    program.reach_moment(has_family=False)
                has_started = True
                with program.interruptible():
                    read_at_end()
            except OSError as error:
                raise AccessError(command[0], f"it cannot be started: {error.strerror}") from error
            except AccessError:
                # Without ptrace it may have ended before anybody looked: then what was seen before is all there is.
                if program.ending == (None, None):
                    raise
            is_at_exit = program.is_at_exit or not has_started
            program.end()
            code, name = program.ending if is_at_exit else (None, None)
            notes = tuple(note for note in program.notes if note.slug != "moment-not-reached")
            return Ending(exit_code=code, signal=name, notes=notes)
