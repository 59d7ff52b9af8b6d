"""What a reviewer is told of: findings and exceeded budgets as one list."""

from dataclasses import replace
from datetime import date

import footprint
from footprint.findings.registry import rule_names
from footprint.formats.issues import BUDGET, Level, issues_of_findings, relative_path, rule_text
from footprint.model.audit import Audit
from footprint.model.finding import Confidence, SearchedRule, SourceLocation
from footprint.release.budget import Checked, check_audit
from footprint.release.budget_file import parse_budgets
from footprint.verbs.check.json import issues_of_check
from tests.hostile import finding

SLEEP = "tests/corpus/smaps-sleep.txt"


def checked(toml: dict[str, object], *, today: date = date(2027, 1, 1)) -> Checked:
    return check_audit(footprint.audit(SLEEP), parse_budgets(toml, "footprint.toml"), None, today)


def test_sure_findings_that_save_something_come_first_and_fail() -> None:
    result = issues_of_findings(
        [
            finding("unsure", saving_bytes=8192, confidence=Confidence.MEDIUM),
            finding("small"),
            finding("large", saving_bytes=65536, confidence=Confidence.PROOF),
            finding("saves nothing", saving_bytes=0),
        ],
        "server",
    )
    assert [(issue.subject, issue.level, issue.fails) for issue in result.issues] == [
        ("large", Level.WARNING, True),
        ("small", Level.WARNING, True),
        ("unsure", Level.NOTE, False),
        ("saves nothing", Level.NOTE, False),
    ]
    assert result.summary == "4 findings in server, 2 of them sure."


def test_the_message_says_the_saving_of_all_processes_and_the_remedy() -> None:
    (issue,) = issues_of_findings([finding("table")], "server", count=10_000).issues
    assert issue.message == (
        "table takes 4 KiB. It saves 4 KiB a process, 39.1 MiB in 10,000. High: table. Remedy: table."
    )


def test_a_rule_that_was_applied_and_found_nothing_is_passed() -> None:
    found = issues_of_findings([finding("table")], "server", rules=("large-static", "linked-twice"))
    assert found.passed == ("linked-twice",)


def test_the_fingerprint_stays_when_the_line_the_size_or_what_compilers_number_changes() -> None:
    before = finding("table.lto_priv.0", location=SourceLocation("a.c", 7))
    after = replace(
        finding("table.lto_priv.12", saving_bytes=8192, location=SourceLocation("a.c", 90)), message="table takes 8 KiB"
    )
    (old,) = issues_of_findings([before], "server", binary="/build/1/server").issues
    (new,) = issues_of_findings([after], "server", binary="/build/2/server").issues
    (other,) = issues_of_findings([finding("another")], "server", binary="/build/2/server").issues
    assert old.fingerprint == new.fingerprint
    assert old.fingerprint != other.fingerprint


def test_the_fingerprint_is_the_same_in_every_folder() -> None:
    def fingerprint(folder: str) -> str:
        path = f"{folder}/libtable.so"
        found = replace(finding(f"{path} fill_table.isra.0", rule="heap-at-start"), object=path)
        return issues_of_findings([found], "massif.out", binary=f"{folder}/server").issues[0].fingerprint

    assert fingerprint("/home/ann/server") == fingerprint("/builds/7/my server")


def test_two_findings_of_one_name_have_fingerprints_of_their_own() -> None:
    found = issues_of_findings([finding("table"), finding("table", saving_bytes=64)], "server").issues
    first, second = (one.fingerprint for one in found)
    assert (first[-2:], second[-2:]) == (":1", ":2")
    assert first[:-2] == second[:-2]


def test_an_exceeded_number_of_findings_names_them_and_no_part_of_a_size() -> None:
    budgets = parse_budgets({"budgets": {"findings": {"large-static": 0}}}, "footprint.toml")
    searched = (SearchedRule("large-static"),)
    found = (finding("table"), finding("buffer", saving_bytes=0))
    audit = replace(footprint.audit(SLEEP), findings=found, searched_rules=searched)
    (failed, *_) = issues_of_check(check_audit(audit, budgets, None, date(2027, 1, 1)), "sleep").issues
    assert " is 2, 2 over its limit of 0. Among them: table 4 KiB, buffer. " in failed.message


def test_an_exceeded_budget_says_figure_excess_limit_and_where_the_limit_stands() -> None:
    # The `Anonymous:` of this text add up to 108 KiB.
    result = issues_of_check(checked({"budgets": {"private_bytes": "64 KiB", "mapping_count": 1000}}), "sleep")
    (issue,) = result.issues
    assert (issue.rule, issue.level, issue.subject, issue.fails) == (BUDGET, Level.ERROR, "private_bytes", True)
    assert issue.message.startswith("private_bytes is 108 KiB, 44 KiB over its limit of 64 KiB. Most of it: ")
    assert issue.message.endswith("The limit stands in footprint.toml.")
    assert issue.location == SourceLocation("footprint.toml", None)
    assert result.passed == ("mapping_count",)
    assert result.summary == "sleep: 1 of 2 limits exceeded: private_bytes by 44 KiB, most of it libc.so.6."


def test_a_waived_budget_is_told_and_fails_nothing_until_the_waiver_expires() -> None:
    toml: dict[str, object] = {
        "budgets": {"private_bytes": 0},
        "waivers": [{"budget": "private_bytes", "reason": "the new parser", "expires": date(2027, 1, 31)}],
    }
    (waived,) = issues_of_check(checked(toml), "sleep").issues
    assert (waived.level, waived.fails, waived.waiver) == (Level.NOTE, False, "the new parser")
    assert "Waived until 2027-01-31: the new parser." in waived.message
    (expired,) = issues_of_check(checked(toml, today=date(2027, 2, 1)), "sleep").issues
    assert (expired.level, expired.fails, expired.waiver) == (Level.ERROR, True, None)
    assert "Waived expired on 2027-01-31" not in expired.message
    assert "Its waiver expired on 2027-01-31: the new parser." in expired.message


def test_findings_beside_budgets_are_told_and_fail_nothing() -> None:
    base = checked({"budgets": {"private_bytes": "1 GiB"}})
    assert isinstance(base.audit, Audit)
    found = base._replace(audit=replace(base.audit, findings=(finding("table"),)))
    (issue,) = issues_of_check(found, "sleep").issues
    assert (issue.level, issue.fails) == (Level.WARNING, False)


def test_paths_below_the_folder_are_relative_to_it() -> None:
    assert relative_path("/home/me/src/a.c", "/home/me") == "src/a.c"
    assert relative_path("/home/mean/a.c", "/home/me") == "/home/mean/a.c"
    assert relative_path("./a.c", "/home/me") == "a.c"


def test_every_rule_of_the_findings_is_explained() -> None:
    for name in (*rule_names(), BUDGET):
        rule = rule_text(name)
        assert rule.title != name
        assert rule.what != rule.title
        assert "](" not in rule.page
        assert "**Remedy.**" in rule.page


def test_a_rule_of_a_later_version_is_known_by_its_name() -> None:
    assert rule_text("new-rule") == ("new-rule", "new-rule", "new-rule")
