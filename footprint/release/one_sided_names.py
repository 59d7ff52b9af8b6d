"""Names that only one of two audits has, because only then a debug file was there: these are no change.

The variables of such an object are compared by section: those that both sides name, each by itself, all others as one
row.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.attribution.accounts import add_up
from footprint.elf.contents import ResidueCause
from footprint.model.row import OF_OBJECTS, MemoryKind, Row
from footprint.release.matching import comparable_name

if TYPE_CHECKING:
    from footprint.model.audited import Audited

__all__ = ("EvenRows", "evenly_named")

_NAMELESS: Final = f"[{ResidueCause.STRIPPED.value}]"


class EvenRows(NamedTuple):
    """The rows that differ, with the names that both sides know.

    Attributes:
        before: The rows before.
        now: The rows now.
        owners: The objects whose symbols only one side knows: their names before and now.
    """

    before: list[Row]
    now: list[Row]
    owners: dict[str, str]


def evenly_named(
    old: "Audited", new: "Audited", before: list[Row], now: list[Row], owner_names: dict[str, str]
) -> EvenRows:
    """Take the names that only one side can have from the rows that differ.

    Args:
        old: The audit before.
        new: The audit now.
        before: The rows of it that differ.
        now: The same of the audit now.
        owner_names: The names now of the owners before.
    """
    old_nameless, new_nameless = _nameless(before), _nameless(now)
    uneven = {
        owner: name for owner, name in owner_names.items() if (owner in old_nameless) is not (name in new_nameless)
    }
    if uneven:
        # Equal rows are in neither list.
        old_nameless, new_nameless = _nameless(old.ledger), _nameless(new.ledger)
        uneven = {
            owner: name for owner, name in uneven.items() if (owner in old_nameless) is not (name in new_nameless)
        }
    for owner, name in uneven.items():
        common = _symbols(before, owner) & _symbols(now, name)
        before, now = _by_section(before, owner, common), _by_section(now, name, common)
    return EvenRows(before, now, uneven)


def _nameless(rows: Iterable[Row]) -> set[str]:
    """Return the owners of which no file names all variables."""
    return {row.owner for row in rows if row.name == _NAMELESS}


def _symbols(rows: Iterable[Row], owner: str) -> set[str]:
    return {comparable_name(row.symbol) for row in rows if row.owner == owner and row.symbol is not None}


def _by_section(rows: Sequence[Row], owner: str, common: set[str]) -> list[Row]:
    """Add up the rows of each section of an object, but those of common symbols."""
    kept, nameless = [], []
    for row in rows:
        is_data = row.owner == owner and row.kind in OF_OBJECTS and row.kind is not MemoryKind.TEXT
        if is_data and (row.symbol is None or comparable_name(row.symbol) not in common):
            nameless.append(row._replace(symbol=None, name=_NAMELESS))
        else:
            kept.append(row)
    return [*kept, *add_up(nameless)]
