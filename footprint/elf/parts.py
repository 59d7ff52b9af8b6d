"""Whether code reads a part of an address that a table holds: the lowest four bytes of one tell copies apart.

Where a table holds numbers beside addresses, the place of what is read tells: code reaches it from the start of the
table, or from the places in it that it states, by the numbers that it adds, and by indexes, each a multiple of some
number.
"""

from collections.abc import Collection
from math import gcd
from typing import Final

from footprint.elf.code_reader import Code
from footprint.elf.harmless import Holders, Step, slot_place
from footprint.elf.instruction import Access, Instruction, Operation
from footprint.members import NamedTuple

_WORD_BYTES: Final = 8
_MOST_STEPS: Final = 128


class _Read(NamedTuple):
    """Bytes of a table that an instruction reads.

    Attributes:
        vaddr: The instruction.
        offset: Their distance from the start of the table, or from an address in it that a register holds.
        size_bytes: How many.
        stride: What an index is a multiple of; 0 without one.
        is_stated: Whether the distance is from the start.
    """

    vaddr: int
    offset: int
    size_bytes: int
    stride: int
    is_stated: bool


class PartReads:
    """Collects what code reads of a table by its address, but not what it does with the addresses that it holds.

    Args:
        start_vaddr: The first byte of the table; None where only what other tables hold leads there.
        words: The offsets of the addresses that it holds.
    """

    def __init__(self, start_vaddr: int | None, words: Collection[int]) -> None:
        self._start = start_vaddr
        self._words = words
        self._starts = {0}
        self._stride = 0
        self._reads = set[_Read]()

    def add(self, step: Step, holders: Holders, code: Code) -> None:
        """Add what an instruction does with the address, which it states, or which is held."""
        insn = step.instruction
        if step.is_own_number and insn.immediate is not None and self._start is not None:
            self._starts.add(insn.immediate - self._start)
        if insn.memory is not None and (step.is_own_memory or not holders.isdisjoint((insn.base, insn.scaled))):
            self._add_access(step, holders, code)
        if insn.operation not in {Operation.ADD, Operation.SUBTRACT}:
            return
        if insn.memory is not None:
            is_sum = insn.register in holders or (step.slot is not None and slot_place(step.slot) in holders)
            self._stride = gcd(self._stride, insn.immediate or 1) if is_sum else self._stride
        elif insn.other is None and insn.register in holders:
            self._stride = gcd(self._stride, insn.immediate or 1)
        elif (insn.register in holders) != (insn.other in holders) or step.is_own_number:
            index = insn.other if insn.register in holders else insn.register
            self._stride = gcd(self._stride, _stride_of(code, insn, index))

    def _add_access(self, step: Step, holders: Holders, code: Code) -> None:
        """Add the address that an instruction computes, or the bytes that it reads there."""
        insn = step.instruction
        indexes = [
            (each, number) for each, number in ((insn.base, 1), (insn.scaled, insn.scale)) if each not in holders
        ]
        stride = gcd(*[number * _stride_of(code, insn, each) for each, number in indexes])
        offset = (insn.memory or 0) - (self._start or 0 if step.is_own_memory else 0)
        is_known = self._start is not None or not step.is_own_memory
        if insn.operation is Operation.ADDRESS:
            if step.is_own_memory and is_known:
                self._starts.add(offset)
            self._stride = gcd(self._stride, stride, 0 if step.is_own_memory else offset)
        elif is_known and insn.access is not Access.NONE and insn.jump is None:
            self._reads.add(_Read(insn.vaddr, offset, max(insn.size_bytes, 1), stride, step.is_own_memory))

    def of_part(self) -> int | None:
        """Return the vaddr of an instruction that may read a part of an address; None where none does."""
        for one in sorted(self._reads):
            stride = one.stride if one.is_stated else gcd(self._stride, one.stride)
            for start in (0,) if one.is_stated else self._starts:
                if any(_is_part(start + one.offset - word, one.size_bytes, stride) for word in self._words):
                    return one.vaddr
        return None


def _is_part(distance: int, size_bytes: int, stride: int) -> bool:
    """Return whether bytes at a distance from an address, or at a multiple of a stride from there, may be a part."""
    distance = distance % stride if stride else distance
    is_whole = not distance and size_bytes == _WORD_BYTES and not stride % _WORD_BYTES
    overlaps = -size_bytes < distance < _WORD_BYTES or (stride and distance + size_bytes > stride)
    return bool(overlaps) and not is_whole


def _stride_of(code: Code, end: Instruction, register: int | None) -> int:
    """Return a number that what a register has before an instruction is a multiple of; 0 where that is always zero."""
    if register is None:
        return 0
    stride, todo, seen = 0, [(vaddr, register, 1) for vaddr in code.before(end.vaddr)], set[tuple[int, int, int]]()
    if not todo:
        return 1
    while todo and stride != 1:
        key = vaddr, wanted, factor = todo.pop()
        if key in seen:
            continue
        seen.add(key)
        if len(seen) > _MOST_STEPS:
            return 1
        insn, before = code.instructions[vaddr], code.before(vaddr)
        is_call = insn.jump is not None and insn.jump.is_call
        if not is_call and not insn.writes >> wanted & 1:
            found, sources = None, [(wanted, factor)]
        else:
            found, sources = (factor, []) if is_call else _made_of(insn, wanted, factor)
        stride = stride if found is None else gcd(stride, found)
        todo += [(earlier, source, each) for earlier in before for source, each in sources]
        if not before:
            # What a function begins with may be any number.
            stride = gcd(stride, *[each for _, each in sources])
    return stride


def _made_of(insn: Instruction, register: int, factor: int) -> tuple[int | None, list[tuple[int, int]]]:
    """Return the number that an instruction puts into a register, or adds, and the registers, each with a factor."""
    number = insn.immediate
    if insn.writes == insn.reads == 1 << register and insn.register is None and insn.memory is None:
        # `cltq` extends eax to rax, and names no register.
        return None, [(register, factor)]
    if insn.register != register or (insn.memory is not None and insn.operation is not Operation.ADDRESS):
        return factor, []
    if insn.operation is Operation.CLEAR:
        return 0, []
    if insn.operation is Operation.SCALE and number is not None:
        source = (register, factor << number) if insn.other is None else (insn.other, factor * number)
        return None, [source]
    if insn.operation in {Operation.MOVE, Operation.EXTEND} and insn.size_bytes >= 4:
        return (None, [(insn.other, factor)]) if insn.other is not None else (factor * (number or 1), [])
    return _summed(insn, register, factor)


def _summed(insn: Instruction, register: int, factor: int) -> tuple[int | None, list[tuple[int, int]]]:
    """Return the number that an instruction adds, and the registers, each with a factor."""
    if insn.operation is Operation.ADDRESS:
        sources = [(insn.base, factor), (insn.scaled, factor * insn.scale)]
        if insn.base == insn.scaled:
            sources = [(insn.base, factor * (insn.scale + 1))]
        return factor * (insn.memory or 0), [(each, its) for each, its in sources if each is not None]
    if insn.operation not in {Operation.ADD, Operation.SUBTRACT}:
        return factor, []
    if insn.other is None:
        return factor * (insn.immediate or 1), [(register, factor)]
    return None, [(register, 2 * factor)] if insn.other == register else [(register, factor), (insn.other, factor)]
