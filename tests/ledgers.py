"""Build rows of a ledger, and audits of them, from the few fields that a test is about."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import footprint
from footprint.attribution.cost_models import project
from footprint.model.audit import Audit
from footprint.model.finding import Finding
from footprint.model.projection import FILES_TERM, ONE, Basis, Term
from footprint.model.row import Attribution, Evidence, MemoryKind, Row, Total, Totals, sum_rows

__all__ = ("audit_of", "ledger_row")

SLEEP = footprint.audit(str(Path(__file__).resolve().parent / "corpus" / "smaps-sleep.txt"))


def ledger_row(owner: str, size_bytes: int = 0, **fields: Any) -> Row:  # noqa: ANN401 # of any type
    """Return a row of writable data without a name, all of it private."""
    row = Row(
        owner=owner,
        kind=MemoryKind.DATA,
        section=None,
        symbol=None,
        name=None,
        bytes=size_bytes,
        mapped_bytes=size_bytes,
        shared_bytes=0,
        pages=1,
        sole_pages=0,
        relocated_bytes=0,
        is_writable=True,
        evidence=Evidence.DERIVED,
        attribution=Attribution.PROGRAM_HEADERS,
    )
    return row._replace(**fields)


def audit_of(*rows: Row, source: str = "smaps", findings: Sequence[Finding] = ()) -> Audit:
    """Return a measured audit of these rows alone."""
    sums = sum_rows(rows)
    spent_bytes = sum_rows(row for row in rows if row.kind is MemoryKind.KERNEL).private_bytes
    figures = {
        "private": sums.private_bytes - spent_bytes,
        "kernel": spent_bytes,
        "per_process": sums.private_bytes,
        "mapped_writable": sums.writable_bytes,
        "mapped": sums.mapped_bytes,
        "shared_once": sums.shared_bytes,
    }
    terms = [
        Term("private memory", figures["private"], is_once=False, evidence=Evidence.MEASURED),
        Term("page tables", spent_bytes, is_once=False, evidence=Evidence.MEASURED),
        Term(FILES_TERM, sums.shared_bytes, is_once=True, evidence=Evidence.MEASURED),
    ]
    known = SLEEP.totals._asdict() | {name: Total(figure, Evidence.MEASURED) for name, figure in figures.items()}
    return replace(
        SLEEP,
        ledger=rows,
        totals=Totals(**known),
        projection=project(terms, Basis.PER_PROCESS, ONE),
        source=source,
        findings=tuple(findings),
        notes=(),
    )
