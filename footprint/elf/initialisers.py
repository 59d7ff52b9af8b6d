"""The functions that run when a file is loaded, by name: what they write at start, and the heap that they take.

Compilers make one for each source file with variables whose values they cannot compute (`_GLOBAL__sub_I_main`);
programs name others (`__attribute__((constructor))`). On x86-64 their code is read: the variables that they refer to,
the string literals and lists that they give to `std::string` and containers, and the sizes that they ask `operator new`
for. What functions that they call take beyond that is not counted.

Heap is that of glibc on 64-bit machines and libstdc++: strings of up to 15 bytes lie in the object itself.
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final

from footprint.elf import abi
from footprint.elf.image import Image, Section
from footprint.elf.instruction import RAX, RDI, RDX, RSI, RSP, Instruction, Operation
from footprint.elf.names import shown_name
from footprint.elf.relocations import addends_at
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.members import NamedTuple, json_members

_MOST_INITIALISERS: Final = 1 << 16
_MOST_DEPTH: Final = 3
_LONGEST_LITERAL: Final = 1 << 16
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
        heap_bytes: The heap that strings, lists and `operator new` in it take and keep, at least; that of an inline
            variable only for the first that makes it. None where its code is not read.
        destructor_count: The number of destructors that it registers for the end of the program.
        heap_of: By vaddr of a variable the part of the heap that is taken for it.
    """

    name: str
    unit: str | None
    code_bytes: int
    variables: tuple[str, ...] = ()
    written_bytes: int = 0
    heap_bytes: int | None = None
    destructor_count: int = 0
    heap_of: Mapping[int, int] = MappingProxyType({})

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
    read = _made_once([reader.read(function, unit) for function, unit in list(named.values())[:_MOST_INITIALISERS]])
    return tuple(sorted(read, key=lambda f: (-(f.heap_bytes or 0), -f.written_bytes, f.name, f.unit or "")))


def _made_once(read: Sequence[SourceInitialiser]) -> Iterator[SourceInitialiser]:
    """Count the heap of a variable for the first that makes it: a guard keeps the others from an inline variable."""
    made: set[int] = set()
    for initialiser in read:
        again_bytes = sum(size for vaddr, size in initialiser.heap_of.items() if vaddr in made)
        made.update(initialiser.heap_of)
        yield initialiser._replace(heap_bytes=initialiser.heap_bytes and initialiser.heap_bytes - again_bytes)


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


class _Effects:
    """What was found in the code of one initialiser.

    Attributes:
        heap_of: The heap that is taken for each variable.
        temporary_bytes: The heap that is taken for what is no variable, such as the keys of a list.
    """

    def __init__(self) -> None:
        self.variables: dict[int, Symbol] = {}
        self.heap_of: Counter[int] = Counter()
        self.temporary_bytes = 0
        self.destructor_count = 0


class _Reader:
    """Reads the code of initialisers of one file."""

    def __init__(self, statics: Statics) -> None:
        self._statics = statics
        self._image = statics.image
        self._can_read = self._image.machine == abi.EM_X86_64 and self._image.is_64
        from footprint.elf.code_reader import CodeReader  # noqa: PLC0415 # few files have initialisers

        self._reader = CodeReader(statics.image, statics.functions)

    def read(self, function: Symbol, unit: int | None) -> SourceInitialiser:
        """Read one initialiser."""
        source = None if unit is None else self._statics.units[unit]
        initialiser = SourceInitialiser(function.name, source, function.size_bytes)
        if not self._can_read:
            return initialiser
        writes = _Effects()
        self._walk(function, writes, 0)
        variables = sorted(writes.variables.values(), key=lambda variable: (-variable.size_bytes, variable.name))
        return initialiser._replace(
            variables=tuple([variable.name for variable in variables]),
            written_bytes=sum(variable.size_bytes for variable in variables),
            heap_bytes=writes.heap_of.total() + writes.temporary_bytes,
            destructor_count=writes.destructor_count,
            heap_of=writes.heap_of,
        )

    def _walk(self, function: Symbol, writes: _Effects, depth: int) -> None:
        """Go through the instructions of a function in their order, and keep the numbers that registers hold."""
        numbers: dict[int, int] = {}
        stored = taken_bytes = 0
        for insn in self._reader.instructions(function.vaddr, function.size_bytes):
            if (
                insn.memory is not None
                and insn.base is None
                and (insn.writes_memory or insn.operation is Operation.ADDRESS)
            ):
                variable = self._add_variable(insn.memory, writes)
                if variable is not None and insn.writes_memory and insn.register == RAX and taken_bytes:
                    # What `operator new` returned is kept there.
                    writes.temporary_bytes -= taken_bytes
                    writes.heap_of[variable.vaddr] += taken_bytes
                    taken_bytes = 0
            if self._image.type == abi.ET_EXEC and insn.operation is Operation.MOVE and insn.immediate is not None:
                # In a program at a fixed address a number may be an address.
                self._add_variable(insn.immediate, writes)
            if insn.writes_memory and insn.base == RSP and insn.immediate is not None:
                stored = insn.immediate
            if insn.jump is not None:
                taken_bytes = self._call(insn, numbers, stored, writes, depth)
                numbers = {number: value for number, value in numbers.items() if number in _KEPT_BY_CALLS}
            elif insn.register is not None and insn.writes >> insn.register & 1:
                numbers.pop(insn.register, None) if (value := _value(insn, numbers)) is None else numbers.update(
                    {insn.register: value}
                )

    def _call(self, insn: Instruction, numbers: Mapping[int, int], stored: int, writes: _Effects, depth: int) -> int:
        """Count what a call takes; return what `operator new` took."""
        if insn.jump is None or insn.jump.is_end:
            return 0
        callee, name = self._called(insn)
        variable = self._variable_at(numbers.get(RDI, 0))
        if name == _AT_EXIT:
            writes.destructor_count += 1
        elif name in _NEW:
            taken_bytes = _chunk_bytes(numbers.get(RDI, 0))
            writes.temporary_bytes += taken_bytes
            return taken_bytes
        elif callee is not None and _INITIALIZER_LIST in name:
            size_bytes = numbers.get(RDX, 0) * _chunk_bytes(self._node_bytes(callee, 0))
            if variable is not None:
                # Its elements take as much as those that the list was made of.
                size_bytes, writes.temporary_bytes = size_bytes + writes.temporary_bytes, 0
            self._take(size_bytes, variable, writes)
        elif name.startswith(_STRINGS):
            length = self._string_bytes(name, numbers, stored)
            self._take(_chunk_bytes(length + 1) if length > _IN_OBJECT_BYTES else 0, variable, writes)
        elif callee is not None and name.startswith(_PARTS) and depth < _MOST_DEPTH:
            self._walk(callee, writes, depth + 1)
        return 0

    def _take(self, size_bytes: int, variable: Symbol | None, writes: _Effects) -> None:
        if variable is None:
            writes.temporary_bytes += size_bytes
        else:
            writes.heap_of[variable.vaddr] += size_bytes

    def _string_bytes(self, name: str, numbers: Mapping[int, int], stored: int) -> int:
        """Return the length of the string that a call makes, as far as it is a literal."""
        if "_M_create" in name:
            return stored
        if "_M_construct" in name and RSI in numbers and RDX in numbers:
            return max(0, numbers[RDX] - numbers[RSI])
        is_constructor = "C1" in name or "C2" in name
        return self._literal_bytes(numbers[RSI]) if is_constructor and RSI in numbers else 0

    def _node_bytes(self, function: Symbol, depth: int) -> int:
        """Return the size that a function, or one that it calls, asks for first."""
        numbers: dict[int, int] = {}
        called = []
        for insn in self._reader.instructions(function.vaddr, function.size_bytes):
            if insn.jump is not None and not insn.jump.is_end:
                callee, name = self._called(insn)
                if name in _NEW:
                    return numbers.get(RDI, 0)
                if callee is not None and callee.vaddr != function.vaddr:
                    called.append(callee)
                numbers = {}
            elif insn.register is not None and (value := _value(insn, numbers)) is not None:
                numbers[insn.register] = value
        if depth < _MOST_DEPTH:
            return next((size for callee in called[:8] if (size := self._node_bytes(callee, depth + 1))), 0)
        return 0

    def _called(self, insn: Instruction) -> tuple[Symbol | None, str]:
        """Return the function that a call leads to and its name; of another file only its name."""
        target = None if insn.jump is None else insn.jump.target
        function = None if target is None else self._statics.functions.at(target)
        if function is not None and function.vaddr == target:
            return function, function.name
        name = self._reader.name_of_callee(insn)
        # A library calls what it exports by way of the loader.
        return self._by_name.get(name) if name.startswith("_Z") else None, name

    @cached_property
    def _by_name(self) -> dict[str, Symbol]:
        return {function.name: function for function in self._statics.functions if not function.is_local}

    def _variable_at(self, vaddr: int) -> Symbol | None:
        variable = self._statics.variable_at(vaddr)
        is_writable = variable is not None and self._image.sections[variable.section_index].is_writable
        return variable if is_writable else None

    def _add_variable(self, vaddr: int, writes: _Effects) -> Symbol | None:
        variable = self._variable_at(vaddr)
        if variable is not None:
            writes.variables[variable.vaddr] = variable
        return variable

    def _literal_bytes(self, vaddr: int) -> int:
        section = self._read_only_at(vaddr)
        if section is None:
            return 0
        start = section.offset + vaddr - section.vaddr
        left = min(_LONGEST_LITERAL, section.offset + section.size_bytes - start)
        return bytes(self._image.data[start : start + left]).find(b"\0")

    def _read_only_at(self, vaddr: int) -> Section | None:
        for s in self._image.sections:
            if s.is_in_memory and s.has_file_bytes and s.vaddr <= vaddr < s.vaddr + s.size_bytes:
                return None if s.is_writable else s
        return None


def _value(insn: Instruction, numbers: Mapping[int, int]) -> int | None:
    """Return the number that an instruction puts into its register, where that is known."""
    if insn.operation is Operation.ADDRESS and insn.base is None and insn.scaled is None:
        return insn.memory
    if insn.operation is not Operation.MOVE:
        return None
    return (
        insn.immediate
        if insn.other is None and insn.memory is None
        else numbers.get(insn.other if insn.other is not None else -1)
    )


def _chunk_bytes(size_bytes: int) -> int:
    """Return what a block of some size takes of the heap of glibc."""
    if size_bytes <= 0:
        return 0
    return max(_LEAST_CHUNK_BYTES, -(-(size_bytes + _CHUNK_HEAD_BYTES) // 16) * 16)
