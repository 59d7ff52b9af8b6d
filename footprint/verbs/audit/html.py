"""The HTML report of `footprint audit`."""

from typing import TYPE_CHECKING

from footprint.html import report, variable_members
from footprint.verbs.audit.either import audited_document, audited_members

if TYPE_CHECKING:
    from footprint.model.audited import Audited

__all__ = ("audit_html",)


def audit_html(audit: "Audited", version: str) -> str:
    """Write the HTML report of an audit; `version` is the version of footprint."""
    answers = {
        "kind": "audit" if audit.noun == "process" else "group",
        "audit": audited_members(audit, version),
        "variables": variable_members(audit.page_maps),
    }
    return report(audit.target, answers, audited_document(audit))
