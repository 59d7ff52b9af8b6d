"""Rows of a ledger, of which a test says what it is about."""

from typing import Any

from footprint.audit.layout import Attribution, Kind
from footprint.audit.ledger import Row
from footprint.evidence import Evidence

__all__ = ("ledger_row",)


def ledger_row(owner: str, size_bytes: int = 0, **fields: Any) -> Row:  # noqa: ANN401 # of any type
    """Give a row of writable data without a name, all of it private."""
    row = Row(
        owner=owner,
        kind=Kind.DATA,
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
