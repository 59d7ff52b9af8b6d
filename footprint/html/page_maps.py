"""What lies in the pages of objects beside their sections: what the page tells and a saved audit does not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from footprint.elf import shown_name
from footprint.formats.escape import well_formed

if TYPE_CHECKING:
    from footprint.model.page_map import PageMap

__all__ = ("variable_members",)

Json = dict[str, Any]


def variable_members(maps: "Sequence[PageMap]") -> dict[str, Json]:
    """Give the variables of page maps as tables, by the number of the map; none of those that do not tell them."""
    return {
        str(number): {
            "variables": [
                {
                    "addr": place.addr,
                    "size_bytes": place.size_bytes,
                    "section": well_formed(place.section),
                    "name": None if place.symbol is None else well_formed(shown_name(place.symbol)),
                }
                for place in one.variables
            ],
            "omitted_count": one.omitted_variables,
        }
        for number, one in enumerate(maps)
        if one.variables is not None
    }
