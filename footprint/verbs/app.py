"""The verbs put together into one command."""

import importlib
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.main import get_command

from footprint import __version__

__all__ = ("VERBS", "app", "register", "run")

_EPILOG = (
    "Exit codes: 0 fine, 1 findings or a budget exceeded, 2 wrong use, 3 an input that cannot be read, "
    "4 a partial answer under --strict."
)

app = typer.Typer(
    name="footprint",
    help="Where the memory of a Linux process goes, and what N of them cost.",
    epilog=_EPILOG,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
# In the order of the help. Only the module of the verb that is asked for is imported, and only its options are built.
VERBS = (
    "audit",
    "run",
    "whatif",
    "symbols",
    "libraries",
    "duplicates",
    "maps",
    "heap",
    "project",
    "diff",
    "check",
    "record",
    "trend",
    "capture",
    "explain",
    "doctor",
)


def register(verbs: Sequence[str]) -> None:
    """Give the command some of its verbs."""
    for verb in verbs:
        # What stands after the program that is run is its own: its options are not looked at.
        settings = {"allow_interspersed_args": False} if verb in {"run", "whatif"} else None
        function = getattr(importlib.import_module(f"footprint.verbs.{verb}.command"), verb)
        app.command(verb, context_settings=settings)(function)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"footprint {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version, and exit.")
    ] = False,
) -> None:
    pass


def run(words: Sequence[str]) -> int:
    """Run the command on its words and give its exit code."""
    asked = [word for word in words[:1] if word in VERBS]
    app.registered_commands.clear()
    register(asked or VERBS)
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
        error.show()
        return int(error.exit_code)
    return code if isinstance(code, int) else 0
