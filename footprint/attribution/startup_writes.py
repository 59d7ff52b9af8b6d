"""The pages of an object that its loader writes before any code of the program runs, and the causes.

Source: the start of programs in glibc 2.36 (elf/rtld.c, elf/dl-reloc.c, elf/get-dynamic-info.h), musl 1.2.3
(ldso/dynlink.c) and Linux 6.18 (fs/binfmt_elf.c), checked against the page bits of programs that were
stopped at their start.
"""

from collections.abc import Iterator
from enum import StrEnum
from itertools import compress
from typing import Final

from footprint.elf import abi
from footprint.elf.dynamic import Dynamic, bytes_at_vaddr, read_dynamic
from footprint.elf.dynsym import read_dynamic_symbols
from footprint.elf.image import Image, Segment
from footprint.elf.relocations import (
    Relocations,
    TypePages,
    pages_by_type,
    pages_of_types,
    relr_pages,
    static_relocations,
    symbol_and_type,
)
from footprint.elf.symbols import NO_NAMES, SymbolTable, read_symbol_table
from footprint.errors import InputError
from footprint.loader.target import Libc


class WriteCause(StrEnum):
    """Why a page is written before the program's own code runs."""

    RELATIVE = "relative"
    """A pointer into the object itself: tables of functions, of names, of objects with virtual functions."""
    RELR = "relr"
    """The same in the packed encoding, which makes the file smaller, but not the memory."""
    JUMP_SLOT = "jump-slot"
    """A slot of the PLT: at start the loader adds the load address even to lazy slots."""
    GLOB_DAT = "glob-dat"
    """An address in the GOT."""
    COPY = "copy"
    """A copy relocation: an object of a library that lives in the program."""
    ABSOLUTE = "absolute"
    """A pointer to a symbol that is looked up."""
    TLS = "tls"
    """The place of a thread-local variable."""
    IRELATIVE = "irelative"
    """The result of a resolver function of the object."""
    DYNAMIC = "dynamic"
    """Addresses in the dynamic section, to which glibc adds the load address."""
    GOT = "got"
    """The two words of the GOT that lazy binding needs to find the object."""
    PARTIAL_BSS = "partial-bss"
    """The rest of the last page of the file: the kernel zeroes it as the start of .bss."""
    DEBUG = "debug"
    """The entry of the dynamic section in which debuggers find the list of objects."""
    DONATED = "donated"
    """The rest of the last page, which musl gives to malloc."""
    LIBC_START = "libc-start"
    """Variables of the C library that it writes at its start."""
    CONSTRUCTOR = "constructor"
    """Variables that constructors of libraries write, where `doctor --calibrate` measured them."""


# Entries to which glibc adds the load address (ADJUST_DYN_INFO).
_MOVED_TAGS: Final = frozenset(
    {
        abi.DT_PLTGOT,
        abi.DT_HASH,
        abi.DT_STRTAB,
        abi.DT_SYMTAB,
        abi.DT_RELA,
        abi.DT_REL,
        abi.DT_JMPREL,
        abi.DT_RELR,
        abi.DT_GNU_HASH,
        abi.DT_VERSYM,
    }
)
# Machines whose ABI has a read-only dynamic section (DL_RO_DYN_SECTION).
_FIXED_DYNAMIC: Final = frozenset({abi.EM_MIPS, abi.EM_RISCV})
# Machines whose GOT has no entry for the dynamic section before the two words that lazy binding needs.
_GOT_WITHOUT_DYNAMIC: Final = frozenset({abi.EM_PPC64, abi.EM_RISCV, abi.EM_LOONGARCH})
_MIPS_GOT_TAGS: Final = (abi.DT_MIPS_LOCAL_GOTNO, abi.DT_MIPS_SYMTABNO, abi.DT_MIPS_GOTSYM)
# Programs have some ten thousand.
_MOST_GOT_WORDS: Final = 1 << 22
# Some versions of musl give away no smaller rest.
_LEAST_DONATED_BYTES: Final = 128
# What the start of glibc 2.36 writes in each static program (csu/libc-start.c, csu/libc-tls.c, elf/dl-support.c), and
# what libstdc++ 12 writes where `std::cout` is linked in: each such file initialises the streams and the first locale.
_STATIC_VARIABLES: Final = {
    "_dl_random": WriteCause.LIBC_START,
    "_dlfo_main": WriteCause.LIBC_START,
    "_dl_main_map": WriteCause.LIBC_START,
    "__progname": WriteCause.LIBC_START,
    "__environ": WriteCause.LIBC_START,
    "__curbrk": WriteCause.LIBC_START,
    "_ZSt4cout": WriteCause.CONSTRUCTOR,
    "_ZSt5wcout": WriteCause.CONSTRUCTOR,
    "_ZNSt6locale9_S_globalE": WriteCause.CONSTRUCTOR,
    "_ZNSt7__cxx117collateIwE2idE": WriteCause.CONSTRUCTOR,
    "_ZNSt8numpunctIcE2idE": WriteCause.CONSTRUCTOR,
}
# It stands among the others that the loader of musl writes (__dls3).
_MUSL_VARIABLE: Final = "__environ"
# That of the loader has one at most.
_MOST_LOADER_PAGES: Final = 16
# A file can claim any size for a copied object, and many of them at the same pages.
_MOST_COPIED_PAGES: Final = 1 << 18


def written_pages(
    image: Image, page_bytes: int, libc: Libc, *, is_program: bool
) -> Iterator[tuple[WriteCause, set[int]]]:
    """Return the pages that are written, with their cause; a cause may come several times.

    Raises:
        InputError: Where a table is damaged.
    """
    for load in image.loads:
        end = load.vaddr + load.file_bytes
        has_bss = load.memory_bytes > load.file_bytes and load.is_writable
        if has_bss and end % page_bytes:
            yield WriteCause.PARTIAL_BSS, {end // page_bytes}
    dynamic = read_dynamic(image)
    types = _Types(image, dynamic)
    segment = image.segment(abi.PT_DYNAMIC)
    if segment is None:
        for table in static_relocations(image):
            yield from types.written(table, pages_of_types(image, table, page_bytes), page_bytes)
        return
    yield from _noted_in_dynamic(image, page_bytes, dynamic, segment, libc, is_program=is_program)
    if libc is Libc.GLIBC:
        is_static = is_program and image.segment(abi.PT_INTERP) is None
        yield WriteCause.GOT, _noted_in_got(image, page_bytes, dynamic, is_static=is_static)
    elif libc is Libc.MUSL:
        yield WriteCause.DONATED, _donated(image, page_bytes)
    relative = relr_pages(image, page_bytes)
    yield WriteCause.RELR, relative
    for table, pages in pages_by_type(image, page_bytes, relative):
        yield from types.written(table, pages, page_bytes)
    if libc is Libc.MUSL and dynamic.get(abi.DT_NEEDED) is None:
        yield WriteCause.LIBC_START, _noted_by_musl(image, page_bytes)


def bss_pages(image: Image, page_bytes: int) -> set[int]:
    """Return the pages of writable segments that the file has nothing for."""
    pages: set[int] = set()
    for load in image.loads:
        if load.is_writable and load.memory_bytes > load.file_bytes:
            past_file, end = (-(-(load.vaddr + size) // page_bytes) for size in (load.file_bytes, load.memory_bytes))
            pages.update(range(past_file, min(past_file + _MOST_LOADER_PAGES, end)))
    return pages


def static_start_pages(image: Image, page_bytes: int) -> Iterator[tuple[WriteCause, set[int]]]:
    """Return the pages that the C library inside a static program writes, as far as its symbols name them."""
    table = read_symbol_table(image)
    table.names.learn_all()
    for index in table.of_types({abi.STT_OBJECT}):
        if cause := _STATIC_VARIABLES.get(table.name(index)):
            yield cause, {table.vaddrs[index] // page_bytes}


def _donated(image: Image, page_bytes: int) -> set[int]:
    """Return the last pages of writable segments whose rest musl gives to malloc, except those of RELRO."""
    relro = image.segment(abi.PT_GNU_RELRO)
    past_relro = (relro.vaddr + relro.memory_bytes) // page_bytes if relro else 0
    ends = [segment.vaddr + segment.memory_bytes for segment in image.loads if segment.is_writable]
    pages = {end // page_bytes for end in ends if -end % page_bytes >= _LEAST_DONATED_BYTES}
    return {page for page in pages if page >= past_relro}


def _noted_by_musl(image: Image, page_bytes: int) -> set[int]:
    """Return the page of the variables that the loader of musl writes: in 1.2.6 it is not the page that it donates.

    Its loader is its C library, which needs no other.
    """
    return {area.start // page_bytes for area in read_dynamic_symbols(image).areas(image, [_MUSL_VARIABLE])}


def _noted_in_dynamic(
    image: Image, page_bytes: int, dynamic: Dynamic, segment: Segment, libc: Libc, *, is_program: bool
) -> Iterator[tuple[WriteCause, set[int]]]:
    """Return what the loader writes into the dynamic section: the addresses of tables, and the entry for debuggers."""
    is_moved = libc is Libc.GLIBC and image.type != abi.ET_EXEC and image.machine not in _FIXED_DYNAMIC
    word_bytes = 8 if image.is_64 else 4
    for index, (tag, _) in enumerate(dynamic.entries if segment.is_writable else ()):
        page = (segment.vaddr + (2 * index + 1) * word_bytes) // page_bytes
        if tag in _MOVED_TAGS and is_moved:
            yield WriteCause.DYNAMIC, {page}
        elif tag == abi.DT_DEBUG and is_program:
            yield WriteCause.DEBUG, {page}


def _noted_in_got(image: Image, page_bytes: int, dynamic: Dynamic, *, is_static: bool) -> set[int]:
    """Return the pages of the GOT that glibc writes without relocations."""
    got = dynamic.get(abi.DT_PLTGOT)
    if not got:
        return set()
    word_bytes = 8 if image.is_64 else 4
    if image.machine == abi.EM_MIPS:
        # The whole GOT is relocated without a table: first the local words, then one word for each of the last symbols.
        local, symbols, first_symbol = (dynamic.get(tag) or 0 for tag in _MIPS_GOT_TAGS)
        first = local if image.type == abi.ET_EXEC else 0
        past = min(local + max(0, symbols - first_symbol), first + _MOST_GOT_WORDS)
    elif is_static or not dynamic.get(abi.DT_JMPREL) or not _is_lazy(dynamic):
        return set()
    else:
        first = 0 if image.machine in _GOT_WITHOUT_DYNAMIC else 1
        past = first + 2
    return set(range((got + first * word_bytes) // page_bytes, -(-(got + past * word_bytes) // page_bytes)))


def _is_lazy(dynamic: Dynamic) -> bool:
    is_now = (dynamic.get(abi.DT_FLAGS) or 0) & abi.DF_BIND_NOW or (dynamic.get(abi.DT_FLAGS_1) or 0) & abi.DF_1_NOW
    return not is_now and dynamic.get(abi.DT_BIND_NOW) is None


class _Types:
    """The cause of each type of relocation, and the bytes that it writes."""

    def __init__(self, image: Image, dynamic: Dynamic) -> None:
        self._image = image
        self._symbols_vaddr = dynamic.get(abi.DT_SYMTAB)
        self._left_pages = _MOST_COPIED_PAGES
        self._word_bytes = 8 if image.is_64 else 4
        self._types = types = abi.relocation_types(image.machine)
        # They may write more than a word.
        self._wide = types.tls_descriptor | types.copy
        self._causes: dict[int, WriteCause | None] = {
            **dict.fromkeys(types.relative, WriteCause.RELATIVE),
            **dict.fromkeys(types.jump_slot, WriteCause.JUMP_SLOT),
            **dict.fromkeys(types.glob_dat, WriteCause.GLOB_DAT),
            **dict.fromkeys(types.copy, WriteCause.COPY),
            **dict.fromkeys(types.irelative, WriteCause.IRELATIVE),
            **dict.fromkeys(types.tls, WriteCause.TLS),
            0: None,
        }

    def written(self, table: Relocations, by_type: TypePages, page_bytes: int) -> Iterator[tuple[WriteCause, set[int]]]:
        """Return the pages that a table of relocations writes, by cause, given those of the words that they begin."""
        for (has_symbol, kind), pages in by_type.items():
            if cause := self._cause(has_symbol, kind):
                yield cause, pages
        if self._wide.isdisjoint([kind for _, kind in by_type]):
            return
        shift = page_bytes.bit_length() - 1
        widths = {info: width for info in set(table.infos) if (width := self._width(info))}
        for vaddr, info in compress(zip(*table, strict=True), map(widths.__contains__, table.infos)):
            if cause := self._cause(*symbol_and_type(self._image, info)):
                run = range(vaddr >> shift, (vaddr + widths[info] - 1 >> shift) + 1)
                self._left_pages -= len(run) - 1
                if self._left_pages < 0:
                    raise InputError(self._image.file, "the copied objects are larger than any program has")
                yield cause, set(run)

    def _cause(self, has_symbol: int, kind: int) -> WriteCause | None:
        """Return why relocations of a type write: MIPS has one for addresses, with a symbol and without."""
        return self._causes.get(kind, WriteCause.ABSOLUTE if has_symbol else WriteCause.RELATIVE)

    def _width(self, info: int) -> int:
        """Return how many bytes a relocation writes where these are more than a word, else 0."""
        symbol, kind = symbol_and_type(self._image, info)
        if kind in self._types.tls_descriptor:
            return 2 * self._word_bytes
        if kind not in self._types.copy or not self._symbols_vaddr:
            return 0
        entry_bytes = self._image.symbol_bytes
        vaddr = self._symbols_vaddr + symbol * entry_bytes
        entry = bytes_at_vaddr(self._image, vaddr, entry_bytes, "the symbol of a copied object")
        return SymbolTable(self._image, entry, NO_NAMES).sizes[0]
