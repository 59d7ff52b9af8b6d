"""What one heap profile says of one moment: how much was in use, and who asked for it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from footprint.attribution.heap_frames import ONLY_LINES, NamedFrames
from footprint.elf.names import shown_name
from footprint.errors import Note, UsageError
from footprint.heap.attribution import Call, HeapShares, attribute
from footprint.heap.profile import CallTree, Counted, HeapSnapshot, Profile
from footprint.model.heap_account import HeapShare, Share
from footprint.model.row import Evidence
from footprint.text.units import first_of, parse_bytes

_TIME: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([A-Za-zµ]{1,16})")
_SECONDS: Final = {"ms": Fraction(1, 1000), "s": Fraction(1), "min": Fraction(60), "h": Fraction(3600)}
_SI: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_MOST_NAMED: Final = 6


@dataclass(frozen=True, slots=True)
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
    _shares: dict[int, tuple[Share, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

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


def _time(text: str, unit: str | None) -> Fraction | int | None:
    """Convert a time to the unit of a profile; None where it has another unit."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    amount, given = Fraction(match[1]), match[2]
    if unit == "B":
        return parse_bytes(text)
    if unit in {"ms", "s"} and given in _SECONDS:
        return amount * _SECONDS[given] / _SECONDS[unit]
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
