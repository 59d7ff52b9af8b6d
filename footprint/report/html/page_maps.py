"""The pages of objects one by one, as the page draws them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from footprint.elf import shown_name
from footprint.report.escape import well_formed

if TYPE_CHECKING:
    from footprint.audit.page_maps import PageMap

__all__ = ("page_map_members",)

Json = dict[str, Any]


def page_map_members(maps: "Sequence[PageMap]") -> dict[str, Json]:
    """Give page maps by number: their parts, and what lies in them, as tables."""
    return {
        str(number): {
            "owner": well_formed(one.owner),
            "parts": [
                {
                    "start_addr": part.start_addr,
                    "kind": part.kind.value,
                    "permissions": part.permissions,
                    # State, number of pages, state, ...
                    "runs": [figure for state, count in part.runs for figure in (state.value, count)],
                }
                for part in one.parts
            ],
            "places": [
                {
                    "addr": place.addr,
                    "size_bytes": place.size_bytes,
                    "section": well_formed(place.section),
                    "name": None if place.symbol is None else well_formed(shown_name(place.symbol)),
                }
                for place in one.places
            ],
            "omitted_pages": one.omitted_pages,
            "omitted_places": one.omitted_places,
        }
        for number, one in enumerate(maps)
    }
