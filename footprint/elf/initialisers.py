"""The functions that run when a file is loaded, by name: what they write at start, and the heap that they take.

Compilers make one for each source file with variables whose values they cannot compute (`_GLOBAL__sub_I_main`);
programs name others (`__attribute__((constructor))`). On x86-64 their code is read: the variables that they refer to,
the string literals and lists that they give to `std::string` and containers, and the sizes that they ask `operator new`
for. What functions that they call take beyond that is not counted.

Heap is that of glibc on 64-bit machines and libstdc++: strings of up to 15 bytes lie in the object itself.
"""

from collections.abc import Container, Iterator, Mapping
from typing import Final, NamedTuple

from footprint.elf import abi
from footprint.elf.image import Image, Section
from footprint.elf.names import shown_name
from footprint.elf.relocations import addends_at
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.elf.x86_code import Instruction
from footprint.elf.x86_functions import CodeReader
from footprint.members import json_members

__all__ = ("SourceInitialiser", "listed_functions", "read_initialisers")

_MOST_INITIALISERS: Final = 1 << 16
_MOST_DEPTH: Final = 3
_LONGEST_LITERAL: Final = 1 << 16
_RDX, _RSP, _RSI, _RDI = 2, 4, 6, 7
_KEPT_BY_CALLS: Final = frozenset({3, 5, 12, 13, 14, 15})
# What compilers split off the function of a source file.
_PARTS: Final = ("_Z41__static_initialization_and_destruction_0", "__cxx_global_var_init")
_NEW: Final = frozenset({"_Znwm", "_Znam", "malloc"})
_STRINGS: Final = ("_ZNSt7__cxx1112basic_string", "_ZNSsC", "_ZNSbI")
_INITIALIZER_LIST: Final = "St16initializer_list"
_AT_EXIT: Final = "__cxa_atexit"
_IN_OBJECT_BYTES: Final = 15
_CHUNK_HEAD_BYTES: Final = 8
_LEAST_CHUNK_BYTES: Final = 32


@json_members("symbol=name name=shown_name unit code_bytes written_bytes variables heap_bytes destructor_count")
class SourceInitialiser(NamedTuple):
    """A function that runs at start.

    Attributes:
        name: Its linker name.
        unit: The source file; None where the symbol table does not name it.
        code_bytes: The size of its code.
        variables: The linker names of the variables that it writes or makes, the largest first.
        written_bytes: Their size.
        heap_bytes: The heap that strings, lists and `operator new` in it take and keep, at least; None where its code
            is not read.
        destructor_count: The number of destructors that it registers for the end of the program.
    """

    name: str
    unit: str | None
    code_bytes: int
    variables: tuple[str, ...] = ()
    written_bytes: int = 0
    heap_bytes: int | None = None
    destructor_count: int = 0

    @property
    def shown_name(self) -> str:
        """Return the name to show."""
        return shown_name(self.name)


def read_initialisers(statics: Statics) -> tuple[SourceInitialiser, ...]:
    """Read the initialisers of a file, those with the most heap and variables first.

    Raises:
        InputError: Where a table of the file is damaged.
    """
    named = dict(statics.initialiser_functions)
    for vaddr in listed_functions(statics.image, {abi.SHT_INIT_ARRAY}):
        function = statics.functions.at(vaddr)
        if function is not None and function.vaddr == vaddr and function.name not in _OF_START_UP:
            named.setdefault(vaddr, (function, None))
    reader = _Reader(statics)
    found = [reader.read(function, unit) for function, unit in list(named.values())[:_MOST_INITIALISERS]]
    return tuple(sorted(found, key=lambda one: (-(one.heap_bytes or 0), -one.written_bytes, one.name, one.unit or "")))


_OF_START_UP: Final = frozenset({"frame_dummy", "_init", "init_cacheinfo"})


def listed_functions(image: Image, kinds: Container[int]) -> Iterator[int]:
    """Return the vaddrs in sections of some types, such as .init_array: addends of their relocations, or else words."""
    for section in image.sections:
        if section.type not in kinds or not section.is_in_memory:
            continue
        vaddrs = range(section.vaddr, section.vaddr + section.size_bytes, image.word_bytes)
        addends = addends_at(image, vaddrs)
        raw, order = bytes(image.section_bytes(section)), "little" if image.is_little else "big"
        for vaddr in vaddrs:
            at = vaddr - section.vaddr
            word = int.from_bytes(raw[at : at + image.word_bytes], "little" if order == "little" else "big")
            yield addends.get(vaddr) or word


class _Found:
    """What was found in the code of one initialiser."""

    def __init__(self) -> None:
        self.variables: dict[int, Symbol] = {}
        self.heap_bytes = 0
        self.destructor_count = 0


class _Reader:
    """Reads the code of initialisers of one file."""

    def __init__(self, statics: Statics) -> None:
        self._statics = statics
        self._image = statics.image
        self._can_read = self._image.machine == abi.EM_X86_64 and self._image.is_64
        self._reader = CodeReader(statics.image, statics.functions)

    def read(self, function: Symbol, unit: int | None) -> SourceInitialiser:
        """Read one initialiser."""
        source = None if unit is None else self._statics.units[unit]
        known = SourceInitialiser(function.name, source, function.size_bytes)
        if not self._can_read:
            return known
        found = _Found()
        self._walk(function, found, 0)
        variables = sorted(found.variables.values(), key=lambda one: (-one.size_bytes, one.name))
        return known._replace(
            variables=tuple([one.name for one in variables]),
            written_bytes=sum(one.size_bytes for one in variables),
            heap_bytes=found.heap_bytes,
            destructor_count=found.destructor_count,
        )

    def _walk(self, function: Symbol, found: _Found, depth: int) -> None:
        """Go through the instructions of a function in their order, and keep the numbers that registers hold."""
        held: dict[int, int] = {}
        stored = 0
        for one in self._reader.instructions(function.vaddr, function.size_bytes):
            if one.memory is not None and one.base is None and (one.writes_memory or one.is_address):
                self._add_variable(one.memory, found)
            if self._image.type == abi.ET_EXEC and one.copies and one.immediate is not None:
                # In a program at a fixed address a number may be an address.
                self._add_variable(one.immediate, found)
            if one.writes_memory and one.base == _RSP and one.immediate is not None:
                stored = one.immediate
            if one.jump is not None:
                self._call(one, held, stored, found, depth)
                held = {number: value for number, value in held.items() if number in _KEPT_BY_CALLS}
            elif one.register is not None and not one.writes_memory and not one.compares:
                held.pop(one.register, None) if (value := _value(one, held)) is None else held.update(
                    {one.register: value}
                )

    def _call(self, one: Instruction, held: Mapping[int, int], stored: int, found: _Found, depth: int) -> None:
        if one.jump is None or one.jump.is_end:
            return
        callee, name = self._called(one)
        if name == _AT_EXIT:
            found.destructor_count += 1
        elif name in _NEW:
            found.heap_bytes += _chunk_bytes(held.get(_RDI, 0))
        elif callee is not None and _INITIALIZER_LIST in name:
            found.heap_bytes += held.get(_RDX, 0) * _chunk_bytes(self._node_bytes(callee, 0))
        elif name.startswith(_STRINGS):
            length = self._string_bytes(name, held, stored)
            found.heap_bytes += _chunk_bytes(length + 1) if length > _IN_OBJECT_BYTES else 0
        elif callee is not None and name.startswith(_PARTS) and depth < _MOST_DEPTH:
            self._walk(callee, found, depth + 1)

    def _string_bytes(self, name: str, held: Mapping[int, int], stored: int) -> int:
        """Return the length of the string that a call makes, as far as it is a literal."""
        if "_M_create" in name:
            return stored
        if "_M_construct" in name and _RSI in held and _RDX in held:
            return max(0, held[_RDX] - held[_RSI])
        is_constructor = "C1" in name or "C2" in name
        return self._literal_bytes(held[_RSI]) if is_constructor and _RSI in held else 0

    def _node_bytes(self, function: Symbol, depth: int) -> int:
        """Return the size that a function, or one that it calls, asks for first."""
        held: dict[int, int] = {}
        called = []
        for one in self._reader.instructions(function.vaddr, function.size_bytes):
            if one.jump is not None and not one.jump.is_end:
                callee, name = self._called(one)
                if name in _NEW:
                    return held.get(_RDI, 0)
                if callee is not None and callee.vaddr != function.vaddr:
                    called.append(callee)
                held = {}
            elif one.register is not None and (value := _value(one, held)) is not None:
                held[one.register] = value
        if depth < _MOST_DEPTH:
            return next((size for each in called[:8] if (size := self._node_bytes(each, depth + 1))), 0)
        return 0

    def _called(self, one: Instruction) -> tuple[Symbol | None, str]:
        """Return the function that a call leads to and its name; of another file only its name."""
        target = None if one.jump is None else one.jump.target
        function = None if target is None else self._statics.functions.at(target)
        if function is not None and function.vaddr == target:
            return function, function.name
        return None, self._reader.name_of_callee(one)

    def _add_variable(self, vaddr: int, found: _Found) -> None:
        variable = self._statics.variable_at(vaddr)
        if variable is not None and self._image.sections[variable.section_index].is_writable:
            found.variables[variable.vaddr] = variable

    def _literal_bytes(self, vaddr: int) -> int:
        section = self._read_only_at(vaddr)
        if section is None:
            return 0
        start = section.offset + vaddr - section.vaddr
        left = min(_LONGEST_LITERAL, section.offset + section.size_bytes - start)
        return bytes(self._image.data[start : start + left]).find(b"\0")

    def _read_only_at(self, vaddr: int) -> Section | None:
        for one in self._image.sections:
            if one.is_in_memory and one.has_file_bytes and one.vaddr <= vaddr < one.vaddr + one.size_bytes:
                return None if one.is_writable else one
        return None


def _value(one: Instruction, held: Mapping[int, int]) -> int | None:
    """Return the number that an instruction puts into its register, where that is known."""
    if one.is_address and one.base is None and one.scaled is None:
        return one.memory
    if not one.copies:
        return None
    return (
        one.immediate
        if one.other is None and one.memory is None
        else held.get(one.other if one.other is not None else -1)
    )


def _chunk_bytes(size_bytes: int) -> int:
    """Return what a block of some size takes of the heap of glibc."""
    if size_bytes <= 0:
        return 0
    return max(_LEAST_CHUNK_BYTES, -(-(size_bytes + _CHUNK_HEAD_BYTES) // 16) * 16)
