"""The operands of instructions of x86-64: ModRM and what belongs to it, and what becomes of general registers.

Source: Intel SDM volume 2, chapter 2 (instruction format).
"""

from typing import Final

from footprint.elf.instruction import ALL_REGISTERS, FLAGS, Access, Instruction, Operation
from footprint.members import NamedTuple

FLAG_BIT: Final = 1 << FLAGS
ALL_BITS: Final = ALL_REGISTERS | FLAG_BIT
OPERAND_SIZE: Final = 0x66
ELSEWHERE: Final = frozenset({0x64, 0x65, 0x67})
"""The prefixes with which memory is in another segment, or has an address of 32 bits."""
REPEATED_NOT: Final = 0xF2
REPEATED: Final = 0xF3
_LOCKED: Final = 0xF0
# `xor %eax, %eax` and `sub %eax, %eax`.
_CLEARS: Final = frozenset({0x29, 0x2B, 0x31, 0x33})
# After 0F: both operands are written.
_ADDS_AND_EXCHANGES: Final = frozenset({0xC0, 0xC1})
# What an instruction that extends reads: after 0F but for `movslq`.
_EXTENDED_BYTES: Final = {0x63: 4, 0xB6: 1, 0xB7: 2, 0xBE: 1, 0xBF: 2}
_STEPS: Final = frozenset({Operation.ADD, Operation.SUBTRACT})  # `inc` and `dec`
_OF_BYTES: Final = frozenset({0xB6, 0xBE})


class Form(NamedTuple):
    """What an opcode with ModRM does with the two operands that it names.

    Attributes:
        operation: What it does.
        is_to_memory: Whether the operand that may be memory is the one that it writes.
        is_byte: Whether it works on one byte.
        reads_target: Whether it reads the operand that it writes.
        writes_target: Whether it writes any.
        reads: Further registers that it reads.
        writes: Further registers that it writes.
        immediate_bytes: The size of its immediate; 4 is two bytes with the prefix 66.
    """

    operation: Operation
    is_to_memory: bool
    is_byte: bool
    reads_target: bool = True
    writes_target: bool = True
    reads: int = 0
    writes: int = 0
    immediate_bytes: int = 0


class Head(NamedTuple):
    """The beginning of an instruction.

    Attributes:
        start: Its vaddr.
        origin: The vaddr of the first of the bytes that it is decoded from.
        rex: The prefix REX; -1 without one.
        prefixes: The other prefixes.
    """

    start: int
    origin: int
    rex: int
    prefixes: frozenset[int]

    @property
    def size_bytes(self) -> int:
        """The size of operands that are no bytes."""
        if self.rex > 7:
            return 8
        return 2 if OPERAND_SIZE in self.prefixes else 4

    @property
    def is_elsewhere(self) -> bool:
        """Whether memory is in another segment, or has an address of 32 bits."""
        return bool(self.prefixes) and not self.prefixes.isdisjoint(ELSEWHERE)


def signed(raw: bytes, at: int, size_bytes: int) -> int:
    """Return the number that some bytes hold."""
    return int.from_bytes(raw[at : at + size_bytes], "little", signed=True)


def bit(register: int | None) -> int:
    """Return the bit of a register; 0 without one."""
    return 0 if register is None or register < 0 else 1 << register


def of_byte(register: int, rex: int) -> int:
    """Return the register that the number of a register of one byte means: `ah` is a part of rax."""
    return register & 3 if rex < 0 and 4 <= register < 8 else register


class Operands(NamedTuple):
    """What ModRM and the bytes that belong to it name.

    Attributes:
        middle: The middle bits of ModRM, which continue some opcodes.
        base: The base of a memory operand, or the register in its place.
        scaled: The index; None without one.
        scale: What the index is multiplied by.
        displacement: The displacement; None where there is no memory operand.
        register: The register.
        end: The offset of the end of these bytes.
    """

    middle: int
    base: int
    scaled: int | None
    scale: int
    displacement: int | None
    register: int
    end: int


_RIP: Final = -1
_NO_BASE: Final = -2


def operands(raw: bytes, at: int, head: Head) -> Operands:
    """Read ModRM and what belongs to it."""
    modrm, rex = raw[at], max(head.rex, 0)
    at += 1
    mode, low, middle = modrm & 0xC0, modrm & 7, modrm >> 3 & 7
    register, base = middle | (rex & 4) << 1, low | (rex & 1) << 3
    if mode == 0xC0:
        return Operands(middle, base, None, 1, None, register, at)
    scaled, scale = None, 1
    if low == 4:
        sib = raw[at]
        at += 1
        number = sib >> 3 & 7 | (rex & 2) << 2
        if number != 4:
            scaled, scale = number, 1 << (sib >> 6)
        base = sib & 7 | (rex & 1) << 3
        if sib & 7 == 5 and not mode:
            return Operands(middle, _NO_BASE, scaled, scale, signed(raw, at, 4), register, at + 4)
    elif low == 5 and not mode:
        return Operands(middle, _RIP, None, 1, signed(raw, at, 4), register, at + 4)
    if not mode:
        return Operands(middle, base, scaled, scale, 0, register, at)
    if mode == 0x40:
        byte = raw[at]
        return Operands(middle, base, scaled, scale, byte - 256 if byte > 127 else byte, register, at + 1)
    return Operands(middle, base, scaled, scale, signed(raw, at, 4), register, at + 4)


def with_memory(head: Head, parsed: Operands, insn: Instruction) -> Instruction:
    """Return an instruction with the memory that operands name."""
    base, displacement = parsed.base, parsed.displacement or 0
    if head.is_elsewhere:
        reads = insn.reads | insn.keeps | bit(base) | bit(parsed.scaled)
        return insn._replace(operation=Operation.OTHER, size_bytes=0, reads=reads)
    if base == _RIP:
        return insn._replace(memory=displacement + insn.end_vaddr)
    named = None if base < 0 else base
    return insn._replace(memory=displacement, base=named, scaled=parsed.scaled, scale=parsed.scale)


def unlisted(raw: bytes, at: int, head: Head) -> Instruction:
    """Return an instruction of the system, which is taken to read all registers, and to write them and memory."""
    end = head.origin + operands(raw, at, head).end
    return Instruction(head.start, end, access=Access.CHANGE, reads=ALL_BITS, writes=ALL_BITS)


def with_modrm(
    raw: bytes, at: int, head: Head, form: Form, opcode: int, *, is_single: bool = False
) -> Instruction | None:
    """Decode an instruction of general registers; if single, only the operand that may be memory."""
    parsed = operands(raw, at, head)
    at, count, operation = parsed.end, form.immediate_bytes, form.operation
    size_bytes = 1 if form.is_byte else head.size_bytes
    immediate = 1 if is_single and operation in _STEPS else None
    if count:
        count = 2 if count == 4 and size_bytes == 2 else count
        immediate = signed(raw, at, count)
    end = head.origin + at + count
    register = None if is_single else of_byte(parsed.register, head.rex) if form.is_byte else parsed.register
    stated_bytes = _EXTENDED_BYTES[opcode] if operation is Operation.EXTEND else size_bytes
    if parsed.displacement is None:
        insn = Instruction(head.start, end, operation, stated_bytes, register=register, immediate=immediate)
        return None if operation is Operation.ADDRESS else _of_registers(head, parsed, form, opcode, insn, size_bytes)
    reads, writes, keeps = form.reads, form.writes, 0
    # `xadd` and `xchg` write both of their operands.
    writes_both = operation is Operation.EXCHANGE or (opcode in _ADDS_AND_EXCHANGES and not is_single)
    if form.writes_target and (writes_both or not form.is_to_memory):
        writes |= bit(register)
        reads |= bit(register) if form.reads_target else 0
        keeps = bit(register) if size_bytes < 4 else 0
    else:
        reads |= bit(register)
    operation = Operation.OTHER if _LOCKED in head.prefixes else operation
    base, scaled, scale, access = parsed.base, parsed.scaled, parsed.scale, _access(form)
    if base < 0 or head.is_elsewhere:
        insn = Instruction(head.start, end, operation, stated_bytes, register=register, immediate=immediate)
        return with_memory(head, parsed, insn._replace(access=access, reads=reads, writes=writes, keeps=keeps))
    first = (head.start, end, operation, stated_bytes, parsed.displacement, base, scaled, scale)
    return Instruction(*first, register, None, immediate, access, reads, writes, None, keeps)


def _access(form: Form) -> Access:
    """Return what an instruction does with its memory operand."""
    if form.operation is Operation.ADDRESS:
        return Access.NONE
    if not (form.is_to_memory and form.writes_target):
        return Access.READ
    return Access.CHANGE if form.reads_target else Access.WRITE


def _of_registers(
    head: Head, parsed: Operands, form: Form, opcode: int, insn: Instruction, size_bytes: int
) -> Instruction:
    """Return an instruction whose ModRM names no memory."""
    register, is_single = insn.register, insn.register is None
    # `ah` is not the lowest part of its register.
    number = parsed.base if form.is_to_memory else parsed.register
    is_high = form.is_byte and head.rex < 0 and 4 <= number < 8
    other = of_byte(parsed.base, head.rex) if form.is_byte or opcode in _OF_BYTES else parsed.base
    target, copied = (other, register) if form.is_to_memory else (register or 0, other)
    both = bit(target) | bit(copied)
    if form.operation is Operation.EXCHANGE or (opcode in _ADDS_AND_EXCHANGES and not is_single):
        return Instruction(
            *insn[:8], target, copied, insn.immediate, Access.NONE, form.reads | both, form.writes | both
        )
    if opcode in _CLEARS and target == copied and size_bytes > 2:
        writes = bit(target) | FLAG_BIT
        return insn._replace(register=target, other=copied, operation=Operation.CLEAR, writes=writes)
    reads, keeps = form.reads | bit(copied), 0
    if form.reads_target or not form.writes_target:
        reads |= bit(target)
    if form.writes_target and size_bytes < 4:
        keeps = bit(target)
        reads |= keeps if is_high else 0
    writes = form.writes | (bit(target) if form.writes_target else 0)
    return Instruction(*insn[:8], target, copied, insn.immediate, Access.NONE, reads, writes, None, keeps)
