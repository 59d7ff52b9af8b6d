"""The dynamic section of an ELF file, found as the loader finds it: through PT_DYNAMIC, at vaddrs.

Source: System V ABI, chapter 5 (Dynamic Section).
"""

import sys
from array import array
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from footprint.elf import abi
from footprint.elf.image import Buffer, Image, StringTable
from footprint.errors import InputError

_TYPECODES: Final = {2: "H", 4: "I", 8: "Q"}


class Dynamic:
    """The dynamic section of a file.

    Attributes:
        image: The file.
    """

    def __init__(self, image: Image, tags: Sequence[int] = (), values: Sequence[int] = ()) -> None:
        self.image = image
        self._entries = tags, values
        # Where an entry that should occur once is repeated, the loader keeps the last.
        self._values = dict(zip(tags, values, strict=True))

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """The tag and value of each entry, in their order, up to DT_NULL."""
        return tuple(zip(*self._entries, strict=True))

    def get(self, tag: int) -> int | None:
        """Return the value of the entry with a tag, or None."""
        return self._values.get(tag)

    def table(self, tag: int, size_tag: int, what: str) -> Buffer:
        """Return the bytes of the table with this entry and this entry of its size; nothing where one is absent."""
        vaddr, size_bytes = self.get(tag), self.get(size_tag)
        return bytes_at_vaddr(self.image, vaddr, size_bytes, what) if vaddr and size_bytes else b""

    @cached_property
    def names(self) -> StringTable:
        """The names of libraries, paths and symbols."""
        return StringTable(
            self.table(abi.DT_STRTAB, abi.DT_STRSZ, "the dynamic strings"),
            self.image.file,
            self.get(abi.DT_STRTAB),
            "dynamic names",
        )


def read_dynamic(image: Image) -> Dynamic:
    """Read the dynamic section; a file without one has no entries."""
    segment = image.segment(abi.PT_DYNAMIC)
    if segment is None:
        return Dynamic(image)
    table = numbers(image, image.bytes_at(segment.offset, segment.file_bytes, "the dynamic section"))
    tags = table[0::2]
    count = tags.index(abi.DT_NULL) if abi.DT_NULL in tags else len(table) // 2
    return Dynamic(image, tags[:count], table[1 : 2 * count : 2])


def numbers(image: Image, raw: Buffer) -> "array[int]":
    """Read a table of words of the file's class and byte order, without an incomplete last word."""
    return words(image, raw, image.word_bytes)


def words(image: Image, raw: Buffer, word_bytes: int) -> "array[int]":
    """Read a table of words of 2, 4 or 8 bytes in the file's byte order, without an incomplete last word."""
    cells = array(_TYPECODES[word_bytes])
    cells.frombytes(raw[: len(raw) // word_bytes * word_bytes])
    if image.is_little != (sys.byteorder == "little"):
        cells.byteswap()
    return cells


def bytes_at_vaddr(image: Image, vaddr: int, size_bytes: int | None, what: str) -> Buffer:
    """Return bytes of the file by the vaddr at which the loader maps them; with None all to the end of the segment."""
    for segment in image.loads:
        start = vaddr - segment.vaddr
        left_bytes = segment.file_bytes - start
        if start >= 0 and left_bytes >= (1 if size_bytes is None else size_bytes):
            return image.bytes_at(segment.offset + start, left_bytes if size_bytes is None else size_bytes, what)
    size = "" if size_bytes is None else f" of {size_bytes} bytes"
    raise InputError(image.file, f"{what}{size} at vaddr {vaddr:#x} is in no segment")
