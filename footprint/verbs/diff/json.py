"""The JSON, the metrics and the HTML report of `diff`."""

from typing import Literal, NamedTuple

from footprint.elf.names import shown_name
from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, rows_of
from footprint.formats.audit_rows import finding_rows, process_target
from footprint.formats.metrics import MetricFamily, MetricSample, audit_metrics
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode, encode_columns
from footprint.members import Signed, dataclass
from footprint.model.audit import ProcessTarget, is_reproducible
from footprint.model.finding import Finding
from footprint.model.row import Evidence
from footprint.release.compare import Comparison, CostChange, OwnerChange, RowChange, TotalChange
from footprint.release.member_changes import MemberChange
from footprint.release.new_libraries import NewRoot


class DiffTarget(NamedTuple):
    """The two audits that are compared.

    Attributes:
        old: The process, program or group before.
        new: The process, program or group now.
    """

    old: ProcessTarget
    new: ProcessTarget


class _ChangeOfMany(NamedTuple):
    change: TotalChange
    count: int  # type: ignore[assignment] # tuple.count is not missed


@answer_table
class FigureChange:
    """One figure of the whole, before and now."""

    name: str = column(
        "The figure, as `totals` of an audit or `group` of a group has it; `per_worker_bytes` of a group.",
        lambda row: f"{row.change.name}_bytes",
    )
    old_bytes: int | None = column("The value before; null where it is not known.", "change.old.bytes")
    new_bytes: int | None = column("The value now; null where it is not known.", "change.new.bytes")
    delta_bytes: Signed | None = column("The difference; null where one of them is not known.", "change.delta_bytes")
    delta_at_count_bytes: Signed | None = column(
        "The difference for `count` processes or groups; null where it has no sum.",
        lambda row: row.change.delta_at_count(row.count),
    )
    is_once: bool | None = column(
        "Whether all of N processes pay it once together, and not each of them; null where it has no sum.",
        "change.figure.is_once",
    )
    old_evidence: Evidence = column("How the value before is known.", "change.old.evidence")
    new_evidence: Evidence = column("How the value now is known.", "change.new.evidence")
    is_noise: bool | None = column(
        "Whether the spreads of the starts overlap, so that nothing need have changed; null where measured once.",
        "change.is_noise",
    )


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
    new_findings: tuple[Finding, ...]
    fixed_findings: tuple[Finding, ...]
    notes: tuple[Note, ...]


def diff_members(comparison: Comparison, version: str) -> Json:
    """Return the members of the answer."""
    return encode(diff_answer(comparison, version))


def diff_answer(comparison: Comparison, version: str) -> DiffJson:
    """Return the answer that a comparison is."""
    return DiffJson(
        tool=Tool("footprint", version),
        host=comparison.new.host,
        target=DiffTarget(process_target(comparison.old), process_target(comparison.new)),
        count=comparison.count,
        cost=comparison.cost,
        figures=figure_changes(comparison),
        roots=comparison.roots,
        owner_changes=comparison.owners,
        members=comparison.members,
        diff=named_changes(comparison),
        same_count=comparison.same_count,
        compared_rules=comparison.compared_rules,
        new_findings=finding_rows(comparison.new_findings, comparison.count, comparison.new.ledger),
        fixed_findings=finding_rows(comparison.fixed_findings, comparison.count, comparison.old.ledger),
        notes=comparison.notes,
    )


def figure_changes(comparison: Comparison) -> tuple[FigureChange, ...]:
    """Return the figures of the whole, before and now."""
    return rows_of(FigureChange, [_ChangeOfMany(total, comparison.count) for total in comparison.totals])


def named_changes(diff: Comparison) -> tuple[RowChange, ...]:
    """Return the rows that differ, with names to show in place of linker names."""
    return tuple([row if row.symbol is None else row._replace(name=shown_name(row.symbol)) for row in diff.changes])


def diff_metrics(comparison: Comparison) -> list[MetricFamily]:
    """Return the figures of the newer side, and by how much each is larger."""
    totals = [
        MetricSample({"figure": total.name}, delta_bytes)
        for total in comparison.totals
        if (delta_bytes := total.delta_bytes) is not None
    ]
    owners = [MetricSample({"owner": owner.owner}, owner.delta_bytes) for owner in comparison.owners]
    return [
        *audit_metrics(comparison.new),
        MetricFamily("change", "The growth of a figure of the whole process.", totals),
        MetricFamily("owner_change", "The growth of an owner.", owners),
    ]


def diff_html(diff: Comparison, version: str, failure: str = "") -> str:
    """Write the HTML report of a comparison and of both audits, as `audit_html` does."""
    from footprint.formats.audit_json import audit_columns  # noqa: PLC0415 # few answers are reports
    from footprint.html import map_members, report  # noqa: PLC0415 # the same
    from footprint.verbs.audit.html import title_of  # noqa: PLC0415 # the same
    from footprint.verbs.diff.text import diff_document  # noqa: PLC0415 # the same

    old, new = audit_columns(diff.old, version), audit_columns(diff.new, version)
    answers = {
        "kind": "diff",
        "diff": encode_columns(diff_answer(diff, version)),
        "old": old,
        "audit": new,
        "old_maps": map_members(diff.old, old["ledger"]),
        "maps": map_members(diff.new, new["ledger"]),
        **({"made": None} if is_reproducible(diff.old) and is_reproducible(diff.new) else {}),
    }
    return report(f"{title_of(diff.old)} → {title_of(diff.new)}", answers, diff_document(diff), failure=failure)
