"""GitLab's Code Quality report: findings and budgets in a merge request."""

import json
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from footprint.formats.document import About
from footprint.formats.issues import Issues, Level, issues_of_findings
from footprint.formats.reviews import gitlab
from footprint.model.finding import Confidence, SourceLocation
from tests.formatschemas import GITLAB_SCHEMA
from tests.hostile import HOSTILE, finding

ABOUT: Final = About("audit server", "1.2.3", "/home/me")


def read(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)
    Draft202012Validator(GITLAB_SCHEMA).validate(found)
    # Of entries with one fingerprint GitLab keeps one.
    assert len({one["fingerprint"] for one in found}) == len(found)
    return found


def test_a_finding_is_at_its_line_and_one_without_at_the_first_of_its_binary() -> None:
    issues = issues_of_findings(
        [finding("a", location=SourceLocation("/home/me/src/a.c", 7)), finding("b", confidence=Confidence.LOW)],
        "server",
        binary="./server",
    )
    first, second = read(gitlab(issues, ABOUT))
    assert (first["location"], first["severity"]) == ({"path": "src/a.c", "lines": {"begin": 7}}, "minor")
    assert (second["location"], second["severity"]) == ({"path": "server", "lines": {"begin": 1}}, "info")


def test_findings_of_one_name_stay_apart() -> None:
    assert len(read(gitlab(issues_of_findings([finding("a"), finding("a")], "server"), ABOUT))) == 2


def test_an_exceeded_budget_is_major_and_a_waived_one_is_not_told() -> None:
    place = SourceLocation("footprint.toml", None)
    (exceeded,) = issues_of_findings([finding("b", location=place)], "server").issues
    exceeded = exceeded._replace(level=Level.ERROR)
    waived = exceeded._replace(fingerprint="2", waiver="why")
    (entry,) = read(gitlab(Issues("server", (exceeded, waived), (), ""), ABOUT))
    assert (entry["severity"], entry["location"]["path"]) == ("major", "footprint.toml")


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_any_name_comes_out_as_a_text_that_shows_what_it_is(name: str) -> None:
    issues = issues_of_findings([finding(name, location=SourceLocation(name, 1)), finding(name)], "server", binary=name)
    for entry in read(gitlab(issues, ABOUT)):
        assert entry["description"].isprintable()
        assert entry["location"]["path"].isprintable()
        assert len(entry["description"]) <= 4 * 1000
