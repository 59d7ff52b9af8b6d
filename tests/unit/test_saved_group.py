"""Groups of processes as audits are: saved and read back, compared, checked, recorded, with findings told once."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

import footprint
from footprint.attribution.families import reprojected_group
from footprint.attribution.group import group_up
from footprint.errors import InputError, UsageError
from footprint.formats.audit_json import audit_json, audit_members
from footprint.formats.issues import issues_of_audit
from footprint.formats.metrics import audit_metrics
from footprint.formats.saved_audit import read_audit
from footprint.model.audit import Audit
from footprint.model.costs import ObjectCost
from footprint.model.finding import Confidence, Finding, SearchedRule
from footprint.model.projection import Question
from footprint.model.row import MemoryKind
from footprint.release.budget import check_audit, figure_of, parts_of, propose
from footprint.release.budget_file import parse_budgets
from footprint.release.compare import compare
from footprint.release.history import recording_of
from footprint.release.member_changes import MemberStatus
from footprint.verbs.audit.html import audit_html
from footprint.verbs.check.json import check_html
from footprint.verbs.diff.json import diff_html
from tests.groupmembers import KIB, TEXT, Member, file, heap, member
from tests.reports import answers_of


def family(*private_kib: int, first_pid: int = 1) -> Audit:
    """Return two or three processes that have 48 KiB with one another, and each so much alone."""
    share = 48 // len(private_kib)
    members = [
        member(pid, heap(private, 48), file(TEXT, 100), pss_anon=private + share)
        for pid, private in enumerate(private_kib, first_pid)
    ]
    return group_up(members, target="--tree 1")


def saved(group: Audit) -> bytes:
    return audit_json(group, "1.2.3").encode()


def read(data: bytes) -> Audit:
    return read_audit(data, "group.json").audit


# --- saved and read back ----------------------------------------------------------------------------------------------


def test_a_group_that_was_saved_is_read_back_without_the_audits_of_its_processes() -> None:
    group = family(60, 25)
    assert read(saved(group)) == replace(group, group=group.group._replace(audits=()), saved_in="group.json")


def test_the_rows_of_a_group_that_was_read_back_add_up_to_its_totals() -> None:
    group = read(saved(family(60, 25)))
    own = sum(row.bytes or 0 for row in group.ledger if row.kind is not MemoryKind.KERNEL)
    kernel = sum(row.bytes or 0 for row in group.ledger if row.kind is MemoryKind.KERNEL)
    assert (own, kernel) == (group.totals.private.bytes, group.totals.kernel.bytes)
    assert own == sum(one.totals.private.bytes or 0 for one in group.members) == 85 * KIB
    shares = (group.totals.cow_shared.bytes or 0) + (group.group.own_shared.bytes or 0)
    assert group.totals.per_process.bytes == own + kernel + shares
    assert group.totals.cow_shared.bytes == 48 * KIB


def test_a_saved_group_is_projected_to_another_number_without_its_processes() -> None:
    group = family(60, 25)
    many = reprojected_group(read(saved(group)), Question(10)).projection
    assert group.projection.shared_once_bytes is not None
    assert many.total_bytes == 10 * group.projection.per_process_bytes + group.projection.shared_once_bytes


def test_what_a_saved_group_writes_is_what_it_was_read_from() -> None:
    text = saved(family(60, 25))
    assert saved(read(text)) == text


def changed(data: bytes, **members: object) -> bytes:
    return json.dumps({**json.loads(data), **members}).encode()


@pytest.mark.parametrize(
    ("members", "cause"),
    [
        ({"processes": []}, "`processes` is empty"),
        ({"ledger": []}, "it was changed since it was written: the rows hold 0 private bytes, the total is 87040"),
        ({"group": {}}, "is missing"),
        ({"target": 7}, "it is damaged"),
    ],
)
def test_a_damaged_group_is_an_error_with_its_file_and_cause(members: dict[str, object], cause: str) -> None:
    with pytest.raises(InputError, match=cause) as raised:
        read(changed(saved(family(60, 25)), **members))
    assert str(raised.value).startswith("group.json: ")


def test_a_saved_group_is_read_by_the_public_call(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    group = family(60, 25)
    footprint.save(group, path)
    assert footprint.audit(path).members == group.members
    again = footprint.audit(path, count=3)
    assert again.projection.count == 3
    assert footprint.audit(path, count=3, workers=5).group.workers.count == 5
    with pytest.raises(UsageError, match=r"^--model goes with .* or a saved audit; .* is a saved group$"):
        footprint.audit(path, model="fork")


# --- compared ---------------------------------------------------------------------------------------------------------


def test_a_group_is_compared_as_a_whole_and_its_processes_one_by_one() -> None:
    result = compare(family(60, 25, 30), family(60, 45), 10)
    total = result.total("per_group")
    assert total is not None
    assert total.delta_bytes == (60 + 45 - 60 - 25 - 30) * KIB + _kernel(result.new) - _kernel(result.old)
    assert total.delta_at_count(10) == 10 * total.delta_bytes
    told = [(one.status, one.old_pid, one.pid, one.delta_bytes) for one in result.members]
    assert told == [
        (MemberStatus.WENT, 3, None, -30 * KIB),
        (MemberStatus.CHANGED, 2, 2, 20 * KIB),
        (MemberStatus.SAME, 1, 1, 0),
    ]
    private = result.total("private")
    assert private is not None
    assert sum(one.delta_bytes or 0 for one in result.members) == private.delta_bytes
    assert sum(one.delta_bytes for one in result.changes if one.kind is not MemoryKind.KERNEL) == private.delta_bytes


def _kernel(group: Audit) -> int:
    return group.figures["kernel_bytes"].bytes or 0


def test_a_group_that_was_started_again_has_the_same_processes_under_other_numbers() -> None:
    found = compare(family(60, 25), family(60, 25, 5, first_pid=100))
    assert [one.status for one in found.members] == [MemberStatus.CAME, MemberStatus.SAME, MemberStatus.SAME]
    assert [one.pid for one in found.members] == [102, 100, 101]


def test_the_marginal_worker_is_compared_and_has_no_sum_over_groups() -> None:
    found = compare(family(60, 60), family(80, 80), 10)
    worker = found.total("per_worker")
    assert worker is not None
    assert worker.delta_bytes == 20 * KIB
    assert worker.delta_at_count(10) is None


def test_a_group_is_not_compared_with_a_process() -> None:
    group = family(60, 25)
    with pytest.raises(UsageError, match="is a group of processes, 1 is one: compare two groups, or two processes"):
        footprint.diff(group, group.group.audits[0])


# --- budgets and histories --------------------------------------------------------------------------------------------


def test_the_figures_of_a_group_have_budgets_and_limits_of_growth() -> None:
    budgets = parse_budgets(
        {
            "budgets": {
                "per_group_bytes": {"max": "1 GiB", "max_increase": "10 KiB"},
                "process_count": 1,
                "shared_between_bytes": "64 KiB",
                "owners": {"[heap]": "100 KiB"},
            },
            "baseline": "base.json",
        },
        "footprint.toml",
    )
    checked = check_audit(family(60, 60), budgets, family(60, 25), date(2026, 1, 1))
    assert [(failure.key, failure.grew_from is not None) for failure in checked.failures] == [
        ("process_count", False),
        ('owners."[heap]"', False),
        ("per_group_bytes", True),
    ]
    assert checked.failures[-1].contributors[0] == ("[heap]", 35 * KIB)


@pytest.mark.parametrize(
    ("figure", "cost"), [("per_process_bytes", "per_group_bytes"), ("floor_bytes", "per_group_bytes")]
)
def test_a_budget_on_a_figure_of_one_process_names_that_of_a_group(figure: str, cost: str) -> None:
    budgets = parse_budgets({"budgets": {figure: 1}}, "footprint.toml")
    with pytest.raises(UsageError, match=f"this is a group, which has no such figure: its cost is {cost}"):
        check_audit(family(60, 25), budgets, None, date(2026, 1, 1))


def test_a_first_budget_file_of_a_group_limits_the_group_and_the_worker() -> None:
    lines = propose(family(60, 25)).splitlines()
    assert lines[0] == "# What one group may cost. `footprint check` fails where one of these is exceeded."
    assert [line.partition(" ")[0] for line in lines[3:6]] == ["per_group_bytes", "private_bytes", "per_worker_bytes"]


def test_what_a_group_costs_is_made_up_of_its_owners_and_of_what_it_shares() -> None:
    group = family(60, 25)
    parts = parts_of("per_group_bytes", group)
    assert parts["[shared between them]"] == 48 * KIB
    assert sum(parts.values()) == group.totals.per_process.bytes
    assert figure_of("total_at_count_bytes", group, 10) == 10 * (group.totals.per_process.bytes or 0) + 100 * KIB


def test_a_release_of_a_group_is_recorded_with_the_figures_of_a_group() -> None:
    made = recording_of(family(60, 25), "1.0", is_commit=False, time=0, tool_version="1", program="family")
    assert {"per_group_bytes", "per_worker_bytes", "process_count", "shared_between_bytes"} <= made.figures.keys()
    assert made.figures["process_count"] == 2
    assert "per_process_bytes" not in made.figures


# --- findings ---------------------------------------------------------------------------------------------------------


def searched(pid: int, saving_bytes: int, *others: Finding) -> Member:
    """Return a process with an unused library that costs so much, and other findings."""
    snapshot, audit = member(pid, heap(60), pss_anon=60)
    one = Finding(
        "unused-library", "unused", "libz.so.1", "nobody uses it", saving_bytes, Confidence.HIGH, ("why",), "drop it"
    )
    cost = ObjectCost("/usr/lib/libz.so.1", "libz.so.1", saving_bytes, saving_bytes, None, 8)
    rules = (SearchedRule("unused-library"),)
    return snapshot, replace(audit, findings=(one, *others), objects=(cost,), searched_rules=rules)


def test_a_finding_of_several_processes_is_told_once_with_their_number_and_what_all_save() -> None:
    other = Finding("large-static", "unused", "table", "nobody uses it", 9, Confidence.HIGH, (), "drop it")
    group = group_up([searched(1, 4096), searched(2, 8192, other)])
    told = [(finding.subject, finding.saving_bytes, finding.member_count) for finding in group.findings]
    assert told == [("libz.so.1", 12288, 2), ("table", 9, 1)]
    assert group.findings[0].noun == "group"
    assert group.objects == (ObjectCost("/usr/lib/libz.so.1", "libz.so.1", 12288, 12288, None, 16),)
    assert group.searched_rules == (SearchedRule("unused-library"),)
    assert read(saved(group)).findings == group.findings


def test_what_one_process_has_twice_is_told_twice() -> None:
    twice = Finding("unused-library", "unused", "libz.so.1", "nobody uses it", 1, Confidence.HIGH, ("why",), "drop it")
    group = group_up([searched(1, 4096, twice), searched(2, 4096)])
    assert [(finding.saving_bytes, finding.member_count) for finding in group.findings] == [(8192, 2), (1, 1)]


# --- formats ----------------------------------------------------------------------------------------------------------


def test_the_report_of_a_group_holds_the_answer_that_json_gives_and_stands_without_a_script() -> None:
    group = family(60, 25)
    report = audit_html(group, "1.2.3")
    answers = answers_of(report)
    assert answers["kind"] == "group"
    assert answers["audit"] == audit_members(group, "1.2.3")
    assert "Together they cost" in report


def test_the_report_of_two_groups_and_that_of_a_check_hold_both_groups() -> None:
    before, now = family(60, 25), family(60, 45)
    answers = answers_of(diff_html(compare(before, now, 10), "1.2.3"))
    assert answers["old"] == audit_members(before, "1.2.3")
    assert answers["audit"] == audit_members(now, "1.2.3")
    assert [one["status"] for one in answers["diff"]["members"]] == ["changed", "same"]
    budgets = parse_budgets({"budgets": {"per_group_bytes": 1}}, "footprint.toml")
    answers = answers_of(check_html(check_audit(now, budgets, None, date(2026, 1, 1)), "1.2.3"))
    assert (answers["kind"], answers["check"]["checks_failed"]) == ("group", 1)


def test_issues_of_a_group_name_the_processes_that_have_a_finding() -> None:
    (issue,) = issues_of_audit(group_up([searched(1, 4096), searched(2, 8192)])).issues
    assert "It saves 12 KiB a group, in 2 processes of it." in issue.message


def test_metrics_of_a_group_have_its_figures_its_processes_and_what_many_cost() -> None:
    values = {one.name: one.samples[0].value for one in audit_metrics(family(60, 25)) if one.samples}
    assert values["processes"] == 2
    assert values["private"] == 85 * KIB
    assert values["projected_groups"] == 1
