"""What one heap profile says of one moment: how much was in use, and who asked for it.

A profile names the object of a frame, or lists the mappings of its process, or has only addresses and names of
functions (massif's, where there is debug information). In the last case the symbols find the objects: an object was
loaded at the bias at which its functions have the addresses of the profile (`heap_places.py`). What lies between its
functions belongs to it too.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from footprint.attribution.heap_places import Binary, Placed, place_files
from footprint.elf.image import Image
from footprint.elf.names import normalised, shown_name
from footprint.elf.notes import build_id
from footprint.errors import Note, UsageError
from footprint.heap.allocators import REPLACEMENT, Allocators
from footprint.heap.attribution import BELOW_THRESHOLD, NO_SYMBOL, Call, HeapShares, attribute
from footprint.heap.profile import CallTree, Counted, Frame, HeapSnapshot, Module, Profile
from footprint.members import NamedTuple, dataclass
from footprint.model.heap_account import HeapShare, Share
from footprint.model.row import NAMELESS, Evidence
from footprint.text.units import first_of, parse_bytes

if TYPE_CHECKING:
    from fractions import Fraction

_NO_OBJECT: Final = "[no object: none at this address]"
ONLY_LINES: Final = "[no object: lines only]"
_NOT_TOLD: Final = "[no object: the profile does not tell]"
_SEVERAL: Final = "[no object: several could be at this address]"
_LUMP: Final = re.compile(r"in [0-9]+ places?,")
_PAGE_BYTES: Final = 4096
_PF_X: Final = 1
_TIME: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([A-Za-zµ]{1,16})")
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
_SI: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_MOST_NAMED: Final = 6


class NamedFrames(NamedTuple):
    """The object and function of each frame of a profile, and what was odd about finding them."""

    calls: tuple[Call, ...]
    notes: tuple[Note, ...]


def name_frames(
    profile: Profile,
    name: str,
    allocators: Allocators,
    binaries: Sequence[Binary] = (),
    opened: Callable[[str], Binary | None] = lambda _path: None,
) -> NamedFrames:
    """Find the object and the function of each frame of a profile; `name` is its name in messages.

    `binaries` are the files of the process, for frames whose object the profile does not name. `opened` returns the
    file at a path that the profile lists as mapped, or None where it cannot be read.
    """
    notes: list[Note] = []
    modules = _Modules(profile.modules, binaries, opened, name, notes)
    placed = place_files(profile.frames, binaries, name, notes) if binaries and not profile.modules else ()
    calls = tuple([_call(frame, modules, placed, allocators) for frame in profile.frames])
    return NamedFrames(calls, tuple(notes))


def _call(frame: Frame, modules: "_Modules", placed: Sequence[Placed], allocators: Allocators) -> Call:
    if frame.label is not None:
        return Call(BELOW_THRESHOLD, BELOW_THRESHOLD) if _LUMP.match(frame.label) else Call(_NOT_TOLD, frame.label)
    owner, function = frame.object, frame.function
    if frame.addr is not None:
        if owner is None and modules.is_known:
            # A stack holds return addresses. The call before one may be the last instruction of its function.
            owner, function = modules.at(frame.addr - 1)
        elif owner is not None and function is None and modules.has_file(owner):
            owner, function = modules.in_file(owner, frame.addr - 1)
        elif placed and (owner is None or function is None):
            owner, function = _placed_at(frame, placed)
        elif owner is None and frame.file is not None:
            owner = ONLY_LINES
    rule = REPLACEMENT if owner is not None and allocators.has_object(owner) else ""
    if function is not None and not rule:
        rule = allocators.rule_of(normalised(shown_name(function)))
    return Call(owner or _NOT_TOLD, function or NO_SYMBOL, rule)


def _placed_at(frame: Frame, placed: Sequence[Placed]) -> tuple[str, str | None]:
    """Return the object and the function of a frame; a debug file may name more functions than the profile."""
    addr, owner = frame.addr or 0, frame.object
    here = [p for p in placed if p.start_addr <= addr < p.end_addr and owner in {None, p.binary.path}]
    if len(here) == 1 or (here and owner is not None):
        return here[0].binary.path, frame.function or here[0].name_at(addr)
    if here:
        return _SEVERAL, frame.function
    if owner is None:
        owner = ONLY_LINES if frame.file is not None else _NOT_TOLD
    return owner, frame.function


# --- profiles that list mappings --------------------------------------------------------------------------------------


class _Modules:
    """The mappings of the process, and the functions in them."""

    def __init__(
        self,
        modules: Iterable[Module],
        binaries: Sequence[Binary],
        opened: Callable[[str], Binary | None],
        name: str,
        notes: list[Note],
    ) -> None:
        self._files = {module.path: module for module in modules if module.has_file_addrs}
        self._modules = sorted(module for module in modules if not module.has_file_addrs)
        self._starts = [module.start_addr for module in self._modules]
        self._opened, self._name, self._notes = opened, name, notes
        self._binaries: dict[str, Binary | None] = {}
        # By their names, for profiles without build-ids.
        self._given = {key: binary for binary in binaries for key in (_last(binary.path), build_id(binary.image))}

    @property
    def is_known(self) -> bool:
        """Whether the profile lists any mappings with addresses of the process."""
        return bool(self._modules)

    def has_file(self, path: str) -> bool:
        """Return whether the profile has addresses of a file instead of the process."""
        return path in self._files

    def in_file(self, path: str, vaddr: int) -> tuple[str, str | None]:
        """Return the object of such an address, and the function where its file names it."""
        binary = self._binary(self._files[path])
        return (path, None) if binary is None else (binary.path, binary.name_at(vaddr))

    def at(self, addr: int) -> tuple[str, str | None]:
        """Return the object at an address, and the function where its file names it."""
        last = bisect_right(self._starts, addr) - 1
        if last < 0 or addr >= self._modules[last].end_addr:
            return _NO_OBJECT, None
        module = self._modules[last]
        if not module.path.startswith("/"):
            return module.path or NAMELESS, None
        binary = self._binary(module)
        if binary is None:
            return module.path, None
        offset = addr - module.start_addr + module.offset
        for load in binary.image.loads:
            if load.offset <= offset < load.offset + load.file_bytes:
                return module.path, binary.name_at(offset - load.offset + load.vaddr)
        return module.path, None

    def _binary(self, module: Module) -> Binary | None:
        """Return the file of a mapping, also from another path; None where another file is at its path now."""
        if module.path not in self._binaries:
            binary = self._given.get(module.build_id or _last(module.path)) or self._opened(module.path)
            if binary is not None and not _fits(binary.image, module):
                detail = f"{module.path} is another file than the one that was mapped: its functions are not named"
                self._notes.append(Note("heap-binary-misfit", self._name, detail))
                binary = None
            elif binary is not None and module.has_file_addrs and not module.build_id:
                detail = f"{self._name} has no build-id to compare: functions are named by the file with that name"
                self._notes.append(Note("file-unverified", module.path, detail))
            self._binaries[module.path] = binary
        return self._binaries[module.path]


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _fits(image: Image, module: Module) -> bool:
    """Return whether a file has the build-id of a mapping, or the loader would map its code like this mapping."""
    if module.build_id or module.has_file_addrs:
        return not module.build_id or module.build_id == build_id(image)
    size_bytes = module.end_addr - module.start_addr
    for load in image.loads:
        start = load.offset // _PAGE_BYTES * _PAGE_BYTES
        end = -(-(load.offset + load.file_bytes) // _PAGE_BYTES) * _PAGE_BYTES
        # A part of a segment may have been mapped again, for instance into huge pages.
        if load.flags & _PF_X and start <= module.offset and module.offset + size_bytes <= end:
            return True
    return False


@dataclass(frozen=True)
class HeapUsage:
    """What a heap profile says of one moment.

    Attributes:
        file: The profile, as the user named it.
        profile: The whole profile; only those of massif's trees that were asked for.
        snapshot: The moment; None where the profile has only counts over the whole run.
        tree: The call tree of the moment, or of these counts; None where the profile has none.
        tally: What the tree counts where it counts over the whole run: `allocated`, `copied`, `occurred`.
        calls: The object and function of each frame.
        attribution: Who asked for the bytes of the tree.
        evidence: How the amounts are known.
        notes: What was odd.
    """

    file: str
    profile: Profile
    snapshot: HeapSnapshot | None
    tree: CallTree | None
    tally: str | None
    calls: tuple[Call, ...]
    attribution: HeapShares | None
    evidence: Evidence
    notes: tuple[Note, ...] = ()

    @cached_property
    def _shares(self) -> dict[int, tuple[Share, ...]]:
        return {}

    def shares_in(self, tree: CallTree) -> tuple[Share, ...]:
        """Return who asked for the bytes of a tree of the profile, the largest first; each tree is added up once."""
        if id(tree) not in self._shares:
            self._shares[id(tree)] = attribute(tree, self.calls).shares
        return self._shares[id(tree)]

    @property
    def total_bytes(self) -> int:
        """The memory of the moment: live bytes, the allocator's own, and stacks, as far as the profile counts them.

        Percentages are of this figure, as in ms_print, unless the profile is faulty.
        """
        if self.snapshot is None:
            return 0 if self.tree is None else self.tree.total_bytes
        return self.snapshot.used_bytes

    @property
    def whole_bytes(self) -> int:
        """What percentages are of: `total_bytes`, with what a faulty profile counts twice."""
        attributed = self.attribution
        return self.total_bytes + (0 if attributed is None else attributed.whole_bytes - attributed.total_bytes)


def heap_usage(file: str, profile: Profile, place: int | None, named: NamedFrames) -> HeapUsage:
    """Join a profile, the snapshot at a place (None where it has none), and the names of its frames."""
    snapshot = None if place is None else profile.snapshots[place]
    tally = profile.tallies[0] if snapshot is None and profile.tallies else None
    moment = tally or snapshot
    tree = None if moment is None else moment.tree
    attribution = None if tree is None else attribute(tree, named.calls)
    untold_notes = () if attribution is None else _untold(file, attribution)
    return HeapUsage(
        file,
        profile,
        snapshot,
        tree,
        None if tally is None else tally.name,
        named.calls,
        attribution,
        _evidence(profile),
        (*profile.notes, *named.notes, *untold_notes),
    )


def _untold(file: str, attribution: HeapShares) -> list[Note]:
    """Return a note with the remedy where a profile names source lines and no objects."""
    untold_bytes = sum(share.size_bytes for share in attribution.shares if share.owner == ONLY_LINES)
    if untold_bytes <= 0:
        return []
    part = f"{untold_bytes / attribution.whole_bytes:.1%}" if attribution.total_bytes > 0 else "some"
    detail = (
        f"it has source lines instead of objects for {part} of the bytes: name the files that were profiled "
        "(--binary FILE)"
    )
    return [Note("heap-objects-untold", file, detail)]


def _evidence(profile: Profile) -> Evidence:
    if profile.counted is Counted.PAGES:
        return Evidence.VIRTUAL
    is_estimate = profile.sample_period_bytes not in {None, 1} or profile.format == "heaptrack massif"
    return Evidence.ESTIMATED if is_estimate else Evidence.MEASURED


def place_at(profile: Profile, at: str | None, file: str) -> int | None:
    """Find the place of the snapshot that is asked for; None where the profile has no snapshots.

    Args:
        profile: The profile; its trees need not have been built.
        at: `peak`, `end`, the number of a snapshot, or a time with its unit; None for the peak. At a time it is the
            last snapshot with a tree that is not later, or else the first.
        file: Its name in messages.

    Raises:
        UsageError: Where there is no such snapshot, it has no tree, or the time has another unit.
    """
    snapshots, places = profile.snapshots, profile.tree_places
    if not snapshots:
        return None
    if at is None or at == "peak":
        if profile.peak_index in places:
            return profile.peak_index
        # Without a mark, or where the peak has no tree, the largest snapshot with one.
        return max(places or range(len(snapshots)), key=lambda place: snapshots[place].used_bytes)
    if at == "end":
        return (places or range(len(snapshots)))[-1]
    if at.isascii() and at.isdigit() and len(at) < 10:
        return _place_of(snapshots, places, int(at), file)
    time = _time(at, profile.time_unit)
    if time is None:
        unit = f", a time in {profile.time_unit}" if profile.time_unit else ""
        raise UsageError(f"{at!r} is not a moment of {file}: name the number of a snapshot{unit}, peak or end")
    if not places:
        raise UsageError(f"{file} has no call tree at any moment")
    earlier = [place for place in places if (snapshots[place].time or 0) <= time]
    return earlier[-1] if earlier else places[0]


def _place_of(snapshots: Sequence[HeapSnapshot], places: Sequence[int], number: int, file: str) -> int:
    place = next((place for place, snapshot in enumerate(snapshots) if snapshot.number == number), None)
    if place is None:
        raise UsageError(f"{file} has no snapshot {number}: the last one is {snapshots[-1].number}")
    if place not in places:
        numbers = [str(snapshots[place].number) for place in places]
        which = f"those of {first_of(numbers, _MOST_NAMED)} do" if numbers else "none has"
        raise UsageError(f"snapshot {number} of {file} has no call tree: {which}")
    return place


def _time(text: str, unit: str | None) -> "Fraction | int | None":
    """Convert a time to the unit of a profile; None where it has another unit."""
    from fractions import Fraction  # noqa: PLC0415 # few name a time

    match = _TIME.fullmatch(text)
    if match is None:
        return None
    amount, given = Fraction(match[1]), match[2]
    if unit == "B":
        return parse_bytes(text)
    if unit in {"ms", "s"} and given in _MILLISECONDS:
        return amount * _MILLISECONDS[given] / _MILLISECONDS[unit]
    # As reports write them: `2.4Mi` of massif, `2.4Minstrs` of DHAT, `2.4kµs` of others.
    for word in (unit or "", *(["i"] if unit == "instrs" else [])):
        if word and given.endswith(word) and given[: -len(word)] in _SI:
            return amount * _SI[given[: -len(word)]]
    return None


def heap_share(share: Share) -> HeapShare:
    """Return what a function asked for, with the name to show."""
    function = share.function
    symbol = None if function.startswith("[") else function
    return HeapShare(share.owner, symbol, shown_name(function), share.size_bytes, share.block_count)
