"""The completions of the shells and the man page: fresh, valid, and quick, since nothing is started for them."""

import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from footprint.verbs.app import VERBS

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


def done(*words: str | Path, text: str | None = None, folder: Path | None = None) -> str:
    if shutil.which(str(words[0])) is None:
        pytest.skip(f"{words[0]} is missing")
    found = subprocess.run(
        list(map(str, words)), input=text, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout


def test_the_files_are_what_make_shell_writes(generate: ModuleType) -> None:
    for name, text in generate.texts().items():
        assert (SHELL / name).read_text() == text, f"{name} is old: make shell"


def test_every_verb_and_option_stands_in_each_of_them(generate: ModuleType) -> None:
    program = generate.read_program()
    assert tuple(verb.name for verb in program.verbs) == VERBS
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


@pytest.mark.parametrize(
    ("shell", "file"), [("bash", "footprint.bash"), ("zsh", "_footprint"), ("fish", "footprint.fish")]
)
def test_each_shell_reads_its_file(shell: str, file: str) -> None:
    done(shell, "-n", SHELL / file)


@pytest.mark.parametrize("file", ["footprint.bash", "_footprint", "footprint.fish"])
def test_completing_starts_no_python(file: str) -> None:
    # The name of the command stands where it is completed, and in no substitution.
    assert not re.search(r"python|\$\(\s*footprint|`\s*footprint|_FOOTPRINT_COMPLETE", (SHELL / file).read_text())


def test_the_man_page_is_set_without_a_warning() -> None:
    text = done("groff", "-man", "-Tutf8", "-ww", "-rLL=100n", SHELL / "footprint.1")
    plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", text)
    assert "footprint - where the memory of a Linux process goes, and what N of them cost" in plain
    assert "-n, --count N" in plain
    # What could be taken for a request, a quote or a hyphen stands as it is written.
    assert "footprint run --when-output 'listening on' --follow -- ./server" in plain


# --- bash -------------------------------------------------------------------------------------------------------------


def bash(folder: Path, *words: str) -> list[str]:
    """Give what bash offers for the last word."""
    script = (
        f'source "{SHELL / "footprint.bash"}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _footprint;'
        '[ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return done("bash", "--norc", "-c", script, "bash", "footprint", *words, folder=folder).splitlines()


def test_bash_completes_verbs_options_choices_and_files(tmp_path: Path) -> None:
    (tmp_path / "audit me.json").touch()
    (tmp_path / "folder").mkdir()
    assert bash(tmp_path, "d") == ["duplicates", "diff", "doctor"]
    assert bash(tmp_path, "--v") == ["--version"]
    assert bash(tmp_path, "check", "--up") == ["--update-baseline"]
    assert bash(tmp_path, "audit", "--by", "s") == ["section", "symbol"]
    assert bash(tmp_path, "audit", "x", "--by", "=", "s") == ["section", "symbol"]
    assert bash(tmp_path, "audit", "--by", "=") == ["owner", "kind", "section", "symbol"]
    assert bash(tmp_path, "audit", "au") == ["audit me.json"]
    assert bash(tmp_path, "audit", "--root", "") == ["folder"]
    assert bash(tmp_path, "audit", "-n", "") == []
    assert sorted(bash(tmp_path, "audit", "-o", "")) == ["audit me.json", "folder"]
    assert bash(tmp_path, "doctor", "") == []


def test_bash_completes_the_command_that_is_run(tmp_path: Path) -> None:
    (tmp_path / "input").touch()
    assert "groups" in bash(tmp_path, "run", "--when", "exit", "--", "grou")
    assert bash(tmp_path, "run", "--", "cat", "in") == ["input"]


# --- zsh and fish -----------------------------------------------------------------------------------------------------


def test_zsh_finds_its_file_by_the_name_of_the_command(tmp_path: Path) -> None:
    script = f"fpath=({SHELL} $fpath); autoload -Uz compinit; compinit -u -d {tmp_path}/dump; print $_comps[footprint]"
    assert done("zsh", "-f", "-c", script) == "_footprint\n"


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("doc", "doctor"),
        ("audit --by ki", "audit --by kind"),
        ("check --up", "check --update-baseline"),
        ("audit --root fol", "audit --root folder"),
    ],
)
def test_zsh_completes_verbs_options_choices_and_files(tmp_path: Path, typed: str, completed: str) -> None:
    (tmp_path / "folder").mkdir()
    # In a terminal of its own, in which Tab is pressed; the command tells what it was given.
    script = f"""
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell 'fpath=({SHELL} $fpath); autoload -Uz compinit; compinit -u -d {tmp_path}/dump'
        zpty -w shell 'footprint () {{ print -r -- "<$*>" }}; print rea""dy'
        zpty -r -m shell found '*ready*'
        zpty -w shell $'footprint {typed}\t'
        zpty -r -m shell found '*<*>*'
        print -r -- $found
        zpty -d shell
    """
    assert re.findall("<([^$]*?)>", done("zsh", "-f", "-c", script, folder=tmp_path)) == [completed]


def test_fish_completes_verbs_options_choices_and_files(tmp_path: Path) -> None:
    def fish(line: str) -> list[str]:
        script = f'source {SHELL / "footprint.fish"}; complete -C "footprint {line}"'
        return [one.split("\t")[0] for one in done("fish", "--no-config", "-c", script, folder=tmp_path).splitlines()]

    (tmp_path / "audit.json").touch()
    assert sorted(fish("d")) == ["diff", "doctor", "duplicates"]
    assert fish("check --up") == ["--update-baseline"]
    assert sorted(fish("audit --by s")) == ["section", "symbol"]
    # A file that is called as a verb is none.
    assert fish("maps audit --upd") == []
    assert fish("check au") == ["audit.json"]
    assert fish("doctor au") == []
