"""The pages: of an audit, of a comparison, of heap profiles."""

from collections.abc import Sequence
from typing import Any

from footprint.attribution.heap_usage import HeapUsage
from footprint.errors import Note
from footprint.formats.document import Document, Paragraph
from footprint.html.columns import MOST_EXACT, inexact_count, payload
from footprint.html.moments import moment_rows
from footprint.html.page_maps import variable_members
from footprint.html.shell import page
from footprint.html.static import static_html
from footprint.model.audit import Audit
from footprint.model.finding import Finding
from footprint.release.budget import Checked
from footprint.release.compare import Comparison
from footprint.units import counted, format_bytes
from footprint.verbs.audit.json import audit_members
from footprint.verbs.audit.text import audit_report
from footprint.verbs.check.json import check_members
from footprint.verbs.check.text import check_report
from footprint.verbs.diff.json import diff_members
from footprint.verbs.diff.text import diff_report
from footprint.verbs.heap.json import heap_members
from footprint.verbs.heap.text import heap_report

__all__ = ("audit_page", "check_page", "diff_page", "heap_page")

Json = dict[str, Any]


def audit_page(audit: Audit, version: str) -> str:
    """Write the page of an audit.

    Args:
        audit: It.
        version: The footprint that writes it.
    """
    answers = {"kind": "audit", "audit": audit_members(audit, version), "variables": variable_members(audit.page_maps)}
    return _page(audit.target, answers, audit_report(audit))


def check_page(checked: Checked, version: str) -> str:
    """Write the page of an audit with what became of its budgets."""
    audit = checked.audit
    answers = {
        "kind": "audit",
        "audit": audit_members(audit, version),
        "variables": variable_members(audit.page_maps),
        "check": check_members(checked, version),
    }
    return _page(audit.target, answers, (*check_report(checked), *audit_report(audit)))


def diff_page(found: Comparison, version: str) -> str:
    """Write the page of a comparison: both audits, and what changed."""
    answers = {
        "kind": "diff",
        "diff": diff_members(found, version),
        "old": audit_members(found.old, version),
        "audit": audit_members(found.new, version),
        "old_variables": variable_members(found.old.page_maps),
        "variables": variable_members(found.new.page_maps),
    }
    title = f"{found.old.saved_in or found.old.target} -> {found.new.saved_in or found.new.target}"
    return _page(title, answers, diff_report(found))


def heap_page(
    usages: Sequence[HeapUsage], notes: Sequence[Note], version: str, findings: Sequence[Finding] = ()
) -> str:
    """Write the page of heap profiles, with every call tree of theirs that was built."""
    moments, warning = moment_rows(usages)
    # Not rows of one table, so that those within each become columns.
    answers = {
        "kind": "heap",
        "heap": heap_members(usages, notes, version, by="tree", findings=findings),
        "moments": dict(enumerate(moments)),
    }
    document = heap_report(usages, notes, findings)
    return _page(", ".join(usage.file for usage in usages), answers, document, warning)


def _page(title: str, answers: Json, document: Document, warning: str = "") -> str:
    inexact = inexact_count(answers)
    if inexact:
        warning = (
            f"{counted(inexact, 'figure')} above {format_bytes(MOST_EXACT + 1)} cannot be told exactly by a browser: "
            f"this page and what is saved from it round them. `--json` has them whole. {warning}"
        ).rstrip()
    if warning:
        document = (Paragraph(warning), *document)
    return page(f"footprint: {title}", payload(answers | {"warning": warning}), static_html(document))
