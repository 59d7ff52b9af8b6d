"""The verbs as commands: their options and arguments as their functions declare them, and words read by them.

Each verb is a package beside this module whose module `command` has a function of its name.

Only words that are plainly right are read here. Typer reads all others (help, an unknown option, a value out of its
range), and says what is wrong; importing it takes 160 million instructions, a third of an audit.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from functools import wraps
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

from footprint import verbs
from footprint.errors import UsageError
from footprint.system.files import guard_maps, inputs_kept
from footprint.system.limits import STANDARD, limited, parse_limits, time_limit
from footprint.text.command_line import command_lines

REQUIRED: Final = object()
_Command = Callable[..., Any]


class Argument:
    """What stands on the command line without a name; a list takes all that is left."""

    __slots__ = ("help", "max", "metavar", "min", "names")

    def __init__(
        self,
        *names: str,
        help: str = "",  # noqa: A002 # as Typer has it
        metavar: str | None = None,
        min: int | None = None,  # noqa: A002
        max: int | None = None,  # noqa: A002
    ) -> None:
        self.names, self.help, self.metavar, self.min, self.max = names, help, metavar, min, max


class Option(Argument):
    """What has names: a flag where its type is bool, repeatable where it is a list."""

    __slots__ = ()


_SHARED: Final = Argument()


class Parameter:
    """A parameter of a command.

    Attributes:
        name: Its name in the function.
        type: Its type, without what is declared of it.
        declared: The option or argument; an argument without help for what options that verbs share stand in for.
        default: Its default, or `REQUIRED`.
    """

    __slots__ = ("declared", "default", "name", "type")

    def __init__(self, name: str, own_type: Any, declared: Argument, default: Any) -> None:  # noqa: ANN401 # any type
        self.name, self.type, self.declared, self.default = name, own_type, declared, default

    @property
    def value_type(self) -> tuple[Any, bool]:
        """Return the type of a value, and whether it is one of a list."""
        inner = self.type
        if isinstance(inner, UnionType):
            inner = next(part for part in get_args(inner) if part is not NoneType)
        return (get_args(inner)[0], True) if get_origin(inner) is list else (inner, False)


def parameters_of(command: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a function, or those that a wrapper of it keeps as `parameters`."""
    kept: list[Parameter] | None = getattr(command, "parameters", None)
    if kept is not None:
        return kept
    code = command.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values = command.__defaults__ or ()
    defaults = dict(zip(names[code.co_argcount - len(values) : code.co_argcount], values, strict=True))
    defaults |= command.__kwdefaults__ or {}
    parameters = []
    for name in names:
        annotation = command.__annotations__[name]
        (declared,) = getattr(annotation, "__metadata__", (_SHARED,))
        own_type = getattr(annotation, "__origin__", annotation)
        parameters.append(Parameter(name, own_type, declared, defaults.get(name, REQUIRED)))
    return parameters


class _UnclearWordError(Exception):
    """A word that Typer has to read."""


def read_words(
    parameters: Sequence[Parameter], words: Sequence[str], *, is_interspersed: bool = True
) -> dict[str, Any] | None:
    """Read the words of a command.

    Args:
        parameters: Its parameters, each with an option or argument.
        words: The words.
        is_interspersed: Whether options may follow an argument.

    Returns:
        The values by the names of the parameters; None where the words are not plainly right.
    """
    options = {name: parameter for parameter in parameters for name in _names(parameter)}
    values: dict[str, Any] = {parameter.name: parameter.default for parameter in parameters}
    arguments: list[str] = []
    waiting = list(words[::-1])
    try:
        while waiting:
            word = waiting.pop()
            if arguments and not is_interspersed:
                arguments += [word, *waiting[::-1]]
                break
            if word == "--":
                arguments += waiting[::-1]
                break
            if word == "-" or not word.startswith("-"):
                arguments.append(word)
            else:
                _read_option(options, word, waiting, values)
        _read_arguments([p for p in parameters if type(p.declared) is Argument], arguments, values)
    except (_UnclearWordError, ValueError):
        return None
    return values if REQUIRED not in values.values() else None


def _names(parameter: Parameter) -> tuple[str, ...]:
    return parameter.declared.names if isinstance(parameter.declared, Option) else ()


def _read_option(options: dict[str, Parameter], word: str, waiting: list[str], values: dict[str, Any]) -> None:
    name, has_value, text = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
    parameter = options.get(name)
    if parameter is None:
        raise _UnclearWordError
    value_type, is_list = parameter.value_type
    if value_type is bool:
        if has_value:
            raise _UnclearWordError
        values[parameter.name] = True
        return
    if not has_value:
        if not waiting or (waiting[-1].startswith("-") and waiting[-1] != "-"):
            raise _UnclearWordError
        text = waiting.pop()
    value = _value(parameter, value_type, text)
    values[parameter.name] = [*(values[parameter.name] or ()), value] if is_list else value


def _read_arguments(parameters: list[Parameter], words: list[str], values: dict[str, Any]) -> None:
    for parameter in parameters:
        value_type, is_list = parameter.value_type
        if is_list and words:
            values[parameter.name] = [_value(parameter, value_type, word) for word in words]
            words = []
        elif words:
            values[parameter.name] = _value(parameter, value_type, words.pop(0))
    if words:
        raise _UnclearWordError


def _value(parameter: Parameter, value_type: Any, text: str) -> Any:  # noqa: ANN401 # of this type
    declared = parameter.declared
    if value_type is str:
        return text
    if issubclass(value_type, Enum):
        return value_type(text)
    value = value_type(text)
    if (declared.min is not None and value < declared.min) or (declared.max is not None and value > declared.max):
        raise _UnclearWordError
    return value


_LIMITS: Final = Option(
    "--limits",
    help="Allow more work, such as bytes=4GiB,entries=5000000,seconds=3600; each may be absent.",
    metavar="LIMITS",
)
_NO_COMMAND: Final = Option("--no-command", help="Keep the names of programs only, not their command lines.")
_OF_EVERY_VERB: Final = (
    Parameter("no_command", bool, _NO_COMMAND, default=False),
    Parameter("limits", str | None, _LIMITS, default=None),
)


def _activity_line(*, is_quiet: bool) -> AbstractContextManager[None]:
    """Show on a terminal what a block does; nowhere else."""
    if is_quiet or sys.stderr is None or not sys.stderr.isatty():
        return nullcontext()
    from footprint.verbs.progress import activity_line  # noqa: PLC0415 # only a terminal shows it

    return activity_line()


def limited_command(command: _Command, *, shares_terminal: bool = False) -> _Command:
    """Add the options of every verb to a command.

    It runs with a budget of work (`--limits`), a guard of the files it reads, a decision on command lines
    (`--no-command`), and a line that shows what it does, unless it shares the terminal with a program that it starts.
    """
    parameters = parameters_of(command)
    of_files = tuple(_options_of_files(parameters))

    @wraps(command)
    def called(*, limits: str | None = None, no_command: bool = False, **given: Any) -> Any:  # noqa: ANN401 # as the command
        for name, option, what in of_files:
            value = given.get(name)
            if value == "" or (isinstance(value, (list, tuple)) and "" in value):
                raise UsageError(f"{option} needs the name of a {what}: it is empty")
        chosen = STANDARD if limits is None else parse_limits(limits)
        with (
            limited(chosen),
            time_limit(chosen.seconds),
            guard_maps(),
            inputs_kept(),
            command_lines(is_hidden=no_command),
            _activity_line(is_quiet=shares_terminal or bool(given.get("quiet"))),
        ):
            return command(**given)

    called.parameters = [*parameters, *_OF_EVERY_VERB]  # type: ignore[attr-defined]
    return called


_NAMED: Final = {"FILE": "file", "FOLDER": "folder", "DIR": "folder"}


def _options_of_files(parameters: Sequence[Parameter]) -> Iterator[tuple[str, str, str]]:
    """Return the parameters that name a file or folder, each with its option and with what it names."""
    for parameter in parameters:
        what = _NAMED.get(parameter.declared.metavar or "")
        if what and isinstance(parameter.declared, Option):
            yield parameter.name, parameter.declared.names[-1], what


_DROP_PRIVILEGES: Final = Option(
    "--drop-privileges",
    help="Give up first what reading needs not: to start programs, to use the network, to write other files.",
)


def confined_command(command: _Command) -> _Command:
    """Add the option `--drop-privileges` to the command of a verb that only reads, and writes its answer."""

    @wraps(command)
    def called(*, drop_privileges: bool = False, **given: Any) -> Any:  # noqa: ANN401 # as the command
        if drop_privileges:
            _confine(given)
        return command(**given)

    called.parameters = [  # type: ignore[attr-defined]
        *parameters_of(command),
        Parameter("drop_privileges", bool, _DROP_PRIVILEGES, default=False),
    ]
    return called


def _confine(given: dict[str, Any]) -> None:
    """Drop the rights that a command with these arguments does not need, and report what the kernel does not allow.

    Raises:
        UsageError: If the command needs more.
    """
    from footprint.sources.target import process_of  # noqa: PLC0415 # only for the option
    from footprint.system.privileges import drop_privileges  # noqa: PLC0415 # the same

    for name in ("debuginfod", "update_baseline", "init", "freeze"):
        if given.get(name):
            raise UsageError(f"--drop-privileges gives up what --{name.replace('_', '-')} needs")
    targets = [word for value in given.values() for word in (value if isinstance(value, (list, tuple)) else [value])]
    reads_processes = any(isinstance(word, str) and process_of(word) is not None for word in targets)
    reads_processes |= any(given.get(name) for name in ("pids", "tree", "name", "cgroup", "unit", "container"))
    written = [given.get(name) for name in ("output", "html", "history")]
    written.append(os.environ.get("GITHUB_STEP_SUMMARY"))
    for refused in drop_privileges(
        (path for path in written if path not in {None, "", "-"}), reads_processes=reads_processes
    ):
        sys.stderr.write(f"footprint: this kernel does not allow {refused}: --drop-privileges does without\n")


def verb_names() -> list[str]:
    """Return the verbs: the packages beside this module that have a command."""
    from pkgutil import iter_modules  # noqa: PLC0415 # only for the list of all verbs

    return sorted(module.name for module in iter_modules(verbs.__path__) if module.ispkg and is_verb(module.name))


def verb_module(verb: str) -> Any:  # noqa: ANN401 # a module
    """Import the module `command` of a verb.

    It has a function of the verb's name, `ORDER`, its place in the help, and `HAS_COMMAND` if a command of the user's
    follows, whose options are its own; `NEEDS_RIGHTS` if it does more than to read and to write its answer; and
    `SHARES_TERMINAL` if something else is drawn on the terminal meanwhile.
    """
    return import_module(f"footprint.verbs.{verb}.command")


def is_verb(word: str) -> bool:
    """Return whether a word is a verb."""
    if not word.isidentifier():
        return False
    try:
        verb_module(word)
    except ModuleNotFoundError as error:
        if error.name not in {f"footprint.verbs.{word}", f"footprint.verbs.{word}.command"}:
            raise
        return False
    return True


def has_command(verb: str) -> bool:
    """Return whether a command of the user's follows a verb: then options may stand before its first word only."""
    return getattr(verb_module(verb), "HAS_COMMAND", False)


def command_of(verb: str) -> Callable[..., Any]:
    """Return the function of a verb with the options of every verb; its `parameters` are what words are read by."""
    module = verb_module(verb)
    command = limited_command(getattr(module, verb), shares_terminal=getattr(module, "SHARES_TERMINAL", False))
    return command if getattr(module, "NEEDS_RIGHTS", False) else confined_command(command)
