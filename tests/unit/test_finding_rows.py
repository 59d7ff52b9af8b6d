"""What several findings save together, in the table of findings."""

from dataclasses import replace

from footprint.formats.audit_rows import finding_rows
from footprint.model.finding import Confidence, Finding, SearchedRule
from footprint.release.compare import compare
from footprint.verbs.diff.json import diff_answer
from tests.ledgers import audit_of, ledger_row

KIB = 1024


def finding(subject: str, saving_bytes: int, *leaves: str, confidence: Confidence = Confidence.HIGH) -> Finding:
    return Finding("rule", "kind", subject, "found", saving_bytes, confidence, (), "do it", leaves, object=subject)


def test_what_several_findings_free_counts_once() -> None:
    ledger = [ledger_row(path, 8 * KIB) for path in ("/lib/a.so", "/lib/b.so", "/lib/c.so")]
    findings = (
        # a.so and b.so leave together, and with b.so its tables.
        finding("/lib/a.so", 16 * KIB, "/lib/a.so", "/lib/b.so"),
        finding("/lib/b.so", 8 * KIB, "/lib/b.so"),
        finding("/lib/b.so", 4 * KIB),
        # c.so holds no more than 8 KiB.
        finding("/lib/c.so", 4 * KIB),
        finding("/lib/c.so", 7 * KIB),
        finding("/lib/c.so", 3 * KIB),
    )
    rows = finding_rows(findings, 10, ledger)
    assert [row.added_bytes for row in rows] == [16 * KIB, 0, 0, 1 * KIB, 7 * KIB, 0]
    # Each by itself saves what it did.
    assert [row.saving_at_count_bytes for row in rows] == [10 * one.saving_bytes for one in findings]


def test_what_an_object_holds_is_no_limit_where_it_is_not_known() -> None:
    rows = finding_rows((finding("/lib/a.so", 16 * KIB), finding("/lib/a.so", 4 * KIB)), 1)
    assert [row.added_bytes for row in rows] == [16 * KIB, 4 * KIB]


def test_a_blocked_remedy_adds_nothing() -> None:
    rows = finding_rows((finding("/lib/a.so", 4 * KIB, "/lib/a.so", confidence=Confidence.BLOCKED),), 1)
    assert [row.added_bytes for row in rows] == [0]


def test_findings_of_a_comparison_add_no_more_than_the_object_of_their_side_holds() -> None:
    bare = replace(
        audit_of(ledger_row("/lib/c.so", 8 * KIB)), searched_rules=(SearchedRule("rule"), SearchedRule("other"))
    )
    found = replace(
        bare, findings=(finding("/lib/c.so", 7 * KIB), replace(finding("/lib/c.so", 4 * KIB), rule="other"))
    )
    new, fixed = (
        diff_answer(compare(bare, found), "1").new_findings,
        diff_answer(compare(found, bare), "1").fixed_findings,
    )
    assert [row.added_bytes for row in new] == [row.added_bytes for row in fixed] == [7 * KIB, 1 * KIB]
