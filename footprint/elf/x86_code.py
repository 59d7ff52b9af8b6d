"""Instructions of x86-64, as far as it takes to follow an address: their length, registers, and what they write.

A sequence of bytes that is no known instruction has no answer; nobody guesses.

Source: Intel SDM volume 2, chapter 2 (instruction format) and appendix A (opcode maps).
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from footprint.elf.image import Buffer

__all__ = ("RAX", "RBP", "RSP", "Instruction", "Jump", "decoded")

RAX: Final = 0
RSP: Final = 4
RBP: Final = 5


class Jump(NamedTuple):
    """Where an instruction goes on.

    Attributes:
        target: The vaddr of a jump or call; None where a register or memory has it.
        falls_through: Whether the next instruction may be executed.
        is_call: Whether it calls a function.
        is_end: Whether it returns, or ends the program.
    """

    target: int | None
    falls_through: bool
    is_call: bool = False
    is_end: bool = False


class Instruction(NamedTuple):
    """One instruction.

    Attributes:
        vaddr: Its first byte.
        end_vaddr: The end of it.
        memory: The vaddr that its memory operand states, as displacement; None without a memory operand.
        base: The register that is added to it; None without one.
        scaled: The register that is multiplied and added; None without one.
        register: The register that ModRM or the opcode names; None without one.
        other: The second register, where ModRM names no memory.
        writes_memory: Whether it writes its memory operand.
        is_address: Whether it computes the address of its memory operand (`lea`).
        copies: Whether it copies `other` or its immediate to `register` (to a vector register where that is None), or
            for a store `register` to memory.
        overwrites: Whether `register` keeps nothing of its former value.
        immediate: The immediate; None without one.
        compares: Whether it compares `register` with `other`, with memory, or with its immediate, and changes neither.
        subtracts: Whether it subtracts `other`, or its memory or immediate, from `register`.
        is_wide: Whether it works on 64 bits.
        mixes: Whether it makes of `register`, or of it and `other`, a number that is near neither (`xor`, `mul`).
        swaps: Whether it exchanges `register` with `other` or with memory.
        jump: Where it goes on, if that is not only the next instruction.
    """

    vaddr: int
    end_vaddr: int
    memory: int | None = None
    base: int | None = None
    scaled: int | None = None
    register: int | None = None
    other: int | None = None
    writes_memory: bool = False
    is_address: bool = False
    copies: bool = False
    overwrites: bool = False
    immediate: int | None = None
    compares: bool = False
    subtracts: bool = False
    is_wide: bool = False
    jump: Jump | None = None
    mixes: bool = False
    swaps: bool = False


_PREFIXES: Final = frozenset({0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3})
_ALU_ROWS: Final = range(0, 0x40, 8)
_MODRM: Final = frozenset(
    {
        *(row + column for row in _ALU_ROWS for column in range(4)),
        *(0x63, 0x69, 0x6B, *range(0x80, 0x90), 0xC0, 0xC1, 0xC6, 0xC7, *range(0xD0, 0xD4), *range(0xD8, 0xE0)),
        *(0xF6, 0xF7, 0xFE, 0xFF),
    }
) - {0x82}
# Opcodes without ModRM, by the size of their immediate; 4 is two bytes with the prefix 66.
_PLAIN: Final = {
    **dict.fromkeys([row + 4 for row in _ALU_ROWS], 1),
    **dict.fromkeys([row + 5 for row in _ALU_ROWS], 4),
    **dict.fromkeys([*range(0x50, 0x60), *range(0x90, 0x9A), *range(0x9B, 0xA0), *range(0xA4, 0xA8)], 0),
    **dict.fromkeys(
        [*range(0xAA, 0xB0), 0xC3, 0xC9, 0xCC, 0xD7, *range(0xEC, 0xF0), 0xF4, 0xF5, *range(0xF8, 0xFE)], 0
    ),
    **dict.fromkeys([0x6A, 0xA8, *range(0xB0, 0xB8), 0xCD, *range(0x70, 0x80), *range(0xE0, 0xE8), 0xEB], 1),
    **dict.fromkeys([0x68, 0xA9, *range(0xB8, 0xC0), 0xE8, 0xE9], 4),
    0xC2: 2,
}
_BYTE_IMMEDIATE: Final = frozenset({0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6})
_WORD_IMMEDIATE: Final = frozenset({0x69, 0x81, 0xC7})
# After 0F.
_PLAIN_0F: Final = frozenset(
    {*range(0x05, 0x0A), 0x0B, *range(0x30, 0x38), 0x77, *range(0xA0, 0xA3), *range(0xA8, 0xAB), *range(0xC8, 0xD0)}
)
# `prefetch` and `nop`, which have an operand and do nothing with it.
_HINTS_0F: Final = frozenset({0x0D, *range(0x18, 0x20)})
_BYTE_IMMEDIATE_0F: Final = frozenset({0x70, 0x71, 0x72, 0x73, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6})
_STORES_0F: Final = frozenset(
    {
        *(0x11, 0x13, 0x17, 0x29, 0x2B, 0x7E, 0x7F, 0xD6, 0xE7, *range(0x90, 0xA0), 0xA4, 0xA5, 0xAB, 0xAC, 0xAD),
        *(0xB0, 0xB1, 0xB3, 0xBA, 0xBB, 0xC0, 0xC1, 0xC3, 0xC7),
    }
)
# SSE registers take no addresses: what an instruction of these maps writes is no general register.
_OVERWRITES_0F: Final = frozenset(
    {*range(0x40, 0x51), 0xD7, 0xB6, 0xB7, 0xBE, 0xBF, 0xAF, 0x2C, 0x2D, 0xB8, 0xBC, 0xBD}
)
_FROM_VECTORS_0F: Final = frozenset({0x2C, 0x2D, 0x50, 0xD7})
_EXCHANGES_0F: Final = frozenset({0xB0, 0xB1, 0xC0, 0xC1, 0xC3})
# `movq %rax, %xmm0`, `cvtsi2sd` and `pinsrq`: the value of a general register goes where nobody follows it.
_FROM_VECTOR: Final = 0x7E
_TO_VECTOR: Final = frozenset({0x6E, 0x2A, 0x3A})
_NAMED_0F: Final = _OVERWRITES_0F | _EXCHANGES_0F
_REGISTERS_0F: Final = _NAMED_0F | _TO_VECTOR
_COPIES_0F: Final = frozenset({*range(0x40, 0x50)}) | _EXCHANGES_0F | _TO_VECTOR
_STORES: Final = frozenset(
    {*(row + column for row in range(0, 0x38, 8) for column in (0, 1)), 0x86, 0x87, 0x88, 0x89, 0x8F, 0xC6, 0xC7}
)
# `xor %eax, %eax` and `sub`.
_CLEARS: Final = frozenset({0x29, 0x2B, 0x31, 0x33})
_COMPARISONS: Final = frozenset({0x38, 0x39, 0x3A, 0x3B, 0x84, 0x85})
# `cmp` and `test` of a number with %eax.
_PLAIN_COMPARISONS: Final = frozenset({0x3C, 0x3D, 0xA8, 0xA9})
_SUBTRACTIONS: Final = frozenset({0x2A, 0x2B, 0x28, 0x29})
_EXCLUSIVE_ORS: Final = frozenset({0x31, 0x33})
_PLAIN_SUBTRACTIONS: Final = frozenset({0x2C, 0x2D})
_PUSHES: Final = frozenset({*range(0x50, 0x58), 0x68, 0x6A})
# The middle bits of ModRM.
_SUBTRACT: Final = 5
_COMPARE: Final = 7
_SHIFTS: Final = frozenset({0xC0, 0xC1, 0xD0, 0xD1, 0xD2, 0xD3})
# Opcodes that the middle bits of ModRM continue.
_GROUPS: Final = _SHIFTS | {0x80, 0x81, 0x83, 0xC6, 0xC7, 0xF6, 0xF7, 0xFE, 0x8F}
# `mov`, `lea`, `movslq` and `imul` with three operands keep nothing of the register.
_LOADS: Final = frozenset({0x63, 0x69, 0x6B, 0x8B, 0x8D})
_FIRST_OF_0F: Final = 0x0F
_VEX: Final = frozenset({0xC4, 0xC5})
_TESTS: Final = frozenset({0xF6, 0xF7})
_IMMEDIATE_BYTES: Final = {
    **dict.fromkeys(_BYTE_IMMEDIATE | {0xF6}, 1),
    **dict.fromkeys(_WORD_IMMEDIATE | {0xF7}, 4),
}
# Of the opcodes whose ModRM names a register: whether they store, compute an address, copy, load, subtract, mix, swap.
_WITH_MEMORY: Final = {
    opcode: (
        opcode in _STORES or opcode == 0x8C,
        opcode == 0x8D,
        opcode in {0x86, 0x87, 0x88, 0x89, 0x8B, 0x8D},
        opcode in _LOADS,
        opcode in _SUBTRACTIONS,
        opcode in _EXCLUSIVE_ORS,
        opcode in {0x86, 0x87},
    )
    for opcode in _MODRM - _GROUPS - _COMPARISONS - {0xFF, *range(0xD8, 0xE0)}
}
_OPERAND_SIZE: Final = 0x66
_REPEATED: Final = 0xF3
_NO_PREFIXES: Final[frozenset[int]] = frozenset()
_REX: Final = 4


def decoded(code: Buffer, vaddr: int) -> Iterator[Instruction]:
    """Decode the instructions of code that begins at a vaddr, up to its end or to what is no known instruction."""
    raw, end_vaddr = bytes(code), vaddr + len(code)
    at = vaddr
    # Behind the end no byte is there.
    with suppress(IndexError):
        while at < end_vaddr and (one := _decode(raw, at - vaddr, vaddr)) is not None and one.end_vaddr <= end_vaddr:
            yield one
            at = one.end_vaddr


def _signed(raw: bytes, at: int, size_bytes: int) -> int:
    return int.from_bytes(raw[at : at + size_bytes], "little", signed=True)


def _decode(raw: bytes, at: int, origin: int) -> Instruction | None:
    """Decode the instruction at an offset of bytes that begin at `origin`."""
    start = origin + at
    opcode = raw[at]
    prefixes = _NO_PREFIXES
    while opcode in _PREFIXES:
        prefixes |= {opcode}
        at += 1
        opcode = raw[at]
    rex = 0
    if opcode >> 4 == _REX:
        rex = opcode & 15
        at += 1
        opcode = raw[at]
    if opcode in _MODRM:
        return _with_modrm(raw, at + 1, start, origin, opcode, rex, prefixes)
    if opcode == _FIRST_OF_0F:
        return _second_map(raw, at + 1, start, origin, rex, prefixes)
    if opcode in _PLAIN:
        return _plain(raw, at + 1, start, origin, opcode, rex, prefixes)
    return _vector(raw, at + 1, start, origin, opcode) if opcode in _VEX else None


def _plain(
    raw: bytes, at: int, start: int, origin: int, opcode: int, rex: int, prefixes: frozenset[int]
) -> Instruction:
    size_bytes = _PLAIN[opcode]
    if size_bytes == 4 and _OPERAND_SIZE in prefixes and opcode not in {0xE8, 0xE9}:
        size_bytes = 2
    if 0xB8 <= opcode < 0xC0 and rex & 8:
        size_bytes = 8
    immediate = _signed(raw, at, size_bytes) if size_bytes else None
    end = origin + at + size_bytes
    register = opcode & 7 | (rex & 1) << 3
    if opcode in {0xC3, 0xC2, 0xF4, 0xCC}:
        return Instruction(start, end, immediate=immediate, jump=Jump(None, falls_through=False, is_end=True))
    if opcode in {0xE8, 0xE9, 0xEB} or 0x70 <= opcode < 0x80 or 0xE0 <= opcode < 0xE4:
        return Instruction(
            start, end, jump=Jump(end + (immediate or 0), opcode not in {0xE9, 0xEB}, is_call=opcode == 0xE8)
        )
    if 0xB8 <= opcode < 0xC0:
        return Instruction(start, end, register=register, copies=True, overwrites=True, immediate=immediate)
    if opcode in _PUSHES:
        # The register or number is stored below what is on the stack.
        pushed = register if immediate is None else None
        return Instruction(start, end, -8, RSP, None, pushed, writes_memory=True, copies=True, immediate=immediate)
    if 0x91 <= opcode < 0x98:
        return Instruction(start, end, register=register, other=RAX, copies=True, is_wide=True, swaps=True)
    if 0x58 <= opcode < 0x60:
        return Instruction(start, end, register=register, overwrites=True)
    if opcode in {0xA4, 0xA5, 0xAA, 0xAB}:
        return Instruction(start, end, memory=0, base=7, other=6 if opcode < 0xA8 else None, writes_memory=True)
    # `add $number, %eax` and the like.
    compares, subtracts = opcode in _PLAIN_COMPARISONS, opcode in _PLAIN_SUBTRACTIONS
    register_of_number = 0 if opcode < 0x40 or compares else None
    return Instruction(
        start, end, register=register_of_number, immediate=immediate, compares=compares, subtracts=subtracts
    )


def _with_modrm(
    raw: bytes, at: int, start: int, origin: int, opcode: int, rex: int, prefixes: frozenset[int]
) -> Instruction:
    middle, base, index, displacement, register, at = _operands(raw, at, rex)
    size_bytes = 0 if middle > 1 and opcode in _TESTS else _IMMEDIATE_BYTES.get(opcode, 0)
    if size_bytes == 4 and _OPERAND_SIZE in prefixes:
        size_bytes = 2
    immediate = _signed(raw, at, size_bytes) if size_bytes else None
    end = origin + at + size_bytes
    is_wide = rex > 7
    if displacement is None:
        return _of_registers(start, end, opcode, middle, base, register, immediate, is_wide=is_wide)
    memory, base = (displacement + end, None) if base == _RIP else (displacement, base)
    if (known := _WITH_MEMORY.get(opcode)) is not None:
        stores, is_address, copies, loads, subtracts, mixes, swaps = known
        return Instruction(
            start,
            end,
            memory,
            base,
            index,
            register,
            None,
            stores,
            is_address,
            copies,
            loads,
            immediate,
            subtracts=subtracts,
            is_wide=is_wide,
            mixes=mixes,
            swaps=swaps,
        )
    if opcode in _COMPARISONS:
        return Instruction(start, end, memory, base, index, register, compares=True, is_wide=is_wide)
    if opcode == 0xFF:
        jump = Jump(None, middle == 2, middle == 2) if middle in {2, 4} else None
        return Instruction(start, end, memory, base, index, writes_memory=middle < 2, jump=jump)
    if opcode in _GROUPS:
        return Instruction(
            start,
            end,
            memory,
            base,
            index,
            other=RAX if middle > 3 and opcode == 0xF7 else None,
            writes_memory=_group_writes(opcode, middle),
            copies=opcode == 0xC7,
            immediate=immediate,
            compares=_group_compares(opcode, middle),
            mixes=middle > 3 and opcode == 0xF7,
        )
    # Of the floating point unit: `fst` and its like write.
    return Instruction(start, end, memory, base, index, writes_memory=opcode & 1 == 1 and middle in {1, 2, 3, 6, 7})


def _of_registers(
    start: int,
    end: int,
    opcode: int,
    middle: int,
    other: int | None,
    register: int,
    immediate: int | None,
    *,
    is_wide: bool,
) -> Instruction:
    """Return an instruction whose ModRM names no memory."""
    if (known := _WITH_MEMORY.get(opcode)) is not None:
        stores, is_address, copies, loads, subtracts, mixes, swaps = known
        target, copied = (other, register) if stores else (register, other)
        is_same = target == copied
        overwrites = loads or opcode in {0x88, 0x89} or (is_same and opcode in _CLEARS)
        return Instruction(
            start,
            end,
            register=target,
            other=copied,
            is_address=is_address,
            copies=copies,
            overwrites=overwrites,
            immediate=immediate,
            subtracts=subtracts,
            is_wide=is_wide,
            mixes=mixes and not is_same,
            swaps=swaps,
        )
    if opcode in _COMPARISONS:
        return Instruction(start, end, register=register, other=other, compares=True, is_wide=is_wide)
    if opcode == 0xFF:
        jump = Jump(None, middle == 2, middle == 2) if middle in {2, 4} else None
        return Instruction(start, end, base=other, is_wide=is_wide, jump=jump)
    if opcode not in _GROUPS:
        # Of the floating point unit.
        return Instruction(start, end, is_wide=is_wide)
    is_move = opcode == 0xC7
    return Instruction(
        start,
        end,
        register=other,
        # `mul` and `div` work on rax as well.
        other=RAX if middle > 3 and opcode == 0xF7 else None,
        copies=is_move,
        overwrites=is_move,
        immediate=immediate,
        compares=_group_compares(opcode, middle),
        subtracts=opcode in {0x80, 0x81, 0x83} and middle == _SUBTRACT,
        is_wide=is_wide,
        mixes=opcode == 0xF7 and middle > 1,
    )


def _group_writes(opcode: int, middle: int) -> bool:
    """Return whether an opcode whose ModRM continues it writes its memory operand."""
    if opcode in {0x80, 0x81, 0x83}:
        return middle != _COMPARE
    return middle in {2, 3} if opcode in {0xF6, 0xF7} else True


def _group_compares(opcode: int, middle: int) -> bool:
    """Return whether an opcode whose ModRM continues it compares: `cmp` or `test` with a number."""
    return middle == _COMPARE if opcode in {0x80, 0x81, 0x83} else opcode in {0xF6, 0xF7} and middle < 2


def _second_map(raw: bytes, at: int, start: int, origin: int, rex: int, prefixes: frozenset[int]) -> Instruction | None:
    opcode = raw[at]
    at += 1
    if 0x80 <= opcode < 0x90:
        end = origin + at + 4
        return Instruction(start, end, jump=Jump(end + _signed(raw, at, 4), falls_through=True))
    if opcode in _PLAIN_0F:
        is_end = opcode == 0x0B
        return Instruction(start, origin + at, jump=Jump(None, falls_through=False, is_end=True) if is_end else None)
    third = opcode
    if opcode in {0x38, 0x3A}:
        third = raw[at]
        at += 1
    middle, base, index, displacement, register, at = _operands(raw, at, rex)
    if opcode == 0x3A or (opcode != 0x38 and opcode in _BYTE_IMMEDIATE_0F):
        at += 1
    end, is_memory = origin + at, displacement is not None
    if opcode in _HINTS_0F:
        return Instruction(start, end)
    is_store = opcode in _STORES_0F
    if opcode == 0x7E and _REPEATED in prefixes:
        is_store = False
    if opcode == 0xBA:
        is_store = middle > 4
    if opcode in {0x38, 0x3A}:
        is_store = (opcode == 0x3A and third in {0x14, 0x15, 0x16, 0x17}) or (opcode == 0x38 and third in {0xF1, 0xF6})
    if opcode == _FROM_VECTOR and not is_memory and _REPEATED not in prefixes:
        return Instruction(start, end, register=base, overwrites=True)
    return Instruction(
        start,
        end,
        memory=_stated(displacement, base, end),
        base=None if base in {None, _RIP} or not is_memory else base,
        scaled=index if is_memory else None,
        register=register if opcode in _NAMED_0F else None,
        writes_memory=is_memory and is_store,
        # A conditional move may leave the register as it was.
        overwrites=opcode in _OVERWRITES_0F and not 0x40 <= opcode < 0x50,
        other=None if is_memory or opcode in _FROM_VECTORS_0F or opcode not in _REGISTERS_0F else base,
        copies=opcode in _COPIES_0F,
        is_wide=rex > 7,
        mixes=opcode == 0xAF,
        swaps=opcode in _EXCHANGES_0F,
    )


_STORES_VECTOR: Final = {
    1: frozenset({0x11, 0x13, 0x17, 0x29, 0x2B, 0x7E, 0x7F, 0xD6, 0xE7}),
    2: frozenset({0x2E, 0x2F, 0x8E}),
    3: frozenset({0x14, 0x15, 0x16, 0x17, 0x19, 0x1D, 0x39}),
}


def _vector(raw: bytes, at: int, start: int, origin: int, first: int) -> Instruction | None:
    second = raw[at]
    at += 1
    rex, which, ending = (~second >> 5) & 4, 1, second & 3
    if first == 0xC4:
        rex, which = (~second >> 5) & 7, second & 31
        ending = raw[at] & 3
        at += 1
    if which not in _STORES_VECTOR:
        return None
    opcode = raw[at]
    at += 1
    if which == 1 and opcode == 0x77:
        return Instruction(start, origin + at)
    _, base, index, displacement, register, at = _operands(raw, at, rex)
    if which == 3 or (which == 1 and opcode in _BYTE_IMMEDIATE_0F):
        at += 1
    end, is_memory = origin + at, displacement is not None
    is_load = which == 1 and opcode == _FROM_VECTOR and ending == 2
    if which == 1 and opcode == _FROM_VECTOR and not is_memory and not is_load:
        return Instruction(start, end, register=base, overwrites=True)
    # BMI instructions (`shlx`, `andn`) have the only general registers of these maps.
    of_general = (which in {2, 3} and opcode >= 0xF0) or (which == 1 and opcode in {0x50, 0xD7, 0x2C, 0x2D})
    return Instruction(
        start,
        end,
        memory=_stated(displacement, base, end),
        base=None if base in {None, _RIP} or not is_memory else base,
        scaled=index if is_memory else None,
        register=register if of_general else None,
        other=None if is_memory else base,
        copies=opcode in {0x6E, 0x2A, 0x22},
        overwrites=of_general,
        writes_memory=is_memory and opcode in _STORES_VECTOR[which] and not is_load,
    )


_RIP: Final = -1


def _operands(raw: bytes, at: int, rex: int) -> tuple[int, int | None, int | None, int | None, int, int]:
    """Read ModRM and what belongs to it: middle bits, base (or register), index, displacement, register, and the end.

    The displacement is None where there is no memory operand.
    """
    modrm = raw[at]
    at += 1
    mode, low = modrm & 0xC0, modrm & 7
    middle = modrm >> 3 & 7
    register = middle | (rex & 4) << 1
    base: int | None = low | (rex & 1) << 3
    if mode == 0xC0:
        return middle, base, None, None, register, at
    index = None
    if low == 4:
        sib = raw[at]
        at += 1
        number = sib >> 3 & 7 | (rex & 2) << 2
        index = None if number == 4 else number
        base = sib & 7 | (rex & 1) << 3
        if sib & 7 == 5 and not mode:
            return middle, None, index, _signed(raw, at, 4), register, at + 4
    elif low == 5 and not mode:
        return middle, _RIP, None, _signed(raw, at, 4), register, at + 4
    if not mode:
        return middle, base, index, 0, register, at
    if mode == 0x40:
        byte = raw[at]
        return middle, base, index, byte - 256 if byte > 127 else byte, register, at + 1
    return middle, base, index, _signed(raw, at, 4), register, at + 4


def _stated(displacement: int | None, base: int | None, end: int) -> int | None:
    return displacement if displacement is None or base != _RIP else displacement + end
