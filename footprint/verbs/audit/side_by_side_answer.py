"""The answer of `footprint audit` for several targets, side by side: its JSON and its text."""

from collections.abc import Mapping, Sequence
from typing import Literal

from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, rows_of
from footprint.formats.audit_rows import ProcessTotals, process_target, process_totals
from footprint.formats.document import Document, Heading, Table, Verdict, note_blocks
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import dataclass
from footprint.model.audit import Audit, ProcessTarget, program_name
from footprint.model.projection import Projection
from footprint.text.units import format_bytes


def bits_of(audit: Audit) -> int | None:
    """Return whether the program of an audit is one of 32 or 64 bits; None where its file cannot be read."""
    is_live = audit.is_live and audit.pid is not None and audit.saved_in is None
    try:
        with open(f"/proc/{audit.pid}/exe" if is_live else audit.target, "rb") as file:
            head = file.read(5)
    except (OSError, ValueError):
        return None
    return {b"\x7fELF\x01": 32, b"\x7fELF\x02": 64}.get(head)


def side_by_side_document(audits: Sequence[tuple[Audit, int | None]]) -> Document:
    """Show what each of several targets costs, by itself and N times."""
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
        Heading(f"footprint audit: {len(audits)} targets side by side"),
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
    cost = format_bytes(cheap.projection.per_process_bytes)
    return f"{_name(cheap)} costs least, {cost} each: {less:.1%} less than {_name(dear)}."


@answer_table
class ProjectedTarget:
    """One of several targets, and what N of it cost."""

    target: ProcessTarget = column("The process or program.", lambda row: process_target(row[0]))
    bits: int | None = column("32 or 64; null where it is not known.", lambda row: row[1])
    totals: ProcessTotals = column("The figures of one process.", lambda row: process_totals(row[0].totals))
    projection: Projection = column("The cost of as many processes as were asked about.", lambda row: row[0].projection)


@dataclass(frozen=True, kw_only=True)
class SideBySideJson(Envelope):
    """What N processes of each of several targets cost.

    Attributes:
        targets: The targets, in the order in which they were named.
        notes: What the reader of the figures must know.
    """

    verb: Literal["audit"] = "audit"
    targets: tuple[ProjectedTarget, ...]
    notes: tuple[Note, ...]


def side_by_side_members(audits: Sequence[tuple[Audit, int | None]], version: str) -> Json:
    """Return the members of the answer about several targets, each with its bits."""
    host: Mapping[str, str] = next((audit.host for audit, _ in audits), {})
    return encode(
        SideBySideJson(
            tool=Tool("footprint", version),
            host=host,
            targets=rows_of(ProjectedTarget, audits),
            notes=tuple(note for audit, _ in audits for note in audit.notes),
        )
    )
