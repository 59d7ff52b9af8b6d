"""What the loader does for each object before the program's own code runs: files, relocations, symbol lookups.

Nothing is run. The loader of glibc is followed; of musl, the relocations are counted, and no lookups and files.

Source: glibc 2.36, elf/dl-load.c (open_path), elf/dl-reloc.c (resolve_map), elf/do-rel.h and elf/rtld.c.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, compress, count, groupby, islice
from operator import contains, itemgetter, ne
from typing import Annotated, Final

from footprint.elf import abi
from footprint.elf.abi import relocation_types
from footprint.elf.constructors import initialisers
from footprint.elf.dynamic import read_dynamic
from footprint.elf.dynsym import DynamicSymbols, SymbolReference
from footprint.elf.image import Image
from footprint.elf.relocations import count_types, relocation_infos, relr_count, symbol_and_type, symbols_and_types
from footprint.errors import FootprintError
from footprint.loader.bindings import Bindings
from footprint.loader.link_map import LibrarySearch, Linked, LinkMap
from footprint.loader.map_entry import FoundBy
from footprint.loader.target import Libc, Target
from footprint.members import NamedTuple, Pattern, dataclass, field, json_members, replace
from footprint.model.costs import StartCounts

# The functions of the vDSO that the loader looks up for the C library (setup_vdso_pointers), each in one object.
_VDSO_LOOKUPS: Final = {abi.EM_386: 5, abi.EM_X86_64: 5, abi.EM_AARCH64: 3}
# From 2.41 on it looks up this one, too.
_RANDOM: Final = {abi.EM_X86_64: b"\0__vdso_getrandom\0", abi.EM_AARCH64: b"\0__kernel_getrandom\0"}
# From 2.43 on it looks up what debuggers read, as the program may have a copy (_dl_debug_post_relocate).
_DEBUGGED: Final = "_r_debug"
# The resolver functions of the C library that look up a function of the vDSO each time that they are called, as far as
# it has the name of that; later ones take what the loader has looked up.
_VDSO_RESOLVERS: Final = frozenset({"gettimeofday", "time"})
_VDSO_TIME: Final = b"\0__vdso_time\0"
_NONE: Final = frozenset[str]()
_LIBC: Final = "libc.so.6"
_PAGE_BYTES: Final = 1 << 12
_SIZED_TABLES: Final = (
    (abi.DT_STRTAB, abi.DT_STRSZ),
    (abi.DT_RELA, abi.DT_RELASZ),
    (abi.DT_REL, abi.DT_RELSZ),
    (abi.DT_RELR, abi.DT_RELRSZ),
    (abi.DT_JMPREL, abi.DT_PLTRELSZ),
)
_RELOCATION_SECTIONS: Final = frozenset({abi.SHT_RELA, abi.SHT_REL})
# The loader takes over the allocator of the program (__rtld_malloc_init_real).
_ALLOCATOR: Final = ("malloc", "calloc", "free", "realloc")
# The C library calls it before any constructor (__libc_early_init).
_EARLY_CALL: Final = "__tunable_get_val"


class FailedOpens(NamedTuple):
    """Files that the loader tried in one folder and that are not there.

    Attributes:
        folder: The folder.
        reason: The rule by which it is searched.
        is_for_processor: Whether it is a subfolder for the processor (glibc-hwcaps, and those of older releases).
        file_count: The number of files.
    """

    folder: str
    reason: FoundBy
    is_for_processor: bool
    file_count: int


@json_members(
    "relative_count relr_count symbolic_count copy_count irelative_count lookup_count asked_count own_lookup_count "
    "own_asked_count hash_style searched_count repeated_count bound_now_count lazy_count tried_count failed_opens "
    "table_page_count initialiser_count initialiser_bytes is_loader"
)
@dataclass(frozen=True)
class StartCost:
    """What the loader does for one object at start.

    Attributes:
        relative_count: Relocations that add the load address.
        relr_count: The same in the packed encoding.
        symbolic_count: Relocations with the address of a symbol, those of the PLT included.
        copy_count: Copied variables.
        irelative_count: Calls of resolver functions.
        lookup_count: Searches for a symbol by name; None where the rules of the loader are not known.
        asked_count: The objects that these ask, each search anew.
        own_lookup_count: Those lookups that end in the object itself: of names that it defines.
        own_asked_count: The objects that these ask.
        hash_style: Its hash tables of symbols: `gnu`, `sysv` (without a filter for other names), `both`, `none`.
        searched_count: How often its table is searched: by the lookups of all objects that ask this one.
        repeated_count: Relocations that take the result of the lookup before.
        bound_now_count: Calls through the PLT that are bound at start, without those of resolvers of the file itself.
        lazy_count: Calls through the PLT that are bound when they are made.
        tried_count: The files that the loader tries to open to find it; None where its rules are not known.
        failed_opens: Those of them that are not there, by folder.
        is_loader: Whether it is the loader, whose lookups for itself are among its own.
        image: Its file.
        symbol_count: The entries of its table of symbols.
        lookup_ends: By object how many of its lookups end there, and so ask all objects up to it. One that asks an
            object alone ends there, less one at the object before.
    """

    relative_count: int
    relr_count: int
    symbolic_count: int
    copy_count: int
    irelative_count: int
    lookup_count: int | None
    asked_count: int | None
    own_lookup_count: int | None
    own_asked_count: int | None
    hash_style: Annotated[str, Pattern("^(gnu|sysv|both|none)$")]
    searched_count: int | None
    repeated_count: int | None
    bound_now_count: int
    lazy_count: int
    tried_count: int | None
    failed_opens: tuple[FailedOpens, ...]
    is_loader: bool
    image: Image = field(repr=False)
    symbol_count: int
    lookup_ends: Mapping[int, int] = field(repr=False)

    @property
    def table_page_count(self) -> int | None:
        """Return the number of pages from the first table of symbols and relocations to the last; None if damaged."""
        with suppress(FootprintError):
            return _table_page_count(self.image, self.symbol_count)
        return None

    @property
    def initialiser_count(self) -> int | None:
        """Return the number of functions called at start, those of start-up files included; None if damaged."""
        return self._initialisers[0]

    @property
    def initialiser_bytes(self) -> int | None:
        """Return the code of those whose size the unwind tables have, without what they call; None if damaged."""
        return self._initialisers[1]

    # Few answers show it.
    @cached_property
    def _initialisers(self) -> tuple[int, int] | tuple[None, None]:
        with suppress(FootprintError):
            return initialisers(self.image)
        return None, None

    @property
    def relocation_count(self) -> int:
        """All relocations that are applied at start."""
        return self.relative_count + self.relr_count + self.symbolic_count + self.copy_count + self.irelative_count

    @property
    def summary(self) -> StartCounts:
        """What an audit keeps of it."""
        failed_count = None if self.tried_count is None else sum([o.file_count for o in self.failed_opens])
        return StartCounts(self.relocation_count, self.lookup_count, failed_count, None)


def start_costs(link_map: LinkMap, bindings: Bindings, objects: Sequence[Linked]) -> tuple[StartCost | None, ...]:
    """Compute what the loader does for each object; None for one that cannot be read, or is not there at start.

    `objects` are those of the link map, and behind them the loader, where no object needs it. The lookups that the
    loader makes for itself are its own.
    """
    is_glibc = link_map.libc is Libc.GLIBC
    tries = _tries(link_map) if is_glibc else {}
    resolvers = _vdso_resolvers(link_map) if is_glibc else _NONE
    costs = [_start_cost(number, linked, link_map, bindings, tries, resolvers) for number, linked in enumerate(objects)]
    if not is_glibc:
        return tuple(costs)
    ends = [0] * len(objects)
    for cost in costs:
        for number, end_count in cost.lookup_ends.items() if cost else ():
            ends[number] += end_count
    counts = list(accumulate(reversed(ends)))[::-1]
    return tuple([cost and replace(cost, searched_count=count) for cost, count in zip(costs, counts, strict=True)])


def _start_cost(
    number: int,
    linked: Linked,
    link_map: LinkMap,
    bindings: Bindings,
    tries: "dict[int, Counter[_Try]]",
    resolvers: frozenset[str],
) -> StartCost | None:
    if linked.found_by in {FoundBy.AUDIT, FoundBy.OPENED}:
        return None
    linkage, is_loader = linked.library.linkage, linked.found_by is FoundBy.INTERPRETER
    is_glibc = link_map.libc is Libc.GLIBC
    binds_now = linkage.binds_now or link_map.binds_now or is_loader or not is_glibc
    symbols = bindings.symbols[number] if number < len(bindings.symbols) else DynamicSymbols.none()
    try:
        table = _read_table(linked.library.image, symbols, binds_now=binds_now)
    except FootprintError:
        return None
    ends: dict[int, int] = defaultdict(int)
    lookups = _lookups(number, table, bindings, link_map, ends, resolvers) if is_glibc else _Lookups(*(None,) * 4)
    failed = tries.get(number, Counter())
    return StartCost(
        *table.counts,
        **lookups._asdict(),
        hash_style=linkage.hash_style,
        searched_count=None,
        repeated_count=table.use_count - len(table.places) - table.again.total() if is_glibc else None,
        bound_now_count=table.jump_count if binds_now else 0,
        lazy_count=0 if binds_now else table.jump_count,
        tried_count=failed.total() if is_glibc else None,
        failed_opens=tuple([FailedOpens(*key, count) for key, count in failed.items() if key is not _OPENED]),
        is_loader=is_loader,
        image=linked.library.image,
        symbol_count=symbols.count,
        lookup_ends=ends,
    )


# --- lookups ----------------------------------------------------------------------------------------------------------


class _Lookups(NamedTuple):
    """The figures of `StartCost` about lookups."""

    lookup_count: int | None
    asked_count: int | None
    own_lookup_count: int | None
    own_asked_count: int | None


def _lookups(
    user: int,
    table: "_Table",
    bindings: Bindings,
    link_map: LinkMap,
    lookup_ends: dict[int, int],
    resolvers: frozenset[str],
) -> _Lookups:
    """Count the lookups of an object, and the objects that these ask: all up to the one that answers."""
    if user >= len(bindings.symbols):
        return _Lookups(*_loader_lookups(link_map, bindings, lookup_ends), 0, 0)
    symbols, count, requested = bindings.symbols[user], len(bindings.symbols), bindings.symbols[user].requested
    is_symbolic = link_map.objects[user].library.linkage.is_symbolic and user > 0
    vdso_places = {place for name in resolvers for place in requested.get(name, ())}
    lookup_count, asked_count = (
        _loader_lookups(link_map, bindings, lookup_ends) if user == link_map.interpreter else (0, 0)
    )
    lookup_total = len(table.places) + table.again.total()
    if is_symbolic:
        lookup_ends[user] += lookup_total
        lookup_ends[user - 1] -= lookup_total
    own_lookup_count = own_asked_count = vdso_count = 0
    is_lazy = len(table.places) < len(symbols.looked_up)
    for number, places in bindings.providers[user].items():
        looked_up = places & table.places if is_lazy else places
        if number and vdso_places and _is_libc(link_map, number):
            vdso_count += sum([_use_count(place, table, symbols) for place in looked_up & vdso_places])
        special = _special(user, number, looked_up, bindings)
        repeated = table.again.keys() & looked_up if table.again else ()
        times = len(looked_up) - len(special) + sum([table.again[place] for place in repeated if place not in special])
        answers = [(number, times, False)]
        for place in special:
            reference, provider = symbols.reference(place), number
            if reference.name in bindings.symbols[number].unique or (reference.is_protected and reference.is_defined):
                # The search ends at the first definition, and then another one is taken.
                is_in_itself = is_symbolic and reference.is_defined
                provider = user if is_in_itself else bindings.first_match(reference) or 0
            answers.append((provider, 1 + table.again[place], reference.is_copy))
        for provider, times, is_copy in answers:
            far = 1 if is_symbolic and provider == user else provider + 1 + is_symbolic
            asked_count += (far - is_copy) * times
            if not is_symbolic or provider != user:
                lookup_ends[provider] += times
                lookup_ends[0] -= is_copy * times
            if provider == user:
                own_lookup_count += times
                own_asked_count += far * times
    # What nobody defines is asked of all.
    left = table.places.difference(*bindings.providers[user].values())
    left_count = sum([1 + table.again[place] for place in left])
    copied_count = sum([1 + table.again[place] for place in left if symbols.kind(place).is_copy])
    asked_count += (count + is_symbolic) * left_count - copied_count
    lookup_ends[count - 1] += left_count
    lookup_ends[0] -= copied_count
    lookup_count, asked_count = lookup_count + lookup_total + vdso_count, asked_count + vdso_count
    return _Lookups(lookup_count, asked_count, own_lookup_count, own_asked_count)


def _use_count(place: int, table: "_Table", symbols: DynamicSymbols) -> int:
    """Return how often the relocations of a file use a reference."""
    lookup, symbol = symbols.kind(place)[1:3], symbols.looked_up[place]
    return sum([numbers.count(symbol) for of_uses, numbers in table.uses if of_uses == lookup])


def _special(user: int, provider: int, places: frozenset[int], bindings: Bindings) -> frozenset[int]:
    """Return the references that ask other objects than all up to their provider: most objects have none."""
    symbols, unique = bindings.symbols[user], bindings.symbols[provider].unique
    if user not in {0, provider} and not unique:
        return frozenset()
    requested = symbols.requested
    return places & symbols.not_plain.union(*[requested[name] for name in unique & requested.keys()])


def _vdso_resolvers(link_map: LinkMap) -> frozenset[str]:
    """Return the functions of the C library whose resolvers look up a function of the vDSO each time."""
    libc = next((o for n, o in enumerate(link_map.objects) if _is_libc(link_map, n)), None)
    has_name = libc and libc.library.kind.machine == abi.EM_X86_64 and _VDSO_TIME in _read_only(libc)
    return _VDSO_RESOLVERS if has_name else _NONE


def _is_libc(link_map: LinkMap, number: int) -> bool:
    return link_map.objects[number].library.linkage.soname == _LIBC


def _loader_lookups(link_map: LinkMap, bindings: Bindings, lookup_ends: dict[int, int]) -> tuple[int, int]:
    """Count the lookups that the loader makes for itself, and at the first call of the C library."""
    references: list[SymbolReference] = []
    machine, texts = link_map.objects[0].library.kind.machine, _read_only(link_map.interpreter_object)
    # Where no object needs the loader, it keeps its own allocator.
    if link_map.interpreter is not None:
        libc = next((number for number in range(len(link_map.objects)) if _is_libc(link_map, number)), None)
        version = None if libc is None else bindings.symbols[libc].version_of(_ALLOCATOR[0])
        references = [SymbolReference(name, version, *(False,) * 5) for name in _ALLOCATOR]
        # Beside its table of symbols, it names it once more.
        if texts.count(b"\0%b\0" % _DEBUGGED.encode()) > 1:
            references.append(SymbolReference(_DEBUGGED, None, *(False,) * 5))
        if libc is not None and not (link_map.binds_now or link_map.objects[libc].library.linkage.binds_now):
            symbols = bindings.symbols[libc]
            references += [symbols.reference(place) for place in symbols.requested.get(_EARLY_CALL, ())[:1]]
    matches = [bindings.first_match(reference) for reference in references]
    places = [len(bindings.symbols) if number is None else number + 1 for number in matches]
    for place in places:
        lookup_ends[place - 1] += 1
    vdso_count = _VDSO_LOOKUPS.get(machine, 0) + (machine in _RANDOM and _RANDOM[machine] in texts)
    return vdso_count + len(places), vdso_count + sum(places)


def _read_only(linked: Linked | None) -> bytes:
    """Return the bytes of an object that no process writes; none where it cannot be read."""
    with suppress(FootprintError):
        image = linked and linked.library.image
        loads = [load for load in image.loads if not load.is_writable] if image else []
        # Where code has segments of its own, the texts are in the others.
        texts = [load for load in loads if not load.flags & abi.PF_X] or loads
        return b"".join([bytes(image.data[o.offset : o.offset + o.file_bytes]) for o in texts if image])
    return b""


# --- relocations ------------------------------------------------------------------------------------------------------


_Lookup = tuple[bool, bool]
"""Whether a lookup is for a call, and whether it copies: see `SymbolReference`."""
_Uses = list[tuple[_Lookup, list[int]]]
"""The symbols that relocations look up, in their order, and how."""


class _Table(NamedTuple):
    """The relocations of a file: their numbers by kind, and how often each reference is used and looked up.

    Attributes:
        counts: Their numbers by kind.
        uses: The symbols that they ask for.
        use_count: How often they ask for one that is looked up.
        places: The references that are looked up.
        again: How often more than once.
        jump_count: The entries of DT_JMPREL.
    """

    counts: tuple[int, int, int, int, int]
    uses: _Uses
    use_count: int
    places: frozenset[int]
    again: Counter[int]
    jump_count: int


def _read_table(image: Image, symbols: DynamicSymbols, *, binds_now: bool) -> _Table:
    types, dynamic = relocation_types(image.machine), read_dynamic(image)
    infos, all_types = symbols.infos, symbols.relocation_types
    if infos is None:
        infos = relocation_infos(dynamic)
        all_types = frozenset(symbols_and_types(image, array("Q", infos.distinct))[1])
    calls = types.jump_slot | types.tls
    without_symbol = types.relative | types.irelative | {abi.R_NONE}
    kinds: Counter[int] = Counter()
    for info, alike_count in infos.alike.items():
        kinds[symbol_and_type(image, info)[1]] += alike_count
    uses: _Uses = []

    def add(table: "array[int]", *, is_lazy: bool) -> None:
        numbers, kinds_of = symbols_and_types(image, table)
        present = count_types(kinds_of, all_types)
        kinds.update(present)
        asking = (present.keys() & types.tls if is_lazy else present.keys()) - without_symbol
        if not asking:
            return
        lookups = {kind: (kind in calls, kind in types.copy) for kind in asking}
        usual = lookups[max(asking, key=present.__getitem__)]
        # Most tables look up all symbols in one way.
        others = {kind for kind in present if lookups.get(kind) != usual}
        parts: Iterable[tuple[_Lookup | None, Iterable[int]]] = ((usual, numbers),)
        if others and any(compress(numbers, map(others.__contains__, kinds_of))):
            pairs = zip(map(lookups.get, kinds_of), numbers, strict=True)
            parts = [(lookup, [pair[1] for pair in group]) for lookup, group in groupby(pairs, itemgetter(0))]
        for lookup, part in parts:
            # What has no symbol has the number 0.
            if lookup and (used := list(filter(None, part))):
                uses.append((lookup, used))

    for table in infos.main:
        add(table, is_lazy=False)
    # Resolvers and thread-locals are no calls.
    no_calls = types.irelative | types.tls
    jump_count = sum(map(len, infos.jump)) + sum([kinds[kind] for kind in no_calls])
    for table in infos.jump:
        add(table, is_lazy=not binds_now)
    jump_count -= sum([kinds[kind] for kind in no_calls])
    relative, copy, irelative = [
        sum([kinds[kind] for kind in alike]) for alike in (types.relative, types.copy, types.irelative)
    ]
    symbolic = kinds.total() - relative - copy - irelative - kinds[abi.R_NONE]
    counts = relative, relr_count(dynamic), symbolic, copy, irelative
    return _Table(counts, uses, *_looked_up(uses, symbols), jump_count)


def _looked_up(uses: _Uses, symbols: DynamicSymbols) -> tuple[int, frozenset[int], Counter[int]]:
    """Return how often references are used, which are looked up, and how often more than once: not twice in a row."""
    by_lookup: dict[_Lookup, set[int]] = {lookup: set() for lookup, _ in uses}
    run_count, last = 0, (False, False, 0)
    for lookup, numbers in uses:
        by_lookup[lookup].update(numbers)
        run_count += sum(map(ne, islice(numbers, 1, None), numbers)) + ((*lookup, numbers[0]) != last)
        last = *lookup, numbers[-1]
    symbols_by_kind = [by_lookup.get(kind[1:3], set()) for kind in symbols.kinds]
    is_used = map(contains, map(symbols_by_kind.__getitem__, symbols.kind_numbers), symbols.looked_up)
    places = frozenset(compress(count(), is_used))
    if len(places) == sum(map(len, by_lookup.values())) == run_count:
        # In nearly all files the relocations of a reference are together.
        return sum([len(numbers) for _, numbers in uses]), places, Counter()
    # A symbol without a reference is bound to the definition of the file itself.
    place_of = {(symbols.kind(place)[1:3], symbols.looked_up[place]): place for place in places}
    places_in_turn = [place_of.get((lookup, number)) for lookup, numbers in uses for number in numbers]
    used = [place for place in places_in_turn if place is not None]
    runs = Counter([place for place, _ in groupby(used)])
    return len(used), places, Counter({place: times - 1 for place, times in runs.items() if times > 1})


def _table_page_count(image: Image, symbol_count: int) -> int:
    """Count the pages of 4 KiB from the first table that the loader reads to the end of the last one."""
    dynamic = read_dynamic(image)
    ranges = [(dynamic.get(tag), dynamic.get(size_tag) or 0) for tag, size_tag in _SIZED_TABLES]
    ranges += [(dynamic.get(tag), 0) for tag in (abi.DT_GNU_HASH, abi.DT_HASH)]
    ranges.append((dynamic.get(abi.DT_SYMTAB), symbol_count * image.symbol_bytes))
    if image.segment(abi.PT_DYNAMIC) is None:
        # The start-up code of a static program reads its own tables.
        ranges = [(s.vaddr, s.size_bytes) for s in image.sections if s.is_in_memory and s.type in _RELOCATION_SECTIONS]
    tables = [range(vaddr, vaddr + size_bytes + 1) for vaddr, size_bytes in ranges if vaddr]
    if not tables:
        return 0
    first, last = min([table.start for table in tables]), max([table.stop for table in tables])
    # A damaged file may name any address.
    return min(last // _PAGE_BYTES - first // _PAGE_BYTES + 1, -(-len(image.data) // _PAGE_BYTES))


# --- files ------------------------------------------------------------------------------------------------------------

_OPENED: Final = ("", FoundBy.PATH, False)
_Try = tuple[str, FoundBy, bool]


def _tries(link_map: LinkMap) -> dict[int, Counter[_Try]]:
    """Return for each object the files that the loader tries for it, by folder; a missing one is its requester's."""
    numbers = {linked.path: number for number, linked in enumerate(link_map.objects)}
    absent: set[tuple[str, int]] = set()
    tries: dict[int, Counter[_Try]] = {}
    for search in link_map.searches:
        payer = search.requester if search.path is None else numbers.get(search.path, search.requester)
        tries.setdefault(payer, Counter()).update(_tries_of(search, link_map, absent))
    return tries


def _tries_of(search: LibrarySearch, link_map: LinkMap, absent: set[tuple[str, int]]) -> Iterator[_Try]:
    """Yield the files that the loader tries for one name; `absent` are the folders that it knows not to exist."""
    target = link_map.target
    lists = search.lists
    if (
        search.found_by not in {FoundBy.PATH, FoundBy.CACHE, FoundBy.CONFIGURATION}
        and target
        and "/" not in search.name
    ):
        lists = (*lists, (FoundBy.DEFAULT, target.system_directories, None))
    for rule, folders, _ in lists:
        for folder in folders:
            there = link_map.folders.get(folder, ())
            for at, part in enumerate((*_parts(target), "")):
                prefix = folder + part
                if prefix not in there and folder.startswith("/"):
                    if (folder, at) in absent:
                        continue
                    absent.add((folder, at))
                if prefix + search.name == search.path:
                    yield _OPENED
                    return
                yield prefix, rule, bool(part)
    if search.path is not None:
        yield _OPENED
    elif "/" in search.name:
        yield search.name[: search.name.rindex("/") + 1], FoundBy.PATH, False


def _parts(target: Target | None) -> tuple[str, ...]:
    return target.subdirectories if target else ()
