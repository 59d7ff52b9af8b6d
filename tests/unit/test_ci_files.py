"""The files for CI are what the forges read: checked against the schemas that `check-jsonschema` has of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from footprint.errors import UsageError
from footprint.verbs.check.workflows import Forge, run_command, workflow_text
from tests.workflows import read_yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
FILES = {
    "vendor.github-actions": [ROOT / "action.yml"],
    "vendor.github-workflows": sorted(
        [*EXAMPLES.glob("*/.github/workflows/*.yml"), *ROOT.glob(".github/workflows/*.yml")]
    ),
    "vendor.gitlab-ci": sorted(EXAMPLES.glob("*/.gitlab-ci.yml")),
}
SCHEMAS = {Forge.GITHUB: "vendor.github-workflows", Forge.GITLAB: "vendor.gitlab-ci"}
PROGRAMS = ("build/server", "my 'server'", "a:b#c", "- {x}", "*", "%s \\", "$(id)")


def check_schema(schema: str, paths: list[Path]) -> None:
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, paths)]
    done = subprocess.run(words, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize("schema", FILES)
def test_the_action_and_the_workflows_of_the_examples_are_valid(schema: str) -> None:
    assert FILES[schema]
    check_schema(schema, FILES[schema])


@pytest.mark.parametrize("forge", Forge)
def test_the_workflow_that_init_writes_is_valid_whatever_the_program_is_called(forge: Forge, tmp_path: Path) -> None:
    paths = []
    for number, program in enumerate(PROGRAMS):
        path = tmp_path / f"{number}.yml"
        for kind, run in (("", None), ("-run", run_command(program, ["--port", "80", "a b"], when_output="up: 'x'"))):
            path = tmp_path / f"{number}{kind}.yml"
            folder = "services/web" if run else ""
            text = workflow_text(forge, program, "make", None if run is None else run.replace(": ", ":"), folder)
            path.write_text(text)
            paths.append(path)
            assert read_yaml(path.read_text())
    check_schema(SCHEMAS[forge], paths)


def test_a_command_that_would_be_more_than_a_command_is_refused() -> None:
    with pytest.raises(UsageError, match="a workflow file cannot hold this command: write it as a script"):
        workflow_text(Forge.GITHUB, "server", "make", run_command("server", when_output="listening on: 80"))


def test_a_folder_that_a_workflow_cannot_name_is_refused() -> None:
    with pytest.raises(UsageError, match="a workflow file cannot name this folder: rename it"):
        workflow_text(Forge.GITHUB, "server", "make", folder="it's")


@pytest.mark.parametrize("program", ["a: b", "a #b", "${{ github.token }}", "two\nlines"])
def test_a_name_that_would_be_more_than_a_name_is_refused(program: str) -> None:
    with pytest.raises(UsageError, match="a workflow file cannot name this path"):
        workflow_text(Forge.GITHUB, program, "make")
