"""The library search of glibc: each rule, in order, and the cache of ldconfig, /etc/ld.so.cache.

The cache has three layouts: new, old, and both in one file.

Source: elf/dl-load.c of glibc and ld.so(8); where they differ, the behaviour of `ld.so --list` counts.
sysdeps/generic/dl-cache.h and elf/cache.c of glibc 2.36 describe the layouts.
"""

import stat
from collections.abc import Collection, Iterator
from functools import cached_property
from struct import Struct
from typing import Final

from footprint.elf import abi
from footprint.elf.image import StringTable
from footprint.errors import InputError, Note
from footprint.loader.configuration import Configuration, Tokens, directories, expanded, parent, plain
from footprint.loader.map_entry import FoundBy, FoundLibrary, MapEntry, RefusedFile
from footprint.loader.system import Library, Refusal, System
from footprint.loader.target import Environment, Target
from footprint.members import NamedTuple, dataclass

_OLD_MAGIC: Final = b"ld.so-1.7.0"
_NEW_MAGIC: Final = b"glibc-ld.so.cache1.1"
_EXTENSION_MAGIC: Final = 0xEAA42174
_ORDER_FLAGS: Final = {"<": 2, ">": 3}
_HWCAPS_TAG: Final = 1
_NAMED_LEVEL: Final = 1 << 62
_ANY_ABI: Final = 1
_CACHE: Final = "/etc/ld.so.cache"
_PRELOAD: Final = "/etc/ld.so.preload"
_SHARED_RULES: Final = {FoundBy.CACHE, FoundBy.CONFIGURATION, FoundBy.DEFAULT}
_ELFOSABI_GNU: Final = 3


class _Entry(NamedTuple):
    path: str
    level: str | None
    hwcap: int


@dataclass(frozen=True)
class Cache:
    """The entries of the cache for programs of one ABI.

    Attributes:
        entries: The entries of each requested name, in the order of the file.
    """

    entries: dict[str, list[_Entry]]

    def find(self, name: str, levels: tuple[str, ...], legacy_bits: int = 0) -> str | None:
        """Return the path for a name, or None.

        The levels of the processor come best first; its legacy bits are those of glibc 2.36 and older.
        """
        entries = self.entries.get(name, ())
        named = [(levels.index(entry.level), entry.path) for entry in entries if entry.level in levels]
        if named:
            # The level counts before the directory, so also before a plain file in an earlier directory.
            return min(named, key=lambda entry: entry[0])[1]
        return next((entry.path for entry in entries if entry.level is None and not entry.hwcap & ~legacy_bits), None)


class _Layout(NamedTuple):
    entry_count: Struct
    old_entry: Struct
    new_header: Struct
    new_entry: Struct
    extensions: Struct
    extension: Struct


_LAYOUTS: Final = {
    order: _Layout(
        Struct(order + "12xI"),
        Struct(order + "III"),
        Struct(order + "20xIIB3xI12x"),
        Struct(order + "IIIIQ"),
        Struct(order + "II"),
        Struct(order + "IIII"),
    )
    for order in "<>"
}


def read_cache(data: bytes, file: str, abis: Collection[int], *, is_little: bool) -> Cache:
    """Read the entries for one ABI.

    Args:
        data: The whole file.
        file: Its name, for messages.
        abis: The flags of the entries for this ABI.
        is_little: Whether the programs are little-endian.

    Raises:
        InputError: Where it is not a cache, has the other byte order, or is damaged.
    """
    order = "<" if is_little else ">"
    layout = _LAYOUTS[order]
    if data.startswith(_NEW_MAGIC):
        return _read_new(data, 0, file, abis, order)
    if not data.startswith(_OLD_MAGIC) or len(data) < layout.entry_count.size:
        raise InputError(file, "it is not a cache of ldconfig")
    count = layout.entry_count.unpack_from(data)[0]
    entries_end = layout.entry_count.size + count * layout.old_entry.size
    if entries_end > len(data):
        raise InputError(file, f"{count} entries reach beyond its end", 12)
    new_at = -(-entries_end // 8) * 8
    if data.startswith(_NEW_MAGIC, new_at):
        return _read_new(data, new_at, file, abis, order)
    strings = StringTable(data[entries_end:], file, entries_end, "names")
    entries: dict[str, list[_Entry]] = {}
    for flags, key, value in layout.old_entry.iter_unpack(data[layout.entry_count.size : entries_end]):
        if flags == _ANY_ABI or flags in abis:
            entries.setdefault(strings.at(key), []).append(_Entry(strings.at(value), None, 0))
    return Cache(entries)


def _read_new(data: bytes, start: int, file: str, abis: Collection[int], order: str) -> Cache:
    layout = _LAYOUTS[order]
    entries_at = start + layout.new_header.size
    if entries_at > len(data):
        raise InputError(file, "its header is cut", start)
    count, strings_bytes, flags, extensions_at = layout.new_header.unpack_from(data, start)
    if flags and flags & 3 != _ORDER_FLAGS[order]:
        raise InputError(file, "it has the other byte order, or is incomplete", start + 28)
    entries_end = entries_at + count * layout.new_entry.size
    if entries_end + strings_bytes > len(data):
        raise InputError(file, f"{count} entries and {strings_bytes} bytes of names reach beyond its end", start + 20)
    strings = StringTable(data[start:], file, start, "names")
    levels = list(_levels(data, extensions_at, strings, file, layout)) if extensions_at else []
    entries: dict[str, list[_Entry]] = {}
    for entry_flags, key, value, _, hwcap in layout.new_entry.iter_unpack(data[entries_at:entries_end]):
        if entry_flags != _ANY_ABI and entry_flags not in abis:
            continue
        level = None
        if hwcap & _NAMED_LEVEL:
            number = hwcap & 0xFFFFFFFF
            if number >= len(levels):
                continue
            level = levels[number]
        entries.setdefault(strings.at(key), []).append(_Entry(strings.at(value), level, hwcap))
    return Cache(entries)


def _levels(data: bytes, start: int, strings: StringTable, file: str, layout: _Layout) -> Iterator[str]:
    """Read the names of the instruction set levels; the entries refer to them by number."""
    if start + layout.extensions.size > len(data):
        raise InputError(file, "its extensions lie beyond its end", start)
    magic, count = layout.extensions.unpack_from(data, start)
    if magic != _EXTENSION_MAGIC:
        raise InputError(file, "its extensions do not begin as they should", start)
    at = start + layout.extensions.size
    if at + count * layout.extension.size > len(data):
        raise InputError(file, f"{count} extensions reach beyond its end", start)
    for tag, _, offset, size_bytes in layout.extension.iter_unpack(data[at : at + count * layout.extension.size]):
        if offset + size_bytes > len(data):
            raise InputError(file, "an extension reaches beyond its end", offset)
        if tag == _HWCAPS_TAG:
            words = Struct(layout.entry_count.format[0] + "I")
            for (place,) in words.iter_unpack(data[offset : offset + size_bytes // 4 * 4]):
                yield strings.at(place)
            return


class GlibcSearch:
    """The search of one loader, for all its programs: their class and machine are those of `program`.

    Results that do not depend on the program are kept.
    """

    has_filters: Final = True

    def __init__(self, system: System, target: Target, program: Library, environment: Environment) -> None:
        self._system = system
        self.target = target
        self._kind = program.kind
        self._cwd = environment.cwd.rstrip("/")
        self._is_secure = bool(environment.is_secure)
        self._library_path = "" if self._is_secure else environment.library_path
        self._ignored_path = environment.library_path if self._is_secure else ""
        self._preload = environment.preload
        self._uses_cache = environment.uses_cache
        self._at: dict[str, Library | RefusedFile | None] = {}
        self.folders: dict[str, tuple[str, ...]] = {}
        self._shared: dict[tuple[str, bool], FoundLibrary | RefusedFile | None] = {}
        self._environment_directories: dict[str | None, tuple[str, ...]] = {}

    def find(self, name: str, requester: MapEntry) -> FoundLibrary | RefusedFile | None:
        """Find a library that an object needs; return None where there is none."""
        if "/" in name:
            there = self._file(name)
            return FoundLibrary(name, there, FoundBy.PATH) if isinstance(there, Library) else there
        for found_by, places, owner in self.places(requester):
            requester.count_searched(len(places))
            library = self._in(places, name, found_by, owner)
            if library is not None:
                return library
        key = name, bool(requester.library.linkage.flags_1 & abi.DF_1_NODEFLIB)
        if key not in self._shared:
            self._shared[key] = self._search_shared(*key)
        return self._shared[key]

    def looked_in(self, requester: MapEntry) -> tuple[str, ...]:
        """Return the directories that are searched for the libraries of an object, without those of the cache."""
        searched = [directory for _, places, _ in self.places(requester) for directory in places]
        if not requester.library.linkage.flags_1 & abi.DF_1_NODEFLIB:
            searched += self.target.system_directories
        return tuple(dict.fromkeys(searched))

    def not_searched(self, name: str, requester: MapEntry) -> str | None:
        """Return where a missing library is in a search path that does not count for its requester, and why."""
        if "/" in name:
            return None
        has_runpath = requester.library.linkage.runpath is not None
        for owner in requester.path_owners:
            linkage, whose = owner.library.linkage, _file_name(owner.path)
            runpath = None if owner is requester else linkage.runpath
            if runpath is not None and (path := self._path_in(runpath, ":", name, owner)):
                what = f"the RUNPATH of {whose} leads to {path}, but is searched only for what {whose} itself needs"
                return f"{what}; an RPATH is searched for what its libraries need, too"
            rpath = linkage.rpath if has_runpath or linkage.runpath is not None else None
            if rpath is not None and (path := self._path_in(rpath, ":", name, owner)):
                beside = _file_name((requester if has_runpath else owner).path)
                return f"the RPATH of {whose} leads to {path}, but does not count beside the RUNPATH of {beside}"
        if path := self._path_in(self._ignored_path, ":;", name, requester.program):
            return f"LD_LIBRARY_PATH leads to {path}, but is ignored: the program is set-user-ID or set-group-ID"
        return None

    def _path_in(self, text: str, separators: str, name: str, owner: MapEntry) -> str | None:
        places = self._directories(text, separators, owner)
        owner.count_searched(len(places))
        library = self._in(places, name, FoundBy.PATH)
        return library.path if isinstance(library, FoundLibrary) else None

    def is_there_for_others(self, name: str, requester: MapEntry) -> bool:
        """Return whether a missing library exists for another class or machine."""
        paths = [name] if "/" in name else [place + name for place in self.looked_in(requester)]
        return any(isinstance(self._system.file(self._absolute(path)), Library) for path in paths)

    def name_of(self, needed: str, requester: MapEntry) -> str | None:
        """Expand the tokens in a needed name; return None where one of them has no value."""
        return needed if "$" not in needed else self._expanded(needed, requester) or None

    def names_of(self, mapped: MapEntry, requested: str, *, is_new: bool) -> tuple[str, ...]:
        """Return the names by which a found object is known from now on; a name stays with its first object."""
        soname = mapped.library.linkage.soname
        if not is_new:
            return (requested,)
        return (requested, mapped.path) if soname is None else (requested, soname, mapped.path)

    def names_of_loader(self) -> tuple[str, ...]:
        """Return the names by which the loader is known from the start."""
        path, library = self.target.path, self.target.library
        return tuple([name for name in (path, library and library.linkage.soname) if name])

    def preloads(self, program: MapEntry) -> Iterator[tuple[str, FoundLibrary | RefusedFile | None]]:
        """Find the libraries that the caller and the system preload."""
        for name in self._preload.replace(":", " ").split(" "):
            if name and not (self._is_secure and "/" in name):
                yield name, self._find_preload(name, program)
        for name in self._system_preloads:
            yield name, self._find_preload(name, program)

    def notes(self, rules: set[FoundBy], *, has_missing: bool) -> tuple[Note, ...]:
        """Return notes about doubts in a link map whose objects were found by some rules."""
        if not self._uses_cache or not (has_missing or rules & _SHARED_RULES):
            return ()
        if self.cache is None:
            instead = "the system" if self._system.is_host else "ld.so.conf"
            return (Note("loader-cache", _CACHE, f"{self._cache}; the directories of {instead} are searched instead"),)
        changed_ns = self.configuration.changed_ns() if has_missing else None
        if changed_ns is None or changed_ns <= (self._system.changed_ns(_CACHE) or 0):
            return ()
        detail = "a directory of ld.so.conf is newer: libraries added to it are not found until ldconfig has run"
        return (Note("loader-cache-stale", _CACHE, detail),)

    def _find_preload(self, name: str, program: MapEntry) -> FoundLibrary | RefusedFile | None:
        if not self._is_secure or "/" in name:
            return self.find(self.name_of(name, program) or name, program)
        # With set-user-ID, only libraries with the set-user-ID bit can be preloaded.
        for directory in self.target.system_directories:
            there = self._file(directory + name)
            if isinstance(there, Library) and there.mode & stat.S_ISUID:
                return FoundLibrary(directory + name, there, FoundBy.DEFAULT)
        return None

    def places(self, requester: MapEntry) -> Iterator[tuple[FoundBy, tuple[str, ...], MapEntry | None]]:
        """Yield the directories from the requester, its loaders and the caller, with their rules and owners."""
        runpath = requester.library.linkage.runpath
        if runpath is None:
            for owner in requester.path_owners:
                linkage = owner.library.linkage
                if linkage.rpath is not None and linkage.runpath is None:
                    if owner.rpath is None:
                        owner.rpath = self._directories(linkage.rpath, ":", owner)
                    yield FoundBy.RPATH, owner.rpath, owner
        if self._library_path:
            yield FoundBy.ENVIRONMENT, self._from_environment(requester.program), None
        if runpath is not None:
            if requester.runpath is None:
                requester.runpath = self._directories(runpath, ":", requester)
            yield FoundBy.RUNPATH, requester.runpath, requester

    def _from_environment(self, program: MapEntry) -> tuple[str, ...]:
        key = self._origin(program) if "$" in self._library_path else None
        if key not in self._environment_directories:
            self._environment_directories[key] = self._directories(self._library_path, ":;", program)
        return self._environment_directories[key]

    def _directories(self, text: str, separators: str, owner: MapEntry) -> tuple[str, ...]:
        return directories(text, separators, lambda element: self._expanded(element, owner))

    def _expanded(self, text: str, owner: MapEntry) -> str | None:
        if "$" not in text:
            return text
        tokens = Tokens(self._origin(owner), self.target.lib, self.target.platform)
        result = expanded(text, tokens)
        has_origin = expanded(text, tokens._replace(origin=None)) is None
        if result is None or not self._is_secure or not has_origin:
            return result
        # With set-user-ID, $ORIGIN must lead into a trusted directory.
        is_first = expanded(text.partition("/")[0], tokens) == tokens.origin and text.count("ORIGIN") == 1
        is_trusted = f"{plain(result)}/".startswith(self.target.system_directories)
        return result if is_first and (is_trusted or owner.program is not owner) else None

    def _origin(self, owner: MapEntry) -> str:
        path = self._absolute(owner.path)
        # The kernel gives the program its real path; a library only has the path by which it was found.
        is_program = owner.program is owner and owner.library.linkage.interpreter is not None
        return parent(self._system.real_path(path) if is_program else path)

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._cwd}/{path}"

    def _in(
        self, places: tuple[str, ...], name: str, found_by: FoundBy, owner: MapEntry | None = None
    ) -> FoundLibrary | RefusedFile | None:
        for place in places:
            prefixes = self.folders.get(place)
            if prefixes is None:
                prefixes = self.folders[place] = self._prefixes_in(place)
            for prefix in prefixes:
                library = self._file(prefix + name)
                if isinstance(library, Library):
                    return FoundLibrary(prefix + name, library, found_by, owner)
                if library is not None:
                    return library
        return None

    def _prefixes_in(self, place: str) -> tuple[str, ...]:
        """Return a directory with its subdirectories for this processor before it; empty where it does not exist."""
        if not self._is_directory(place):
            return ()
        return (*filter(self._is_directory, [place + tail for tail in self.target.subdirectories]), place)

    def _is_directory(self, place: str) -> bool:
        return self._system.is_directory(self._absolute(place))

    def _search_shared(self, name: str, is_without_system: bool) -> FoundLibrary | RefusedFile | None:  # noqa: FBT001 # half of a key
        system_directories = self.target.system_directories
        for path, found_by in self._shared_paths(name):
            if is_without_system and path.startswith(system_directories):
                continue
            there = self._file(path)
            if isinstance(there, Library):
                return FoundLibrary(path, there, found_by)
            if there is not None:
                return there
        return None if is_without_system else self._in(system_directories, name, FoundBy.DEFAULT)

    def _shared_paths(self, name: str) -> Iterator[tuple[str, FoundBy]]:
        if not self._uses_cache:
            return
        if self.cache is not None:
            path = self.cache.find(name, self.target.levels, self.target.legacy_bits)
            if path is not None:
                yield path, FoundBy.CACHE
        elif not self._system.is_host:
            for path in self.configuration.paths(name, self.target.subdirectories):
                yield path, FoundBy.CONFIGURATION

    @cached_property
    def _system_preloads(self) -> list[str]:
        text = (self._system.text(_PRELOAD) or b"").decode("utf-8", "surrogateescape")
        return [name for line in text.split("\n") for name in line.partition("#")[0].replace(":", " ").split()]

    @cached_property
    def configuration(self) -> Configuration:
        """The libraries that ldconfig would find."""
        return Configuration(self._system, self.target.system_directories)

    @property
    def cache(self) -> Cache | None:
        """The cache of ldconfig; None where it is not usable."""
        return self._cache if isinstance(self._cache, Cache) else None

    @cached_property
    def _cache(self) -> Cache | str:
        """The cache of ldconfig, or the cause why it is not usable."""
        data = self._system.text(_CACHE)
        if data is None:
            return "there is no readable cache"
        flags = self.target.abi.cache_flags
        if flags is None:
            return "its entries for programs of this kind are unknown"
        try:
            return read_cache(data, _CACHE, (flags,), is_little=self._kind.is_little)
        except InputError as error:
            return error.detail

    def _file(self, path: str) -> Library | RefusedFile | None:
        """Open a file as the loader does: it skips files for other machines, and fails at one that is no library."""
        try:
            return self._at[path]
        except KeyError:
            there = self._system.file(self._absolute(path))
            result: Library | RefusedFile | None = None
            if isinstance(there, Refusal):
                result = RefusedFile(path, there.cause)
            elif there is not None:
                result = self._judged(path, there)
            self._at[path] = result
            return result

    def _judged(self, path: str, library: Library) -> Library | RefusedFile | None:
        identity = library.identity
        if library.kind.is_64 != self._kind.is_64:
            return None
        if library.kind.is_little != self._kind.is_little:
            return RefusedFile(path, "it has the other byte order")
        if self._kind.machine != abi.EM_ARM and (
            identity[7] not in {0, _ELFOSABI_GNU} or (identity[7] == 0 and identity[8])
        ):
            return RefusedFile(path, f"it is for another system: ABI {identity[7]}, version {identity[8]}")
        if any(identity[9:16]):
            return RefusedFile(path, "the end of its ELF identification is not zero")
        if library.kind != self._kind:
            return None
        if library.type not in {abi.ET_DYN, abi.ET_EXEC}:
            return RefusedFile(path, "it is neither a program nor a library")
        return library


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]
