"""The command as Typer knows it: it writes the help, and says what is wrong with words."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Annotated, Any

import typer
from typer.main import get_command

from footprint import __version__
from footprint.errors import UsageError
from footprint.verbs.commands import (
    REQUIRED,
    Option,
    Parameter,
    command_of,
    has_command,
    parameters_of,
    verb_module,
    verb_names,
)

_EPILOG = (
    "Exit codes: 0 fine, 1 findings or a budget exceeded, 2 wrong use, 3 an input that cannot be read, "
    "4 a partial answer under --strict, 70 a defect of footprint."
)


def typer_command(verbs: Iterable[str]) -> Any:  # noqa: ANN401 # Typer does not export the type
    """Return the command of Typer with some verbs, which it has in the order of the help."""
    app = typer.Typer(
        name="footprint",
        help="Where the memory of a Linux process goes, and what N of them cost.",
        epilog=_EPILOG,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    )
    app.callback()(_options)
    for verb in sorted(verbs, key=lambda verb: (verb_module(verb).ORDER, verb)):
        settings = {"allow_interspersed_args": not has_command(verb)}
        app.command(verb, context_settings=settings)(_with_signature(command_of(verb)))
    return get_command(app)


def _with_signature(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with the signature that Typer reads."""
    declared = [parameter for parameter in parameters_of(command) if isinstance(parameter.declared, Option)]
    options = {name for parameter in declared for name in parameter.declared.names}

    @wraps(command)
    def called(**given: Any) -> Any:  # noqa: ANN401 # as the command
        for parameter in declared:
            # Typer takes what follows for the value, whatever it is.
            if isinstance(value := given[parameter.name], str) and value in options:
                name = parameter.declared.names[-1]
                raise UsageError(f"{name} needs a value, and {value} is an option (a file of that name is ./{value})")
        return command(**given)

    parameters = [_typer_parameter(parameter) for parameter in parameters_of(command)]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _typer_parameter(parameter: Parameter) -> inspect.Parameter:
    declared = parameter.declared
    make = typer.Option if isinstance(declared, Option) else typer.Argument
    made = make(*declared.names, help=declared.help, metavar=declared.metavar, min=declared.min, max=declared.max)
    default = inspect.Parameter.empty if parameter.default is REQUIRED else parameter.default
    annotation = Annotated[parameter.type, made]  # type: ignore[name-defined] # it is made here
    return inspect.Parameter(parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _show_version(is_asked: bool) -> None:  # noqa: FBT001 # as Typer calls it
    if is_asked:
        typer.echo(f"footprint {__version__}")
        raise typer.Exit


def _options(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version, and exit.")
    ] = False,
    # `footprint.cli` reads it: it must hold while verbs are imported, too.
    _debug: Annotated[bool, typer.Option("--debug", help="As the first word: show where an error arose.")] = False,
) -> None:
    pass


def run_typer(words: Sequence[str]) -> int:
    """Run the command on words that are not plainly right, and return its exit code."""
    verbs = verb_names()
    try:
        code = typer_command(words[:1] if words[0] in verbs else verbs).main(
            list(words), prog_name="footprint", standalone_mode=False
        )
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
        (nearest,) = get_close_matches(error.option_name, error.possibilities, 1, 0)
        error.message += f". Did you mean '{nearest}'?"
        error.possibilities = None
