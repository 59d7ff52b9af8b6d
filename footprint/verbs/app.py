"""The verbs put together into one command."""

import os
from collections.abc import Sequence

from footprint.errors import UsageError
from footprint.verbs.commands import command_of, has_command, is_verb, verb_names
from footprint.verbs.declared import parameters_of, read_words

# A word that asked for what an option of another verb asks for now.
_FORMER = {"init": "check --init", "maps": "audit --by mapping", "project": "audit -n N", "record": "trend --add"}

EXIT_WRONG_USE = 2  # as with Typer: nothing was asked


def run(words: Sequence[str]) -> int:
    """Run the command on its words, and return its exit code. Without words, show what can be asked here.

    If the first word is a verb, only its module is imported. Typer is imported only for help and for mistakes.
    """
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
