"""The HTML report of `footprint audit`."""

from typing import TYPE_CHECKING

from footprint.formats.codec import encode
from footprint.formats.json import Json
from footprint.html import made_here, map_members, report
from footprint.model.audited_names import is_reproducible, program_name, program_names
from footprint.model.cost_parts import cost_parts
from footprint.sources.fit_limits import limits_of_more
from footprint.units import counted, first_of
from footprint.verbs.audit.either import audited_columns, audited_document

if TYPE_CHECKING:
    from footprint.model.audited import Audited

__all__ = ("audit_html", "payers", "surroundings", "title_of")


def title_of(audit: "Audited") -> str:
    """Return the title of the report of an audit: for a process its program and its PID, for a group its programs."""
    if audit.members:
        return f"{first_of(program_names(audit), 2)}, {counted(len(audit.members), 'process')}"
    last = audit.target.rsplit("/", 1)[-1]
    return last if audit.pid is None else f"{program_name(audit) or last}, process {audit.pid}"


def surroundings(audit: "Audited") -> Json:
    """Return when and where an audit was made, or the report of a saved one, and the limits there on how many can run.

    A reproducible report does not tell.
    """
    if is_reproducible(audit):
        return {"made": None, "limits": []}
    is_here = audit.saved_in is None and (audit.is_live or audit.source == "prediction")
    return {"made": made_here(is_report=not is_here), "limits": list(map(encode, limits_of_more(audit)))}


def payers(audit: "Audited") -> Json:
    """Return who pays for what N cost: the parts that add up to the terms of the projection."""
    return {"payers": list(map(encode, cost_parts(audit)))}


def audit_html(audit: "Audited", version: str, failure: str = "") -> str:
    """Write the HTML report of an audit; `version` is the version of footprint, `failure` why the command fails."""
    members = audited_columns(audit, version)
    answers = {
        "kind": "audit" if audit.noun == "process" else "group",
        "audit": members,
        "maps": map_members(audit, members["ledger"]),
        **payers(audit),
        **surroundings(audit),
    }
    return report(title_of(audit), answers, audited_document(audit), failure=failure)
