"""The relocations of an ELF file, in all four encodings: what the loader writes at start.

A file can have RELA, REL, RELR and the packed tables of Android. Pages need only the vaddr that each writes: one
relocation makes its page private. Symbols need only the symbol and the type of each.

Source: System V ABI, chapter 4 (Relocation) and the RELR proposal of 2022 (gABI); bionic's linker (APS2 packing).
"""

from array import array
from collections.abc import Container, Iterator
from itertools import repeat
from operator import floordiv
from typing import Final, NamedTuple

from footprint.elf.dynamic import Dynamic, bytes_at_vaddr, numbers, read_dynamic
from footprint.elf.image import Buffer, Image
from footprint.errors import InputError

__all__ = (
    "Relocations",
    "addend_column",
    "addends_at",
    "relocated_pages",
    "relocated_vaddrs",
    "relocations",
    "relr_pages",
    "static_relocations",
    "symbol_and_type",
)

EM_MIPS: Final = 8

SHT_RELA: Final = 4
SHT_REL: Final = 9

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

# A packed table repeats a delta without a byte for each relocation, and a bitmap of RELR stands for up to 63 addresses:
# their number is limited. The largest programs have a million.
_MOST_ADDRESSES: Final = 1 << 23
_MOST_PAGES: Final = 1 << 18
_ENTRIES_AT_ONCE: Final = 1 << 16
_ANY_WORD: Final = 0xFFFFFFFFFFFFFFFF


class Relocations(NamedTuple):
    """Relocations of a file, without those of RELR: the vaddr that each writes (r_offset), and its r_info."""

    vaddrs: "array[int]"
    infos: "array[int]"


def relocations(image: Image) -> Iterator[Relocations]:
    """Read REL, RELA, DT_JMPREL and the packed tables, some entries at a time.

    Entries may come twice: some linkers include those of DT_JMPREL in DT_RELA.
    """
    dynamic = read_dynamic(image)
    yield from _plain_tables(image, dynamic)
    for raw in _packed_tables(image, dynamic):
        yield _packed(image, raw, _MOST_ADDRESSES)


def static_relocations(image: Image) -> Iterator[Relocations]:
    """Read the tables of a program without a dynamic section; found by sections (its start-up code uses symbols)."""
    count = 0
    for section in image.sections:
        if section.is_in_memory and section.type in {SHT_RELA, SHT_REL}:
            for found in _entries(image, image.section_bytes(section), 3 if section.type == SHT_RELA else 2):
                count += len(found.vaddrs)
                _check_count(image, count)
                yield found


def symbol_and_type(image: Image, info: int) -> tuple[int, int]:
    """Split an r_info into the index of the symbol, 0 for none, and the machine's type of relocation."""
    if not image.is_64:
        return info >> 8, info & 0xFF
    if image.machine == EM_MIPS and image.is_little:
        # There r_info is not one number: first comes the symbol, then up to three types in reverse order.
        return info & 0xFFFFFFFF, info >> 56
    return info >> 32, info & 0xFFFFFFFF


def addends_at(image: Image, vaddrs: Container[int]) -> dict[int, int]:
    """Return the addends of DT_RELA for some vaddrs, such as a range; REL and RELR have the addend in place."""
    raw = _table(image, read_dynamic(image), DT_RELA, DT_RELASZ, "a table of relocations")
    entry_bytes = 3 * _word_bytes(image)
    addends: dict[int, int] = {}
    at = 0
    for found in _entries(image, raw, 3):
        places = [index for index, vaddr in enumerate(found.vaddrs) if vaddr in vaddrs]
        if places:
            past = at + len(found.vaddrs)
            words = numbers(image, raw[at * entry_bytes : past * entry_bytes])
            addends.update([(found.vaddrs[index], words[3 * index + 2]) for index in places])
        at += len(found.vaddrs)
    return addends


def addend_column(image: Image) -> "array[int]":
    """Return the addends of all entries of DT_RELA: for relative relocations, the vaddrs that they point to."""
    return numbers(image, _table(image, read_dynamic(image), DT_RELA, DT_RELASZ, "a table of relocations"))[2::3]


def relocated_vaddrs(image: Image) -> "array[int]":
    """Return the vaddr of every dynamic relocation, in the order of the tables; a vaddr may occur twice.

    Raises:
        InputError: Where a table is damaged or lies outside of the file, or where there are too many.
    """
    dynamic = read_dynamic(image)
    found = array("Q")
    for vaddrs, _ in _plain_tables(image, dynamic):
        found.extend(vaddrs)
        _check_count(image, len(found))
    word_bytes = _word_bytes(image)
    address_mask = (1 << word_bytes * 8) - 1
    for vaddr, bitmap in _relr_tables(image, dynamic):
        place, left = vaddr, bitmap
        while left:
            # Bits come in runs: skip a run of zeros, then take a run of ones at once.
            zeros = (left & -left).bit_length() - 1
            left >>= zeros
            place += zeros * word_bytes
            ones = (~left & left + 1).bit_length() - 1
            found.extend([at & address_mask for at in range(place, place + ones * word_bytes, word_bytes)])
            left >>= ones
            place += ones * word_bytes
        _check_count(image, len(found))
    for raw in _packed_tables(image, dynamic):
        found.extend(_packed(image, raw, _MOST_ADDRESSES - len(found)).vaddrs)
    return found


def relocated_pages(image: Image, page_bytes: int) -> tuple[int, ...]:
    """Return the numbers of the pages (vaddr divided by the page size) that relocations write, ascending.

    The number of pages limits the memory that this takes, not the number of relocations.

    Args:
        image: The file.
        page_bytes: The size of a page, larger than the range of one bitmap of RELR.
    """
    dynamic = read_dynamic(image)
    pages: set[int] = set()
    for vaddrs, _ in _plain_tables(image, dynamic):
        pages.update(map(floordiv, vaddrs, repeat(page_bytes)))
        _check_pages(image, pages)
    pages |= relr_pages(image, page_bytes)
    _check_pages(image, pages)
    for raw in _packed_tables(image, dynamic):
        pages.update([vaddr // page_bytes for vaddr in _packed(image, raw, _MOST_ADDRESSES).vaddrs])
        _check_pages(image, pages)
    return tuple(sorted(pages))


def relr_pages(image: Image, page_bytes: int) -> set[int]:
    """Return the numbers of the pages that the RELR tables write; for `page_bytes` see `relocated_pages`."""
    pages: set[int] = set()
    word_bytes = _word_bytes(image)
    address_mask = (1 << word_bytes * 8) - 1
    for vaddr, bitmap in _relr_tables(image, read_dynamic(image)):
        # All addresses between the first and the last are in the page of one of these two.
        last_vaddr = vaddr + (bitmap.bit_length() - 1) * word_bytes & address_mask
        last_page = last_vaddr // page_bytes
        if vaddr // page_bytes != last_page:
            first_vaddr = vaddr + ((bitmap & -bitmap).bit_length() - 1) * word_bytes & address_mask
            pages.add(first_vaddr // page_bytes)
        pages.add(last_page)
        if len(pages) > _MOST_PAGES:
            break
    _check_pages(image, pages)
    return pages


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


def _plain_tables(image: Image, dynamic: Dynamic) -> Iterator[Relocations]:
    """Read r_offset and r_info of REL (two words an entry) and RELA (three), some entries at a time."""
    jump_words = 3 if dynamic.get(DT_PLTREL) == DT_RELA else 2
    for tag, size_tag, words in ((DT_RELA, DT_RELASZ, 3), (DT_REL, DT_RELSZ, 2), (DT_JMPREL, DT_PLTRELSZ, jump_words)):
        yield from _entries(image, _table(image, dynamic, tag, size_tag, "a table of relocations"), words)


def _entries(image: Image, raw: Buffer, words: int) -> Iterator[Relocations]:
    """Read a table whose entries have a given number of words, some entries at a time."""
    entry_bytes = words * _word_bytes(image)
    count = len(raw) // entry_bytes
    _check_count(image, count)
    for first in range(0, count, _ENTRIES_AT_ONCE):
        past = min(first + _ENTRIES_AT_ONCE, count)
        entries = numbers(image, raw[first * entry_bytes : past * entry_bytes])
        vaddrs = entries[::words]
        yield Relocations(vaddrs if image.is_64 else array("Q", vaddrs), entries[1::words])


def _relr_tables(image: Image, dynamic: Dynamic) -> Iterator[tuple[int, int]]:
    """Decode RELR: an even word is an address, an odd one a bitmap of the words after it.

    Returns each as a bitmap, never empty, with the vaddr of its lowest bit.
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


def _packed(image: Image, raw: bytes, most: int) -> Relocations:
    """Decode Android's APS2 packing: groups of relocations in signed LEB128 numbers."""
    if not raw.startswith(b"APS2"):
        raise InputError(image.file, "packed relocations do not begin with APS2")
    stream = _Leb128(image, raw[4:])
    count, offset = stream.next(), stream.next()
    if not 0 <= count <= most:
        raise InputError(image.file, f"{count} packed relocations are more than any file has")
    found = Relocations(array("Q"), array("Q"))
    while len(found.vaddrs) < count:
        size = stream.next()
        if not 0 < size <= count - len(found.vaddrs):
            raise InputError(image.file, f"a group of {size} packed relocations among {count}")
        offset = _group(stream, size, offset, found)
    return found


def _group(stream: "_Leb128", size: int, offset: int, found: Relocations) -> int:
    """Decode one group after its size; fields that all its entries share stand once, at its start."""
    flags = stream.next()
    delta = stream.next() if flags & _GROUPED_BY_OFFSET_DELTA else None
    info = stream.next() if flags & _GROUPED_BY_INFO else None
    if flags & _HAS_ADDEND and flags & _GROUPED_BY_ADDEND:
        stream.next()
    has_own_addends = bool(flags & _HAS_ADDEND and not flags & _GROUPED_BY_ADDEND)
    for _ in range(size):
        offset += stream.next() if delta is None else delta
        found.vaddrs.append(offset & _ANY_WORD)
        found.infos.append((stream.next() if info is None else info) & _ANY_WORD)
        if has_own_addends:
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
