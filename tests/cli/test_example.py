"""The example of a release gate is consistent: its Makefile, its CI files, its README and its waivers."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "server"
WORKFLOWS = (".github/workflows/footprint.yml", ".gitlab-ci.yml")
Make = Callable[..., tuple[int, str]]


def commands(workflow: str) -> list[str]:
    """Return the commands of a CI file, in order, but for those that install."""
    lines = (EXAMPLE / workflow).read_text().splitlines()
    found = [match.group(1) for line in lines if (match := re.match(r"\s*(?:- run:|run:|-) ((?:make|pip) .*)$", line))]
    assert found.count("pip install footprint-audit") >= 1
    return [one for one in found if not one.startswith("pip ")]


def test_the_reports_that_are_uploaded_are_those_that_are_made() -> None:
    for workflow in WORKFLOWS:
        made = {word for command in commands(workflow) for word in command.split()[1:]}
        text = (EXAMPLE / workflow).read_text()
        named = set(re.findall(r"(?:footprint|gl|audit)[a-z-]*\.(?:sarif|xml|json|txt|md)", text))
        assert named <= made, workflow


def test_every_command_that_the_readme_of_the_example_shows_is_in_its_makefile() -> None:
    makefile = (EXAMPLE / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z.]+):", makefile, re.MULTILINE))
    shown = set(re.findall(r"make ([a-z]+)", (EXAMPLE / "README.md").read_text()))
    assert {"baseline", "check", "compare", "measure", "record", "trend", "clean"} <= shown <= targets


def test_no_waiver_of_the_examples_expires_while_they_are_tested() -> None:
    for path in sorted(EXAMPLE.parent.rglob("*.toml")):
        for waiver in tomllib.loads(path.read_text()).get("waivers", []):
            assert waiver["expires"].year == 2099, path
