"""The verbs put together into one command."""

from collections.abc import Sequence
from typing import Annotated

import typer
from typer.main import get_command

from footprint import __version__
from footprint.cli.audit import audit
from footprint.cli.capture import capture
from footprint.cli.doctor import doctor
from footprint.cli.maps import maps
from footprint.cli.project import project
from footprint.cli.run import run as run_verb
from footprint.cli.symbols import symbols

__all__ = ("run",)

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
for _verb in (audit, symbols, maps, project, capture, doctor):
    app.command()(_verb)
# What stands after the program is its own: its options are not looked at.
app.command("run", context_settings={"allow_interspersed_args": False})(run_verb)


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
