"""`diff --json`."""

from footprint.elf import shown_name
from footprint.formats.escape import well_formed
from footprint.formats.findings_json import finding_rows
from footprint.formats.json import Json, envelope, note_rows
from footprint.release.compare import Comparison, OwnerChange, RowChange, TotalChange
from footprint.verbs.audit.json import process_target

__all__ = ("diff_members",)


def diff_members(found: Comparison, version: str) -> Json:
    """Give what changed."""
    target = {"old": process_target(found.old), "new": process_target(found.new)}
    return envelope(version, found.new.host, target) | {
        "count": found.count,
        "figures": [_total(one, found.count) for one in found.totals],
        "owner_changes": [_owner(one) for one in found.owners],
        "diff": [_change(one) for one in found.changes],
        "same_count": found.same_count,
        "new_findings": finding_rows(found.new_findings, found.count),
        "fixed_findings": finding_rows(found.fixed_findings, found.count),
        "notes": note_rows(found.notes),
    }


def _total(one: TotalChange, count: int) -> Json:
    delta_bytes = one.delta_bytes
    return {
        "name": f"{one.name}_bytes",
        "old_bytes": one.old.bytes,
        "new_bytes": one.new.bytes,
        "delta_bytes": delta_bytes,
        "delta_at_count_bytes": one.delta_at_count(count),
        "old_evidence": one.old.evidence.value,
        "new_evidence": one.new.evidence.value,
        "is_noise": one.is_noise,
    }


def _owner(one: OwnerChange) -> Json:
    return {
        "owner": well_formed(one.owner),
        "old_owner": None if one.old_owner is None else well_formed(one.old_owner),
        "is_gone": one.is_gone,
        "is_object": one.is_object,
        "left_with": None if one.left_with is None else well_formed(one.left_with),
        "old_bytes": one.old_bytes,
        "new_bytes": one.new_bytes,
        "delta_bytes": one.delta_bytes,
        "old_mapped_bytes": one.old_mapped_bytes,
        "new_mapped_bytes": one.new_mapped_bytes,
        "old_writable_bytes": one.old_writable_bytes,
        "new_writable_bytes": one.new_writable_bytes,
        "is_noise": one.is_noise,
    }


def _change(one: RowChange) -> Json:
    shown = shown_name(one.symbol) if one.symbol is not None else one.name
    before = None
    if one.before is not None:
        owner, section, symbol = one.before
        before = {
            "owner": well_formed(owner),
            "section": None if section is None else well_formed(section),
            "symbol": None if symbol is None else well_formed(symbol),
        }
    return {
        "status": one.status.value,
        "owner": well_formed(one.owner),
        "kind": one.kind.value,
        "section": None if one.section is None else well_formed(one.section),
        "symbol": None if one.symbol is None else well_formed(one.symbol),
        "name": None if shown is None else well_formed(shown),
        "old_bytes": one.old_bytes,
        "new_bytes": one.new_bytes,
        "delta_bytes": one.delta_bytes,
        "old_mapped_bytes": one.old_mapped_bytes,
        "new_mapped_bytes": one.new_mapped_bytes,
        "old_writable_bytes": one.old_writable_bytes,
        "new_writable_bytes": one.new_writable_bytes,
        "mapped_delta_bytes": one.mapped_delta_bytes,
        "before": before,
    }
