"""The dynamic symbols of an ELF file: what others can find in it, and what its relocations ask others for.

Neither names nor sizes are believed where the loader does not look: a definition that the hash table
cannot find is none, and a reference that no relocation makes is none either.

Source: System V ABI, chapter 5 (Hash Table); glibc 2.36, elf/dl-lookup.c, for what is found.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from footprint.elf.dynamic import Dynamic, bytes_at_vaddr, bytes_from_vaddr, read_dynamic, words
from footprint.elf.image import SHT_DYNSYM, Buffer, Image, StringTable
from footprint.elf.machines import relocation_types
from footprint.elf.relocations import EM_MIPS, relocations, symbol_and_type
from footprint.elf.symbols import STB_GNU_UNIQUE, STB_WEAK, STT_TLS
from footprint.elf.versions import VERSION_INDEX, Version, Versions, read_versions
from footprint.errors import InputError

__all__ = ("Definition", "DynamicSymbols", "Reference", "dynamic_names", "read_dynamic_symbols")

DT_HASH: Final = 4
DT_STRTAB: Final = 5
DT_SYMTAB: Final = 6
DT_STRSZ: Final = 10
DT_GNU_HASH: Final = 0x6FFFFEF5
DT_MIPS_GOTSYM: Final = 0x70000013

STB_LOCAL: Final = 0
STV_INTERNAL: Final = 1
STV_HIDDEN: Final = 2
STV_PROTECTED: Final = 3
SHN_UNDEF: Final = 0
SHN_ABS: Final = 0xFFF1
R_NONE: Final = 0
EM_S390: Final = 22
EM_ALPHA: Final = 0x9026

# NOTYPE, OBJECT, FUNC, COMMON, TLS, GNU_IFUNC: what the loader binds to.
_BOUND_TYPES: Final = frozenset({0, 1, 2, 5, 6, 10})
_NOT_SEEN: Final = frozenset({STV_INTERNAL, STV_HIDDEN})
# On MIPS a symbol without definition has the address of a lazy-binding stub or, with this flag, a canonical PLT entry.
STO_MIPS_PLT: Final = 8

_CHAIN_BYTES: Final = 1 << 12


class Reference(NamedTuple):
    """What relocations of a file ask for, once for each symbol and class of lookup.

    Attributes:
        name: The linker name.
        version: The version that must define it, or None for any.
        is_call: Whether a function of the program that only stands for one of a library is no answer (calls through
            the PLT, and thread-locals).
        is_copy: Whether the program takes the object of a library over.
        is_weak: Whether it may stay without definition.
        is_protected: Whether the file keeps to its own definition.
        is_defined: Whether the file has a definition itself.
        symbol: The index of the symbol.
    """

    name: str
    version: Version | None
    is_call: bool
    is_copy: bool
    is_weak: bool
    is_protected: bool
    is_defined: bool
    symbol: int


class Definition(NamedTuple):
    """A dynamic symbol that others can bind to, with STT_* and STB_*; the vaddr of a thread-local is an offset."""

    name: str
    version: str | None
    vaddr: int
    size_bytes: int
    type: int
    binding: int


@dataclass(frozen=True, eq=False)
class DynamicSymbols:
    """What a file offers and asks for.

    Attributes:
        versions: Its versions.
        count: How many entries its table has, as far as the loader could know.
        references: What its relocations ask for.
        found: The index of the definition that others can find, by name; the last one where there are several.
        several: All of them, in the order in which the loader sees them, where there are several: one a version.
        canonical_plt_entries: The symbols of a program that are canonical PLT entries: the address of a function of a
            library, and no definition.
        unique: The names that it defines for the whole process (STB_GNU_UNIQUE).
    """

    versions: Versions
    count: int
    references: tuple[Reference, ...]
    found: dict[str, int]
    several: dict[str, tuple[int, ...]]
    canonical_plt_entries: frozenset[int]
    unique: frozenset[str]

    @cached_property
    def asked(self) -> dict[str, tuple[int, ...]]:
        """The places of the references, by name."""
        places: dict[str, tuple[int, ...]] = {}
        for place, reference in enumerate(self.references):
            places[reference.name] = (*places.get(reference.name, ()), place)
        return places

    @classmethod
    def none(cls) -> "DynamicSymbols":
        """Give what a file without dynamic symbols has."""
        return cls(Versions(None, {}, (), ()), 0, (), {}, {}, frozenset(), frozenset())

    def definition(self, image: Image, name: str) -> Definition:
        """Give what the table of the file says of the definition of a name, of the last where there are several.

        Raises:
            InputError: Where the table is no longer there.
        """
        index = self.found[name]
        vaddr = (read_dynamic(image).get(DT_SYMTAB) or 0) + index * image.symbol_bytes
        entry = bytes_at_vaddr(image, vaddr, image.symbol_bytes, "a dynamic symbol")
        _, info, _, _, value, size_bytes = image.symbols_at(entry, (0,))[0]
        by_symbol = self.versions.by_symbol
        version = self.versions.by_index.get(by_symbol[index] & VERSION_INDEX) if by_symbol else None
        return Definition(name, version.name if version else None, value, size_bytes, info & 15, info >> 4)


def read_dynamic_symbols(image: Image) -> DynamicSymbols:
    """Read the dynamic symbols of a file; one without them has none.

    Raises:
        InputError: Where a table is damaged or lies outside of the file.
    """
    dynamic = read_dynamic(image)
    vaddr, strings_vaddr = dynamic.get(DT_SYMTAB), dynamic.get(DT_STRTAB)
    if not vaddr or not strings_vaddr:
        return DynamicSymbols.none()
    asked = _asked_symbols(image)
    first_found, past_found = _findable(image, dynamic)
    count = max(past_found, max((symbol for symbol, _ in asked), default=-1) + 1, _dynsym_count(image, vaddr))
    entries = bytes_at_vaddr(image, vaddr, count * image.symbol_bytes, "the table of dynamic symbols")
    strings = bytes_at_vaddr(image, strings_vaddr, dynamic.get(DT_STRSZ) or 0, "the dynamic strings")
    names = _Names(strings, image.file)
    versions = read_versions(image, dynamic, names.at, count)
    if gotsym := dynamic.get(DT_MIPS_GOTSYM) if image.machine == EM_MIPS else None:
        # There the loader looks up each symbol that has a place in the GOT, without any relocation.
        asked |= {(symbol, 0) for symbol in range(gotsym, count)}
    references = _references(image, asked, entries, names, versions)
    found = _found(image, entries, names, first_found, past_found)
    return DynamicSymbols(versions, count, references, *found)


def dynamic_names(image: Image, symbols: Collection[int]) -> dict[int, str]:
    """Give the names of some dynamic symbols by their indexes.

    Raises:
        InputError: Where they lie outside of the file.
    """
    dynamic = read_dynamic(image)
    vaddr, strings_vaddr = dynamic.get(DT_SYMTAB), dynamic.get(DT_STRTAB)
    if not symbols or not vaddr or not strings_vaddr:
        return {}
    past_bytes = (max(symbols) + 1) * image.symbol_bytes
    entries = bytes_at_vaddr(image, vaddr, past_bytes, "the table of dynamic symbols")
    names = _Names(bytes_at_vaddr(image, strings_vaddr, dynamic.get(DT_STRSZ) or 0, "the dynamic strings"), image.file)
    wanted = sorted(symbols)
    fields = image.symbols_at(entries, wanted)
    return {symbol: names.at(name) for symbol, (name, *_) in zip(wanted, fields, strict=True)}


def _asked_symbols(image: Image) -> set[tuple[int, int]]:
    """Give the symbols that relocations name, each with the types of these."""
    infos: set[int] = set()
    for table in relocations(image):
        infos.update(table.infos)
    asked = {symbol_and_type(image, info) for info in infos}
    relative = relocation_types(image.machine).relative
    return {(symbol, kind) for symbol, kind in asked if symbol and kind != R_NONE and kind not in relative}


def _references(
    image: Image, asked: set[tuple[int, int]], entries: Buffer, names: "_Names", versions: Versions
) -> tuple[Reference, ...]:
    types = relocation_types(image.machine)
    calls, copies = types.jump_slot | types.tls, types.copy
    found: list[Reference] = []
    lookups = sorted({(symbol, kind in calls, kind in copies) for symbol, kind in asked})
    fields = image.symbols_at(entries, [symbol for symbol, _, _ in lookups])
    for (symbol, is_call, is_copy), (name, info, other, section_index, _, _) in zip(lookups, fields, strict=True):
        visibility, binding = other & 3, info >> 4
        if binding == STB_LOCAL or visibility in _NOT_SEEN:
            # It is the file's own, and never looked for.
            continue
        version = versions.by_index.get(versions.by_symbol[symbol] & VERSION_INDEX) if versions.by_symbol else None
        is_defined = section_index != SHN_UNDEF
        is_protected = visibility == STV_PROTECTED
        found.append(
            Reference(names.at(name), version, is_call, is_copy, binding == STB_WEAK, is_protected, is_defined, symbol)
        )
    return tuple(found)


def _found(image: Image, entries: Buffer, names: "_Names", first: int, past: int) -> "_Found":
    """Find by name the definitions between two indexes that the loader binds to; canonical PLT entries are marked."""
    offsets, values, kinds = _columns(image, entries[first * image.symbol_bytes : past * image.symbol_bytes])
    # There are a handful of kinds among any number of symbols: each is looked at once.
    facts = {kind: _facts(image, kind) for kind in set(kinds)}
    bound = {kind for kind, fact in facts.items() if fact.is_bound}
    bound_at_zero = {kind for kind in bound if facts[kind].section_index == SHN_ABS or facts[kind].type == STT_TLS}
    canonical = {kind for kind in bound if facts[kind].section_index == SHN_UNDEF}
    unique = {kind for kind in bound if facts[kind].binding == STB_GNU_UNIQUE}
    chosen = [
        (index, offset, kind)
        for index, offset, value, kind in zip(range(first, past), offsets, values, kinds, strict=True)
        if kind in bound and (value or kind in bound_at_zero)
    ]
    keys = names.all_at([offset for _, offset, _ in chosen])
    found = dict(zip(keys, [index for index, _, _ in chosen], strict=True))
    several: dict[str, tuple[int, ...]] = {}
    if len(found) < len(keys):
        for key, (index, _, _) in zip(keys, chosen, strict=True):
            several[key] = (*several.get(key, ()), index)
        several = {key: indexes for key, indexes in several.items() if len(indexes) > 1}
    return _Found(
        found,
        several,
        frozenset([index for index, _, kind in chosen if kind in canonical]) if canonical else frozenset(),
        frozenset([key for key, (_, _, kind) in zip(keys, chosen, strict=True) if kind in unique])
        if unique
        else frozenset(),
    )


class _Found(NamedTuple):
    last: dict[str, int]
    several: dict[str, tuple[int, ...]]
    canonical_plt_entries: frozenset[int]
    unique: frozenset[str]


class _Facts(NamedTuple):
    """What the small fields of a symbol say."""

    type: int
    binding: int
    section_index: int
    is_bound: bool


def _facts(image: Image, kind: int) -> _Facts:
    if image.is_little:
        info, other, section_index = kind & 0xFF, kind >> 8 & 0xFF, kind >> 16
    else:
        info, other, section_index = kind >> 24, kind >> 16 & 0xFF, kind & 0xFFFF
    is_bound = info >> 4 != STB_LOCAL and info & 15 in _BOUND_TYPES and other & 3 not in _NOT_SEEN
    if image.machine == EM_MIPS and section_index == SHN_UNDEF and not other & STO_MIPS_PLT:
        is_bound = False
    return _Facts(info & 15, info >> 4, section_index, is_bound)


def _columns(image: Image, table: Buffer) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Give st_name and st_value of all symbols, and the word that st_info, st_other and st_shndx of each fill."""
    halves = words(image, table, 4)
    if image.is_64:
        return halves[0::6], words(image, table, 8)[1::3], halves[1::6]
    return halves[0::4], halves[1::4], halves[3::4]


class _Names:
    """The names of dynamic symbols, many at a time."""

    _MOST_SCANNED_BYTES: Final = 1 << 30

    def __init__(self, table: Buffer, file: str) -> None:
        self._file = file
        self._raw = bytes(table)
        self._text = self._raw.decode("ascii") if self._raw.isascii() else None
        self._one_by_one = StringTable(self._raw, file, 0, "dynamic symbol names")
        self.at = self._one_by_one.at

    def all_at(self, offsets: list[int]) -> list[str]:
        """Give the names at some offsets.

        Raises:
            InputError: As `StringTable.at`.
        """
        text = self._text
        if text is None or self._longest * len(offsets) > self._MOST_SCANNED_BYTES:
            return [self._one_by_one.at(offset) for offset in offsets]
        try:
            ends = [text.index("\0", offset) for offset in offsets]
        except ValueError:
            raise InputError(self._file, "one of the dynamic symbol names has no end") from None
        # Tails may be shared, but a table of a few names that overlap would fill the memory.
        if sum(ends) - sum(offsets) > StringTable.most_name_bytes(len(text)):
            raise InputError(self._file, "the dynamic symbol names overlap beyond reason")
        return [text[offset:end] for offset, end in zip(offsets, ends, strict=True)]

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._raw.split(b"\0")))


def _findable(image: Image, dynamic: Dynamic) -> tuple[int, int]:
    """Give the first index that the hash table finds, and the one past the last."""
    vaddr = dynamic.get(DT_GNU_HASH)
    if vaddr:
        return _gnu_hash(image, vaddr)
    vaddr = dynamic.get(DT_HASH)
    if not vaddr:
        return 0, 0
    # Two architectures made its words as wide as addresses.
    word_bytes = 8 if image.is_64 and image.machine in {EM_S390, EM_ALPHA} else 4
    head = words(image, bytes_at_vaddr(image, vaddr, 2 * word_bytes, "the hash table"), word_bytes)
    return 0, head[1]


def _gnu_hash(image: Image, vaddr: int) -> tuple[int, int]:
    """Walk the chain of the highest bucket: nothing else tells how many symbols there are.

    Of a table without symbols GNU ld says that they begin at 1, other linkers at their count: both find none.
    """
    what = "the GNU hash table"
    raw = bytes_from_vaddr(image, vaddr, what)
    if len(raw) < 16:
        raise InputError(image.file, f"{what} is cut")
    bucket_count, first, bloom_count, _ = words(image, raw[:16], 4)
    start = 16 + bloom_count * (8 if image.is_64 else 4)
    chains = start + bucket_count * 4
    if chains > len(raw):
        raise InputError(image.file, f"{what} is cut: it claims {bucket_count} buckets behind {bloom_count} words")
    highest = max(words(image, raw[start:chains], 4), default=0)
    if highest < first:
        return first, first
    end = len(raw) - len(raw) % 4
    for at in range(chains + (highest - first) * 4, end, _CHAIN_BYTES):
        for word in words(image, raw[at : min(at + _CHAIN_BYTES, end)], 4):
            highest += 1
            if word & 1:
                return first, highest
    raise InputError(image.file, f"{what} has a chain without end")


def _dynsym_count(image: Image, vaddr: int) -> int:
    """Give what the section header says of the number of symbols, where it is there: one more witness."""
    section = next((one for one in image.sections if one.type == SHT_DYNSYM and one.vaddr == vaddr), None)
    if section is None or section.offset + section.size_bytes > len(image.data):
        return 0
    return section.size_bytes // image.symbol_bytes
