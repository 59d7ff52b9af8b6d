"""The meaning of the types of dynamic relocations on each machine: which look up a symbol, and what they write.

Source: the processor supplements of the System V ABI (x86-64 1.0, i386 1.1, AArch64 2024Q3, Arm 2024Q3, RISC-V 1.0,
LoongArch 2.30, 64-bit PowerPC V2 1.9, PowerPC 1.0, s390x 1.6).
"""

from typing import Final, NamedTuple

__all__ = ("RelocationTypes", "relocation_types")


class RelocationTypes(NamedTuple):
    """The relocation types of one machine that are not an ordinary address; an empty set where it has none.

    Attributes:
        relative: Adds only the load bias, without a symbol lookup.
        jump_slot: A call through the PLT.
        glob_dat: An address in the GOT.
        copy: Copies the object of a library into the program.
        irelative: Calls a resolver function of this file.
        tls: Thread-local storage, which has no fixed address (DTPMOD, DTPOFF, TPOFF, TLSDESC).
        tls_descriptor: The types of `tls` that write two words.
    """

    relative: frozenset[int]
    jump_slot: frozenset[int]
    glob_dat: frozenset[int]
    copy: frozenset[int]
    irelative: frozenset[int]
    tls: frozenset[int]
    tls_descriptor: frozenset[int]


def _types(
    relative: int, jump_slot: int, glob_dat: int, copy: int, irelative: int, tls: tuple[int, ...], descriptor: int = 0
) -> RelocationTypes:
    def one(number: int) -> frozenset[int]:
        return frozenset({number} if number else ())

    return RelocationTypes(
        one(relative),
        one(jump_slot),
        one(glob_dat),
        one(copy),
        one(irelative),
        frozenset(tls) | one(descriptor),
        one(descriptor),
    )


_NO_TYPES: Final = _types(0, 0, 0, 0, 0, ())
_TYPES: Final = {
    3: _types(8, 7, 6, 5, 42, (14, 35, 36, 37), 41),  # EM_386
    8: _types(0, 127, 51, 126, 0, (38, 39, 40, 41, 47, 48)),  # EM_MIPS
    20: _types(22, 21, 20, 19, 248, (68, 73, 78)),  # EM_PPC
    21: _types(22, 21, 20, 19, 248, (68, 73, 78)),  # EM_PPC64
    22: _types(12, 11, 10, 9, 61, (54, 55, 56)),  # EM_S390
    40: _types(23, 22, 21, 20, 160, (17, 18, 19), 13),  # EM_ARM
    62: _types(8, 7, 6, 5, 37, (16, 17, 18), 36),  # EM_X86_64
    183: _types(1027, 1026, 1025, 1024, 1032, (1028, 1029, 1030), 1031),  # EM_AARCH64
    243: _types(3, 5, 0, 4, 58, (6, 7, 8, 9, 10, 11), 12),  # EM_RISCV
    258: _types(3, 5, 0, 4, 12, (6, 7, 8, 9, 10, 11), 14),  # EM_LOONGARCH
}


def relocation_types(machine: int) -> RelocationTypes:
    """Return the types of a machine (e_machine); on an unknown machine all types count as addresses."""
    return _TYPES.get(machine, _NO_TYPES)
