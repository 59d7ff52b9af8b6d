"""The variables in the pages of objects: the HTML report shows them, and a saved audit does not keep them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from footprint.elf import shown_name
from footprint.formats.codec import Columns
from footprint.formats.escape import well_formed
from footprint.formats.json import Json

if TYPE_CHECKING:
    from footprint.model.page_map import PageMap, Place

__all__ = ("variable_members",)

_KEYS: Final = ("addr", "size_bytes", "section", "name")


def variable_members(maps: "Sequence[PageMap]") -> dict[str, Json]:
    """Return the variables of page maps as tables, keyed by the number of the map; without maps that lack them."""
    return {
        str(number): {"variables": _table(one.variables), "omitted_count": one.omitted_variables}
        for number, one in enumerate(maps)
        if one.variables is not None
    }


def _table(variables: "Sequence[Place]") -> Columns | list[Json]:
    if not variables:
        return []
    addrs, sizes, sections, symbols = zip(*variables, strict=True)
    # Few sections have many variables.
    shown = {section: well_formed(section) for section in set(sections)}
    names = {symbol: symbol and well_formed(shown_name(symbol)) for symbol in dict.fromkeys(symbols)}
    return Columns(_KEYS, (addrs, sizes, list(map(shown.get, sections)), list(map(names.get, symbols))))
