"""What the writable memory of an ELF file holds, section by section, and what no symbol explains.

Every byte of a section has one owner: a variable, or a remainder with its cause. The sums are conserved by
construction (`footprint.ranges`). Thread-local sections are accounted in their own space: their addresses overlap
those of what follows them, and their symbols are offsets.
"""

from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from footprint.elf.debugfiles import DebugImage, matched_sections
from footprint.elf.image import (
    PT_GNU_RELRO,
    PT_LOAD,
    SHF_ALLOC,
    SHF_WRITE,
    SHT_NOBITS,
    SHT_NULL,
    Buffer,
    Image,
    Section,
    Segment,
)
from footprint.elf.symbols import (
    COMMON,
    STB_GLOBAL,
    STB_GNU_UNIQUE,
    STB_WEAK,
    STT_FUNC,
    STT_TLS,
    Symbol,
    read_symbol_table,
    section_bases,
)
from footprint.ranges import Gap, Overlap, Partition, Piece, partition

__all__ = ("Contents", "Residue", "ResidueCause", "SectionContents", "SectionKind", "read_contents")

SHT_PROGBITS: Final = 1
SHT_DYNAMIC: Final = 6
SHT_INIT_ARRAY: Final = 14
SHT_FINI_ARRAY: Final = 15
SHT_PREINIT_ARRAY: Final = 16

_LINKER_TABLE_TYPES: Final = frozenset({SHT_DYNAMIC, SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY})
_LINKER_TABLE_NAMES: Final = (".got", ".ctors", ".dtors", ".jcr", ".plt", ".tm_clone_table", ".dynamic", ".opd")
# Marks that linkers set at the borders of sections: they name a place, not a variable.
_MARKS: Final = frozenset(
    {
        *("__bss_start", "__bss_start__", "__bss_end__", "_bss_end__", "_edata", "edata", "_end", "end", "__end__"),
        *("_DYNAMIC", "_GLOBAL_OFFSET_TABLE_", "__TMC_END__", "__data_start", "data_start", "_fdata", "__RELRO_END__"),
        *("__init_array_start", "__init_array_end", "__fini_array_start", "__fini_array_end"),
        *("__preinit_array_start", "__preinit_array_end", "_TLS_MODULE_BASE_"),
    }
)


class SectionKind(StrEnum):
    """Of which kind the memory of a section is, by what makes it private."""

    DATA = "data"
    """Writable, its first contents in the file: private from the first write."""
    BSS = "bss"
    """Writable, zero at first: private from the first write."""
    RELRO = "relro"
    """Written by the loader, then made read-only: private although it shows as `r--`."""
    TLS = "tls"
    """Copied for each thread."""


class ResidueCause(StrEnum):
    """Why no variable owns a range."""

    PADDING = "padding"
    """Zero bytes, or bytes without contents, that align what follows; assumed, as no file says so."""
    UNSIZED = "symbol without size"
    """A symbol starts here, and nothing says how far it reaches; assumed up to the next one."""
    LINKER_TABLE = "linker table"
    """The global offset table, constructor lists, the dynamic section: made by the linker, without symbols."""
    STRIPPED = "no symbol: stripped"
    """The file has no .symtab, and .dynsym names only what is exported."""
    NO_SYMBOL = "no symbol"
    """The file has a .symtab, and nothing in it lies here: compilers drop the names of literals and local labels."""
    NO_SECTIONS = "no section headers"
    """Only the program headers tell that the memory is there."""


class Residue(NamedTuple):
    """The owner of a range that no variable owns.

    Attributes:
        cause: Why.
        detail: The linker name of the symbol without size, else "".
    """

    cause: ResidueCause
    detail: str = ""

    @property
    def label(self) -> str:
        """Give the text that stands where a symbol's name would, in brackets so that nobody takes it for one."""
        return f"[{self.cause}: {self.detail}]" if self.detail else f"[{self.cause}]"


class SectionContents(NamedTuple):
    """One section of writable or thread-local memory, cut among its owners.

    Attributes:
        section: The header; its index is -1 for what has none (COMMON, segments without sections).
        kind: What makes the memory private.
        variables: In the order of the section, with those of size 0 and those inside others.
        ranges: Every byte of the section with its owner, as offsets in the section.
    """

    section: Section
    kind: SectionKind
    variables: tuple[Symbol, ...]
    ranges: Partition[Symbol | Residue]

    @property
    def size_bytes(self) -> int:
        """Give the size of the section in memory."""
        return self.section.size_bytes

    @property
    def named_bytes(self) -> int:
        """Count the bytes that at least one variable names."""
        return sum(piece.end - piece.start for piece in self.ranges.pieces if isinstance(piece.owner, Symbol))

    @property
    def residue_bytes(self) -> dict[ResidueCause, int]:
        """Count what no variable names, by cause, the largest first."""
        totals: dict[ResidueCause, int] = {}
        for piece in self.ranges.pieces:
            if isinstance(piece.owner, Residue):
                totals[piece.owner.cause] = totals.get(piece.owner.cause, 0) + piece.end - piece.start
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))

    @property
    def overlap(self) -> Overlap:
        """Tell what symbols lost to others that name the same bytes."""
        return self.ranges.overlap


class Contents(NamedTuple):
    """What the writable memory of a file holds.

    Attributes:
        file: The file's name.
        symbols_from: `.symtab`, `.dynsym`, `.gnu_debugdata` (and `.dynsym`), or None where the file names nothing.
        symbol_count: Entries of that table, functions and all.
        sections: The writable and thread-local sections in the order of the file; those of size 0 left out.
        stray_count: Symbols that say they lie in one of them, and do not.
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
        elif symbol.type != STT_FUNC or wanted[index].name != ".opd":
            # .opd (PowerPC ELFv1) holds descriptors; its symbols have the size of the code that they describe.
            by_section[index].append(symbol)
    sections, stray_count = [], 0
    relro = image.segment(PT_GNU_RELRO)
    for index, section in wanted.items():
        variables, labels, strays = _variables(by_section[index], section.size_bytes)
        stray_count += strays
        kind = _kind(image, section, relro)
        sections.append(_contents(image, section, kind, variables, labels, stripped=index not in table.complete))
    sections.extend(_common_contents(commons))
    if all(section.type == SHT_NULL for section in image.sections):
        sections.extend(_segment_contents(image))
    return Contents(
        image.file, table.source, table.entry_count, tuple(sections), stray_count, debug_file=table.debug_file
    )


def _symbols(image: Image, debug: DebugImage | None, wanted: Mapping[int, Section]) -> _Symbols:
    table = read_symbol_table(image)
    own = table.variables(section_bases(image, wanted.items()))
    if debug is None:
        return _Symbols(table.source, len(table), own, wanted if table.source == ".symtab" else ())
    sections = matched_sections(image, debug.image).items()
    bases = section_bases(image, [(number, section) for number, section in sections if section.index in wanted])
    debug_table = read_symbol_table(debug.image)
    found = [one for one in debug_table.variables(bases) if not one.is_common]
    # .symtab has versions in its names, .dynsym has not: a symbol of both would get a second name.
    named = {(one.section_index, one.vaddr, one.size_bytes) for one in found}
    found += [one for one in own if (one.section_index, one.vaddr, one.size_bytes) not in named]
    if debug.is_whole:
        complete = {base.section_index for base in bases.values()}
        return _Symbols(debug_table.source, len(debug_table), found, complete, debug.image.file)
    if not named:
        return _Symbols(table.source, len(table), own, ())
    return _Symbols(".gnu_debugdata", len(table) + len(debug_table), found, ())


def _variables(symbols: list[Symbol], section_bytes: int) -> tuple[list[Symbol], list[Symbol], int]:
    """Sort the symbols of a section into variables and labels without size, and count those outside of it.

    Several names of one place and size become one symbol with aliases.
    """
    first: dict[tuple[int, int], Symbol] = {}
    # Most places have one symbol: only those with several get a list.
    several: dict[tuple[int, int], list[Symbol]] = {}
    for symbol in symbols:
        place = symbol.offset, -symbol.size_bytes
        one = first.setdefault(place, symbol)
        if one is not symbol:
            several.setdefault(place, [one]).append(symbol)
    variables: list[Symbol] = []
    labels: list[Symbol] = []
    stray_count = 0
    for place in sorted(first):
        offset, size_bytes = place[0], -place[1]
        if size_bytes and 0 <= offset < section_bytes and place not in several:
            variables.append(first[place])
            continue
        here = several.get(place) or [first[place]]
        if not size_bytes:
            here = [symbol for symbol in here if _is_label(symbol.name)]
        if not here:
            continue
        if not 0 <= offset <= section_bytes or (offset == section_bytes and size_bytes):
            stray_count += len(here)
            continue
        shown = here[0]
        if len(here) > 1:
            here.sort(key=lambda symbol: (_rank(symbol), len(symbol.name), symbol.name, symbol.binding))
            _, *aliases = dict.fromkeys(symbol.name for symbol in here)
            shown = here[0]._replace(aliases=tuple(aliases))
        (variables if size_bytes else labels).append(shown)
    return variables, labels, stray_count


def _is_label(name: str) -> bool:
    """Tell whether a symbol without size names what stands there: not a linker's mark, nor an assembler's note."""
    # $d and $x tell a disassembler where data and code begin, nothing more.
    return bool(name) and name not in _MARKS and not name.startswith(("$", ".L"))


def _rank(symbol: Symbol) -> int:
    """Order aliases: the strong global name first, then the weak, then the local."""
    if symbol.binding in {STB_GLOBAL, STB_GNU_UNIQUE}:
        return 0
    return 1 if symbol.binding == STB_WEAK else 2


def _contents(
    image: Image, section: Section, kind: SectionKind, variables: list[Symbol], labels: list[Symbol], *, stripped: bool
) -> SectionContents:
    explain = _Explain(image, section, labels, stripped=stripped)
    ranges = partition(0, section.size_bytes, _claims(variables), explain)
    shown = tuple(sorted([*variables, *labels], key=lambda v: v.offset)) if labels else tuple(variables)
    return SectionContents(section, kind, shown, ranges)


def _claims(variables: Iterable[Symbol]) -> list[Piece[Symbol | Residue]]:
    return [Piece(one.offset, one.offset + one.size_bytes, one) for one in variables]


def _kind(image: Image, section: Section, relro: Segment | None) -> SectionKind:
    if section.is_tls:
        return SectionKind.TLS
    if relro and not image.is_relocatable:
        # The first words of .got.plt may lie in it, and the rest behind it: that stays writable.
        ends_inside = section.vaddr + section.size_bytes <= relro.vaddr + relro.memory_bytes
        if relro.vaddr <= section.vaddr and ends_inside:
            return SectionKind.RELRO
    if image.is_relocatable and section.name.startswith(".data.rel.ro"):
        return SectionKind.RELRO
    return SectionKind.BSS if section.type == SHT_NOBITS else SectionKind.DATA


class _Explain:
    """Names the ranges of one section that no variable claims."""

    def __init__(self, image: Image, section: Section, labels: list[Symbol], *, stripped: bool) -> None:
        self._image = image
        self._section = section
        self._labels = labels
        self._places = [label.offset for label in labels]
        self._rest = Residue(ResidueCause.STRIPPED if stripped else ResidueCause.NO_SYMBOL)
        is_table = section.type in _LINKER_TABLE_TYPES or section.name.startswith(_LINKER_TABLE_NAMES)
        self._table = Residue(ResidueCause.LINKER_TABLE) if is_table else None
        self._bytes: Buffer | None = None

    def __call__(self, gap: Gap[Symbol | Residue]) -> Sequence[Piece[Symbol | Residue]]:
        if self._table:
            return [Piece(gap.start, gap.end, self._table)]
        first = bisect_left(self._places, gap.start)
        past = bisect_left(self._places, gap.end)
        if first == past:
            return [Piece(gap.start, gap.end, self._plain(gap.start, gap.end))]
        pieces: list[Piece[Symbol | Residue]] = []
        if self._places[first] > gap.start:
            pieces.append(Piece(gap.start, self._places[first], self._plain(gap.start, self._places[first])))
        ends = [*self._places[first + 1 : past], gap.end]
        for label, end in zip(self._labels[first:past], ends, strict=True):
            pieces.append(Piece(label.offset, end, Residue(ResidueCause.UNSIZED, label.name)))
        return pieces

    def _plain(self, start: int, end: int) -> Residue:
        # Padding brings what follows to a multiple that the section itself is aligned to, and holds nothing.
        align = min(end & -end, self._section.align)
        if align > 1 and -start % align == end - start and self._is_zero(start, end):
            return Residue(ResidueCause.PADDING)
        return self._rest

    def _is_zero(self, start: int, end: int) -> bool:
        if not self._section.has_file_bytes:
            return True
        if self._bytes is None:
            self._bytes = self._image.section_bytes(self._section)
        return not any(self._bytes[start:end])


def _common_contents(commons: list[Symbol]) -> Iterable[SectionContents]:
    """Give the COMMON variables of an object a section of their own, as the linker will."""
    for kind in (SectionKind.BSS, SectionKind.TLS):
        variables, offset = [], 0
        for symbol in sorted(commons, key=lambda symbol: (-symbol.size_bytes, symbol.name)):
            if (symbol.type == STT_TLS) is (kind is SectionKind.TLS):
                variables.append(symbol._replace(offset=offset))
                offset += symbol.size_bytes
        if offset:
            yield _bare("COMMON", 0, offset, kind, variables)


def _segment_contents(image: Image) -> Iterable[SectionContents]:
    """Give the writable memory of a file without section headers, as far as its segments tell."""
    for number, segment in enumerate(image.segments):
        if segment.type != PT_LOAD or not segment.is_writable:
            continue
        beyond_bytes = segment.memory_bytes - segment.file_bytes
        if segment.file_bytes:
            yield _bare(f"[segment {number}]", segment.vaddr, segment.file_bytes, SectionKind.DATA, [])
        if beyond_bytes > 0:
            name, vaddr = f"[segment {number} beyond the file]", segment.vaddr + segment.file_bytes
            yield _bare(name, vaddr, beyond_bytes, SectionKind.BSS, [])


def _bare(name: str, vaddr: int, size_bytes: int, kind: SectionKind, variables: list[Symbol]) -> SectionContents:
    section_type = SHT_NOBITS if kind is SectionKind.BSS else SHT_PROGBITS
    section = Section(-1, name, section_type, SHF_WRITE | SHF_ALLOC, vaddr, 0, size_bytes, 0, 0, 1, 0)
    ranges = partition(
        0, size_bytes, _claims(variables), lambda gap: [Piece(gap.start, gap.end, Residue(ResidueCause.NO_SECTIONS))]
    )
    return SectionContents(section, kind, tuple(variables), ranges)
