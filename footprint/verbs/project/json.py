"""The JSON of `project`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.audit_json import ProcessTarget, ProcessTotals, process_target, process_totals
from footprint.formats.codec import encode
from footprint.formats.json import Envelope, Json, Tool
from footprint.model.audit import Audit
from footprint.model.projection import Projection

__all__ = ("ProjectJson", "SideBySideJson", "project_members", "side_by_side_members")


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


class ProjectedTarget(NamedTuple):
    """One of several targets, and what N of it cost.

    Attributes:
        target: The process or program.
        bits: 32 or 64; null where it is not known.
        totals: The figures of one process.
        projection: The cost of as many processes as were asked about.
    """

    target: ProcessTarget
    bits: int | None
    totals: ProcessTotals
    projection: Projection


@dataclass(frozen=True, kw_only=True)
class SideBySideJson(Envelope):
    """What N processes of each of several targets cost.

    Attributes:
        targets: The targets, in the order in which they were named.
        notes: What the reader of the figures must know.
    """

    verb: Literal["project"] = "project"
    targets: tuple[ProjectedTarget, ...]
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


def side_by_side_members(audits: Sequence[tuple[Audit, int | None]], version: str) -> Json:
    """Return the members of the answer about several targets, each with its bits."""
    host: Mapping[str, str] = next((audit.host for audit, _ in audits), {})
    return encode(
        SideBySideJson(
            tool=Tool("footprint", version),
            host=host,
            targets=tuple(
                [
                    ProjectedTarget(process_target(audit), bits, process_totals(audit.totals), audit.projection)
                    for audit, bits in audits
                ]
            ),
            notes=tuple(note for audit, _ in audits for note in audit.notes),
        )
    )
