"""The HTML report of `footprint audit`."""

from footprint.formats.audit_json import audit_members
from footprint.html import report, variable_members
from footprint.model.audit import Audit
from footprint.verbs.audit.text import audit_document

__all__ = ("audit_html",)


def audit_html(audit: Audit, version: str) -> str:
    """Write the HTML report of an audit; `version` is the version of footprint."""
    answers = {"kind": "audit", "audit": audit_members(audit, version), "variables": variable_members(audit.page_maps)}
    return report(audit.target, answers, audit_document(audit))
