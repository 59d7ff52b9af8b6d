"""Write ELF files and archives of them: values in, bytes out.

An ELF file holds one set of contents under two tables, one for each kind of reader:

    ELF header        class, byte order, machine; where the two tables are
    program headers   the loader's view: segments, which ranges of the file are mapped where
    contents          the bytes of the sections; a NOBITS section such as .bss has none
    section headers   the linker's view: sections, what the contents are called

`write` fills in what an `ElfFile` leaves out. Sections without an address are laid out as linkers do: a first PT_LOAD
with the headers and all that is never written; then, from a fresh page on, a second with TLS, with what becomes
read-only after relocation, with data, and with bss last. The sections given are numbered 1, 2, ...; those made here
(.dynsym, .dynamic, .symtab, .shstrtab, ...) come after them, or stand where an empty one of their name was given.

    image = write(ElfFile(
        sections=[Section(".data", flags=RW, data=bytes(64)), Section(".bss", SHT_NOBITS, RW, size=4096)],
        symbols=[Sym("table", At(".bss"), 4096)],
        dynamic=[Dyn(DT_NEEDED, "libc.so.6")],
    ))

For a damaged file, write a sound one and overwrite a field: `patch(image, "sh_offset", 1 << 40, ".bss")`.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

Order = Literal["little", "big"]

# --- the numbers of the format, as elf.h calls them -------------------------------------------------------------------

ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
EM_386, EM_MIPS, EM_PPC, EM_PPC64, EM_S390, EM_ARM = 3, 8, 20, 21, 22, 40
EM_X86_64, EM_AARCH64, EM_RISCV, EM_LOONGARCH, EM_ALPHA = 62, 183, 243, 258, 0x9026

SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_HASH, SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS = range(9)
SHT_REL, SHT_DYNSYM, SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_GROUP, SHT_SYMTAB_SHNDX, SHT_RELR = 9, 11, 14, 15, 17, 18, 19
SHT_GNU_HASH, SHT_GNU_VERDEF, SHT_GNU_VERNEED, SHT_GNU_VERSYM = 0x6FFFFFF6, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_GROUP, SHF_TLS, SHF_COMPRESSED = 1, 2, 4, 0x200, 0x400, 0x800
SHN_UNDEF, SHN_LORESERVE, SHN_ABS, SHN_COMMON, SHN_XINDEX = 0, 0xFF00, 0xFFF1, 0xFFF2, 0xFFFF

PT_NULL, PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_SHLIB, PT_PHDR, PT_TLS = range(8)
PT_GNU_EH_FRAME, PT_GNU_STACK, PT_GNU_RELRO = 0x6474E550, 0x6474E551, 0x6474E552
PF_X, PF_W, PF_R = 1, 2, 4
PN_XNUM = 0xFFFF

DT_NULL, DT_NEEDED, DT_PLTRELSZ, DT_PLTGOT, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_RELAENT = range(10)
DT_STRSZ, DT_SYMENT, DT_INIT, DT_FINI, DT_SONAME, DT_RPATH, DT_SYMBOLIC, DT_REL, DT_RELSZ, DT_RELENT = range(10, 20)
DT_PLTREL, DT_DEBUG, DT_TEXTREL, DT_JMPREL, DT_BIND_NOW, DT_INIT_ARRAY, DT_FINI_ARRAY = range(20, 27)
DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ, DT_RUNPATH, DT_FLAGS = range(27, 31)
DT_SYMTAB_SHNDX, DT_RELRSZ, DT_RELR, DT_RELRENT = range(34, 38)
DT_GNU_HASH, DT_VERSYM, DT_RELACOUNT, DT_RELCOUNT = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFF9, 0x6FFFFFFA
DT_DEPAUDIT, DT_AUDIT = 0x6FFFFEFB, 0x6FFFFEFC
DT_FLAGS_1, DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = range(0x6FFFFFFB, 0x70000000)

STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_FILE, STT_COMMON, STT_TLS, STT_GNU_IFUNC = 0, 1, 2, 3, 4, 5, 6, 10
STB_LOCAL, STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE = 0, 1, 2, 10
STV_DEFAULT, STV_INTERNAL, STV_HIDDEN, STV_PROTECTED = range(4)

VER_FLG_BASE, VER_FLG_WEAK = 1, 2
VERSYM_HIDDEN = 0x8000

NT_GNU_BUILD_ID = 3

# Flags of the usual sections.
RO, RX, RW, TLS = SHF_ALLOC, SHF_ALLOC | SHF_EXECINSTR, SHF_ALLOC | SHF_WRITE, SHF_ALLOC | SHF_WRITE | SHF_TLS

# --- what a file is made of -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class At:
    """The address of a section, wherever it comes to stand, and so many bytes more."""

    section: str | int
    plus: int = 0


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a section."""

    section: str | int


Value = int | At | Size


@dataclass(frozen=True, slots=True)
class Sym:
    """An entry of a symbol table. Its section is the one its value is in, unless told: a name, or SHN_ABS and the like.

    The value of a TLS symbol is an offset into PT_TLS, and any in a relocatable file is one into its section: `At`
    becomes the right one. A number is written as it is. The version of a dynamic symbol is an index.
    """

    name: str | int
    value: Value = 0
    size: int = 0
    type: int = STT_OBJECT
    binding: int = STB_GLOBAL
    visibility: int = STV_DEFAULT
    section: str | int | None = None
    version: int = 1


@dataclass(frozen=True, slots=True)
class Dyn:
    """An entry of .dynamic; text becomes its place in .dynstr."""

    tag: int
    value: Value | str = 0


@dataclass(frozen=True, slots=True)
class Rel:
    """A relocation. One without an addend (SHT_REL) takes what stands at its offset; one with it is of SHT_RELA."""

    offset: Value
    type: int
    symbol: str | int = 0
    addend: Value | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """An entry of a note section."""

    type: int
    name: str
    text: bytes


@dataclass(frozen=True, slots=True)
class Version:
    """A version that a file defines, or one that it needs; its index may have VERSYM_HIDDEN."""

    name: str
    index: int
    flags: int = 0


Piece = bytes | Value | Sym | Dyn | Rel | Note
"""What contents are made of; a value is a word as wide as an address."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section. An align, link or entsize of 0 follows from its type, an address of None from what stands before."""

    name: str
    type: int = SHT_PROGBITS
    flags: int = 0
    data: bytes | Sequence[Piece] = b""
    size: int = 0  # of a NOBITS section; any other is as long as its data
    addr: int | None = None
    align: int = 0
    link: str | int = 0
    info: str | int = 0
    entsize: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """A program header. What is None follows from the sections in it; a PT_LOAD at offset 0 holds the headers too."""

    type: int
    flags: int = PF_R
    sections: Sequence[str | int] = ()
    offset: int | None = None
    vaddr: int | None = None
    filesz: int | None = None
    memsz: int | None = None
    align: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfFile:
    """A whole file."""

    bits: Literal[32, 64] = 64
    order: Order = "little"
    type: int = ET_DYN
    machine: int = EM_X86_64
    flags: int = 0
    entry: Value = 0
    sections: Sequence[Section] = ()
    segments: Sequence[Segment] | None = None  # None: those a linker makes for the sections that are in memory
    symbols: Sequence[Sym] = ()  # makes .symtab and .strtab
    dynamic_symbols: Sequence[Sym] = ()  # makes .dynsym, .dynstr, .hash (unless SHT_GNU_HASH is given) and .dynamic
    gnu_hash: bool = False  # makes .gnu.hash in place of .hash; what is not defined comes first then
    versions: Sequence[Version] = ()  # those that it defines: makes .gnu.version_d, and .gnu.version
    needs: Mapping[str, Sequence[Version]] = field(default_factory=dict)  # by file: makes .gnu.version_r
    dynamic: Sequence[Dyn] = ()  # makes the same; entries that lead to the tables, and the last, are added
    build_id: bytes = b""  # makes .note.gnu.build-id
    relro: Sequence[str | int] = ()  # the sections in PT_GNU_RELRO
    page_bytes: int = 0x1000
    extended: bool = False  # write all counts and numbers as if they were too large for their fields


# --- how its structures are packed ------------------------------------------------------------------------------------

# Each field with its code of the struct module; A is as wide as an address.
_FIELDS = {
    "ehdr": "ei_mag:4s ei_class:B ei_data:B ei_version:B ei_osabi:B ei_abiversion:B ei_pad:7s e_type:H e_machine:H "
    "e_version:I e_entry:A e_phoff:A e_shoff:A e_flags:I e_ehsize:H e_phentsize:H e_phnum:H e_shentsize:H e_shnum:H "
    "e_shstrndx:H",
    "phdr32": "p_type:I p_offset:A p_vaddr:A p_paddr:A p_filesz:A p_memsz:A p_flags:I p_align:A",
    "phdr64": "p_type:I p_flags:I p_offset:A p_vaddr:A p_paddr:A p_filesz:A p_memsz:A p_align:A",
    "shdr": "sh_name:I sh_type:I sh_flags:A sh_addr:A sh_offset:A sh_size:A sh_link:I sh_info:I sh_addralign:A "
    "sh_entsize:A",
    "sym32": "st_name:I st_value:A st_size:A st_info:B st_other:B st_shndx:H",
    "sym64": "st_name:I st_info:B st_other:B st_shndx:H st_value:A st_size:A",
    "dyn": "d_tag:A d_val:A",
    "rel": "r_offset:A r_info:A",
    "rela": "r_offset:A r_info:A r_addend:A",
    "note": "n_namesz:I n_descsz:I n_type:I",
    "word": "word:A",
    "index": "index:I",
}

# What follows from a section's type: of which structure it is a table; to which section it links, where .symtab stands
# for .dynsym if it is in memory; and which dynamic entries tell its address, its size and the size of an entry.
_TYPES: dict[int, tuple[str, str, Sequence[int]]] = {
    SHT_SYMTAB: ("sym", ".strtab", []),
    SHT_SYMTAB_SHNDX: ("index", ".symtab", [DT_SYMTAB_SHNDX]),
    SHT_DYNSYM: ("sym", ".dynstr", [DT_SYMTAB, DT_NULL, DT_SYMENT]),
    SHT_STRTAB: ("", "", [DT_STRTAB, DT_STRSZ]),
    SHT_HASH: ("index", ".dynsym", [DT_HASH]),
    SHT_GNU_HASH: ("", ".dynsym", [DT_GNU_HASH]),
    SHT_GNU_VERSYM: ("", ".dynsym", [DT_VERSYM]),
    SHT_GNU_VERNEED: ("", ".dynstr", [DT_VERNEED, DT_VERNEEDNUM]),
    SHT_GNU_VERDEF: ("", ".dynstr", [DT_VERDEF, DT_VERDEFNUM]),
    SHT_DYNAMIC: ("dyn", ".dynstr", []),
    SHT_RELA: ("rela", ".symtab", [DT_RELA, DT_RELASZ, DT_RELAENT]),
    SHT_REL: ("rel", ".symtab", [DT_REL, DT_RELSZ, DT_RELENT]),
    SHT_RELR: ("word", "", [DT_RELR, DT_RELRSZ, DT_RELRENT]),
    SHT_INIT_ARRAY: ("word", "", [DT_INIT_ARRAY, DT_INIT_ARRAYSZ]),
    SHT_FINI_ARRAY: ("word", "", [DT_FINI_ARRAY, DT_FINI_ARRAYSZ]),
}


# Of these the dynamic section tells how many entries they have, as their section header does.
_COUNTED = frozenset({SHT_GNU_VERNEED, SHT_GNU_VERDEF})


@cache
def _formats(kind: str, bits: int, order: Order) -> dict[str, str]:
    """Return the format of each field of a structure in one class and byte order."""
    mark, word = "<" if order == "little" else ">", "Q" if bits == 64 else "I"
    fields = (_FIELDS.get(kind) or _FIELDS[f"{kind}{bits}"]).split()
    return {name: mark + code.replace("A", word) for name, code in (field.split(":") for field in fields)}


@cache
def _structure(kind: str, bits: int, order: Order) -> struct.Struct:
    """Return what packs all fields of a structure at once."""
    mark = "<" if order == "little" else ">"
    return struct.Struct(mark + "".join(code.removeprefix(mark) for code in _formats(kind, bits, order).values()))


def _bytes(formats: Iterable[str]) -> int:
    return sum(map(struct.calcsize, formats))


def _is_for_others(symbol: Sym) -> bool:
    return symbol.binding != STB_LOCAL


def gnu_hash(name: str) -> int:
    """Return what DT_GNU_HASH files a name under."""
    number = 5381
    for byte in name.encode("utf-8", "surrogateescape"):
        number = (number * 33 + byte) & 0xFFFFFFFF
    return number


def sysv_hash(name: str) -> int:
    """Return what DT_HASH files a name under, and how versions are told apart."""
    number = 0
    for byte in name.encode("utf-8", "surrogateescape"):
        number = (number << 4) + byte
        high = number & 0xF0000000
        number = (number ^ high >> 24) & ~high & 0xFFFFFFFF
    return number


def _up(number: int, step: int) -> int:
    return -(-number // max(step, 1)) * max(step, 1)


# --- writing ----------------------------------------------------------------------------------------------------------


def write(file: ElfFile) -> bytes:
    """Return the bytes of an ELF file.

    Raises:
        ValueError: An address given to a section leaves no room for what stands before it.
        KeyError: A section, symbol or text is referred to that does not exist.
    """
    return _Writer(file).image()


class _Writer:
    """One file: its sections are completed, then measured, then placed, then written."""

    def __init__(self, file: ElfFile) -> None:
        self.file = file
        self.sections = [Section("", SHT_NULL), *file.sections]
        self.numbers: dict[str, int] = {}  # of the sections, by name
        for number, section in enumerate(self.sections):
            self.numbers.setdefault(section.name, number)  # of two with one name, the first is meant
        self.strings: dict[str, dict[str, int]] = {}  # by string table: where each name stands
        self.symbols: dict[str, dict[str | int, int]] = {}  # by symbol table: which entry each name has
        self.addrs, self.offsets, self.sizes = {0: 0}, {0: 0}, {0: 0}  # by section number
        self.make_sections()
        self.sections = [self.completed(section) for section in self.sections]
        for number, section in enumerate(self.sections):  # no address is known yet, but no length depends on one
            self.sizes[number] = section.size if section.type == SHT_NOBITS else len(self.contents(section))
        self.segments = self.usual_segments() if file.segments is None else list(file.segments)
        self.headers_bytes = self.length("ehdr") + self.length("phdr") * len(self.segments)
        self.end_offset = self.headers_bytes
        self.place()

    def pack(self, kind: str, *values: int | bytes) -> bytes:
        return _structure(kind, self.file.bits, self.file.order).pack(*values)

    def length(self, kind: str) -> int:
        return _bytes(_formats(kind, self.file.bits, self.file.order).values()) if kind else 0

    def number(self, section: str | int) -> int:
        return self.numbers[section] if isinstance(section, str) else section

    def value(self, value: Value) -> int:
        match value:
            case int():
                return value
            case At(section, plus):
                return (self.addrs.get(self.number(section), 0) + plus) % (1 << self.file.bits)
            case Size(section):
                return self.sizes.get(self.number(section), 0)

    # --- the sections that are made

    def make_sections(self) -> None:
        file = self.file
        if file.build_id:
            self.make(Section(".note.gnu.build-id", SHT_NOTE, RO, [Note(NT_GNU_BUILD_ID, "GNU", file.build_id)]))
        if file.dynamic or file.dynamic_symbols:
            texts = [each.value for each in file.dynamic if isinstance(each.value, str)]
            texts += [version.name for version in file.versions] + [*file.needs]
            texts += [version.name for versions in file.needs.values() for version in versions]
            self.make_symbols(".dynsym", ".dynstr", file.dynamic_symbols, texts)
            if file.gnu_hash:
                self.make_gnu_hash()
            elif all(section.type != SHT_GNU_HASH for section in self.sections):
                self.make_hash(1 + len(file.dynamic_symbols))
            if file.versions or file.needs:
                self.make_versions()
            self.make(Section(".dynamic", SHT_DYNAMIC, RW, self.dynamic_entries()))
        if file.symbols:
            self.make_symbols(".symtab", ".strtab", file.symbols)
        names = self.string_table(".shstrtab", [*(section.name for section in self.sections), ".shstrtab"])
        self.make(Section(".shstrtab", SHT_STRTAB, data=names))

    def make(self, section: Section) -> None:
        """Add a section, or fill in the one that was given under its name to say where it stands."""
        number = self.numbers.setdefault(section.name, len(self.sections))
        given = self.sections[number : number + 1]
        self.sections[number : number + 1] = [replace(section, addr=given[0].addr if given else None)]

    def string_table(self, table: str, names: Iterable[str | int]) -> bytes:
        """Write names one after the other, each ended by a zero byte; at 0 stands the empty one."""
        blob, places = bytearray(1), {"": 0}
        for name in names:
            if isinstance(name, str) and name not in places:
                places[name] = len(blob)
                blob += name.encode("utf-8", "surrogateescape") + b"\0"
        self.strings[table] = places
        return bytes(blob)

    def make_symbols(self, name: str, strings: str, symbols: Sequence[Sym], more_texts: Sequence[str] = ()) -> None:
        """Make a symbol table: an empty entry, the local symbols, all others. Its info is where those begin."""
        type_, flags = (SHT_DYNSYM, RO) if name == ".dynsym" else (SHT_SYMTAB, 0)
        ordered = self.ordered(symbols) if name == ".dynsym" else sorted(symbols, key=_is_for_others)
        local_count = 1 + sum(each.binding == STB_LOCAL for each in symbols)
        self.symbols[name] = {each.name: number for number, each in reversed([*enumerate(ordered, 1)])}
        self.make(Section(name, type_, flags, [bytes(self.length("sym")), *ordered], info=local_count))
        texts = self.string_table(strings, [*(each.name for each in ordered), *more_texts])
        self.make(Section(strings, SHT_STRTAB, flags, texts))
        large = [0, *(self.section_numbers(each)[1] for each in ordered)]
        if any(large):
            self.make(Section(f"{name}_shndx", SHT_SYMTAB_SHNDX, flags, self.table("I", large)))

    def ordered(self, symbols: Sequence[Sym]) -> list[Sym]:
        """Put local symbols before all others and, where the hash table asks for it, those not defined before those."""

        def place(symbol: Sym) -> tuple[bool, bool]:
            return _is_for_others(symbol), self.file.gnu_hash and self.section_numbers(symbol)[0] != SHN_UNDEF

        return sorted(symbols, key=place)

    def section_numbers(self, symbol: Sym) -> tuple[int, int]:
        """Return what stands for the symbol's section in its entry, and what in the table of larger numbers."""
        section = symbol.section
        if section is None:
            section = symbol.value.section if isinstance(symbol.value, At) else SHN_UNDEF
        number = self.number(section)
        if isinstance(section, str) and (self.file.extended or number >= SHN_LORESERVE):
            return SHN_XINDEX, number
        return number, 0

    def make_hash(self, symbol_count: int) -> None:
        """Make a hash table with a single bucket: it names the first symbol, each symbol the next, the last none."""
        first, *chain = [*range(1, symbol_count), 0]
        code, entsize = ("Q", 8) if self.file.bits == 64 and self.file.machine in (EM_S390, EM_ALPHA) else ("I", 4)
        table = self.table(code, [1, symbol_count, first, 0, *chain])
        self.make(Section(".hash", SHT_HASH, RO, table, align=8, entsize=entsize))

    def make_gnu_hash(self) -> None:
        """Make a GNU hash table of one bucket, whose filter lets all pass; GNU ld begins one without symbols at 1."""
        symbols = self.ordered(self.file.dynamic_symbols)
        found = [each for each in symbols if _is_for_others(each) and self.section_numbers(each)[0] != SHN_UNDEF]
        first = 1 + len(symbols) - len(found) if found else 1
        hashes = [gnu_hash(each.name) & ~1 if isinstance(each.name, str) else 0 for each in found]
        chain = [*hashes[:-1], *(digest | 1 for digest in hashes[-1:])]
        table = self.table("I", [1, first, 1, 0]) + self.pack("word", (1 << self.file.bits) - 1)
        table += self.table("I", [first if found else 0, *chain])
        self.make(Section(".gnu.hash", SHT_GNU_HASH, RO, table, align=8))

    def make_versions(self) -> None:
        """Make the tables of versions: each entry tells the distance to the next; the first name of one is its own."""
        file, place = self.file, self.strings[".dynstr"]
        symbols = [0, *(each.version for each in self.ordered(file.dynamic_symbols))]
        self.make(Section(".gnu.version", SHT_GNU_VERSYM, RO, self.table("H", symbols), align=2, entsize=2))
        if file.versions:
            defined = b""
            for left, version in zip(range(len(file.versions) - 1, -1, -1), file.versions, strict=True):
                fixed = self.table("H", [1, version.flags, version.index, 1])
                where = self.table("I", [sysv_hash(version.name), 20, 28 if left else 0, place[version.name], 0])
                defined += fixed + where
            self.make(Section(".gnu.version_d", SHT_GNU_VERDEF, RO, defined, align=8, info=len(file.versions)))
        if file.needs:
            needed = b""
            for left, (name, versions) in zip(range(len(file.needs) - 1, -1, -1), file.needs.items(), strict=True):
                distance = 16 + 16 * len(versions) if left else 0
                needed += self.table("H", [1, len(versions)]) + self.table("I", [place[name], 16, distance])
                for more, each in zip(range(len(versions) - 1, -1, -1), versions, strict=True):
                    needed += self.table("I", [sysv_hash(each.name)]) + self.table("H", [each.flags, each.index])
                    needed += self.table("I", [place[each.name], 16 if more else 0])
            self.make(Section(".gnu.version_r", SHT_GNU_VERNEED, RO, needed, align=8, info=len(file.needs)))

    def table(self, code: str, numbers: Sequence[int]) -> bytes:
        return struct.pack(f"{'<' if self.file.order == 'little' else '>'}{len(numbers)}{code}", *numbers)

    def dynamic_entries(self) -> list[Dyn]:
        """Add what a loader needs to find the tables; a tag that is there already is left as it is."""
        entries = list(self.file.dynamic)
        for section in self.sections:
            if section.type in _TYPES and section.flags & SHF_ALLOC:
                kind, _, tags = _TYPES[section.type]
                facts: Sequence[Value] = At(section.name), Size(section.name), self.length(kind)
                present = {DT_NULL, *(entry.tag for entry in entries)}
                if section.type in _COUNTED and isinstance(section.info, int):
                    facts = At(section.name), section.info
                entries += [Dyn(tag, fact) for tag, fact in zip(tags, facts, strict=False) if tag not in present]
        return [*entries, Dyn(DT_NULL)]

    def completed(self, section: Section) -> Section:
        """Return a section with what follows from its type."""
        kind, link, _ = _TYPES.get(section.type, ("", "", []))
        if link == ".symtab" and section.flags & SHF_ALLOC:
            link = ".dynsym"
        number = self.number(section.link) if section.link else self.numbers.get(link, 0)
        align = 1 if isinstance(section.data, bytes) else self.file.bits // 8
        align = 4 if section.type in (SHT_NOTE, SHT_SYMTAB_SHNDX) else align
        entsize = section.entsize or self.length(kind)
        return replace(section, align=section.align or align, link=number, entsize=entsize)

    def is_tbss(self, number: int) -> bool:
        """Whether a section takes no room at its address: it only says how much of each thread's block is zero."""
        return self.sections[number].type == SHT_NOBITS and bool(self.sections[number].flags & SHF_TLS)

    # --- where all of it stands

    def usual_segments(self) -> list[Segment]:
        """Cover the sections that are in memory by the segments that linkers make."""
        relro = {self.number(each) for each in self.file.relro}

        def has(number: int, flag: int) -> bool:
            return bool(self.sections[number].flags & flag)

        def order(number: int) -> tuple[bool, bool, bool]:
            return not has(number, SHF_TLS), number not in relro, self.sections[number].type == SHT_NOBITS

        alloc = [n for n in range(len(self.sections)) if has(n, SHF_ALLOC)]
        if self.file.type == ET_REL or not alloc:
            return []
        fixed = [n for n in alloc if not has(n, SHF_WRITE)]
        writable = sorted((n for n in alloc if has(n, SHF_WRITE)), key=order)
        text_flags = PF_R | PF_X if any(has(n, SHF_EXECINSTR) for n in fixed) else PF_R
        segments = [
            Segment(PT_INTERP, PF_R, [n for n in fixed if self.sections[n].name == ".interp"]),
            Segment(PT_LOAD, text_flags, fixed, offset=0),
            Segment(PT_LOAD, PF_R | PF_W, writable),
            Segment(PT_TLS, PF_R, [n for n in writable if has(n, SHF_TLS)]),
            Segment(PT_GNU_RELRO, PF_R, [n for n in writable if n in relro]),
            Segment(PT_DYNAMIC, PF_R | PF_W, [n for n in alloc if self.sections[n].type == SHT_DYNAMIC]),
            *(Segment(PT_NOTE, PF_R, [n]) for n in alloc if self.sections[n].type == SHT_NOTE),
        ]
        return [*(segment for segment in segments if segment.sections), Segment(PT_GNU_STACK, PF_R | PF_W)]

    def place(self) -> None:
        """Assign each section its address and its offset; within a PT_LOAD the two differ by the same number."""
        end_vaddr = 0x400000 if self.file.type == ET_EXEC else 0
        for position, segment in enumerate(self.segments):
            if segment.type == PT_LOAD:
                self.segments[position], end_vaddr = self.place_load(segment, end_vaddr)
        for number, section in enumerate(self.sections):
            if number not in self.addrs:  # it is in no PT_LOAD
                self.addrs[number] = section.addr or 0
                self.offsets[number] = _up(self.end_offset, section.align)
                self.end_offset = self.offsets[number] + (0 if section.type == SHT_NOBITS else self.sizes[number])

    def place_load(self, load: Segment, end_vaddr: int) -> tuple[Segment, int]:
        """Place the sections of a PT_LOAD behind what ends at an address; return it as it now is, and where it ends."""
        page, relro = self.file.page_bytes, {self.number(each) for each in self.file.relro}
        numbers = [self.number(each) for each in load.sections]
        start, offset = load.vaddr, load.offset
        if start is None:
            first_addr = self.sections[numbers[0]].addr if numbers else None
            start = _up(end_vaddr, page) if first_addr is None else first_addr
            if offset == 0 and first_addr is not None:
                start = max(0, first_addr - self.end_offset) // page * page  # with room for the headers
        if offset is None:
            offset = self.end_offset + (start - self.end_offset) % page  # at the same place in its page as the address
        end_vaddr = start + max(0, self.end_offset - offset)
        last = 0
        for number in numbers:
            section, is_tbss = self.sections[number], self.is_tbss(number)
            if last in relro and number not in relro and not is_tbss:
                end_vaddr = _up(end_vaddr, page)  # only whole pages can be made read-only
            addr = _up(end_vaddr, section.align) if section.addr is None else section.addr
            if addr < end_vaddr:
                raise ValueError(f"{section.name} at {addr:#x} begins before {end_vaddr:#x}, where the one before ends")
            self.addrs[number], self.offsets[number] = addr, offset + addr - start
            if not is_tbss:
                last, end_vaddr = number, addr + self.sizes[number]
            if section.type != SHT_NOBITS:
                self.end_offset = self.offsets[number] + self.sizes[number]
        return replace(load, vaddr=start, offset=offset), max(end_vaddr, start + (load.memsz or 0))

    # --- bytes

    def image(self) -> bytes:
        """Write the headers and the contents, each where it was placed."""
        file, shoff = self.file, _up(self.end_offset, self.file.bits // 8)
        shnum, shstrndx, phnum = len(self.sections), self.number(".shstrtab"), len(self.segments)
        # A number too large for its field in the file header stands in the first section header, else all zeros.
        large_shnum = shnum if file.extended or shnum >= SHN_LORESERVE else 0
        large_shstrndx = shstrndx if file.extended or shstrndx >= SHN_LORESERVE else 0
        large_phnum = phnum if file.extended or phnum >= PN_XNUM else 0
        identity = b"\x7fELF", file.bits // 32, 1 if file.order == "little" else 2, 1, 0, 0, b""
        what = file.type, file.machine, 1, self.value(file.entry)
        where = self.length("ehdr") if phnum else 0, shoff, file.flags, self.length("ehdr")
        segments = self.length("phdr"), PN_XNUM if large_phnum else phnum
        sections = self.length("shdr"), 0 if large_shnum else shnum, SHN_XINDEX if large_shstrndx else shstrndx
        headers = self.pack("ehdr", *identity, *what, *where, *segments, *sections)
        headers += b"".join(self.program_header(segment) for segment in self.segments)
        out = bytearray(shoff)
        out[: len(headers)] = headers
        for number, section in enumerate(self.sections):
            data = self.contents(section)
            out[self.offsets[number] : self.offsets[number] + len(data)] = data
        out += self.pack("shdr", 0, SHT_NULL, 0, 0, 0, large_shnum, large_shstrndx, large_phnum, 0, 0)
        return bytes(out) + b"".join(self.section_header(number) for number in range(1, shnum))

    def section_header(self, number: int) -> bytes:
        section, name = self.sections[number], self.strings[".shstrtab"][self.sections[number].name]
        where = self.addrs[number], self.offsets[number], self.sizes[number]
        refers = self.number(section.link), self.number(section.info)
        return self.pack("shdr", name, section.type, section.flags, *where, *refers, section.align, section.entsize)

    def program_header(self, segment: Segment) -> bytes:
        numbers = [self.number(section) for section in segment.sections]
        first = numbers[0] if numbers else 0
        offset = self.offsets[first] if segment.offset is None else segment.offset
        vaddr = self.addrs[first] if segment.vaddr is None else segment.vaddr
        align = max([1, *(self.sections[n].align for n in numbers)])
        file_ends = [self.offsets[n] + self.sizes[n] for n in numbers if self.sections[n].type != SHT_NOBITS]
        memory_ends = [self.addrs[n] + self.sizes[n] for n in numbers if segment.type == PT_TLS or not self.is_tbss(n)]
        if segment.type == PT_LOAD:
            align = self.file.page_bytes
            file_ends += [self.headers_bytes] if offset == 0 else []
        if segment.type == PT_GNU_RELRO and memory_ends:
            end = max(memory_ends)  # it goes on to the end of the page when nothing else is there
            behind = [addr for n, addr in self.addrs.items() if addr >= end and self.sections[n].flags & SHF_ALLOC]
            memory_ends.append(min([_up(end, self.file.page_bytes), *behind]))
        filesz = max(file_ends, default=offset) - offset if segment.filesz is None else segment.filesz
        memsz = max([*memory_ends, vaddr + filesz]) - vaddr if segment.memsz is None else segment.memsz
        align = align if segment.align is None else segment.align
        where = offset, vaddr, vaddr, filesz, memsz
        fields = (*where, segment.flags) if self.file.bits == 32 else (segment.flags, *where)
        return self.pack("phdr", segment.type, *fields, align)

    def contents(self, section: Section) -> bytes:
        if isinstance(section.data, bytes):
            return section.data
        table = self.sections[self.number(section.link)].name
        return b"".join(self.piece(each, table) for each in section.data)

    def piece(self, piece: Piece, table: str) -> bytes:
        """Write one piece of a section; names in it are looked up in the table that the section links to."""
        match piece:
            case bytes():
                return piece
            case Sym():
                return self.symbol(piece, table)
            case Rel():
                return self.relocation(piece, table)
            case Dyn(tag, value):
                number = self.strings[table][value] if isinstance(value, str) else self.value(value)
                return self.pack("dyn", tag, number)
            case Note(type_, name, text):
                owner = name.encode() + b"\0"
                padded = b"".join(each + bytes(-len(each) % 4) for each in (owner, text))
                return self.pack("note", len(owner), len(text), type_) + padded
            case _:
                return self.pack("word", self.value(piece))

    def symbol(self, symbol: Sym, strings: str) -> bytes:
        value = self.value(symbol.value)
        if symbol.type == STT_TLS and isinstance(symbol.value, At):
            value -= min(self.addrs.get(n, 0) for n, section in enumerate(self.sections) if section.flags & SHF_TLS)
        name = self.strings[strings][symbol.name] if isinstance(symbol.name, str) else symbol.name
        where = value, symbol.size
        what = symbol.binding << 4 | symbol.type, symbol.visibility, self.section_numbers(symbol)[0]
        return self.pack("sym", name, *(where + what if self.file.bits == 32 else what + where))

    def relocation(self, relocation: Rel, symbols: str) -> bytes:
        type_, symbol = relocation.type, relocation.symbol
        number = self.symbols[symbols][symbol] if isinstance(symbol, str) else symbol
        if self.file.bits == 32:
            info = number << 8 | type_
        elif self.file.machine == EM_MIPS and self.file.order == "little":  # the bytes of its type keep their order
            info = int.from_bytes(type_.to_bytes(4, "big"), "little") << 32 | number
        else:
            info = number << 32 | type_
        if relocation.addend is None:
            return self.pack("rel", self.value(relocation.offset), info)
        addend = self.value(relocation.addend) % (1 << self.file.bits)
        return self.pack("rela", self.value(relocation.offset), info, addend)


def relr(addresses: Iterable[int], bits: Literal[32, 64] = 64) -> list[int]:
    """Return the words of a SHT_RELR section that relocates the words at some addresses.

    An even word is an address. An odd one is a map of the 31 or 63 words behind the last one spoken of.
    """
    word_bytes, pending, words = bits // 8, sorted(addresses), list[int]()
    while pending:
        words.append(pending[0])
        start, pending = pending[0] + word_bytes, pending[1:]
        while pending and pending[0] < (end := start + (bits - 1) * word_bytes):
            inside = [address for address in pending if address < end]
            words.append(1 | sum(2 << (address - start) // word_bytes for address in inside))
            start, pending = end, pending[len(inside) :]
    return words


# --- damage -----------------------------------------------------------------------------------------------------------


def patch(image: bytes, field: str, value: int | bytes, at: int | str = 0) -> bytes:
    """Return an ELF file with one field of a header overwritten.

    Args:
        image: The file.
        field: Of the file header (`e_shoff`, `ei_class`), of a program header (`p_filesz`) or of a section header
            (`sh_link`).
        value: What to write there.
        at: Which program header, by number, or which section header, by number or name.
    """
    offset, code = _locate(image, field, at)
    return image[:offset] + struct.pack(code, value) + image[offset + struct.calcsize(code) :]


def peek(image: bytes, field: str, at: int | str = 0) -> int:
    """Return the number in a field of a header, named as for `patch`."""
    offset, code = _locate(image, field, at)
    return int(struct.unpack_from(code, image, offset)[0])


def _locate(image: bytes, field: str, at: int | str) -> tuple[int, str]:
    table = {"p": "ph", "sh": "sh"}.get(field.partition("_")[0], "eh")
    formats = _formats(f"{table}dr", image[4] * 32, "little" if image[5] == 1 else "big")
    number = _section_number(image, at) if isinstance(at, str) else at
    start = 0 if table == "eh" else peek(image, f"e_{table}off") + number * peek(image, f"e_{table}entsize")
    before = list(formats)[: list(formats).index(field)]
    return start + _bytes(formats[name] for name in before), formats[field]


def _section_number(image: bytes, name: str) -> int:
    names = peek(image, "e_shstrndx")
    names_offset = peek(image, "sh_offset", peek(image, "sh_link") if names == SHN_XINDEX else names)
    for number in range(peek(image, "e_shnum") or peek(image, "sh_size")):
        if image.startswith(name.encode() + b"\0", names_offset + peek(image, "sh_name", number)):
            return number
    raise KeyError(name)


# --- archives ---------------------------------------------------------------------------------------------------------


def archive(members: Sequence[tuple[str, bytes]], *, thin: bool = False, bsd: bool = False) -> bytes:
    """Return the bytes of an archive, as `ar` writes them.

    A name too long for its header stands in a member of its own called `//` (GNU), or before the contents (BSD). A thin
    archive leaves the contents in the files that it names. A member called `/` is GNU's symbol index.
    """

    def member(name: str, contents: bytes, *, is_absent: bool = False) -> bytes:
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(contents):<10}`\n".encode()
        return header if is_absent else header + contents + b"\n" * (len(contents) % 2)

    out, long_names = b"", b""
    for name, contents in members:
        text = name.encode()
        if bsd and (len(text) > 15 or " " in name):
            out += member(f"#1/{len(text)}", text + contents)
        elif bsd or name == "/":
            out += member(name, contents)
        elif thin or len(text) > 15:
            out += member(f"/{len(long_names)}", contents, is_absent=thin)
            long_names += text + b"/\n"
        else:
            out += member(f"{name}/", contents)
    return (b"!<thin>\n" if thin else b"!<arch>\n") + (member("//", long_names) if long_names else b"") + out
