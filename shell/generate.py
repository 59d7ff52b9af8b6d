"""Write the completions of bash, zsh and fish, the man page and the help, from the options of the commands.

Most stand beside this file, so that a package needs no Python to be made of them, and no shell to complete.
`make shell` writes them anew; a test holds that they are fresh.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from footprint import __version__
from footprint.verbs.commands import has_command, verb_module, verb_names
from footprint.verbs.typer_app import typer_command

FOLDER: Final = os.path.dirname(os.path.abspath(__file__))
_NOTE: Final = "Written by shell/generate.py (make shell): change the command instead."
# A verb that starts a program: the rest of the line is that program's.
_STARTING: Final = frozenset(filter(has_command, verb_names()))
# An option of at least so many commands is described once in the man page.
_COMMON: Final = 8


class Option(NamedTuple):
    """One option of a command.

    Attributes:
        names: Its names, the short ones first.
        value: The name of its value, or None for a flag.
        choices: The possible values, where they are few.
        is_repeated: Whether it may be given several times.
        text: Its description.
    """

    names: tuple[str, ...]
    value: str | None
    choices: tuple[str, ...]
    is_repeated: bool
    text: str


class Verb(NamedTuple):
    """One command.

    Attributes:
        name: Its name.
        arguments: Its arguments: the name as in the usage line, and the description.
        options: Its options.
        texts: The paragraphs of its description; the first one is one line.
        examples: Examples of calls.
    """

    name: str
    arguments: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    texts: tuple[str, ...]
    examples: tuple[str, ...]


class Program(NamedTuple):
    """The whole command.

    Attributes:
        text: Its purpose.
        exit_codes: The meaning of each exit code.
        verbs: Its commands.
    """

    text: str
    exit_codes: tuple[tuple[str, str], ...]
    verbs: tuple[Verb, ...]


def read_program() -> Program:
    """Read the commands from the application itself."""
    group = typer_command(verb_names())
    codes = re.findall(r"(\d+) (.+?)(?=, \d|\.$)", group.epilog)
    return Program(group.help, tuple(codes), tuple(map(_verb, group.commands.values())))


def _verb(declared: Any) -> Verb:  # noqa: ANN401 # Typer's own copy of click has no public name
    texts, examples = [], []
    for paragraph in declared.help.split("\n\n"):
        if paragraph.startswith("\b"):
            examples += paragraph.splitlines()[1:]
        else:
            texts.append(" ".join(paragraph.split()))
    arguments = tuple(
        (_argument_name(one), one.help or "") for one in declared.params if one.param_type_name == "argument"
    )
    formats = getattr(getattr(verb_module(declared.name), declared.name), "formats", ())
    options = tuple(_option(param, formats) for param in declared.params if param.param_type_name == "option")
    return Verb(declared.name, arguments, (*options, _HELP), tuple(texts), tuple(examples))


_HELP: Final = Option(("-h", "--help"), None, (), is_repeated=False, text="Show the help, and exit.")
_VERSION: Final = Option(("--version",), None, (), is_repeated=False, text="Show the version, and exit.")


def _argument_name(declared: Any) -> str:  # noqa: ANN401 # the same
    name = (declared.metavar or declared.name).upper()
    return f"[{name}]" if not declared.required else name


def _option(declared: Any, formats: Iterable[str]) -> Option:  # noqa: ANN401 # the same
    names = tuple(sorted((*declared.opts, *declared.secondary_opts), key=lambda name: (name.startswith("--"), name)))
    choices = tuple(str(one) for one in getattr(declared.type, "choices", ()))
    if "--format" in names:
        choices = tuple(map(str, formats))
    value = None
    if not declared.is_flag:
        value = declared.metavar or ("|".join(choices) if choices else "N" if "int" in declared.type.name else "TEXT")
    return Option(names, value, choices, bool(declared.multiple), declared.help or "")


# --- bash -------------------------------------------------------------------------------------------------------------

_BASH_HEAD: Final = """\
# bash completion for footprint. {note}

_footprint() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} verb= kind=file options= values= i
    # bash makes words of `--format`, `=` and `json`.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${{COMP_WORDS[i]}} != -* ]]; then
            verb=${{COMP_WORDS[i]}}
            break
        fi
    done
    for ((i++; i < COMP_CWORD; i++)); do
        # What stands behind is a command of its own.
        if [[ ${{COMP_WORDS[i]}} == -- ]]; then
            verb=--
            [[ $i -eq $((COMP_CWORD - 1)) ]] && kind=command
            break
        fi
    done

    case $verb in
        --) ;;
        '')
            kind=none
            options='--help --version'
            values='{verbs}'
            ;;
"""
_BASH_TAIL: Final = """\
    esac

    COMPREPLY=()
    if [[ -n $options && $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        return
    fi
    case $kind in
        none) [[ -z $values ]] || mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur") ;;
        command) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
        *)
            compopt -o filenames 2>/dev/null
            if [[ $kind == folder ]]; then
                mapfile -t COMPREPLY < <(compgen -d -- "$cur")
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            fi
            ;;
    esac
}}

complete -F _footprint footprint
"""


def bash(program: Program) -> str:
    """Write the completion of bash."""
    text = _BASH_HEAD.format(note=_NOTE, verbs=" ".join(verb.name for verb in program.verbs))
    for verb in program.verbs:
        names = " ".join(name for option in verb.options for name in option.names)
        text += f"        {verb.name})\n            options='{names}'\n"
        if not verb.arguments:
            text += "            kind=none\n"
        text += "            case $prev in\n"
        cases: dict[str, list[str]] = {}
        for option in verb.options:
            if option.value is not None:
                values = f" values='{' '.join(option.choices)}'" if option.choices else ""
                cases.setdefault(f"kind={_kind(option)}{values}", []).extend(option.names)
        for sets, those in cases.items():
            text += f"                {' | '.join(those)}) {sets} ;;\n"
        text += "            esac\n            ;;\n"
    return text + _BASH_TAIL.format()


def _kind(option: Option) -> str:
    return {"FILE": "file", "DIR": "folder"}.get(option.value or "", "none")


# --- zsh --------------------------------------------------------------------------------------------------------------

_ZSH_HEAD: Final = """\
#compdef footprint
# zsh completion for footprint. {note}

_footprint() {{
  local curcontext=$curcontext state line
  typeset -A opt_args
  local -a verbs
  verbs=(
{verbs}
  )

  _arguments -C \\
    '(- *)'{{-h,--help}}'[Show the help, and exit.]' \\
    '(- *)--version[Show the version, and exit.]' \\
    '1:command:->verb' \\
    '*::argument:->arguments' && return

  case $state in
    verb) _describe -t commands command verbs ;;
    arguments)
      case $words[1] in
"""
_ZSH_TAIL: Final = """\
      esac
      ;;
  esac
}}

if [ "$funcstack[1]" = _footprint ]; then
  _footprint "$@"
else
  compdef _footprint footprint
fi
"""


def zsh(program: Program) -> str:
    """Write the completion of zsh."""
    verbs = "\n".join(f"    {_quoted(f'{verb.name}:{verb.texts[0]}')}" for verb in program.verbs)
    text = _ZSH_HEAD.format(note=_NOTE, verbs=verbs)
    for verb in program.verbs:
        specs = [_zsh_option(option) for option in verb.options]
        if verb.name in _STARTING:
            specs += ["'(-)1:program:_command_names -e'", "'*::argument:_normal'"]
        elif verb.arguments:
            specs.append("'*:target:_files'")
        lines = " \\\n            ".join(specs)
        text += f"        {verb.name})\n          _arguments -s \\\n            {lines}\n          ;;\n"
    return text + _ZSH_TAIL.format()


def _zsh_option(option: Option) -> str:
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.text)
    end = f"[{text}]"
    if option.value is not None:
        action = (
            f"({' '.join(option.choices)})"
            if option.choices
            else {"file": "_files", "folder": "_files -/"}.get(_kind(option), " ")
        )
        end += f":{option.value.replace(':', ' ')}:{action}"
    # `-n10` and `--count=10` are written as one word as well.
    forms = [
        name if option.value is None else f"{name}=" if name.startswith("--") else f"{name}+" for name in option.names
    ]
    start = "*" if option.is_repeated else f"({' '.join(option.names)})" if len(forms) > 1 else ""
    if len(forms) == 1:
        return _quoted(f"{start}{forms[0]}{end}")
    return f"{_quoted(start)}{{{','.join(forms)}}}{_quoted(end)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- fish -------------------------------------------------------------------------------------------------------------

_FISH_HEAD: Final = """\
# fish completion for footprint. {note}

function __footprint_has_verb
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]
end

function __footprint_has_none
    test (count (commandline -opc)) -eq 1
end

complete -c footprint -n __footprint_has_none -f
complete -c footprint -n __footprint_has_none -s h -l help -d 'Show the help, and exit.'
complete -c footprint -n __footprint_has_none -l version -d 'Show the version, and exit.'
"""


def fish(program: Program) -> str:
    """Write the completion of fish."""
    lines = [_FISH_HEAD.format(note=_NOTE)]
    lines += [
        f"complete -c footprint -n __footprint_has_none -a {verb.name} -d {_fish_quoted(verb.texts[0])}"
        for verb in program.verbs
    ]
    for verb in program.verbs:
        when = f"complete -c footprint -n '__footprint_has_verb {verb.name}'"
        lines.append("")
        if not verb.arguments:
            lines.append(f"{when} -f")
        for option in verb.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            lines.append(f"{when} {names}{_fish_value(option)} -d {_fish_quoted(option.text)}")
    return "\n".join(lines) + "\n"


def _fish_value(option: Option) -> str:
    if option.value is None:
        return ""
    if option.choices:
        return f" -x -a '{' '.join(option.choices)}'"
    return {"file": " -r -F", "folder": " -x -a '(__fish_complete_directories)'"}.get(_kind(option), " -x")


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# --- the man page -----------------------------------------------------------------------------------------------------

_ENVIRONMENT: Final = (
    ("NO_COLOR, FORCE_COLOR", "No colours, or colours everywhere, where --color does not say."),
    ("DEBUGINFOD_URLS", "The servers that --debuginfod asks."),
    ("XDG_STATE_HOME", "Where doctor --calibrate keeps its results, in the folder footprint; else ~/.local/state."),
)


def man(program: Program) -> str:
    """Write the man page."""
    counts = Counter(option for verb in program.verbs for option in verb.options)
    common = [option for option, count in counts.items() if count >= _COMMON]
    lines = [
        f'.\\" {_NOTE}',
        f'.TH FOOTPRINT 1 "" "footprint {__version__}" "User Commands"',
        ".SH NAME",
        f"footprint \\- {_roff(program.text[0].lower() + program.text[1:].rstrip('.'))}",
        ".SH SYNOPSIS",
        ".B footprint",
        r"\fICOMMAND\fR [\fIOPTION\fR]... [\fIARGUMENT\fR]...",
        ".SH COMMANDS",
    ]
    for verb in program.verbs:
        lines += _man_verb(verb, common)
    lines += [".SH COMMON OPTIONS", *_man_options((*common, _VERSION)), ".SH EXIT STATUS"]
    lines += _man_terms((_bold(code), text[0].upper() + text[1:] + ".") for code, text in program.exit_codes)
    lines += [".SH ENVIRONMENT", *_man_terms((_bold(name), text) for name, text in _ENVIRONMENT)]
    lines += [".SH SEE ALSO", r".BR pmap (1),", r".BR proc_pid_smaps (5),", r".BR ld.so (8)"]
    return "\n".join(lines) + "\n"


def _man_verb(verb: Verb, common: Sequence[Option]) -> Iterator[str]:
    own_options = [option for option in verb.options if option not in common]
    shared = [option.names[-1] for option in verb.options if option in common]
    words = " ".join(name for name, _ in verb.arguments)
    yield f".SS {verb.name}"
    yield rf"\fBfootprint {verb.name}\fR [\fIOPTION\fR]... \fI{_roff(words)}\fR"
    for text in verb.texts:
        yield ".PP"
        yield _roff(text)
    yield from _man_terms((rf"\fI{_roff(name)}\fR", text) for name, text in verb.arguments)
    yield from _man_options(own_options)
    yield ".PP"
    yield f"Common options: {', '.join(map(_bold, shared))}."
    if verb.examples:
        yield from (".PP", "Examples:", ".PP", ".RS", ".nf")
        yield from map(_roff, verb.examples)
        yield from (".fi", ".RE")


def _man_options(options: Iterable[Option]) -> Iterator[str]:
    for option in options:
        names = ", ".join(map(_bold, option.names))
        value = "" if option.value is None else rf" \fI{_roff(option.value)}\fR"
        yield from _man_terms([(names + value, option.text)])


def _man_terms(terms: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in terms:
        yield from (".TP", name, _roff(text))


def _bold(text: str) -> str:
    return rf"\fB{_roff(text)}\fR"


def _roff(text: str) -> str:
    """Escape a text so that roff prints it unchanged."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def help_text() -> str:
    """Return the help of the command and of each verb, each behind its name."""
    command = typer_command(verb_names())
    context = command.make_context("footprint", [], resilient_parsing=True)
    parts = [f"\n{command.get_help(context)}\n"]
    for name, verb in command.commands.items():
        parts.append(f"{name}\n{verb.get_help(verb.make_context(name, [], parent=context, resilient_parsing=True))}\n")
    return "\f".join(parts)


HELP: Final = os.path.join(os.path.dirname(FOLDER), "footprint", "verbs", "help.txt")
FILES: Final = {"footprint.bash": bash, "_footprint": zsh, "footprint.fish": fish, "footprint.1": man}


def texts() -> dict[str, str]:
    """Return the text of each file."""
    program = read_program()
    return {name: write(program) for name, write in FILES.items()}


if __name__ == "__main__":
    for file_name, file_text in texts().items():
        with open(os.path.join(FOLDER, file_name), "w", encoding="utf-8") as file:
            file.write(file_text)
    with open(HELP, "w", encoding="utf-8") as file:
        file.write(help_text())
    sys.stdout.write(f"{', '.join((*FILES, 'help.txt'))} are written.\n")
