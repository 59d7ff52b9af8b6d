"""Reads code of x86-64 as instructions, each by its shape: the bytes up to ModRM or the index.

They decide all of an instruction but its numbers. A shape is decoded once, and an instruction is built where somebody
looks at it: most are only passed over.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import compress, count, repeat
from operator import and_
from struct import Struct
from typing import Any, Final

from footprint.elf.image import Buffer
from footprint.elf.instruction import FLAGS, Instruction, Jump
from footprint.elf.x86_code import decode, extent
from footprint.members import NamedTuple

# Bits behind those of the registers.
JUMPS: Final = 1 << FLAGS + 1
"""It jumps, calls or returns."""
STATES: Final = 1 << FLAGS + 2
"""Its memory operand has no base: it states an address."""
NUMBERED: Final = 1 << FLAGS + 3
"""It has a displacement or an immediate, which is an address in some programs."""
PADDING: Final = 1 << FLAGS + 4
"""It is a `nop`."""
_NOP_OF_BYTES: Final = (b"\x90", b"\x0f\x1f")
_MOST_SHAPES: Final = 1 << 15
_LONGEST_BYTES: Final = 15
_MEMORY, _IMMEDIATE, _JUMP = (Instruction._fields.index(name) for name in ("memory", "immediate", "jump"))
_READS: Final = {size: Struct(f"<{code}").unpack_from for size, code in zip((1, 2, 4, 8), "bhiq", strict=True)}


class _Shape(NamedTuple):
    """All instructions that begin with the same bytes, up to ModRM or the index.

    Attributes:
        size_bytes: The size of the instruction.
        left_bytes: The size of what follows these bytes.
        marks: The bits of the registers that are its operands, also in its address, and of what it is.
        like: One of them, at 0, with zeros for the numbers.
        displacement: Reads the displacement that follows; None without one.
        displacement_bytes: Its size.
        is_relative: Whether it counts from the end of the instruction.
        number: Reads the immediate, or the distance of a jump, that follows it; None without one.
    """

    size_bytes: int
    left_bytes: int
    marks: int
    like: Instruction
    displacement: Any
    displacement_bytes: int
    is_relative: bool
    number: Any


# By the first byte a shape, or the same by the next byte, and so on.
_SHAPES: Final[dict[int, Any]] = {}
_LEARNED: Final = count()


class Instructions:
    """The instructions of code, which ascend, up to its end or to what is no known instruction.

    Attributes:
        vaddrs: Their vaddrs.
        marks: Of each the bits of the registers that are its operands, also in its address, and of what it is.
        end_vaddr: The end of the last one.
    """

    def __init__(self, code: Buffer, vaddr: int) -> None:
        """Take code that begins at a vaddr."""
        self._raw = bytes(code)
        self._vaddr = vaddr
        self._shapes = _shapes(self._raw, vaddr)
        self._built: dict[int, Instruction] = {}
        self.vaddrs = tuple(self._shapes)
        self.marks = [shape.marks for shape in self._shapes.values()]
        self.end_vaddr = vaddr if not self.vaddrs else self.vaddrs[-1] + self._shapes[self.vaddrs[-1]].size_bytes

    def __iter__(self) -> Iterator[Instruction]:
        """Return all of them."""
        return map(self.__getitem__, self.vaddrs)

    def __contains__(self, vaddr: object) -> bool:
        """Return whether one begins at a vaddr."""
        return vaddr in self._shapes

    def __getitem__(self, vaddr: int) -> Instruction:
        """Return the one at a vaddr."""
        built = self._built.get(vaddr)
        if built is None:
            built = self._built[vaddr] = _instruction(self._raw, self._vaddr, vaddr, self._shapes[vaddr])
        return built

    def get(self, vaddr: int) -> Instruction | None:
        """Return the one at a vaddr; None where none begins."""
        return self[vaddr] if vaddr in self._shapes else None

    def marked(self, bits: int) -> list[int]:
        """Return the vaddrs of those that have one of some marks."""
        return [*compress(self.vaddrs, map(and_, self.marks, repeat(bits)))]

    @cached_property
    def kinds(self) -> Mapping[int, Instruction]:
        """Some of them that have all that they do, and all their registers, but no vaddrs and no numbers."""
        shapes = self._shapes.values()
        return {key: shape.like for key, shape in dict(zip(map(id, shapes), shapes, strict=True)).items()}

    def of_kinds(self, is_meant: Callable[[Instruction], bool]) -> list[Instruction]:
        """Return those of some kinds."""
        meant = {key for key, like in self.kinds.items() if is_meant(like)}
        are_meant = map(meant.__contains__, map(id, self._shapes.values()))
        return [*map(self.__getitem__, compress(self.vaddrs, are_meant))]

    @cached_property
    def jumps(self) -> Mapping[int, Jump]:
        """The jumps, calls and returns, by their vaddrs."""
        jumps = {}
        for vaddr in self.marked(JUMPS):
            shape = self._shapes[vaddr]
            jump, end = shape.like.jump, vaddr + shape.size_bytes
            if jump is not None and shape.number is not None:
                jump = _jump(jump, end + shape.number(self._raw, end - self._vaddr - shape.left_bytes)[0])
            if jump is not None:
                jumps[vaddr] = jump
        return jumps


class ListedInstructions:
    """Instructions that are all known, as `Instructions` has them.

    Attributes:
        vaddrs: Their vaddrs.
        end_vaddr: The end of the last one.
    """

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        """Take the instructions, which ascend."""
        self._of = {instruction.vaddr: instruction for instruction in instructions}
        self.vaddrs = tuple(self._of)
        self.end_vaddr = self._of[self.vaddrs[-1]].end_vaddr if self._of else 0

    def __iter__(self) -> Iterator[Instruction]:
        """Return all of them."""
        return iter(self._of.values())

    def __contains__(self, vaddr: object) -> bool:
        """Return whether one begins at a vaddr."""
        return vaddr in self._of

    def __getitem__(self, vaddr: int) -> Instruction:
        """Return the one at a vaddr."""
        return self._of[vaddr]

    def get(self, vaddr: int) -> Instruction | None:
        """Return the one at a vaddr; None where none begins."""
        return self._of.get(vaddr)

    def marked(self, bits: int) -> list[int]:
        """Return the vaddrs of those that have one of some marks."""
        return [*compress(self.vaddrs, map(and_, self.marks, repeat(bits)))]

    @property
    def kinds(self) -> Mapping[int, Instruction]:
        """All of them."""
        return self._of

    def of_kinds(self, is_meant: Callable[[Instruction], bool]) -> list[Instruction]:
        """Return those of some kinds."""
        return [*filter(is_meant, self)]

    @cached_property
    def marks(self) -> list[int]:
        """The marks of each."""
        return [_marks(insn) for insn in self]

    @cached_property
    def jumps(self) -> Mapping[int, Jump]:
        """The jumps, calls and returns, by their vaddrs."""
        return {insn.vaddr: insn.jump for insn in self if insn.jump is not None}


def _shapes(raw: bytes, vaddr: int) -> dict[int, _Shape]:
    """Find the shapes of the instructions of code that begins at a vaddr, by their vaddrs."""
    shapes: dict[int, _Shape] = {}
    at, size_bytes = 0, len(raw)
    node: Any
    # Behind the end no byte is there.
    with suppress(IndexError):
        while at < size_bytes:
            node, past = _SHAPES, at
            try:
                while type(node) is dict:
                    node = node[raw[past]]
                    past += 1
            except KeyError:
                node = _learned(raw, at)
            if node is None or at + node[0] > size_bytes:
                break
            shapes[vaddr + at] = node
            at += node[0]
    return shapes


def _instruction(raw: bytes, origin: int, vaddr: int, shape: _Shape) -> Instruction:
    """Build the instruction at a vaddr; the first of the bytes has the vaddr `origin`."""
    size_bytes, left, _, like, displacement, displacement_bytes, is_relative, number = shape
    end = vaddr + size_bytes
    members = [vaddr, end, *like[2:]]
    if left:
        past = end - origin - left
        if displacement is not None:
            members[_MEMORY] = displacement(raw, past)[0] + (end if is_relative else 0)
        if number is not None:
            (value,) = number(raw, past + displacement_bytes)
            if like.jump is None:
                members[_IMMEDIATE] = value
            else:
                members[_JUMP] = _jump(like.jump, end + value)
    # The constructor of a named tuple is Python code.
    return tuple.__new__(Instruction, members)


def _jump(like: Jump, target: int) -> Jump:
    return tuple.__new__(Jump, (target, *like[1:]))


def _learned(raw: bytes, at: int) -> _Shape | None:
    """Decode the shape of an instruction, and keep it by its bytes."""
    past, displacement_bytes = extent(raw, at)
    insn = decode(raw[at:past] + bytes(_LONGEST_BYTES), 0)
    if insn is None:
        return None
    left = insn.end_vaddr - (past - at)
    has_number = insn.immediate is not None or (insn.jump is not None and insn.jump.target is not None)
    shape = _Shape(
        insn.end_vaddr,
        left,
        _marks(insn) | (PADDING if raw[at:past].lstrip(b"\x66\x2e").startswith(_NOP_OF_BYTES) else 0),
        insn,
        _READS[displacement_bytes] if insn.memory is not None and displacement_bytes else None,
        displacement_bytes,
        insn.memory == insn.end_vaddr and insn.base is None and insn.scaled is None,
        _READS[left - displacement_bytes] if has_number and left > displacement_bytes else None,
    )
    if next(_LEARNED) % _MOST_SHAPES == 0:
        _SHAPES.clear()
    if past - at <= _LONGEST_BYTES:
        node = _SHAPES
        for byte in raw[at : past - 1]:
            node = node.setdefault(byte, {})
        node[raw[past - 1]] = shape
    return shape


def _marks(insn: Instruction) -> int:
    """Return the bits of the registers that are operands of an instruction, and of what it is."""
    marks = insn.reads | insn.writes
    for register in (insn.base, insn.scaled):
        marks |= 0 if register is None else 1 << register
    marks |= 0 if insn.jump is None else JUMPS
    if insn.memory is not None:
        marks |= NUMBERED if insn.base is not None else NUMBERED | STATES
    return marks if insn.immediate is None else marks | NUMBERED
