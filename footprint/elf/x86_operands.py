"""The operands of instructions of x86-64: ModRM and what belongs to it, and what becomes of general registers.

Of instructions that work on vector registers, and of those with the prefix VEX, only this is told.

Source: Intel SDM volume 2, chapter 2 (instruction format, VEX) and appendix A (opcode maps).
"""

from collections.abc import Mapping
from typing import Final

from footprint.elf.instruction import ALL_REGISTERS, FLAGS, RAX, RCX, RDX, Access, Instruction, Operation
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
_RIP: Final = -1
_NO_BASE: Final = -2
# By opcode map (0F, 0F 38, 0F 3A): those that may read memory, and those that write it.
_LOADS: Final = {
    1: frozenset(
        {
            *(0x10, 0x12, 0x14, 0x15, 0x16, 0x28, 0x2A, *range(0x2C, 0x30), *range(0x50, 0x77), 0x7C, 0x7D, 0x7E),
            *(0xC2, 0xC4, 0xC5, 0xC6, *range(0xD0, 0xF7), *range(0xF8, 0xFF)),
        }
    )
    - {0xD6, 0xE7},
    2: frozenset(
        {
            *(*range(0x0C), 0x10, 0x14, 0x15, 0x17, *range(0x1C, 0x1F), *range(0x20, 0x26), *range(0x28, 0x2C)),
            *(*range(0x30, 0x42), *range(0xC8, 0xCE), 0xCF, *range(0xDB, 0xE0)),
        }
    ),
    3: frozenset({*range(0x08, 0x10), 0x20, 0x21, 0x22, *range(0x40, 0x43), 0x44, *range(0x60, 0x64), 0xCC, 0xDF}),
}
_VEX_LOADS: Final = {
    1: _LOADS[1],
    2: _LOADS[2]
    | {
        *(*range(0x0C, 0x10), 0x13, 0x16, 0x18, 0x19, 0x1A, 0x2C, 0x2D, *range(0x45, 0x48), *range(0x50, 0x54)),
        *(0x58, 0x59, 0x5A, 0x78, 0x79, 0x8C, *range(0x90, 0x94), *range(0x96, 0xA0), *range(0xA6, 0xB0)),
        *range(0xB4, 0xC0),
    },
    3: _LOADS[3]
    | {
        *(*range(3), *range(4, 7), 0x18, 0x38, 0x46, 0x48, 0x49, *range(0x4A, 0x4D), *range(0x5C, 0x60)),
        *(*range(0x68, 0x70), *range(0x78, 0x80), 0xCE, 0xCF),
    },
}
_STORES: Final = {
    1: frozenset({0x11, 0x13, 0x17, 0x29, 0x2B, 0x7F, 0xD6, 0xE7}),
    2: frozenset[int](),
    3: frozenset({0x14, 0x15, 0x16, 0x17}),
}
_VEX_STORES: Final = {1: _STORES[1], 2: frozenset({0x2E, 0x2F, 0x8E}), 3: _STORES[3] | {0x19, 0x1D, 0x39}}
_WITH_IMMEDIATE: Final = frozenset({0x70, 0x71, 0x72, 0x73, 0xC2, 0xC4, 0xC5, 0xC6})
_GATHERS: Final = range(0x90, 0x94)
_KEY_LOCKER: Final = range(0xD8, 0xE0)  # with the prefix F3
_MOVE_FROM: Final = 0x7E
_CONVERT_FROM: Final = 0x2A
_TO_VECTORS: Final = frozenset({0x6E, 0xC4})
_FROM_VECTORS: Final = frozenset({0x2C, 0x2D, 0x50, 0xC5, 0xD7})
_ONLY_SCALAR: Final = frozenset({0x2C, 0x2D})
_FLAGS_IN_0F: Final = frozenset({0x2E, 0x2F})
_TEST_IN_38: Final = 0x17
_INSERTS: Final = frozenset({0x20, 0x22})
_EXTRACTS: Final = frozenset({0x14, 0x15, 0x16, 0x17})
_STRING_COMPARISONS: Final = range(0x60, 0x64)
# `andn`, the group of `blsr`, `bzhi`, `pext` and `pdep`, `mulx`, and shifts: general registers in map 0F 38 with VEX.
_BITS: Final = frozenset({0xF2, 0xF3, 0xF5, 0xF6, 0xF7})
_BLSR: Final = 0xF3
_MULX: Final = 0xF6
_ROTATE: Final = 0xF0  # in map 0F 3A
_FENCES: Final = frozenset({5, 6, 7})
_STATE: Final = 0xAE
_ZERO: Final = 0x77
_XMM_BYTES, _YMM_BYTES = 16, 32


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


def vector_instruction(
    raw: bytes,
    at: int,
    head: Head,
    which: int,
    opcode: int,
    *,
    size_bytes: int = _XMM_BYTES,
    loads: Mapping[int, frozenset[int]] = _LOADS,
    stores: Mapping[int, frozenset[int]] = _STORES,
) -> Instruction | None:
    """Decode an instruction of vector registers from ModRM on; `which` is the number of its opcode map."""
    is_store = opcode in stores[which]
    if not is_store and opcode not in loads[which]:
        return None
    if which == 2 and opcode in _KEY_LOCKER and REPEATED in head.prefixes:
        return None
    parsed = operands(raw, at, head)
    has_immediate = which == 3 or (which == 1 and opcode in _WITH_IMMEDIATE)
    end = head.origin + parsed.end + has_immediate
    general, reads, writes = _general(which, opcode, parsed, head.prefixes)
    insn = Instruction(head.start, end, register=general, reads=reads, writes=writes)
    if parsed.displacement is None:
        return insn
    is_store |= which == 1 and opcode == _MOVE_FROM and REPEATED not in head.prefixes
    size_bytes = _stored_bytes(which, opcode, head, size_bytes) if is_store else size_bytes
    return with_memory(
        head, parsed, insn._replace(access=Access.WRITE if is_store else Access.READ, size_bytes=size_bytes)
    )


def _general(which: int, opcode: int, parsed: Operands, prefixes: frozenset[int]) -> tuple[int | None, int, int]:
    """Return the general register that an instruction names, if any, and the bits of those that it reads and writes."""
    is_scalar = not prefixes.isdisjoint({REPEATED, REPEATED_NOT})
    in_place_of_memory = bit(parsed.base) if parsed.displacement is None else 0
    if which == 1:
        if opcode in _FLAGS_IN_0F:
            return None, 0, FLAG_BIT
        if opcode in _FROM_VECTORS and (is_scalar or opcode not in _ONLY_SCALAR):
            return parsed.register, 0, bit(parsed.register)
        if in_place_of_memory and opcode == _MOVE_FROM and REPEATED not in prefixes:
            return parsed.base, 0, in_place_of_memory
        is_taken = opcode in _TO_VECTORS or (opcode == _CONVERT_FROM and is_scalar)
        return None, in_place_of_memory if is_taken else 0, 0
    if which == 2:
        return None, 0, FLAG_BIT if opcode == _TEST_IN_38 else 0
    if opcode in _STRING_COMPARISONS:
        return None, bit(RAX) | bit(RDX) | bit(RCX), bit(RCX) | FLAG_BIT
    if opcode in _EXTRACTS and in_place_of_memory:
        return parsed.base, 0, in_place_of_memory
    return None, in_place_of_memory if opcode in _INSERTS else 0, 0


def _stored_bytes(which: int, opcode: int, head: Head, size_bytes: int) -> int:
    """Return how much an instruction writes to memory whose vector registers have some size."""
    prefixes, word_bytes = head.prefixes, 8 if head.rex > 7 else 4
    if which == 3:
        return {0x14: 1, 0x15: 2, 0x16: word_bytes, 0x17: 4, 0x1D: size_bytes // 2}.get(opcode, _XMM_BYTES)
    if which == 1 and opcode == _MOVE_FROM:
        return word_bytes
    if which == 1 and opcode in {0x11, 0x2B} and not prefixes.isdisjoint({REPEATED, REPEATED_NOT}):
        return 4 if REPEATED in prefixes else 8
    is_of_mmx = opcode in {0x7F, 0xE7} and prefixes.isdisjoint({OPERAND_SIZE, REPEATED})
    return 8 if which == 1 and (opcode in {0x13, 0x17, 0xD6} or is_of_mmx) else size_bytes


def state_instruction(raw: bytes, at: int, head: Head, opcode: int) -> Instruction:
    """Decode an instruction about the state of the processor: fences, and the control word of SSE, do no harm."""
    parsed = operands(raw, at, head)
    end = head.origin + parsed.end
    is_of_control = opcode == _STATE and REPEATED not in head.prefixes
    if is_of_control and parsed.displacement is None and parsed.middle in _FENCES and not head.prefixes:
        return Instruction(head.start, end)
    if is_of_control and parsed.displacement is not None and parsed.middle in {2, 3}:
        access = Access.READ if parsed.middle == 2 else Access.WRITE
        return with_memory(head, parsed, Instruction(head.start, end, size_bytes=4, access=access))
    return unlisted(raw, at, head)


def vex_instruction(raw: bytes, at: int, head: Head, first: int) -> Instruction | None:
    """Decode an instruction with the prefix VEX."""
    second = raw[at]
    at += 1
    rex, which, last = (~second >> 5) & 4, 1, second
    if first == 0xC4:
        rex, which, last = (~second >> 5) & 7, second & 31, raw[at]
        at += 1
        rex |= last >> 4 & 8
    if which not in _VEX_LOADS:
        return None
    third, size_bytes = ~last >> 3 & 15, _YMM_BYTES if last & 4 else _XMM_BYTES
    ending = (None, OPERAND_SIZE, REPEATED, REPEATED_NOT)[last & 3]
    plain = Head(head.start, head.origin, rex, head.prefixes & ELSEWHERE)
    head = plain if ending is None else plain._replace(prefixes=plain.prefixes | {ending})
    opcode = raw[at]
    at += 1
    if which == 1 and opcode == _ZERO:
        return Instruction(head.start, head.origin + at)
    if which == 1 and opcode == _STATE:
        return state_instruction(raw, at, plain, opcode)
    if which == 2 and opcode in _BITS:
        return _of_three(raw, at, plain, opcode, third, ending)
    if which == 3 and opcode == _ROTATE:
        return with_modrm(raw, at, plain, _THREE._replace(immediate_bytes=1), opcode)
    insn = vector_instruction(raw, at, head, which, opcode, size_bytes=size_bytes, loads=_VEX_LOADS, stores=_VEX_STORES)
    if insn is not None and which == 2 and opcode in _GATHERS:
        # A vector register holds the indexes: its number is that of no general one.
        return insn._replace(scaled=None, scale=0)
    return insn


_THREE: Final = Form(Operation.OTHER, is_to_memory=False, is_byte=False, reads_target=False)


def _of_three(raw: bytes, at: int, head: Head, opcode: int, third: int, ending: int | None) -> Instruction | None:
    """Decode an instruction of three general registers."""
    if opcode == _BLSR:
        # The third register is the target.
        form = Form(Operation.OTHER, is_to_memory=True, is_byte=False, writes_target=False, writes=bit(third))
        insn = with_modrm(raw, at, head, form, opcode, is_single=True)
        is_listed = insn is not None and raw[at] >> 3 & 7 in {1, 2, 3}
        return insn._replace(register=third, other=None) if insn is not None and is_listed else None
    if opcode == _MULX:
        form = _THREE._replace(reads=bit(RDX), writes=bit(third))
        return with_modrm(raw, at, head, form, opcode) if ending == REPEATED_NOT else None
    return with_modrm(raw, at, head, _THREE._replace(reads=bit(third)), opcode)
