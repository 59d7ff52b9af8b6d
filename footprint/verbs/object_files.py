"""What the files of loaded objects say beside their headers, read when it is asked for."""

from collections.abc import Sequence

from footprint.audit.layout import FileKey, LoadedObject
from footprint.elf import Contents, read_contents, relocated_vaddrs
from footprint.errors import InputError, Note

__all__ = ("ObjectFiles",)


class ObjectFiles:
    """Reads what the files of objects say, each once, and notes what could not be read."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self._contents: dict[FileKey, Contents | None] = {}
        self._relocated: dict[FileKey, Sequence[int]] = {}

    def contents_of(self, loaded: LoadedObject) -> Contents | None:
        """Give what the writable sections of an object hold, or None where that cannot be read."""
        if loaded.image is None:
            return None
        if loaded.key not in self._contents:
            try:
                self._contents[loaded.key] = read_contents(loaded.image)
            except InputError as error:
                self._contents[loaded.key] = None
                self._note(loaded, f"{error.detail}, its symbols are not told apart")
        return self._contents[loaded.key]

    def relocated_pages_of(self, loaded: LoadedObject, page_bytes: int) -> frozenset[int]:
        """Give the numbers of the pages that relocations of an object write."""
        if loaded.image is None:
            return frozenset()
        if loaded.key not in self._relocated:
            try:
                self._relocated[loaded.key] = relocated_vaddrs(loaded.image)
            except InputError as error:
                self._relocated[loaded.key] = ()
                self._note(loaded, f"{error.detail}, why its pages were written is not known")
        bias_addr = loaded.bias_addr
        return frozenset((vaddr + bias_addr) // page_bytes for vaddr in self._relocated[loaded.key])

    def _note(self, loaded: LoadedObject, detail: str) -> None:
        self.notes.append(Note("file-unreadable", loaded.key.name, detail))
