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
        mixes: Whether it makes of `register`, or of it and `other`, a number that is near neither (`xor`, `neg`).
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
# `movq %rax, %xmm0` and `pinsrq`: the value of a general register goes where nobody follows it.
_FROM_VECTOR: Final = 0x7E
_TO_VECTOR: Final = frozenset({0x6E, 0x3A})
_REGISTERS_0F: Final = _OVERWRITES_0F | _TO_VECTOR | _EXCHANGES_0F
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
_REX: Final = 4


class _Bytes:
    """Reads the bytes of instructions one after the other; none is there behind the end."""

    __slots__ = ("_raw", "at")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.at = 0

    def byte(self) -> int:
        self.at += 1
        return self._raw[self.at - 1]

    def signed(self, size_bytes: int) -> int:
        start, self.at = self.at, self.at + size_bytes
        if self.at > len(self._raw):
            raise IndexError
        return int.from_bytes(self._raw[start : self.at], "little", signed=True)


def decoded(code: Buffer, vaddr: int) -> Iterator[Instruction]:
    """Decode the instructions of code that begins at a vaddr, up to its end or to what is no known instruction."""
    source = _Bytes(bytes(code))
    with suppress(IndexError):
        while source.at < len(code) and (one := _decode(source, vaddr + source.at, vaddr)) is not None:
            yield one


class _Prefixes(NamedTuple):
    """What stands before an opcode: the bits of REX (or of VEX in its place), and whether operands have 16 bits."""

    rex: int
    is_short: bool
    is_repeated: bool


_REX_PREFIXES: Final = tuple([_Prefixes(rex, is_short=False, is_repeated=False) for rex in range(16)])


def _decode(source: _Bytes, start: int, origin: int) -> Instruction | None:
    seen = set()
    while (opcode := source.byte()) in _PREFIXES:
        seen.add(opcode)
    rex = 0
    if opcode >> 4 == _REX:
        rex, opcode = opcode & 15, source.byte()
    prefixes = _Prefixes(rex, 0x66 in seen, 0xF3 in seen) if seen else _REX_PREFIXES[rex]
    if opcode in {0xC4, 0xC5}:
        return _vector(source, start, origin, opcode)
    if opcode == _FIRST_OF_0F:
        return _second_map(source, start, origin, prefixes)
    if opcode in _MODRM:
        return _with_modrm(source, start, origin, opcode, prefixes)
    if opcode not in _PLAIN:
        return None
    return _plain(source, start, origin, opcode, prefixes)


def _plain(source: _Bytes, start: int, origin: int, opcode: int, prefixes: _Prefixes) -> Instruction:
    size_bytes = _PLAIN[opcode]
    if size_bytes == 4 and prefixes.is_short and opcode not in {0xE8, 0xE9}:
        size_bytes = 2
    if 0xB8 <= opcode < 0xC0 and prefixes.rex & 8:
        size_bytes = 8
    immediate = source.signed(size_bytes) if size_bytes else None
    end = origin + source.at
    register = opcode & 7 | (prefixes.rex & 1) << 3
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


def _with_modrm(source: _Bytes, start: int, origin: int, opcode: int, prefixes: _Prefixes) -> Instruction:
    middle, base, index, displacement, register = _operands(source, prefixes.rex)
    size_bytes = 0
    if opcode in _BYTE_IMMEDIATE or (opcode == 0xF6 and middle < 2):
        size_bytes = 1
    elif opcode in _WORD_IMMEDIATE or (opcode == 0xF7 and middle < 2):
        size_bytes = 2 if prefixes.is_short else 4
    immediate = source.signed(size_bytes) if size_bytes else None
    end = origin + source.at
    is_wide = bool(prefixes.rex & 8)
    if displacement is None:
        found = _of_registers(start, end, opcode, middle, base, register, immediate)
        return found._replace(is_wide=True) if is_wide else found
    at = start, end, _stated(displacement, base, end), None if base == _RIP else base, index
    if opcode == 0xFF:
        jump = Jump(None, middle == 2, middle == 2) if middle in {2, 4} else None
        return Instruction(*at, writes_memory=middle < 2, jump=jump)
    if opcode in _GROUPS:
        return Instruction(
            *at,
            writes_memory=_group_writes(opcode, middle),
            copies=opcode == 0xC7,
            immediate=immediate,
            compares=_group_compares(opcode, middle),
        )
    if 0xD8 <= opcode < 0xE0:
        # Of the floating point unit: `fst` and its like write.
        return Instruction(*at, writes_memory=opcode & 1 == 1 and middle in {1, 2, 3, 6, 7})
    if opcode in _COMPARISONS:
        return Instruction(*at, register=register, compares=True, is_wide=is_wide)
    return Instruction(
        *at,
        register,
        None,
        opcode in _STORES or opcode == 0x8C,
        opcode == 0x8D,
        opcode in {0x86, 0x87, 0x88, 0x89, 0x8B, 0x8D},
        opcode in _LOADS,
        immediate,
        subtracts=opcode in _SUBTRACTIONS,
        is_wide=is_wide,
        mixes=opcode in _EXCLUSIVE_ORS,
        swaps=opcode in {0x86, 0x87},
    )


def _of_registers(
    start: int, end: int, opcode: int, middle: int, other: int | None, register: int, immediate: int | None
) -> Instruction:
    """Return an instruction whose ModRM names no memory."""
    if opcode == 0xFF:
        jump = Jump(None, middle == 2, middle == 2) if middle in {2, 4} else None
        return Instruction(start, end, base=other, jump=jump)
    if opcode in _GROUPS:
        is_move = opcode == 0xC7
        return Instruction(
            start,
            end,
            register=other,
            copies=is_move,
            overwrites=is_move,
            immediate=immediate,
            compares=_group_compares(opcode, middle),
            subtracts=opcode in {0x80, 0x81, 0x83} and middle == _SUBTRACT,
            mixes=opcode == 0xF7 and middle in {2, 3},
        )
    if opcode in _COMPARISONS:
        return Instruction(start, end, register=register, other=other, compares=True)
    if 0xD8 <= opcode < 0xE0:
        return Instruction(start, end)
    to_other = opcode in _STORES or opcode == 0x8C
    target, copied = (other, register) if to_other else (register, other)
    overwrites = opcode in {*_LOADS, 0x88, 0x89} or (opcode in _CLEARS and target == copied)
    copies = opcode in {0x86, 0x87, 0x88, 0x89, 0x8B, 0x8D}
    return Instruction(
        start,
        end,
        register=target,
        other=copied,
        is_address=opcode == 0x8D,
        copies=copies,
        overwrites=overwrites,
        immediate=immediate,
        subtracts=opcode in _SUBTRACTIONS,
        mixes=opcode in _EXCLUSIVE_ORS and target != copied,
        swaps=opcode in {0x86, 0x87},
    )


def _group_writes(opcode: int, middle: int) -> bool:
    """Return whether an opcode whose ModRM continues it writes its memory operand."""
    if opcode in {0x80, 0x81, 0x83}:
        return middle != _COMPARE
    return middle in {2, 3} if opcode in {0xF6, 0xF7} else True


def _group_compares(opcode: int, middle: int) -> bool:
    """Return whether an opcode whose ModRM continues it compares: `cmp` or `test` with a number."""
    return middle == _COMPARE if opcode in {0x80, 0x81, 0x83} else opcode in {0xF6, 0xF7} and middle < 2


def _second_map(source: _Bytes, start: int, origin: int, prefixes: _Prefixes) -> Instruction | None:
    opcode = source.byte()
    if 0x80 <= opcode < 0x90:
        distance = source.signed(4)
        end = origin + source.at
        return Instruction(start, end, jump=Jump(end + distance, falls_through=True))
    if opcode in _PLAIN_0F:
        is_end = opcode == 0x0B
        return Instruction(
            start, origin + source.at, jump=Jump(None, falls_through=False, is_end=True) if is_end else None
        )
    third = opcode
    if opcode in {0x38, 0x3A}:
        third = source.byte()
    middle, base, index, displacement, register = _operands(source, prefixes.rex)
    if opcode == 0x3A or (opcode != 0x38 and opcode in _BYTE_IMMEDIATE_0F):
        source.signed(1)
    end, is_memory = origin + source.at, displacement is not None
    if opcode in _HINTS_0F:
        return Instruction(start, end)
    is_store = opcode in _STORES_0F
    if opcode == 0x7E and prefixes.is_repeated:
        is_store = False
    if opcode == 0xBA:
        is_store = middle > 4
    if opcode in {0x38, 0x3A}:
        is_store = (opcode == 0x3A and third in {0x14, 0x15, 0x16, 0x17}) or (opcode == 0x38 and third in {0xF1, 0xF6})
    if opcode == _FROM_VECTOR and not is_memory and not prefixes.is_repeated:
        return Instruction(start, end, register=base, overwrites=True)
    return Instruction(
        start,
        end,
        memory=_stated(displacement, base, end),
        base=None if base in {None, _RIP} or not is_memory else base,
        scaled=index if is_memory else None,
        register=register if opcode in _OVERWRITES_0F | _EXCHANGES_0F else None,
        writes_memory=is_memory and is_store,
        # A conditional move may leave the register as it was.
        overwrites=opcode in _OVERWRITES_0F and not 0x40 <= opcode < 0x50,
        other=None if is_memory or opcode in _FROM_VECTORS_0F or opcode not in _REGISTERS_0F else base,
        copies=0x40 <= opcode < 0x50 or opcode in _EXCHANGES_0F | _TO_VECTOR,
        is_wide=bool(prefixes.rex & 8),
        swaps=opcode in _EXCHANGES_0F,
    )


_STORES_VECTOR: Final = {
    1: frozenset({0x11, 0x13, 0x17, 0x29, 0x2B, 0x7E, 0x7F, 0xD6, 0xE7}),
    2: frozenset({0x2E, 0x2F, 0x8E}),
    3: frozenset({0x14, 0x15, 0x16, 0x17, 0x19, 0x1D, 0x39}),
}


def _vector(source: _Bytes, start: int, origin: int, first: int) -> Instruction | None:
    second = source.byte()
    rex, which, ending = (~second >> 5) & 4, 1, second & 3
    if first == 0xC4:
        rex, which = (~second >> 5) & 7, second & 31
        ending = source.byte() & 3
    if which not in _STORES_VECTOR:
        return None
    opcode = source.byte()
    if which == 1 and opcode == 0x77:
        return Instruction(start, origin + source.at)
    _, base, index, displacement, register = _operands(source, rex)
    if which == 3 or (which == 1 and opcode in _BYTE_IMMEDIATE_0F):
        source.signed(1)
    end, is_memory = origin + source.at, displacement is not None
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
        copies=opcode in {0x6E, 0x22},
        overwrites=of_general,
        writes_memory=is_memory and opcode in _STORES_VECTOR[which] and not is_load,
    )


_RIP: Final = -1


def _operands(source: _Bytes, rex: int) -> tuple[int, int | None, int | None, int | None, int]:
    """Read ModRM and what belongs to it: its middle bits, base (or register), index, displacement, and register.

    The displacement is None where there is no memory operand.
    """
    modrm = source.byte()
    mode, middle, low = modrm >> 6, modrm >> 3 & 7, modrm & 7
    register = middle | (rex & 4) << 1
    if mode == 3:
        return middle, low | (rex & 1) << 3, None, None, register
    base: int | None = low | (rex & 1) << 3
    index = None
    if low == 4:
        sib = source.byte()
        number = sib >> 3 & 7 | (rex & 2) << 2
        index = None if number == 4 else number
        base = sib & 7 | (rex & 1) << 3
        if sib & 7 == 5 and mode == 0:
            return middle, None, index, source.signed(4), register
    elif low == 5 and mode == 0:
        return middle, _RIP, None, source.signed(4), register
    displacement = source.signed({0: 0, 1: 1, 2: 4}[mode]) if mode else 0
    return middle, base, index, displacement, register


def _stated(displacement: int | None, base: int | None, end: int) -> int | None:
    return displacement if displacement is None or base != _RIP else displacement + end
