"""Rows added up: one row for each owner, kind, section, symbol and name."""

from collections.abc import Iterable, Sequence
from typing import Final

from footprint.model.evidence import weakest
from footprint.model.row import Attribution, MemoryKind, Row

__all__ = ("Accounts", "add_up", "merge")


def add_up(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Add up rows of the same account, and sort them as a ledger does: the largest first."""
    accounts = Accounts()
    accounts.add(rows)
    return accounts.rows()


def merge(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Add up the rows of several processes; their kernel stacks become one row.

    Shared bytes become unknown: several processes may share the same pages, so a sum would count these several times.
    """
    # Alike processes have many rows that are the same object: each is added once, as many times as it is there.
    times: dict[int, list[Row]] = {}
    for row in rows:
        times.setdefault(id(row), []).append(row)
    return add_up(_of_any_process(same[0], len(same)) for same in times.values())


def _of_any_process(row: Row, times: int) -> Row:
    is_stacks = row.kind is MemoryKind.KERNEL and (row.name or "").startswith("[kernel stacks")
    return row._replace(
        name="[kernel stacks]" if is_stacks else row.name,
        bytes=None if row.bytes is None else row.bytes * times,
        mapped_bytes=row.mapped_bytes * times,
        shared_bytes=None,
        pages=None if row.pages is None else row.pages * times,
        sole_pages=row.sole_pages * times,
        relocated_bytes=None if row.relocated_bytes is None else row.relocated_bytes * times,
    )


_Key = tuple[tuple[object, ...], bool, bool, bool]
_STRENGTH: Final = {attribution: place for place, attribution in enumerate(Attribution)}


class Accounts:
    """Sums of rows that have the same owner, kind, section, symbol, name and writability.

    Rows whose bytes are not known have accounts of their own: what is known of the others stays known.
    """

    def __init__(self) -> None:
        self._first: dict[_Key, Row] = {}
        # Most accounts have one row. Only those with several need a list.
        self._several: dict[_Key, list[Row]] = {}

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows, each to its account."""
        first_rows, several = self._first, self._several
        for row in rows:
            # One slice for five fields: reading them one by one takes longer than all else here.
            key = (row[:5], row.is_writable, row.bytes is None, row.shared_bytes is None)
            first = first_rows.get(key)
            if first is None:
                first_rows[key] = row
            else:
                # It may be the same object: a file that is loaded twice.
                several.setdefault(key, [first]).append(row)

    def rows(self) -> tuple[Row, ...]:
        """Return one row for each account, the largest first."""

        def order(row: Row) -> tuple[object, ...]:
            owner, kind, section, symbol, name = row[:5]
            private_bytes, mapped_bytes = row[5:7]
            size_bytes = mapped_bytes if private_bytes is None else private_bytes
            return (-size_bytes, -mapped_bytes, owner, kind, section or "", symbol or "", name or "")

        sums = self._first | {key: _sum_rows(rows) for key, rows in self._several.items()}
        return tuple(sorted(sums.values(), key=order))


def _sum_rows(rows: Sequence[Row]) -> Row:
    """Add up the rows of one account; the sum is as weak as its weakest row."""
    return rows[0]._replace(
        bytes=_sum([row.bytes for row in rows]),
        mapped_bytes=sum([row.mapped_bytes for row in rows]),
        shared_bytes=_sum([row.shared_bytes for row in rows]),
        pages=_sum([row.pages for row in rows]),
        sole_pages=sum([row.sole_pages for row in rows]),
        relocated_bytes=_sum([row.relocated_bytes for row in rows]),
        evidence=weakest({row.evidence for row in rows}),
        attribution=max({row.attribution for row in rows}, key=_STRENGTH.__getitem__),
    )


def _sum(figures: Sequence[int | None]) -> int | None:
    """Add up figures; one unknown figure makes the sum unknown."""
    known = [one for one in figures if one is not None]
    return sum(known) if len(known) == len(figures) else None
