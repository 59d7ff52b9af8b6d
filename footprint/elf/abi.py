"""The numbers of the ELF format, under their names in the System V ABI and in elf.h of glibc."""

from typing import Final

ET_REL: Final = 1
ET_EXEC: Final = 2
ET_DYN: Final = 3

EM_386: Final = 3
EM_MIPS: Final = 8
EM_PPC: Final = 20
EM_S390: Final = 22
EM_ARM: Final = 40
EM_X86_64: Final = 62
EM_AARCH64: Final = 183
EM_ALPHA: Final = 0x9026

PT_LOAD: Final = 1
PT_DYNAMIC: Final = 2
PT_INTERP: Final = 3
PT_NOTE: Final = 4
PT_TLS: Final = 7
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
SHT_SYMTAB_SHNDX: Final = 18

SHF_WRITE: Final = 1
SHF_ALLOC: Final = 2
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

STO_MIPS_PLT: Final = 8

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
DT_JMPREL: Final = 23
DT_INIT_ARRAY: Final = 25
DT_INIT_ARRAYSZ: Final = 27
DT_RUNPATH: Final = 29
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
DT_VERSYM: Final = 0x6FFFFFF0
DT_FLAGS_1: Final = 0x6FFFFFFB
DT_VERDEF: Final = 0x6FFFFFFC
DT_VERDEFNUM: Final = 0x6FFFFFFD
DT_VERNEED: Final = 0x6FFFFFFE
DT_VERNEEDNUM: Final = 0x6FFFFFFF
DT_MIPS_GOTSYM: Final = 0x70000013
DT_AUXILIARY: Final = 0x7FFFFFFD
DT_FILTER: Final = 0x7FFFFFFF

DF_SYMBOLIC: Final = 0x2
DF_1_NODEFLIB: Final = 0x800
DF_1_PIE: Final = 0x08000000

R_NONE: Final = 0

VER_FLG_BASE: Final = 1
VER_FLG_WEAK: Final = 2
