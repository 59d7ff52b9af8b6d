"""What the HTML report shows of the pages of objects beside the JSON: their variables, and what each holds in all."""

from collections.abc import Sequence
from itertools import chain
from operator import add, sub
from typing import TYPE_CHECKING, Final

from footprint.elf import shown_name
from footprint.formats.codec import Columns
from footprint.formats.escape import well_formed
from footprint.formats.json import Json

if TYPE_CHECKING:
    from footprint.model.audited import Audited
    from footprint.model.page_map import Place

__all__ = ("map_members",)

_KEYS: Final = ("gap_bytes", "size_bytes", "section", "name")


def map_members(audit: "Audited", ledger: Columns | list[Json]) -> dict[str, Json]:
    """Return the private bytes of each object with a page map, and its variables as a table, by the number of the map.

    A saved audit has no variables. Each variable begins `gap_bytes` behind the end of the one before it, which is
    nothing for most. Most stand in the ledger of the answer, too, with the names that are shown.
    """
    maps = audit.page_maps
    told: dict[str | None, str | None] = {}
    if maps and isinstance(ledger, Columns):
        columns = dict(zip(ledger.keys, ledger.cells, strict=True))
        told = dict(zip(columns["symbol"], columns["name"], strict=True))
    held = dict.fromkeys([one.owner for one in maps], 0)
    for row in audit.ledger if maps else ():
        if row.owner in held:
            held[row.owner] += row.bytes or 0
    return {
        str(number): {
            "private_bytes": held[one.owner],
            "variables": None if one.variables is None else _table(one.variables, told),
            "omitted_count": one.omitted_variables,
        }
        for number, one in enumerate(maps)
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
