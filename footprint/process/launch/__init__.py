"""Starting a program, holding it still at a chosen moment, and ending it with all that it started.

Source: ptrace(2), waitpid(2), signalfd(2), PR_SET_CHILD_SUBREAPER(2const).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from footprint.errors import AccessError, Note, UsageError
from footprint.process.launch.moment import Moment, When
from footprint.process.launch.own_process import adopting, interrupted_by_signals
from footprint.process.launch.program import Program
from footprint.process.launch.streams import Streams

__all__ = ("Moment", "Streams", "Taken", "When", "interrupted_by_signals", "launch")

T = TypeVar("T")


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
    command: Sequence[str],
    moment: Moment,
    read: Callable[[tuple[int, ...]], T],
    *,
    has_family: bool = False,
    executable: str | None = None,
    streams: Streams | None = None,
) -> Taken[T]:
    """Start a program, read it at a moment while it stands still, and end it.

    It runs in a session of its own and has our standard input; what it prints goes to our standard error, unless it is
    given streams of its own. In the end its whole session and all descendants get SIGTERM, after 3 seconds SIGKILL; so
    they do on any error.

    Args:
        command: The program and its arguments.
        moment: When to read it. Where it ends before, it is read at its exit, and a note says so.
        read: Called with the numbers under /proc to read: first the program's, then, each stopped, its descendants'.
        has_family: Whether to give the descendants too.
        executable: The file to run under the name that the first word is; None for the one that this word names.
        streams: What it reads, and who gets what it prints.

    Raises:
        AccessError: Where it cannot be started, or ends without being seen.
        UsageError: Where the words are no command.
    """
    if not command or not command[0]:
        raise UsageError("say which program to run")
    if any("\0" in word for word in command):
        raise UsageError("a word of a command cannot have a null byte")
    with (
        interrupted_by_signals(),
        adopting() as adopts,
        Program(command, moment, adopts=adopts, executable=executable, streams=streams) as program,
    ):
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
