"""Workflow commands of GitHub Actions: annotations at the line that costs."""

import re

import pytest

from footprint.formats.document import About
from footprint.formats.issues import issues_of_findings
from footprint.formats.reviews import github
from footprint.model.finding import Confidence, SourceLocation
from tests.hostile import HOSTILE, finding

ABOUT = About("audit server", "1.2.3", "/home/me")
Command = tuple[str, dict[str, str], str]


def commands(text: str) -> list[Command]:
    """Read a log as the runner does: a line is a command where it begins with `::`, white space apart."""
    result = []
    for line in text.splitlines():
        assert "##[" not in line or not line.lstrip().startswith("##[")
        if not line.lstrip().startswith("::"):
            continue
        word, properties, data = re.fullmatch(r"::([a-z]+) (.*?)::(.*)", line.lstrip()).groups()  # type: ignore[union-attr]
        pairs = dict(one.split("=", 1) for one in properties.split(","))
        for key, value in pairs.items():
            pairs[key] = value.replace("%3A", ":").replace("%2C", ",").replace("%0A", "\n").replace("%25", "%")
        result.append((word, pairs, data.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")))
    return result


def test_a_sure_finding_is_a_warning_at_its_line() -> None:
    issues = issues_of_findings([finding("a::b, c", location=SourceLocation("/home/me/src/a,b.c", 7))], "server")
    (command,) = commands(github(issues, ABOUT))
    assert command == (
        "warning",
        {
            "file": "src/a,b.c",
            "line": "7",
            "title": "A large variable that could be smaller or elsewhere: a::b, c",
        },
        "a::b, c takes 4 KiB. It saves 4 KiB a process. High: a::b, c. Remedy: a::b, c.",
    )


def test_the_last_line_says_how_it_came_out() -> None:
    text = github(issues_of_findings([], "server"), ABOUT)
    assert text == "footprint: 0 findings in server.\n"


def test_of_more_than_a_step_may_have_nine_are_shown_and_one_says_how_many_there_are() -> None:
    sure = [finding(f"v{number}") for number in range(25)]
    unsure = [finding(f"u{number}", confidence=Confidence.LOW) for number in range(10)]
    found = commands(github(issues_of_findings([*sure, *unsure], "server"), ABOUT))
    warnings = [data for word, _, data in found if word == "warning"]
    assert len(warnings) == 10
    assert warnings[-1] == "16 issues more of this kind: the summary of the step has them"
    assert len([word for word, _, _ in found if word == "notice"]) == 10


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_no_name_makes_a_command_of_its_own(name: str) -> None:
    issues = issues_of_findings([finding(name, location=SourceLocation(name, 1)), finding(name)], name, binary=name)
    text = github(issues, ABOUT)
    assert text.replace("\n", "").isprintable()
    found = commands(text)
    assert [word for word, _, _ in found] == ["warning", "warning"]
    for _, properties, data in found:
        assert set(properties) <= {"file", "line", "title"}
        assert data.isprintable()
        assert len(data) <= 4 * 4000
        assert len(properties["title"]) <= 4 * 250
