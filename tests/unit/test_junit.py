"""JUnit XML: budgets and findings as the test cases of a CI server."""

from datetime import date

import junitparser
import pytest

import footprint
from footprint.formats.document import About
from footprint.formats.issues import issues_of_findings
from footprint.formats.reviews import junit
from footprint.model.finding import Confidence, SourceLocation
from footprint.release.budget import check_audit
from footprint.release.budget_file import parse_budgets
from footprint.verbs.check.json import issues_of_check
from tests.formatschemas import JUNIT_SCHEMA
from tests.hostile import HOSTILE, finding

ABOUT = About("audit server", "1.2.3")


def read(text: str) -> junitparser.TestSuite:
    JUNIT_SCHEMA.validate(text)
    (suite,) = junitparser.JUnitXml.fromstring(text.encode())
    cases = list(suite)
    assert suite.tests == len(cases)
    assert suite.failures == sum(case.is_failure for case in cases)
    assert suite.skipped == sum(case.is_skipped for case in cases)
    return suite


def test_sure_findings_fail_and_others_pass_with_their_text() -> None:
    issues = issues_of_findings(
        [
            finding("table", location=SourceLocation("src/a.c", 7)),
            finding("other", confidence=Confidence.LOW),
        ],
        "server",
        rules=("large-static", "linked-twice"),
    )
    suite = read(junit(issues, ABOUT))
    assert suite.name == "audit server"
    passed, failed, unsure = suite
    assert (passed.classname, passed.name, passed.result) == ("footprint.linked-twice", "linked-twice", [])
    assert (failed.classname, failed.name) == ("footprint.large-static", "table")
    assert failed.result[0].message == "A large variable that could be smaller or elsewhere: table"
    assert failed.result[0].text.startswith("table takes 4 KiB.")
    assert (failed._elem.get("file"), failed._elem.get("line")) == ("src/a.c", "7")
    assert unsure.result == []
    assert unsure.system_out.startswith("other takes 4 KiB.")


def test_findings_of_one_name_are_test_cases_of_their_own() -> None:
    suite = read(junit(issues_of_findings([finding("table"), finding("table")], "server"), ABOUT))
    assert [case.name for case in suite] == ["table", "table (2)"]


def test_each_limit_of_a_check_is_a_test_case() -> None:
    # The `Anonymous:` of this text add up to 108 KiB, of 37 mappings.
    toml = {
        "budgets": {"private_bytes": "64 KiB", "mapping_count": {"max": 1}, "mapped_bytes": "1 GiB"},
        "waivers": [{"budget": "mapping_count", "reason": "plugins", "expires": date(2027, 1, 31)}],
    }
    audit = footprint.audit("tests/corpus/smaps-sleep.txt")
    checked = check_audit(audit, parse_budgets(toml, "footprint.toml"), None, date(2027, 1, 1))
    suite = read(junit(issues_of_check(checked, "sleep"), ABOUT))
    cases = {case.name: case for case in suite}
    assert cases["mapped_bytes"].result == []
    assert cases["private_bytes"].is_failure
    assert (
        cases["private_bytes"].result[0].text.startswith("private_bytes is 108 KiB, 44 KiB over its limit of 64 KiB.")
    )
    assert cases["mapping_count"].is_skipped
    assert cases["mapping_count"].result[0].message == "plugins"


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_any_name_comes_out_as_a_text_that_shows_what_it_is(name: str) -> None:
    text = junit(issues_of_findings([finding(name, location=SourceLocation(name, 1))], "server"), About(name, "1"))
    assert text.replace("\n", "").isprintable()
    suite = read(text)
    (case,) = suite
    assert case.is_failure
    # Nothing of the name became an element of its own.
    tags = [element.tag for element in suite._elem.iter()]
    assert tags == ["testsuite", "testcase", "failure", "system-out"]
    assert len(text) < 5 * 10_000
