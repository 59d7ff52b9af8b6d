"""The example of a release gate works: the commands of its Makefile and of its CI files, run for real."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import junitparser
import pytest

ROOT = Path(__file__).resolve().parents[2]


EXAMPLE = ROOT / "docs" / "examples" / "server"


WORKFLOWS = (".github/workflows/footprint.yml", ".gitlab-ci.yml")


def commands(workflow: str) -> list[str]:
    """Return the commands of a CI file, in order, but for those that install."""
    lines = (EXAMPLE / workflow).read_text().splitlines()
    found = [match.group(1) for line in lines if (match := re.match(r"\s*(?:- run:|run:|-) ((?:make|pip) .*)$", line))]
    assert found.count("pip install footprint-audit") >= 1
    return [one for one in found if not one.startswith("pip ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the example, with the command of this checkout beside it."""
    for tool in ("make", "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing")
    copy = tmp_path / "server"
    shutil.copytree(EXAMPLE, copy)
    script = tmp_path / "bin" / "footprint"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m footprint "$@"\n')
    script.chmod(0o755)
    return copy


def shell(folder: Path, command: str) -> tuple[int, str]:
    environment = os.environ | {
        "PATH": f"{folder.parent / 'bin'}:{os.environ['PATH']}",
        "CI_COMMIT_SHORT_SHA": "c0ffee",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    environment.pop("MAKEFLAGS", None)
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.returncode, (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_the_commands_of_each_ci_file_pass_once_there_is_a_baseline_of_this_machine(
    folder: Path, workflow: str
) -> None:
    assert shell(folder, "make baseline")[0] == 0
    wanted = commands(workflow)
    assert {"make check", "make compare", "make measure", "make trend"} <= {" ".join(one.split()[:2]) for one in wanted}
    for command in wanted:
        code, text = shell(folder, command)
        assert code == 0, (command, text)
    assert (folder / "footprint-comment.md").read_text().startswith("<!-- footprint: diff footprint-baseline.json ")
    assert (folder / "footprint.sqlite").exists()
    assert "1 release" in text


def test_reviewers_at_github_see_the_line_of_the_limit_and_the_tables(folder: Path) -> None:
    assert shell(folder, "make baseline")[0] == 0
    larger = "CPPFLAGS=-DCONNECTIONS=160"
    code, log = shell(folder, f"make clean && make check {larger} FORMAT='--format github'")
    assert code != 0
    line = next(
        number
        for number, text in enumerate((folder / "footprint.toml").read_text().splitlines(), 1)
        if text.startswith("connections")
    )
    assert (
        f"::error file=footprint.toml,line={line},title=A figure is larger than its budget allows%3A symbols.con" in log
    )
    summary = (folder / "summary.md").read_text()
    assert summary.startswith("<!-- footprint: check ./server -->\n")
    assert "+96 KiB" in summary
    assert shell(folder, f"make footprint.sarif {larger}")[0] == 0
    results = json.loads((folder / "footprint.sarif").read_text())["runs"][0]["results"]
    assert "error" in {result["level"] for result in results}


def test_reviewers_at_gitlab_see_failed_tests_and_issues_at_the_line_of_the_limit(folder: Path) -> None:
    assert shell(folder, "make baseline && make clean && make server CPPFLAGS=-DCONNECTIONS=160")[0] == 0
    (reports,) = [command for command in commands(".gitlab-ci.yml") if "footprint-junit.xml" in command]
    # That limits are exceeded does not keep them from being told.
    assert shell(folder, reports)[0] == 0
    suites = junitparser.JUnitXml.fromfile(str(folder / "footprint-junit.xml"))
    assert sum(suite.failures for suite in suites) > 0
    entries = json.loads((folder / "gl-code-quality-report.json").read_text())
    assert {entry["location"]["path"] for entry in entries if entry["severity"] == "major"} == {"footprint.toml"}
    assert "footprint_budgets_exceeded" in (folder / "footprint-metrics.txt").read_text()


def test_a_larger_table_fails_the_gate_by_name_and_a_new_baseline_agrees_to_it(folder: Path) -> None:
    assert shell(folder, "make baseline")[0] == 0
    # 160 connections of 1,024 bytes, where 64 were agreed to.
    code, text = shell(folder, "make clean && make check CPPFLAGS=-DCONNECTIONS=160")
    assert code != 0
    assert "grew most +96 KiB connections (server)" in " ".join(text.split())
    assert shell(folder, "make compare")[1].count("connections") == 1
    code, text = shell(folder, "make baseline && make check")
    assert code == 0, text
    assert shell(folder, "make clean && make check")[0] == 0


def test_a_new_library_is_asked_about(folder: Path) -> None:
    assert shell(folder, "make baseline")[0] == 0
    code, text = shell(folder, "make clean && make check LDFLAGS='-Wl,--no-as-needed -lm'")
    assert code != 0
    assert "Exceeded: libraries.allow_new" in text
    assert "Exceeded: findings.unused-library" in text
    assert "libm.so.6" in text


def test_the_baseline_of_the_example_is_one_of_its_server(folder: Path) -> None:
    # With another compiler and C library it may not hold, but it can be compared with.
    code, text = shell(folder, "make compare")
    assert code == 0, text
    assert "footprint-baseline.json -> ./server" in text
