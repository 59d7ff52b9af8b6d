"""Which addresses of an ELF file the loader writes at start: its relocations, in all four encodings.

RELA, REL, RELR and Android's packed tables stand beside one another. What is wanted here is where they write, not what:
one relocation is enough to make its page private.

Source: System V ABI, chapter 4 (Relocation) and the RELR proposal of 2022 (gABI); bionic's linker (APS2 packing).
"""

from array import array
from collections.abc import Iterator
from itertools import repeat
from operator import floordiv
from typing import Final

from footprint.elf.dynamic import Dynamic, bytes_at_vaddr, numbers, read_dynamic
from footprint.elf.image import Buffer, Image
from footprint.errors import InputError

__all__ = ("relocated_pages", "relocated_vaddrs")

DT_PLTRELSZ: Final = 2
DT_RELA: Final = 7
DT_RELASZ: Final = 8
DT_REL: Final = 17
DT_RELSZ: Final = 18
DT_PLTREL: Final = 20
DT_JMPREL: Final = 23
DT_RELRSZ: Final = 35
DT_RELR: Final = 36
DT_ANDROID_REL: Final = 0x6000000F
DT_ANDROID_RELSZ: Final = 0x60000010
DT_ANDROID_RELA: Final = 0x60000011
DT_ANDROID_RELASZ: Final = 0x60000012
DT_ANDROID_RELR: Final = 0x6FFFE000
DT_ANDROID_RELRSZ: Final = 0x6FFFE001

_GROUPED_BY_INFO: Final = 1
_GROUPED_BY_OFFSET_DELTA: Final = 2
_GROUPED_BY_ADDEND: Final = 4
_HAS_ADDEND: Final = 8

# A packed table repeats a delta without spending a byte on each, and a bitmap of RELR says up to 63 addresses: what
# they may claim is capped. The largest programs have a million.
_MOST_ADDRESSES: Final = 1 << 23
_MOST_PAGES: Final = 1 << 18
_ENTRIES_AT_ONCE: Final = 1 << 16


def relocated_vaddrs(image: Image) -> "array[int]":
    """Give the vaddr of every dynamic relocation, in the order of the tables; an address may stand twice.

    Raises:
        InputError: Where a table is damaged or lies outside of the file, or where there are too many.
    """
    dynamic = read_dynamic(image)
    found = array("Q")
    for offsets in _plain_tables(image, dynamic):
        found.extend(offsets)
        _check_count(image, len(found))
    word_bytes = _word_bytes(image)
    address_mask = (1 << word_bytes * 8) - 1
    for vaddr, bitmap in _relr_tables(image, dynamic):
        place, left = vaddr, bitmap
        while left:
            # Bits come in runs: over the zeros below, then all the ones at once.
            zeros = (left & -left).bit_length() - 1
            left >>= zeros
            place += zeros * word_bytes
            ones = (~left & left + 1).bit_length() - 1
            found.extend([at & address_mask for at in range(place, place + ones * word_bytes, word_bytes)])
            left >>= ones
            place += ones * word_bytes
        _check_count(image, len(found))
    for raw in _packed_tables(image, dynamic):
        found.extend(_packed(image, raw, _MOST_ADDRESSES - len(found)))
    return found


def relocated_pages(image: Image, page_bytes: int) -> tuple[int, ...]:
    """Give the numbers of the pages (vaddr divided by the page size) that relocations write, ascending.

    The memory is bounded by the pages, not by the relocations.

    Args:
        image: The file.
        page_bytes: The size of a page; a bitmap of RELR never covers as much.

    Raises:
        InputError: Where a table is damaged or lies outside of the file, or where there are too many.
    """
    dynamic = read_dynamic(image)
    pages: set[int] = set()
    for offsets in _plain_tables(image, dynamic):
        pages.update(map(floordiv, offsets, repeat(page_bytes)))
        _check_pages(image, pages)
    word_bytes = _word_bytes(image)
    address_mask = (1 << word_bytes * 8) - 1
    for vaddr, bitmap in _relr_tables(image, dynamic):
        # What lies between its first and its last address is in one of their pages.
        last_vaddr = vaddr + (bitmap.bit_length() - 1) * word_bytes & address_mask
        last_page = last_vaddr // page_bytes
        if vaddr // page_bytes != last_page:
            first_vaddr = vaddr + ((bitmap & -bitmap).bit_length() - 1) * word_bytes & address_mask
            pages.add(first_vaddr // page_bytes)
        pages.add(last_page)
        if len(pages) > _MOST_PAGES:
            break
    _check_pages(image, pages)
    for raw in _packed_tables(image, dynamic):
        pages.update([vaddr // page_bytes for vaddr in _packed(image, raw, _MOST_ADDRESSES)])
        _check_pages(image, pages)
    return tuple(sorted(pages))


def _check_count(image: Image, count: int) -> None:
    if count > _MOST_ADDRESSES:
        raise InputError(image.file, f"more than {_MOST_ADDRESSES} relocations are more than any file has")


def _check_pages(image: Image, pages: set[int]) -> None:
    if len(pages) > _MOST_PAGES:
        raise InputError(image.file, f"relocations in more than {_MOST_PAGES} pages are more than any file has")


def _word_bytes(image: Image) -> int:
    return 8 if image.is_64 else 4


def _table(image: Image, dynamic: Dynamic, tag: int, size_tag: int, what: str) -> Buffer:
    vaddr, size_bytes = dynamic.get(tag), dynamic.get(size_tag)
    return bytes_at_vaddr(image, vaddr, size_bytes, what) if vaddr and size_bytes else b""


def _plain_tables(image: Image, dynamic: Dynamic) -> "Iterator[array[int]]":
    """Read r_offset of REL (two words an entry) and RELA (three), some entries at a time."""
    jump_words = 3 if dynamic.get(DT_PLTREL) == DT_RELA else 2
    for tag, size_tag, words in ((DT_RELA, DT_RELASZ, 3), (DT_REL, DT_RELSZ, 2), (DT_JMPREL, DT_PLTRELSZ, jump_words)):
        raw = _table(image, dynamic, tag, size_tag, "a table of relocations")
        entry_bytes = words * _word_bytes(image)
        count = len(raw) // entry_bytes
        _check_count(image, count)
        for first in range(0, count, _ENTRIES_AT_ONCE):
            past = min(first + _ENTRIES_AT_ONCE, count)
            offsets = numbers(image, raw[first * entry_bytes : past * entry_bytes])[::words]
            yield offsets if image.is_64 else array("Q", offsets)


def _relr_tables(image: Image, dynamic: Dynamic) -> Iterator[tuple[int, int]]:
    """Decode RELR: an even word is an address, an odd one a bitmap of the words that follow it.

    Gives each as a bitmap, never empty, with the vaddr of its lowest bit.
    """
    word_bytes = _word_bytes(image)
    bitmap_bytes = (word_bytes * 8 - 1) * word_bytes
    for tag, size_tag in ((DT_RELR, DT_RELRSZ), (DT_ANDROID_RELR, DT_ANDROID_RELRSZ)):
        raw = _table(image, dynamic, tag, size_tag, "the RELR table")
        _check_count(image, len(raw) // word_bytes)
        at = 0
        for word in numbers(image, raw):
            if not word & 1:
                yield word, 1
                at = word + word_bytes
                continue
            if word > 1:
                yield at, word >> 1
            at += bitmap_bytes


def _packed_tables(image: Image, dynamic: Dynamic) -> Iterator[bytes]:
    for tag, size_tag in ((DT_ANDROID_REL, DT_ANDROID_RELSZ), (DT_ANDROID_RELA, DT_ANDROID_RELASZ)):
        raw = bytes(_table(image, dynamic, tag, size_tag, "the packed relocations"))
        if raw:
            yield raw


def _packed(image: Image, raw: bytes, most: int) -> "array[int]":
    """Decode Android's APS2 packing: groups of relocations in signed LEB128 numbers."""
    if not raw.startswith(b"APS2"):
        raise InputError(image.file, "packed relocations do not begin with APS2")
    stream = _Leb128(image, raw[4:])
    count, offset = stream.next(), stream.next()
    if not 0 <= count <= most:
        raise InputError(image.file, f"{count} packed relocations are more than any file has")
    found = array("Q")
    while len(found) < count:
        size = stream.next()
        if not 0 < size <= count - len(found):
            raise InputError(image.file, f"a group of {size} packed relocations among {count}")
        offset = _group(stream, size, offset, found)
    return found


def _group(stream: "_Leb128", size: int, offset: int, found: "array[int]") -> int:
    """Decode one group behind its size; what its entries have in common stands once, at its head."""
    flags = stream.next()
    delta = stream.next() if flags & _GROUPED_BY_OFFSET_DELTA else None
    if flags & _GROUPED_BY_INFO:
        stream.next()
    if flags & _HAS_ADDEND and flags & _GROUPED_BY_ADDEND:
        stream.next()
    passed_over = (not flags & _GROUPED_BY_INFO) + bool(flags & _HAS_ADDEND and not flags & _GROUPED_BY_ADDEND)
    for _ in range(size):
        offset += stream.next() if delta is None else delta
        found.append(offset & 0xFFFFFFFFFFFFFFFF)
        for _ in range(passed_over):
            stream.next()
    return offset


class _Leb128:
    """Reads signed LEB128 numbers one after the other."""

    def __init__(self, image: Image, raw: bytes) -> None:
        self._file = image.file
        self._raw = raw
        self._at = 0

    def next(self) -> int:
        number = shift = 0
        while self._at < len(self._raw) and shift < 70:
            byte = self._raw[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return number - (1 << shift) if byte & 0x40 else number
        raise InputError(self._file, "packed relocations are cut")
