"""The reader of linker maps, which finds the linker from the text of the map, and has one form for all linkers.

The maps of GNU ld and gold: an output section at the margin, its input sections indented by one space.

    .data          0x0000000000004000      0x10c        (output section)
     *(.data .data.*)                                   (pattern of the linker script)
     .data         0x0000000000004020       0xc4 one.o  (input section; a long name has a line to itself)
                   0x0000000000004020       one_data    (symbol)
     *fill*        0x00000000000040e4        0x4        (GNU ld; gold has ** fill, and does not list padding)

Other lists stand before these, with discarded sections in the same form: only entries after an output section count.

The maps of lld and mold: one line for each section, input section and symbol, indented by its depth.

    VMA      LMA     Size Align Out     In      Symbol
   3a80     3a80      10c    64 .data
   3aa0     3aa0       c4    32         one.o:(.data)
   3aa0     3aa0       28     1                 one_data

The shared libraries that a map of GNU ld lists: the line that loads each, and what needed it.

    As-needed library included to satisfy reference by file (symbol)

    libz.so.1                     main.o (zlibVersion)     (with --as-needed; a long name has a line to itself)

    LOAD /usr/lib/x86_64-linux-gnu/libz.so

Headings are translated, so the reader does not use them. The maps of gold, lld and mold do not list libraries.

Source: binutils 2.40, ld documentation (-M) and its output; gold 1.16, its output; lld 14, its documentation (--Map)
and its output; mold 1.10, mold(1) and its output.
"""

import re
from collections.abc import Container
from enum import StrEnum
from operator import itemgetter
from typing import Final, NamedTuple

from footprint.elf.image import Buffer
from footprint.errors import InputError, Note, UnsupportedError

_MEMBER: Final = re.compile(r"(.+)\(([^()]+)\)", re.DOTALL)
_END_OF_ADDRESSES: Final = 1 << 64
# No program has as many input sections; a larger map would fill the memory.
_MOST_ENTRIES: Final = 1 << 22
# Possessive and bounded throughout: each line is read once, whatever it holds.
_LINE: Final = re.compile(
    rb"\n(?:"
    rb"( ?)(\*\* [^\n0]{1,40}?|\S{1,4096}+)(?:\r?\n {8,40}+| {1,64}+)0x([0-9a-f]{1,16}+)"
    rb" {1,32}+0x([0-9a-f]{1,16}+)(?![^\s])([^\n]{0,8191}+)(?=\n|\Z)"
    rb"|(\S{1,4096}+)(?:\r?\n {8,40}+| {1,64}+)0x[0-9a-f]{1,16}+ {1,32}+((?!0x)\S[^\n]{0,8191}+)(?=\n|\Z)"
    rb"|( ?)((?!\*)\S[^\n]*+)"
    rb")"
)
_MARK: Final = re.compile(rb"\n(?:(\*default\* {1,64}+0x)|( \*\* [a-z]))")
_HALF_ENTRY: Final = re.compile(rb"\S++ ++0x")
# LONG, QUAD and similar statements of a linker script stand in the place of an object.
_STATEMENT: Final = re.compile(rb"(?:BYTE|SHORT|LONG|S?QUAD|RELOC|FILL) ")
# GNU ld makes these itself, and lists them under the first object.
_MADE_BY_LINKER: Final = frozenset({b".got", b".got.plt", b".dynamic", b".dynbss", b".plt", b".plt.got", b".igot.plt"})
_LIBRARY_LINE: Final = re.compile(
    rb"(?m)^(?:LOAD ([^\n]{0,4096}\.so[.0-9]{0,64})\r?$"
    rb"|(\S{1,4096}\.so[.0-9]{0,64})(?: {1,64}|\r?\n {8,64})(\S{1,4096} \([^)\n]{1,4096}\))\r?$)"
)
_MOST_LIBRARIES: Final = 10_000
_HEADER: Final = re.compile(rb" *+(Address|VMA +LMA|VMA) +Size +Align +Out +In +Symbol *\r?\n")
# The columns before the names: lld had no LMA before version 7; mold writes sizes in decimal.
_FIGURES: Final = {
    b"Address": rb" *+([0-9a-f]{1,16}+) ++([0-9a-f]{1,16}+) ++[0-9]++",
    b"VMA LMA": rb" *+([0-9a-f]{1,16}+) ++[0-9a-f]++ ++([0-9a-f]{1,16}+) ++[0-9]++",
    b"VMA": rb" *+(?:0x)?([0-9a-f]{1,16}+) ++([0-9]{1,20}+) ++[0-9]++",
}
# Symbols are indented by 16 columns. Most lines are symbols, and the pattern skips them without a step of the loop.
_SYMBOL: Final = rb" *+(?:0x)?[0-9a-f]++(?: ++[0-9a-f]++){2,3} {17}"
_INTERNAL: Final = b"<internal>"
_HEADER_BYTES = 4096


class Linker(StrEnum):
    """The linker that wrote a map."""

    BFD = "GNU ld"
    GOLD = "gold"
    LLD = "lld"
    MOLD = "mold"


class OutputSection(NamedTuple):
    """A section of the linked file, as the map states it."""

    name: str
    vaddr: int
    size_bytes: int


class PlacedSection(NamedTuple):
    """A section of an object, with the place that the linker gave it.

    Attributes:
        vaddr: Its start; in a relocatable output (`-r`) the offset in its output section.
        size_bytes: Its size, never 0.
        output_section: The section that it is part of. It tells thread-local sections from those whose addresses they
            overlap.
        input_section: Its name in the object; `COMMON` or `.common` for COMMON variables; for a piece that the linker
            made itself, the word of the linker, such as `*fill*`.
        object: The object or archive, by the name that the linker was given; None for a piece that the linker made.
        member: The member of the archive.
    """

    vaddr: int
    size_bytes: int
    output_section: str
    input_section: str
    object: str | None
    member: str | None


class LinkerMap(NamedTuple):
    """The contents of a map.

    Attributes:
        file: The name of the map.
        linker: The linker that wrote it.
        outputs: The sections of the linked file, in the order of the map.
        sections: The pieces of the output sections of interest, ascending by vaddr.
        commons: By linker name the object and member of COMMON variables, where the linker lists them (GNU ld, gold).
        notes: What is unusual about the map.
    """

    file: str
    linker: Linker
    outputs: tuple[OutputSection, ...]
    sections: tuple[PlacedSection, ...]
    commons: dict[str, tuple[str, str | None]]
    notes: tuple[Note, ...]


class Collector:
    """Collects the entries of a map line by line, and keeps only those in `wanted` output sections; None keeps all."""

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
        # A map names each object thousands of times; each name is decoded once.
        self._objects: dict[bytes, tuple[str, str | None]] = {}

    def begin_output(self, name: bytes, vaddr: int, size_bytes: int) -> None:
        """Begin an output section: the pieces after it are part of it."""
        self._take_room()
        self._output = _text(name)
        self.is_wanted = self._wanted is None or self._output in self._wanted
        self.outputs.append(OutputSection(self._output, vaddr, size_bytes))

    def end_output(self) -> None:
        """End the output section: what follows is part of none."""
        self.is_wanted = False

    def place(self, vaddr: int, size_bytes: int, input_section: bytes, object_: bytes | None) -> None:
        """Add a piece to the output section; `object_` is None for a piece that the linker made."""
        if not self.is_wanted or not size_bytes:
            return
        if vaddr + size_bytes > _END_OF_ADDRESSES:
            self.unknown_lines += 1
            return
        self._take_room()
        file, member = (None, None) if object_ is None else self._object(object_)
        self.sections.append(PlacedSection(vaddr, size_bytes, self._output, _text(input_section), file, member))

    def place_common(self, name: bytes, object_: bytes) -> None:
        """Add the object of a COMMON variable."""
        self._take_room()
        self.commons.setdefault(_text(name), self._object(object_))

    def result(self, linker: Linker, *, is_cut: bool) -> LinkerMap:
        """Return the map that was collected."""
        file, notes = self._file, []
        if is_cut:
            notes.append(Note("linker-map-truncated", file, "its last line is not complete: more lines may be missing"))
        if self.unknown_lines:
            cause = f"{self.unknown_lines:,} lines of unknown form were left out"
            notes.append(Note("linker-map-unknown-lines", file, cause))
        sections = tuple(sorted(self.sections, key=itemgetter(0)))
        return LinkerMap(file, linker, tuple(self.outputs), sections, self.commons, tuple(notes))

    def _take_room(self) -> None:
        self._room -= 1
        if self._room < 0:
            raise InputError(self._file, f"a map of more than {_MOST_ENTRIES:,} entries")

    def _object(self, raw: bytes) -> tuple[str, str | None]:
        names = self._objects.get(raw)
        if names is None:
            name = _text(raw)
            parts = _MEMBER.fullmatch(name)
            names = self._objects[raw] = (parts[1], parts[2]) if parts else (name, None)
        return names


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def linker_of_gnu(data: Buffer) -> Linker | None:
    """Return which of the two linkers wrote a map; None for neither."""
    mark = _MARK.search(data)
    if mark is None:
        return None
    return Linker.BFD if mark[1] else Linker.GOLD


def collect_gnu(data: Buffer, collector: Collector) -> None:
    """Collect the entries of a map of GNU ld or gold."""
    place, is_inside = collector.place, False
    for line in _LINE.finditer(data):
        indent, name, vaddr, size, rest, common, common_object, _, other = line.groups()
        if size is None:
            if common is not None:
                collector.place_common(common, common_object.rstrip())
            elif line[8]:
                collector.unknown_lines += bool(_HALF_ENTRY.match(other))
            else:
                is_inside = False
                collector.end_output()
        elif not indent:
            is_inside = True
            collector.begin_output(name, int(vaddr, 16), int(size, 16))
        elif is_inside and collector.is_wanted and size != b"0":
            object_ = rest.strip()
            is_made = name.startswith(b"*") or name in _MADE_BY_LINKER or _STATEMENT.match(object_)
            place(int(vaddr, 16), int(size, 16), name, None if is_made or not object_ else object_)


class LinkedLibrary(NamedTuple):
    """A shared library of a map.

    Attributes:
        line: The line that loads it, from 1; None if it is loaded by another name.
        needed_for: The first object that needs it, with the symbol; None if the map does not tell.
    """

    line: int | None
    needed_for: str | None


def linked_libraries(data: Buffer, file: str) -> dict[str, LinkedLibrary]:
    """Return by file name or soname the shared libraries of a map.

    Raises:
        UnsupportedError: If the map is not one of GNU ld.
    """
    if linker_of_gnu(data) is not Linker.BFD:
        raise UnsupportedError(file, "only GNU ld lists the shared libraries in its map (-Wl,-Map=FILE)")
    libraries: dict[str, LinkedLibrary] = {}
    line, counted_to = 1, 0
    for entry in _LIBRARY_LINE.finditer(data):
        loaded, soname, user = entry.groups()
        line += bytes(data[counted_to : entry.start()]).count(b"\n")
        counted_to = entry.start()
        name = (loaded or soname).rsplit(b"/", 1)[-1].decode("utf-8", "surrogateescape")
        prior = libraries.get(name, LinkedLibrary(None, None))
        if loaded is not None:
            libraries[name] = prior if prior.line else prior._replace(line=line)
        else:
            libraries[name] = prior if prior.needed_for else prior._replace(needed_for=user.decode("utf-8", "replace"))
        if len(libraries) >= _MOST_LIBRARIES:
            break
    return libraries


def dialect_of_columns(head: bytes) -> bytes | None:
    """Return the columns of a map from its first line; None where that line is not a header."""
    header = _HEADER.match(head)
    return None if header is None else b" ".join(header[1].split())


def collect_columns(data: Buffer, dialect: bytes, collector: Collector) -> Linker:
    """Collect the entries of a map of lld or mold."""
    lines = re.compile(
        rb"\n(?:" + _FIGURES[dialect] + rb" ( {8})?(\S[^\n]{0,8191}+)(?=\n|\Z)|(?!" + _SYMBOL + rb")([^\n]*+))"
    )
    base = 10 if dialect == b"VMA" else 16
    place = collector.place
    for line in lines.finditer(data):
        vaddr, size, indent, name, other = line.groups()
        if name is None:
            collector.unknown_lines += bool(other.strip())
        elif not indent:
            # An assignment of the linker script can stand in the place of a section.
            if b"= " in name:
                collector.end_output()
            else:
                collector.begin_output(name.rstrip(), int(vaddr, 16), int(size, base))
        elif collector.is_wanted and size != b"0":
            object_, colon, section = name.rstrip().rpartition(b":(")
            if colon:
                place(
                    int(vaddr, 16),
                    int(size, base),
                    section.removesuffix(b")"),
                    None if object_ == _INTERNAL else object_,
                )
    return Linker.MOLD if dialect == b"VMA" else Linker.LLD


def read_linker_map(data: Buffer, file: str, output_sections: Container[str] | None = None) -> LinkerMap:
    """Read the map of GNU ld, gold, lld or mold, in time linear in its length.

    Args:
        data: The map; for a large file a view of a memory map, which is not copied.
        file: Its name.
        output_sections: The names of the output sections of interest; None for all.

    Raises:
        InputError: Where it is not a map, has no section, or has more entries than any program.
    """
    if not data:
        raise InputError(file, "the file is empty")
    collector = Collector(file, output_sections)
    if dialect := dialect_of_columns(bytes(data[:_HEADER_BYTES])):
        linker = collect_columns(data, dialect, collector)
    elif gnu := linker_of_gnu(data):
        linker = gnu
        collect_gnu(data, collector)
    else:
        raise InputError(file, "not a map of GNU ld, gold, lld or mold", 0)
    if not collector.outputs:
        raise InputError(file, f"a map of {linker} that places no section", len(data))
    return collector.result(linker, is_cut=data[-1] != ord("\n"))
