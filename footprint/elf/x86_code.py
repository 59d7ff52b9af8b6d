"""Decodes instructions of x86-64, as far as it takes to follow an address: their length, operands, reads and writes.

Every form of an instruction is listed. A sequence of bytes that is none of them has no answer; nobody guesses. What
reads registers that its operands do not name, such as `syscall`, is taken to read and write all of them.

Source: Intel SDM volume 2, chapter 2 (instruction format) and appendix A (opcode maps).
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from footprint.elf.instruction import RAX, RBP, RCX, RDI, RDX, RSI, RSP, Access, Instruction, Jump, Operation
from footprint.elf.x86_operands import (
    ALL_BITS,
    FLAG_BIT,
    OPERAND_SIZE,
    REPEATED,
    REPEATED_NOT,
    Form,
    Head,
    bit,
    of_byte,
    operands,
    signed,
    state_instruction,
    unlisted,
    vector_instruction,
    vex_instruction,
    with_memory,
    with_modrm,
)

_OTHER, _MOVE, _TEST, _SCALE = Operation.OTHER, Operation.MOVE, Operation.TEST, Operation.SCALE
_ADD, _SUBTRACT, _COMBINE, _COMPARE = Operation.ADD, Operation.SUBTRACT, Operation.COMBINE, Operation.COMPARE
# Forms whose target may be memory, and those whose source may be.
_to_memory = partial(Form, is_to_memory=True, is_byte=False)
_to_register = partial(Form, is_to_memory=False, is_byte=False)
# add, or, adc, sbb, and, sub, xor, cmp: the rows of the opcodes below 40, and the middle bits of ModRM after 80.
_ALU: Final = (_ADD, _COMBINE, _OTHER, _OTHER, _COMBINE, _SUBTRACT, _COMBINE, _COMPARE)
_WITH_CARRY: Final = frozenset({2, 3})


def _alu(row: int, *, is_to_memory: bool = True, is_byte: bool = False, immediate_bytes: int = 0) -> Form:
    writes_target = _ALU[row] is not _COMPARE
    reads = FLAG_BIT if row in _WITH_CARRY else 0
    return Form(_ALU[row], is_to_memory, is_byte, True, writes_target, reads, FLAG_BIT, immediate_bytes)  # noqa: FBT003


def _both_sizes(opcode: int, form: Form) -> dict[int, Form]:
    """Return the forms of an opcode for bytes, and of the next one for larger operands."""
    return {opcode: form._replace(is_byte=True), opcode + 1: form}


_FORMS: Final = {
    **{
        8 * row + column: _alu(row, is_to_memory=column < 2, is_byte=not column & 1)
        for row in range(8)
        for column in range(4)
    },
    0x63: _to_register(Operation.EXTEND, reads_target=False),  # `movslq`
    0x69: _to_register(_SCALE, reads_target=False, writes=FLAG_BIT, immediate_bytes=4),  # `imul`
    0x6B: _to_register(_SCALE, reads_target=False, writes=FLAG_BIT, immediate_bytes=1),
    **_both_sizes(0x84, _to_memory(_TEST, writes_target=False, writes=FLAG_BIT)),
    **_both_sizes(0x86, _to_memory(Operation.EXCHANGE)),
    **_both_sizes(0x88, _to_memory(_MOVE, reads_target=False)),
    **_both_sizes(0x8A, _to_register(_MOVE, reads_target=False)),
    0x8D: _to_register(Operation.ADDRESS, reads_target=False),
}
# Opcodes that the middle bits of ModRM continue, each with the form by those: what they name is only one operand.
_SHIFTS: Final = {
    middle: _to_memory(_SCALE if middle == 4 else _OTHER, reads=FLAG_BIT if middle in {2, 3} else 0)
    for middle in range(8)
}
_UNARY: Final = {
    **dict.fromkeys((0, 1), _to_memory(_TEST, writes_target=False, writes=FLAG_BIT, immediate_bytes=4)),
    2: _to_memory(_OTHER),
    3: _to_memory(_OTHER, writes=FLAG_BIT),
    **dict.fromkeys((4, 5), _to_memory(_OTHER, writes_target=False, reads=bit(RAX), writes=bit(RAX) | bit(RDX))),
    **dict.fromkeys(
        (6, 7),
        _to_memory(_OTHER, writes_target=False, reads=bit(RAX) | bit(RDX), writes=bit(RAX) | bit(RDX)),
    ),
}
_STEPS: Final = {0: _to_memory(_ADD), 1: _to_memory(_SUBTRACT)}
_STORE: Final = {0: _to_memory(_MOVE, reads_target=False, immediate_bytes=4)}
# `mul` and `div` of bytes use no rdx.
_UNARY_OF_BYTES: Final = _UNARY | dict.fromkeys(
    range(4, 8), _to_memory(_OTHER, writes_target=False, reads=bit(RAX), writes=bit(RAX))
)


def _of_bytes(forms: Mapping[int, Form]) -> dict[int, Form]:
    return {
        middle: form._replace(is_byte=True, immediate_bytes=min(1, form.immediate_bytes))
        for middle, form in forms.items()
    }


def _shifts(immediate_bytes: int = 0, reads: int = 0) -> dict[int, Form]:
    return {
        middle: form._replace(immediate_bytes=immediate_bytes, reads=form.reads | reads)
        for middle, form in _SHIFTS.items()
    }


_GROUPS: Final = {
    0x80: {row: _alu(row, is_byte=True, immediate_bytes=1) for row in range(8)},
    0x81: {row: _alu(row, immediate_bytes=4) for row in range(8)},
    0x83: {row: _alu(row, immediate_bytes=1) for row in range(8)},
    0xC0: _of_bytes(_shifts(1)),
    0xC1: _shifts(1),
    0xC6: _of_bytes(_STORE),
    0xC7: _STORE,
    0xD0: _of_bytes(_SHIFTS),
    0xD1: _SHIFTS,
    0xD2: _of_bytes(_shifts(reads=bit(RCX))),
    0xD3: _shifts(reads=bit(RCX)),
    0xF6: _of_bytes(_UNARY_OF_BYTES),
    0xF7: _UNARY,
    0xFE: _of_bytes(_STEPS),
    0xFF: _STEPS,
}
_CALL, _JUMP, _PUSH = 2, 4, 6  # the middle bits of ModRM after FF
# After 0F.
_FORMS_0F: Final = {
    **dict.fromkeys(range(0x40, 0x50), _to_register(Operation.MOVE_IF, reads=FLAG_BIT)),
    **dict.fromkeys(
        range(0x90, 0xA0), Form(_OTHER, is_to_memory=True, is_byte=True, reads_target=False, reads=FLAG_BIT)
    ),
    0xA3: _to_memory(_OTHER, writes_target=False),
    **dict.fromkeys((0xAB, 0xB3, 0xBB), _to_memory(_OTHER)),
    **dict.fromkeys((0xA4, 0xAC), _to_memory(_OTHER, immediate_bytes=1)),
    **dict.fromkeys((0xA5, 0xAD), _to_memory(_OTHER, reads=bit(RCX))),
    0xAF: _to_register(_OTHER, writes=FLAG_BIT),
    **_both_sizes(0xB0, _to_memory(_OTHER, reads=bit(RAX), writes=bit(RAX) | FLAG_BIT)),
    **_both_sizes(0xC0, _to_memory(_OTHER, writes=FLAG_BIT)),
    0xC3: _to_memory(_OTHER, reads_target=False),
    **dict.fromkeys((0xB6, 0xB7, 0xBE, 0xBF), _to_register(Operation.EXTEND, reads_target=False)),
    # `bsf` may leave its register as it was.
    **dict.fromkeys((0xB8, 0xBC, 0xBD), _to_register(_OTHER)),
}
# `setcc` has only one operand, and so have these.
_SET: Final = range(0x90, 0xA0)
_GROUPS_0F: Final = {
    0xBA: {
        4: _to_memory(_OTHER, writes_target=False, immediate_bytes=1),
        **dict.fromkeys((5, 6, 7), _to_memory(_OTHER, immediate_bytes=1)),
    }
}
_NOP: Final = 0x90  # with the prefix F3 `pause`
_END_OF_PROGRAM: Final = 0x0B  # `ud2`
_JUMPS_IF: Final = range(0x80, 0x90)
_SWAPS: Final = range(0xC8, 0xD0)  # `bswap`
_CLEARS_STATE: Final = 0x77
_SYSTEM: Final = frozenset({0x05, 0x06, 0x07, 0x08, 0x09, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0xA2, 0xAA})
# `prefetch` and `nop`, which have an operand and do nothing with it.
_HINTS: Final = frozenset({0x0D, *range(0x18, 0x20)})
_SHADOW_STACK: Final = 0x1E  # with the prefix F3; `endbr64` is a hint in it
_END_BRANCH: Final = 0xFA
_STATE: Final = frozenset({0x01, 0xAE, 0xC7})
_CHECKSUM: Final = frozenset({0xF0, 0xF1})  # after 0F 38: `crc32`, or `movbe`
_ADD_CARRY: Final = 0xF6
# Of the floating point unit, by opcode, the middle bits of ModRM that read memory, and what others write.
_FLOAT_READS: Final = {
    **dict.fromkeys((0xD8, 0xDA, 0xDC, 0xDE), frozenset(range(8))),
    0xD9: frozenset({0, 4, 5}),
    0xDB: frozenset({0, 5}),
    0xDD: frozenset({0, 4}),
    0xDF: frozenset({0, 4, 5}),
}
_FLOAT_STORES: Final = {
    **dict.fromkeys(((opcode, middle) for opcode in (0xD9, 0xDB) for middle in (2, 3)), 4),
    **dict.fromkeys(((0xD9, 7), (0xDD, 7), (0xDF, 1), (0xDF, 2), (0xDF, 3)), 2),
    **dict.fromkeys(((0xDD, 1), (0xDD, 2), (0xDD, 3), (0xDF, 7)), 8),
    (0xDB, 1): 4,
    **dict.fromkeys(((0xDB, 7), (0xDF, 6)), 10),
}
_STATE_BYTES: Final = 128  # the most that one reads
_STATUS: Final = 0xE0  # ModRM of `fnstsw %ax`, after DF
_PREFIXES: Final = frozenset({0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3})
_NO_PREFIXES: Final[frozenset[int]] = frozenset()
_REX: Final = 4
_FIRST_OF_0F: Final = 0x0F
_VEX: Final = frozenset({0xC4, 0xC5})
_PUSHED: Final = -8
"""Where `push` writes to, from the stack pointer."""


_MAPS_IN_0F: Final = frozenset({0x38, 0x3A})
_LONG_VEX: Final = 0xC4
# In ModRM.
_INDEXED: Final = 4
_NO_BASE: Final = 5
_OF_REGISTERS: Final = 0xC0
_DISPLACEMENT_BYTES: Final = (0, 1, 4, 0)
_WITHOUT_MODRM_0F: Final = frozenset(
    {*range(0x05, 0x0C), *range(0x30, 0x36), 0x77, *_JUMPS_IF, *range(0xA0, 0xA3), *range(0xA8, 0xAB), *_SWAPS}
)


def extent(raw: bytes, at: int) -> tuple[int, int]:
    """Return the end of an instruction up to ModRM or the index, and the size of the displacement that follows."""
    opcode = raw[at]
    while opcode in _PREFIXES:
        at += 1
        opcode = raw[at]
    if opcode >> 4 == _REX:
        at += 1
        opcode = raw[at]
    if opcode not in _WITH_MODRM:
        if opcode == _FIRST_OF_0F:
            at += 1
            opcode = raw[at]
            if opcode in _WITHOUT_MODRM_0F:
                return at + 1, 0
            at += opcode in _MAPS_IN_0F
        elif opcode in _VEX:
            at += 3 if opcode == _LONG_VEX else 2
            if raw[at] == _CLEARS_STATE:
                return at + 1, 0
        else:
            return at + 1, 0
    modrm = raw[at + 1]
    if modrm >= _OF_REGISTERS:
        return at + 2, 0
    base, past = modrm & 7, at + 2
    if base == _INDEXED:
        base, past = raw[at + 2] & 7, at + 3
    return past, _DISPLACEMENT_BYTES[modrm >> 6] if modrm >> 6 or base != _NO_BASE else 4


def decode(raw: bytes, at: int) -> Instruction | None:
    """Decode the instruction at an offset."""
    start, opcode, prefixes, rex = at, raw[at], _NO_PREFIXES, -1
    while opcode in _PREFIXES:
        prefixes |= {opcode}
        at += 1
        opcode = raw[at]
    if opcode >> 4 == _REX:
        rex = opcode & 15
        at += 1
        opcode = raw[at]
    head = Head(start, 0, rex, prefixes)
    if (form := _FORMS.get(opcode)) is not None:
        return with_modrm(raw, at + 1, head, form, opcode)
    if opcode == _FIRST_OF_0F:
        return _second_map(raw, at + 1, head)
    if (group := _GROUPS.get(opcode)) is not None:
        return _of_group(raw, at + 1, head, group, opcode)
    if opcode in _VEX:
        return vex_instruction(raw, at + 1, head, opcode) if rex < 0 else None
    plain = _PLAIN.get(opcode)
    return None if plain is None else plain(raw, at + 1, head, opcode)


def _of_group(raw: bytes, at: int, head: Head, group: Mapping[int, Form], opcode: int) -> Instruction | None:
    form = group.get(raw[at] >> 3 & 7)
    if form is None:
        return _call_by_word(raw, at, head) if opcode == 0xFF else None
    if opcode == 0xF7 and OPERAND_SIZE in head.prefixes:
        # `mul` and `div` keep the upper part of the registers that they write.
        form = form._replace(reads=form.reads | form.writes & ~FLAG_BIT)
    return with_modrm(raw, at, head, form, opcode, is_single=True)


def _call_by_word(raw: bytes, at: int, head: Head) -> Instruction | None:
    """Decode a call, jump or `push` whose operand is a register or memory."""
    parsed = operands(raw, at, head)
    if parsed.middle not in {_CALL, _JUMP, _PUSH}:
        return None
    is_push, is_call = parsed.middle == _PUSH, parsed.middle == _CALL
    jump = None if is_push else Jump(None, falls_through=is_call, is_call=is_call)
    moved = bit(RSP) if is_push else 0
    insn = Instruction(head.start, head.origin + parsed.end, size_bytes=8, reads=moved, writes=moved, jump=jump)
    if parsed.displacement is not None:
        insn = with_memory(head, parsed, insn._replace(access=Access.READ))
        return insn._replace(reads=ALL_BITS) if head.is_elsewhere else insn
    # The register of a call is not read as a value: it leads somewhere.
    return (
        insn._replace(other=parsed.base, reads=bit(parsed.base) | moved) if is_push else insn._replace(base=parsed.base)
    )


def _of_accumulator(raw: bytes, at: int, head: Head, opcode: int) -> Instruction:
    """Decode an instruction of rax and a number, such as `add $number, %eax`."""
    is_byte = not opcode & 1
    size_bytes = 1 if is_byte else head.size_bytes
    count = 1 if is_byte else min(4, size_bytes)
    form = _UNARY[0] if opcode >= 0xA8 else _alu(opcode >> 3)
    writes_target = form.writes_target
    return Instruction(
        head.start,
        head.origin + at + count,
        form.operation,
        size_bytes,
        register=RAX,
        immediate=signed(raw, at, count),
        reads=form.reads | bit(RAX),
        writes=form.writes | (bit(RAX) if writes_target else 0),
        keeps=bit(RAX) if writes_target and size_bytes < 4 else 0,
    )


def _push_or_pop(raw: bytes, at: int, head: Head, opcode: int) -> Instruction | None:
    if OPERAND_SIZE in head.prefixes:
        return None
    insn = Instruction(head.start, head.origin + at, _MOVE, 8, base=RSP, reads=bit(RSP), writes=bit(RSP))
    if opcode in {0x68, 0x6A}:
        count = 4 if opcode == 0x68 else 1
        number = signed(raw, at, count)
        return insn._replace(end_vaddr=insn.end_vaddr + count, memory=_PUSHED, immediate=number, access=Access.WRITE)
    register = opcode & 7 | (max(head.rex, 0) & 1) << 3
    insn = insn._replace(register=register)
    if opcode < 0x58:
        return insn._replace(memory=_PUSHED, access=Access.WRITE, reads=insn.reads | bit(register))
    return insn._replace(memory=0, access=Access.READ, writes=insn.writes | bit(register))


def _exchange(_raw: bytes, at: int, head: Head, opcode: int) -> Instruction:
    """Decode `xchg` of rax, and `nop`."""
    register = opcode & 7 | (max(head.rex, 0) & 1) << 3
    insn = Instruction(head.start, head.origin + at)
    both = bit(register) | bit(RAX)
    exchange = Operation.EXCHANGE
    size_bytes = head.size_bytes
    if register == RAX or (opcode == _NOP and REPEATED in head.prefixes):
        return insn
    return insn._replace(
        operation=exchange, size_bytes=size_bytes, register=register, other=RAX, reads=both, writes=both
    )


def _move_number(raw: bytes, at: int, head: Head, opcode: int) -> Instruction:
    number, is_byte = opcode & 7 | (max(head.rex, 0) & 1) << 3, opcode < 0xB8
    size_bytes = 1 if is_byte else head.size_bytes
    register = of_byte(number, head.rex) if is_byte else number
    return Instruction(
        head.start,
        head.origin + at + size_bytes,
        _MOVE,
        size_bytes,
        register=register,
        immediate=signed(raw, at, size_bytes),
        # `ah` is not the lowest part of its register.
        reads=bit(register) if register != number else 0,
        writes=bit(register),
        keeps=bit(register) if size_bytes < 4 else 0,
    )


def _jump(raw: bytes, at: int, head: Head, opcode: int) -> Instruction:
    count = 4 if opcode in {0xE8, 0xE9} else 1
    end = head.origin + at + count
    jump = Jump(end + signed(raw, at, count), opcode not in {0xE9, 0xEB}, is_call=opcode == 0xE8)
    counter = bit(RCX) if 0xE0 <= opcode < 0xE4 else 0
    reads = counter | (FLAG_BIT if opcode < 0x80 or opcode in {0xE0, 0xE1} else 0)
    return Instruction(head.start, end, reads=reads, writes=counter if opcode < 0xE3 else 0, jump=jump)


def _end(_raw: bytes, at: int, head: Head, opcode: int) -> Instruction:
    count = 2 if opcode == 0xC2 else 0
    return Instruction(head.start, head.origin + at + count, jump=Jump(None, falls_through=False, is_end=True))


def _leave(_raw: bytes, at: int, head: Head, _opcode: int) -> Instruction:
    insn = Instruction(head.start, head.origin + at, Operation.LEAVE, 8, 0, RBP, access=Access.READ)
    return insn._replace(reads=bit(RBP), writes=bit(RSP) | bit(RBP))


def _string(_raw: bytes, at: int, head: Head, opcode: int) -> Instruction:
    """Return an instruction that works on what rsi or rdi leads to: `movs`, `cmps`, `stos`, `lods` or `scas`."""
    end, kind = head.origin + at, opcode & 0xFE
    if head.is_elsewhere:
        return Instruction(head.start, end, access=Access.CHANGE, reads=ALL_BITS, writes=ALL_BITS)
    count = bit(RCX) if not head.prefixes.isdisjoint({REPEATED, REPEATED_NOT}) else 0
    size_bytes = head.size_bytes if opcode & 1 else 1
    base, access, reads, writes = _OF_STRINGS[kind]
    insn = Instruction(head.start, end, _OTHER, size_bytes, 0, base, access=access, reads=reads | count)
    # A part of rax stays where `lods` loads fewer bytes than it has.
    insn = insn._replace(writes=writes | bit(base) | count)
    return insn._replace(operation=Operation.COPY_STRING, other=RSI) if kind == 0xA4 else insn


# By opcode: the register that leads to memory, what is done there, and what else is read and written.
_OF_STRINGS: Final = {
    0xA4: (RDI, Access.WRITE, 0, bit(RSI)),
    0xA6: (RSI, Access.READ, bit(RDI), bit(RDI)),
    0xAA: (RDI, Access.WRITE, bit(RAX), 0),
    0xAC: (RSI, Access.READ, bit(RAX), bit(RAX)),
    0xAE: (RDI, Access.READ, bit(RAX), 0),
}


def _float(raw: bytes, at: int, head: Head, opcode: int) -> Instruction:
    """Decode an instruction of the floating point unit."""
    parsed = operands(raw, at, head)
    insn = Instruction(head.start, head.origin + parsed.end)
    if parsed.displacement is None:
        if opcode == 0xDF and raw[at] == _STATUS:
            return insn._replace(reads=bit(RAX), writes=bit(RAX))
        # `fcmov` reads the flags.
        return insn._replace(reads=FLAG_BIT) if opcode in {0xDA, 0xDB} and raw[at] < _STATUS else insn
    if parsed.middle in _FLOAT_READS[opcode]:
        return with_memory(head, parsed, insn._replace(access=Access.READ, size_bytes=_STATE_BYTES))
    size_bytes = _FLOAT_STORES.get((opcode, parsed.middle))
    if size_bytes is None:
        return unlisted(raw, at, head)
    return with_memory(head, parsed, insn._replace(access=Access.WRITE, size_bytes=size_bytes))


def _segment_or_pop(raw: bytes, at: int, head: Head, opcode: int) -> Instruction | None:
    """Decode a move of a segment register, or `pop` to memory."""
    is_listed = opcode != 0x8F or not raw[at] & 0x38
    return unlisted(raw, at, head) if is_listed else None


def _listed(_raw: bytes, at: int, head: Head, opcode: int) -> Instruction:
    """Return an instruction whose registers are listed."""
    count, reads, writes = _REGISTERS[opcode]
    if opcode in {0x98, 0x99} and head.size_bytes == 2:
        reads |= writes
    return Instruction(head.start, head.origin + at + count, reads=reads, writes=writes)


# The size of an immediate, and what is read and written.
_REGISTERS: Final = {
    0x98: (0, bit(RAX), bit(RAX)),
    0x99: (0, bit(RAX), bit(RDX)),
    0x9B: (0, 0, 0),
    0x9E: (0, bit(RAX) | FLAG_BIT, 0),
    0x9F: (0, bit(RAX) | FLAG_BIT, bit(RAX)),
    0xF5: (0, FLAG_BIT, 0),
    **dict.fromkeys(range(0xF8, 0xFE), (0, 0, 0)),
    **dict.fromkeys((0x9C, 0x9D, 0xD7, *range(0xEC, 0xF0)), (0, ALL_BITS, ALL_BITS)),
    **dict.fromkeys((0xCD, *range(0xE4, 0xE8)), (1, ALL_BITS, ALL_BITS)),
}
_PLAIN: Final[Mapping[int, Callable[[bytes, int, Head, int], Instruction | None]]] = {
    **dict.fromkeys((8 * row + column for row in range(8) for column in (4, 5)), _of_accumulator),
    **dict.fromkeys((0xA8, 0xA9), _of_accumulator),
    **dict.fromkeys((*range(0x50, 0x60), 0x68, 0x6A), _push_or_pop),
    **dict.fromkeys(range(0x90, 0x98), _exchange),
    **dict.fromkeys(range(0xB0, 0xC0), _move_number),
    **dict.fromkeys((*range(0x70, 0x80), *range(0xE0, 0xE4), 0xE8, 0xE9, 0xEB), _jump),
    **dict.fromkeys((0xC2, 0xC3, 0xCC, 0xF4), _end),
    **dict.fromkeys((*range(0xA4, 0xA8), *range(0xAA, 0xB0)), _string),
    0xC9: _leave,
    **dict.fromkeys(range(0xD8, 0xE0), _float),
    **dict.fromkeys((0x8C, 0x8E, 0x8F), _segment_or_pop),
    **dict.fromkeys(_REGISTERS, _listed),
}


_WITH_MODRM: Final = frozenset({*_FORMS, *_GROUPS, *range(0xD8, 0xE0), 0x8C, 0x8E, 0x8F})


def _second_map(raw: bytes, at: int, head: Head) -> Instruction | None:
    """Decode an instruction whose opcode begins with 0F."""
    opcode = raw[at]
    at += 1
    if (form := _FORMS_0F.get(opcode)) is not None:
        return with_modrm(raw, at, head, form, opcode, is_single=opcode in _SET)
    if opcode in _JUMPS_IF:
        end = head.origin + at + 4
        return Instruction(head.start, end, reads=FLAG_BIT, jump=Jump(end + signed(raw, at, 4), falls_through=True))
    if (group := _GROUPS_0F.get(opcode)) is not None:
        return _of_group(raw, at, head, group, opcode)
    if opcode == 0x38:
        return _third_map(raw, at, head)
    if opcode == 0x3A:
        return vector_instruction(raw, at + 1, head, 3, raw[at])
    plain = _plain_0f(raw, at, head, opcode)
    return vector_instruction(raw, at, head, 1, opcode) if plain is None else plain


def _plain_0f(raw: bytes, at: int, head: Head, opcode: int) -> Instruction | None:
    """Decode an instruction of the map 0F that is not one of general or vector registers alone."""
    insn = Instruction(head.start, head.origin + at)
    if opcode in _SWAPS:
        register = opcode & 7 | (max(head.rex, 0) & 1) << 3
        return insn._replace(register=register, reads=bit(register), writes=bit(register))
    if opcode == _END_OF_PROGRAM:
        return insn._replace(jump=Jump(None, falls_through=False, is_end=True))
    if opcode in _SYSTEM:
        return insn._replace(reads=ALL_BITS, writes=ALL_BITS)
    if opcode in _HINTS:
        if opcode == _SHADOW_STACK and REPEATED in head.prefixes and raw[at] != _END_BRANCH:
            return unlisted(raw, at, head)
        return insn._replace(end_vaddr=head.origin + operands(raw, at, head).end)
    if opcode in _STATE:
        return state_instruction(raw, at, head, opcode)
    return insn if opcode == _CLEARS_STATE else None


def _third_map(raw: bytes, at: int, head: Head) -> Instruction | None:
    """Decode an instruction whose opcode begins with 0F 38."""
    opcode, prefixes = raw[at], head.prefixes
    at += 1
    if opcode in _CHECKSUM and REPEATED_NOT in prefixes:
        insn = with_modrm(raw, at, head, _to_register(_OTHER)._replace(is_byte=opcode == 0xF0), opcode)
        # Its target has at least four bytes, also where its source is one.
        register = operands(raw, at, head).register
        reads = 0 if insn is None else insn.reads | bit(register)
        return None if insn is None else insn._replace(register=register, reads=reads, writes=bit(register), keeps=0)
    if opcode in _CHECKSUM:
        return with_modrm(raw, at, head, Form(_OTHER, opcode == 0xF1, is_byte=False, reads_target=False), opcode)
    if opcode == _ADD_CARRY and not prefixes.isdisjoint({OPERAND_SIZE, REPEATED}):
        # Its prefix is no operand size.
        head = head._replace(prefixes=prefixes - {OPERAND_SIZE})
        return with_modrm(raw, at, head, _to_register(_OTHER, reads=FLAG_BIT), opcode)
    return vector_instruction(raw, at, head, 2, opcode)
