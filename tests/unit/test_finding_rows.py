"""What several findings save together, in the table of findings."""

from footprint.formats.finding_rows import finding_rows
from footprint.model.finding import Confidence, Finding
from tests.ledgers import ledger_row

KIB = 1024


def finding(subject: str, saving_bytes: int, *leaves: str, confidence: Confidence = Confidence.HIGH) -> Finding:
    return Finding("rule", "kind", subject, "found", saving_bytes, confidence, (), "do it", leaves, object_path=subject)


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
