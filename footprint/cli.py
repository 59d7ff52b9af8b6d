"""The command line: options, files, exit codes. What the answers are is decided elsewhere."""

import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context

from footprint import __version__
from footprint.errors import FootprintError, UsageError

EXIT_WRONG_USE = 2  # as with Typer: nothing was asked
EXIT_UNREADABLE = 3
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
_HELP_COLUMNS = 80

# A word that asked for what an option of another verb asks for now.
_FORMER = {"init": "check --init", "maps": "audit --by mapping", "project": "audit -n N", "record": "trend --add"}

# Errors of the system, wherever they come up: too many open files, a full disk, a device that fails.
_OF_SYSTEM = {errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG, errno.ENOMEM}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code.

    0 is fine, 1 findings or a budget exceeded, 2 wrong use, 3 an input that cannot be read, 4 a partial answer under
    `--strict`, 5 a program that failed while it was run, 70 a defect of footprint, 130 an interrupt, 141 a broken pipe.
    """
    # One answer, then the end: looking for cycles among a million facts that all live on only costs time.
    if arguments is None:
        gc.disable()
    words = list(sys.argv[1:] if arguments is None else arguments)
    has_traceback = words[:1] == ["--debug"]
    try:
        if words == ["--version"]:
            # Asked by scripts, often: nothing else is imported for it.
            print(f"footprint {__version__}", flush=True)  # noqa: T201 # the answer itself
            return 0
        if words[-1:] in (["-h"], ["--help"]) and (text := _written_help(words[:-1])):
            print(text, end="", flush=True)  # noqa: T201 # the answer itself
            return 0
        # The roots that a command enters are left at its end.
        return copy_context().run(run, words[has_traceback:])
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has left.
        _discard_output()
        return EXIT_BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 # the last place where an error becomes a line and an exit code
        return _report(error, has_traceback=has_traceback)
    finally:
        if arguments is None and "duckdb" not in sys.modules:
            # Nor is there anything to look for among them at exit. DuckDB warns of what is not collected there.
            gc.freeze()


def run(words: Sequence[str]) -> int:
    """Run the command on its words, and return its exit code. Without words, show what can be asked here.

    If the first word is a verb, only its module is imported. Typer is imported only for help and for mistakes.
    """
    from footprint.verbs.commands import command_of, has_command, is_verb, parameters_of, read_words

    if not words:
        from footprint.verbs.welcome import machine

        print(machine(), end="")  # noqa: T201 # nothing where standard output is closed
        return EXIT_WRONG_USE
    verb, *rest = words = _with_verb(words)
    if is_verb(verb):
        command = command_of(verb)
        values = read_words(parameters_of(command), rest, is_interspersed=not has_command(verb))
        if values is not None:
            return command(**values) or 0
    from footprint.verbs.typer_app import run_typer

    return run_typer(words)


def _with_verb(words: Sequence[str]) -> Sequence[str]:
    """Return the words with the verb that is meant where a target, or `help`, is the first of them.

    Raises:
        UsageError: If the first word is a program in PATH, or a former verb.
    """
    from footprint.verbs.commands import is_verb, verb_names

    first, *rest = words
    if first == "help":
        words = [*rest[:1], "-h"]
        first = words[0]
    if is_verb(first) or (first.startswith("-") and first != "-"):
        return words
    if first in _FORMER:
        raise UsageError(f"no command is called {first}: `footprint {_FORMER[first]}` does it")
    if first.isdigit() or "/" in first or first == "-" or os.path.exists(first):
        return ["audit", *words]
    if first == "version":
        return ["--version"]
    if begun := [verb for verb in verb_names() if verb.startswith(first)]:
        raise UsageError(f"no command is called {first}; did you mean {' or '.join(begun)}?")
    from difflib import get_close_matches  # only for a mistake
    from shutil import which

    if not get_close_matches(first, verb_names(), 1) and (program := which(first)) is not None:
        raise UsageError(
            f"no command is called {first}: `footprint {program}` audits this program, "
            f"`footprint audit --name {first}` its processes"
        )
    return words


def _written_help(words: list[str]) -> str | None:
    """Return the help that `make shell` has written of the command or of a verb; None for another, or a narrow screen.

    To have Typer write it takes five times the instructions.
    """
    from shutil import get_terminal_size

    if get_terminal_size().columns < _HELP_COLUMNS or len(words) > 1 or "" in words:
        return None
    # Also from a zip file.
    path = os.path.join(os.path.dirname(__file__), "verbs", "help.txt")
    texts = __spec__.loader.get_data(path).decode().split("\f")  # type: ignore[union-attr] # loaders of files have it
    heading = f"{''.join(words)}\n"
    return next((text.removeprefix(heading) for text in texts if text.startswith(heading)), None)


def _report(error: Exception, *, has_traceback: bool) -> int:
    """Write an error as one line, and return its exit code."""
    from footprint.text.escape import printable

    if isinstance(error, FootprintError):
        code, text = EXIT_WRONG_USE if isinstance(error, UsageError) else EXIT_UNREADABLE, str(error)
    elif isinstance(error, ImportError) and error.name == "_ctypes":
        code, text = EXIT_UNREADABLE, "this Python was built without _ctypes, through which footprint calls the kernel"
    elif isinstance(error, MemoryError):
        code, text = EXIT_UNREADABLE, "there is not enough memory for the answer"
    elif isinstance(error, OSError) and error.errno in _OF_SYSTEM:
        code, text = EXIT_UNREADABLE, f"{error.filename or 'the system refuses'}: {error.strerror}"
        try:
            sys.stdout.flush()
        except OSError:
            _discard_output()
    else:
        from traceback import format_exception_only

        kind = "".join(format_exception_only(error)).strip()
        code, text = EXIT_INTERNAL, f"a defect of footprint: {kind}; `footprint --debug ...` shows where"
    with suppress(OSError):
        if has_traceback:
            from traceback import print_exception

            print_exception(error)
        print(f"footprint: {printable(text)}", file=sys.stderr)  # noqa: T201 # errors go to stderr
    return code


def _discard_output() -> None:
    """Discard what standard output does not take: Python would complain once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
