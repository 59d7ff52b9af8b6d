"""`audit --json` and `project --json`."""

from collections.abc import Mapping as Dict
from typing import TYPE_CHECKING

from footprint.elf import shown_name
from footprint.formats.escape import well_formed
from footprint.formats.findings_json import finding_rows
from footprint.formats.json import Json, envelope, note_rows, write
from footprint.model.audit import Audit
from footprint.model.figures import total_figures
from footprint.model.projection import Projection
from footprint.model.row import Row

if TYPE_CHECKING:
    from footprint.model.object_cost import ObjectCost

__all__ = (
    "audit_json",
    "audit_members",
    "debug_file_rows",
    "process_target",
    "projection_members",
    "row_json",
    "totals_json",
)


def audit_json(audit: Audit, version: str) -> str:
    """Write a whole audit."""
    return write(audit_members(audit, version))


def audit_members(audit: Audit, version: str) -> Json:
    """Give the members of a whole audit."""
    return envelope(version, audit.host, process_target(audit)) | {
        "totals": totals_json(audit),
        "ledger": [row_json(row) for row in audit.ledger],
        "projection": _projection(audit.projection),
        "findings": finding_rows(audit.findings, audit.projection.count),
        "debug_files": debug_file_rows(audit.debug_files),
        "objects": [_object(one) for one in audit.objects],
        "heap_account": _heap(audit),
        **_page_maps(audit),
        "notes": note_rows(audit.notes),
    }


def _page_maps(audit: Audit) -> Json:
    if not audit.page_maps:
        return {}
    from footprint.verbs.audit.page_maps_json import page_map_rows  # noqa: PLC0415 # for a picture only

    return {"page_maps": page_map_rows(audit.page_maps)}


def _heap(audit: Audit) -> Json | None:
    if audit.heap is None:
        return None
    from footprint.verbs.audit.heap_account_json import heap_account_json  # noqa: PLC0415 # profiles, which few audits have

    return heap_account_json(audit.heap)


def _object(one: "ObjectCost") -> Json:
    return {
        "path": well_formed(one.path),
        "name": well_formed(one.name),
        "own_bytes": one.own_bytes,
        "retained_bytes": one.retained_bytes,
        "held_by": None if one.held_by is None else well_formed(one.held_by),
        "tls_bytes": one.tls_bytes,
        "needs": None
        if one.needs is None
        else [{"path": well_formed(need.path), "symbol_count": need.symbol_count} for need in one.needs],
    }


def debug_file_rows(debug_files: Dict[str, str]) -> list[Json]:
    """Give the files that the names of stripped owners are from."""
    return [{"owner": well_formed(owner), "file": well_formed(path)} for owner, path in debug_files.items()]


def projection_members(audit: Audit, version: str) -> Json:
    """Give what N processes cost, with the totals it is made of."""
    return envelope(version, audit.host, process_target(audit)) | {
        "totals": totals_json(audit),
        "projection": _projection(audit.projection),
        "notes": note_rows(audit.notes),
    }


def process_target(audit: Audit) -> Json:
    """Give which process it was, and what was read of it."""
    return {
        "name": well_formed(audit.target),
        "pid": audit.pid,
        "command": well_formed(audit.command),
        "source": audit.source,
        "is_live": audit.is_live,
        "mapping_count": audit.mapping_count,
        "page_bytes": audit.page_bytes,
    }


def totals_json(audit: Audit) -> Json:
    """Give the figures of a whole process."""
    totals = audit.totals
    named = {figure.name: total for figure, total in total_figures(totals)}
    figures: Json = {name: total.bytes for name, total in named.items()}
    evidence = {name: total.evidence.value for name, total in named.items() if total.bytes is not None}
    return figures | {"evidence": evidence, "of_which": totals.of_which._asdict()}


def row_json(row: Row) -> Json:
    """Give one row of a ledger."""
    shown = shown_name(row.symbol) if row.symbol is not None else row.name
    return {
        "owner": well_formed(row.owner),
        "kind": row.kind.value,
        "section": None if row.section is None else well_formed(row.section),
        "symbol": None if row.symbol is None else well_formed(row.symbol),
        "name": None if shown is None else well_formed(shown),
        "bytes": row.bytes,
        "mapped_bytes": row.mapped_bytes,
        "shared_bytes": row.shared_bytes,
        "pages": row.pages,
        "sole_pages": row.sole_pages,
        "relocated_bytes": row.relocated_bytes,
        "is_writable": row.is_writable,
        "evidence": row.evidence.value,
        "attribution": row.attribution.value,
    }


def _projection(projection: Projection) -> Json:
    return {
        "count": projection.count,
        "per_process_bytes": projection.per_process_bytes,
        "shared_once_bytes": projection.shared_once_bytes,
        "total_bytes": projection.total_bytes,
        "basis": projection.basis.value,
        "memory_bytes": projection.memory_bytes,
        "evidence": projection.evidence.value,
        "model": projection.model.value,
        "terms": [
            {
                "name": term.name,
                "size_bytes": term.size_bytes,
                "is_once": term.is_once,
                "evidence": term.evidence.value,
            }
            for term in projection.terms
        ],
        "points": [
            {
                "name": point.name,
                "each_bytes": point.each_bytes,
                "total_bytes": point.total_bytes,
                "evidence": point.evidence.value,
            }
            for point in projection.points
        ],
    }
