"""The debug sections of an object file with its relocations applied, as the linker would write them.

Source: the processor supplements of the System V ABI (x86-64 1.0, i386 1.1, AArch64 2024Q3, Arm 2024Q3, RISC-V 1.0,
LoongArch 2.30, 64-bit PowerPC V2 1.9, PowerPC 1.0, s390x 1.6, MIPS).
"""

from collections.abc import Callable
from struct import Struct, error
from typing import Final, NamedTuple

from footprint.dwarf.places import VariablePlaces
from footprint.elf import abi
from footprint.elf.dynamic import numbers
from footprint.elf.image import Buffer, Image, Section
from footprint.elf.relocations import symbol_and_type
from footprint.elf.symbols import COMMON, symbol_table_in
from footprint.errors import InputError, Note


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
