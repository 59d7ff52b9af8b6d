"""Instructions of x86-64 that work on vector registers, and those with the prefix VEX.

Addresses are followed in general registers: only what these instructions do with them, and with memory, is told.

Source: Intel SDM volume 2, chapter 2 (VEX) and appendix A (opcode maps).
"""

from collections.abc import Mapping
from typing import Final

from footprint.elf.instruction import RAX, RCX, RDX, Access, Instruction, Operation
from footprint.elf.x86_operands import (
    ELSEWHERE,
    FLAG_BIT,
    OPERAND_SIZE,
    REPEATED,
    REPEATED_NOT,
    Form,
    Head,
    Operands,
    bit,
    operands,
    unlisted,
    with_memory,
    with_modrm,
)

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
