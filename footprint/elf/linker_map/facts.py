"""What all linkers' maps tell, in one form, and how it is collected."""

import re
from collections.abc import Container
from enum import StrEnum
from operator import itemgetter
from typing import Final, NamedTuple

from footprint.errors import InputError, Note

__all__ = ("Collector", "Linker", "LinkerMap", "OutputSection", "PlacedSection")

_MEMBER: Final = re.compile(r"(.+)\(([^()]+)\)", re.DOTALL)
_END_OF_ADDRESSES: Final = 1 << 64
# No program has as many writable sections; a map that claims so is not kept in memory.
_MOST_ENTRIES: Final = 1 << 22


class Linker(StrEnum):
    """Who wrote a map."""

    BFD = "GNU ld"
    GOLD = "gold"
    LLD = "lld"
    MOLD = "mold"


class OutputSection(NamedTuple):
    """A section of the linked file, as the map has it."""

    name: str
    vaddr: int
    size_bytes: int


class PlacedSection(NamedTuple):
    """A section of an object, where the linker put it.

    Attributes:
        vaddr: Where it starts; in a file that is linked again (`-r`) the offset in its output section.
        size_bytes: Its size, never 0.
        output_section: What it became a part of. Of thread-local sections the addresses overlap those of others, so
            this tells them apart.
        input_section: Its name in the object; `COMMON` or `.common` for what had none; the linker's word for what it
            made itself, such as `*fill*`.
        object: The object or archive, as the linker was given it; None for what the linker made.
        member: The member of the archive.
    """

    vaddr: int
    size_bytes: int
    output_section: str
    input_section: str
    object: str | None
    member: str | None


class LinkerMap(NamedTuple):
    """What a map tells.

    Attributes:
        file: The map's name.
        linker: Who wrote it.
        outputs: The sections of the linked file, in the order of the map.
        sections: What was put into those that were asked for, ascending by vaddr.
        commons: Object and member of COMMON variables by linker name, where the linker lists them (GNU ld, gold).
        notes: What was odd.
    """

    file: str
    linker: Linker
    outputs: tuple[OutputSection, ...]
    sections: tuple[PlacedSection, ...]
    commons: dict[str, tuple[str, str | None]]
    notes: tuple[Note, ...]


class Collector:
    """Collects what a map tells, line by line; keeps of a map of any length what was asked for.

    Args:
        file: The map's name.
        wanted: The output sections whose parts are kept; None for all.
    """

    def __init__(self, file: str, wanted: Container[str] | None) -> None:
        self._file = file
        self._room = _MOST_ENTRIES
        self.outputs: list[OutputSection] = []
        self.sections: list[PlacedSection] = []
        self.commons: dict[str, tuple[str, str | None]] = {}
        self.unknown_lines = 0
        self.is_wanted = False
        self._wanted = wanted
        self._output = ""
        # A map names each object thousands of times.
        self._objects: dict[bytes, tuple[str, str | None]] = {}

    def begin_output(self, name: bytes, vaddr: int, size_bytes: int) -> None:
        """Take the start of an output section: what follows is put into it."""
        self._take_room()
        self._output = _text(name)
        self.is_wanted = self._wanted is None or self._output in self._wanted
        self.outputs.append(OutputSection(self._output, vaddr, size_bytes))

    def end_output(self) -> None:
        """Take what follows as part of no output section."""
        self.is_wanted = False

    def place(self, vaddr: int, size_bytes: int, input_section: bytes, object_: bytes | None) -> None:
        """Take a piece of the output section; `object_` is None for what the linker made."""
        if not self.is_wanted or not size_bytes:
            return
        if vaddr + size_bytes > _END_OF_ADDRESSES:
            self.unknown_lines += 1
            return
        self._take_room()
        file, member = (None, None) if object_ is None else self._object(object_)
        # tuple.__new__ makes a named tuple in half the time that its own constructor takes.
        self.sections.append(
            tuple.__new__(PlacedSection, (vaddr, size_bytes, self._output, _text(input_section), file, member))
        )

    def place_common(self, name: bytes, object_: bytes) -> None:
        """Take the object of a COMMON variable."""
        self._take_room()
        self.commons.setdefault(_text(name), self._object(object_))

    def result(self, linker: Linker, *, is_cut: bool) -> LinkerMap:
        """Give what was collected."""
        file, notes = self._file, []
        if is_cut:
            notes.append(Note("linker-map-truncated", file, "its last line has no end: the rest may be missing"))
        if self.unknown_lines:
            cause = f"{self.unknown_lines:,} lines of no known shape were left out"
            notes.append(Note("linker-map-unknown-lines", file, cause))
        sections = tuple(sorted(self.sections, key=itemgetter(0)))
        return LinkerMap(file, linker, tuple(self.outputs), sections, self.commons, tuple(notes))

    def _take_room(self) -> None:
        self._room -= 1
        if self._room < 0:
            raise InputError(self._file, f"a map of more than {_MOST_ENTRIES:,} entries")

    def _object(self, raw: bytes) -> tuple[str, str | None]:
        found = self._objects.get(raw)
        if found is None:
            name = _text(raw)
            parts = _MEMBER.fullmatch(name)
            found = self._objects[raw] = (parts[1], parts[2]) if parts else (name, None)
        return found


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
