"""An instruction of x86-64 or arm64: its operands, and all that it reads and writes.

Source: Intel SDM volume 2, chapter 2 (instruction format); System V ABI for x86-64, 3.2; AAPCS64, 6.
"""

from enum import IntEnum, auto
from typing import Final

from footprint.members import NamedTuple

RAX: Final = 0
RCX: Final = 1
RDX: Final = 2
RSP: Final = 4
RBP: Final = 5
RSI: Final = 6
RDI: Final = 7
FLAGS: Final = 32
"""The number of the flags (carry, zero, sign, overflow), behind those of the general registers of all processors."""
ALL_REGISTERS: Final = (1 << 16) - 1
"""The bits of all general registers of x86-64."""


class Convention(NamedTuple):
    """What the functions of a processor use its registers for.

    Attributes:
        arguments: Those of arguments, in their order.
        result: That of the result.
        second_result: That of the second word of a result of two.
        not_kept: Those in which a function may leave anything.
        stack: The stack pointer.
        frame: The frame pointer, where a function has one.
    """

    arguments: tuple[int, ...]
    result: int
    second_result: int
    not_kept: frozenset[int]
    stack: int
    frame: int


X86_64: Final = Convention(
    (RDI, RSI, RDX, RCX, 8, 9), RAX, RDX, frozenset({RAX, RCX, RDX, RSI, RDI, *range(8, 12)}), RSP, RBP
)
ARM64: Final = Convention(tuple(range(8)), 0, 1, frozenset({*range(19), 30}), 31, 29)


class Operation(IntEnum):
    """What an instruction does, where that can keep an address an address; everything else is `OTHER`."""

    OTHER = auto()
    MOVE = auto()
    """It copies: to `register` from `other`, memory or the immediate, or to memory from `register` or the immediate."""
    MOVE_IF = auto()
    """As `MOVE`, but only under a condition."""
    EXTEND = auto()
    """It copies a part of a register or memory, and extends it (`movzx`, `movslq`)."""
    ADDRESS = auto()
    """It computes the address of its memory operand (`lea`)."""
    ADD = auto()
    SUBTRACT = auto()
    COMBINE = auto()
    """It makes each bit from the same bit of its operands (`and`, `or`, `xor`)."""
    COMPARE = auto()
    TEST = auto()
    """`test`: the flags of the bits that both operands have."""
    SCALE = auto()
    """It multiplies by its immediate (`imul`), or shifts to the left by it (`shl`, which has no second register)."""
    CLEAR = auto()
    """It makes a register zero (`xor` or `sub` of it with itself)."""
    EXCHANGE = auto()
    COPY_STRING = auto()
    """`movs`: it copies memory at rsi to memory at rdi, which its memory operand is."""
    LEAVE = auto()
    """It makes rbp the stack pointer, and takes rbp from the stack."""


class Access(IntEnum):
    """What an instruction does with its memory operand."""

    NONE = auto()
    """It has none, or does nothing with it (`lea`, `prefetch`)."""
    READ = auto()
    WRITE = auto()
    """It writes all of its size, and reads nothing there."""
    CHANGE = auto()
    """It reads and writes it."""


COMPARISONS: Final = frozenset({Operation.COMPARE, Operation.TEST})
_WRITING: Final = frozenset({Access.WRITE, Access.CHANGE})


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
        operation: What it does.
        size_bytes: The size of its operands; where it extends one, of that; of a vector that is read, the largest that
            it may be.
        memory: The vaddr that its memory operand states, as displacement; None without a memory operand, and where
            another segment or an address of 32 bits is meant.
        base: The register that is added to it; None without one.
        scaled: The register that is multiplied and added; None without one.
        scale: What `scaled` is multiplied by; 0 where it is a vector register.
        register: The general register that ModRM or the opcode names; None without one.
        other: The second general register, where ModRM names no memory.
        immediate: The immediate; None without one.
        access: What it does with its memory operand.
        reads: The bits of the registers whose value it reads, also a part of it, but for the address of its memory.
        keeps: The bits of the registers of which it writes the lowest part, and keeps the rest.
        writes: The bits of the registers that it writes. Of the flags it writes all.
        jump: Where it goes on, if that is not only the next instruction.
    """

    vaddr: int
    end_vaddr: int
    operation: Operation = Operation.OTHER
    size_bytes: int = 0
    memory: int | None = None
    base: int | None = None
    scaled: int | None = None
    scale: int = 1
    register: int | None = None
    other: int | None = None
    immediate: int | None = None
    access: Access = Access.NONE
    reads: int = 0
    writes: int = 0
    jump: Jump | None = None
    keeps: int = 0

    @property
    def writes_memory(self) -> bool:
        """Whether it writes its memory operand."""
        return self.access in _WRITING

    @property
    def compares_memory(self) -> bool:
        """Whether it compares what lies in memory, or tests bits of it."""
        return self.memory is not None and self.operation in COMPARISONS
