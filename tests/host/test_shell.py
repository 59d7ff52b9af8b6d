"""The completions of bash, zsh and fish, and the man page, as these shells and groff read them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


SHELL = ROOT / "shell"


def done(*words: str | Path, text: str | None = None, folder: Path | None = None) -> str:
    if shutil.which(str(words[0])) is None:
        pytest.skip(f"{words[0]} is missing")
    found = subprocess.run(
        list(map(str, words)), input=text, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout


@pytest.mark.parametrize(
    ("shell", "file"), [("bash", "footprint.bash"), ("zsh", "_footprint"), ("fish", "footprint.fish")]
)
def test_each_shell_reads_its_file(shell: str, file: str) -> None:
    done(shell, "-n", SHELL / file)


def test_the_man_page_is_set_without_a_warning() -> None:
    text = done("groff", "-man", "-Tutf8", "-ww", "-rLL=100n", SHELL / "footprint.1")
    plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", text)
    assert "footprint - where the memory of a Linux process goes, and what N of them cost" in plain
    assert "-n, --count N" in plain
    # What could be taken for a request, a quote or a hyphen stands as it is written.
    assert "footprint run --when-output 'listening on' --follow -- ./server" in plain


def bash(folder: Path, *words: str) -> list[str]:
    """Return what bash offers for the last word."""
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
    views = ["owner", "kind", "section", "symbol", "file", "dir", "component", "mapping"]
    assert bash(tmp_path, "audit", "--by", "=") == views
    assert bash(tmp_path, "audit", "au") == ["audit me.json"]
    assert bash(tmp_path, "audit", "--root", "") == ["folder"]
    assert bash(tmp_path, "audit", "-n", "") == []
    assert sorted(bash(tmp_path, "audit", "-o", "")) == ["audit me.json", "folder"]
    assert bash(tmp_path, "doctor", "") == []


def test_bash_completes_the_command_that_is_run(tmp_path: Path) -> None:
    (tmp_path / "input").touch()
    assert "groups" in bash(tmp_path, "run", "--when", "exit", "--", "grou")
    assert bash(tmp_path, "run", "--", "cat", "in") == ["input"]


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


def test_systemd_accepts_the_units_of_a_fleet(tmp_path: Path) -> None:
    folder = ROOT / "packaging" / "fleet"
    script = tmp_path / "footprint-collect"
    shutil.copy(folder / script.name, script)
    for name in ("footprint-collect.service", "footprint-collect.timer"):
        (tmp_path / name).write_text((folder / name).read_text().replace(f"/usr/local/bin/{script.name}", str(script)))
    done("systemd-analyze", "verify", tmp_path / "footprint-collect.service", tmp_path / "footprint-collect.timer")
