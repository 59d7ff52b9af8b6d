"""The action for GitHub: its steps check a program and keep one comment on a change, run in a plain shell."""

import shutil
from pathlib import Path

import pytest

from tests.workflows import ROOT, Runner, StepResult, read_yaml

ACTION = read_yaml((ROOT / "action.yml").read_text())
BASE = ROOT / "sample_binaries" / "condor_shadow" / "base"
INPUTS = {name: told.get("default", "") for name, told in ACTION["inputs"].items()} | {"target": "./base"}


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copy(BASE, folder)
    (folder / "footprint.toml").write_text("[budgets]\nlibrary_count = 3\n")
    return Runner(folder, tmp_path / "home")


def act(runner: Runner, **inputs: str) -> list[StepResult]:
    return runner.run(ACTION["runs"]["steps"], INPUTS | inputs)


def test_the_inputs_are_those_that_are_documented() -> None:
    assert list(ACTION["inputs"]) == ["target", "config", "version", "comment"]
    assert [name for name, told in ACTION["inputs"].items() if told.get("required")] == ["target"]


def test_what_fails_annotates_and_comments_once_however_often_it_runs(runner: Runner) -> None:
    (runner.folder / "footprint.toml").write_text("[budgets]\nmapped_writable_bytes = 1\n")
    _, checked, comment = act(runner)
    assert (checked.code, comment.code) == (1, 0)
    assert "::error file=footprint.toml,line=2,title=A figure is larger than its budget allows" in checked.text
    foreign, first = runner.comments
    assert foreign == "Looks good."
    assert first.startswith("<!-- footprint: check ./base -->\n")
    assert "1 limit exceeded" in first
    (runner.folder / "footprint.toml").write_text('[budgets]\nmapped_writable_bytes = "1 GiB"\n')
    assert [one.code for one in act(runner)] == [0, 0, 0]
    foreign, second = runner.comments
    assert foreign == "Looks good."
    assert "exceeded" not in second


def test_a_token_without_rights_fails_no_check(runner: Runner) -> None:
    (runner.bin / "gh").write_text(
        "#!/bin/sh\necho 'gh: Resource not accessible by integration (HTTP 403)' >&2\nexit 1\n"
    )
    (runner.folder / "footprint.toml").write_text('[budgets]\nmapped_writable_bytes = "1 GiB"\n')
    assert [one.code for one in act(runner)] == [0, 0, 0]
    assert runner.comments == ["Looks good."]


def test_without_comment_nothing_is_posted(runner: Runner) -> None:
    assert len(act(runner, comment="false")) == 2
    assert runner.comments == ["Looks good."]


def test_another_budget_file_can_be_named(runner: Runner) -> None:
    (runner.folder / "my budgets.toml").write_text("[budgets]\nmapped_writable_bytes = 1\n")
    _, checked, _ = act(runner, config="my budgets.toml")
    assert checked.code == 1
    assert "file=my budgets.toml,line=2" in checked.text


def test_wrong_use_fails_and_leaves_no_stale_comment(runner: Runner) -> None:
    assert act(runner)[-1].code == 0
    posted = runner.comments
    _, checked, comment = act(runner, target="./missing")
    assert (checked.code, comment.code) == (3, 0)
    assert runner.comments == posted


@pytest.mark.parametrize(("version", "package"), [("", str(ROOT)), ("1.4.0", "footprint-audit==1.4.0")])
def test_the_version_is_that_of_the_action_or_the_one_that_is_named(runner: Runner, version: str, package: str) -> None:
    install = act(runner, version=version)[0]
    assert install.text == f"python3 -m pip install --quiet {package}\n"
