"""The object or source file that each byte of writable memory came from.

An object or a member of an archive is itself the origin. For a linked file the linker's map names the origins; without
a map the symbol table does, but only for local variables. Every byte of a section has one origin, or a cause why it
has none.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Final, NamedTuple

from footprint.elf import abi
from footprint.elf.contents import Contents, Residue, SectionContents
from footprint.elf.image import Image
from footprint.elf.linker_map import LinkerMap, PlacedSection
from footprint.elf.selection import Selection
from footprint.elf.statics import local_units
from footprint.elf.symbols import Symbol
from footprint.errors import InputError, Note
from footprint.ranges import Gap, Partition, Piece, partition
from footprint.text.units import counted

_FILLS: Final = frozenset({"*fill*", "** fill", "** zero fill"})
# The objects that GCC and LLVM make of many while linking: cc1.ltrans0.ltrans.o, lto.tmp, program.lto.1.o.
_OF_LTO: Final = re.compile(r"\.ltrans[0-9]*\.|(?:^|[./])lto\.tmp$|\.lto\.(?:[^/.]+\.)?o$")
_OFFSET: Final = attrgetter("offset")
_GOLD_COMMONS: Final = "** common"
# gold puts these after the symbols of the last source file.
_OF_LINKER: Final = frozenset({"_DYNAMIC", "_GLOBAL_OFFSET_TABLE_"})


class Lack(StrEnum):
    """Why bytes have no origin, although a symbol names them or a map lists them."""

    FILL = "no object: fill"
    """They align what follows: the map states it, or has no entry there."""
    LINKER = "no object: made by the linker"
    """The map assigns them to no object."""
    UNLISTED = "no object: not in the map"
    """A variable lies where the map has no entry."""
    OTHER_LINK = "no object: the map is of another link"
    """The map has no section of this name, address and size."""
    GLOBAL = "no source file: not local"
    """A symbol table names the source files of local symbols only; a linker map or debug information has more."""
    UNTOLD = "no source file: not in the symbol table"
    """The symbol is local, but no file symbol stands before it: assembler code, or link-time optimisation."""
    NOT_SELECTED = "not selected"
    """The selection leaves it out."""


class ByteOrigin(NamedTuple):
    """The origin of bytes.

    Attributes:
        object: The object or archive, as the linker or the user named it.
        member: The member of the archive.
        unit: The source file, without folders; with them where debug information names it.
        cause: Why no origin is known: a value of `Lack` or `ResidueCause`; else "".
    """

    object: str | None = None
    member: str | None = None
    unit: str | None = None
    cause: str = ""

    @property
    def label(self) -> str:
        """The text to show for it; a cause is in brackets."""
        if self.object is not None:
            return self.object if self.member is None else f"{self.object}({self.member})"
        return f"[{self.cause}]" if self.unit is None else self.unit


PathOf = Callable[[SectionContents, Symbol], str | None]

_NOT_SELECTED: Final = ByteOrigin(cause=Lack.NOT_SELECTED)


class SectionOrigins(NamedTuple):
    """One section, divided among the origins of its bytes.

    Attributes:
        contents: The contents of the section.
        ranges: Every byte of the section with its origin, as offsets in the section.
        starts: The offsets at which the pieces of `ranges` begin.
        origins: The origins of these pieces.
    """

    contents: SectionContents
    ranges: Partition[ByteOrigin]
    starts: Sequence[int]
    origins: Sequence[ByteOrigin]

    def at(self, offset: int) -> ByteOrigin:
        """Return the origin of the byte at an offset; of the last byte where the offset is the end."""
        return self.origins[bisect_right(self.starts, offset, 1) - 1]


class OriginShare(NamedTuple):
    """The share of one origin in a section.

    Attributes:
        size_bytes: The bytes that came from it.
        named_bytes: Those of them that variables name.
        variable_count: The number of its variables.
    """

    size_bytes: int
    named_bytes: int
    variable_count: int


class Origins:
    """The origins of the contents of a file, found on first use.

    Args:
        image: The file.
        contents: Its contents.
        itself: The name of the file, and the name of the member where the file is a member of an archive.
        linker_map: The map of its link, or None.
        path_of: Returns the source file that declares a variable, or None; None to ask the symbol table alone.

    Attributes:
        contents: The contents, or the selected part of them.
        linker_map: The map of its link, or None.
    """

    def __init__(
        self,
        image: Image,
        contents: Contents,
        itself: tuple[str, str | None],
        linker_map: LinkerMap | None = None,
        path_of: PathOf | None = None,
    ) -> None:
        self.contents = contents
        self._path_of = path_of
        self.linker_map = linker_map
        self._is_filtered = False
        self._image = image
        self._itself = itself

    def selected(self, selection: Selection) -> "Origins":
        """Return the origins of the selected sections and variables."""
        chosen = Origins(self._image, selection.of(self.contents), self._itself, self.linker_map, self._path_of)
        chosen._is_filtered = self._is_filtered or selection.is_of_variables
        return chosen

    @cached_property
    def sections(self) -> tuple[SectionOrigins, ...]:
        """The sections of the file, each divided among its origins, in the order of the contents."""
        if self.linker_map is not None:
            by_output: dict[str, list[PlacedSection]] = {}
            for placed in self.linker_map.sections:
                by_output.setdefault(placed.output_section, []).append(placed)
            cut = [self._cut_by_map(s, by_output.get(s.section.name, [])) for s in self.contents.sections]
        elif self._image.is_relocatable and self._path_of is None:
            cut = [_whole(section, ByteOrigin(*self._itself)) for section in self.contents.sections]
        else:
            cut = [self._cut_by_symbols(section) for section in self.contents.sections]
        starts = [[piece.start for piece in part.pieces] for part in cut]
        origins = [[piece.owner for piece in part.pieces] for part in cut]
        return tuple(map(SectionOrigins, self.contents.sections, cut, starts, origins))

    def of(self, section: SectionOrigins, variable: Symbol) -> ByteOrigin:
        """Return the origin of a variable, with its source file where the symbol table names it."""
        origin = section.at(variable.offset)
        return origin if origin.cause else origin._replace(unit=self._unit(section.contents, variable))

    def shares(self, section: SectionOrigins) -> dict[ByteOrigin, OriginShare]:
        """Return the share of each origin in a section; the sizes add up to the size of the section."""
        contents = section.contents
        if len(section.origins) == 1 and not self._is_filtered:
            return {section.origins[0]: OriginShare(contents.size_bytes, contents.named_bytes, len(contents.variables))}
        chosen = {(v.offset, v.size_bytes) for v in contents.variables} if self._is_filtered else ()
        totals: dict[ByteOrigin, list[int]] = {}
        for owner, origin, size_bytes in _pairs(section.contents.ranges.pieces, section.ranges.pieces):
            is_chosen = isinstance(owner, Symbol) and (
                not self._is_filtered or (owner.offset, owner.size_bytes) in chosen
            )
            total = totals.setdefault(origin if is_chosen or not self._is_filtered else _NOT_SELECTED, [0, 0, 0])
            total[0] += size_bytes
            total[1] += size_bytes if is_chosen else 0
        for origin, count in Counter(map(section.at, map(_OFFSET, section.contents.variables))).items():
            totals.setdefault(origin, [0, 0, 0])[2] = count
        return {origin: OriginShare(*total) for origin, total in totals.items()}

    def notes(self) -> Iterator[Note]:
        """Return the notes of the map, and whether it is the map of this file."""
        if self.linker_map is None:
            return
        yield from self.linker_map.notes
        real = [section for section in self.contents.sections if section.section.index >= 0]
        strange = [c.section.name for c in real if not self._is_mapped(c)]
        if strange:
            detail = f"it has no {', '.join(strange)} of this place and size in {self.contents.file}: not attributed"
            yield Note("linker-map-differs", self.linker_map.file, detail)
        objects = {section.object for section in self.linker_map.sections if section.object is not None}
        optimised = [name for name in objects if _OF_LTO.search(name)]
        if optimised:
            files = counted(len(optimised), "object")
            detail = f"{files} of link-time optimisation: the map does not name the objects that they were made from"
            yield Note("linker-map-lto", self.linker_map.file, detail)

    def _is_mapped(self, contents: SectionContents) -> bool:
        return self._mapped[contents.section.name, contents.section.vaddr, contents.size_bytes] == 1

    @cached_property
    def _mapped(self) -> Counter[tuple[str, int, int]]:
        # A relinked object can have several sections of one name, all at address 0: they cannot be told apart.
        return Counter(self.linker_map.outputs if self.linker_map else ())

    def _cut_by_map(self, contents: SectionContents, placed: list[PlacedSection]) -> Partition[ByteOrigin]:
        if contents.section.index < 0:
            return _whole(contents, ByteOrigin(cause=Lack.UNLISTED))
        if not self._is_mapped(contents):
            return _whole(contents, ByteOrigin(cause=Lack.OTHER_LINK))
        if not placed:
            return _whole(contents, ByteOrigin(cause=Lack.LINKER))
        base = contents.section.vaddr
        claims = [_claim(section, base) for section in placed if section.input_section != _GOLD_COMMONS]
        if len(claims) < len(placed):
            claims += self._commons(contents)
        return partition(0, contents.size_bytes, claims, lambda gap: _explained(contents, gap))

    def _commons(self, contents: SectionContents) -> Iterator[Piece[ByteOrigin]]:
        """Return the origins of the COMMON variables that gold has placed: its map lists them by name."""
        commons = self.linker_map.commons if self.linker_map else {}
        for start, end, owner in contents.ranges.pieces:
            if isinstance(owner, Symbol) and owner.binding != abi.STB_LOCAL and owner.name in commons:
                yield Piece(start, end, ByteOrigin(*commons[owner.name]))

    def _cut_by_symbols(self, contents: SectionContents) -> Partition[ByteOrigin]:
        pieces: list[Piece[ByteOrigin]] = []
        # Most variables came from the same place as those before them: they share a piece.
        begin, last_end = 0, 0
        origin: tuple[str | None, str] = (None, "")
        last = origin
        for _, end, owner in contents.ranges.pieces:
            if isinstance(owner, Residue):
                origin = (None, owner.cause)
            elif (unit := self._unit(contents, owner)) is not None:
                origin = (unit, "")
            else:
                origin = (None, Lack.UNTOLD if owner.binding == abi.STB_LOCAL else Lack.GLOBAL)
            if origin != last:
                if last_end > begin:
                    pieces.append(Piece(begin, last_end, ByteOrigin(unit=last[0], cause=last[1])))
                begin, last = last_end, origin
            last_end = end
        if last_end > begin:
            pieces.append(Piece(begin, last_end, ByteOrigin(unit=last[0], cause=last[1])))
        return Partition(0, contents.size_bytes, tuple(pieces))

    def _unit(self, contents: SectionContents, variable: Symbol) -> str | None:
        if self._path_of is not None and (path := self._path_of(contents, variable)) is not None:
            return path
        only, units, places = self._units
        if only is not None or variable.name in _OF_LINKER or not units:
            return only
        starts = places.get(contents.section.index, ())
        at = bisect_left(starts, variable.offset << 24)
        return units[starts[at] & 0xFFFFFF] if at < len(starts) and starts[at] >> 24 == variable.offset else None

    @cached_property
    def _units(self) -> tuple[str | None, tuple[str, ...], Mapping[int, Sequence[int]]]:
        """The source file of an object, None where there are several; and what `local_units` returns."""
        try:
            units, places = local_units(self._image)
        except InputError:
            # A name is damaged.
            return None, (), {}
        only = units[0] if len(units) == 1 and self._image.is_relocatable else None
        return only, units, places


def _claim(placed: PlacedSection, base_vaddr: int) -> Piece[ByteOrigin]:
    start = placed.vaddr - base_vaddr
    if placed.object is not None:
        origin = ByteOrigin(placed.object, placed.member)
    else:
        origin = ByteOrigin(cause=Lack.FILL if placed.input_section in _FILLS else Lack.LINKER)
    return Piece(start, start + placed.size_bytes, origin)


def _whole(contents: SectionContents, origin: ByteOrigin) -> Partition[ByteOrigin]:
    return Partition(0, contents.size_bytes, (Piece(0, contents.size_bytes, origin),))


def _explained(contents: SectionContents, gap: Gap[ByteOrigin]) -> list[Piece[ByteOrigin]]:
    """Return the causes of a range without an entry in the map: only GNU ld lists padding."""
    return [
        Piece(
            max(start, gap.start),
            min(end, gap.end),
            ByteOrigin(cause=Lack.FILL if isinstance(owner, Residue) else Lack.UNLISTED),
        )
        for start, end, owner in contents.ranges.pieces.between(gap.start, gap.end)
    ]


def _pairs(
    owned: Sequence[Piece[Symbol | Residue]], come: Sequence[Piece[ByteOrigin]]
) -> Iterator[tuple[Symbol | Residue, ByteOrigin, int]]:
    """Return the owners of two partitions of one span, cut at the borders of both, and the bytes of each cut."""
    index = 0
    for start, end, owner in owned:
        at = start
        while at < end:
            _, past, origin = come[index]
            if past > end:
                yield owner, origin, end - at
                break
            yield owner, origin, past - at
            at = past
            index += 1
