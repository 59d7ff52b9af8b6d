"""The HTML report of `footprint diff`."""

from footprint.formats.codec import encode_columns
from footprint.html import map_members, report
from footprint.model.audited_names import is_reproducible
from footprint.release.compare import Comparison
from footprint.verbs.audit.either import audited_columns
from footprint.verbs.audit.html import title_of
from footprint.verbs.diff.json import diff_answer
from footprint.verbs.diff.text import diff_document

__all__ = ("diff_html",)


def diff_html(found: Comparison, version: str, failure: str = "") -> str:
    """Write the HTML report of a comparison and of both audits, as `audit_html` does."""
    old, new = audited_columns(found.old, version), audited_columns(found.new, version)
    answers = {
        "kind": "diff",
        "diff": encode_columns(diff_answer(found, version)),
        "old": old,
        "audit": new,
        "old_maps": map_members(found.old, old["ledger"]),
        "maps": map_members(found.new, new["ledger"]),
        **({"made": None} if is_reproducible(found.old) and is_reproducible(found.new) else {}),
    }
    return report(f"{title_of(found.old)} → {title_of(found.new)}", answers, diff_document(found), failure=failure)
