"""The verbs: each is a package beside this module whose module `command` has a function of its name."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from footprint import verbs
from footprint.verbs.options import confined_command, limited_command


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
