"""The pages that the loader writes for one variable alone."""

from array import array
from collections.abc import Callable, Mapping
from contextlib import suppress

from footprint.elf import Image, relocated_vaddrs
from footprint.elf.relocations import pages_relocated_alone
from footprint.errors import FootprintError
from footprint.model.row import Row
from footprint.sources.files import ElfFiles

__all__ = ("RelocatedVariables",)

_Places = Mapping[tuple[str | None, str | None], tuple[int, int]]


class RelocatedVariables:
    """Counts the pages that only the relocations of a variable write; a file is read when it is first asked about.

    Args:
        files: Reads the symbols of files.
        image_of: Returns the file of an owner, or None.
        page_bytes: The size of a page.
    """

    def __init__(self, files: ElfFiles, image_of: Callable[[str], Image | None], page_bytes: int) -> None:
        self._files = files
        self._image_of = image_of
        self._page_bytes = page_bytes
        self._known: dict[str, tuple[array[int], _Places]] = {}

    def page_count(self, row: Row) -> int | None:
        """Count the pages for the variable of a row; None where it cannot be read."""
        if row.owner not in self._known:
            self._known[row.owner] = array("Q"), {}
            with suppress(FootprintError):
                self._known[row.owner] = self._read(row.owner)
        vaddrs, places = self._known[row.owner]
        place = places.get((row.section, row.symbol))
        return None if place is None else pages_relocated_alone(vaddrs, *place, self._page_bytes)

    def _read(self, owner: str) -> tuple["array[int]", _Places]:
        image = self._image_of(owner)
        if image is None:
            return array("Q"), {}
        contents, _ = self._files.debug_files.contents_of(image, owner)
        places: _Places = {
            (one.section.name, variable.name): (
                one.section.vaddr + variable.offset,
                one.section.vaddr + variable.offset + variable.size_bytes,
            )
            for one in contents.sections
            for variable in one.variables
        }
        return array("Q", sorted(relocated_vaddrs(image))), places
