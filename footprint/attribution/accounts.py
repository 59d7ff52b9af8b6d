"""Rows added up: one row for each owner, kind, section, symbol and name."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Final

from footprint.members import NamedTuple
from footprint.model.row import Attribution, CommonRows, Ledger, MemoryKind, Row, weakest


def add_up(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Add up rows of the same account, and sort them as a ledger does: the largest first."""
    return tuple(sorted(_sums(rows).values(), key=_order))


def merge(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Add up the rows of several processes; their kernel stacks become one row.

    Shared bytes become unknown: several processes may share the same pages, so a sum would count these several times.
    """
    # Alike processes have many rows that are the same object: each is added once, as many times as it is there.
    given = list(rows)
    times = Counter(map(id, given))
    by_id = dict(zip(map(id, given), given, strict=True))
    return add_up(_of_any_process(row, times[number]) for number, row in by_id.items())


def _of_any_process(row: Row, times: int) -> Row:
    # Of thousands of processes there are tens of thousands of rows: `_replace` takes three times as long.
    owner, kind, section, symbol, name, size_bytes, mapped_bytes, _, pages, sole_pages, relocated_bytes, *_ = row
    is_stacks = kind is MemoryKind.KERNEL and (name or "").startswith("[kernel stacks")
    return Row(
        owner,
        kind,
        section,
        symbol,
        "[kernel stacks]" if is_stacks else name,
        None if size_bytes is None else size_bytes * times,
        mapped_bytes * times,
        None,
        None if pages is None else pages * times,
        sole_pages * times,
        None if relocated_bytes is None else relocated_bytes * times,
        row.is_writable,
        row.evidence,
        row.attribution,
    )


_Key = tuple[tuple[object, ...], bool, bool, bool]
_MOST_KINDS: Final = 64
"""How many kinds of processes have their sums kept."""
_MOST_LISTS: Final = 4096
"""How many lists of rows have their sums kept."""
_FIRST: Final = itemgetter(0)
_STRENGTH: Final = {attribution: place for place, attribution in enumerate(Attribution)}


class KnownSums:
    """The sums of rows that many processes have.

    Alike processes have the same hundreds of rows of their objects, and few of their own.
    """

    def __init__(self) -> None:
        self._summed: dict[tuple[int, ...], _Summed] = {}
        self._lists: dict[int, _Summed] = {}
        self._is_first = True

    def add_up(self, row_lists: Sequence[list[Row]], process_rows: Iterable[Row]) -> tuple[Row, ...]:
        """Add up lists of rows that other processes have, too, and the rows of one process, the largest first."""
        if self._is_first:
            # Most audits are of one process.
            self._is_first = False
            return add_up(chain(*row_lists, process_rows))
        key = tuple(map(id, row_lists))
        summed = self._summed.get(key)
        if summed is None:
            if len(self._summed) == _MOST_KINDS:
                self._summed.clear()
                # The lists are kept, so that no others get their numbers.
            summed = self._summed[key] = _Summed.of(row_lists, self._all_of(row_lists))
        of_process = _sums(process_rows)
        if not summed.keys.isdisjoint(of_process):
            return add_up(chain(*row_lists, of_process.values()))
        rows: list[Row] = []
        at = 0
        own_rows = sorted([(_order(row), row) for row in of_process.values()], key=_FIRST)
        for order, row in own_rows:
            before, at = at, bisect_right(summed.orders, order, at)
            rows += summed.rows[before:at]
            rows.append(row)
        ledger = Ledger(rows + summed.rows[at:])
        ledger.own_rows, ledger.common = [row for _, row in own_rows], summed.common
        return ledger

    def _all_of(self, row_lists: Sequence[list[Row]]) -> "list[_Entry]":
        """Add up the sums of lists: processes of one program differ in the pages of few objects."""
        parts = [self._of(rows) for rows in row_lists]
        keys: set[_Key] = set()
        shared: dict[_Key, list[Row]] = {}
        for part in parts:
            shared |= {key: [] for key in keys & part.keys}
            keys |= part.keys
        entries = list(chain.from_iterable([part.entries for part in parts]))
        if shared:
            for _, key, row in entries:
                if key in shared:
                    shared[key].append(row)
            entries = [entry for entry in entries if entry[1] not in shared]
            entries += _entries({key: _sum_rows(rows) for key, rows in shared.items()})
        # Each part is sorted, which a sort makes use of.
        entries.sort(key=_FIRST)
        return entries

    def _of(self, rows: list[Row]) -> "_Summed":
        summed = self._lists.get(id(rows))
        if summed is None:
            if len(self._lists) == _MOST_LISTS:
                self._lists.clear()
            summed = self._lists[id(rows)] = _Summed.of([rows], _entries(_sums(rows)))
        return summed


_Entry = tuple[tuple[object, ...], _Key, Row]
"""A sum, with what it is sorted by and its account."""


def _entries(sums: dict[_Key, Row]) -> list[_Entry]:
    return sorted([(_order(row), key, row) for key, row in sums.items()], key=_FIRST)


class _Summed(NamedTuple):
    """The sums of some lists, the largest first; `orders` has what they are sorted by, `common` what was computed."""

    row_lists: Sequence[list[Row]]
    keys: frozenset[_Key]
    entries: list[_Entry]
    orders: list[tuple[object, ...]]
    rows: list[Row]
    common: CommonRows

    @classmethod
    def of(cls, row_lists: Sequence[list[Row]], entries: list[_Entry]) -> "_Summed":
        orders, keys, rows = [list(column) for column in zip(*entries, strict=True)] if entries else ([], [], [])
        return cls(row_lists, frozenset(keys), entries, orders, rows, CommonRows(rows))


def _sums(rows: Iterable[Row]) -> dict[_Key, Row]:
    """Add up the rows that have the same owner, kind, section, symbol, name and writability.

    Rows whose bytes are not known have sums of their own: what is known of the others stays known.
    """
    first_rows: dict[_Key, Row] = {}
    # Most have one row. Only those with several need a list.
    several: dict[_Key, list[Row]] = {}
    for row in rows:
        # One slice for five fields: reading them one by one takes longer than all else here.
        key = (row[:5], row.is_writable, row.bytes is None, row.shared_bytes is None)
        first = first_rows.get(key)
        if first is None:
            first_rows[key] = row
        else:
            # It may be the same object: a file that is loaded twice.
            several.setdefault(key, [first]).append(row)
    return first_rows | {key: _sum_rows(rows) for key, rows in several.items()}


def _order(row: Row) -> tuple[object, ...]:
    owner, kind, section, symbol, name, private_bytes, mapped_bytes = row[:7]
    size_bytes = mapped_bytes if private_bytes is None else private_bytes
    return (-size_bytes, -mapped_bytes, owner, kind, section or "", symbol or "", name or "")


def _sum_rows(rows: Sequence[Row]) -> Row:
    """Add up the rows of one account; the sum is as weak as its weakest row."""
    first = rows[0]
    _, _, _, _, _, sizes, mapped, shared, pages, sole_pages, relocated, _, evidence, attributions = zip(
        *rows, strict=True
    )
    return Row(
        *first[:5],
        known_sum(sizes),
        sum(mapped),
        known_sum(shared),
        known_sum(pages),
        sum(sole_pages),
        known_sum(relocated),
        first.is_writable,
        weakest(evidence),
        least_sure(attributions),
    )


def least_sure(attributions: Iterable[Attribution]) -> Attribution:
    """Return the weakest way in which an owner is known."""
    return max(attributions, key=_STRENGTH.__getitem__)


def known_sum(figures: Sequence[int | None]) -> int | None:
    """Add up figures; one unknown figure makes the sum unknown."""
    present = [figure for figure in figures if figure is not None]
    return sum(present) if len(present) == len(figures) else None
