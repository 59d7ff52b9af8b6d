"""The pages of objects one by one, as an audit is saved with them: without their variables, whose names are many."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from footprint.formats.escape import well_formed
from footprint.formats.json import Json

if TYPE_CHECKING:
    from footprint.model.page_map import PageMap

__all__ = ("page_map_rows",)


def page_map_rows(maps: "Sequence[PageMap]") -> list[Json]:
    """Give the table of page maps: one row an object; its runs and sections as columns, which is half as long."""
    return [
        {
            "owner": well_formed(one.owner),
            "parts": [
                {
                    "start_addr": part.start_addr,
                    "kind": part.kind.value,
                    "permissions": part.permissions,
                    "states": [state.word for state, _ in part.runs],
                    "page_counts": [count for _, count in part.runs],
                }
                for part in one.parts
            ],
            "sections": {
                "names": [well_formed(place.section) for place in one.sections],
                "addrs": [place.addr for place in one.sections],
                "size_bytes": [place.size_bytes for place in one.sections],
            },
            "omitted_pages": one.omitted_pages,
            "omitted_sections": one.omitted_sections,
        }
        for one in maps
    ]
