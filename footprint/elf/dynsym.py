"""The dynamic symbols of an ELF file: the definitions that others can find, and the references that relocations make.

The loader decides: a definition that the hash table does not reach does not count, nor does an undefined symbol that no
relocation refers to.

Source: System V ABI, chapter 5 (Hash Table); glibc 2.36, elf/dl-lookup.c, for what is found.
"""

from array import array
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from functools import cached_property
from itertools import compress, repeat
from operator import itemgetter, ne
from typing import Final

from footprint.elf import abi
from footprint.elf.abi import relocation_types
from footprint.elf.dynamic import Dynamic, bytes_at_vaddr, read_dynamic, words
from footprint.elf.image import Image
from footprint.elf.relocations import (
    RelocationInfos,
    relocation_infos,
    relocations,
    symbol_and_type,
    symbols_and_types,
)
from footprint.elf.symbols import SymbolEntry, SymbolTable
from footprint.elf.versions import VERSION_INDEX, Version, Versions, read_versions
from footprint.errors import InputError
from footprint.members import NamedTuple, dataclass, each_record

# NOTYPE, OBJECT, FUNC, COMMON, TLS, GNU_IFUNC: what the loader binds to.
_BOUND_TYPES: Final = frozenset({0, 1, 2, 5, 6, 10})
_NOT_SEEN: Final = frozenset({abi.STV_INTERNAL, abi.STV_HIDDEN})
# On MIPS a symbol without definition has the address of a lazy-binding stub or, with this flag, a canonical PLT entry.

_CHAIN_BYTES: Final = 1 << 12


class SymbolReference(NamedTuple):
    """A symbol that relocations of a file look up, once for each class of lookup.

    Attributes:
        name: The linker name.
        version: The version that must define it, or None for any.
        is_call: Whether the lookup passes over canonical PLT entries (calls through the PLT, and thread-locals).
        is_copy: Whether it is a copy relocation: the program takes the object of a library over.
        is_weak: Whether it may stay undefined.
        is_protected: Whether the file always binds to its own definition (STV_PROTECTED).
        is_defined: Whether the file itself has a definition.
    """

    name: str
    version: Version | None
    is_call: bool
    is_copy: bool
    is_weak: bool
    is_protected: bool
    is_defined: bool


@dataclass(frozen=True, eq=False)
class DynamicSymbols:
    """The dynamic symbols of a file.

    Attributes:
        versions: Its versions.
        count: The number of entries of its table, as far as the loader can know it.
        references: The symbols that its relocations look up.
        defined: By name the index of the definition that others can find; the last one where there are several.
        several: By name all definitions in the order of the table, where there are several: one for each version.
        canonical_plt_entries: The symbols of a program that are canonical PLT entries: the address of a function of a
            library, and no definition.
        unique: The names of which the whole process has one definition (STB_GNU_UNIQUE).
        relocation_types: The types of its relocations, without RELR.
        jump_types: Those of them in DT_JMPREL.
        infos: The r_info of its relocations; None where they were not read.
        looked_up: By reference the index of its symbol, ascending.
    """

    versions: Versions
    count: int
    references: tuple[SymbolReference, ...]
    defined: dict[str, int]
    several: dict[str, tuple[int, ...]]
    canonical_plt_entries: frozenset[int]
    unique: frozenset[str]
    relocation_types: frozenset[int]
    jump_types: frozenset[int]
    infos: RelocationInfos | None
    looked_up: "array[int]"

    @cached_property
    def requested(self) -> dict[str, tuple[int, ...]]:
        """By name the indexes of the references."""
        names = list(map(itemgetter(0), self.references))
        places: dict[str, tuple[int, ...]] = dict(zip(names, zip(range(len(names))), strict=False))
        if len(places) < len(names):
            # A few names have several.
            earlier = compress(range(len(names)), map(ne, map(places.__getitem__, names), zip(range(len(names)))))
            for place in reversed(list(earlier)):
                places[names[place]] = (place, *places[names[place]])
        return places

    def version_of(self, name: str) -> Version | None:
        """Return the version of a definition; None where it has none, or there is no such definition."""
        by_symbol, index = self.versions.by_symbol, self.defined.get(name)
        if by_symbol is None or index is None:
            return None
        return self.versions.by_index.get(by_symbol[index] & VERSION_INDEX)

    @classmethod
    def none(cls) -> "DynamicSymbols":
        """Return the answer for a file without dynamic symbols."""
        return cls(
            Versions(None, {}, ()), 0, (), {}, {}, frozenset(), frozenset(), frozenset(), frozenset(), None, array("Q")
        )

    def vaddrs(self, image: Image) -> frozenset[int]:
        """Return the vaddrs of the definitions that others can find; the last one where a name has several."""
        if not self.defined:
            return frozenset()
        table = _symbol_table(read_dynamic(image), self.count)
        return frozenset([table.vaddrs[index] for index in self.defined.values()])

    def areas(self, image: Image, names: Collection[str]) -> list[range]:
        """Return the vaddrs of the definitions with some names, those of one name in all its versions."""
        places = [
            place for name in names if name in self.defined for place in self.several.get(name, (self.defined[name],))
        ]
        if not places:
            return []
        table = _symbol_table(read_dynamic(image), self.count)
        return [range(table.vaddrs[place], table.vaddrs[place] + table.sizes[place]) for place in places]


def read_dynamic_symbols(image: Image) -> DynamicSymbols:
    """Read the dynamic symbols of a file, which may have none."""
    dynamic = read_dynamic(image)
    vaddr = dynamic.get(abi.DT_SYMTAB)
    if not vaddr or not dynamic.get(abi.DT_STRTAB):
        return DynamicSymbols.none()
    infos = relocation_infos(dynamic)
    symbols, types = symbols_and_types(image, array("Q", infos.distinct))
    jump_types = {kind for table in infos.jump for kind in symbols_and_types(image, table)[1]}
    all_types, known = frozenset(types), relocation_types(image.machine)
    calls, copies = known.jump_slot | known.tls, known.copy
    uses = {kind: (kind in calls) << 1 | (kind in copies) for kind in all_types - known.relative - {abi.R_NONE}}
    lookups = {symbol << 2 | uses[kind] for symbol, kind in zip(symbols, types, strict=True) if symbol and kind in uses}
    first_found, past_found = _findable(dynamic)
    count = max(past_found, (max(lookups, default=-1) >> 2) + 1, _dynsym_count(image, vaddr))
    symbol_table = _symbol_table(dynamic, count)
    symbol_table.names.learn_all()
    versions = read_versions(dynamic, count)
    if gotsym := dynamic.get(abi.DT_MIPS_GOTSYM) if image.machine == abi.EM_MIPS else None:
        # On MIPS the loader looks up each symbol that has an entry in the GOT, without any relocation.
        lookups |= {symbol << 2 for symbol in range(gotsym, count)}
    references, looked_up = _references(symbol_table, sorted(lookups), versions)
    definitions = _definitions(symbol_table, first_found, past_found)
    return DynamicSymbols(versions, count, references, *definitions, all_types, frozenset(jump_types), infos, looked_up)


def dynamic_names(image: Image, symbols: Collection[int]) -> dict[int, str]:
    """Return the names of dynamic symbols by their indexes."""
    dynamic = read_dynamic(image)
    if not symbols or not dynamic.get(abi.DT_SYMTAB) or not dynamic.get(abi.DT_STRTAB):
        return {}
    table = _symbol_table(dynamic, max(symbols) + 1)
    return {symbol: table.name(symbol) for symbol in sorted(symbols)}


def asked_names(image: Image, wanted: Container[int] | None = None) -> dict[int, str]:
    """Return by vaddr the names of the symbols that relocations ask for: at some vaddrs, or at all."""
    symbols: dict[int, int] = {}
    for vaddrs, infos in relocations(image):
        for vaddr, info in zip(vaddrs, infos, strict=True):
            if (wanted is None or vaddr in wanted) and (symbol := symbol_and_type(image, info)[0]):
                symbols[vaddr] = symbol
    names = dynamic_names(image, set(symbols.values()))
    return {vaddr: names[symbol] for vaddr, symbol in symbols.items() if symbol in names}


def library_names(image: Image, is_of_library: Callable[[str, str], bool]) -> dict[int, str]:
    """Return by vaddr the names that relocations ask of certain libraries.

    `is_of_library` is asked with the file that must define a version, and that version. What has no version may be of
    any file, and is left out.
    """
    symbols = read_dynamic_symbols(image)
    versions = read_versions(read_dynamic(image), symbols.count)
    indexes = {index for index, needed in versions.needed_by_index.items() if is_of_library(needed.file, needed.name)}
    by_symbol = versions.by_symbol or ()
    symbols_by_vaddr = {}
    for vaddrs, infos in relocations(image):
        for vaddr, info in zip(vaddrs, infos, strict=True):
            symbol = symbol_and_type(image, info)[0]
            if 0 < symbol < len(by_symbol) and by_symbol[symbol] & VERSION_INDEX in indexes:
                symbols_by_vaddr[vaddr] = symbol
    names = dynamic_names(image, set(symbols_by_vaddr.values()))
    return {vaddr: names[symbol] for vaddr, symbol in symbols_by_vaddr.items() if symbol in names}


def weak_names(image: Image, symbols: DynamicSymbols, names: Collection[str]) -> frozenset[str]:
    """Return which of some names a file defines so that other definitions can stand in (STB_WEAK, STB_GNU_UNIQUE)."""
    table = _symbol_table(read_dynamic(image), symbols.count)
    bindings = {name: table.entry(symbols.defined[name])[1] >> 4 for name in names if name in symbols.defined}
    return frozenset([name for name, binding in bindings.items() if binding in {abi.STB_WEAK, abi.STB_GNU_UNIQUE}])


def _symbol_table(dynamic: Dynamic, count: int) -> SymbolTable:
    image, vaddr = dynamic.image, dynamic.get(abi.DT_SYMTAB) or 0
    entries = bytes_at_vaddr(image, vaddr, count * image.symbol_bytes, "the table of dynamic symbols")
    return SymbolTable(image, entries, dynamic.names)


def _references(
    table: SymbolTable, lookups: Sequence[int], versions: Versions
) -> "tuple[tuple[SymbolReference, ...], array[int]]":
    """Return the references of a file, a column at a time, and the index of the symbol of each.

    A lookup is the index of a symbol, and two bits: whether it is a call, and whether it copies.
    """
    symbols = [lookup >> 2 for lookup in lookups]
    words = list(map(table.kinds.__getitem__, symbols))
    entries = {word: table.entry(symbol) for word, symbol in dict(zip(words, symbols, strict=True)).items()}
    # The file binds to its own local and hidden symbols without a lookup.
    local = {
        word for word, (_, info, other, *_) in entries.items() if info >> 4 == abi.STB_LOCAL or other & 3 in _NOT_SEEN
    }
    if local:
        looked_up = [word not in local for word in words]
        lookups, symbols, words = [list(compress(column, looked_up)) for column in (lookups, symbols, words)]

    def by_word(answers: dict[int, bool]) -> Iterator[bool]:
        return map(answers.__getitem__, words)

    by_symbol: Sequence[int] = versions.by_symbol or range(0)
    version_of = {entry: versions.by_index.get(entry & VERSION_INDEX) for entry in set(by_symbol)}
    rows = zip(
        table.names.all_of(list(map(table.name_offsets.__getitem__, symbols))),
        map(version_of.__getitem__, map(by_symbol.__getitem__, symbols)) if by_symbol else repeat(None),
        [lookup & 2 != 0 for lookup in lookups],
        [lookup & 1 != 0 for lookup in lookups],
        by_word({word: entry[1] >> 4 == abi.STB_WEAK for word, entry in entries.items()}),
        by_word({word: entry[2] & 3 == abi.STV_PROTECTED for word, entry in entries.items()}),
        by_word({word: entry[3] != abi.SHN_UNDEF for word, entry in entries.items()}),
        strict=False,
    )
    return tuple(each_record(SymbolReference, rows)), array("Q", symbols)


class _Definitions(NamedTuple):
    last: dict[str, int]
    several: dict[str, tuple[int, ...]]
    canonical_plt_entries: frozenset[int]
    unique: frozenset[str]


def _definitions(table: SymbolTable, first: int, past: int) -> _Definitions:
    """Find the definitions between two indexes that the loader would bind to."""
    # Any number of symbols has a handful of kinds: one entry of each is decoded.
    kinds: Sequence[int] = table.kinds[first:past]
    examples = {word: table.entry(index) for word, index in dict(zip(kinds, range(first, past), strict=True)).items()}
    bound = {word: example for word, example in examples.items() if _is_bound(table.image, example)}
    bound_at_zero = {word for word, entry in bound.items() if entry[3] == abi.SHN_ABS or entry[1] & 15 == abi.STT_TLS}
    canonical = {word for word, entry in bound.items() if entry[3] == abi.SHN_UNDEF}
    unique = {word for word, entry in bound.items() if entry[1] >> 4 == abi.STB_GNU_UNIQUE}
    vaddrs = table.vaddrs[first:past]
    indexes: Sequence[int] = range(first, past)
    starts: Sequence[int] = table.name_offsets[first:past]
    if len(bound) < len(examples) or 0 in vaddrs:
        is_chosen = [
            word in bound and (vaddr != 0 or word in bound_at_zero) for vaddr, word in zip(vaddrs, kinds, strict=True)
        ]
        indexes, starts, kinds = [list(compress(column, is_chosen)) for column in (indexes, starts, kinds)]
    keys = table.names.all_of(starts)
    by_name = dict(zip(keys, indexes, strict=True))
    several: dict[str, tuple[int, ...]] = {}
    if len(by_name) < len(keys):
        for key, index in zip(keys, indexes, strict=True):
            several[key] = (*several.get(key, ()), index)
        several = {key: places for key, places in several.items() if len(places) > 1}
    return _Definitions(
        by_name,
        several,
        frozenset([index for index, word in zip(indexes, kinds, strict=True) if word in canonical])
        if canonical
        else frozenset(),
        frozenset([key for key, word in zip(keys, kinds, strict=True) if word in unique]) if unique else frozenset(),
    )


def _is_bound(image: Image, entry: SymbolEntry) -> bool:
    """Return whether the loader binds to a symbol, by its small fields."""
    _, info, other, section_index, _, _ = entry
    if image.machine == abi.EM_MIPS and section_index == abi.SHN_UNDEF and not other & abi.STO_MIPS_PLT:
        return False
    return info >> 4 != abi.STB_LOCAL and info & 15 in _BOUND_TYPES and other & 3 not in _NOT_SEEN


def _findable(dynamic: Dynamic) -> tuple[int, int]:
    """Return the first index that the hash table reaches, and the one past the last."""
    image, vaddr = dynamic.image, dynamic.get(abi.DT_GNU_HASH)
    if vaddr:
        return _gnu_hash(image, vaddr)
    vaddr = dynamic.get(abi.DT_HASH)
    if not vaddr:
        return 0, 0
    # Two architectures have words as wide as addresses in it.
    word_bytes = 8 if image.is_64 and image.machine in {abi.EM_S390, abi.EM_ALPHA} else 4
    head = words(image, bytes_at_vaddr(image, vaddr, 2 * word_bytes, "the hash table"), word_bytes)
    return 0, head[1]


def _gnu_hash(image: Image, vaddr: int) -> tuple[int, int]:
    """Walk the chain of the highest bucket, whose end is the number of symbols; the table does not state it.

    In a table without symbols GNU ld has 1 as the first index, and other linkers have the count: both reach none.
    """
    what = "the GNU hash table"
    raw = bytes_at_vaddr(image, vaddr, None, what)
    if len(raw) < 16:
        raise InputError(image.file, f"{what} is cut")
    bucket_count, first, bloom_count, _ = words(image, raw[:16], 4)
    start = 16 + bloom_count * image.word_bytes
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
    raise InputError(image.file, f"{what} has a chain that does not end")


def _dynsym_count(image: Image, vaddr: int) -> int:
    """Return the number of symbols that the section header states; 0 where there is none."""
    section = next((s for s in image.sections if s.type == abi.SHT_DYNSYM and s.vaddr == vaddr), None)
    if section is None or section.offset + section.size_bytes > len(image.data):
        return 0
    return section.size_bytes // image.symbol_bytes
