"""The report of `footprint project` for several targets, side by side."""

from collections.abc import Sequence

from footprint.formats.document import Document, Heading, Table, Verdict
from footprint.formats.sections.notes import note_blocks
from footprint.model.audit import Audit
from footprint.model.audited_names import program_name
from footprint.units import format_bytes

__all__ = ("side_by_side_document",)


def side_by_side_document(audits: Sequence[tuple[Audit, int | None]]) -> Document:
    """Write what each of several targets costs, by itself and N times."""
    is_fit = bool(audits[0][0].projection.limits)
    rows = []
    for audit, bits in audits:
        totals, projection = audit.totals, audit.projection
        rows.append(
            (
                str(bits or "-"),
                _size(totals.private.bytes),
                _size(totals.kernel.bytes),
                format_bytes(projection.per_process_bytes),
                _size(projection.shared_once_bytes),
                f"{projection.count:,}" if is_fit else format_bytes(projection.total_bytes),
                _name(audit),
            )
        )
    count = audits[0][0].projection.count
    columns = ("bits", "private", "kernel", "each", "once", "fit" if is_fit else f"{count:,}", "target")
    return (
        Heading(f"footprint project: {len(audits)} targets side by side"),
        Table(columns, tuple(rows)),
        *(block for audit, _ in audits for block in note_blocks(audit.notes, audit.target)),
        Verdict(_verdict([audit for audit, _ in audits])),
    )


def _size(size_bytes: int | None) -> str:
    return format_bytes(size_bytes) if size_bytes else "-"


def _name(audit: Audit) -> str:
    """Return the target, of a process its PID and the name of its program."""
    return audit.target if audit.pid is None else f"{audit.pid} {program_name(audit)}"


def _verdict(audits: Sequence[Audit]) -> str:
    cheap = min(audits, key=lambda audit: audit.projection.per_process_bytes)
    dear = max(audits, key=lambda audit: audit.projection.per_process_bytes)
    less = 1 - cheap.projection.per_process_bytes / max(1, dear.projection.per_process_bytes)
    each = format_bytes(cheap.projection.per_process_bytes)
    return f"{_name(cheap)} costs least, {each} each: {less:.1%} less than {_name(dear)}."
