"""The HTML report of `footprint audit`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from footprint.formats.audit_json import audit_columns
from footprint.formats.document import Document
from footprint.html import made_here, map_members, report
from footprint.json.answer import Json
from footprint.json.codec import encode
from footprint.model.audit import is_reproducible, program_name, program_names
from footprint.model.cost_parts import cost_parts
from footprint.sources.fit_limits import limits_of_more
from footprint.text.units import counted, first_of
from footprint.verbs.audit.summary import advice_about
from footprint.verbs.audit.text import audit_document

if TYPE_CHECKING:
    from footprint.model.audit import Audit


def title_of(audit: "Audit") -> str:
    """Return the title of the report of an audit: for a process its program and its PID, for a group its programs."""
    if audit.members:
        return f"{first_of(program_names(audit), 2)}, {counted(len(audit.members), 'process')}"
    last = audit.target.rsplit("/", 1)[-1]
    return last if audit.pid is None else f"{program_name(audit) or last}, process {audit.pid}"


def surroundings(audit: "Audit") -> Json:
    """Return when and where an audit was made, or the report of a saved one, and the limits there on how many can run.

    A reproducible report does not tell.
    """
    if is_reproducible(audit):
        return {"made": None, "limits": []}
    is_here = audit.saved_in is None and (audit.is_live or audit.source == "prediction")
    return {"made": made_here(is_report=not is_here), "limits": list(map(encode, limits_of_more(audit)))}


def first_screen(audit: "Audit") -> Json:
    """Return who pays for what N cost, the parts that add up to the terms of the projection, and what to do first."""
    return {"payers": list(map(encode, cost_parts(audit))), "advice": encode(advice_about(audit))}


def audit_html(
    audit: "Audit",
    version: str,
    failure: str = "",
    more: Mapping[str, Any] = MappingProxyType({}),
    above: Document = (),
) -> str:
    """Write the HTML report of an audit.

    Args:
        audit: The audit.
        version: The version of footprint.
        failure: Why the command fails; "" where it does not.
        more: Further members of the answer.
        above: What stands above the audit in the document.
    """
    members = audit_columns(audit, version)
    answers = {
        "kind": "audit" if audit.noun == "process" else "group",
        "audit": members,
        "maps": map_members(audit, members["ledger"]),
        **first_screen(audit),
        **more,
        **surroundings(audit),
    }
    return report(title_of(audit), answers, (*above, *audit_document(audit)), failure=failure)
