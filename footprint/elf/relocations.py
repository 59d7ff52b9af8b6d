"""The relocations of an ELF file, in all four encodings: what the loader writes at start.

A file can have RELA, REL, RELR and the packed tables of Android. Pages need only the vaddr that each writes: one
relocation makes its page private. Symbols need only the symbol and the type of each.

Source: System V ABI, chapter 4 (Relocation) and the RELR proposal of 2022 (gABI); bionic's linker (APS2 packing).
"""

import sys
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from itertools import compress, islice, pairwise, repeat
from operator import floordiv, lt
from typing import Final
from weakref import WeakKeyDictionary

from footprint.elf import abi
from footprint.elf.abi import relocation_types
from footprint.elf.dynamic import Dynamic, numbers, read_dynamic, zeros_of
from footprint.elf.image import Buffer, Image
from footprint.errors import InputError
from footprint.members import NamedTuple

_GROUPED_BY_INFO: Final = 1
_GROUPED_BY_OFFSET_DELTA: Final = 2
_GROUPED_BY_ADDEND: Final = 4
_HAS_ADDEND: Final = 8

_TABLES: Final = ((abi.DT_RELA, abi.DT_RELASZ, 3), (abi.DT_REL, abi.DT_RELSZ, 2))

# A packed table repeats a delta without a byte for each relocation, and a bitmap of RELR stands for up to 63 addresses:
# their number is limited. The largest programs have a million.
_MOST_ADDRESSES: Final = 1 << 23
_MOST_PAGES: Final = 1 << 18
_ENTRIES_AT_ONCE: Final = 1 << 16
_ANY_WORD: Final = 0xFFFFFFFFFFFFFFFF

TypePages = defaultdict[tuple[bool, int], set[int]]
"""Numbers of pages by whether the relocations that write them have a symbol, and by their type."""
# Both are dropped with the file. The pages are those of a file that was predicted, with their size.
_ORDERED_VADDRS: "Final[WeakKeyDictionary[Image, array[int]]]" = WeakKeyDictionary()
_KEPT_PAGES: "Final[WeakKeyDictionary[Image, tuple[int, set[int]]]]" = WeakKeyDictionary()


class Relocations(NamedTuple):
    """Relocations of a file, without those of RELR: the vaddr that each writes (r_offset), and its r_info."""

    vaddrs: "array[int]"
    infos: "array[int]"


class RelocationInfos(NamedTuple):
    """The r_info of the relocations of a file, without those of RELR.

    Attributes:
        alike: By r_info how many entries without a symbol a table begins with that are alike, as most tables do.
        main: By table the others, of all tables but DT_JMPREL.
        jump: By table those of DT_JMPREL.
    """

    alike: dict[int, int]
    main: "tuple[array[int], ...]"
    jump: "tuple[array[int], ...]"

    @property
    def distinct(self) -> set[int]:
        """The r_infos that occur."""
        return set(self.alike).union(*self.main, *self.jump)


def relocation_infos(dynamic: Dynamic) -> RelocationInfos:
    """Read the r_info of all relocations but those of RELR; of a program without a dynamic section by sections."""
    image, alike, main = dynamic.image, Counter[int](), []
    is_dynamic = image.segment(abi.PT_DYNAMIC) is not None
    for _, infos in main_relocations(dynamic) if is_dynamic else static_relocations(image):
        first = count_alike(infos) if infos and not symbol_and_type(image, infos[0])[0] else 0
        if first:
            alike[infos[0]] += first
        main.append(infos[first:])
    return RelocationInfos(alike, tuple(main), tuple([infos for _, infos in jump_relocations(dynamic)]))


def count_types(kinds: "array[int]", types: Collection[int]) -> dict[int, int]:
    """Count the entries of a table by their types, given all types that it may have."""
    if len({kind & 0xFF for kind in types}) < len(types):
        return Counter(kinds)
    # Their lowest bytes tell them apart.
    lowest = kinds.tobytes()[0 if sys.byteorder == "little" else kinds.itemsize - 1 :: kinds.itemsize]
    return {kind: entry_count for kind in types if (entry_count := lowest.count(kind & 0xFF))}


def relocations(image: Image) -> Iterator[Relocations]:
    """Read REL, RELA, DT_JMPREL and the packed tables, some entries at a time.

    Entries may come twice: some linkers include those of DT_JMPREL in DT_RELA.
    """
    dynamic = read_dynamic(image)
    yield from _tables(dynamic, 0)
    yield from jump_relocations(dynamic)


def main_relocations(dynamic: Dynamic) -> Iterator[Relocations]:
    """Read all but DT_JMPREL, some entries at a time, without the entries that a linker includes in both."""
    jump_bytes = dynamic.get(abi.DT_PLTRELSZ) or 0
    past = (dynamic.get(abi.DT_JMPREL) or 0) + jump_bytes
    ends = [(dynamic.get(tag) or 0) + (dynamic.get(size) or 0) for tag, size, _ in _TABLES if dynamic.get(tag)]
    yield from _tables(dynamic, jump_bytes if jump_bytes and past in ends else 0)


def _tables(dynamic: Dynamic, less_bytes: int) -> Iterator[Relocations]:
    image = dynamic.image
    for tag, size_tag, words in _TABLES:
        raw = dynamic.table(tag, size_tag, "a table of relocations")
        yield from _entries(image, raw[: max(0, len(raw) - less_bytes)], words)
    for tag, size_tag in ((abi.DT_ANDROID_REL, abi.DT_ANDROID_RELSZ), (abi.DT_ANDROID_RELA, abi.DT_ANDROID_RELASZ)):
        if raw := bytes(dynamic.table(tag, size_tag, "the packed relocations")):
            yield _packed(image, raw)


def jump_relocations(dynamic: Dynamic) -> Iterator[Relocations]:
    """Read DT_JMPREL, some entries at a time: what the loader may leave until the first call."""
    # An entry of REL has two words, one of RELA three.
    words = 3 if dynamic.get(abi.DT_PLTREL) == abi.DT_RELA else 2
    yield from _entries(dynamic.image, dynamic.table(abi.DT_JMPREL, abi.DT_PLTRELSZ, "a table of relocations"), words)


def static_relocations(image: Image) -> Iterator[Relocations]:
    """Read the tables of a program without a dynamic section; found by sections (its start-up code uses symbols)."""
    count = 0
    for section in image.sections:
        if section.is_in_memory and section.type in {abi.SHT_RELA, abi.SHT_REL}:
            for entry in _entries(image, image.section_bytes(section), 3 if section.type == abi.SHT_RELA else 2):
                count += len(entry.vaddrs)
                _check_count(image, count)
                yield entry


def symbol_and_type(image: Image, info: int) -> tuple[int, int]:
    """Split an r_info into the index of the symbol, 0 for none, and the machine's type of relocation."""
    if not image.is_64:
        return info >> 8, info & 0xFF
    if image.machine == abi.EM_MIPS and image.is_little:
        # There r_info is not one number: first comes the symbol, then up to three types in reverse order.
        return info & 0xFFFFFFFF, info >> 56
    return info >> 32, info & 0xFFFFFFFF


def symbols_and_types(image: Image, infos: "array[int]") -> "tuple[array[int], array[int]]":
    """Split each r_info of a table as `symbol_and_type` does."""
    if image.is_64 and image.machine != abi.EM_MIPS:
        halves = array("I", infos.tobytes())
        return (halves[1::2], halves[::2]) if sys.byteorder == "little" else (halves[::2], halves[1::2])
    pairs = [symbol_and_type(image, info) for info in infos]
    return array("Q", [symbol for symbol, _ in pairs]), array("Q", [kind for _, kind in pairs])


def addends_at(image: Image, vaddrs: Container[int]) -> dict[int, int]:
    """Return the addends of DT_RELA for some vaddrs, such as a range; REL and RELR have the addend in place."""
    words = _rela_words(image)
    return {vaddr: addend for vaddr, addend in zip(words[::3], words[2::3], strict=False) if vaddr in vaddrs}


def relocated_words(image: Image) -> "tuple[array[int], array[int]]":
    """Return what all entries of DT_RELA write to, and their addends: for relative ones, the vaddrs they point to."""
    words = _rela_words(image)
    return words[::3], words[2::3]


def relocated_vaddrs(image: Image) -> "array[int]":
    """Return the vaddr of every dynamic relocation; a vaddr may occur twice.

    Raises:
        InputError: Where a table is damaged or lies outside of the file, or where there are too many.
    """
    relocated = array("Q")
    for vaddrs, _ in relocations(image):
        relocated.extend(vaddrs)
        _check_count(image, len(relocated))
    word_bytes = image.word_bytes
    address_mask = (1 << word_bytes * 8) - 1
    for vaddr, bitmap in _relr_tables(read_dynamic(image)):
        bits = range(bitmap.bit_length())
        relocated.extend([vaddr + bit * word_bytes & address_mask for bit in bits if bitmap >> bit & 1])
        _check_count(image, len(relocated))
    return relocated


def ordered_vaddrs(image: Image) -> "array[int]":
    """Return what `relocated_vaddrs` returns in ascending order; kept with the file, as several rules read it.

    Raises:
        InputError: As `relocated_vaddrs`.
    """
    ordered = _ORDERED_VADDRS.get(image)
    if ordered is None:
        ordered = _ORDERED_VADDRS[image] = array("Q", sorted(relocated_vaddrs(image)))
    return ordered


def relocated_pages(image: Image, page_bytes: int) -> tuple[int, ...]:
    """Return the numbers of the pages (vaddr divided by the page size) that relocations write, ascending.

    The number of pages limits the memory that this takes, not the number of relocations. A page must be larger than the
    range of one bitmap of RELR.
    """
    kept_bytes, pages = _KEPT_PAGES.get(image, (0, set[int]()))
    if kept_bytes != page_bytes:
        pages = relr_pages(image, page_bytes)
        for vaddrs, _ in relocations(image):
            pages.update(pages_of(vaddrs, page_bytes))
            _check_pages(image, pages)
    _check_pages(image, pages)
    return tuple(sorted(pages))


def pages_by_type(image: Image, page_bytes: int, relative: set[int]) -> Iterator[tuple[Relocations, TypePages]]:
    """Read the tables as `relocations` does, each with the pages that its relocations write, by their type.

    A word counts for the page of its first byte: linkers align words. All pages, and those of `relr_pages`, are kept
    for `relocated_pages`.
    """
    pages = {*relative}
    for table in relocations(image):
        by_type = pages_of_types(image, table, page_bytes)
        if len(pages) <= _MOST_PAGES:
            pages.update(*by_type.values())
        yield table, by_type
    _KEPT_PAGES[image] = page_bytes, pages


def pages_of_types(image: Image, table: Relocations, page_bytes: int) -> TypePages:
    """Return the pages that some relocations write, by whether they have a symbol, and by their type."""
    by_type: TypePages = defaultdict(set)
    alike = count_alike(table.infos) if table.infos else 0
    if alike:
        symbol, kind = symbol_and_type(image, table.infos[0])
        by_type[bool(symbol), kind] = set(pages_of(table.vaddrs[:alike], page_bytes))
    vaddrs, (symbols, types) = table.vaddrs[alike:], symbols_and_types(image, table.infos[alike:])
    has_others = any(True for _ in zeros_of(symbols))
    if len(set(types)) == 1 and not has_others:
        by_type[True, types[0]].update(pages_of(vaddrs, page_bytes))
        return by_type
    has_symbol = map(bool, symbols) if has_others else repeat(True)  # noqa: FBT003 # no option
    pages = map(floordiv, vaddrs, repeat(page_bytes))
    for page, of_symbol, kind in set(zip(pages, has_symbol, types, strict=False)):
        by_type[of_symbol, kind].add(page)
    return by_type


def pages_of(vaddrs: Iterable[int], page_bytes: int) -> Iterator[int]:
    """Yield the numbers of the pages of some vaddrs: most tables are in order, and write many words of a page."""
    ordered, at = sorted(vaddrs), 0
    while at < len(ordered):
        page = ordered[at] // page_bytes
        yield page
        at = bisect_left(ordered, (page + 1) * page_bytes, at)


def pages_relocated_alone(vaddrs: Sequence[int], start: int, end: int, page_bytes: int) -> int:
    """Count the pages in which all relocations lie between two vaddrs, given the vaddr of each in ascending order."""
    first, past = bisect_left(vaddrs, start), bisect_left(vaddrs, end)
    pages = {vaddr // page_bytes for vaddr in vaddrs[first:past]}
    before, behind = vaddrs[first - 1 : first] if first else (), vaddrs[past : past + 1]
    return len(pages - {vaddr // page_bytes for vaddr in (*before, *behind)})


def relr_pages(image: Image, page_bytes: int) -> set[int]:
    """Return the numbers of the pages that the RELR tables write; for `page_bytes` see `relocated_pages`."""
    pages: set[int] = set()
    word_bytes = image.word_bytes
    address_mask = (1 << word_bytes * 8) - 1
    for vaddr, bitmap in _relr_tables(read_dynamic(image)):
        # All addresses between the first and the last are in the page of one of these two.
        for bit in ((bitmap & -bitmap).bit_length() - 1, bitmap.bit_length() - 1):
            pages.add((vaddr + bit * word_bytes & address_mask) // page_bytes)
        _check_pages(image, pages)
    return pages


def pack_relative(image: Image) -> tuple[int, int]:
    """Return how many relative relocations RELR can have, those of even vaddrs, and the bytes of its table."""
    relative, relocated = relocation_types(image.machine).relative, array("Q")
    for table in relocations(image):
        # Most tables begin with them.
        alike = count_alike(table.infos) if table.infos and symbol_and_type(image, table.infos[0])[1] in relative else 0
        relocated.extend(table.vaddrs[:alike])
        kinds = symbols_and_types(image, table.infos[alike:])[1]
        relocated.extend(compress(table.vaddrs[alike:], map(relative.__contains__, kinds)))
    vaddrs = sorted(relocated)
    if not all(map(lt, vaddrs, islice(vaddrs, 1, None))):
        vaddrs = sorted(set(vaddrs))
    word_bytes, word_count, changes = image.word_bytes, 0, list[int]()
    bit_count = word_bytes * 8 - 1
    low_bytes = set(array("Q", vaddrs).tobytes()[0 if sys.byteorder == "little" else 7 :: 8])
    if any(low_byte % word_bytes for low_byte in low_bytes):
        # Odd vaddrs cannot be packed, and those that are no multiple of a word apart have no common bitmap.
        vaddrs = [vaddr for vaddr in vaddrs if not vaddr & 1]
        changes = [at for at, (vaddr, behind) in enumerate(pairwise(vaddrs), 1) if (behind - vaddr) % word_bytes]
    at = 0
    for past in (*changes, len(vaddrs)):
        while at < past:
            base, at, word_count = vaddrs[at] + word_bytes, at + 1, word_count + 1
            # Bitmaps follow the word with an address, as long as none is empty.
            while at < past and vaddrs[at] < base + bit_count * word_bytes:
                base, word_count = base + bit_count * word_bytes, word_count + 1
                at = bisect_left(vaddrs, base, at, min(at + bit_count, past))
    return len(vaddrs), word_count * word_bytes


def relr_count(dynamic: Dynamic) -> int:
    """Return the number of relocations in the RELR tables."""
    count = 0
    for _, bitmap in _relr_tables(dynamic):
        count += bitmap.bit_count()
        _check_count(dynamic.image, count)
    return count


def count_alike(infos: "array[int]") -> int:
    """Count the first entries of a table that have one kind: linkers put those without symbol first."""
    raw, size = infos.tobytes(), infos.itemsize
    alike, low, high = memoryview(raw[:size] * len(infos)), 0, len(infos)
    while low < high:
        middle = (low + high + 1) // 2
        if raw.startswith(alike[low * size : middle * size], low * size):
            low = middle
        else:
            high = middle - 1
    return low


def _check_count(image: Image, count: int) -> None:
    if count > _MOST_ADDRESSES:
        raise InputError(image.file, f"more than {_MOST_ADDRESSES} relocations are more than any file has")


def _check_pages(image: Image, pages: set[int]) -> None:
    if len(pages) > _MOST_PAGES:
        raise InputError(image.file, f"relocations in more than {_MOST_PAGES} pages are more than any file has")


def _rela_words(image: Image) -> "array[int]":
    words = numbers(image, read_dynamic(image).table(abi.DT_RELA, abi.DT_RELASZ, "a table of relocations"))
    _check_count(image, len(words) // 3)
    return words


def _entries(image: Image, raw: Buffer, words: int) -> Iterator[Relocations]:
    """Read a table whose entries have a given number of words, some entries at a time."""
    entry_bytes = words * image.word_bytes
    count = len(raw) // entry_bytes
    _check_count(image, count)
    for first in range(0, count, _ENTRIES_AT_ONCE):
        past = min(first + _ENTRIES_AT_ONCE, count)
        entries = numbers(image, raw[first * entry_bytes : past * entry_bytes])
        if first == 0 and image.machine == abi.EM_MIPS and not entries[1]:
            # The table of MIPS begins with an empty entry (R_MIPS_NONE), which writes nothing.
            entries = entries[words:]
        vaddrs = entries[::words]
        yield Relocations(vaddrs if image.is_64 else array("Q", vaddrs), entries[1::words])


def _relr_tables(dynamic: Dynamic) -> Iterator[tuple[int, int]]:
    """Decode RELR: an even word is an address, an odd one a bitmap of the words after it.

    Returns each as a bitmap, never empty, with the vaddr of its lowest bit.
    """
    image, word_bytes = dynamic.image, dynamic.image.word_bytes
    bitmap_bytes = (word_bytes * 8 - 1) * word_bytes
    for tag, size_tag in ((abi.DT_RELR, abi.DT_RELRSZ), (abi.DT_ANDROID_RELR, abi.DT_ANDROID_RELRSZ)):
        raw = dynamic.table(tag, size_tag, "the RELR table")
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


def _packed(image: Image, raw: bytes) -> Relocations:
    """Decode Android's APS2 packing: groups of relocations in signed LEB128 numbers."""
    if not raw.startswith(b"APS2"):
        raise InputError(image.file, "packed relocations do not begin with APS2")
    stream = _leb128(image, raw[4:])
    count, offset = next(stream), next(stream)
    if not 0 <= count <= _MOST_ADDRESSES:
        raise InputError(image.file, f"{count} packed relocations are more than any file has")
    unpacked = Relocations(array("Q"), array("Q"))
    while len(unpacked.vaddrs) < count:
        size, flags = next(stream), next(stream)
        if not 0 < size <= count - len(unpacked.vaddrs):
            raise InputError(image.file, f"a group of {size} packed relocations among {count}")
        # Fields that all entries of a group share stand once, at its start.
        delta = next(stream) if flags & _GROUPED_BY_OFFSET_DELTA else None
        info = next(stream) if flags & _GROUPED_BY_INFO else None
        has_own_addends = flags & (_HAS_ADDEND | _GROUPED_BY_ADDEND) == _HAS_ADDEND
        if flags & _HAS_ADDEND and not has_own_addends:
            next(stream)
        for _ in range(size):
            offset += next(stream) if delta is None else delta
            unpacked.vaddrs.append(offset & _ANY_WORD)
            unpacked.infos.append((next(stream) if info is None else info) & _ANY_WORD)
            if has_own_addends:
                next(stream)
    return unpacked


def _leb128(image: Image, raw: bytes) -> Iterator[int]:
    """Return signed LEB128 numbers, one after the other."""
    number = shift = 0
    for byte in raw:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield number - (1 << shift) if byte & 0x40 else number
            number = shift = 0
        elif shift >= 70:
            break
    raise InputError(image.file, "packed relocations are cut")
