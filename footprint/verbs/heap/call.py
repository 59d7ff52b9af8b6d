"""`footprint.heap_profile`: what allocator profiles say, by object and function."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final

from footprint.attribution.heap_places import Binary, Origin
from footprint.attribution.heap_totals import counted_by, run_totals
from footprint.attribution.heap_usage import HeapUsage, heap_usage, name_frames, place_at
from footprint.elf.functions import FunctionStarts, read_functions
from footprint.elf.image import Buffer, read_image
from footprint.elf.notes import STANDARD_PLACES, DebugSearch
from footprint.errors import AccessError, FootprintError, InputError, Note, UsageError
from footprint.findings.registry import Fact, HeapFacts, find_all
from footprint.heap.allocators import Allocators
from footprint.heap.formats import read_profile
from footprint.heap.profile import Counted, HeapSnapshot, Profile
from footprint.members import NamedTuple, dataclass, replace
from footprint.model.finding import Finding
from footprint.process.mappings import FileOpener, OpenFiles
from footprint.sources.debug_files import DebugFiles
from footprint.sources.target import Text, check_no_process, split_moment
from footprint.system.files import StrPath, open_input
from footprint.system.roots import path_inside
from footprint.text.units import format_bytes

# So many call trees of a massif profile, evenly spread, show what has been there since the start.
_STEPS: Final = 8
# The limits of a report with all moments: the number of call trees, and how much of the profile they are read from.
_MOST_TREES: Final = 200
_MOST_TREE_BYTES: Final = 64 << 20
# The words of a command that a path may have, and the files of a process: far more than any has.
_MOST_WORDS: Final = 8
_MOST_FILES: Final = 1000
_AMOUNTS: Final = {
    Counted.HEAP: "memory in use",
    Counted.PAGES: "address space",
    Counted.COPIES: "bytes that are copied",
    Counted.EVENTS: "units that the program declares",
}


@dataclass(frozen=True)
class HeapProfiles:
    """What some heap profiles say.

    Attributes:
        files: One entry a profile.
        notes: What was odd, of all of them.
        findings: What could be constant data; empty for several profiles.
    """

    files: tuple[HeapUsage, ...]
    notes: tuple[Note, ...]
    findings: tuple[Finding, ...] = ()


def heap_profile(
    *paths: StrPath | Text,
    at: str | None = None,
    allocators: Sequence[str] = (),
    binaries: Sequence[StrPath] = (),
    root: StrPath | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
    has_all_trees: bool = False,
) -> HeapProfiles:
    """Read from allocator profiles how much memory was in use at a moment, and who asked for it.

    Of several profiles, those that cannot be read become notes.

    Args:
        paths: The profiles, of massif, DHAT, heaptrack, pprof, jemalloc and others: paths, or files that are resolved.
            `massif.out@5` is the moment 5 of `massif.out`, unless a file has that name.
        at: Which moment of those that were named without one: the number of a snapshot, a time with its unit, `end`,
            or `peak`; None for the peak.
        allocators: More functions that only hand memory on: names, or beginnings of names with a `*` behind them.
        binaries: Programs and libraries of the process, for profiles that name functions and no objects. A program
            brings the libraries that it needs.
        root: The directory that the process took for `/`, where it is not this machine's.
        debug: Where to look for the symbols of stripped files; None for nowhere.
        has_all_trees: Build the call trees of all moments, up to a number, not only that of the one that is asked for.

    Raises:
        AccessError: If the only profile or a binary cannot be opened.
        InputError: If the only profile is not a heap profile or is damaged, or if a binary is damaged.
        UsageError: If no profile is given, if it has no such moment, or if several do not count the same thing.
    """
    if not paths:
        raise UsageError("name at least one heap profile")
    files = BinaryFiles(root, debug)
    named = files.with_needed(binaries)
    known_allocators = Allocators(allocators)
    moments_named = [_moment_of(path, at) for path in paths]
    found_of: dict[int, HeapUsage] = {}
    notes: list[Note] = []
    for file in dict.fromkeys(u.file for u in moments_named):
        places = [place for place, u in enumerate(moments_named) if u.file == file]
        try:
            data = moments_named[places[0]].data
            data = open_input(file) if data is None else data
            moments = [(moments_named[place].name, moments_named[place].at) for place in places]
            usages = read_usages(
                file,
                data,
                moments,
                known_allocators,
                (lambda _: named) if named else partial(files.of_profile, folder=os.path.dirname(file)),
                files.opened,
                has_all_trees=has_all_trees,
            )
            found_of |= zip(places, usages, strict=True)
        except UsageError:
            raise
        except FootprintError as error:
            if len(paths) == 1:
                raise
            notes.append(Note("file-unreadable", file, error.detail))
    usages_read = [found_of[place] for place in sorted(found_of)]
    if not usages_read:
        raise InputError(notes[0].subject, f"nothing could be read: {notes[0].detail}")
    _check_alike(usages_read)
    notes += [note for u in usages_read for note in u.notes]
    findings = find_all({Fact.HEAP: HeapFacts(usages_read[0])}) if len(paths) == 1 else ()
    return HeapProfiles(tuple(usages_read), tuple(dict.fromkeys(notes + files.notes)), findings)


class _NamedMoment(NamedTuple):
    """A profile as the user named it.

    Attributes:
        name: Its name in the answer: with the moment, where it was named so.
        file: The file.
        at: The moment.
        data: The whole file; None where it was not read yet.
    """

    name: str
    file: str
    at: str | None
    data: Buffer | None = None


def _moment_of(path: StrPath | Text, at: str | None) -> _NamedMoment:
    if isinstance(path, Text):
        file = path.name if path.moment is None else path.name.removesuffix(f"@{path.moment}")
        return _NamedMoment(path.name, file, path.moment or at, path.data)
    name = os.fspath(path)
    check_no_process(
        name, f"`footprint {name}` shows the heap of a process, and `footprint {name} --heap PROFILE` who asked for it"
    )
    file, moment = split_moment(name)
    return _NamedMoment(name, file, moment or at)


def _check_alike(usages: Sequence[HeapUsage]) -> None:
    """Refuse profiles that count different things: their difference has no meaning."""
    first = usages[0]
    for usage in usages[1:]:
        if (usage.profile.counted, usage.tally) != (first.profile.counted, first.tally):
            raise UsageError(
                f"{first.file} counts {_counted_by(first)}, {usage.file} {_counted_by(usage)}: "
                "compare profiles that count the same"
            )


def _counted_by(usage: HeapUsage) -> str:
    counted = usage.profile.counted
    return f"what was {usage.tally} over the run" if usage.tally and counted is Counted.HEAP else _AMOUNTS[counted]


def check_order(usage: HeapUsage, order: str) -> None:
    """Check that totals can be sorted by an order.

    Raises:
        UsageError: If the profile does not count it.
    """
    orders = counted_by(run_totals(usage))
    if order not in orders:
        counts = f"over the run it counts {', '.join(orders)}" if orders else "it counts nothing over the run"
        raise UsageError(f"{usage.file} does not count {order}: {counts}")


def read_usages(
    file: str,
    data: Buffer,
    moments: Sequence[tuple[str, str | None]],
    allocators: Allocators,
    binaries: Callable[[Profile], Sequence[Binary]],
    opened: Callable[[str], Binary | None],
    *,
    has_all_trees: bool = False,
) -> list[HeapUsage]:
    """Read a profile once, and return what it says of some moments.

    Args:
        file: The name of the profile in messages.
        data: The whole file.
        moments: For each moment its name in the answer, and which one it is, as `heap_profile` has it.
        allocators: The functions that only hand memory on.
        binaries: Returns the files of the process that the profile does not name.
        opened: Returns the file at a path that the profile names; None if it cannot be read.
        has_all_trees: Whether the call trees of all moments are built, up to a number.

    Raises:
        InputError: If it is not a heap profile, or is damaged.
        UsageError: If it has no such moment.
    """

    def places_in(profile: Profile) -> list[int | None]:
        return [place_at(profile, at, file) for _, at in moments]

    def chosen(profile: Profile) -> list[int]:
        places, trees = places_in(profile), profile.tree_places
        count = _STEPS
        if has_all_trees:
            count = max(count, min(_MOST_TREES, len(trees) * _MOST_TREE_BYTES // max(1, len(data)), len(trees)))
        # Evenly spread, the first and the last among them.
        steps = {trees[(len(trees) - 1) * step // (count - 1)] for step in range(count)} if trees else set()
        return sorted(steps.union(place for place in places if place is not None))

    profile = read_profile(data, file, chosen)
    named = name_frames(profile, file, allocators, binaries(profile), opened)
    usages = []
    for (name, at), place in zip(moments, places_in(profile), strict=True):
        usage = heap_usage(name, profile, place, named)
        if place is not None:
            usage = replace(usage, notes=(*usage.notes, *_moment_notes(profile, at, place, file)))
        usages.append(usage)
    return usages


def _moment_notes(profile: Profile, at: str | None, place: int, name: str) -> Iterator[Note]:
    """Return notes where the snapshot that is used is not the end, or the peak, that was asked for."""
    if at == "end":
        return _end_notes(profile, place, name)
    return _peak_notes(profile, place, name) if at in {None, "peak"} else iter(())


def _peak_notes(profile: Profile, place: int, name: str) -> Iterator[Note]:
    """Return a note where the snapshot that is used for the peak is smaller than another."""
    peak = profile.untold_peak
    if peak is None:
        return
    detail = (
        f"{_shown(profile.snapshots[place])} is used for the peak: it has the largest call tree, and {_shown(peak)} "
        f"has none; massif --detailed-freq=1 keeps all of them, and `footprint run --massif` that of the end, too"
    )
    yield Note("heap-peak-untold", name, detail)


def _end_notes(profile: Profile, place: int, name: str) -> Iterator[Note]:
    """Return notes where the snapshot that is used for the end is not the end of the run."""
    if not profile.has_end and profile.format == "massif":
        last = profile.snapshots[-1]
        detail = (
            f"massif writes no snapshot at the end of a run: the last one ({last.number}) has "
            f"{format_bytes(last.live_bytes)} live, and how much of that was freed afterwards is unknown; "
            f"`footprint run --massif` and `--xtree-memory=allocs` have the end"
        )
        yield Note("heap-end-unknown", name, detail)
    if place + 1 < len(profile.snapshots):
        yield _end_untold(profile, place, name)


def _end_untold(profile: Profile, place: int, name: str) -> Note:
    taken, last = _shown(profile.snapshots[place]), _shown(profile.snapshots[-1])
    detail = (
        f"{taken} is used for the end: it has the last call tree, and {last} has none; "
        f"massif --detailed-freq=1 keeps all of them"
    )
    return Note("heap-end-untold", name, detail)


def _shown(snapshot: HeapSnapshot) -> str:
    return f"snapshot {snapshot.number} ({format_bytes(snapshot.live_bytes)} live)"


class BinaryFiles:
    """Reads files with code, each once.

    Args:
        root: The directory that the process took for `/`; None for that of this machine.
        debug: Where to look for the symbols of stripped files; None for nowhere.

    Attributes:
        notes: The files that could not be read.
    """

    def __init__(self, root: StrPath | None, debug: DebugSearch | None, open_file: FileOpener | None = None) -> None:
        self._root = None if root is None else os.fspath(root)
        self._open_file = open_file or OpenFiles()
        self._debug_files = DebugFiles(debug, self._root, self._open_file)
        self._binaries: dict[str, Binary | None] = {}
        self.notes: list[Note] = []

    def opened(self, path: str) -> Binary | None:
        """Return the file at a path that a profile names; add a note if it cannot be read."""
        if path not in self._binaries:
            self._binaries[path] = None
            try:
                place = path if self._root is None else path_inside(self._root, path)
                self._binaries[path] = self._read(place, path)
            except FootprintError as error:
                detail = f"{error.detail}, its functions are not named"
                self.notes.append(Note("file-unreadable", path, detail))
        return self._binaries[path]

    def with_needed(self, paths: Sequence[StrPath]) -> list[Binary]:
        """Return the files that the user names, and the libraries that they need.

        Raises:
            AccessError: If a named file cannot be opened.
            InputError: If a named file is not ELF.
        """
        binaries: dict[str, Binary] = {}
        for path in paths:
            whole = os.path.realpath(os.fspath(path))
            binaries[whole] = self._read(os.fspath(path), whole)
        for path in list(binaries):
            for library in self._needed(path):
                if library not in binaries and (binary := self.opened(library)) is not None:
                    binaries[library] = binary
        return list(binaries.values())

    def of_profile(self, profile: Profile, folder: str) -> list[Binary]:
        """Return the files that a profile tells.

        These are the program of its command, with the libraries that it needs, for functions without an object; and the
        files at its own paths, for addresses without a function.

        Args:
            profile: The profile. If it lists mappings, nothing more is needed.
            folder: The directory of the profile, from which the command may have been called.
        """
        if profile.modules:
            return []
        binaries: list[Binary] = []
        frames = [frame for frame in profile.frames if frame.addr is not None]
        if profile.command and any(frame.object is None and frame.function is not None for frame in frames):
            with suppress(FootprintError):
                place = program_of(profile.command, folder, self._root)
                binaries = self.with_needed([] if place is None else [place])
                binaries[:1] = [binary._replace(origin=Origin.COMMAND) for binary in binaries[:1]]
        present = {binary.path for binary in binaries}
        paths = dict.fromkeys(frame.object for frame in frames if frame.function is None)
        for path in islice(paths, _MOST_FILES):
            if path is not None and path.startswith("/") and path not in present:
                with suppress(FootprintError):
                    place = path if self._root is None else path_inside(self._root, path)
                    binaries.append(self._read(place, path)._replace(origin=Origin.PROFILE))
        return binaries

    def _needed(self, path: str) -> list[str]:
        from footprint.loader.link_map import link  # noqa: PLC0415 # only for programs
        from footprint.loader.system import System  # noqa: PLC0415 # the same

        try:
            link_map = link(System(self._root or "/"), path)
        except FootprintError:
            # A file from another machine: its libraries are not here.
            return []
        return [os.path.realpath(linked.path) for linked in link_map.objects[1:]]

    def _read(self, place: str, path: str) -> Binary:
        data = self._open_file(place, None)
        if isinstance(data, str):
            raise AccessError(path, data)
        image = read_image(data, path)
        functions = read_functions(self._debug_files.symbols_of(image, os.path.abspath(place)))
        return Binary(path, image, functions, FunctionStarts(image))


def program_of(command: str, folder: str, root: str | None) -> str | None:
    """Find the program of a command, whose words are not quoted; None if there is none.

    Args:
        command: The command.
        folder: The directory of the profile, in which a relative path is looked for after the current one.
        root: The directory that the process took for `/`; None for that of this machine.
    """
    words = command.split(" ")
    # A path may contain spaces.
    for count in range(1, min(len(words), _MOST_WORDS) + 1):
        name = " ".join(words[:count])
        if os.path.isabs(name):
            places = [name if root is None else path_inside(root, name)]
        elif "/" in name:
            places = [] if root is not None else [name, os.path.join(folder, name)]
        else:
            folders = os.environ.get("PATH", os.defpath).split(":")
            places = [
                os.path.join(folder, name) if root is None else path_inside(root, os.path.join(folder, name))
                for folder in folders
                if os.path.isabs(folder)
            ]
        for place in places:
            if os.path.isfile(place) and os.access(place, os.X_OK):
                return place
    return None
