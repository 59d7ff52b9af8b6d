"""The dynamic section of an ELF file, found as the loader finds it: through PT_DYNAMIC, at vaddrs.

Source: System V ABI, chapter 5 (Dynamic Section).
"""

import sys
from array import array
from typing import Final, NamedTuple

from footprint.elf.image import PT_DYNAMIC, Buffer, Image
from footprint.errors import InputError

__all__ = ("Dynamic", "bytes_at_vaddr", "bytes_from_vaddr", "numbers", "read_dynamic", "words")

DT_NULL: Final = 0
_TYPECODES: Final = {2: "H", 4: "I", 8: "Q"}


class Dynamic(NamedTuple):
    """The entries of a dynamic section, in their order, up to DT_NULL."""

    entries: tuple[tuple[int, int], ...]

    def get(self, tag: int) -> int | None:
        """Return the value of the first entry with a tag, or None."""
        return next((value for found, value in self.entries if found == tag), None)


def read_dynamic(image: Image) -> Dynamic:
    """Read the dynamic section; a file without one has no entries."""
    segment = image.segment(PT_DYNAMIC)
    if segment is None:
        return Dynamic(())
    raw = image.bytes_at(segment.offset, segment.file_bytes, "the dynamic section")
    table = numbers(image, raw)
    entries = []
    for tag, value in zip(table[0::2], table[1::2], strict=False):
        if tag == DT_NULL:
            break
        entries.append((tag, value))
    return Dynamic(tuple(entries))


def numbers(image: Image, raw: Buffer) -> "array[int]":
    """Read a table of words of the file's class and byte order, without an incomplete last word."""
    return words(image, raw, 8 if image.is_64 else 4)


def words(image: Image, raw: Buffer, word_bytes: int) -> "array[int]":
    """Read a table of words of 2, 4 or 8 bytes in the file's byte order, without an incomplete last word."""
    found = array(_TYPECODES[word_bytes])
    found.frombytes(raw[: len(raw) // word_bytes * word_bytes])
    if image.is_little != (sys.byteorder == "little"):
        found.byteswap()
    return found


def bytes_at_vaddr(image: Image, vaddr: int, size_bytes: int, what: str) -> Buffer:
    """Return bytes of the file by the vaddr at which the loader maps them."""
    for segment in image.loads:
        start = vaddr - segment.vaddr
        if start >= 0 and start + size_bytes <= segment.file_bytes:
            return image.bytes_at(segment.offset + start, size_bytes, what)
    raise InputError(image.file, f"{what} of {size_bytes} bytes at vaddr {vaddr:#x} is in no segment")


def bytes_from_vaddr(image: Image, vaddr: int, what: str) -> Buffer:
    """Return the bytes of the file from a vaddr to the end of its segment, for tables of unknown size."""
    for segment in image.loads:
        start = vaddr - segment.vaddr
        if 0 <= start < segment.file_bytes:
            return image.bytes_at(segment.offset + start, segment.file_bytes - start, what)
    raise InputError(image.file, f"{what} at vaddr {vaddr:#x} is in no segment")
