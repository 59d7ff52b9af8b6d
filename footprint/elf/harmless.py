"""What may happen to the address of a variable so that its copies stay interchangeable. All else is an objection.

- It is moved between registers, and between them and stack slots that nothing else reaches; a number or an index is
  added to it; it is a condition's choice among others.
- It is the base or index of a plain load of the variable's own bytes.
- It is compared with zero, or with an address in the same variable.
- It is an argument of a function that is known by its library and version, and whose contract is listed
  (`footprint.elf.contracts`), or of a function of the same file, which is followed in turn (`footprint.elf.uses`).

So each instruction that is not listed here, each access to memory that is no plain load, each use of a part of an
address, each call that is not known, and code that cannot be decoded, counts as an objection. That is so on x86-64
and arm64: both are decoded to the same instructions.
"""

from enum import IntFlag
from functools import lru_cache, reduce
from operator import or_
from typing import Final

from footprint.elf.instruction import COMPARISONS, FLAGS, RCX, RDI, RSI, Access, Instruction, Operation
from footprint.members import NamedTuple

Holders = frozenset[int]
"""What holds the address: registers by their number, `FLAGS` where the flags come from it, and stack slots.

A slot is 16 times the negative distance of its first byte from the return address, and its size in the lowest bits:
less than 8 bytes are what is left where others were written over it. Of a register whose lowest bytes were, the number
and `_PART` is held.
"""

_PART: Final = 64
_WORD_BYTES: Final = 8
_SIZE_BITS: Final = 4


class Use(IntFlag):
    """What code does with a variable."""

    UNUSED = 0
    """Nothing refers to it."""
    READ = 1
    """It is read, or its address is computed and nothing more."""
    COMPARED = 2
    """Its address is compared with another, or subtracted from one."""
    HANDED_ON = 4
    """Its address is stored, passed on or returned, a number is made of it, or a reference could not be followed."""
    WRITTEN = 8
    """An instruction writes it."""


class Step(NamedTuple):
    """An instruction, with what is known of it where it stands.

    Attributes:
        instruction: The instruction.
        slot: The stack slot that its memory operand is, or begins with; None where that is none that is followed.
        is_own_memory: Whether its memory operand states an address of the variable.
        is_own_number: Whether its immediate is an address of the variable.
        size_bytes: The size of the variable; None where it has no name.
        has_words: Whether the variable holds addresses that are followed like its own.
    """

    instruction: Instruction
    slot: int | None = None
    is_own_memory: bool = False
    is_own_number: bool = False
    size_bytes: int | None = None
    has_words: bool = False


class Effect(NamedTuple):
    """What an instruction does with an address: the use, and what may hold it afterwards, in each of several cases."""

    use: Use
    holders: tuple[Holders, ...]


def effect_of(step: Step, holders: Holders) -> Effect:
    """Return what an instruction that is no jump does with an address that is held, or that it states itself."""
    insn = step.instruction
    use = _of_memory(step, holders)
    if insn.reads & _bits(holders):
        use |= _of_operands(insn, holders)
    is_source, is_kept = _source(step, holders)
    operation, register = insn.operation, insn.register
    if not is_kept or (step.is_own_number and operation not in _WITH_NUMBERS):
        use |= Use.HANDED_ON
    after = _with_slot(_without(holders, insn), step, is_source=is_source and insn.operation is Operation.MOVE)
    after = _with_part(after, holders, insn)
    if operation in COMPARISONS:
        return Effect(use | _comparison(step, holders, is_source=is_source), (after,))
    if operation in _SUMS:
        return _sum(step, holders, after, use, is_source=is_source)
    if operation not in _MOVES:
        return _exchange(insn, holders, after, use) if operation is Operation.EXCHANGE else Effect(use, (after,))
    if insn.access is _WRITE:
        return Effect(use | _stored(step, is_source=is_source), (after,))
    if not is_source or register is None:
        is_certain = operation is not Operation.MOVE_IF or holders.isdisjoint(_of_register(insn))
        return Effect(use, (after,) if is_certain else (after, after | holders & _of_register(insn)))
    if operation is Operation.MOVE_IF:
        # It may leave the register as it was.
        return Effect(use, (after | {register}, after | holders & _of_register(insn)))
    return Effect(use, (after | {register},))


@lru_cache(maxsize=1 << 12)
def _bits(holders: Holders) -> int:
    """Return the bits of the registers that hold the address, or a part of it."""
    return reduce(or_, [1 << (place & _PART - 1) for place in holders if place >= 0], 0)


def _is_full(step: Step) -> bool:
    """Return whether an instruction works on whole addresses; numbers of four bytes are, where they are addresses."""
    insn = step.instruction
    return insn.size_bytes == _WORD_BYTES or (insn.size_bytes == _WORD_BYTES // 2 and step.is_own_number)


# Those of which it is known what they make of an address that is a number in them, in a program at a fixed address.
_WITH_NUMBERS: Final = frozenset(
    {
        Operation.MOVE,
        Operation.MOVE_IF,
        Operation.ADD,
        Operation.SUBTRACT,
        Operation.COMPARE,
    }
)
_MOVES: Final = frozenset({Operation.MOVE, Operation.MOVE_IF, Operation.ADDRESS})
_SUMS: Final = frozenset({Operation.ADD, Operation.SUBTRACT})
_WITHOUT_SOURCE: Final = frozenset({Operation.OTHER, Operation.SCALE, Operation.CLEAR})
# To look a member up takes longer than a comparison.
_ADDRESS, _COPY_STRING, _EXTEND = Operation.ADDRESS, Operation.COPY_STRING, Operation.EXTEND
_NONE, _WRITE = Access.NONE, Access.WRITE
_CHANGING: Final = frozenset({Operation.OTHER, Operation.SCALE, Operation.EXCHANGE, Operation.COMBINE})
# The lowest byte of what these make depends on the lowest bytes of their operands alone.
_BY_PARTS: Final = frozenset({Operation.MOVE, Operation.ADD, Operation.SUBTRACT, Operation.COMBINE})
# Those of which it is known what they make of an address in their operands.
_WITH_OPERANDS: Final = _BY_PARTS - {Operation.COMBINE} | {
    Operation.MOVE_IF,
    Operation.EXTEND,
    Operation.COMPARE,
    Operation.TEST,
    Operation.EXCHANGE,
}


def _with_part(after: Holders, holders: Holders, insn: Instruction) -> Holders:
    """Return what holds a part of the address after an instruction has made a value of one."""
    if insn.operation not in _BY_PARTS or insn.memory is not None or insn.register is None or insn.size_bytes == 1:
        return after
    if not insn.reads & _bits(holders) or not any(
        place >= _PART and insn.reads >> (place - _PART) & 1 for place in holders
    ):
        return after
    return after | {insn.register + _PART} | ({FLAGS} if insn.writes >> FLAGS & 1 else set())


def _of_register(insn: Instruction) -> Holders:
    return frozenset() if insn.register is None else frozenset({insn.register, insn.register + _PART})


def _without(holders: Holders, insn: Instruction) -> Holders:
    """Return what still holds the address once an instruction has written its registers."""
    writes = insn.writes
    if not writes & _bits(holders):
        return holders
    kept = []
    for place in holders:
        number = place - _PART if place >= _PART else place
        if number < 0 or not writes >> number & 1:
            kept.append(place)
        elif insn.keeps >> number & 1:
            kept.append(number + _PART)
    return frozenset(kept)


def _of_operands(insn: Instruction, holders: Holders) -> Use:
    """Return the use of what an instruction reads as a value, but for the two operands that its operation accounts for.

    Whatever it reads beside them is objected to.
    """
    reads = insn.reads
    is_listed = insn.operation in _WITH_OPERANDS
    for place in holders:
        if place >= _PART:
            # Of a register whose lowest byte is another only that may be read, or go on as the lowest of several.
            is_read = reads >> (place - _PART) & 1 and insn.size_bytes != 1
            if is_read and (insn.operation not in _BY_PARTS or insn.memory is not None):
                return Use.HANDED_ON
        elif place >= 0 and reads >> place & 1 and not (is_listed and place in {insn.register, insn.other}):
            return Use.HANDED_ON
    return Use.UNUSED


def _of_memory(step: Step, holders: Holders) -> Use:
    """Return the use by the memory operand of an instruction: its address, and the bytes that lie there."""
    insn = step.instruction
    if insn.operation is _COPY_STRING:
        if RDI in holders:
            return Use.WRITTEN
        use = Use.HANDED_ON if RCX in holders else Use.UNUSED
        if RSI in holders:
            use |= Use.READ | Use.HANDED_ON if step.has_words else Use.READ
        return use
    if insn.memory is None:
        return Use.UNUSED
    is_base, is_scaled = insn.base in holders, insn.scaled in holders
    is_twice = is_base + is_scaled + step.is_own_memory > 1 or (is_scaled and insn.scale != 1)
    is_part = any(number is not None and number + _PART in holders for number in (insn.base, insn.scaled))
    use = Use.HANDED_ON if is_twice or is_part else Use.UNUSED
    if step.slot is not None and insn.access is not _NONE:
        return use or _of_slot(step, step.slot, holders)
    if not (is_base or is_scaled or step.is_own_memory) or insn.access is _NONE:
        return use
    if insn.writes_memory:
        return use | Use.WRITTEN
    return use | Use.READ | _of_bytes(step)


def _of_bytes(step: Step) -> Use:
    """Return what an instruction does with the bytes of the variable that it reads, but for copying them."""
    insn = step.instruction
    is_indexed = insn.scaled is not None or (step.is_own_memory and insn.base is not None)
    is_near = step.size_bytes is None or -step.size_bytes < (insn.memory or 0) < step.size_bytes
    if not is_indexed and not step.is_own_memory and not is_near:
        # Of an address in the variable no byte of it is further away than its size.
        return Use.HANDED_ON
    if not step.has_words or insn.jump is not None or insn.size_bytes < _WORD_BYTES:
        # Whether less is a part of an address is told by where it lies (`footprint.elf.parts`).
        return Use.UNUSED
    if insn.operation is Operation.COMPARE:
        return Use.UNUSED if insn.immediate == 0 else Use.COMPARED
    is_copied = insn.operation in {Operation.MOVE, Operation.MOVE_IF} and insn.size_bytes == _WORD_BYTES
    return Use.UNUSED if is_copied else Use.HANDED_ON


def _of_slot(step: Step, slot: int, holders: Holders) -> Use:
    """Return the use by an instruction that reads a stack slot, where that overlaps one that holds the address."""
    insn = step.instruction
    if insn.access is Access.WRITE:
        return Use.UNUSED
    whole = slot_place(slot)
    is_listed = insn.size_bytes == _WORD_BYTES and insn.operation not in _CHANGING
    for place in holders:
        if place < 0 and _overlaps(place, slot, insn.size_bytes) and not (is_listed and place == whole):
            return Use.HANDED_ON
    return Use.UNUSED


def _source(step: Step, holders: Holders) -> tuple[bool, bool]:
    """Return whether the source of an instruction is the address, and whether the instruction keeps it whole."""
    insn = step.instruction
    operation = insn.operation
    if operation is _ADDRESS:
        is_source = step.is_own_memory or insn.base in holders or insn.scaled in holders
        return is_source, not is_source or insn.size_bytes == _WORD_BYTES
    if insn.writes_memory or (insn.memory is not None and operation in COMPARISONS):
        is_source = insn.register in holders if insn.register is not None else step.is_own_number
    elif step.is_own_number:
        is_source = True
    elif insn.memory is not None:
        is_word = step.has_words and insn.size_bytes == _WORD_BYTES
        is_word = is_word and (step.is_own_memory or insn.base in holders or insn.scaled in holders)
        is_source = is_word or (step.slot is not None and slot_place(step.slot) in holders)
    else:
        is_source = insn.other in holders
    if operation is _EXTEND:
        return is_source, not (is_source and insn.memory is None)
    if operation in _WITHOUT_SOURCE:
        return False, True
    return is_source, not is_source or _is_full(step)


def _comparison(step: Step, holders: Holders, *, is_source: bool) -> Use:
    """Return the use by `cmp` or `test`: only with zero, or with another address in the variable, is it harmless."""
    insn = step.instruction
    place = insn.register if insn.memory is None else None if step.slot is None else slot_place(step.slot)
    first = place in holders
    if not first and not is_source:
        return Use.UNUSED
    if insn.operation is Operation.COMPARE:
        is_whole = insn.size_bytes == _WORD_BYTES
        is_same = first and is_source
        return Use.UNUSED if is_whole and (is_same or (first and insn.immediate == 0)) else Use.COMPARED
    is_itself = insn.memory is None and insn.register == insn.other and insn.size_bytes == _WORD_BYTES
    return Use.UNUSED if is_itself else Use.COMPARED


def _sum(step: Step, holders: Holders, after: Holders, use: Use, *, is_source: bool) -> Effect:
    """Return the effect of `add` or `sub`: an address and a number are an address in the same variable."""
    insn = step.instruction
    target = insn.register
    if insn.writes_memory:
        target = None if step.slot is None else slot_place(step.slot)
    is_target = target is not None and target in holders
    if not is_target and not is_source:
        return Effect(use, (after,))
    if insn.size_bytes != _WORD_BYTES and not step.is_own_number:
        return Effect(use | Use.HANDED_ON, (after,))
    if insn.operation is Operation.SUBTRACT:
        if is_target and is_source:
            return Effect(use, (after - {target},))
        if is_source or insn.immediate is None:
            return Effect(use | Use.COMPARED, (after,))
    elif is_target and is_source:
        return Effect(use | Use.HANDED_ON, (after,))
    if target is None:
        # It is added to what lies in memory.
        return Effect(use | Use.HANDED_ON, (after,))
    return Effect(use, (after | {target, FLAGS} if insn.writes >> FLAGS & 1 else after | {target},))


def _exchange(insn: Instruction, holders: Holders, after: Holders, use: Use) -> Effect:
    """Return the effect of `xchg`."""
    if holders.isdisjoint((insn.register, insn.other)):
        return Effect(use, (after,))
    if insn.other is None or insn.register is None or insn.size_bytes != _WORD_BYTES:
        return Effect(use | Use.HANDED_ON, (after,))
    swapped = {insn.register: insn.other, insn.other: insn.register}
    return Effect(use, (frozenset([swapped.get(place, place) for place in holders]),))


def _stored(step: Step, *, is_source: bool) -> Use:
    return Use.HANDED_ON if is_source and step.slot is None else Use.UNUSED


def _with_slot(after: Holders, step: Step, *, is_source: bool) -> Holders:
    """Return what holds the address after an instruction has written a stack slot."""
    insn, slot = step.instruction, step.slot
    if slot is None or insn.access is not Access.WRITE:
        return after
    kept = set[int]()
    for place in after:
        if place >= 0 or not _overlaps(place, slot, insn.size_bytes):
            kept.add(place)
            continue
        first, past = place >> _SIZE_BITS, (place >> _SIZE_BITS) + (place & _WORD_BYTES * 2 - 1)
        kept.update([slot_place(first, slot - first)] if first < slot else [])
        end = slot + insn.size_bytes
        kept.update([slot_place(end, past - end)] if end < past else [])
    return frozenset(kept | {slot_place(slot)} if is_source else kept)


def slot_place(slot: int, size_bytes: int = _WORD_BYTES) -> int:
    """Return the number of some bytes of the stack in `Holders`."""
    return slot << _SIZE_BITS | size_bytes


def slot_of(place: int) -> int:
    """Return the first byte of a part of the stack that is in `Holders`."""
    return place >> _SIZE_BITS


def _overlaps(place: int, slot: int, size_bytes: int) -> bool:
    first = place >> _SIZE_BITS
    return first < slot + size_bytes and slot < first + (place & _WORD_BYTES * 2 - 1)
