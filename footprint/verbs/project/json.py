"""The JSON of `project`."""

from dataclasses import dataclass
from typing import Literal

from footprint.errors import Note
from footprint.formats.audit_json import ProcessTarget, ProcessTotals, process_target, process_totals
from footprint.formats.codec import encode
from footprint.formats.json import Envelope, Json, Tool
from footprint.model.audit import Audit
from footprint.model.projection import Projection

__all__ = ("ProjectJson", "project_members")


@dataclass(frozen=True, kw_only=True)
class ProjectJson(Envelope):
    """The cost of N processes, and the totals of the one that it is computed from.

    Attributes:
        target: The process or program.
        totals: The figures of one process.
        projection: The cost of as many processes as were asked about.
        notes: What the reader of the figures must know.
    """

    verb: Literal["project"] = "project"
    target: ProcessTarget
    totals: ProcessTotals
    projection: Projection
    notes: tuple[Note, ...]


def project_members(audit: Audit, version: str) -> Json:
    """Return the members of the answer."""
    return encode(
        ProjectJson(
            tool=Tool("footprint", version),
            host=audit.host,
            target=process_target(audit),
            totals=process_totals(audit.totals),
            projection=audit.projection,
            notes=audit.notes,
        )
    )
