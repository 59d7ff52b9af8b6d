"""The contents of the writable memory of an ELF file, section by section, and the bytes that no symbol names.

Every byte of a section has one owner: a variable, or a residue with its cause. The sums are conserved by construction
(`footprint.ranges`). Each thread-local section is counted by itself: its addresses overlap those of the sections after
it, and its symbols are offsets.
"""

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import compress, filterfalse, islice
from operator import eq, itemgetter
from typing import Final

from footprint.elf import abi
from footprint.elf.image import Image, Section, Segment
from footprint.elf.notes import DebugImage, matched_sections
from footprint.elf.symbols import COMMON, Symbol, read_symbol_table, section_bases
from footprint.members import NamedTuple
from footprint.ranges import Gap, Partition, Piece, partition_in_order

_LINKER_TABLE_TYPES: Final = frozenset({abi.SHT_DYNAMIC, abi.SHT_INIT_ARRAY, abi.SHT_FINI_ARRAY, abi.SHT_PREINIT_ARRAY})
_LINKER_TABLE_NAMES: Final = (".got", ".ctors", ".dtors", ".jcr", ".plt", ".tm_clone_table", ".dynamic", ".opd")
# Marks that linkers set at the borders of sections: they name an address, not a variable.
_MARKS: Final = frozenset(
    {
        *("__bss_start", "__bss_start__", "__bss_end__", "_bss_end__", "_edata", "edata", "_end", "end", "__end__"),
        *("_DYNAMIC", "_GLOBAL_OFFSET_TABLE_", "__TMC_END__", "__data_start", "data_start", "_fdata", "__RELRO_END__"),
        *("__init_array_start", "__init_array_end", "__fini_array_start", "__fini_array_end"),
        *("__preinit_array_start", "__preinit_array_end", "_TLS_MODULE_BASE_"),
    }
)


_SIZE: Final = itemgetter(Symbol._fields.index("size_bytes"))
_OFFSET: Final = itemgetter(Symbol._fields.index("offset"))


class SectionKind(StrEnum):
    """The kind of the memory of a section, by what makes it private."""

    DATA = "data"
    """Writable, with its initial contents in the file: private from the first write."""
    BSS = "bss"
    """Writable, with zeros at first: private from the first write."""
    RELRO = "relro"
    """Written by the loader, then made read-only: private, although its mapping is `r--`."""
    TLS = "tls"
    """Copied for each thread."""


class ResidueCause(StrEnum):
    """Why no variable owns a range."""

    PADDING = "padding"
    """Zeros, or bytes that the file does not hold, that align what follows; an assumption: no file states it."""
    UNSIZED = "symbol without size"
    """A symbol without a size starts here; it is assumed to reach to the next one."""
    LINKER_TABLE = "linker table"
    """The global offset table, constructor lists, the dynamic section: made by the linker, without symbols."""
    STRIPPED = "no symbol: stripped"
    """The file has no .symtab, and .dynsym names only exported symbols."""
    NO_SYMBOL = "no symbol"
    """The file has a .symtab, and no symbol lies here: compilers drop the names of literals and local labels."""
    NO_SECTIONS = "no section headers"
    """The file has no section headers: only the program headers describe the memory."""


class Residue(NamedTuple):
    """The owner of a range that no variable owns.

    Attributes:
        cause: Why no variable owns it.
        detail: The linker name of the symbol without size, else "".
    """

    cause: ResidueCause
    detail: str = ""

    @property
    def label(self) -> str:
        """The text to show in place of a symbol name, in brackets to tell it from one."""
        return f"[{self.cause}: {self.detail}]" if self.detail else f"[{self.cause}]"


_Owner = Symbol | Residue
_PADDING: Final = Residue(ResidueCause.PADDING)


class SectionContents(NamedTuple):
    """One section of writable or thread-local memory, divided among its owners.

    Attributes:
        section: The header; its index is -1 for memory without a section (COMMON, segments without sections).
        kind: What makes the memory private.
        variables: In the order of the section, including those of size 0 and those inside others.
        ranges: Every byte of the section with its owner, as offsets in the section.
    """

    section: Section
    kind: SectionKind
    variables: tuple[Symbol, ...]
    ranges: Partition[Symbol | Residue]

    @property
    def size_bytes(self) -> int:
        """The size of the section in memory."""
        return self.section.size_bytes

    @property
    def named_bytes(self) -> int:
        """The number of bytes that at least one variable names."""
        return sum([end - start for start, end, owner in self.ranges.pieces if isinstance(owner, Symbol)])

    @property
    def residue_bytes(self) -> dict[ResidueCause, int]:
        """The number of bytes that no variable names, by cause, the largest first."""
        totals: dict[ResidueCause, int] = {}
        for start, end, owner in self.ranges.pieces:
            if isinstance(owner, Residue):
                totals[owner.cause] = totals.get(owner.cause, 0) + end - start
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))

    @property
    def lost_bytes(self) -> int:
        """What symbols lose to stronger symbols at the same addresses; a byte counts once for every loser."""
        return self.ranges.lost_bytes


class Contents(NamedTuple):
    """The contents of the writable memory of a file.

    Attributes:
        file: The name of the file.
        symbols_from: `.symtab`, `.dynsym`, `.gnu_debugdata` (and `.dynsym`), or None where the file has no symbols.
        symbol_count: The number of entries of that table, functions included.
        sections: The writable and thread-local sections in the order of the file, without those of size 0.
        stray_count: The number of symbols that lie outside of the section that they state.
        debug_file: The file that has the table, where it is another.
    """

    file: str
    symbols_from: str | None
    symbol_count: int
    sections: tuple[SectionContents, ...]
    stray_count: int
    debug_file: str | None = None


class _Symbols(NamedTuple):
    """The symbols of a file, those of its debug file included.

    Attributes:
        source: The table that they are from.
        entry_count: The number of its entries.
        symbols: Those in the sections of interest, and COMMON ones.
        complete: The numbers of the sections whose symbols are all known, local ones included.
        debug_file: The file that has the table, where it is another.
    """

    source: str | None
    entry_count: int
    symbols: Sequence[Symbol]
    complete: Container[int]
    debug_file: str | None = None


def read_contents(image: Image, debug: DebugImage | None = None, more: Iterable[Symbol] = ()) -> Contents:
    """Read what each writable section of a file holds.

    Args:
        image: The file.
        debug: The file with the symbols that were stripped from it. Sections that this file does not have, or has at
            another address, keep their own symbols.
        more: Symbols that no table has, such as variables that only debug information names.

    Raises:
        InputError: Where the symbol table or the contents of a section are damaged; its `file` is the damaged file.
    """
    wanted = {s.index: s for s in image.sections if s.is_in_memory and (s.is_writable or s.is_tls) and s.size_bytes}
    table = _symbols(image, debug, wanted)
    by_section: dict[int, list[Symbol]] = {index: [] for index in wanted}
    commons = []
    for symbol in (*table.symbols, *more) if more else table.symbols:
        index = symbol.section_index
        if index == COMMON:
            commons.append(symbol)
        elif symbol.type != abi.STT_FUNC or wanted[index].name != ".opd":
            # .opd (PowerPC ELFv1) holds descriptors; its symbols have the size of the code that they describe.
            by_section[index].append(symbol)
    table = table._replace(symbols=())
    sections, stray_count = [], 0
    relro = image.segment(abi.PT_GNU_RELRO)
    for index, section in wanted.items():
        variables, labels, strays = _variables(by_section.pop(index), section.size_bytes)
        stray_count += strays
        kind = _kind(image, section, relro)
        sections.append(_contents(image, section, kind, variables, labels, stripped=index not in table.complete))
    sections.extend(_common_contents(commons))
    if all(section.type == abi.SHT_NULL for section in image.sections):
        sections.extend(_segment_contents(image))
    return Contents(
        image.file, table.source, table.entry_count, tuple(sections), stray_count, debug_file=table.debug_file
    )


def _symbols(image: Image, debug: DebugImage | None, wanted: Mapping[int, Section]) -> _Symbols:
    table = read_symbol_table(image)
    variables = table.variables(section_bases(image, wanted.items()))
    if debug is None:
        return _Symbols(table.source, len(table), variables, wanted if table.source == ".symtab" else ())
    sections = matched_sections(image, debug.image).items()
    bases = section_bases(image, [(number, section) for number, section in sections if section.index in wanted])
    debug_table = read_symbol_table(debug.image)
    from_debug = [variable for variable in debug_table.variables(bases) if not variable.is_common]
    # .symtab has versions in its names, .dynsym has not: a symbol of both would get a second name.
    named = {(v.section_index, v.vaddr, v.size_bytes) for v in from_debug}
    from_debug += [v for v in variables if (v.section_index, v.vaddr, v.size_bytes) not in named]
    if debug.is_whole:
        complete = {base.section_index for base in bases.values()}
        return _Symbols(debug_table.source, len(debug_table), from_debug, complete, debug.image.file)
    if not named:
        return _Symbols(table.source, len(table), variables, ())
    return _Symbols(".gnu_debugdata", len(table) + len(debug_table), from_debug, ())


def _variables(symbols: list[Symbol], section_bytes: int) -> tuple[list[Symbol], list[Symbol], int]:
    """Sort the symbols of a section into variables and labels without size, and count those outside of it."""
    sized = list(filter(_SIZE, symbols))
    unsized = filterfalse(_SIZE, symbols) if len(sized) < len(symbols) else ()
    variables, stray_count = _one_at_each_place(sized, range(section_bytes))
    labels, more_count = _one_at_each_place([s for s in unsized if _is_label(s.name)], range(section_bytes + 1))
    return variables, labels, stray_count + more_count


def _one_at_each_place(symbols: list[Symbol], inside: range) -> tuple[list[Symbol], int]:
    """Sort symbols by place, the largest first: several names of one place and size become one with aliases.

    The second value counts those that are not inside.
    """
    if not symbols:
        return symbols, 0
    # Sorts keep the order of equals, and these take no memory for keys.
    symbols.sort(key=_SIZE, reverse=True)
    symbols.sort(key=_OFFSET)
    offsets = list(map(_OFFSET, symbols))
    at, past = bisect_left(offsets, inside.start), bisect_left(offsets, inside.stop)
    stray_count = len(symbols) - (past - at)
    places: list[Symbol] = []
    # Nearly all are alone at their place, so only those at the place of the one before take a step.
    has_same_offset = map(eq, islice(offsets, at, past), islice(offsets, at + 1, past))
    for second in compress(range(at + 1, past), has_same_offset):
        if second < at:
            continue
        symbol, end = symbols[second - 1], second
        while end < past and offsets[end] == symbol.offset and symbols[end].size_bytes == symbol.size_bytes:
            end += 1
        if second < end:
            here = sorted(symbols[second - 1 : end], key=lambda s: (_rank(s), len(s.name), s.name, s.binding))
            _, *aliases = dict.fromkeys(alias.name for alias in here)
            places += symbols[at : second - 1]
            places.append(here[0]._replace(aliases=tuple(aliases)))
            at = end
    places += symbols[at:past]
    return places, stray_count


def _is_label(name: str) -> bool:
    """Return whether a symbol without size names a variable: it is not a mark of the linker or the assembler."""
    # $d and $x only mark the start of data and code for a disassembler.
    return bool(name) and name not in _MARKS and not name.startswith(("$", ".L"))


def _rank(symbol: Symbol) -> int:
    """Return the rank of an alias: strong global names come first, then weak ones, then local ones."""
    if symbol.binding in {abi.STB_GLOBAL, abi.STB_GNU_UNIQUE}:
        return 0
    return 1 if symbol.binding == abi.STB_WEAK else 2


def _contents(
    image: Image, section: Section, kind: SectionKind, variables: list[Symbol], labels: list[Symbol], *, stripped: bool
) -> SectionContents:
    explain = _ResidueFinder(image, section, labels, stripped=stripped)
    ranges = _divided(section.size_bytes, variables, explain)
    shown = tuple(sorted([*variables, *labels], key=_OFFSET)) if labels else tuple(variables)
    return SectionContents(section, kind, shown, ranges)


def _divided(
    size_bytes: int, variables: list[Symbol], explain: Callable[[Gap[_Owner]], Sequence[Piece[_Owner]]]
) -> Partition[_Owner]:
    return partition_in_order(size_bytes, list(map(_OFFSET, variables)), map(_SIZE, variables), variables, explain)


def _kind(image: Image, section: Section, relro: Segment | None) -> SectionKind:
    if section.is_tls:
        return SectionKind.TLS
    if relro and not image.is_relocatable:
        # The first words of .got.plt may lie in it, and the rest after it: then the section stays writable.
        ends_inside = section.vaddr + section.size_bytes <= relro.vaddr + relro.memory_bytes
        if relro.vaddr <= section.vaddr and ends_inside:
            return SectionKind.RELRO
    if image.is_relocatable and section.name.startswith(".data.rel.ro"):
        return SectionKind.RELRO
    return SectionKind.BSS if section.type == abi.SHT_NOBITS else SectionKind.DATA


class _ResidueFinder:
    """Finds the causes of the ranges of one section that no variable claims."""

    def __init__(self, image: Image, section: Section, labels: list[Symbol], *, stripped: bool) -> None:
        self._image = image
        self._section = section
        self._labels = labels
        self._places = [label.offset for label in labels]
        self._align = section.align
        self._rest = Residue(ResidueCause.STRIPPED if stripped else ResidueCause.NO_SYMBOL)
        is_table = section.type in _LINKER_TABLE_TYPES or section.name.startswith(_LINKER_TABLE_NAMES)
        self._table = Residue(ResidueCause.LINKER_TABLE) if is_table else None
        self._bytes: memoryview | None = None

    def __call__(self, gap: Gap[_Owner]) -> Sequence[Piece[_Owner]]:
        start, end, _, _ = gap
        if self._table or not self._places:
            return [Piece(start, end, self._table or self._plain(start, end))]
        first = bisect_left(self._places, start)
        past = bisect_left(self._places, end)
        if first == past:
            return [Piece(start, end, self._plain(start, end))]
        pieces: list[Piece[_Owner]] = []
        if self._places[first] > start:
            pieces.append(Piece(start, self._places[first], self._plain(start, self._places[first])))
        ends = [*self._places[first + 1 : past], end]
        for label, end in zip(self._labels[first:past], ends, strict=True):
            pieces.append(Piece(label.offset, end, Residue(ResidueCause.UNSIZED, label.name)))
        return pieces

    def _plain(self, start: int, end: int) -> Residue:
        # Padding is zero, and ends at a multiple of an alignment that the section itself has.
        align = min(end & -end, self._align)
        if align > 1 and -start % align == end - start and self._is_zero(start, end):
            return _PADDING
        return self._rest

    def _is_zero(self, start: int, end: int) -> bool:
        if self._bytes is None:
            # A section without bytes in the file is all zeros: each part of an empty text is as well.
            self._bytes = memoryview(self._image.section_bytes(self._section) if self._section.has_file_bytes else b"")
        return not self._bytes[start:end].tobytes().strip(b"\0")


def _common_contents(commons: list[Symbol]) -> Iterable[SectionContents]:
    """Place the COMMON variables of an object in a section of their own, as the linker will."""
    for kind in (SectionKind.BSS, SectionKind.TLS):
        variables, offset = [], 0
        for symbol in sorted(commons, key=lambda symbol: (-symbol.size_bytes, symbol.name)):
            if (symbol.type == abi.STT_TLS) is (kind is SectionKind.TLS):
                variables.append(symbol._replace(offset=offset))
                offset += symbol.size_bytes
        if offset:
            yield _bare("COMMON", 0, offset, kind, variables)


def _segment_contents(image: Image) -> Iterable[SectionContents]:
    """Return the writable memory of a file without section headers, from its segments."""
    for number, segment in enumerate(image.segments):
        if segment.type != abi.PT_LOAD or not segment.is_writable:
            continue
        beyond_bytes = segment.memory_bytes - segment.file_bytes
        if segment.file_bytes:
            yield _bare(f"[segment {number}]", segment.vaddr, segment.file_bytes, SectionKind.DATA, [])
        if beyond_bytes > 0:
            name, vaddr = f"[segment {number} beyond the file]", segment.vaddr + segment.file_bytes
            yield _bare(name, vaddr, beyond_bytes, SectionKind.BSS, [])


def _bare(name: str, vaddr: int, size_bytes: int, kind: SectionKind, variables: list[Symbol]) -> SectionContents:
    section_type = abi.SHT_NOBITS if kind is SectionKind.BSS else abi.SHT_PROGBITS
    section = Section(-1, name, section_type, abi.SHF_WRITE | abi.SHF_ALLOC, vaddr, 0, size_bytes, 0, 0, 1, 0)
    ranges = _divided(size_bytes, variables, lambda gap: [Piece(gap.start, gap.end, Residue(ResidueCause.NO_SECTIONS))])
    return SectionContents(section, kind, tuple(variables), ranges)
