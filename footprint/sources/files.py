"""The ELF files of one answer: each is read once, whichever parts of the answer ask."""

from collections.abc import Iterable
from itertools import chain
from typing import Final

from footprint.attribution.layout import has_too_many_segments
from footprint.attribution.ledger import KnownRows
from footprint.attribution.owned_range import LoadedObject
from footprint.attribution.symbol_ranges import PageNumbers
from footprint.elf import abi
from footprint.elf.contents import Contents
from footprint.elf.image import Buffer, Image, Section
from footprint.elf.notes import STANDARD_PLACES, DebugSearch, build_id
from footprint.elf.relocations import relocated_pages
from footprint.errors import InputError, Note
from footprint.process.mappings import OpenFiles
from footprint.sources.debug_files import DebugFiles

_MOST_IMAGES: Final = 256
_SYMBOL_TABLES: Final = frozenset({abi.SHT_SYMTAB, abi.SHT_DYNSYM})


class ElfFiles:
    """Opens the files of an answer, reads what they say beside their headers, and notes what cannot be read.

    What was read of a file serves all processes that have the file, also processes of several hosts.

    Args:
        search: Where to look for the symbols of stripped files; None for nowhere.
        root: The folder that the files take for `/`; None if it is this machine's.

    Attributes:
        notes: What could not be read.
        opened: Opens files.
        debug_files: Reads files with the symbols of their debug files.
        images: The headers that were read, for `images_of`.
        known_rows: The rows of ranges of objects, for `audit_snapshot`.
        searched_symbols: The symbols among which those that a tool must demangle were searched.
    """

    def __init__(self, search: DebugSearch | None = STANDARD_PLACES, root: str | None = None) -> None:
        self.notes: list[Note] = []
        self.opened = OpenFiles()
        self.debug_files = DebugFiles(search, root, self.opened)
        self.images: dict[tuple[int, str], tuple[Buffer, Image]] = {}
        self.known_rows = KnownRows()
        self.searched_symbols: set[str | None] = set()
        self._firsts: dict[int, tuple[Image, Image, str | None]] = {}
        self._alike: dict[tuple[str | None, int, int], list[Image]] = {}
        self._contents: dict[Image, Contents | None] = {}
        self._relocated: dict[tuple[Image, int], tuple[int, ...]] = {}
        self._debug_paths: dict[str, str] = {}

    def drop_if_many(self) -> None:
        """Drop what was kept for further processes if it is of so many files that they might not all stay open."""
        if len(self.images) > _MOST_IMAGES:
            self.images.clear()
            self.known_rows = KnownRows()

    def contents_of(self, loaded: LoadedObject) -> Contents | None:
        """Return what the writable sections of an object hold, or None if that cannot be read."""
        if loaded.image is None:
            return None
        first, _ = self._first_of(loaded.image)
        if first not in self._contents:
            self._contents[first] = self._read_contents(loaded, loaded.image)
        contents = self._contents[first]
        if contents is not None and contents.debug_file:
            self._debug_paths[loaded.key.name] = contents.debug_file
        return contents

    def _read_contents(self, loaded: LoadedObject, image: Image) -> Contents | None:
        cause = f"{len(image.loads)} segments to load are more than any program has"
        if not has_too_many_segments(image):
            try:
                contents, notes = self.debug_files.contents_of(image, loaded.key.name)
            except InputError as error:
                cause = error.detail
            else:
                self.notes += notes
                return contents
        self._note(loaded, f"{cause}, its symbols get no rows of their own")
        return None

    def debug_paths_of(self, owners: Iterable[str]) -> dict[str, str]:
        """Return the debug files that name what some owners hold, by owner."""
        if not self._debug_paths:
            return {}
        return {owner: self._debug_paths[owner] for owner in dict.fromkeys(owners) if owner in self._debug_paths}

    def relocated_pages_of(self, loaded: LoadedObject, page_bytes: int) -> PageNumbers:
        """Return the numbers of the pages that relocations of an object write."""
        if loaded.image is None:
            return PageNumbers(())
        key = (self._first_of(loaded.image)[0], page_bytes)
        if key not in self._relocated:
            try:
                self._relocated[key] = relocated_pages(loaded.image, page_bytes)
            except InputError as error:
                self._relocated[key] = ()
                self._note(loaded, f"{error.detail}, why its pages were written is not known")
        # Kernels load by whole pages only: wherever an object is, its pages are the same, so many further on.
        return PageNumbers(self._relocated[key], loaded.bias_addr // page_bytes)

    def build_id_of(self, image: Image) -> str | None:
        """Return the build-id of a file; None if it has none."""
        return self._first_of(image)[1]

    def _first_of(self, image: Image) -> tuple[Image, str | None]:
        """Return the first image of the same file, on this machine or another, and the build-id of both.

        Same files have one build-id, size and symbols: it says nothing of the symbols, and stripped copies have it.
        Without one, only the same bytes in memory are the same file: what is opened once is one object.
        """
        # An image that is kept here keeps its number, which no other object gets.
        identified = self._firsts.get(id(image))
        if identified is None:
            number = build_id(image)
            alike = self._alike.setdefault((number, len(image.data), 0 if number is not None else id(image.data)), [])
            first = next(
                (other for other in alike if other.data is image.data or _has_same_symbols(other, image)), image
            )
            if first is image:
                alike.append(image)
            identified = self._firsts[id(image)] = image, first, number
        return identified[1:]

    def _note(self, loaded: LoadedObject, detail: str) -> None:
        self.notes.append(Note("file-unreadable", loaded.key.name, detail))


def _has_same_symbols(image: Image, other: Image) -> bool:
    """Return whether two files have the same headers, symbols and names of symbols."""
    if image.segments != other.segments or image.sections != other.sections:
        return False
    tables = [section for section in image.sections if section.type in _SYMBOL_TABLES]
    names = [image.sections[table.link] for table in tables if table.link < len(image.sections)]
    return all(_bytes(image, section) == _bytes(other, section) for section in chain(tables, names))


def _bytes(image: Image, section: Section) -> bytes:
    return bytes(image.data[section.offset : section.offset + section.size_bytes])
