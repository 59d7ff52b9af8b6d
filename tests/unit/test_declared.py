"""Words that are plainly right are read as Typer reads them; all others are left to Typer."""

import subprocess
import sys
from typing import Any

import pytest

from footprint.verbs import typer_app
from footprint.verbs.commands import Argument, Option, Parameter, command_of, has_command, parameters_of, read_words

PLAIN = [
    "audit 4711",
    "audit 4711 4712 -n 10",
    "audit -n10 4711 --by section --top=3",
    "audit --json -o out.json 4711",
    "audit --name nginx --findings --fail-on unused-library --fail-on duplicate-static:high",
    "audit -",
    "audit --heap massif.out --heap-at 3 --debug-dir a --debug-dir b 4711 -q -v",
    "audit -- -strange",
    "audit --root / 4711 --count 1000000000000",
    "check --config footprint.toml ./server -- --port 80",
    "diff old.json new.json",
    "libraries /usr/bin/gdb --sort retained --tree --depth 2",
    "libraries --why libz.so.1 /usr/bin/gdb",
    "run --timeout 2.5 --starts 3 -- ls -l /",
    "run ls -l --json",
    "run env -- ls -- -l",
    "run -- env -- ls",
    "whatif --drop libm.so.6 env -- ls",
    "watch --every 200ms --for 60s -- sleep 1",
    "watch 4711 --top 0",
    "whatif --drop libm.so.6 -- ls -l",
    "symbols a.so b.so --kind bss --kind data",
    "capture 4711 4712 -o x.capture --limits seconds=60",
    "doctor",
    "explain pss",
]
UNCLEAR = [
    "audit --help",
    "audit 4711 -h",
    "audit --wrong",
    "audit --top",
    "audit --top x 4711",
    "audit --top -1 4711",
    "audit -n 0 4711",
    "audit --json=1 4711",
    "audit --by nothing 4711",
    "audit -qv 4711",
    "audit -o -q 4711",
    "libraries",
    "libraries a b",
    "run",
    "capture x",
]


def read_by_typer(words: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    read: dict[str, Any] = {}

    def command(**values: object) -> int:
        read.update(values)
        return 0

    verb = words[0]
    command.parameters = parameters_of(command_of(verb))  # type: ignore[attr-defined]
    monkeypatch.setattr(typer_app, "command_of", lambda _verb: command)
    assert typer_app.typer_command([verb]).main(words, standalone_mode=False) == 0
    return read


def read(words: list[str]) -> dict[str, Any] | None:
    verb, *rest = words
    return read_words(parameters_of(command_of(verb)), rest, is_interspersed=not has_command(verb))


@pytest.mark.parametrize("line", PLAIN)
def test_plain_words_are_read_as_typer_reads_them(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(line.split()) == read_by_typer(line.split(), monkeypatch)


@pytest.mark.parametrize("line", UNCLEAR)
def test_words_that_are_not_plainly_right_are_left_to_typer(line: str) -> None:
    assert read(line.split()) is None


def test_values_of_each_kind() -> None:
    parameters = [
        Parameter("name", str, Argument(), "x"),
        Parameter("counts", list[int] | None, Option("-c", "--count", max=9), None),
        Parameter("is_loud", bool, Option("--loud"), default=False),
    ]
    assert read_words(parameters, []) == {"name": "x", "counts": None, "is_loud": False}
    assert read_words(parameters, ["-c1", "--loud", "--count=2", "y"]) == {
        "name": "y",
        "counts": [1, 2],
        "is_loud": True,
    }
    assert read_words(parameters, ["-c10"]) is None


def test_a_plain_command_imports_no_typer() -> None:
    code = (
        "import sys; from footprint.cli import main\n"
        "assert main(['explain', 'pss', '-o', '/dev/null']) == 0\n"
        "print({'typer', 'rich'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
