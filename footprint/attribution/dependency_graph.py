"""The dependency graph of a process: its objects, what each needs and binds to, and what each costs."""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final

from footprint.attribution.object_prediction import ObjectPrediction
from footprint.attribution.start_time import (
    StartPrices,
    built_in_prices,
    start_page_faults,
    start_system,
    start_us,
    start_work,
)
from footprint.elf.abi import PF_W, PF_X
from footprint.elf.constructors import own_constructors, own_destructors
from footprint.elf.image import Image
from footprint.elf.notes import build_id, optional_libraries
from footprint.errors import FootprintError, Note
from footprint.loader.bindings import NO_BINDINGS, Bindings
from footprint.loader.dependencies import LibraryRemoval, Retained, compare, filtees, needs, reached, retained, roots
from footprint.loader.link_map import Linked, LinkMap, Needs, with_opened
from footprint.loader.map_entry import FoundBy
from footprint.loader.start_failures import start_failures
from footprint.loader.target import Libc
from footprint.members import dataclass, lazy_pattern, replace
from footprint.model.costs import Need, ObjectCost, unread_paths
from footprint.model.finding import Confidence, Finding
from footprint.model.row import Evidence

if TYPE_CHECKING:
    from footprint.loader.start_cost import StartCost

_DLOPEN_NAMES: Final = frozenset({"dlopen", "dlmopen", "g_module_open", "lt_dlopen", "lt_dlopenext"})
# Rust and Go end no text with a null byte. A program can put the path together: `"/proc/" + pid + "/maps"`.
_FILE_OF_MAPPINGS: Final = lazy_pattern(
    rb"/proc/[!-.0-~]{0,32}/(?:s?maps|numa_maps|map_files)|(?<=\0)/?(?:s?maps|numa_maps|map_files)(?=\0)"
)
_PROC: Final = lazy_pattern(rb"/proc\b")
# The objects that all objects retain, each counted as often: those of 10,000 objects in a chain are 50 million.
_MOST_RETAINED: Final = 1 << 17
_CHUNK_BYTES: Final = 1 << 20
_LONGEST_NAME: Final = 4096
_STUB_SUFFIX: Final = "_version_placeholder"
_DLSYM_NAMES: Final = frozenset({"dlsym", "dlvsym", "g_module_symbol", "lt_dlsym"})
# The last three lead to an entry of the list, which leads to all others.
_LISTS: Final = frozenset({"dl_iterate_phdr", "_r_debug", "_rtld_global", "dladdr1", "dlinfo", "_dl_find_object"})
# With these the C library opens modules that are in no table: the databases of nsswitch.conf, and conversions between
# character sets. Source: nsswitch.conf(5), iconv(1), and the manual of glibc, "Character Set Handling".
_MODULE_CALLS: Final = (
    "ether_hostton ether_ntohost getaddrinfo getaddrinfo_a getgrouplist gethostid getnameinfo getpw glob glob64"
    " iconv_open initgroups innetgr iruserok iruserok_af rcmd rcmd_af ruserok ruserok_af wordexp"
)
_DATABASE_VERBS: Final = frozenset({"get", "set", "end"})
_DATABASE_CALLS: Final = lazy_pattern(
    "(?:get|set|end)(?:pw|gr|sp|sg|host|net|netgr|serv|proto|rpc|alias)(?:ent|n[a]m|uid|gid|by[a-z0-9]+)(?:_r)?"
)
_LOCALE_CALLS: Final = frozenset({"setlocale", "newlocale"})
_CXX_LOCALE_CALLS: Final = lazy_pattern("_ZNSt(3__1)?6localeC[12]E.*(PKc|basic_string).*|_ZN.*_byname.*")
# In a locale whose character set is neither ASCII nor UTF-8.
_CONVERTING_CALLS: Final = (
    "btowc dcgettext dcngettext dgettext dngettext fgetwc fgetwc_unlocked fgetws fputwc fputwc_unlocked fputws"
    " fwprintf fwscanf gettext getwc getwc_unlocked getwchar getwchar_unlocked mblen mbrlen mbrtowc mbsnrtowcs"
    " mbsrtowcs mbstowcs mbtowc ngettext putwc putwc_unlocked putwchar putwchar_unlocked vfwprintf vfwscanf vwprintf"
    " vwscanf wcrtomb wcsnrtombs wcsrtombs wcstombs wctob wctomb wprintf wscanf"
)
_CXX_RUNTIME: Final = re.compile(r"lib(stdc\+\+|c\+\+)\.so")
# They ask which object an address is in, and nothing else.
_UNWINDERS: Final = re.compile(r"lib(gcc_s|unwind)\b")


@dataclass(frozen=True, eq=False)
class DependencyGraph:
    """The objects of a process and their relations. Objects are numbered in load order; the program is 0.

    Behind those of the link map come the loader, where no object needs it, and the copies of what watches the loader
    (DT_AUDIT): they are loaded, but no symbol is looked up in them.

    Attributes:
        link_map: The link map, with how each object was found.
        objects: All of them.
        bindings: Which object binds to which.
        predictions: The predicted cost of each object; None where its file cannot be read.
        private_bytes: The private memory of each object in a live process; None where none was measured.
        page_bytes: The size of a page.
        notes: What was odd.
        start_failures: Why the program would not start, or would end at a call; none for a live process.
        relink: Computes the link map at start without some needs.
        bind: Binds the objects of a link map.
        link_name: Returns the NAME by which a linker finds an object as `-lNAME`, or None.
        thread_count: The number of threads of the live process; 1 where there is none.
        heap_bytes: What constructors have written of the heap when the program's own code begins, where it is known.
        load_prices: Returns the prices of a start of programs of a system, as `start_system` names it.
    """

    link_map: LinkMap
    objects: tuple[Linked, ...]
    bindings: Bindings
    predictions: tuple[ObjectPrediction | None, ...]
    private_bytes: tuple[int, ...] | None
    page_bytes: int
    notes: tuple[Note, ...]
    start_failures: tuple[Note, ...]
    relink: Callable[[Needs], LinkMap]
    bind: Callable[[LinkMap], Bindings]
    link_name: Callable[[Linked], str | None]
    thread_count: int = 1
    heap_bytes: int = 0
    load_prices: Callable[[str], StartPrices] = built_in_prices

    @cached_property
    def needed(self) -> tuple[tuple[int, ...], ...]:
        """For each object the objects that it brings in."""
        extra = self.objects[len(self.link_map.objects) :]
        extra_needs = [tuple([n.place for n in linked.dependencies if n.place is not None]) for linked in extra]
        return (*needs(self.link_map), *extra_needs)

    @cached_property
    def filtees(self) -> tuple[frozenset[int], ...]:
        """For each object its filtees (DT_FILTER, DT_AUXILIARY) that it does not also need by name."""
        return (*filtees(self.link_map), *(frozenset(),) * (len(self.objects) - len(self.link_map.objects)))

    @cached_property
    def needing(self) -> dict[int, list[int]]:
        """For each object the objects that need it."""
        users_by_provider: dict[int, list[int]] = {}
        for user, providers in enumerate(self.needed):
            for provider in providers:
                users_by_provider.setdefault(provider, []).append(user)
        return users_by_provider

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """The objects that are loaded whatever others need."""
        extra = range(len(self.link_map.objects), len(self.objects))
        return (*roots(self.link_map), *(number for number in extra if self.objects[number].loader is None))

    @cached_property
    def retained(self) -> Retained:
        """For each object the objects that leave with it, itself included."""
        return retained(self.needed, self.roots)

    @cached_property
    def retained_bytes(self) -> Sequence[int]:
        """For each object the private memory of all objects that leave with it, itself included."""
        return self.retained.sums([self.cost_bytes((number,)) for number in range(len(self.objects))])

    @cached_property
    def start_costs(self) -> "tuple[StartCost | None, ...]":
        """What the loader does for each object at start."""
        from footprint.loader.start_cost import start_costs  # noqa: PLC0415 # few answers have it

        return start_costs(self.link_map, self.bindings, self.objects)

    @cached_property
    def start_system(self) -> str:
        """The processor and the C library, as prices of a start name them."""
        return start_system(self.link_map)

    @cached_property
    def start_prices(self) -> StartPrices:
        """What the loader's work takes, by which times at start are estimated."""
        return self.load_prices(self.start_system)

    @cached_property
    def start_work(self) -> tuple[tuple[int, ...], ...]:
        """For each object what has a price at start, in the order of the prices."""
        return tuple(map(start_work, self._loader_costs, self.predictions))

    @cached_property
    def start_us(self) -> tuple[int, ...]:
        """The estimated processor time of each object at start, in microseconds; 0 where there is no model."""
        return tuple([start_us(work, self.start_prices) for work in self.start_work])

    @cached_property
    def start_page_faults(self) -> tuple[int, ...]:
        """The estimated page faults for each object up to the entry point; 0 where there is no model."""
        return tuple(map(start_page_faults, self._loader_costs, self.predictions))

    @property
    def has_start_model(self) -> bool:
        """Whether time and page faults at start can be estimated: the prices are those of the loader of glibc."""
        return self.link_map.libc is Libc.GLIBC

    @property
    def lacks_objects(self) -> bool:
        """Whether objects that are needed at start are missing, or cannot be read."""
        return bool(self.link_map.missing or unread_paths([linked.path for linked in self.objects], self.notes))

    @property
    def _loader_costs(self) -> "Sequence[StartCost | None]":
        """What is done before the entry point: a static program relocates itself, behind it."""
        is_modelled = self.has_start_model and self.link_map.interpreter_object
        return self.start_costs if is_modelled else (None,) * len(self.objects)

    @cached_property
    def retained_start_us(self) -> Sequence[int]:
        """For each object the time that a start takes without it less: of all that leaves with it, itself included.

        The lookups of the objects that stay ask fewer objects then. Of very long chains of needs this is left out.
        """
        own_us, sizes = self.retained.sums(self.start_us), self.retained.sums([1] * len(self.objects))
        costs = self._loader_costs
        searched = self.retained.sums([cost.searched_count or 0 if cost else 0 for cost in costs])
        if sum(sizes) > _MOST_RETAINED:
            return own_us
        totals = []
        for number, asked_count in enumerate(searched):
            leaving = sorted(self.retained[number]) if asked_count else []
            # What these ask of each other is in their own time.
            ends = [end for user in leaving if (cost := costs[user]) for end in cost.lookup_ends.items()]
            less_count = asked_count - sum([count * bisect_right(leaving, end) for end, count in ends])
            totals.append(own_us[number] + less_count * self.start_prices.asked_ns // 1000)
        return totals

    def object_costs(self, *, has_start: bool = False) -> tuple[ObjectCost, ...]:
        """Return the objects with their costs, as an audit keeps them; on request with what they are at start."""
        unknown = (None,) * len(self.objects)
        start_costs = self.start_costs if has_start else unknown
        faults = self.start_page_faults if has_start and self.has_start_model else unknown
        starts = [
            None if cost is None else cost.summary._replace(page_faults=count)
            for cost, count in zip(start_costs, faults, strict=True)
        ]
        is_unbound, costs = self.bindings is NO_BINDINGS, []
        for number, linked in enumerate(self.objects):
            prediction, holder = self.predictions[number], self.retained.holder(number)
            answers, filtees = self.answerers(number), self.filtees[number]
            needs_of = [
                Need(
                    self.objects[used].path,
                    None if used in filtees or is_unbound else len(answers.get(used, ())),
                )
                for used in self.needed[number]
            ]
            costs.append(
                ObjectCost(
                    linked.path,
                    self.name(number),
                    self.cost_bytes((number,)),
                    self.retained_bytes[number],
                    None if holder is None else self.objects[holder].path,
                    prediction.tls_bytes if prediction else 0,
                    tuple(needs_of),
                    build_id(linked.library.image),
                    starts[number],
                )
            )
        return tuple(costs)

    @property
    def evidence(self) -> Evidence:
        """How the costs are known."""
        return Evidence.PREDICTED if self.private_bytes is None else Evidence.MEASURED

    @cached_property
    def dlopen_callers(self) -> tuple[int, ...]:
        """The objects that import dlopen or a wrapper of it: they may load files that no table names."""
        return self._importers(_DLOPEN_NAMES)

    @cached_property
    def dlsym_callers(self) -> tuple[int, ...]:
        """The objects that import dlsym or a wrapper of it: they may look up symbols that no table names."""
        return self._importers(_DLSYM_NAMES)

    @cached_property
    def listers(self) -> tuple[int, ...]:
        """The objects that import what walks the list of loaded objects, without those that only unwind stacks."""
        return tuple([number for number in self._importers(_LISTS) if not _UNWINDERS.match(self.name(number))])

    @cached_property
    def module_callers(self) -> tuple[int, ...]:
        """The objects that call functions for which the C library opens modules by itself: of NSS, or of gconv.

        musl has no such modules.
        """
        if self.link_map.libc is not Libc.GLIBC:
            return ()
        # The runtime of C++ converts nothing by itself: only in the locale that another object names.
        names_of = {number: symbol.requested.keys() for number, symbol in enumerate(self.bindings.symbols)}
        others = {number: names for number, names in names_of.items() if not self.is_cxx_runtime(number)}
        has_locale = any(not names.isdisjoint(_LOCALE_CALLS) for names in others.values())
        has_locale = has_locale or any(map(_CXX_LOCALE_CALLS.fullmatch, chain.from_iterable(others.values())))
        callers, text = (names_of, f"{_MODULE_CALLS} {_CONVERTING_CALLS}") if has_locale else (others, _MODULE_CALLS)
        calls = frozenset(text.split())
        return tuple([at for at, names in callers.items() if not names.isdisjoint(calls) or _has_database_call(names)])

    def _importers(self, names: frozenset[str]) -> tuple[int, ...]:
        return tuple([number for number, symbol in enumerate(self.bindings.symbols) if symbol.requested.keys() & names])

    @cached_property
    def version_checks(self) -> dict[str, tuple[int, ...]]:
        """For each soname the objects that check at start whether the object of that name has their versions."""
        users_by_file: dict[str, dict[int, None]] = {}
        for user, symbols in enumerate(self.bindings.symbols):
            for version in symbols.versions.needed:
                users_by_file.setdefault(version.file, {})[user] = None
        return {file: tuple(users) for file, users in users_by_file.items()}

    def cost_bytes(self, objects: frozenset[int] | Sequence[int]) -> int:
        """Return the private memory of some objects: measured, or the startup minimum where nothing was measured."""
        if self.private_bytes is not None:
            return sum([self.private_bytes[number] for number in objects])
        predicted = [self.predictions[number] for number in objects]
        return sum([p.startup_min_bytes for p in predicted if p])

    def thread_bytes(self, objects: Iterable[int]) -> int:
        """Return the whole pages of thread-local variables of some objects that each thread writes at its start.

        musl, and glibc for objects that were opened later, write what a thread touches.
        """
        predicted = [self.predictions[number] for number in objects if self.has_eager_thread_locals(number)]
        return sum([p.tls_bytes for p in predicted if p]) // self.page_bytes * self.page_bytes

    def has_eager_thread_locals(self, number: int) -> bool:
        """Return whether each thread writes all thread-local variables of an object at its start."""
        return self.link_map.libc is Libc.GLIBC and self.objects[number].found_by is not FoundBy.OPENED

    @cached_property
    def thread_local_bytes(self) -> int:
        """The whole pages of thread-local variables of all objects, in all threads."""
        return self.thread_bytes(range(len(self.objects))) * self.thread_count

    def saving_bytes(self, objects: frozenset[int]) -> int:
        """Return the private memory that a process saves without some objects: their own, and that of its threads."""
        return self.cost_bytes(objects) + self.thread_bytes(objects) * self.thread_count

    def spared_bytes(self, findings: Iterable[Finding]) -> tuple[int, int]:
        """Return what a process saves without the libraries that nobody uses, each once: surely, and perhaps too."""
        numbers = {linked.path: number for number, linked in enumerate(self.objects)}
        of_library = [f for f in findings if f.saving_bytes and f.rule in {"unused-library", "stub-library"}]
        sure = {numbers[path] for f in of_library if f.confidence.is_counted for path in f.leaves}
        doubtful = {numbers[path] for f in of_library if f.confidence is Confidence.LOW for path in f.leaves}
        sure_bytes = self.saving_bytes(frozenset(sure))
        return sure_bytes, self.saving_bytes(frozenset(sure | doubtful)) - sure_bytes

    def remaining(self, dropped: Callable[[int, int], bool]) -> frozenset[int]:
        """Return the objects that remain without the needs for which `dropped(user, provider)` is true."""
        return reached(self.needed, self.roots, lambda user, provider: not dropped(user, provider))

    def without(self, dropped: Collection[tuple[int, int]]) -> LibraryRemoval:
        """Compute the process without some needs, each an object and the object that it needs."""
        objects = self.link_map.objects
        link_map = self.relink(
            {
                (objects[user].library, dependency.name)
                for user, provider in dropped
                for dependency in objects[user].dependencies
                if dependency.place == provider
            }
        )
        opened = [number for number, linked in enumerate(objects) if linked.found_by is FoundBy.OPENED]
        if opened:
            # What an opened object needs came with it, where it was not there.
            kept = reached(self.needed, opened, lambda user, provider: (user, provider) not in dropped)
            libraries = {linked.library for linked in link_map.objects}
            later = [objects[number] for number in sorted(kept) if objects[number].library not in libraries]
            link_map = with_opened(link_map, [(linked.path, linked.library) for linked in later])
        return compare(self.link_map, self.bindings, link_map, self.bind(link_map))

    def answerers(self, user: int) -> dict[int, frozenset[int]]:
        """Return the objects that define what an object refers to, each with the references that it defines."""
        return self.bindings.providers[user] if user < len(self.bindings.providers) else {}

    def constructor_count(self, number: int) -> int:
        """Count the constructors of an object that are its own; 0 where its file cannot be read."""
        return self._count(number, own_constructors)

    def destructor_count(self, number: int) -> int:
        """Count the destructors of an object that are its own; 0 where its file cannot be read."""
        return self._count(number, own_destructors)

    def _count(self, number: int, count: Callable[[Image], int]) -> int:
        try:
            return count(self.objects[number].library.image)
        except FootprintError:
            return 0

    @cached_property
    def mapping_readers(self) -> tuple[tuple[int, str], ...]:
        """The objects that hold the name of a file with the mappings of a process, each with that name."""
        readers: set[tuple[int, str]] = set()
        for number in range(len(self.objects)):
            names = {name.decode() for data in self._constants(number) for name in _FILE_OF_MAPPINGS.findall(data)}
            # `maps` alone says nothing, and is the last part of a path where `/proc` is another one.
            whole = {name for name in names if name.startswith("/")}
            if names != whole and any(_PROC.search(data) for data in self._constants(number)):
                whole = names
            readers |= {(number, name) for name in whole}
        return tuple(sorted(readers))

    def constants_among(self, number: int, names: frozenset[bytes]) -> set[bytes]:
        """Return which names are whole strings in the constants of an object; none where it cannot be read."""
        constants: set[bytes] = set()
        for data in self._constants(number):
            constants.update(names.intersection(data.split(b"\0")))
        return constants

    def _constants(self, number: int) -> Iterator[bytes]:
        """Yield the constants of an object in pieces that overlap.

        Other read-only sections are left out: they hold the names of the symbols that the object asks for.
        """
        try:
            image = self.objects[number].library.image
            constants = [
                image.section_bytes(section)
                for section in image.sections
                if section.name.startswith(".rodata") and section.is_in_memory
            ]
            if not image.sections:
                segments = [load for load in image.loads if not load.flags & (PF_W | PF_X)]
                constants = [image.bytes_at(segment.offset, segment.file_bytes, "a segment") for segment in segments]
        except FootprintError:
            return
        for raw in constants:
            for at in range(0, len(raw), _CHUNK_BYTES):
                yield bytes(raw[at : at + _CHUNK_BYTES + _LONGEST_NAME])

    def is_stub(self, number: int) -> bool:
        """Return whether an object is an empty library of glibc: all that it defines are the names of old versions.

        Since glibc 2.34, libc.so.6 has the functions of libdl, libpthread, librt, libutil and libanl. Source: the NEWS
        file of glibc 2.34.
        """
        names = self.bindings.symbols[number].defined if number < len(self.bindings.symbols) else {}
        # Nearly all libraries end the first search at their first name.
        is_empty = all(name.endswith(_STUB_SUFFIX) or name.startswith("GLIBC_") for name in names)
        return is_empty and any(name.endswith(_STUB_SUFFIX) for name in names)

    def used_count(self, provider: int) -> int:
        """Count the symbols of an object that others use, each once."""
        return len(self._used_names.get(provider, ()))

    @cached_property
    def _used_names(self) -> dict[int, set[str]]:
        """By object, the names of it that others use."""
        names_by_object: dict[int, set[str]] = {}
        for user, answers in enumerate(self.bindings.providers):
            names = self.bindings.symbols[user].reference_names
            for provider, places in answers.items():
                if user != provider:
                    names_by_object.setdefault(provider, set()).update([names[place] for place in places])
        return names_by_object

    def is_cxx_runtime(self, number: int) -> bool:
        """Return whether an object is the library that every C++ program is linked with."""
        return _CXX_RUNTIME.match(self.name(number)) is not None

    def name(self, number: int) -> str:
        """Return the soname of an object, or the last part of its path where it has none."""
        linked = self.objects[number]
        return linked.library.linkage.soname or linked.path.rsplit("/", 1)[-1]


def _has_database_call(names: Iterable[str]) -> bool:
    # Few names begin so: the others are not searched.
    return any(_DATABASE_CALLS.fullmatch(name) for name in names if name[:3] in _DATABASE_VERBS)


def build_graph(
    link_map: LinkMap,
    relink: Callable[[Needs], LinkMap],
    bind: Callable[[LinkMap], Bindings],
    page_bytes: int,
    predict: Callable[[Linked, bool], ObjectPrediction],
    link_name: Callable[[Linked], str | None],
    private_bytes: Callable[[Linked], int] | None = None,
    thread_count: int = 1,
) -> DependencyGraph:
    """Build the graph of a process.

    `relink` computes the link map at start without some needs; `predict` takes an object and whether it is the program;
    `link_name` finds its development link; `private_bytes` counts the private memory of an object in the live process.
    """
    bindings = bind(link_map)
    objects = link_map.objects
    interpreter = link_map.interpreter_object
    if interpreter is not None and link_map.interpreter is None:
        # What it needs has no number here.
        objects = (*objects, replace(interpreter, dependencies=()))
    if private_bytes is None:
        objects = _with_auditors(link_map, objects)
    failures = start_failures(link_map, bindings) if private_bytes is None else ()
    notes = [*link_map.notes, *bindings.notes, *failures]
    predictions: list[ObjectPrediction | None] = []
    for number, linked in enumerate(objects):
        try:
            prediction = predict(linked, number == 0)
        except FootprintError as error:
            notes.append(Note("file-unreadable", linked.path, f"{error.detail}: its cost is not known"))
            predictions.append(None)
            continue
        predictions.append(prediction)
        notes.extend(prediction.notes)
        notes.extend(_optional_notes(linked))
    held_bytes = tuple([private_bytes(linked) for linked in objects]) if private_bytes else None
    return DependencyGraph(
        link_map,
        objects,
        bindings,
        tuple(predictions),
        held_bytes,
        page_bytes,
        tuple(dict.fromkeys(notes)),
        failures,
        relink,
        bind,
        link_name,
        thread_count,
    )


def _with_auditors(link_map: LinkMap, objects: tuple[Linked, ...]) -> tuple[Linked, ...]:
    """Append the copies that the auditors of a program bring in, with their dependencies numbered among all objects."""
    loader = len(link_map.objects) if link_map.interpreter is None else link_map.interpreter
    for auditor in link_map.auditors:
        places = [place for place in range(len(auditor.objects)) if place != auditor.interpreter]
        numbers: dict[int | None, int] = {place: len(objects) + at for at, place in enumerate(places)}
        if auditor.interpreter is not None:
            numbers[auditor.interpreter] = loader
        for place in places:
            linked = auditor.objects[place]
            dependencies = [need._replace(place=numbers.get(need.place)) for need in linked.dependencies]
            user = numbers.get(linked.loader) if place else None
            copy = replace(linked, found_by=FoundBy.AUDIT, loader=user, dependencies=tuple(dependencies))
            objects = (*objects, copy)
    return objects


def _optional_notes(linked: Linked) -> list[Note]:
    """Return notes for the libraries that an object says it may open while it runs: they are in no figure."""
    try:
        libraries = optional_libraries(linked.library.image)
    except FootprintError as error:
        return [Note("file-unreadable", linked.path, f"{error.detail}: the libraries that it may open are not known")]
    return [
        Note(
            "may-open",
            linked.path,
            f"it may open {' or '.join(library.sonames)} at run time ({library.priority.value}"
            f"{f', for {library.feature}' if library.feature else ''}), which is in no figure",
        )
        for library in libraries
    ]
