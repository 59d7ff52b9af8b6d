"""What variables of a linked file begin with, comparable between copies that stand at different addresses.

Two copies of a table of pointers differ in every byte where each points to its own neighbour. So a word that the loader
relocates, or that points into a program at a fixed address, is told as what it points to.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from footprint.elf.dynamic import numbers
from footprint.elf.image import ET_EXEC, Buffer, Image, Section
from footprint.elf.names import normalised
from footprint.elf.relocations import addends_at, relocated_vaddrs
from footprint.elf.statics import Static, Statics
from footprint.errors import InputError

__all__ = ("Initial", "Initials")

# Behind so many bytes two strings are taken for one.
_MOST_STRING_BYTES: Final = 256
_LARGEST_COMPARED_BYTES: Final = 1 << 24

Target = tuple[str, int] | bytes


class Initial(NamedTuple):
    """What a variable begins with.

    Attributes:
        raw: Its bytes, the words of pointers as zeros; None where the file holds none (.bss).
        targets: For each pointer its place in the variable and what it points to: a symbol and an offset into it, or
            the string that stands there.
    """

    raw: bytes | None
    targets: tuple[tuple[int, Target], ...]

    @property
    def is_blank(self) -> bool:
        """Tell whether there is nothing to compare: no bytes, or zeros only."""
        return not self.targets and (self.raw is None or not any(self.raw))


class Initials:
    """Reads what the variables of one file begin with."""

    def __init__(self, statics: Statics) -> None:
        self._statics = statics
        self._image: Image = statics.image
        self._sections = statics.image.sections
        self._relocated = array("Q", sorted(relocated_vaddrs(statics.image)))
        self._word_bytes = 8 if self._image.is_64 else 4
        self._addends: dict[int, int] = {}
        in_memory = [one for one in self._sections if one.is_in_memory and not one.is_tls and one.size_bytes]
        self._by_vaddr = sorted(in_memory, key=lambda one: one.vaddr)
        self._vaddrs = [one.vaddr for one in self._by_vaddr]

    def prepare(self, statics: Iterable[Static]) -> None:
        """Read the addends of the pointers in some variables, all at once."""
        wanted: set[int] = set()
        for static in statics:
            first, past = self._relocations(static)
            wanted.update(self._relocated[first:past])
        if wanted:
            self._addends = addends_at(self._image, wanted)

    def of(self, static: Static) -> Initial | None:
        """Give what a variable begins with; None where its bytes are not in the file, as they should."""
        section = self._sections[static.section_index]
        if not section.has_file_bytes or static.size_bytes > _LARGEST_COMPARED_BYTES:
            return Initial(None, ())
        try:
            raw = bytearray(self._bytes(section, static))
        except InputError:
            return None
        words = self._pointers(static, raw)
        for at, _ in words:
            raw[at : at + self._word_bytes] = bytes(self._word_bytes)
        return Initial(bytes(raw), tuple([(at, self._target(addr)) for at, addr in words]))

    def _bytes(self, section: Section, static: Static) -> Buffer:
        start = static.vaddr if static.is_tls else static.vaddr - section.vaddr
        if static.is_tls:
            start -= section.vaddr - min(one.vaddr for one in self._sections if one.is_tls)
        if not 0 <= start <= start + static.size_bytes <= section.size_bytes:
            raise InputError(self._image.file, f"{static.name} lies outside of its section", section.offset)
        return self._image.bytes_at(section.offset + start, static.size_bytes, static.name)

    def _relocations(self, static: Static) -> tuple[int, int]:
        if static.is_tls:
            return 0, 0
        first = bisect_left(self._relocated, static.vaddr)
        return first, bisect_left(self._relocated, static.vaddr + static.size_bytes, first)

    def _pointers(self, static: Static, raw: bytearray) -> list[tuple[int, int]]:
        """Give place and target of each pointer in a variable."""
        if static.is_tls:
            return []
        whole = raw[: len(raw) // self._word_bytes * self._word_bytes]
        in_place = numbers(self._image, bytes(whole))
        if self._image.type == ET_EXEC and static.vaddr % self._word_bytes == 0:
            # At a fixed address the linker filled them in: what looks like one is taken for one.
            return [
                (index * self._word_bytes, word)
                for index, word in enumerate(in_place)
                if word and self._section_at(word) is not None
            ]
        first, past = self._relocations(static)
        found = []
        for vaddr in self._relocated[first:past]:
            at = vaddr - static.vaddr
            aligned = at // self._word_bytes if at % self._word_bytes == 0 else len(in_place)
            found.append((at, self._addends.get(vaddr) or (in_place[aligned] if aligned < len(in_place) else 0)))
        return found

    def _section_at(self, vaddr: int) -> Section | None:
        index = bisect_right(self._vaddrs, vaddr) - 1
        if index < 0:
            return None
        section = self._by_vaddr[index]
        return section if vaddr < section.vaddr + section.size_bytes else None

    def _target(self, vaddr: int) -> Target:
        """Tell what an address is: a symbol and how far into it, else the string there, else the section."""
        section = self._section_at(vaddr)
        if section is None:
            return "", vaddr
        symbol = self._statics.symbol_at(vaddr)
        if symbol is not None and symbol[1] == 0:
            return normalised(symbol[0]), 0
        if section.has_file_bytes and not section.is_writable:
            offset = section.offset + vaddr - section.vaddr
            left = min(_MOST_STRING_BYTES, section.offset + section.size_bytes - offset)
            return bytes(self._image.data[offset : offset + left]).split(b"\0", 1)[0]
        if symbol is not None:
            return normalised(symbol[0]), symbol[1]
        return section.name, vaddr - section.vaddr
