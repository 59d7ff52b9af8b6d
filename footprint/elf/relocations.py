"""Which addresses of an ELF file the loader writes at start: its relocations, in all four encodings.

RELA, REL, RELR and Android's packed tables stand beside one another. What is wanted here is where they write, not what:
one relocation is enough to make its page private.

Source: System V ABI, chapter 4 (Relocation) and the RELR proposal of 2022 (gABI); bionic's linker (APS2 packing).
"""

from array import array
from typing import Final

from footprint.elf.dynamic import Dynamic, bytes_at_vaddr, numbers, read_dynamic
from footprint.elf.image import Buffer, Image
from footprint.errors import InputError

__all__ = ("relocated_vaddrs",)

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
# A packed table repeats a delta without spending a byte on each: the claim is capped.
_MOST_PACKED: Final = 1 << 22


def relocated_vaddrs(image: Image) -> "array[int]":
    """Give the vaddr of every dynamic relocation, in the order of the tables; an address may stand twice.

    Raises:
        InputError: Where a table is damaged or lies outside of the file.
    """
    dynamic = read_dynamic(image)
    found = array("Q")
    for tag, size_tag, words in ((DT_RELA, DT_RELASZ, 3), (DT_REL, DT_RELSZ, 2)):
        found.extend(_plain(image, dynamic.get(tag), dynamic.get(size_tag), words))
    jump_words = 3 if dynamic.get(DT_PLTREL) == DT_RELA else 2
    found.extend(_plain(image, dynamic.get(DT_JMPREL), dynamic.get(DT_PLTRELSZ), jump_words))
    for tag, size_tag in ((DT_RELR, DT_RELRSZ), (DT_ANDROID_RELR, DT_ANDROID_RELRSZ)):
        found.extend(_relr(image, _table(image, dynamic, tag, size_tag, "the RELR table")))
    for tag, size_tag in ((DT_ANDROID_REL, DT_ANDROID_RELSZ), (DT_ANDROID_RELA, DT_ANDROID_RELASZ)):
        found.extend(_packed(image, bytes(_table(image, dynamic, tag, size_tag, "the packed relocations"))))
    return found


def _table(image: Image, dynamic: Dynamic, tag: int, size_tag: int, what: str) -> Buffer:
    vaddr, size_bytes = dynamic.get(tag), dynamic.get(size_tag)
    return bytes_at_vaddr(image, vaddr, size_bytes, what) if vaddr and size_bytes else b""


def _plain(image: Image, vaddr: int | None, size_bytes: int | None, words: int) -> "array[int]":
    """Read r_offset of REL (two words an entry) or RELA (three)."""
    if not vaddr or not size_bytes:
        return array("Q")
    table = numbers(image, bytes_at_vaddr(image, vaddr, size_bytes, "a table of relocations"))
    offsets = table[0 : len(table) // words * words : words]
    return offsets if image.is_64 else array("Q", offsets)


def _relr(image: Image, raw: Buffer) -> "array[int]":
    """Decode RELR: an even word is an address, an odd one a bitmap of the words that follow it."""
    word_bytes = 8 if image.is_64 else 4
    bits = word_bytes * 8 - 1
    address_mask = (1 << word_bytes * 8) - 1
    found = array("Q")
    at = 0
    for word in numbers(image, raw):
        if not word & 1:
            found.append(word)
            at = word + word_bytes
            continue
        place, bitmap = at, word >> 1
        while bitmap:
            if bitmap & 1:
                found.append(place & address_mask)
            bitmap >>= 1
            place += word_bytes
        at += bits * word_bytes
    return found


def _packed(image: Image, raw: bytes) -> "array[int]":
    """Decode Android's APS2 packing: groups of relocations in signed LEB128 numbers."""
    if not raw:
        return array("Q")
    if not raw.startswith(b"APS2"):
        raise InputError(image.file, "packed relocations do not begin with APS2")
    stream = _Leb128(image, raw[4:])
    count, offset = stream.next(), stream.next()
    if not 0 <= count <= _MOST_PACKED:
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
