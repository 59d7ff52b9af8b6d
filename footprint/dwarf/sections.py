"""The debug sections of one file, decompressed where necessary, and read a number or a text at a time.

The sections of an object file have its relocations applied, as the linker would write them.

Source: System V ABI, chapter 4 (Compressed Sections); DWARF 5, section 7.6 (Variable Length Data); for relocations the
processor supplements of the System V ABI (x86-64 1.0, i386 1.1, AArch64 2024Q3, Arm 2024Q3, RISC-V 1.0, LoongArch 2.30,
64-bit PowerPC V2 1.9, PowerPC 1.0, s390x 1.6, MIPS).
"""

import zlib
from collections.abc import Callable
from struct import Struct, error
from typing import Final, Literal

from footprint.dwarf.places import VariablePlaces
from footprint.elf import abi
from footprint.elf.dynamic import numbers
from footprint.elf.image import Buffer, Image, Section, StringTable
from footprint.elf.relocations import symbol_and_type
from footprint.elf.symbols import COMMON, symbol_table_in
from footprint.errors import InputError, Note, UnsupportedError
from footprint.members import NamedTuple
from footprint.system.decompression import zstd_module


class _Kind(NamedTuple):
    """The word that a type of relocation writes: its size, and a bias of the compiler to subtract."""

    size_bytes: int
    bias: int = 0


_WORD, _LONG = _Kind(4), _Kind(8)
# By machine the types that debug information uses: addresses, and offsets in the block of thread-local variables.
_KINDS: Final[dict[int, dict[int, _Kind]]] = {
    3: {1: _WORD, 32: _WORD},  # EM_386
    8: {2: _WORD, 18: _LONG, 39: _Kind(4, 0x8000), 41: _Kind(8, 0x8000)},  # EM_MIPS
    20: {1: _WORD, 78: _Kind(4, 0x8000)},  # EM_PPC
    21: {1: _WORD, 38: _LONG, 78: _Kind(8, 0x8000)},  # EM_PPC64
    22: {4: _WORD, 22: _LONG, 52: _WORD, 53: _LONG},  # EM_S390
    40: {2: _WORD, 106: _WORD},  # EM_ARM
    62: {1: _LONG, 10: _WORD, 11: _WORD, 17: _LONG, 21: _WORD},  # EM_X86_64
    183: {257: _LONG, 258: _WORD, 1029: _LONG},  # EM_AARCH64
    243: {1: _WORD, 2: _LONG, 8: _Kind(4, 0x800), 9: _Kind(8, 0x800)},  # EM_RISCV
    258: {1: _WORD, 2: _LONG, 8: _WORD, 9: _LONG},  # EM_LOONGARCH
}
# On these machines other types compute lengths of code; no variable has one.
_MACHINES_WITH_DIFFERENCES: Final = frozenset({243, 258})
_ENTRIES_AT_ONCE: Final = 1 << 16

# By r_info: the value of the symbol, the mask of the word, and how to write and read it; None for nothing to do.
_Target = tuple[int, int, Callable[..., None], Callable[..., tuple[int]]] | None


class Relocator:
    """Applies the relocations of an object file to its debug sections, after decompression."""

    def __init__(self, image: Image, bases: dict[int, int], notes: list[Note]) -> None:
        """Prepare an object file.

        `bases` has by section index the start of a debug section among those of its name. What is not applied
        is added to `notes`.
        """
        self._notes = notes
        self._is_lacking = False
        self._image = image
        self._bases = bases
        self._places = VariablePlaces(image)
        self._targets: dict[int, tuple[_Symbols, dict[int, _Target]]] = {}
        self._tables: dict[int, list[Section]] = {}
        for section in image.sections:
            if section.type in {abi.SHT_RELA, abi.SHT_REL}:
                self._tables.setdefault(section.info, []).append(section)
        order = "<" if image.is_little else ">"
        self._formats = {4: Struct(f"{order}I"), 8: Struct(f"{order}Q")}

    def applied(self, section: Section, data: Buffer) -> Buffer:
        """Return the bytes of a section with its relocations applied."""
        tables = self._tables.get(section.index, [])
        if not tables:
            return data
        changed, left = bytearray(data), len(data)
        for table in tables:
            left = self._apply(table, changed, left)
        return memoryview(changed)

    def _apply(self, table: Section, data: bytearray, left: int) -> int:
        image = self._image
        raw = image.section_bytes(table)
        word_count = 3 if table.type == abi.SHT_RELA else 2
        entry_bytes = word_count * image.word_bytes
        count = len(raw) // entry_bytes
        if count > left:
            raise InputError(image.file, f"section {table.index}: more relocations than bytes", table.offset)
        # Each section has its own table of relocations; all tables share the symbols.
        if table.link not in self._targets:
            self._targets[table.link] = _Symbols(image, table, self._places, self._bases), {}
        symbols, targets = self._targets[table.link]
        at = 0
        try:
            for first in range(0, count, _ENTRIES_AT_ONCE):
                entries = numbers(image, raw[first * entry_bytes : (first + _ENTRIES_AT_ONCE) * entry_bytes])
                past = len(entries) // word_count * word_count
                infos = entries[1:past:word_count]
                addends = entries[2:past:word_count] if word_count == 3 else infos
                for at, info, addend in zip(entries[:past:word_count], infos, addends, strict=True):
                    if info not in targets:
                        targets[info] = self._target(symbols, info)
                    target = targets[info]
                    if target is not None:
                        value, mask, write, read = target
                        write(data, at, value + (addend if word_count == 3 else read(data, at)[0]) & mask)
        except (error, IndexError) as cause:
            # An offset that no index can hold is an IndexError.
            detail = f"section {table.index}: a relocation writes outside of the section, at {at:#x}"
            raise InputError(image.file, detail, table.offset) from cause
        return left - count

    def _target(self, symbols: "_Symbols", info: int) -> _Target:
        index, kind_number = symbol_and_type(self._image, info)
        machine = self._image.machine
        kind = _KINDS.get(machine, {}).get(kind_number)
        if kind is None:
            if kind_number and machine not in _MACHINES_WITH_DIFFERENCES and not self._is_lacking:
                detail = f"relocations of type {kind_number} of machine {machine} are unknown, and were not applied"
                self._is_lacking = True
                self._notes.append(Note("debug-info-unsupported", self._image.file, detail))
            return None
        form = self._formats[kind.size_bytes]
        mask = (1 << 8 * kind.size_bytes) - 1
        return symbols.value(index) - kind.bias, mask, form.pack_into, form.unpack_from


class _Symbols:
    """The values of the symbols that a table of relocations refers to."""

    def __init__(self, image: Image, table: Section, places: VariablePlaces, bases: dict[int, int]) -> None:
        self._image = image
        self._relocations = table
        self._places = places
        self._bases = bases
        if not 0 < table.link < len(image.sections):
            raise InputError(image.file, f"section {table.index}: sh_link {table.link} is not a section", table.offset)
        self._table = symbol_table_in(image, image.sections[table.link])

    def value(self, index: int) -> int:
        """Return the value of a symbol: its address in the object, or its offset in a debug section."""
        if not index:
            return 0
        table = self._table
        if index >= len(table):
            cause = f"section {self._relocations.index}: no symbol {index}"
            raise InputError(self._image.file, cause, self._relocations.offset)
        _, _, _, st_shndx, value, _ = table.entry(index)
        section_index = table.section_index(index, st_shndx)
        if section_index == COMMON:
            return self._places.commons.get(table.name(index), 0)
        if abi.SHN_LORESERVE <= st_shndx != abi.SHN_XINDEX:
            return value
        if not 0 < section_index < len(self._image.sections):
            # The object does not define it.
            return 0
        return self._places.starts[section_index] + self._bases.get(section_index, 0) + value


SHF_COMPRESSED: Final = 0x800
ELFCOMPRESS_ZLIB: Final = 1
ELFCOMPRESS_ZSTD: Final = 2
_CHDR: Final = {
    (True, True): Struct("<I4xQ8x"),
    (True, False): Struct(">I4xQ8x"),
    (False, True): Struct("<II4x"),
    (False, False): Struct(">II4x"),
}
_OLD_HEADER: Final = Struct(">4sQ")
# A header claims the size of its section after decompression: debug information grows by a factor of 3 to 20.
_MOST_BYTES: Final = 2 << 30
_MOST_RATIO: Final = 64
_SMALL_BYTES: Final = 1 << 16

_UNSPLIT: Final = frozenset({".debug_cu_index", ".debug_tu_index"})

_LONGEST_LEB: Final = 10

Order = Literal["little", "big"]


class DebugSection:
    """The bytes of one section, with its numbers and texts; reading beyond its end raises an InputError."""

    __slots__ = ("_texts", "data", "file", "name", "order", "size_bytes")

    def __init__(self, file: str, name: str, data: Buffer, order: Order) -> None:
        self.file = file
        self.name = name
        self.data = data
        self.order: Order = order
        self.size_bytes = len(data)
        self._texts = StringTable(data, file, None, f"texts of {name}")

    def damage(self, cause: str, at: int) -> InputError:
        """Return the error for damage at an offset in the section, which may be compressed in the file."""
        return InputError(self.file, f"{self.name}: {cause} at {at:#x}")

    def unsigned(self, at: int, size_bytes: int) -> int:
        """Return a number of fixed size."""
        if not 0 <= at <= self.size_bytes - size_bytes:
            raise self.damage("a number reaches beyond its end", at)
        return int.from_bytes(self.data[at : at + size_bytes], self.order)

    def uleb(self, at: int) -> tuple[int, int]:
        """Return an unsigned LEB128 number and its end."""
        if 0 <= at < self.size_bytes and (byte := self.data[at]) < 0x80:
            return byte, at + 1
        number = 0
        for place in range(max(at, 0), min(at + _LONGEST_LEB, self.size_bytes)):
            byte = self.data[place]
            number |= (byte & 0x7F) << 7 * (place - at)
            if byte < 0x80:
                return number, place + 1
        raise self.damage("a number has no end", at)

    def sleb(self, at: int) -> tuple[int, int]:
        """Return a signed LEB128 number and its end."""
        number, end = self.uleb(at)
        bits = 7 * (end - at)
        return number - (number >> bits - 1 << bits), end

    def text(self, at: int) -> str:
        """Return a text that a zero byte ends; bytes that are not UTF-8 as surrogates."""
        return self._texts.at(at)

    def text_end(self, at: int) -> int:
        """Return the offset after a text."""
        return self._texts.end(at) + 1

    def initial_length(self, at: int) -> tuple[int, int, int]:
        """Return the length that begins a unit or a table, the size of its offsets, and the offset after the length."""
        length_bytes = self.unsigned(at, 4)
        return (self.unsigned(at + 4, 8), 8, at + 12) if length_bytes == 0xFFFFFFFF else (length_bytes, 4, at + 4)


class DebugSections:
    """The debug sections of one file by their names, each decompressed on first use."""

    def __init__(self, image: Image, *, suffix: str = "") -> None:
        self._image = image
        self._suffix = suffix
        self._sections: dict[str, DebugSection] = {}
        self._by_name: dict[str, list[Section]] = {}
        for section in image.sections:
            if section.has_file_bytes:
                self._by_name.setdefault(section.name, []).append(section)
        self.notes: list[Note] = []
        self._relocator: Relocator | None = None

    def __contains__(self, name: str) -> bool:
        return any(key in self._by_name for key in self._names(name))

    def get(self, name: str) -> DebugSection:
        """Return a section such as `.debug_info`; an empty one where the file has none, or of unknown compression."""
        section = self._sections.get(name)
        if section is None:
            sections = next((self._by_name[key] for key in self._names(name) if key in self._by_name), [])
            data: Buffer = b""
            try:
                if len(sections) == 1:
                    data = self._bytes(sections[0])
                elif sections:
                    data = self._joined(sections)
            except UnsupportedError as error:
                self.notes.append(Note("debug-info-unsupported", self._image.file, error.detail))
            shown = sections[0].name if sections else name
            section = DebugSection(self._image.file, shown, data, "little" if self._image.is_little else "big")
            self._sections[name] = section
        return section

    def _joined(self, sections: list[Section]) -> bytes:
        """Join sections of one name: each type unit of a split unit has its own until a package joins them."""
        data = bytearray()
        for section in sections:
            data += self._bytes(section)
            # Headers may claim the same bytes repeatedly.
            if len(data) > min(_MOST_BYTES, len(self._image.data) * _MOST_RATIO):
                raise InputError(self._image.file, f"sections {section.name} overlap too much", section.offset)
        return bytes(data)

    def _bytes(self, section: Section) -> Buffer:
        data = _contents(self._image, section)
        if not self._image.is_relocatable:
            return data
        if self._relocator is None:
            self._relocator = Relocator(self._image, self._bases(), self.notes)
        return self._relocator.applied(section, data)

    def _bases(self) -> dict[int, int]:
        """Return by section index the start of a section in the joined sections of its name."""
        bases: dict[int, int] = {}
        for sections in self._by_name.values():
            if sections[0].name.startswith((".debug", ".zdebug")):
                at = 0
                for section in sections:
                    bases[section.index] = at
                    at += _claim(self._image, section)[1]
        return bases

    def _names(self, name: str) -> tuple[str, ...]:
        # The indexes of a package have no suffix.
        return name + self._suffix, name.replace(".debug", ".zdebug") + self._suffix, *_UNSPLIT.intersection({name})


def _claim(image: Image, section: Section) -> tuple[int | None, int, Buffer]:
    """Return the compression of a section, None where it has none, its claimed size without it, and its bytes."""
    raw = image.section_bytes(section)
    if section.flags & SHF_COMPRESSED:
        header = _CHDR[image.is_64, image.is_little]
        if len(raw) < header.size:
            raise InputError(image.file, f"section {section.index}: its compression header is cut", section.offset)
        kind, size_bytes = header.unpack_from(raw)
        return kind, size_bytes, raw[header.size :]
    if section.name.startswith(".zdebug"):
        mark, size_bytes = _OLD_HEADER.unpack_from(raw) if len(raw) >= _OLD_HEADER.size else (b"", 0)
        return ELFCOMPRESS_ZLIB if mark == b"ZLIB" else 0, size_bytes, raw[_OLD_HEADER.size :]
    return None, len(raw), raw


def _contents(image: Image, section: Section) -> Buffer:
    kind, size_bytes, raw = _claim(image, section)
    if kind is None:
        return raw
    if size_bytes > min(_MOST_BYTES, _SMALL_BYTES + len(raw) * _MOST_RATIO):
        cause = f"section {section.index}: {len(raw)} compressed bytes claim to be {size_bytes}"
        raise InputError(image.file, cause, section.offset)
    if kind not in {ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD}:
        raise UnsupportedError(image.file, f"section {section.index}: unknown compression {kind}", section.offset)
    inflate = _unzlib if kind == ELFCOMPRESS_ZLIB else _unzstd
    try:
        data = inflate(raw, size_bytes)
    except ImportError as error:
        cause = f"section {section.index}: zstd needs Python 3.14 or the package backports.zstd"
        raise UnsupportedError(image.file, cause, section.offset) from error
    except ValueError as error:
        raise InputError(image.file, f"section {section.index}: {error}", section.offset) from error
    if len(data) != size_bytes:
        cause = f"section {section.index} claims {size_bytes} bytes, and has {'more' if data else 'none'}"
        raise InputError(image.file, cause, section.offset)
    return data


def _unzlib(raw: Buffer, size_bytes: int) -> bytes:
    """Inflate up to one byte more than the claimed size: that shows a false claim, and limits its cost."""
    try:
        return zlib.decompressobj().decompress(raw, size_bytes + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def _unzstd(raw: Buffer, size_bytes: int) -> bytes:
    zstd = zstd_module()
    try:
        data: bytes = zstd.ZstdDecompressor().decompress(raw, size_bytes + 1)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    return data
