"""The pages: of an audit, of a comparison, of heap profiles."""

from typing import Any

from footprint.audit.audit import Audit
from footprint.audit.compare import Comparison
from footprint.report.document import Document, Paragraph
from footprint.report.html.columns import MOST_EXACT, inexact_count, payload
from footprint.report.html.shell import page
from footprint.report.html.static import static_html
from footprint.report.json.audit import audit_members
from footprint.report.json.diff import diff_members
from footprint.report.views.audit import audit_report
from footprint.report.views.diff import diff_report
from footprint.units import counted, format_bytes

__all__ = ("audit_page", "diff_page")

Json = dict[str, Any]


def audit_page(audit: Audit, version: str) -> str:
    """Write the page of an audit.

    Args:
        audit: It.
        version: The footprint that writes it.
    """
    answers = {"kind": "audit", "audit": audit_members(audit, version)}
    return _page(audit.target, answers, audit_report(audit))


def diff_page(found: Comparison, version: str) -> str:
    """Write the page of a comparison: both audits, and what changed."""
    answers = {
        "kind": "diff",
        "diff": diff_members(found, version),
        "old": audit_members(found.old, version),
        "audit": audit_members(found.new, version),
    }
    title = f"{found.old.saved_in or found.old.target} -> {found.new.saved_in or found.new.target}"
    return _page(title, answers, diff_report(found))


def _page(title: str, answers: Json, document: Document) -> str:
    inexact = inexact_count(answers)
    warning = ""
    if inexact:
        warning = (
            f"{counted(inexact, 'figure')} above {format_bytes(MOST_EXACT + 1)} cannot be told exactly by a browser: "
            "this page and what is saved from it round them. `--json` has them whole."
        )
        document = (Paragraph(warning), *document)
    return page(f"footprint: {title}", payload(answers | {"warning": warning}), static_html(document))
