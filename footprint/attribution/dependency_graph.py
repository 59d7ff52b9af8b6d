"""The dependency graph of a process: its objects, what each needs and binds to, and what each costs."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from footprint.attribution.object_prediction import ObjectPrediction
from footprint.elf.abi import PF_W, PF_X
from footprint.elf.constructors import own_constructors, own_destructors
from footprint.elf.image import Image
from footprint.elf.notes import build_id, optional_libraries
from footprint.errors import FootprintError, Note
from footprint.loader import FoundBy, Libc, Linked, LinkMap, Needs
from footprint.loader.bindings import NO_BINDINGS, Bindings
from footprint.loader.dependencies import Retained, filtees, needs, reached, retained, roots
from footprint.loader.link_map import with_opened
from footprint.loader.start_failures import start_failures
from footprint.loader.without import Without, compare
from footprint.model.evidence import Evidence
from footprint.model.object_cost import Need, ObjectCost

__all__ = ("DependencyGraph", "build_graph")

_DLOPEN_NAMES: Final = frozenset({"dlopen", "dlmopen", "g_module_open", "lt_dlopen", "lt_dlopenext"})
# Rust and Go end no text with a null byte. A program can put the path together: `"/proc/" + pid + "/maps"`.
_FILE_OF_MAPPINGS: Final = re.compile(
    rb"/(?:proc/[!-.0-~]{1,32}/(?:s?maps|numa_maps|map_files)|(?<=\0/)(?:s?maps|numa_maps|map_files)(?=\0))"
)
_CHUNK_BYTES: Final = 1 << 20
_LONGEST_NAME: Final = 4096
_STUB_SUFFIX: Final = "_version_placeholder"
_DLSYM_NAMES: Final = frozenset({"dlsym", "dlvsym", "g_module_symbol", "lt_dlsym"})
_LISTS: Final = frozenset({"dl_iterate_phdr", "dladdr1", "dlinfo", "_r_debug"})
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

    @cached_property
    def needed(self) -> tuple[tuple[int, ...], ...]:
        """For each object the objects that it brings in."""
        extra = self.objects[len(self.link_map.objects) :]
        own = [tuple([one.place for one in linked.dependencies if one.place is not None]) for linked in extra]
        return (*needs(self.link_map), *own)

    @cached_property
    def filtees(self) -> tuple[frozenset[int], ...]:
        """For each object its filtees (DT_FILTER, DT_AUXILIARY) that it does not also need by name."""
        return (*filtees(self.link_map), *(frozenset(),) * (len(self.objects) - len(self.link_map.objects)))

    @cached_property
    def needing(self) -> dict[int, list[int]]:
        """For each object the objects that need it."""
        found: dict[int, list[int]] = {}
        for user, providers in enumerate(self.needed):
            for provider in providers:
                found.setdefault(provider, []).append(user)
        return found

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

    def object_costs(self) -> tuple[ObjectCost, ...]:
        """Return the objects with their costs, as an audit keeps them."""
        is_unbound, found = self.bindings is NO_BINDINGS, []
        for number, linked in enumerate(self.objects):
            prediction, holder = self.predictions[number], self.retained.holder(number)
            answers, filtees = self.answerers(number), self.filtees[number]
            needs_of = [
                Need(self.objects[one].path, None if one in filtees or is_unbound else len(answers.get(one, ())))
                for one in self.needed[number]
            ]
            found.append(
                ObjectCost(
                    linked.path,
                    self.name(number),
                    self.cost_bytes((number,)),
                    self.retained_bytes[number],
                    None if holder is None else self.objects[holder].path,
                    prediction.tls_bytes if prediction else 0,
                    tuple(needs_of),
                    build_id(linked.library.image),
                )
            )
        return tuple(found)

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

    def _importers(self, names: frozenset[str]) -> tuple[int, ...]:
        return tuple([number for number, one in enumerate(self.bindings.symbols) if one.asked.keys() & names])

    @cached_property
    def version_checks(self) -> dict[str, tuple[int, ...]]:
        """For each soname the objects that check at start whether the object of that name has their versions."""
        found: dict[str, dict[int, None]] = {}
        for user, symbols in enumerate(self.bindings.symbols):
            for version in symbols.versions.needed:
                found.setdefault(version.file, {})[user] = None
        return {file: tuple(users) for file, users in found.items()}

    def cost_bytes(self, objects: frozenset[int] | Sequence[int]) -> int:
        """Return the private memory of some objects: measured, or the startup minimum where nothing was measured."""
        if self.private_bytes is not None:
            return sum([self.private_bytes[number] for number in objects])
        found = [self.predictions[number] for number in objects]
        return sum([one.startup_min_bytes for one in found if one])

    def thread_bytes(self, objects: Iterable[int]) -> int:
        """Return the whole pages of thread-local variables of some objects that each thread writes at its start.

        musl, and glibc for objects that were opened later, write what a thread touches.
        """
        found = [self.predictions[number] for number in objects if self.has_eager_thread_locals(number)]
        return sum([one.tls_bytes for one in found if one]) // self.page_bytes * self.page_bytes

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

    def remaining(self, dropped: Callable[[int, int], bool]) -> frozenset[int]:
        """Return the objects that remain without the needs for which `dropped(user, provider)` is true."""
        return reached(self.needed, self.roots, lambda user, provider: not dropped(user, provider))

    def without(self, dropped: Collection[tuple[int, int]]) -> Without:
        """Compute the process without some needs, each an object and the object that it needs."""
        objects = self.link_map.objects
        link_map = self.relink(
            {
                (objects[user].library, one.name)
                for user, provider in dropped
                for one in objects[user].dependencies
                if one.place == provider
            }
        )
        opened = [number for number, one in enumerate(objects) if one.found_by is FoundBy.OPENED]
        if opened:
            # What an opened object needs came with it, where it was not there.
            kept = reached(self.needed, opened, lambda user, provider: (user, provider) not in dropped)
            known = {one.library for one in link_map.objects}
            later = [objects[number] for number in sorted(kept) if objects[number].library not in known]
            link_map = with_opened(link_map, [(one.path, one.library) for one in later])
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
        found = {
            (number, name.decode())
            for number in range(len(self.objects))
            for data in self._constants(number)
            for name in _FILE_OF_MAPPINGS.findall(data)
        }
        return tuple(sorted(found))

    def constants_among(self, number: int, names: AbstractSet[bytes]) -> set[bytes]:
        """Return which names are whole strings in the constants of an object; none where it cannot be read."""
        found: set[bytes] = set()
        for data in self._constants(number):
            found.update(names & set(data.split(b"\0")))
        return found

    def _constants(self, number: int) -> Iterator[bytes]:
        """Yield the constants of an object in pieces that overlap.

        Other read-only sections are left out: they hold the names of the symbols that the object asks for.
        """
        try:
            image = self.objects[number].library.image
            constants = [
                image.section_bytes(one)
                for one in image.sections
                if one.name.startswith(".rodata") and one.is_in_memory
            ]
            if not image.sections:
                segments = [one for one in image.loads if not one.flags & (PF_W | PF_X)]
                constants = [image.bytes_at(one.offset, one.file_bytes, "a segment") for one in segments]
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
        found = self.bindings.symbols[number].found if number < len(self.bindings.symbols) else {}
        # Nearly all libraries end the first search at their first name.
        is_empty = all(name.endswith(_STUB_SUFFIX) or name.startswith("GLIBC_") for name in found)
        return is_empty and any(name.endswith(_STUB_SUFFIX) for name in found)

    def used_count(self, provider: int) -> int:
        """Count the symbols of an object that others use, each once."""
        return len(self._used_names.get(provider, ()))

    @cached_property
    def _used_names(self) -> dict[int, set[str]]:
        """By object, the names of it that others use."""
        found: dict[int, set[str]] = {}
        for user, answers in enumerate(self.bindings.providers):
            references = self.bindings.symbols[user].references
            for provider, places in answers.items():
                if user != provider:
                    found.setdefault(provider, set()).update([references[place].name for place in places])
        return found

    def name(self, number: int) -> str:
        """Return the soname of an object, or the last part of its path where it has none."""
        linked = self.objects[number]
        return linked.library.linkage.soname or linked.path.rsplit("/", 1)[-1]


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
            one = predict(linked, number == 0)
        except FootprintError as error:
            notes.append(Note("file-unreadable", linked.path, f"{error.detail}: its cost is not known"))
            predictions.append(None)
            continue
        predictions.append(one)
        notes.extend(one.notes)
        notes.extend(_optional_notes(linked))
    held = tuple([private_bytes(linked) for linked in objects]) if private_bytes else None
    return DependencyGraph(
        link_map,
        objects,
        bindings,
        tuple(predictions),
        held,
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
            dependencies = [one._replace(place=numbers.get(one.place)) for one in linked.dependencies]
            user = numbers.get(linked.loader) if place else None
            copy = replace(linked, found_by=FoundBy.AUDIT, loader=user, dependencies=tuple(dependencies))
            objects = (*objects, copy)
    return objects


def _optional_notes(linked: Linked) -> list[Note]:
    """Return notes for the libraries that an object says it may open while it runs: they are in no figure."""
    try:
        found = optional_libraries(linked.library.image)
    except FootprintError as error:
        return [Note("file-unreadable", linked.path, f"{error.detail}: the libraries that it may open are not known")]
    return [
        Note(
            "may-open",
            linked.path,
            f"it may open {' or '.join(one.sonames)} at run time ({one.priority.value}"
            f"{f', for {one.feature}' if one.feature else ''}), which is in no figure",
        )
        for one in found
    ]
