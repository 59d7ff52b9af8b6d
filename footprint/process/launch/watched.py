"""A program that is looked at from its start to its end."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from footprint.errors import AccessError
from footprint.process.launch.moment import Ending, Moment, When
from footprint.process.launch.own_process import adopting, interrupted_by_signals
from footprint.process.launch.program import LaunchedProgram, Onlooker, check_words


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
