"""Run the steps of a workflow or an action of GitHub in a plain shell, with a `gh` that keeps the comments in a file.

Steps that use other actions are left out: a checkout, an upload.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[1]
_CONTEXT = {
    "github.event_name": "pull_request",
    "github.event.number": "7",
    "github.repository": "me/agentd",
    "github.token": "a-token",
}
_GH = """\
import json, pathlib, sys
words = sys.argv[1:]
kept = pathlib.Path({kept!r})
comments = json.loads(kept.read_text())
assert words[0] == "api", words
if words[1] == "--paginate":
    assert words[2:] == ["repos/me/agentd/issues/7/comments"]
    print(json.dumps(comments))
else:
    _, _, method, url, field, body = words
    assert field == "-F" and body.startswith("body=@")
    text = pathlib.Path(body.removeprefix("body=@")).read_text()
    if method == "POST":
        comments.append({{"url": f"{{url}}/{{len(comments)}}", "body": text}})
    else:
        (own,) = [one for one in comments if one["url"] == url]
        own["body"] = text
    kept.write_text(json.dumps(comments))
"""


class StepResult(NamedTuple):
    """A step that was run.

    Attributes:
        name: Its name, or its command.
        code: Its exit code.
        text: What it printed.
    """

    name: str
    code: int
    text: str


class Runner:
    """A machine that runs steps in a folder."""

    def __init__(self, folder: Path, home: Path) -> None:
        """Make the commands of the machine: footprint of this checkout, a `gh`, and a `pip` that installs nothing."""
        for tool in ("bash", "jq"):
            if shutil.which(tool) is None:
                pytest.skip(f"{tool} is missing")
        self.folder = folder
        self.home = home
        self.bin = home / "bin"
        self.kept = home / "comments.json"
        self.bin.mkdir(parents=True)
        self.kept.write_text(json.dumps([{"url": "a/foreign/comment", "body": "Looks good."}]))
        (self.bin / "gh.py").write_text(_GH.format(kept=str(self.kept)))
        self._command("gh", f'exec "{sys.executable}" "{self.bin / "gh.py"}" "$@"')
        self._command("footprint", f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m footprint "$@"')
        self._command("pip", 'echo "pip $*"')
        self._command("python3", 'echo "python3 $*"')

    def _command(self, name: str, line: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{line}\n")
        (self.bin / name).chmod(0o755)

    @property
    def comments(self) -> list[str]:
        """Return the comments on the change: one of somebody else, and those that were posted."""
        return [load["body"] for load in json.loads(self.kept.read_text())]

    def shell(self, script: str, environment: Mapping[str, str] = os.environ) -> tuple[int, str]:
        """Run a script as GitHub does, and return its exit code and what it printed."""
        variables = {
            **environment,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.home),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.home / "summary.md"),
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout.decode()

    def run(self, steps: list[dict[str, Any]], inputs: Mapping[str, str] | None = None) -> list[StepResult]:
        """Run the steps in order; after one that failed, only those that always run."""
        context = _CONTEXT | {f"inputs.{name}": text for name, text in (inputs or {}).items()}
        result: list[StepResult] = []
        for step in steps:
            is_failed = any(one.code for one in result)
            if "run" not in step or not self._is_due(step.get("if"), context, is_failed=is_failed):
                continue
            environment = {name: _filled(text, context) for name, text in step.get("env", {}).items()}
            code, text = self.shell(_filled(step["run"], context), os.environ | environment)
            result.append(StepResult(step.get("name", step["run"]), code, text))
        return result

    def _is_due(self, condition: str | None, context: Mapping[str, str], *, is_failed: bool) -> bool:
        terms = [] if condition is None else condition.split(" && ")
        if is_failed and "always()" not in terms:
            return False
        return all(self._holds(term, context) for term in terms)

    def _holds(self, term: str, context: Mapping[str, str]) -> bool:
        if term == "always()":
            return True
        if there := re.fullmatch(r"hashFiles\('([^']+)'\) != ''", term):
            return (self.folder / there[1]).is_file()
        if equal := re.fullmatch(r"([a-z._]+) == '([^']*)'", term):
            return context[equal[1]] == equal[2]
        raise ValueError(term)


def _filled(text: str, context: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ ([^}]+) \}\}", lambda match: context[match[1]], text)


def read_yaml(text: str) -> Any:  # noqa: ANN401 # what a YAML file says
    """Read YAML, as plain values."""
    return YAML(typ="safe", pure=True).load(text)
