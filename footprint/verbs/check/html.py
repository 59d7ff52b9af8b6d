"""The HTML report of `footprint check`."""

from footprint.html import map_members, report
from footprint.release.budget import Checked
from footprint.verbs.audit.either import audited_columns, audited_document
from footprint.verbs.audit.html import payers, surroundings, title_of
from footprint.verbs.check.json import check_members
from footprint.verbs.check.text import check_document

__all__ = ("check_html",)


def check_html(checked: Checked, version: str, failure: str = "") -> str:
    """Write the HTML report of an audit with its budgets, as `audit_html` does."""
    audit = checked.audit
    members = audited_columns(audit, version)
    answers = {
        "kind": "audit" if audit.noun == "process" else "group",
        "audit": members,
        "maps": map_members(audit, members["ledger"]),
        **payers(audit),
        "check": check_members(checked, version),
        **surroundings(audit),
    }
    document = (*check_document(checked), *audited_document(audit))
    return report(title_of(audit), answers, document, failure=failure)
