"""The verbs put together into one command."""

import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.main import get_command

from footprint import __version__, verbs
from footprint.errors import UsageError
from footprint.verbs.options import confined_command, limited_command

__all__ = ("app", "register", "run", "verb_names")

_EPILOG = (
    "Exit codes: 0 fine, 1 findings or a budget exceeded, 2 wrong use, 3 an input that cannot be read, "
    "4 a partial answer under --strict, 70 a defect of footprint."
)

EXIT_WRONG_USE = 2  # as with Typer: nothing was asked

app = typer.Typer(
    name="footprint",
    help="Where the memory of a Linux process goes, and what N of them cost.",
    epilog=_EPILOG,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)


def verb_names() -> list[str]:
    """Return the verbs: the packages beside this module that have a command."""
    from pkgutil import iter_modules  # only for the list of all verbs

    return sorted(one.name for one in iter_modules(verbs.__path__) if one.ispkg and _is_verb(one.name))


def _is_verb(word: str) -> bool:
    try:
        return word.isidentifier() and find_spec(f"footprint.verbs.{word}.command") is not None
    except ModuleNotFoundError:
        return False


def register(names: Iterable[str]) -> list[str]:
    """Add some verbs to the command, and return them in the order of the help.

    The module `command` of a verb has a function of the verb's name, `ORDER`, its place in the help, and `HAS_COMMAND`
    if a command of the user's follows, whose options are its own; `NEEDS_RIGHTS` if it does more than to read and to
    write its answer; and `SHARES_TERMINAL` if something else is drawn on the terminal meanwhile.
    """
    modules = {verb: import_module(f"footprint.verbs.{verb}.command") for verb in names}
    ordered = sorted(modules, key=lambda verb: (modules[verb].ORDER, verb))
    for verb in ordered:
        module = modules[verb]
        settings = {"allow_interspersed_args": False} if getattr(module, "HAS_COMMAND", False) else None
        command = limited_command(getattr(module, verb), shares_terminal=getattr(module, "SHARES_TERMINAL", False))
        if not getattr(module, "NEEDS_RIGHTS", False):
            command = confined_command(command)
        app.command(verb, context_settings=settings)(command)
    return ordered


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"footprint {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version, and exit.")
    ] = False,
    # `footprint.cli` reads it: it must hold while verbs are imported, too.
    _debug: Annotated[bool, typer.Option("--debug", help="As the first word: show where an error arose.")] = False,
) -> None:
    pass


def run(words: Sequence[str]) -> int:
    """Run the command on its words, and return its exit code. Without words, show what can be asked here.

    If the first word is a verb, only its module is imported, and only its options are built.
    """
    if not words:
        from footprint.verbs.welcome import machine

        typer.echo(machine(), nl=False)
        return EXIT_WRONG_USE
    words = _with_verb(words)
    asked = [word for word in words[:1] if _is_verb(word)]
    app.registered_commands.clear()
    register(asked or verb_names())
    try:
        code = get_command(app).main(list(words), prog_name="footprint", standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        return 130
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            # Typer makes an ordinary failure of it.
            raise stop.__context__ from None
        raise
    except typer.BadParameter.__mro__[2] as error:  # type: ignore[misc] # ClickException, which Typer does not export
        _correct(error)
        error.show()
        return int(error.exit_code)
    return code if isinstance(code, int) else 0


def _correct(error: Any) -> None:  # noqa: ANN401 # NoSuchOption, which Typer does not export
    """Name the option that is meant among those that are alike."""
    if getattr(error, "possibilities", None):
        from difflib import get_close_matches  # only for a mistake

        (nearest,) = get_close_matches(error.option_name, error.possibilities, 1, 0)
        error.message += f". Did you mean '{nearest}'?"
        error.possibilities = None


def _with_verb(words: Sequence[str]) -> Sequence[str]:
    """Return the words with the verb that is meant where a target, or `help`, is the first of them.

    Raises:
        UsageError: If the first word is a program in PATH.
    """
    first, *rest = words
    if _is_verb(first) or (first.startswith("-") and first != "-"):
        return words
    if first == "help":
        return [*rest[:1], "-h"]
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
