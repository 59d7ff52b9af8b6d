"""The reader of linker maps, which finds the linker from the text of the map.

The maps of lld and mold: one line for each section, input section and symbol, indented by its depth.

    VMA      LMA     Size Align Out     In      Symbol
   3a80     3a80      10c    64 .data
   3aa0     3aa0       c4    32         one.o:(.data)
   3aa0     3aa0       28     1                 one_data

Source: lld 14, its documentation (--Map) and its output; mold 1.10, mold(1) and its output.

The shared libraries that a map of GNU ld lists: the line that loads each, and what needed it.

    As-needed library included to satisfy reference by file (symbol)

    libz.so.1                     main.o (zlibVersion)     (with --as-needed; a long name has a line to itself)

    LOAD /usr/lib/x86_64-linux-gnu/libz.so

Headings are translated, so the reader does not use them. The maps of gold, lld and mold do not list libraries.

Source: binutils 2.40, its output.
"""

import re
from collections.abc import Container
from typing import Final, NamedTuple

from footprint.elf.image import Buffer
from footprint.elf.linker_map.facts import Collector, Linker, LinkerMap, collect_gnu, linker_of_gnu
from footprint.errors import InputError, UnsupportedError

_LINE: Final = re.compile(
    rb"(?m)^(?:LOAD ([^\n]{0,4096}\.so[.0-9]{0,64})\r?$"
    rb"|(\S{1,4096}\.so[.0-9]{0,64})(?: {1,64}|\r?\n {8,64})(\S{1,4096} \([^)\n]{1,4096}\))\r?$)"
)
_MOST_LIBRARIES: Final = 10_000


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
    for entry in _LINE.finditer(data):
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


_HEADER_BYTES = 4096


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
