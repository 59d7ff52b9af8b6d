"""The numbers of the ELF format, under their names in the System V ABI and in elf.h of glibc.

The meaning of the types of dynamic relocations on each machine: which look up a symbol, and what they write.

Source: the processor supplements of the System V ABI (x86-64 1.0, i386 1.1, AArch64 2024Q3, Arm 2024Q3, RISC-V 1.0,
LoongArch 2.30, 64-bit PowerPC V2 1.9, PowerPC 1.0, s390x 1.6).
"""

from functools import lru_cache
from typing import Final

from footprint.members import NamedTuple


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


# The fields of `RelocationTypes` in turn.
_TYPES: Final[dict[int, tuple[tuple[int, ...], ...]]] = {
    3: ((8,), (7,), (6,), (5,), (42,), (14, 35, 36, 37, 41), (41,)),  # EM_386
    8: ((), (127,), (51,), (126,), (), (38, 39, 40, 41, 47, 48), ()),  # EM_MIPS
    20: ((22,), (21,), (20,), (19,), (248,), (68, 73, 78), ()),  # EM_PPC
    21: ((22,), (21,), (20,), (19,), (248,), (68, 73, 78), ()),  # EM_PPC64
    22: ((12,), (11,), (10,), (9,), (61,), (54, 55, 56), ()),  # EM_S390
    40: ((23,), (22,), (21,), (20,), (160,), (17, 18, 19, 13), (13,)),  # EM_ARM
    62: ((8,), (7,), (6,), (5,), (37,), (16, 17, 18, 36), (36,)),  # EM_X86_64
    183: ((1027,), (1026,), (1025,), (1024,), (1032,), (1028, 1029, 1030, 1031), (1031,)),  # EM_AARCH64
    243: ((3,), (5,), (), (4,), (58,), (6, 7, 8, 9, 10, 11, 12), (12,)),  # EM_RISCV
    258: ((3,), (5,), (), (4,), (12,), (6, 7, 8, 9, 10, 11, 14), (14,)),  # EM_LOONGARCH
}


@lru_cache(maxsize=16)
def relocation_types(machine: int) -> RelocationTypes:
    """Return the types of a machine (e_machine); on an unknown machine all types count as addresses."""
    return RelocationTypes(*map(frozenset, _TYPES.get(machine, ((),) * 7)))


ET_REL: Final = 1
ET_EXEC: Final = 2
ET_DYN: Final = 3

EM_386: Final = 3
EM_MIPS: Final = 8
EM_PPC: Final = 20
EM_PPC64: Final = 21
EM_S390: Final = 22
EM_ARM: Final = 40
EM_X86_64: Final = 62
EM_AARCH64: Final = 183
EM_RISCV: Final = 243
EM_LOONGARCH: Final = 258
EM_ALPHA: Final = 0x9026

PT_LOAD: Final = 1
PT_DYNAMIC: Final = 2
PT_INTERP: Final = 3
PT_NOTE: Final = 4
PT_TLS: Final = 7
PT_GNU_EH_FRAME: Final = 0x6474E550
PT_GNU_STACK: Final = 0x6474E551
PT_GNU_RELRO: Final = 0x6474E552

PF_X: Final = 1
PF_W: Final = 2

SHT_NULL: Final = 0
SHT_PROGBITS: Final = 1
SHT_SYMTAB: Final = 2
SHT_RELA: Final = 4
SHT_DYNAMIC: Final = 6
SHT_NOTE: Final = 7
SHT_NOBITS: Final = 8
SHT_REL: Final = 9
SHT_DYNSYM: Final = 11
SHT_INIT_ARRAY: Final = 14
SHT_FINI_ARRAY: Final = 15
SHT_PREINIT_ARRAY: Final = 16
SHT_GROUP: Final = 17
SHT_SYMTAB_SHNDX: Final = 18
SHT_RELR: Final = 19

SHF_WRITE: Final = 1
SHF_ALLOC: Final = 2
SHF_EXECINSTR: Final = 0x4
SHF_MERGE: Final = 0x10
SHF_STRINGS: Final = 0x20
SHF_GROUP: Final = 0x200
SHF_TLS: Final = 0x400

SHN_UNDEF: Final = 0
SHN_LORESERVE: Final = 0xFF00
SHN_ABS: Final = 0xFFF1
SHN_XINDEX: Final = 0xFFFF

STT_OBJECT: Final = 1
STT_FUNC: Final = 2
STT_SECTION: Final = 3
STT_FILE: Final = 4
STT_TLS: Final = 6
STT_GNU_IFUNC: Final = 10

STB_LOCAL: Final = 0
STB_GLOBAL: Final = 1
STB_WEAK: Final = 2
STB_GNU_UNIQUE: Final = 10

STV_INTERNAL: Final = 1
STV_HIDDEN: Final = 2
STV_PROTECTED: Final = 3

STO_MIPS_PLT: Final = 8  # a canonical PLT entry; without it, an undefined symbol has the address of a lazy-binding stub

DT_NULL: Final = 0
DT_NEEDED: Final = 1
DT_PLTRELSZ: Final = 2
DT_PLTGOT: Final = 3
DT_HASH: Final = 4
DT_STRTAB: Final = 5
DT_SYMTAB: Final = 6
DT_RELA: Final = 7
DT_RELASZ: Final = 8
DT_STRSZ: Final = 10
DT_INIT: Final = 12
DT_FINI: Final = 13
DT_SONAME: Final = 14
DT_RPATH: Final = 15
DT_SYMBOLIC: Final = 16
DT_REL: Final = 17
DT_RELSZ: Final = 18
DT_PLTREL: Final = 20
DT_DEBUG: Final = 21
DT_JMPREL: Final = 23
DT_INIT_ARRAY: Final = 25
DT_FINI_ARRAY: Final = 26
DT_INIT_ARRAYSZ: Final = 27
DT_FINI_ARRAYSZ: Final = 28
DT_RUNPATH: Final = 29
DT_BIND_NOW: Final = 24
DT_FLAGS: Final = 30
DT_PREINIT_ARRAY: Final = 32
DT_PREINIT_ARRAYSZ: Final = 33
DT_RELRSZ: Final = 35
DT_RELR: Final = 36
DT_ANDROID_REL: Final = 0x6000000F
DT_ANDROID_RELSZ: Final = 0x60000010
DT_ANDROID_RELA: Final = 0x60000011
DT_ANDROID_RELASZ: Final = 0x60000012
DT_ANDROID_RELR: Final = 0x6FFFE000
DT_ANDROID_RELRSZ: Final = 0x6FFFE001
DT_GNU_HASH: Final = 0x6FFFFEF5
DT_DEPAUDIT: Final = 0x6FFFFEFB
DT_AUDIT: Final = 0x6FFFFEFC
DT_VERSYM: Final = 0x6FFFFFF0
DT_FLAGS_1: Final = 0x6FFFFFFB
DT_VERDEF: Final = 0x6FFFFFFC
DT_VERDEFNUM: Final = 0x6FFFFFFD
DT_VERNEED: Final = 0x6FFFFFFE
DT_VERNEEDNUM: Final = 0x6FFFFFFF
DT_MIPS_LOCAL_GOTNO: Final = 0x7000000A
DT_MIPS_SYMTABNO: Final = 0x70000011
DT_MIPS_GOTSYM: Final = 0x70000013
DT_AUXILIARY: Final = 0x7FFFFFFD
DT_FILTER: Final = 0x7FFFFFFF

DF_SYMBOLIC: Final = 0x2
DF_BIND_NOW: Final = 0x8
DF_1_NOW: Final = 0x1
DF_1_NODEFLIB: Final = 0x800
DF_1_PIE: Final = 0x08000000

R_NONE: Final = 0

VER_FLG_BASE: Final = 1
VER_FLG_WEAK: Final = 2
