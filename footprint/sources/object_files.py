"""What the files of loaded objects say beside their headers, read when it is asked for."""

from collections.abc import Iterable

from footprint.attribution.layout import has_too_many_segments
from footprint.attribution.owned_range import LoadedObject
from footprint.attribution.symbol_ranges import PageNumbers
from footprint.elf import Contents, Image
from footprint.elf.relocations import relocated_pages
from footprint.errors import InputError, Note
from footprint.process.mapped_files import FileKey
from footprint.sources.debug_files import DebugFiles

__all__ = ("ObjectFiles",)


class ObjectFiles:
    """Reads what the files of objects say, each once, and notes what could not be read.

    Args:
        debug_files: Reads what they hold; without it, `/usr/lib/debug` and the like are looked into.
    """

    def __init__(self, debug_files: DebugFiles | None = None) -> None:
        self.notes: list[Note] = []
        self._debug_files = debug_files or DebugFiles()
        self._contents: dict[FileKey, Contents | None] = {}
        self._relocated: dict[tuple[FileKey, int], tuple[int, ...]] = {}

    def contents_of(self, loaded: LoadedObject) -> Contents | None:
        """Give what the writable sections of an object hold, or None where that cannot be read."""
        if loaded.image is None:
            return None
        if loaded.key not in self._contents:
            self._contents[loaded.key] = self._read_contents(loaded, loaded.image)
        return self._contents[loaded.key]

    def _read_contents(self, loaded: LoadedObject, image: Image) -> Contents | None:
        cause = f"{len(image.loads)} segments to load are more than any program has"
        if not has_too_many_segments(image):
            try:
                found, notes = self._debug_files.contents_of(image, loaded.key.name)
            except InputError as error:
                cause = error.detail
            else:
                self.notes += notes
                return found
        self._note(loaded, f"{cause}, its symbols are not told apart")
        return None

    def debug_files_of(self, owners: Iterable[str]) -> dict[str, str]:
        """Give the debug files that name what some owners hold, by owner."""
        files = {key.name: found.debug_file for key, found in self._contents.items() if found and found.debug_file}
        return {owner: files[owner] for owner in dict.fromkeys(owners) if owner in files}

    def relocated_pages_of(self, loaded: LoadedObject, page_bytes: int) -> PageNumbers:
        """Give the numbers of the pages that relocations of an object write."""
        if loaded.image is None:
            return PageNumbers(())
        key = (loaded.key, page_bytes)
        if key not in self._relocated:
            try:
                self._relocated[key] = relocated_pages(loaded.image, page_bytes)
            except InputError as error:
                self._relocated[key] = ()
                self._note(loaded, f"{error.detail}, why its pages were written is not known")
        # Kernels load by whole pages only: wherever an object stands, its pages are the same, so many further on.
        return PageNumbers(self._relocated[key], loaded.bias_addr // page_bytes)

    def _note(self, loaded: LoadedObject, detail: str) -> None:
        self.notes.append(Note("file-unreadable", loaded.key.name, detail))
