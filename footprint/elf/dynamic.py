"""The dynamic section of an ELF file, found as the loader finds it: through PT_DYNAMIC, at vaddrs.

Its linkage: the libraries that it needs, where the loader searches for them, and how it binds.

Source: System V ABI, chapter 5 (Dynamic Linking); elf.h of glibc for DT_FLAGS_1, DT_AUXILIARY and DT_FILTER.
"""

import sys
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from footprint.elf import abi
from footprint.elf.image import Buffer, Image, StringTable
from footprint.errors import InputError
from footprint.members import dataclass

_TYPECODES: Final = {2: "H", 4: "I", 8: "Q"}
# The largest programs need some hundred libraries; a larger dynamic section is damage.
_MOST_DYNAMIC_BYTES: Final = 1 << 20
_MOST_INTERPRETER_BYTES: Final = 4096
_HASH_STYLES: Final = {(False, False): "none", (False, True): "gnu", (True, False): "sysv", (True, True): "both"}


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


def zeros_of(cells: "array[int]") -> Iterator[int]:
    """Yield the indexes of the zeros of a table: to search its bytes is quicker than to compare its numbers."""
    raw, zero, index = cells.tobytes(), bytes(cells.itemsize), 0
    while (at := raw.find(zero, index * len(zero))) >= 0:
        index = -(-at // len(zero))
        if index * len(zero) == at:
            yield index
            index += 1


def bytes_at_vaddr(image: Image, vaddr: int, size_bytes: int | None, what: str) -> Buffer:
    """Return bytes of the file by the vaddr at which the loader maps them; with None all to the end of the segment."""
    for segment in image.loads:
        start = vaddr - segment.vaddr
        left_bytes = segment.file_bytes - start
        if start >= 0 and left_bytes >= (1 if size_bytes is None else size_bytes):
            return image.bytes_at(segment.offset + start, left_bytes if size_bytes is None else size_bytes, what)
    size = "" if size_bytes is None else f" of {size_bytes} bytes"
    raise InputError(image.file, f"{what}{size} at vaddr {vaddr:#x} is in no segment")


@dataclass(frozen=True)
class Linkage:
    """The linkage of one file, as its dynamic section states it.

    Attributes:
        soname: The name that other files use in DT_NEEDED.
        needed: The names of the libraries that it needs, in their order.
        rpath: The search path for them and for the libraries that they need in turn; ignored beside a runpath.
        runpath: The search path for them alone.
        interpreter: The loader that the kernel starts for it.
        filtees: The libraries that replace its definitions (DT_FILTER, DT_AUXILIARY), in their order: the name, and
            whether the library must exist, as with DT_FILTER.
        flags_1: DT_FLAGS_1.
        binds_now: Whether the loader binds its calls at start (DT_BIND_NOW, DF_BIND_NOW, DF_1_NOW).
        is_symbolic: Whether its symbols are looked up in itself first.
        is_dynamic: Whether it has a dynamic section.
        has_relr: Whether it has relative relocations in packed form (DT_RELR).
        auditors: The libraries that watch the loader for it (DT_AUDIT, then DT_DEPAUDIT), parted by colons.
        hash_style: What its symbols are found by, in the linker's words: `gnu`, `sysv` (DT_HASH), `both` or `none`.
    """

    soname: str | None
    needed: tuple[str, ...]
    rpath: str | None
    runpath: str | None
    interpreter: str | None
    filtees: tuple[tuple[str, bool], ...]
    flags_1: int
    binds_now: bool
    is_symbolic: bool
    is_dynamic: bool
    has_relr: bool
    auditors: tuple[str, ...]
    hash_style: str


def read_linkage(image: Image) -> Linkage:
    """Read the linkage of a file; without a dynamic section it needs nothing."""
    segment = image.segment(abi.PT_DYNAMIC)
    if segment is not None and segment.file_bytes > _MOST_DYNAMIC_BYTES:
        raise InputError(image.file, f"a dynamic section of {segment.file_bytes} bytes is too large", segment.offset)
    needed: list[int] = []
    filtees: list[tuple[int, bool]] = []
    dynamic = read_dynamic(image)
    for tag, value in dynamic.entries:
        if tag == abi.DT_NEEDED:
            needed.append(value)
        elif tag in {abi.DT_AUXILIARY, abi.DT_FILTER}:
            filtees.append((value, tag == abi.DT_FILTER))
    flags, flags_1 = dynamic.get(abi.DT_FLAGS) or 0, dynamic.get(abi.DT_FLAGS_1) or 0
    return Linkage(
        soname=_name(dynamic, abi.DT_SONAME),
        needed=tuple([dynamic.names.at(value) for value in needed]),
        rpath=_name(dynamic, abi.DT_RPATH),
        runpath=_name(dynamic, abi.DT_RUNPATH),
        interpreter=_interpreter(image),
        filtees=tuple([(dynamic.names.at(value), must_exist) for value, must_exist in filtees]),
        flags_1=flags_1,
        binds_now=dynamic.get(abi.DT_BIND_NOW) is not None or bool(flags & abi.DF_BIND_NOW or flags_1 & abi.DF_1_NOW),
        is_symbolic=dynamic.get(abi.DT_SYMBOLIC) is not None or bool(flags & abi.DF_SYMBOLIC),
        is_dynamic=segment is not None,
        has_relr=bool(dynamic.get(abi.DT_RELR)),
        auditors=tuple([text for tag in (abi.DT_AUDIT, abi.DT_DEPAUDIT) if (text := _name(dynamic, tag))]),
        hash_style=_HASH_STYLES[bool(dynamic.get(abi.DT_HASH)), bool(dynamic.get(abi.DT_GNU_HASH))],
    )


def _name(dynamic: Dynamic, tag: int) -> str | None:
    place = dynamic.get(tag)
    return None if place is None else dynamic.names.at(place)


def _interpreter(image: Image) -> str | None:
    segment = image.segment(abi.PT_INTERP)
    if segment is None:
        return None
    raw = bytes(image.bytes_at(segment.offset, min(segment.file_bytes, _MOST_INTERPRETER_BYTES), "the interpreter"))
    return raw.partition(b"\0")[0].decode("utf-8", "surrogateescape")
