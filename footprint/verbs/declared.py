"""Options and arguments as the functions of the verbs declare them, and words read by them.

Only words that are plainly right are read here. Typer reads all others (help, an unknown option, a value out of its
range), and says what is wrong; importing it takes 160 million instructions, a third of an audit.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

REQUIRED: Final = object()


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
