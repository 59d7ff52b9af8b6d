"""The completions of the shells and the man page are up to date, complete, and start no Python."""

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from footprint.cli import main
from footprint.verbs.commands import verb_names
from footprint.verbs.typer_app import typer_command

ROOT = Path(__file__).resolve().parents[2]
SHELL = ROOT / "shell"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", SHELL / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_what_make_shell_writes(generate: ModuleType) -> None:
    for name, text in generate.texts().items():
        assert (SHELL / name).read_text() == text, f"{name} is old: make shell"


@pytest.mark.parametrize("verb", ["", *verb_names()])
def test_the_written_help_is_that_of_typer(verb: str, capfd: pytest.CaptureFixture[str]) -> None:
    words = [verb] if verb else []
    assert main([*words, "-h"]) == 0
    text = capfd.readouterr().out
    assert typer_command(verb_names()).main([*words, "-h"], prog_name="footprint", standalone_mode=False) in {0, None}
    assert text == capfd.readouterr().out, "the help is old: make shell"


def test_a_narrow_screen_and_other_words_have_the_help_of_typer(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "--json", "-h"]) == 0
    assert capfd.readouterr().out.startswith("Usage: footprint audit")
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["-h"]) == 0
    assert max(map(len, capfd.readouterr().out.splitlines())) <= 60


def test_every_verb_and_option_stands_in_each_of_them(generate: ModuleType) -> None:
    program = generate.read_program()
    assert sorted(verb.name for verb in program.verbs) == verb_names()
    texts = {name: (SHELL / name).read_text().replace("\\-", "-") for name in generate.FILES}
    for verb in program.verbs:
        assert {"-h", "--help"} < {name for option in verb.options for name in option.names}
        for option in verb.options:
            for name in option.names:
                fish = f"-l {name[2:]} " if name.startswith("--") else f"-s {name[1:]} "
                assert fish in texts["footprint.fish"]
                assert all(name in texts[file] for file in ("footprint.bash", "_footprint", "footprint.1"))


def test_the_wheel_puts_them_where_the_shells_look() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    shared = told["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared == {
        "shell/footprint.bash": "share/bash-completion/completions/footprint",
        "shell/_footprint": "share/zsh/site-functions/_footprint",
        "shell/footprint.fish": "share/fish/vendor_completions.d/footprint.fish",
        "shell/footprint.1": "share/man/man1/footprint.1",
    }


@pytest.mark.parametrize("file", ["footprint.bash", "_footprint", "footprint.fish"])
def test_completing_starts_no_python(file: str) -> None:
    # The name of the command stands where it is completed, and in no substitution.
    assert not re.search(r"python|\$\(\s*footprint|`\s*footprint|_FOOTPRINT_COMPLETE", (SHELL / file).read_text())
