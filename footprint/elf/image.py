"""One ELF file: its header, segments and sections, read with the standard library and checked for bounds.

Both classes and both byte orders share one code path, which a table of formats selects. Program headers decide what is
memory; section headers only name it.

Source: System V ABI, chapters 4 and 5 (ELF-64 object file format 1.5; gABI draft of 2013 for extension numbering).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice, repeat
from mmap import MADV_DONTNEED, mmap
from operator import add
from struct import Struct
from typing import Final

from footprint.elf import abi
from footprint.errors import InputError, UnsupportedError
from footprint.members import NamedTuple, dataclass

MAGIC: Final = b"\x7fELF"
ARCHIVE_MAGIC: Final = b"!<arch>\n"
THIN_ARCHIVE_MAGIC: Final = b"!<thin>\n"


_PN_XNUM: Final = 0xFFFF
# A compiler that gives each function its own section makes some ten thousand sections; more is damage.
_MOST_HEADERS: Final = 1 << 18

Buffer = bytes | memoryview


class Segment(NamedTuple):
    """A program header. `file_bytes` is p_filesz, `memory_bytes` p_memsz."""

    type: int
    flags: int
    offset: int
    vaddr: int
    file_bytes: int
    memory_bytes: int
    align: int

    @property
    def is_writable(self) -> bool:
        """Whether the loader maps it writable (PF_W)."""
        return bool(self.flags & abi.PF_W)


class Section(NamedTuple):
    """A section header; `name` is only shown and never decides what is memory."""

    index: int  # type: ignore[assignment] # nothing needs tuple.index
    name: str
    type: int
    flags: int
    vaddr: int
    offset: int
    size_bytes: int
    link: int
    info: int
    align: int
    entry_bytes: int

    @property
    def is_in_memory(self) -> bool:
        """Whether it is part of the process (SHF_ALLOC)."""
        return bool(self.flags & abi.SHF_ALLOC)

    @property
    def is_writable(self) -> bool:
        """Whether it is writable memory (SHF_ALLOC and SHF_WRITE)."""
        return self.flags & (abi.SHF_ALLOC | abi.SHF_WRITE) == abi.SHF_ALLOC | abi.SHF_WRITE

    @property
    def is_tls(self) -> bool:
        """Whether it is the template of the block of each thread: its addresses are not addresses of the process."""
        return bool(self.flags & abi.SHF_TLS)

    @property
    def has_file_bytes(self) -> bool:
        """Whether the file holds its bytes; .bss and .tbss have none."""
        return self.type not in {abi.SHT_NOBITS, abi.SHT_NULL}


class _Layout(NamedTuple):
    """The on-disk structures of one class and byte order."""

    header: Struct
    segment: Struct
    section: Struct


def _layouts() -> dict[tuple[int, int], _Layout]:
    layouts = {}
    for data, order in ((1, "<"), (2, ">")):
        layouts[1, data] = _Layout(
            Struct(order + "16xHHIIIIIHHHHHH"),
            Struct(order + "III4xIIII"),
            Struct(order + "IIIIIIIIII"),
        )
        layouts[2, data] = _Layout(
            Struct(order + "16xHHIQQQIHHHHHH"),
            Struct(order + "IIQQ8xQQQ"),
            Struct(order + "IIQQQQIIQQ"),
        )
    return layouts


_LAYOUTS: Final = _layouts()
_HEADER_BYTES: Final = {file_class: layout.header.size for (file_class, _), layout in _LAYOUTS.items()}


@dataclass(frozen=True, eq=False)
class Image:
    """The headers of one ELF file, and its bytes, which are not copied: `data` is a view of the file.

    Two images are equal only if they are the same object: a comparison by value would read the whole file.

    Attributes:
        file: The name to show, such as the path; `libz.a(inflate.o)` for a member of an archive.
        data: The whole file.
        is_64: Whether it is of class ELFCLASS64.
        is_little: Whether it is little-endian.
        type: e_type; 1 is a relocatable object, 2 a fixed program, 3 a shared object or PIE.
        machine: e_machine.
        segments: All program headers in file order.
        sections: All section headers in file order, the null section included.
    """

    file: str
    data: Buffer
    is_64: bool
    is_little: bool
    type: int
    machine: int
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]

    @cached_property
    def loads(self) -> tuple[Segment, ...]:
        """The segments that the loader maps, in the order of the file. The ABI demands ascending vaddrs."""
        return tuple([segment for segment in self.segments if segment.type == abi.PT_LOAD])

    @cached_property
    def vaddrs(self) -> tuple[int, int] | None:
        """The lowest vaddr that the loader maps, and the first behind the highest; None where it maps none."""
        loads = self.loads
        return (min(s.vaddr for s in loads), max(s.vaddr + s.memory_bytes for s in loads)) if loads else None

    @cached_property
    def _first_of_type(self) -> dict[int, Segment]:
        return {segment.type: segment for segment in reversed(self.segments)}

    @property
    def is_relocatable(self) -> bool:
        """Whether it is an object file before linking: its sections have no addresses."""
        return self.type == abi.ET_REL

    def segment(self, segment_type: int) -> Segment | None:
        """Return the first program header of a type, or None."""
        return self._first_of_type.get(segment_type)

    def bytes_at(self, offset: int, size_bytes: int, what: str) -> Buffer:
        """Return a part of the file."""
        if offset + size_bytes > len(self.data):
            raise InputError(self.file, f"{what} of {size_bytes} bytes reaches beyond the end of the file", offset)
        return self.data[offset : offset + size_bytes]

    def section_bytes(self, section: Section) -> Buffer:
        """Return the bytes of a section; nothing for a section without bytes in the file (.bss)."""
        if not section.has_file_bytes:
            return b""
        return self.bytes_at(section.offset, section.size_bytes, f"section {section.index}")

    @property
    def word_bytes(self) -> int:
        """The size of an address."""
        return 8 if self.is_64 else 4

    @property
    def symbol_bytes(self) -> int:
        """The size of one symbol table entry."""
        return 24 if self.is_64 else 16


def starts_like_elf(data: Buffer) -> bool:
    """Return whether a file starts with the magic number of ELF."""
    return bytes(data[:4]) == MAGIC


def starts_like_archive(data: Buffer) -> bool:
    """Return whether a file starts like a static library."""
    return bytes(data[:8]) in {ARCHIVE_MAGIC, THIN_ARCHIVE_MAGIC}


def _headless(data: Buffer, file: str) -> InputError:
    """Return the error on a file that does not have the first bytes of an ELF file."""
    if starts_like_elf(data):
        return InputError(file, "the file is cut: its header needs at least 52 bytes", len(data))
    return InputError(file, "not an ELF file: it does not start with 7f 45 4c 46" if data else "the file is empty")


def read_image(data: Buffer, file: str, *, with_sections: bool = True) -> Image:
    """Read the headers of one ELF file.

    Args:
        data: The whole file, typically a view of a memory map of it.
        file: The name for messages.
        with_sections: False reads only what the loader reads: no section headers, which may then be damaged.

    Raises:
        InputError: Where the file is not an ELF file, is cut, or its headers contradict its size.
        UnsupportedError: For a class, byte order or version that the ABI does not define.
    """
    if len(data) < 16 or not starts_like_elf(data):
        raise _headless(data, file)
    layout = _LAYOUTS.get((data[4], data[5]))
    if layout is None:
        raise UnsupportedError(file, f"ELF class {data[4]} with byte order {data[5]} is not defined", 4)
    if data[6] != 1:
        raise UnsupportedError(file, f"ELF version {data[6]} is not defined", 6)
    if len(data) < layout.header.size:
        raise InputError(file, f"the file is cut: its header needs {layout.header.size} bytes", len(data))
    is_64 = data[4] == 2
    file_type, machine, _, _, segments_offset, sections_offset, *others = layout.header.unpack_from(data)
    _flags, _header_bytes, segment_bytes, segment_count, section_bytes, section_count, names_index = others
    raw_sections: list[tuple[int, ...]] = []
    if not with_sections:
        names_index = 0
    elif sections_offset:
        first = _table(data, file, "section header", sections_offset, 1, section_bytes, layout.section)[0]
        # Extension numbering: the null section has the counts that do not fit 16 bits.
        section_count = section_count or first[5]
        if names_index == abi.SHN_XINDEX:
            names_index = first[6]
        if segment_count == _PN_XNUM:
            segment_count = first[7]
        raw_sections = _table(
            data, file, "section header", sections_offset, section_count, section_bytes, layout.section
        )
    elif section_count:
        raise InputError(file, f"e_shnum is {section_count}, but e_shoff is 0", layout.header.size - 4)
    raw_segments = (
        _table(data, file, "program header", segments_offset, segment_count, segment_bytes, layout.segment)
        if segment_count
        else []
    )
    segments = tuple(_segment(fields, is_64=is_64) for fields in raw_segments)
    sections = _named(data, file, raw_sections, names_index)
    return Image(file, data, is_64, data[5] == 1, file_type, machine, segments, sections)


def _table(
    data: Buffer, file: str, what: str, offset: int, count: int, entry_bytes: int, entry: Struct
) -> list[tuple[int, ...]]:
    """Read a header table; its entries may be longer than the ABI defines, never shorter."""
    if entry_bytes < entry.size:
        raise InputError(file, f"a {what} of {entry_bytes} bytes is shorter than {entry.size}", offset)
    if count > _MOST_HEADERS or offset + count * entry_bytes > len(data):
        raise InputError(file, f"{count} {what}s reach beyond the end of the file", offset)
    if entry_bytes == entry.size:
        return list(entry.iter_unpack(data[offset : offset + count * entry_bytes]))
    return [entry.unpack_from(data, offset + index * entry_bytes) for index in range(count)]


def _segment(fields: tuple[int, ...], *, is_64: bool) -> Segment:
    if is_64:
        return Segment(*fields)
    segment_type, offset, vaddr, file_bytes, memory_bytes, flags, align = fields
    return Segment(segment_type, flags, offset, vaddr, file_bytes, memory_bytes, align)


def _named(data: Buffer, file: str, raw: list[tuple[int, ...]], names_index: int) -> tuple[Section, ...]:
    """Return the sections with their names, which one of the sections holds."""
    names = None
    if raw and names_index:
        if names_index >= len(raw):
            raise InputError(
                file, f"the section of names is number {names_index} of {len(raw)}", _HEADER_BYTES[data[4]] - 2
            )
        offset, size_bytes = raw[names_index][4:6]
        if raw[names_index][1] != abi.SHT_NOBITS:
            if offset + size_bytes > len(data):
                raise InputError(file, "the section of names reaches beyond the end of the file", offset)
            names = StringTable(data[offset : offset + size_bytes], file, offset, "section names")
    return tuple(
        Section(index, names.at(name) if names is not None and name < names.size_bytes else "", *fields)
        for index, (name, *fields) in enumerate(raw)
    )


_LONGEST_NAME_BYTES: Final = 1 << 18
_USUAL_NAME_BYTES: Final = 1 << 8
_NAMES_AT_ONCE: Final = 1 << 12
_LEAST_BYTES_A_NAME: Final = 1 << 9


def release_pages(part: Buffer) -> None:
    """Hand the pages of a mapped file back to the kernel, which has them still: a part of it was read, and copied."""
    if isinstance(part, memoryview) and isinstance(part.obj, mmap):
        part.obj.madvise(MADV_DONTNEED)


class StringTable:
    """A string table, which is read a name at a time: most names are never needed.

    Names may share their tails, as linkers merge them. The sum of their lengths is limited: a hostile table is refused
    before its names fill the memory.
    """

    _MOST_NAME_BYTES_PER_TABLE_BYTE: Final = 16
    _SMALL_BYTES: Final = 1 << 16
    _MOST_KEPT: Final = 1 << 16

    def __init__(self, table: Buffer, file: str, offset: int | None, what: str) -> None:
        self._table = memoryview(table)
        self._file = file
        self._offset = offset
        self._what = what
        self.size_bytes = len(table)
        self._left_bytes = self._SMALL_BYTES + self.size_bytes * self._MOST_NAME_BYTES_PER_TABLE_BYTE
        self._cached: dict[int, str] = {}

    def learn_all(self) -> None:
        """Decode all names at once, which takes less time where most of them are needed."""
        raw = bytes(self._table)
        if raw.isascii():
            names = raw.decode("ascii").split("\0")[:-1]
            self._cached = dict(zip(accumulate([len(name) + 1 for name in names], initial=0), names, strict=False))

    def offsets_of(self, word: bytes) -> set[int]:
        """Return the offsets of a word, without decoding a name: each is the start of a name or lies within one."""
        return {match.start() for match in re.finditer(re.escape(word), self._table)}

    def at(self, start: int) -> str:
        """Return the name at an offset; bytes that are not UTF-8 as surrogates. An empty table has "" at 0."""
        name = self._cached.get(start)
        if name is not None:
            # All copies of a variable that a header defines have one name.
            return name
        raw, end, _ = self._table[start : start + _USUAL_NAME_BYTES + 1].tobytes().partition(b"\0")
        if not end:
            raw = self._raw(start) if self.size_bytes or start else b""
        self._left_bytes -= len(raw)
        if self._left_bytes < 0:
            raise InputError(self._file, f"the {self._what} overlap too much", self._offset)
        name = raw.decode("utf-8", "surrogateescape")
        if len(self._cached) < self._MOST_KEPT:
            self._cached[start] = name
        return name

    def cached_at(self, starts: Iterable[int]) -> list[str | None]:
        """Return the names at some offsets as far as they are decoded."""
        return list(map(self._cached.get, starts))

    def all_at(self, starts: Iterable[int]) -> Iterator[str]:
        """Yield the names at some offsets, as `at` does; of very many, each takes a quarter of the time so."""
        waiting = iter(starts)
        # Of a large table few names are decoded without a copy of all of it.
        yield from map(self.at, islice(waiting, min(_NAMES_AT_ONCE, self.size_bytes // _LEAST_BYTES_A_NAME)))
        whole = b""
        while some := list(islice(waiting, _NAMES_AT_ONCE)):
            if not whole:
                whole = bytes(self._table)
                release_pages(self._table)
            ends = list(map(whole.find, repeat(b"\0"), some, map(add, some, repeat(_LONGEST_NAME_BYTES + 1))))
            name_bytes = sum(ends) - sum(some)
            if min(ends) < 0 or name_bytes > self._left_bytes or not self._cached.keys().isdisjoint(some):
                yield from map(self.at, some)
                continue
            self._left_bytes -= name_bytes
            names = map(whole.__getitem__, map(slice, some, ends))
            yield from map(bytes.decode, names, repeat("utf-8"), repeat("surrogateescape"))

    def beginnings(self, starts: Sequence[int], size_bytes: int) -> Iterator[bytes]:
        """Yield so many bytes of the names at some offsets, and of what follows shorter ones: none is decoded."""
        whole = bytes(self._table)
        release_pages(self._table)
        return map(whole.__getitem__, map(slice, starts, map(add, starts, repeat(size_bytes))))

    def end(self, start: int) -> int:
        """Return the offset of the zero byte that ends the name at an offset."""
        return start + len(self._raw(start))

    def _raw(self, start: int) -> bytes:
        if not 0 <= start < self.size_bytes:
            raise InputError(self._file, f"one of the {self._what} lies outside of its table", self._offset)
        for most_bytes in (_USUAL_NAME_BYTES, _LONGEST_NAME_BYTES):
            raw, end, _ = self._table[start : start + most_bytes + 1].tobytes().partition(b"\0")
            if end:
                return raw
        offset = None if self._offset is None else self._offset + start
        raise InputError(self._file, f"one of the {self._what} has no end", offset)
