"""The variables in the pages of objects: the HTML report shows them, and a saved audit does not keep them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from footprint.elf import shown_name
from footprint.formats.escape import well_formed
from footprint.formats.json import Json

if TYPE_CHECKING:
    from footprint.model.page_map import PageMap

__all__ = ("variable_members",)


def variable_members(maps: "Sequence[PageMap]") -> dict[str, Json]:
    """Return the variables of page maps as tables, keyed by the number of the map; without maps that lack them."""
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
