"""The files of a process before its program starts: the program and its libraries, in load order.

Source: elf/dl-deps.c and elf/rtld.c of glibc; ldso/dynlink.c of musl.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from footprint.elf import abi
from footprint.errors import AccessError, InputError, Note
from footprint.loader.map_entry import FoundBy, FoundLibrary, MapEntry, RefusedFile
from footprint.loader.musl import MuslSearch
from footprint.loader.search import GlibcSearch
from footprint.loader.system import Library, Refusal, System
from footprint.loader.target import Environment, Libc, Target, loader_of, target_of
from footprint.members import NamedTuple, dataclass, field, json_members, replace

_UNTOUCHED: Final = Environment()


class Dependency(NamedTuple):
    """A library that an object needs: the name, and its index in the map, or None where it is missing."""

    name: str
    place: int | None


@dataclass(frozen=True)
class Linked:
    """One object of a process.

    Attributes:
        path: Its path in the words of the loader, seen from the root directory.
        library: The file.
        found_by: The rule by which it was found.
        loader: The object that first needed it; None for the program and for preloaded libraries.
        dependencies: The libraries that it needs, in the order of its dynamic section.
        directory_owner: The object whose RPATH or RUNPATH names its directory; None where another rule found it.
    """

    path: str
    library: Library
    found_by: FoundBy
    loader: int | None
    dependencies: tuple[Dependency, ...]
    directory_owner: int | None = None


@json_members("name requester cause")
@dataclass(frozen=True)
class MissingLibrary:
    """A library that is needed and not there.

    Attributes:
        name: The name that it is needed by.
        requester: The number of the object that needs it.
        cause: Why it was not found.
        looked_in: The directories that were searched, without the cache; none where the search ended at a file that
            cannot be loaded.
    """

    name: str
    requester: int
    cause: str
    looked_in: tuple[str, ...]


class LibrarySearch(NamedTuple):
    """A library that the loader searched for, because no object had its name yet.

    Attributes:
        name: The name.
        requester: The number of the object that needs it.
        lists: The lists of folders that are searched before the cache, each with its rule, and the number of the
            object that has the list; None for one of the caller.
        path: The file that was found; None where there is none.
        found_by: The rule that found it; None where there is none.
    """

    name: str
    requester: int
    lists: tuple[tuple[FoundBy, tuple[str, ...], int | None], ...]
    path: str | None
    found_by: FoundBy | None


@dataclass(frozen=True)
class LinkMap:
    """The files of a process.

    Attributes:
        objects: In load order, which is the global symbol scope; the program comes first.
        missing: The missing libraries.
        interpreter: The index of the loader among the objects; None where no object needs it.
        interpreter_object: The loader, which is in the process even where no object needs it; None for static programs.
        libc: The C library whose rules apply; `OTHER` for a static program.
        target: The facts that the loader knows in advance; None for static programs.
        notes: Doubts about the result.
        auditors: The libraries that watch the loader (DT_AUDIT, DT_DEPAUDIT), each with its own copies of what it
            needs; only the loader is shared.
        searches: The libraries that the loader searched for, in their order.
        folders: For each folder of their lists, itself behind its subfolders for the processor, as far as they exist.
        binds_now: Whether the caller has all calls bound at start (LD_BIND_NOW).
    """

    objects: tuple[Linked, ...]
    missing: tuple[MissingLibrary, ...]
    interpreter: int | None
    interpreter_object: Linked | None
    libc: Libc
    target: Target | None
    notes: tuple[Note, ...]
    auditors: "tuple[LinkMap, ...]" = ()
    searches: tuple[LibrarySearch, ...] = ()
    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    binds_now: bool = False


Search = GlibcSearch | MuslSearch
Searches = dict[tuple[object, ...], Search]
Needs = Collection[tuple[Library, str]]
"""Files with the names that they need."""


def link(
    system: System,
    path: str,
    environment: Environment = _UNTOUCHED,
    searches: Searches | None = None,
    dropped: Needs = frozenset(),
) -> LinkMap:
    """Find the objects of a program without running anything; a library alone is treated as a program.

    Args:
        system: The file system.
        path: The program, as seen from the root directory of the system.
        environment: The choices of its caller.
        searches: The searches shared by the programs of this system; `link` adds to it. Pass the same one to link
            several programs.
        dropped: Needs that are left out, as if the files had been linked without them.

    Raises:
        AccessError: Where the program cannot be opened.
        InputError: Where it is not a linked ELF file.
    """
    program = system.file(path if path.startswith("/") else f"{environment.cwd.rstrip('/')}/{path}")
    if program is None:
        raise AccessError(path, "there is no such file, or it cannot be read")
    if isinstance(program, Refusal):
        raise InputError(path, program.cause)
    if program.type not in {abi.ET_EXEC, abi.ET_DYN}:
        raise InputError(path, "it is neither a program nor a shared library")
    linkage = program.linkage
    root = MapEntry(path, program, FoundBy.PROGRAM, None)
    if linkage.interpreter is None and (
        program.type == abi.ET_EXEC or not linkage.is_dynamic or linkage.flags_1 & abi.DF_1_PIE
    ):
        alone = Linked(path, program, FoundBy.PROGRAM, None, ())
        return LinkMap((alone,), (), None, None, Libc.OTHER, None, ())
    if environment.is_secure is None:
        environment = replace(environment, is_secure=program.has_other_identity(environment.caller))
    search = _search_of(system, program, environment, {} if searches is None else searches)
    link_map = replace(_Closure(search, root, dropped).link_map(), binds_now=environment.binds_now)
    if not environment.library_path or not program.has_other_identity(None):
        return link_map
    detail = "it is set-user-ID or set-group-ID: "
    if environment.is_secure:
        detail += "the loader ignores LD_LIBRARY_PATH"
    else:
        detail += "LD_LIBRARY_PATH counts, since its owner runs it; for others the loader ignores it"
    return replace(link_map, notes=(*link_map.notes, Note("set-user-id", path, detail)))


def _search_of(system: System, program: Library, environment: Environment, searches: Searches) -> Search:
    loader = loader_of(system, program)
    key = program.kind, loader, environment
    search = searches.get(key)
    if search is None:
        target = target_of(system, program.kind, loader, environment)
        kind = MuslSearch if target.libc is Libc.MUSL else GlibcSearch
        search = searches[key] = kind(system, target, program, environment)
    return search


def with_opened(link_map: LinkMap, opened: Iterable[tuple[str, Library]]) -> LinkMap:
    """Append the objects that a process opened with dlopen to the link map of its start.

    Their dependencies are found by name among all objects, because the process has loaded them. Its scopes (RTLD_LOCAL,
    RTLD_DEEPBIND) leave no trace in memory. The opened objects come in load order as far as it is known.
    """
    before = link_map.objects
    objects = [*before, *(Linked(path, library, FoundBy.OPENED, None, ()) for path, library in opened)]
    places = places_by_name(objects)
    for place in range(len(before), len(objects)):
        needed = objects[place].library.linkage.needed
        dependencies = tuple(
            [Dependency(name, places.get(name, places.get(name.rsplit("/", 1)[-1]))) for name in needed]
        )
        objects[place] = replace(objects[place], dependencies=dependencies)
    # The dependencies of an opened object were loaded with it.
    for place in range(len(before), len(objects)):
        for dependency in objects[place].dependencies:
            at = dependency.place
            if at is not None and at >= len(before) and at != place and objects[at].loader is None and at > place:
                objects[at] = replace(objects[at], loader=place)
    return replace(link_map, objects=tuple(objects))


def places_by_name(objects: Sequence[Linked]) -> dict[str, int]:
    """Return the first object with each name: its SONAME, its path, and its file name."""
    places: dict[str, int] = {}
    for place, linked in enumerate(objects):
        for name in (linked.library.linkage.soname, linked.path, linked.path.rsplit("/", 1)[-1]):
            if name:
                places.setdefault(name, place)
    return places


class _Closure:
    """A link map under construction."""

    def __init__(self, search: Search, program: MapEntry, dropped: Needs) -> None:
        self._search = search
        self._program = program
        self._dropped = dropped
        self._order: list[MapEntry] = []
        self._names: dict[str, MapEntry] = {}
        self._by_library: dict[Library, MapEntry] = {}
        self._missing: list[tuple[str, MapEntry, RefusedFile | None]] = []
        self._looked_in: dict[MapEntry, tuple[str, ...]] = {}
        self._searches: list[tuple[str, MapEntry, FoundLibrary | RefusedFile | None]] = []
        self._notes: list[Note] = []

    def link_map(self, *, is_auditor: bool = False) -> LinkMap:
        self._add(self._program)
        soname = self._program.library.linkage.soname
        if soname is not None and self._search.has_filters:
            self._names[soname] = self._program
        interpreter = self._interpreter()
        if not is_auditor:
            self._preload()
        self._grow()
        for number, mapped in enumerate(self._order):
            mapped.number = number
        objects = tuple([_linked(mapped) for mapped in self._order])
        target = self._search.target
        searches = tuple([self._searched(*search) for search in self._searches])
        auditors = () if is_auditor or interpreter is None else tuple(self._auditors(interpreter))
        rules = {mapped.found_by for mapped in self._order}
        link_map = LinkMap(
            objects=objects,
            missing=tuple([self._explained(*need) for need in self._missing]),
            interpreter=interpreter.number if interpreter is not None and interpreter.is_in_scope else None,
            interpreter_object=_linked(interpreter) if interpreter is not None else None,
            libc=target.libc,
            target=target,
            notes=(*self._notes, *self._search.notes(rules, has_missing=bool(self._missing))),
            auditors=auditors,
            searches=searches,
            folders=self._search.folders,
        )
        # Break the reference cycles: they would keep files open until the next garbage collection.
        for mapped in {self._program, *self._by_library.values()}:
            mapped.unlink()
        return link_map

    def _interpreter(self) -> MapEntry | None:
        """Add the loader: it is loaded before all others, and enters the scope when an object needs it."""
        target = self._search.target
        if target.library is self._program.library:
            return self._program
        if target.library is None or target.path is None:
            wanted = self._program.library.linkage.interpreter
            if wanted is not None:
                cause = "there is no such loader, and without it the program does not start"
                self._missing.append((wanted, self._program, RefusedFile(wanted, cause)))
            return None
        interpreter = MapEntry(target.path, target.library, FoundBy.INTERPRETER, None)
        self._by_library[target.library] = interpreter
        for name in self._search.names_of_loader():
            self._names.setdefault(name, interpreter)
        return interpreter

    def _preload(self) -> None:
        for name, library in self._search.preloads(self._program):
            if name not in self._names:
                self._searches.append((name, self._program, library))
            if isinstance(library, FoundLibrary):
                mapped = self._mapped(library._replace(found_by=FoundBy.PRELOAD), name, self._program)
                if not mapped.is_in_scope:
                    self._add(mapped)
            else:
                cause = "it is not found" if library is None else library.cause
                self._notes.append(Note("not-preloaded", name, f"{cause}; the loader continues without it"))

    def _auditors(self, interpreter: MapEntry) -> Iterator[LinkMap]:
        """Find the auditors of the program; the loader searches for them as for its own, and goes on without one."""
        requester = MapEntry(interpreter.path, interpreter.library, FoundBy.INTERPRETER, self._program)
        names = [name for listed in self._program.library.linkage.auditors for name in listed.split(":") if name]
        for name in names if self._search.has_filters else ():
            library = self._search.find(self._search.name_of(name, requester) or name, requester)
            if isinstance(library, FoundLibrary):
                auditor = MapEntry(library.path, library.library, FoundBy.AUDIT, self._program)
                yield _Closure(self._search, auditor, frozenset()).link_map(is_auditor=True)
            else:
                cause = "it is not found" if library is None else library.cause
                self._notes.append(Note("not-preloaded", name, f"{cause}; the loader continues without it"))
        requester.unlink()

    def _grow(self) -> None:
        order = self._order
        at = 0
        while at < len(order):
            current = order[at]
            if current.is_done:
                at += 1
                continue
            current.is_done = True
            linkage = current.library.linkage
            for needed in linkage.needed:
                if (current.library, needed) in self._dropped:
                    continue
                mapped = self._names.get(needed) or self._load(needed, current)
                if mapped is not None and not mapped.is_in_scope:
                    self._add(mapped, current)
                current.dependencies.append((needed, mapped))
            if linkage.filtees and self._search.has_filters:
                self._add_filtees(current, at)

    def _add_filtees(self, current: MapEntry, at: int) -> None:
        """Insert the filtees of an object before it; one that is already further behind moves forward."""
        for needed, must_exist in current.library.linkage.filtees:
            mapped = self._names.get(needed) or self._load(needed, current, must_exist=must_exist)
            if mapped is None:
                continue
            if mapped.is_in_scope:
                if mapped not in self._order[at + 1 :]:
                    continue
                self._order.remove(mapped)
            if current is self._program:
                # All code that reads a map expects the program first.
                detail = f"{mapped.path} is a filtee and provides its symbols, but is listed behind it"
                self._notes.append(Note("program-substituted", current.path, detail))
                at = max(at, 1)
            self._add(mapped, current, at)
            at += 1

    def _load(self, needed: str, requester: MapEntry, *, must_exist: bool = True) -> MapEntry | None:
        name = self._search.name_of(needed, requester)
        if name is not None and name in self._names:
            return self._names[name]
        library = None if name is None else self._search.find(name, requester)
        if name is not None:
            self._searches.append((name, requester, library))
        if name is not None and isinstance(library, FoundLibrary):
            return self._mapped(library, name, requester)
        if must_exist:
            self._missing.append((needed, requester, library if isinstance(library, RefusedFile) else None))
        return None

    def _mapped(self, library: FoundLibrary, name: str, requester: MapEntry) -> MapEntry:
        """Return the entry of a file, which may already exist under another name."""
        mapped = self._by_library.get(library.library)
        is_new = mapped is None
        if mapped is None:
            mapped = self._by_library[library.library] = MapEntry(
                library.path, library.library, library.found_by, requester, library.directory_owner
            )
        for other_name in self._search.names_of(mapped, name, is_new=is_new):
            self._names.setdefault(other_name, mapped)
        return mapped

    def _add(self, mapped: MapEntry, loader: MapEntry | None = None, at: int | None = None) -> None:
        mapped.is_in_scope = True
        self._by_library.setdefault(mapped.library, mapped)
        if mapped.loader is None:
            mapped.loader = loader
        self._order.insert(len(self._order) if at is None else at, mapped)

    def _searched(self, name: str, requester: MapEntry, library: FoundLibrary | RefusedFile | None) -> LibrarySearch:
        places = () if "/" in name else self._search.places(requester)
        lists = tuple([(rule, folders, None if owner is None else owner.number) for rule, folders, owner in places])
        found_by = library.found_by if isinstance(library, FoundLibrary) else None
        return LibrarySearch(name, requester.number, lists, library and library.path, found_by)

    def _explained(self, name: str, requester: MapEntry, refused: RefusedFile | None) -> MissingLibrary:
        if refused is not None:
            return MissingLibrary(name, requester.number, f"{refused.path}: {refused.cause}", looked_in=())
        is_elsewhere = self._search.is_there_for_others(name, requester)
        cause = "it exists, but for another class or machine" if is_elsewhere else "it is not found"
        if not is_elsewhere and (place := self._search.not_searched(name, requester)):
            cause = f"{cause}: {place}"
        looked_in = self._looked_in.get(requester)
        if looked_in is None:
            looked_in = self._looked_in[requester] = self._search.looked_in(requester)
        return MissingLibrary(name, requester.number, cause, looked_in)


def _linked(mapped: MapEntry) -> Linked:
    loader = mapped.loader
    return Linked(
        mapped.path,
        mapped.library,
        mapped.found_by,
        None if loader is None or mapped.found_by is FoundBy.PRELOAD else loader.number,
        tuple([Dependency(name, None if entry is None else entry.number) for name, entry in mapped.dependencies]),
        None if mapped.directory_owner is None else mapped.directory_owner.number,
    )
