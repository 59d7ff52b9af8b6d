"""The initial contents of the variables of a linked file, in a form that can be compared between copies.

Two copies of a table of pointers differ where each copy points to its own neighbours. So a word that the loader
relocates, or that points into a program at a fixed address, is replaced by the name of its target.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from footprint.elf import abi
from footprint.elf.dynamic import numbers
from footprint.elf.dynsym import asked_names
from footprint.elf.image import Buffer, Image, Section
from footprint.elf.names import normalised
from footprint.elf.relocations import addends_at, ordered_vaddrs
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.errors import InputError
from footprint.members import NamedTuple

# Strings that are equal up to this length count as equal.
_MOST_STRING_BYTES: Final = 256
_LARGEST_COMPARED_BYTES: Final = 1 << 24

Target = tuple[str, int] | bytes
Pointer = int | tuple[str, int]
"""The vaddr that a word holds, or the name and addend of the symbol that it asks for."""


class Initial(NamedTuple):
    """The initial contents of a variable.

    Attributes:
        raw: Its bytes, with zeros in place of pointers; None where the file has no bytes for it (.bss).
        targets: For each pointer its offset in the variable and its target: a symbol and an offset into it, or the
            string at the target.
    """

    raw: bytes | None
    targets: tuple[tuple[int, Target], ...]

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to compare: no bytes, or only zeros."""
        return not self.targets and (self.raw is None or not any(self.raw))


class RawContents(NamedTuple):
    """The contents of a variable, with its pointers as they are.

    Attributes:
        raw: Its bytes, with zeros in place of pointers; None where the file has no bytes for it (.bss).
        pointers: Each pointer by its offset in the variable.
    """

    raw: bytes | None
    pointers: dict[int, Pointer]


class Initials:
    """Reads the initial contents of the variables of one file.

    Attributes:
        sections: The sections of the file.
    """

    def __init__(self, statics: Statics) -> None:
        self._statics = statics
        self._image: Image = statics.image
        self.sections = statics.image.sections
        self._relocated = ordered_vaddrs(statics.image)
        self._word_bytes = self._image.word_bytes
        self._prepared: AbstractSet[int] = frozenset()
        self._addends: dict[int, int] = {}
        self._cached: dict[tuple[bool, int, int], Initial | None] = {}
        self._requested_names: dict[int, str] = {}
        # The template of the block of each thread; the vaddr of a thread-local variable is an offset into it.
        self._tls_vaddr = min((section.vaddr for section in self.sections if section.is_tls), default=0)
        in_memory = [s for s in self.sections if s.is_in_memory and not s.is_tls and s.size_bytes]
        self._by_vaddr = sorted(in_memory, key=lambda section: section.vaddr)
        self._vaddrs = [section.vaddr for section in self._by_vaddr]

    def prepare(self, statics: Iterable[Symbol]) -> None:
        """Read the relocations of some variables in one pass; those of others are then read when they are needed."""
        wanted: set[int] = set()
        for static in statics:
            first, past = self._relocations(static)
            wanted.update(self._relocated[first:past])
        self._read(wanted)

    def _read(self, wanted: AbstractSet[int]) -> None:
        self._prepared = wanted
        if wanted:
            self._addends = addends_at(self._image, wanted)
            self._requested_names = asked_names(self._image, wanted)

    def is_relocated(self, static: Symbol) -> bool:
        """Return whether the loader writes a word of a variable at start."""
        first, past = self._relocations(static)
        return first < past

    def of(self, static: Symbol) -> Initial | None:
        """Return the initial contents of a variable; None where the file lacks bytes that it should have."""
        key = static.is_tls, static.vaddr, static.size_bytes
        if key not in self._cached:
            self._cached[key] = self._initial(static)
        return self._cached[key]

    def _initial(self, static: Symbol) -> Initial | None:
        if static.size_bytes > _LARGEST_COMPARED_BYTES:
            return Initial(None, ())
        contents = self.contents(static)
        if contents is None:
            return None
        targets = [
            (at, self._target(to) if isinstance(to, int) else to) for at, to in sorted(contents.pointers.items())
        ]
        return Initial(contents.raw, tuple(targets))

    def contents(self, static: Symbol) -> RawContents | None:
        """Return the bytes and pointers of a variable; None where the file lacks bytes, or where they are too many."""
        section = self.sections[static.section_index]
        if static.size_bytes > _LARGEST_COMPARED_BYTES:
            return None
        if not section.has_file_bytes:
            return RawContents(None, {})
        try:
            raw = bytearray(self._bytes(section, static))
        except InputError:
            return None
        pointers = self._pointers(static, raw)
        for at in pointers:
            raw[at : at + self._word_bytes] = bytes(self._word_bytes)
        return RawContents(bytes(raw), pointers)

    def _vaddr(self, static: Symbol) -> int:
        return static.vaddr + self._tls_vaddr if static.is_tls else static.vaddr

    def _bytes(self, section: Section, static: Symbol) -> Buffer:
        start = self._vaddr(static) - section.vaddr
        if not 0 <= start <= start + static.size_bytes <= section.size_bytes:
            raise InputError(self._image.file, f"{static.name} lies outside of its section", section.offset)
        return self._image.bytes_at(section.offset + start, static.size_bytes, static.name)

    def _relocations(self, static: Symbol) -> tuple[int, int]:
        """Return the range of indexes of the relocations whose whole word lies in a variable."""
        vaddr = self._vaddr(static)
        first = bisect_left(self._relocated, vaddr)
        return first, bisect_right(self._relocated, vaddr + static.size_bytes - self._word_bytes, first)

    def _pointers(self, static: Symbol, raw: bytearray) -> dict[int, Pointer]:
        """Return each pointer in a variable by its offset."""
        vaddr, pointers = self._vaddr(static), dict[int, Pointer]()
        if self._image.type == abi.ET_EXEC and vaddr % self._word_bytes == 0:
            # In a program at a fixed address the linker filled in the pointers: any word that is a vaddr counts as one.
            in_place = numbers(self._image, bytes(raw[: len(raw) // self._word_bytes * self._word_bytes]))
            for index, word in enumerate(in_place):
                if word and self.section_at(word) is not None:
                    pointers[index * self._word_bytes] = word
        first, past = self._relocations(static)
        for place in self._relocated[first:past]:
            at = place - vaddr
            if place not in self._prepared:
                self._read(frozenset(self._relocated))
            addend = self._addends.get(place) or self._word(raw[at : at + self._word_bytes])
            name = self._requested_names.get(place)
            pointers[at] = addend if name is None else (normalised(name), addend)
        return pointers

    def _word(self, raw: bytes | bytearray) -> int:
        return int.from_bytes(raw, "little" if self._image.is_little else "big")

    def section_at(self, vaddr: int) -> Section | None:
        """Return the section in memory that holds a vaddr."""
        index = bisect_right(self._vaddrs, vaddr) - 1
        if index < 0:
            return None
        section = self._by_vaddr[index]
        return section if vaddr < section.vaddr + section.size_bytes else None

    def _target(self, vaddr: int) -> Target:
        """Return the target at a vaddr: a symbol and the offset in it, else the string there, else the section."""
        section = self.section_at(vaddr)
        if section is None:
            return "", vaddr
        if (symbol := self._statics.symbol_at(vaddr)) is not None:
            return normalised(symbol[0]), symbol[1]
        if section.has_file_bytes and not section.is_writable:
            offset = section.offset + vaddr - section.vaddr
            left = min(_MOST_STRING_BYTES, section.offset + section.size_bytes - offset)
            return bytes(self._image.data[offset : offset + left]).split(b"\0", 1)[0]
        return section.name, vaddr - section.vaddr
