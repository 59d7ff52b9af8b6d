"""Build rows of a ledger, and audits of them, from the few fields that a test is about."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import footprint
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence
from footprint.model.finding import Finding
from footprint.model.row import Attribution, MemoryKind, Row, sum_rows
from footprint.model.totals import Total, Totals

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
    """Return a measured audit of these rows alone; the kernel spends nothing."""
    sums = sum_rows(rows)
    figures = {
        "private": sums.private_bytes,
        "kernel": 0,
        "per_process": sums.private_bytes,
        "mapped_writable": sums.writable_bytes,
        "mapped": sums.mapped_bytes,
        "shared_once": 0,
    }
    known = SLEEP.totals._asdict() | {name: Total(figure, Evidence.MEASURED) for name, figure in figures.items()}
    return replace(SLEEP, ledger=rows, totals=Totals(**known), source=source, findings=tuple(findings), notes=())
