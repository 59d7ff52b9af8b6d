"""The maps of lld and mold: one line for each section, input section and symbol, indented by its depth.

    VMA      LMA     Size Align Out     In      Symbol
   3a80     3a80      10c    64 .data
   3aa0     3aa0       c4    32         one.o:(.data)
   3aa0     3aa0       28     1                 one_data

Source: lld 14, its documentation (--Map) and its output; mold 1.10, mold(1) and its output.
"""

import re
from typing import Final

from footprint.elf.image import Buffer
from footprint.elf.linker_map.facts import Collector, Linker

__all__ = ("collect_columns", "dialect_of_columns")

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
