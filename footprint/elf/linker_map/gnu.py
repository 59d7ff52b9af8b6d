"""The maps of GNU ld and gold: an output section at the margin, its input sections indented by one space.

    .data          0x0000000000004000      0x10c        (output section)
     *(.data .data.*)                                   (pattern of the linker script)
     .data         0x0000000000004020       0xc4 one.o  (input section; a long name has a line to itself)
                   0x0000000000004020       one_data    (symbol)
     *fill*        0x00000000000040e4        0x4        (GNU ld; gold has ** fill, and does not list padding)

Other lists stand before these, with discarded sections in the same form: only entries after an output section count.
Headings are translated, so the reader does not use them.

Source: binutils 2.40, ld documentation (-M) and its output; gold 1.16 and its output.
"""

import re
from typing import Final

from footprint.elf.image import Buffer
from footprint.elf.linker_map.facts import Collector, Linker

__all__ = ("collect_gnu", "linker_of_gnu")

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
