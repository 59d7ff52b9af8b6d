"""The dynamic symbols of an ELF file: the definitions that others can find, and the references that relocations make.

The loader decides: a definition that the hash table does not reach does not count, nor does an undefined symbol that no
relocation refers to.

Source: System V ABI, chapter 5 (Hash Table); glibc 2.36, elf/dl-lookup.c, for what is found.
"""

from array import array
from collections.abc import Callable, Collection, Container, Sequence
from functools import cached_property
from itertools import chain, compress, count, repeat
from operator import getitem, ne
from typing import Final, cast

from footprint.elf import abi
from footprint.elf.abi import relocation_types
from footprint.elf.dynamic import Dynamic, bytes_at_vaddr, read_dynamic, words, zeros_of
from footprint.elf.image import Image
from footprint.elf.relocations import (
    RelocationInfos,
    relocation_infos,
    relocations,
    symbol_and_type,
    symbols_and_types,
)
from footprint.elf.symbols import SymbolTable, fields_of_kind
from footprint.elf.versions import VERSION_INDEX, Version, Versions, read_versions
from footprint.errors import InputError
from footprint.members import NamedTuple, dataclass

# NOTYPE, OBJECT, FUNC, COMMON, TLS, GNU_IFUNC: what the loader binds to.
_BOUND_TYPES: Final = frozenset({0, 1, 2, 5, 6, 10})
_NOT_SEEN: Final = frozenset({abi.STV_INTERNAL, abi.STV_HIDDEN})
_CHAIN_BYTES: Final = 1 << 12
_LookupClass = tuple[bool, bool]
"""Whether a lookup passes over canonical PLT entries, and whether it copies."""
_PLAIN: Final = False, False
# In place of the number of a kind: of symbols that the file binds to its own without lookup.
_HIDDEN: Final = -1


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


class ReferenceKind(NamedTuple):
    """What a reference has beside its name, which few kinds differ in: see `SymbolReference`."""

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
        reference_names: The names of the symbols that its relocations look up.
        kind_numbers: The number of the kind of each of these references.
        kinds: The kinds: any number of references have some ten.
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
    reference_names: list[str]
    kind_numbers: list[int]
    kinds: list[ReferenceKind]
    defined: dict[str, int]
    several: dict[str, tuple[int, ...]]
    canonical_plt_entries: frozenset[int]
    unique: frozenset[str]
    relocation_types: frozenset[int]
    jump_types: frozenset[int]
    infos: RelocationInfos | None
    looked_up: "array[int]"

    @property
    def references(self) -> tuple[SymbolReference, ...]:
        """The symbols that its relocations look up."""
        return tuple(map(self.reference, range(len(self.reference_names))))

    def reference(self, place: int) -> SymbolReference:
        """Return the reference with an index, without making the others."""
        return SymbolReference(self.reference_names[place], *self.kind(place))

    def kind(self, place: int) -> ReferenceKind:
        """Return what the reference with an index has beside its name."""
        return self.kinds[self.kind_numbers[place]]

    @cached_property
    def requested(self) -> dict[str, tuple[int, ...]]:
        """By name the indexes of the references."""
        names = self.reference_names
        places: dict[str, tuple[int, ...]] = dict(zip(names, zip(range(len(names))), strict=False))
        if len(places) < len(names):
            # A few names have several.
            earlier = compress(range(len(names)), map(ne, map(places.__getitem__, names), zip(range(len(names)))))
            for place in reversed(list(earlier)):
                places[names[place]] = (place, *places[names[place]])
        return places

    @cached_property
    def not_plain(self) -> frozenset[int]:
        """The references that copy, and the protected ones that the file itself defines."""
        return self.places_of(lambda kind: kind.is_copy or (kind.is_protected and kind.is_defined))

    def places_of(self, is_wanted: Callable[[ReferenceKind], bool]) -> frozenset[int]:
        """Return the indexes of the references of some kinds."""
        wanted = list(map(is_wanted, self.kinds))
        return frozenset(compress(count(), map(wanted.__getitem__, self.kind_numbers)) if any(wanted) else ())

    def version_of(self, name: str) -> Version | None:
        """Return the version of a definition; None where it has none, or there is no such definition."""
        by_symbol, index = self.versions.by_symbol, self.defined.get(name)
        if by_symbol is None or index is None:
            return None
        return self.versions.by_index.get(by_symbol[index] & VERSION_INDEX)

    @classmethod
    def none(cls) -> "DynamicSymbols":
        """Return the answer for a file without dynamic symbols."""
        nothing = frozenset[int]()
        return cls(
            Versions(None, {}, ()), 0, [], [], [], {}, {}, nothing, frozenset(), nothing, nothing, None, array("Q")
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
    lookups, all_types, jump_types = _lookups(image, infos)
    first_found, past_found = _findable(dynamic)
    past_looked_up = max(chain.from_iterable(lookups.values()), default=-1) + 1
    count = max(past_found, past_looked_up, _dynsym_count(image, vaddr))
    table = _symbol_table(dynamic, count)
    table.names.learn_all()
    names = table.names.cached_at(table.name_offsets)
    versions = read_versions(dynamic, count)
    if gotsym := dynamic.get(abi.DT_MIPS_GOTSYM) if image.machine == abi.EM_MIPS else None:
        # On MIPS the loader looks up each symbol that has an entry in the GOT, without any relocation.
        lookups.setdefault(_PLAIN, set()).update(range(gotsym, count))
    asked, kind_numbers, kinds, looked_up = _references(table, names, lookups, versions)
    definitions = _definitions(table, names, first_found, past_found)
    return DynamicSymbols(
        versions, count, asked, kind_numbers, kinds, *definitions, all_types, jump_types, infos, looked_up
    )


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


def _lookups(
    image: Image, infos: RelocationInfos
) -> "tuple[dict[_LookupClass, set[int]], frozenset[int], frozenset[int]]":
    """Return the symbols that relocations look up, by the class of the lookup, all types, and those of DT_JMPREL."""
    known = relocation_types(image.machine)
    calls, copies, without_lookup = known.jump_slot | known.tls, known.copy, known.relative | {abi.R_NONE}
    lookups: dict[_LookupClass, set[int]] = {}
    types_by_table = [set(symbols_and_types(image, array("Q", infos.alike))[1])]
    for table in (*infos.main, *infos.jump):
        symbols, types = symbols_and_types(image, table)
        types_by_table.append(present := set(types))
        classes: dict[_LookupClass, set[int]] = {}
        for kind in present - without_lookup:
            classes.setdefault((kind in calls, kind in copies), set()).add(kind)
        for lookup, kinds in classes.items():
            # Most tables look up all of their symbols in one way.
            of_class = symbols if kinds == present else compress(symbols, map(kinds.__contains__, types))
            lookups.setdefault(lookup, set()).update(of_class)
    for looked_up in lookups.values():
        looked_up.discard(0)
    past_main = len(types_by_table) - len(infos.jump)
    return lookups, frozenset().union(*types_by_table), frozenset().union(*types_by_table[past_main:])


def _with_names(table: SymbolTable, names: list[str | None], symbols: Sequence[int]) -> list[str]:
    """Decode those of the names of symbols that are None: each is the end of another name."""
    at = -1
    for _ in range(names.count(None)):
        at = names.index(None, at + 1)
        names[at] = table.name(symbols[at])
    return cast("list[str]", names)


def _reference_kind(image: Image, word: int, version: Version | None, lookup: "_LookupClass") -> ReferenceKind | None:
    """Return the kind of a reference, given that of its symbol; None where the file binds to its own without lookup."""
    info, other, section_index = fields_of_kind(image, word)
    if info >> 4 == abi.STB_LOCAL or other & 3 in _NOT_SEEN:
        return None
    is_weak, is_protected = info >> 4 == abi.STB_WEAK, other & 3 == abi.STV_PROTECTED
    return ReferenceKind(version, *lookup, is_weak, is_protected, section_index != abi.SHN_UNDEF)


def _references(
    table: SymbolTable, names: Sequence[str | None], lookups: "dict[_LookupClass, set[int]]", versions: Versions
) -> "tuple[list[str], list[int], list[ReferenceKind], array[int]]":
    """Return the names of the references in the order of their symbols, the kind numbers, all kinds, and symbols."""
    by_symbol, symbols, kinds, numbers = versions.by_symbol, list[int](), list[ReferenceKind](), list[int]()
    by_index, has_hidden = versions.by_index if by_symbol else {}, False
    for lookup, looked_up in sorted((lookup, sorted(of_class)) for lookup, of_class in lookups.items()):
        words = map(getitem, repeat(table.kinds), looked_up)
        entries = map(getitem, repeat(by_symbol), looked_up) if by_symbol else repeat(0)
        keys, number_of = list(zip(words, entries, strict=False)), dict[tuple[int, int], int]()
        for word, entry in set(keys):
            kind = _reference_kind(table.image, word, by_index.get(entry & VERSION_INDEX), lookup)
            number_of[word, entry] = len(kinds) if kind else _HIDDEN
            kinds += [kind] if kind else []
            has_hidden |= not kind
        numbers += map(number_of.__getitem__, keys)
        symbols += looked_up
    if len(lookups) > 1:
        order = sorted(range(len(symbols)), key=symbols.__getitem__)
        symbols, numbers = list(map(symbols.__getitem__, order)), list(map(numbers.__getitem__, order))
    if has_hidden:
        symbols = [symbol for symbol, number in zip(symbols, numbers, strict=True) if number != _HIDDEN]
        numbers = [number for number in numbers if number != _HIDDEN]
    asked = _with_names(table, list(map(names.__getitem__, symbols)), symbols)
    return asked, numbers, kinds, array("Q", symbols)


def _definitions(
    table: SymbolTable, names: list[str | None], first: int, past: int
) -> tuple[dict[str, int], dict[str, tuple[int, ...]], frozenset[int], frozenset[str]]:
    """Find the definitions between two indexes that the loader would bind to, as `DynamicSymbols` has them."""
    # Any number of symbols has a handful of kinds.
    kinds: Sequence[int] = table.kinds[first:past]
    all_kinds = {kind: fields_of_kind(table.image, kind) for kind in set(kinds)}
    bound = {kind: fields for kind, fields in all_kinds.items() if _is_bound(table.image, *fields)}
    canonical = {kind for kind, (_, _, section) in bound.items() if section == abi.SHN_UNDEF}
    unique = {kind for kind, (info, _, _) in bound.items() if info >> 4 == abi.STB_GNU_UNIQUE}
    vaddrs = table.vaddrs[first:past]
    indexes, chosen = list(range(first, past)), names[first:past]
    is_chosen = (
        bytearray(map(bound.__contains__, kinds)) if len(bound) < len(all_kinds) else bytearray(b"\1" * len(vaddrs))
    )
    for at in zeros_of(vaddrs):
        info, _, section_index = all_kinds[kinds[at]]
        is_chosen[at] &= section_index == abi.SHN_ABS or info & 15 == abi.STT_TLS
    if 0 in is_chosen:
        indexes, kinds = list(compress(indexes, is_chosen)), list(compress(kinds, is_chosen))
        chosen = list(compress(chosen, is_chosen))
    keys = _with_names(table, chosen, indexes)
    by_name = dict(zip(keys, indexes, strict=True))
    several: dict[str, tuple[int, ...]] = {}
    if len(by_name) < len(keys):
        earlier = list(map(ne, map(by_name.__getitem__, keys), indexes))
        for key, index in zip(compress(keys, earlier), compress(indexes, earlier), strict=True):
            several[key] = (*several.get(key, ()), index)
        several = {key: (*places, by_name[key]) for key, places in several.items()}
    canonical_plt_entries = compress(indexes, map(canonical.__contains__, kinds)) if canonical else ()
    unique_names = compress(keys, map(unique.__contains__, kinds)) if unique else ()
    return by_name, several, frozenset(canonical_plt_entries), frozenset(unique_names)


def _is_bound(image: Image, info: int, other: int, section_index: int) -> bool:
    """Return whether the loader binds to a symbol, by its small fields."""
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
