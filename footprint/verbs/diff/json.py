"""The JSON of `diff`."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from footprint.elf import shown_name
from footprint.errors import Note
from footprint.formats.audit_json import ProcessTarget, process_target
from footprint.formats.codec import encode
from footprint.formats.finding_rows import FindingRow, finding_rows
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import Signed
from footprint.model.evidence import Evidence
from footprint.release.compare import Comparison, CostChange, OwnerChange, RowChange, TotalChange
from footprint.release.member_changes import MemberChange
from footprint.release.new_libraries import NewRoot

__all__ = ("DiffJson", "DiffTarget", "FigureChange", "diff_answer", "diff_members", "figure_changes", "named_changes")


class DiffTarget(NamedTuple):
    """The two audits that are compared.

    Attributes:
        old: The process, program or group before.
        new: The process, program or group now.
    """

    old: ProcessTarget
    new: ProcessTarget


class FigureChange(NamedTuple):
    """One figure of the whole, before and now.

    Attributes:
        name: The figure, as `totals` of an audit or `group` of a group has it; `per_worker_bytes` of a group.
        old_bytes: The value before; null where it is not known.
        new_bytes: The value now; null where it is not known.
        delta_bytes: The difference; null where one of them is not known.
        delta_at_count_bytes: The difference for `count` processes or groups; null where it has no sum.
        is_once: Whether all of N processes pay it once together, and not each of them; null where it has no sum.
        old_evidence: How the value before is known.
        new_evidence: How the value now is known.
        is_noise: Whether the spreads of the starts overlap, so that nothing need have changed; null where it was
            measured once.
    """

    name: str
    old_bytes: int | None
    new_bytes: int | None
    delta_bytes: Signed | None
    delta_at_count_bytes: Signed | None
    is_once: bool | None
    old_evidence: Evidence
    new_evidence: Evidence
    is_noise: bool | None


@dataclass(frozen=True, kw_only=True)
class DiffJson(Envelope):
    """What changed between two audits.

    Where only virtual sizes are known, `old_bytes` is null and `delta_bytes` is the difference of `old_writable_bytes`
    and `new_writable_bytes`. The `delta_bytes` of `diff` add up to those of `private_bytes` and `kernel_bytes`, or of
    `mapped_writable_bytes`; `mapped_delta_bytes` add up to that of `mapped_bytes`.

    Attributes:
        target: The two audits.
        count: The number of processes or groups that the changes are multiplied by.
        cost: The change of what so many cost together; null where one of both does not tell it, or where they start in
            other ways.
        figures: The figures of the whole.
        roots: The libraries that are new because an object needs them now, the one that retains most first; `came_with`
            of `owner_changes` names what each of them brought.
        owner_changes: The owners that differ.
        members: The processes of both groups, those that came first, then those that went; empty for two processes.
            Their `delta_bytes` add up to that of `private_bytes`.
        diff: The rows that differ.
        same_count: The number of rows that do not differ.
        compared_rules: The rules that both were audited for; findings of others are not compared.
        new_findings: The findings that only the new audit has, of rules that both were audited for.
        fixed_findings: The findings that only the old audit has, of rules that both were audited for.
        notes: The notes of both audits. Where they differ on one subject, `, before` or `, now` stands behind it.
    """

    verb: Literal["diff"] = "diff"
    target: DiffTarget
    count: int
    cost: CostChange | None
    figures: tuple[FigureChange, ...]
    roots: tuple[NewRoot, ...]
    owner_changes: tuple[OwnerChange, ...]
    members: tuple[MemberChange, ...]
    diff: tuple[RowChange, ...]
    same_count: int
    compared_rules: tuple[str, ...]
    new_findings: tuple[FindingRow, ...]
    fixed_findings: tuple[FindingRow, ...]
    notes: tuple[Note, ...]


def diff_members(found: Comparison, version: str) -> Json:
    """Return the members of the answer."""
    return encode(diff_answer(found, version))


def diff_answer(found: Comparison, version: str) -> DiffJson:
    """Return the answer that a comparison is."""
    return DiffJson(
        tool=Tool("footprint", version),
        host=found.new.host,
        target=DiffTarget(process_target(found.old), process_target(found.new)),
        count=found.count,
        cost=found.cost,
        figures=figure_changes(found),
        roots=found.roots,
        owner_changes=found.owners,
        members=found.members,
        diff=named_changes(found),
        same_count=found.same_count,
        compared_rules=found.compared_rules,
        new_findings=finding_rows(found.new_findings, found.count, found.new.ledger),
        fixed_findings=finding_rows(found.fixed_findings, found.count, found.old.ledger),
        notes=found.notes,
    )


def figure_changes(found: Comparison) -> tuple[FigureChange, ...]:
    """Return the figures of the whole, before and now."""
    return tuple([_figure(one, found.count) for one in found.totals])


def named_changes(found: Comparison) -> tuple[RowChange, ...]:
    """Return the rows that differ, with names to show in place of linker names."""
    return tuple([one if one.symbol is None else one._replace(name=shown_name(one.symbol)) for one in found.changes])


def _figure(one: TotalChange, count: int) -> FigureChange:
    return FigureChange(
        name=f"{one.name}_bytes",
        old_bytes=one.old.bytes,
        new_bytes=one.new.bytes,
        delta_bytes=one.delta_bytes,
        delta_at_count_bytes=one.delta_at_count(count),
        is_once=one.figure.is_once,
        old_evidence=one.old.evidence,
        new_evidence=one.new.evidence,
        is_noise=one.is_noise,
    )
