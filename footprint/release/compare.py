"""Compare two audits: what changed by owner, section and symbol, and what that means for N processes.

A new name for the same thing, from another build or in another folder, is no change; `matching` finds these.
"""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.errors import Note
from footprint.findings.registry import Fact, fact_of, rule_names
from footprint.members import Signed, json_members
from footprint.model.audit import NO_MEMORY, ONE_START, Spreads, overlap
from footprint.model.costs import Spread, holders_of
from footprint.model.figures import FIGURES, Figure
from footprint.model.finding import Finding, SourceLocation
from footprint.model.projection import cost_at
from footprint.model.row import OF_OBJECTS, MemoryKind, Row, Total, file_name, is_file, sum_rows
from footprint.release.matching import comparable_name, differing_rows, owner_names, paired_findings, paired_rows
from footprint.release.new_libraries import NewRoot, came_with, new_roots

if TYPE_CHECKING:
    from footprint.model.audit import Audit, GroupMember
    from footprint.release.member_changes import MemberChange


_LOADER: Final = re.compile(r"/ld(?:-linux|-musl|64|-[0-9]|\.so)[^/]*$")
LEAST_GROWTH_BYTES: Final = 1024
"""A variable that grew by less is no culprit."""


class RowStatus(StrEnum):
    """What happened to a row."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    RENAMED = "renamed"
    TOUCHED = "touched"
    """It was there without a private page, and has one now."""
    SHIFTED = "shifted"
    """The same size in other pages: only used between predictions, where nothing else can make a difference."""


class FormerPlace(NamedTuple):
    """Where the bytes of a row were before.

    Attributes:
        owner: The owner.
        section: The section; null where there was none.
        symbol: The linker name, or the name to show; null where there was none.
    """

    owner: str
    section: str | None
    symbol: str | None


@json_members(
    "status owner kind section symbol name old_bytes new_bytes delta_bytes old_mapped_bytes new_mapped_bytes "
    "old_writable_bytes new_writable_bytes mapped_delta_bytes before location possible_locations"
)
class RowChange(NamedTuple):
    """One row that differs, with its place now, or its last place if it is gone.

    Attributes:
        status: What happened to it.
        owner: The object.
        kind: What the memory is for.
        section: The section, where there is one.
        symbol: The linker name, where there is one.
        name: What to show for it.
        old_bytes: Private bytes before; 0 where it was not there, None where only virtual sizes are known.
        new_bytes: The same now.
        old_mapped_bytes: Its virtual size before.
        new_mapped_bytes: The same now.
        before: Owner, section and symbol (or name) that it had, where it was moved or renamed.
        is_writable: Whether the range counts towards `mapped_writable_bytes`.
        was_writable: Whether it did before.
        location: The source line that declares a variable that grew; None where that is not known.
        possible_locations: The lines that declare the copies of a variable that grew, where there are several.
    """

    status: RowStatus
    owner: str
    kind: MemoryKind
    section: str | None
    symbol: str | None
    name: str | None
    old_bytes: int | None
    new_bytes: int | None
    old_mapped_bytes: int
    new_mapped_bytes: int
    before: FormerPlace | None = None
    is_writable: bool = True
    was_writable: bool = True
    location: SourceLocation | None = None
    possible_locations: tuple[SourceLocation, ...] = ()

    @property
    def delta_bytes(self) -> Signed:
        """Return the growth of its private bytes; if these are not known, of its mapped writable bytes."""
        if self.old_bytes is None or self.new_bytes is None:
            return self.new_writable_bytes - self.old_writable_bytes
        return self.new_bytes - self.old_bytes

    @property
    def old_writable_bytes(self) -> int:
        """Return its mapped writable bytes before."""
        return self.old_mapped_bytes if self.was_writable else 0

    @property
    def new_writable_bytes(self) -> int:
        """Return its mapped writable bytes now."""
        return self.new_mapped_bytes if self.is_writable else 0

    @property
    def mapped_delta_bytes(self) -> Signed:
        """Return the growth of its mapped bytes."""
        return self.new_mapped_bytes - self.old_mapped_bytes

    @property
    def growth_bytes(self) -> int:
        """Return how much a variable grew, in size or in private memory; where its pages lie is no growth."""
        return 0 if self.status is RowStatus.SHIFTED else max(0, self.delta_bytes, self.mapped_delta_bytes)


@json_members(
    "owner old_owner is_gone is_object left_with came_with old_bytes new_bytes delta_bytes old_mapped_bytes "
    "new_mapped_bytes old_writable_bytes new_writable_bytes is_noise"
)
class OwnerChange(NamedTuple):
    """The rows of one owner added up; an owner that is not there holds 0.

    Attributes:
        owner: Its name now, or its last name if it is gone.
        old_owner: Its name before; None if it was not there.
        is_gone: Whether it is not there any more.
        is_object: Whether it is a file: the program or a library.
        old_bytes: Private bytes before; None where only virtual sizes are known.
        new_bytes: The same now.
        old_mapped_bytes: Virtual size before.
        new_mapped_bytes: The same now.
        old_writable_bytes: The writable part of its virtual size before.
        new_writable_bytes: The same now.
        left_with: The path of the object that it left with, if it was there only for that object.
        came_with: The path of the new object that brought it in; None where another object needs it.
        is_noise: Whether the starts of both runs overlap, so that the difference may be chance; None for single
            measurements.
    """

    owner: str
    old_owner: str | None
    is_gone: bool
    is_object: bool
    old_bytes: int | None
    new_bytes: int | None
    old_mapped_bytes: int
    new_mapped_bytes: int
    old_writable_bytes: int
    new_writable_bytes: int
    left_with: str | None = None
    came_with: str | None = None
    is_noise: bool | None = None

    @property
    def is_new(self) -> bool:
        """Return whether it is new."""
        return self.old_owner is None

    @property
    def delta_bytes(self) -> Signed:
        """Return the growth of its private bytes; if these are not known, of its mapped writable bytes."""
        if self.old_bytes is None or self.new_bytes is None:
            return self.new_writable_bytes - self.old_writable_bytes
        return self.new_bytes - self.old_bytes


class TotalChange(NamedTuple):
    """A figure of the whole, before and now.

    Attributes:
        name: The name of the figure without its unit, as in `FIGURES`.
        old: Before.
        new: Now.
        is_noise: Whether the starts of both runs overlap, so that the difference may be chance; None for single
            measurements.
    """

    name: str
    old: Total
    new: Total
    is_noise: bool | None = None

    @property
    def delta_bytes(self) -> int | None:
        """Return the growth; None if one of the two values is not known."""
        return None if self.old.bytes is None or self.new.bytes is None else self.new.bytes - self.old.bytes

    @property
    def figure(self) -> Figure:
        """Return the figure itself."""
        return FIGURES[f"{self.name}_bytes"]

    def delta_at_count(self, count: int) -> int | None:
        """Compute the growth for `count` processes; None if one of the two values is not known."""
        return None if self.delta_bytes is None else self.figure.at_count(self.delta_bytes, count)


@json_members("each_delta_bytes once_delta_bytes delta_at_count_bytes")
class CostChange(NamedTuple):
    """The change of what N cost together, as the audits of both sides have it.

    Attributes:
        each_delta_bytes: The change of what each of the N pays.
        once_delta_bytes: The change of what all of them pay once.
        count: The number of processes or groups.
    """

    each_delta_bytes: Signed
    once_delta_bytes: Signed
    count: int  # type: ignore[assignment] # tuple.count is not missed

    @property
    def delta_at_count_bytes(self) -> Signed:
        """Return the change for `count` processes or groups."""
        return self.each_delta_bytes * self.count + self.once_delta_bytes


class Comparison(NamedTuple):
    """The differences between two audits of processes, or of groups.

    Attributes:
        old: The audit before.
        new: The audit now.
        count: The number of processes or groups that changes are projected to.
        totals: The figures of the whole that at least one side knows.
        owners: The owners that differ, the largest change first.
        changes: The rows that differ, the largest change first; they add up to the differences of the totals.
        same_count: How many rows do not differ.
        new_findings: The findings that only the new audit has; empty if one of the audits has no findings at all.
        fixed_findings: The findings that only the old audit has; the same.
        roots: The libraries that are new because an object needs them now, the one that retains most first.
        unevenly_named: The objects whose symbols only one audit knows; their other variables are compared by section.
        members: The processes of groups that came, went, or changed; their private memory adds up to the change of that
            of the group.
    """

    old: "Audit"
    new: "Audit"
    count: int  # type: ignore[assignment] # tuple.count is not missed
    totals: tuple[TotalChange, ...]
    owners: tuple[OwnerChange, ...]
    changes: tuple[RowChange, ...]
    same_count: int
    new_findings: tuple[Finding, ...]
    fixed_findings: tuple[Finding, ...]
    roots: tuple[NewRoot, ...] = ()
    unevenly_named: tuple[str, ...] = ()
    members: "tuple[MemberChange, ...]" = ()

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return the notes of both sides; where they differ about one subject, each names its side."""
        detail = "its symbols are known of one side only: its other variables are compared by section, without names"
        uneven = tuple(Note("symbols-of-one-side", owner, detail) for owner in self.unevenly_named)
        return (*self._notes_of_sides(), *uneven, *self._thread_notes(), *self.loader_notes)

    def _thread_notes(self) -> tuple[Note, ...]:
        """Return a note where one side alone knows where the thread-local variables are."""
        blind = [side for side in (self.old, self.new) if not any(map(_is_of_threads, side.ledger))]
        if len(blind) != 1 or not any(_is_of_threads(change) for change in self.changes):
            return ()
        detail = "where its thread-local variables are is not known: its rows for stacks and nameless memory have them"
        return (Note("thread-locals-of-one-side", blind[0].saved_in or blind[0].target, detail),)

    @property
    def loader_notes(self) -> tuple[Note, ...]:
        """Return a note where other loaders start the sides: then the machine or the C library is another one."""
        before, now = (_loaders(side) for side in (self.old, self.new))
        if not before or not now or before & now:
            return ()
        machines = f"{', '.join(sorted(before))} started it before, {', '.join(sorted(now))} does now"
        detail = f"{machines}: the machine or the C library is another one, and most figures differ by that alone"
        return (Note("loaders-differ", self.new.target, detail),)

    def _notes_of_sides(self) -> tuple[Note, ...]:
        sides = [dict.fromkeys(side.notes) for side in (self.old, self.new)]
        slugs = {(note.slug, note.subject) for note in sides[0].keys() - sides[1]}
        slugs &= {(note.slug, note.subject) for note in sides[1].keys() - sides[0]}
        return tuple(
            note._replace(subject=f"{note.subject}, {when}") if (note.slug, note.subject) in slugs else note
            for notes, when in ((sides[0], "before"), ([note for note in sides[1] if note not in sides[0]], "now"))
            for note in notes
        )

    @property
    def compared_rules(self) -> tuple[str, ...]:
        """Return the rules that both sides were audited for."""
        return tuple([rule for rule in rule_names() if covers(self.old, rule) and covers(self.new, rule)])

    @property
    def root_of(self) -> dict[str, str]:
        """Return for each new library the root that it came with, itself for a root."""
        if not self.roots:
            return {}
        return {o.owner: o.came_with or o.owner for o in self.owners if o.is_new and o.is_object}

    @property
    def grown_variables(self) -> tuple[RowChange, ...]:
        """Return the variables that are new or grew by 1 KiB or more, but those of new libraries, the most first."""
        new = {owner.owner for owner in self.owners if owner.is_new}
        grown = [
            change
            for change in self.changes
            if change.symbol is not None
            and change.kind in OF_OBJECTS
            and change.owner not in new
            and change.growth_bytes >= LEAST_GROWTH_BYTES
        ]
        return tuple(sorted(grown, key=lambda c: -c.growth_bytes))

    @property
    def cost(self) -> CostChange | None:
        """Return the change of what N cost; None where a side does not know it, or where they start in other ways."""
        sides = (self.old, self.new)
        before, now = (side.cost_projection for side in sides)
        if before is None or now is None or (not self.new.members and before.model is not now.model):
            return None
        if (before.shared_once_bytes is None) is not (now.shared_once_bytes is None):
            return None
        first, second = (cost_at(now.terms, count) - cost_at(before.terms, count) for count in (0, 1))
        return CostChange(second - first, first, self.count)

    def total(self, name: str) -> TotalChange | None:
        """Return one figure of the whole; None if neither side knows it."""
        return next((total for total in self.totals if total.name == name), None)


def compare(
    old: "Audit",
    new: "Audit",
    count: int = 1,
    old_spreads: Spreads = ONE_START,
    new_spreads: Spreads = ONE_START,
    is_same: Callable[[Row, Row], bool] | None = None,
) -> Comparison:
    """Compare two audits, and project the changes to `count` processes.

    Args:
        old: The audit before.
        new: The audit now.
        count: The number of processes.
        old_spreads: The spread of the starts whose median the old audit is.
        new_spreads: The same for the new audit.
        is_same: Returns whether two variables of one size may be one variable with a new name; None if only their
            sizes are known.
    """
    owners = owner_names(old, new)
    differing = differing_rows(old.ledger, new.ledger)
    from footprint.release.renames import evenly_named, evenly_touched  # noqa: PLC0415 # a check may compare nothing

    before, now, uneven = evenly_named(old, new, *differing, owners)
    before, now = evenly_touched(old, new, before, now, owners)
    pairs = paired_rows(before, now, owners, is_same)
    is_predicted = old.source == new.source == "prediction"
    changes = [change for pair in pairs if (change := _change(*pair, owners, is_predicted=is_predicted))]
    changes.sort(key=_order)
    changed = _owner_changes(old, new, owners, changes, old_spreads.owners, new_spreads.owners)
    return Comparison(
        old,
        new,
        count,
        tuple(_total_changes(old, new, old_spreads, new_spreads)),
        tuple(changed),
        tuple(changes),
        len(old.ledger) - len(differing[0]) + len(pairs) - len(changes),
        tuple(_only_in(new, old, uneven.values(), {now: before for before, now in owners.items()})),
        tuple(_only_in(old, new, uneven, owners)),
        tuple([_with_brought(root, changed) for root in new_roots(new, set(owners.values()))]),
        tuple(uneven.values()),
        _member_changes(old.members, new.members),
    )


def _member_changes(old: "tuple[GroupMember, ...]", new: "tuple[GroupMember, ...]") -> "tuple[MemberChange, ...]":
    if not old and not new:
        return ()
    from footprint.release.member_changes import member_changes  # noqa: PLC0415 # few audits are of groups

    return member_changes(old, new)


def _is_of_threads(row: Row | RowChange) -> bool:
    return row.kind is MemoryKind.TLS and (row.section or "").endswith(" of threads")


def _loaders(side: "Audit") -> set[str]:
    return {file_name(owner) for owner in {row.owner for row in side.ledger} if _LOADER.search(owner)}


def _order(change: RowChange) -> tuple[object, ...]:
    place = (change.owner, change.section or "", change.symbol or "", change.name or "", change.status, change.kind)
    return (-abs(change.delta_bytes), -abs(change.mapped_delta_bytes), *place)


# --- Owners -----------------------------------------------------------------------------------------------------------


def _with_brought(root: NewRoot, changed: Iterable[OwnerChange]) -> NewRoot:
    """Add to a new library what came with it, itself included."""
    brought = [owner.delta_bytes for owner in changed if root.owner in {owner.owner, owner.came_with}]
    return root._replace(delta_bytes=sum(brought), brought_count=max(1, len(brought)))


def _owner_changes(
    old: "Audit",
    new: "Audit",
    names: dict[str, str],
    changes: Iterable[RowChange],
    old_spreads: Mapping[str, Spread],
    new_spreads: Mapping[str, Spread],
) -> list[OwnerChange]:
    # Only owners with a changed row: adding up all rows would take longer than everything else here.
    touched = {
        name for change in changes for name in (change.owner, change.before[0] if change.before else change.owner)
    }
    touched |= {owner for owner, name in names.items() if name in touched or owner in touched}
    touched |= {names[owner] for owner in touched if owner in names}
    before, now = _rows_by_owner(old.ledger, touched), _rows_by_owner(new.ledger, touched)
    held_by = {linked.path: linked.held_by for linked in old.objects}
    brought = came_with(new, set(names.values()))
    owners: list[tuple[str | None, str | None]] = [(owner, names.get(owner)) for owner in before]
    owners += [(None, owner) for owner in now.keys() - set(names.values())]
    changed = []
    for owner, new_owner in owners:
        old_rows = [] if owner is None else before[owner]
        new_rows = [] if new_owner is None else now[new_owner]
        was, sums = _sums(old_rows), _sums(new_rows)
        if owner and new_owner and was == sums:
            continue
        is_known = was[0] is not None and sums[0] is not None
        is_noise = None
        if old_spreads and new_spreads and is_known:
            # Without the owner, a run holds 0.
            is_noise = overlap(old_spreads.get(owner or "", NO_MEMORY), new_spreads.get(new_owner or "", NO_MEMORY))
        shown = new_owner or owner or ""
        kinds = map(attrgetter("kind"), old_rows or new_rows)
        changed.append(
            OwnerChange(
                shown,
                owner,
                is_gone=new_owner is None,
                is_object=is_file(owner or shown) and not OF_OBJECTS.isdisjoint(kinds),
                old_bytes=was[0] if is_known else None,
                new_bytes=sums[0] if is_known else None,
                old_mapped_bytes=was[1],
                new_mapped_bytes=sums[1],
                old_writable_bytes=was[2],
                new_writable_bytes=sums[2],
                left_with=_left_with(owner, held_by, names) if owner and new_owner is None else None,
                came_with=None if owner else brought.get(shown),
                is_noise=is_noise,
            )
        )
    changed.sort(key=lambda c: (-abs(c.delta_bytes), -abs(c.new_mapped_bytes - c.old_mapped_bytes), c.owner))
    return changed


def _left_with(owner: str, held_by: dict[str, str | None], names: dict[str, str]) -> str | None:
    """Return the object that an owner left with: the last one of its holders that is gone too."""
    gone = list(takewhile(lambda holder: holder not in names, holders_of(owner, held_by)))
    return gone[-1] if gone else None


def _rows_by_owner(rows: Sequence[Row], owners: Container[str]) -> dict[str, list[Row]]:
    by_owner: dict[str, list[Row]] = {}
    for owner, row in zip(map(itemgetter(0), rows), rows, strict=True):
        if owner in owners:
            by_owner.setdefault(owner, []).append(row)
    return by_owner


def _sums(rows: Sequence[Row]) -> tuple[int | None, int, int]:
    """Add up the private, mapped and mapped writable bytes of an owner; None where private bytes are not known."""
    sums = sum_rows(rows)
    is_known = None not in map(attrgetter("bytes"), rows)
    return sums.private_bytes if is_known else None, sums.mapped_bytes, sums.writable_bytes


# --- Rows -------------------------------------------------------------------------------------------------------------


def _change(before: Row | None, now: Row | None, owners: dict[str, str], *, is_predicted: bool) -> RowChange | None:
    """Return what happened to a row; None if it is the same in the same place."""
    row = now or before
    if row is None:
        return None
    status, was = _status(before, now, owners), None
    if before and now:
        is_as_before = before[5:7] == now[5:7] and before.is_writable is now.is_writable
        if status is RowStatus.CHANGED and is_as_before:
            return None
        if status is not RowStatus.CHANGED:
            was = FormerPlace(before.owner, before.section, before.symbol or before.name)
        elif is_predicted and row.symbol is not None and before.mapped_bytes == now.mapped_bytes:
            status = RowStatus.SHIFTED
        elif row.symbol is not None and before.bytes == 0 and now.bytes and before.mapped_bytes == now.mapped_bytes:
            status = RowStatus.TOUCHED
    is_known = all(total.bytes is not None for total in (before, now) if total)
    return RowChange(
        status,
        row.owner,
        row.kind,
        row.section,
        row.symbol,
        row.name,
        (before.bytes if before else 0) if is_known else None,
        (now.bytes if now else 0) if is_known else None,
        before.mapped_bytes if before else 0,
        now.mapped_bytes if now else 0,
        was,
        row.is_writable,
        (before or row).is_writable,
    )


def _status(before: Row | None, now: Row | None, owners: dict[str, str]) -> RowStatus:
    if before is None:
        return RowStatus.ADDED
    if now is None:
        return RowStatus.REMOVED
    if (owners.get(before.owner, before.owner), before.section) != (now.owner, now.section):
        return RowStatus.MOVED
    if before.symbol == now.symbol or before.symbol is None or now.symbol is None:
        return RowStatus.CHANGED
    is_renamed = comparable_name(before.symbol) != comparable_name(now.symbol)
    return RowStatus.RENAMED if is_renamed else RowStatus.CHANGED


# --- Totals and findings ----------------------------------------------------------------------------------------------


def _total_changes(old: "Audit", new: "Audit", old_spreads: Spreads, new_spreads: Spreads) -> Iterable[TotalChange]:
    noise = {
        name: None if before is None or now is None else overlap(before, now)
        for name, before, now in (
            ("private", old_spreads.private, new_spreads.private),
            ("per_process", old_spreads.per_process, new_spreads.per_process),
        )
    }
    figures = new.figures
    for figure, before in old.figures.items():
        now = figures[figure]
        if before.bytes is not None or now.bytes is not None:
            name = figure.removesuffix("_bytes")
            yield TotalChange(name, before, now, noise.get(name))


_OF_VARIABLES: Final = frozenset({Fact.LEDGER, Fact.VARIABLES})


def covers(audit: "Audit", rule: str) -> bool:
    """Return whether a rule was run for an audit: only then does a missing finding mean that there is none."""
    if audit.searched_rules and fact_of(rule) is not Fact.HEAP:
        return any(searched_rule.rule == rule for searched_rule in audit.searched_rules)
    return covers_heap(audit) if fact_of(rule) is Fact.HEAP else covers_files(audit)


def covers_heap(audit: "Audit") -> bool:
    """Return whether the rules that read an allocator profile were run for an audit."""
    return audit.heap is not None


def covers_files(audit: "Audit") -> bool:
    """Return whether the rules that read the files of a process were run for an audit."""
    return audit.is_searched or any(fact_of(finding.rule) is not Fact.HEAP for finding in audit.findings)


def _only_in(audit: "Audit", other: "Audit", uneven: Container[str], names: Mapping[str, str]) -> Iterable[Finding]:
    """Return the findings that the other audit lacks although it covers their rules; folders make no difference.

    Those on variables of objects whose symbols only one audit knows are left out. `names` has the names that owners
    have in the other audit.
    """
    for finding, partner in paired_findings(audit.findings, other.findings, names):
        is_uneven = finding.object_path in uneven and fact_of(finding.rule) in _OF_VARIABLES
        if partner is None and covers(other, finding.rule) and not is_uneven:
            yield finding
