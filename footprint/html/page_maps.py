"""The variables in the pages of objects: the HTML report shows them, and a saved audit does not keep them."""

from collections.abc import Sequence
from itertools import chain
from operator import add, sub
from typing import TYPE_CHECKING, Final

from footprint.elf import shown_name
from footprint.formats.codec import Columns
from footprint.formats.escape import well_formed
from footprint.formats.json import Json

if TYPE_CHECKING:
    from footprint.model.page_map import PageMap, Place

__all__ = ("variable_members",)

_KEYS: Final = ("gap_bytes", "size_bytes", "section", "name")


def variable_members(maps: "Sequence[PageMap]", ledger: Columns | list[Json]) -> dict[str, Json]:
    """Return the variables of page maps as tables, keyed by the number of the map; without maps that lack them.

    Each begins `gap_bytes` behind the end of the one before it, which is nothing for most. Most stand in the ledger of
    the answer, too, with the names that are shown.
    """
    told: dict[str | None, str | None] = {}
    if maps and isinstance(ledger, Columns):
        columns = dict(zip(ledger.keys, ledger.cells, strict=True))
        told = dict(zip(columns["symbol"], columns["name"], strict=True))
    return {
        str(number): {"variables": _table(one.variables, told), "omitted_count": one.omitted_variables}
        for number, one in enumerate(maps)
        if one.variables is not None
    }


def _table(variables: "Sequence[Place]", told: dict[str | None, str | None]) -> Columns | list[Json]:
    if not variables:
        return []
    addrs, sizes, sections, symbols = zip(*variables, strict=True)
    gaps = list(map(sub, addrs, chain((0,), map(add, addrs, sizes))))
    # Few sections have many variables.
    shown = {section: well_formed(section) for section in set(sections)}
    told |= {symbol: symbol and well_formed(shown_name(symbol)) for symbol in set(symbols).difference(told)}
    return Columns(_KEYS, (gaps, sizes, list(map(shown.get, sections)), list(map(told.get, symbols))))
