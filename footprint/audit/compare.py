"""What changed between two audits: by owner, section and symbol, and what that is at N processes.

Rows are matched from the strictest likeness to the loosest, so that the noise of a build (numbers in names, other
folders) is no change: the same linker name in the same section; the same name but for what compilers number; the same
name elsewhere (`moved`); the same size under another name, where nothing else could be meant (`renamed`), and contents
and declaration do not speak against it.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.audit.audit import Audit
from footprint.audit.finding import HEAP_AT_START, Finding
from footprint.audit.layout import OF_OBJECTS, Kind, file_name, is_file
from footprint.audit.ledger import Row
from footprint.audit.spread import Spread
from footprint.audit.totals import Total
from footprint.elf.names import normalised
from footprint.errors import Note

__all__ = (
    "ONE_START",
    "Change",
    "Comparison",
    "OwnerChange",
    "Spreads",
    "Status",
    "TotalChange",
    "comparable_name",
    "compare",
    "was_looked_into",
)


class Status(StrEnum):
    """What became of a row."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    RENAMED = "renamed"
    SHIFTED = "shifted"
    """As large as before, but in other pages: told of predictions only, where nothing else can make a difference."""


class Change(NamedTuple):
    """One row that differs. What it is now, or was where it is gone.

    Attributes:
        status: What became of it.
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
        is_writable: Whether the range counts into `mapped_writable_bytes`.
        was_writable: Whether it did before.
    """

    status: Status
    owner: str
    kind: Kind
    section: str | None
    symbol: str | None
    name: str | None
    old_bytes: int | None
    new_bytes: int | None
    old_mapped_bytes: int
    new_mapped_bytes: int
    before: tuple[str, str | None, str | None] | None = None
    is_writable: bool = True
    was_writable: bool = True

    @property
    def delta_bytes(self) -> int:
        """Give how much more is private now; where that is not known, how much more is mapped writable."""
        if self.old_bytes is None or self.new_bytes is None:
            return self.new_writable_bytes - self.old_writable_bytes
        return self.new_bytes - self.old_bytes

    @property
    def old_writable_bytes(self) -> int:
        """Give what of its virtual size was writable before."""
        return self.old_mapped_bytes if self.was_writable else 0

    @property
    def new_writable_bytes(self) -> int:
        """Give the same now."""
        return self.new_mapped_bytes if self.is_writable else 0

    @property
    def mapped_delta_bytes(self) -> int:
        """Give how much more is mapped now."""
        return self.new_mapped_bytes - self.old_mapped_bytes


class OwnerChange(NamedTuple):
    """All rows of one owner together; an owner that is not there holds 0.

    Attributes:
        owner: Its name now, or before where it is gone.
        old_owner: Its name before, where it is another; None where it was not there.
        is_gone: Whether it is not there any more.
        is_object: Whether it is a file: the program or a library.
        old_bytes: Private bytes before; None where only virtual sizes are known.
        new_bytes: The same now.
        old_mapped_bytes: Virtual size before.
        new_mapped_bytes: The same now.
        old_writable_bytes: What of that was writable.
        new_writable_bytes: The same now.
        left_with: The path of the object it left with, where it was there only for that one.
        is_noise: Whether the starts of both runs overlap in it, so that it need not be a change; None where it was
            measured once only.
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
    is_noise: bool | None = None

    @property
    def is_new(self) -> bool:
        """Tell whether it was not there before."""
        return self.old_owner is None

    @property
    def delta_bytes(self) -> int:
        """Give how much more is private now; where that is not known, how much more is mapped writable."""
        if self.old_bytes is None or self.new_bytes is None:
            return self.new_writable_bytes - self.old_writable_bytes
        return self.new_bytes - self.old_bytes


class TotalChange(NamedTuple):
    """One figure of the whole, before and now.

    Attributes:
        name: Which of the figures: a field of `Totals`.
        old: Before.
        new: Now.
        is_noise: Whether the starts of both runs overlap in it, so that it need not be a change; None where it was
            measured once only.
    """

    name: str
    old: Total
    new: Total
    is_noise: bool | None = None

    @property
    def delta_bytes(self) -> int | None:
        """Give how much more it is now; None where one of them is not known."""
        return None if self.old.bytes is None or self.new.bytes is None else self.new.bytes - self.old.bytes


class Comparison(NamedTuple):
    """What changed between two audits.

    Attributes:
        old: The audit before.
        new: The audit now.
        count: At how many processes.
        totals: The figures of the whole that at least one of them knows.
        owners: The owners that differ, the largest change first.
        changes: The rows that differ, the largest change first; they add up to the differences of the totals.
        same_count: How many rows do not differ.
        new_findings: What was found now and not before; nothing where one of them was not looked into for findings.
        fixed_findings: What was found before and not now; the same.
    """

    old: Audit
    new: Audit
    count: int  # type: ignore[assignment] # tuple.count is not missed
    totals: tuple[TotalChange, ...]
    owners: tuple[OwnerChange, ...]
    changes: tuple[Change, ...]
    same_count: int
    new_findings: tuple[Finding, ...]
    fixed_findings: tuple[Finding, ...]

    @property
    def notes(self) -> tuple[Note, ...]:
        """Give the notes of both; where each says another thing of one subject, with the side that says it."""
        sides = [dict.fromkeys(side.notes) for side in (self.old, self.new)]
        told = {(one.slug, one.subject) for one in sides[0].keys() - sides[1]}
        told &= {(one.slug, one.subject) for one in sides[1].keys() - sides[0]}
        return tuple(
            one._replace(subject=f"{one.subject}, {when}") if (one.slug, one.subject) in told else one
            for notes, when in ((sides[0], "before"), ([one for one in sides[1] if one not in sides[0]], "now"))
            for one in notes
        )

    def total(self, name: str) -> TotalChange | None:
        """Give one figure of the whole; None where neither knows it."""
        return next((one for one in self.totals if one.name == name), None)


class Spreads(NamedTuple):
    """How far the starts of a run differ: in the whole, and by owner in its private memory."""

    private: Spread | None = None
    per_process: Spread | None = None
    owners: Mapping[str, Spread] = MappingProxyType({})


ONE_START: Final = Spreads()


def compare(
    old: Audit,
    new: Audit,
    count: int = 1,
    old_spreads: Spreads = ONE_START,
    new_spreads: Spreads = ONE_START,
    is_same: Callable[[Row, Row], bool] | None = None,
) -> Comparison:
    """Compare two audits.

    Args:
        old: The audit before.
        new: The audit now.
        count: At how many processes.
        old_spreads: How far the starts differ that the old one is the middle of.
        new_spreads: The same of the new one.
        is_same: Tells of two variables of one size whether they may be one that is called otherwise now; None for
            where nothing but the size is known of them.
    """
    owners = _owner_names(old, new)
    before, now = _differing(old.ledger, new.ledger)
    pairs = _matched(before, now, owners, is_same)
    is_predicted = old.source == new.source == "prediction"
    changes = [one for pair in pairs if (one := _change(*pair, owners, is_predicted=is_predicted))]
    changes.sort(key=_order)
    return Comparison(
        old,
        new,
        count,
        tuple(_total_changes(old, new, old_spreads, new_spreads)),
        tuple(_told_noise(_owner_changes(old, new, owners, changes), old_spreads.owners, new_spreads.owners)),
        tuple(changes),
        len(old.ledger) - len(before) + len(pairs) - len(changes),
        tuple(_only_in(new, old)),
        tuple(_only_in(old, new)),
    )


def _order(change: Change) -> tuple[object, ...]:
    place = (change.owner, change.section or "", change.symbol or "", change.name or "", change.status, change.kind)
    return (-abs(change.delta_bytes), -abs(change.mapped_delta_bytes), *place)


# --- Owners -----------------------------------------------------------------------------------------------------------

_VERSION_IN_NAME: Final = re.compile(r"[-.]?[0-9][0-9.]*(?=\.so\b|$)|(?<=\.so)[.0-9]+$|(?<=\.cpython-)[0-9]+")


_NOTHING: Final = Spread(0, 0, 0)


def _owner_names(old: Audit, new: Audit) -> dict[str, str]:
    """Give for owners of the old audit what they are called in the new one, where they are there.

    By path; by file name; by file name without version; and the one that is left over on both sides and no library: a
    program that is called otherwise now.
    """
    before, now = (set(map(itemgetter(0), audit.ledger)) for audit in (old, new))
    names = {owner: owner for owner in before & now}
    for key in (file_name, _stem):
        names |= _one_to_one(before - names.keys(), now - set(names.values()), key)
    gone, added = (
        _programs(audit, left) for audit, left in ((old, before - names.keys()), (new, now - set(names.values())))
    )
    if len(gone) == len(added) == 1:
        names[gone[0]] = added[0]
    return names


def _programs(audit: Audit, owners: Container[str]) -> list[str]:
    """Give those that have code or data of their own and are no library: a file that is only mapped is no program."""
    found = {row.owner: None for row in audit.ledger if row.owner in owners and row.kind in OF_OBJECTS}
    return [owner for owner in found if is_file(owner) and ".so" not in file_name(owner)]


def _one_to_one(before: Iterable[str], now: Iterable[str], key: Callable[[str], str | None]) -> dict[str, str]:
    """Pair what has the same key, where it is the only one on either side."""
    sides: list[dict[str, list[str]]] = [{}, {}]
    for side, owners in zip(sides, (before, now), strict=True):
        for owner in owners:
            found = key(owner)
            if found is not None:
                side.setdefault(found, []).append(owner)
    return {
        owners[0]: sides[1][found][0]
        for found, owners in sides[0].items()
        if len(owners) == 1 and len(sides[1].get(found, ())) == 1
    }


def _stem(owner: str) -> str | None:
    """Give the file name of a library without its version; None for what is none."""
    name = file_name(owner)
    return _VERSION_IN_NAME.sub("", name) if is_file(owner) and ".so" in name else None


def _owner_changes(old: Audit, new: Audit, names: dict[str, str], changes: Iterable[Change]) -> list[OwnerChange]:
    # Only of owners in whose rows anything differs: adding up all of them takes longer than all else here.
    touched = {one for change in changes for one in (change.owner, change.before[0] if change.before else change.owner)}
    touched |= {owner for owner, name in names.items() if name in touched or owner in touched}
    touched |= {names[owner] for owner in touched if owner in names}
    before, now = _sums_by_owner(old.ledger, touched), _sums_by_owner(new.ledger, touched)
    held_by = {one.path: one.held_by for one in old.objects}
    found = []
    for owner, was in before.items():
        new_name = names.get(owner)
        sums = now[new_name] if new_name is not None else _NO_SUMS
        if new_name is None or was[:3] != sums[:3]:
            left_with = _left_with(owner, held_by, names) if new_name is None else None
            found.append(
                _owner_change(new_name or owner, owner, was, sums, is_gone=new_name is None, left_with=left_with)
            )
    added = now.keys() - set(names.values())
    found += [_owner_change(owner, None, _NO_SUMS, now[owner], is_gone=False) for owner in added]
    found.sort(key=lambda one: (-abs(one.delta_bytes), -abs(one.new_mapped_bytes - one.old_mapped_bytes), one.owner))
    return found


def _owner_change(
    owner: str, old_owner: str | None, old: "_Sums", new: "_Sums", *, is_gone: bool, left_with: str | None = None
) -> OwnerChange:
    is_known = old.bytes is not None and new.bytes is not None
    return OwnerChange(
        owner,
        old_owner,
        is_gone,
        (new if old_owner is None else old).is_object,
        old.bytes if is_known else None,
        new.bytes if is_known else None,
        old.mapped_bytes,
        new.mapped_bytes,
        old.writable_bytes,
        new.writable_bytes,
        left_with,
    )


def _told_noise(
    changes: Iterable[OwnerChange], old: Mapping[str, Spread], new: Mapping[str, Spread]
) -> Iterable[OwnerChange]:
    """Say of each owner whether the starts of both runs overlap in it; one that no start has holds nothing in each."""
    for one in changes:
        if not old or not new or one.old_bytes is None or one.new_bytes is None:
            yield one
            continue
        before = old.get(one.old_owner, _NOTHING) if one.old_owner is not None else _NOTHING
        now = _NOTHING if one.is_gone else new.get(one.owner, _NOTHING)
        yield one._replace(is_noise=_overlap(before, now))


def _left_with(owner: str, held_by: dict[str, str | None], names: dict[str, str]) -> str | None:
    """Give the object whose going took an owner along: the last of its holders that is gone too."""
    found = None
    holder = held_by.get(owner)
    # A saved audit may say that objects hold each other.
    seen = {owner}
    while holder is not None and holder not in names and holder not in seen:
        seen.add(holder)
        found = holder
        holder = held_by.get(holder)
    return found


class _Sums(NamedTuple):
    """The private, mapped and mapped writable bytes of an owner, and whether it is a file with code or data."""

    bytes: int | None
    mapped_bytes: int
    writable_bytes: int
    is_object: bool


_NO_SUMS: Final = _Sums(0, 0, 0, is_object=False)


def _sums_by_owner(rows: Iterable[Row], owners: Container[str]) -> dict[str, _Sums]:
    sums: dict[str, _Sums] = {}
    for row in rows:
        if row.owner not in owners:
            continue
        own_bytes, mapped_bytes, writable_bytes, is_object = sums.get(row.owner, _NO_SUMS)
        sums[row.owner] = _Sums(
            None if own_bytes is None or row.bytes is None else own_bytes + row.bytes,
            mapped_bytes + row.mapped_bytes,
            writable_bytes + row.mapped_bytes * row.is_writable,
            is_object or (row.kind in OF_OBJECTS and is_file(row.owner)),
        )
    return sums


# --- Rows -------------------------------------------------------------------------------------------------------------

_Pair = tuple[Row | None, Row | None]
_Key = Callable[[Row], Hashable]
# What compilers number anew when something before it changes, or a seed does: lambdas, types without a name, statics of
# one name in one function, crates of Rust; and hashes.
_NUMBERED: Final = (
    (re.compile(r"17h[0-9a-f]{16}E"), "17hE"),
    (re.compile(r"Cs[0-9A-Za-z]{1,16}_"), "Cs_"),
    (re.compile(r"E[0-9]{1,6}_"), "E_"),
    (re.compile(r"Ut[0-9]{1,6}_"), "Ut_"),
    (re.compile(r"(?<=[A-Za-z0-9])(?:_[0-9]|__[0-9]{1,6}_)\Z"), ""),
    (re.compile(r"_GLOBAL__([A-Z])_[0-9A-Za-z_.]*?[0-9A-Fa-f]{8}(?:_[0-9A-Fa-f]{8})*"), r"_GLOBAL__\1_"),
)
_DIGITS: Final = re.compile(r"[0-9]+")
# A smaller variable under another name is most likely another variable.
_LEAST_RENAMED_BYTES: Final = 256


def comparable_name(symbol: str) -> str:
    """Give a linker name without what differs between two builds of one source."""
    name = normalised(symbol)
    if name.startswith(("_Z", "_R", "_GLOBAL__")):
        for pattern, kept in _NUMBERED:
            name = pattern.sub(kept, name)
    return name


# How far the order of rows may be off before what is the same is looked for by its names.
_MOST_AHEAD: Final = 16


def _differing(before: Sequence[Row], now: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Give the rows of both sides that are not the same from end to end in the same order, as nearly all are."""
    old_rest: list[Row] = []
    new_rest: list[Row] = []
    at = old_at = 0
    while old_at < len(before) and at < len(now):
        row, other = before[old_at], now[at]
        if row == other:
            old_at += 1
            at += 1
            continue
        # One of them is new or gone, or both have changed.
        ahead = next((n for n in range(1, _MOST_AHEAD) if before[old_at + n : old_at + n + 1] == (other,)), None)
        past = next((n for n in range(1, _MOST_AHEAD) if now[at + n : at + n + 1] == (row,)), None)
        old_step, step = (1, 1) if ahead is None and past is None else (ahead or 0, 0) if past is None else (0, past)
        old_rest += before[old_at : old_at + old_step]
        new_rest += now[at : at + step]
        old_at += old_step
        at += step
    return [*old_rest, *before[old_at:]], [*new_rest, *now[at:]]


class _Matcher:
    """Pairs rows before with rows now, a likeness after the other; what was paired is not looked at again."""

    def __init__(self, before: Sequence[Row], now: Sequence[Row]) -> None:
        self._before = before
        self._now = now
        self._old_left = dict.fromkeys(range(len(before)))
        self._new_left = dict.fromkeys(range(len(now)))
        self._pairs: list[_Pair] = []

    def match(
        self, old_key: _Key, new_key: _Key, *, is_unique: bool, is_same: Callable[[Row, Row], bool] | None = None
    ) -> None:
        """Pair what has the same key; where it must be unique, only what is the only one on both sides."""
        news: dict[Hashable, list[int]] = {}
        for place in self._new_left:
            key = new_key(self._now[place])
            if key is not None:
                news.setdefault(key, []).append(place)
        olds: dict[Hashable, list[int]] = {}
        for place in self._old_left:
            key = old_key(self._before[place])
            if key in news:
                olds.setdefault(key, []).append(place)
        for key, places in olds.items():
            if not is_unique or len(places) == len(news[key]) == 1:
                for old_place, new_place in _in_order(places, news[key], self._before, self._now):
                    if is_same is not None and not is_same(self._before[old_place], self._now[new_place]):
                        continue
                    self._pairs.append((self._before[old_place], self._now[new_place]))
                    del self._old_left[old_place], self._new_left[new_place]

    def pairs(self) -> list[_Pair]:
        """Give all pairs, and what stands alone."""
        gone = [(self._before[place], None) for place in self._old_left]
        new = [(None, self._now[place]) for place in self._new_left]
        return [*self._pairs, *gone, *new]


def _matched(
    before: Sequence[Row],
    now: Sequence[Row],
    owners: dict[str, str],
    is_same: Callable[[Row, Row], bool] | None,
) -> list[_Pair]:
    """Pair each row before with what it is now; rows without another stand alone."""

    def owner(row: Row) -> str:
        return owners.get(row.owner, row.owner)

    found = _Matcher(before, now)
    found.match(_exact(owner), _exact(_own), is_unique=False)
    found.match(_same_but_numbers(owner), _same_but_numbers(_own), is_unique=False)
    found.match(_same_symbol(owner), _same_symbol(_own), is_unique=True)
    found.match(_same_symbol(None), _same_symbol(None), is_unique=True)
    found.match(_same_size(owner), _same_size(_own), is_unique=True, is_same=is_same)
    return found.pairs()


def _own(row: Row) -> str:
    return row.owner


def _exact(owner: Callable[[Row], str]) -> _Key:
    return lambda row: (owner(row), row[1:5], row.is_writable)


def _same_but_numbers(owner: Callable[[Row], str]) -> _Key:
    def key(row: Row) -> Hashable:
        # Without a symbol a name may count something: `[kernel stacks of 7 threads]`.
        name = comparable_name(row.symbol) if row.symbol is not None else _DIGITS.sub("#", row.name or "")
        return (owner(row), row.kind, row.section, row.symbol is None, name)

    return key


def _same_symbol(owner: Callable[[Row], str] | None) -> _Key:
    def key(row: Row) -> Hashable:
        if row.symbol is None:
            return None
        # What a function asked for is no variable that has its name.
        return (owner and owner(row), comparable_name(row.symbol), row.kind is Kind.HEAP)

    return key


def _same_size(owner: Callable[[Row], str]) -> _Key:
    def key(row: Row) -> Hashable:
        # Functions ask for round sizes: that two ask for as much is chance.
        if row.symbol is None or row.mapped_bytes < _LEAST_RENAMED_BYTES or row.kind is Kind.HEAP:
            return None
        return (owner(row), row.section, row.mapped_bytes)

    return key


def _in_order(olds: list[int], news: list[int], before: Sequence[Row], now: Sequence[Row]) -> list[tuple[int, int]]:
    """Pair places of one key: first those of the same size, then by size."""
    if len(olds) == len(news) == 1:
        return [(olds[0], news[0])]
    by_size: dict[tuple[int, int | None], list[int]] = {}
    for place in reversed(news):
        by_size.setdefault((now[place].mapped_bytes, now[place].bytes), []).append(place)
    pairs, left = [], []
    for place in olds:
        same = by_size.get((before[place].mapped_bytes, before[place].bytes))
        if same:
            pairs.append((place, same.pop()))
        else:
            left.append(place)
    taken = {place for _, place in pairs}
    rest = [place for place in news if place not in taken]
    left.sort(key=lambda place: before[place].mapped_bytes)
    rest.sort(key=lambda place: now[place].mapped_bytes)
    return [*pairs, *zip(left, rest, strict=False)]


def _change(before: Row | None, now: Row | None, owners: dict[str, str], *, is_predicted: bool) -> Change | None:
    """Say what became of a row; nothing where it holds what it held, where it stood."""
    row = now or before
    if row is None:
        return None
    status, was = _status(before, now, owners), None
    if before and now:
        is_as_before = before[5:7] == now[5:7] and before.is_writable is now.is_writable
        if status is Status.CHANGED and is_as_before:
            return None
        if status is not Status.CHANGED:
            was = (before.owner, before.section, before.symbol or before.name)
        elif is_predicted and row.symbol is not None and before.mapped_bytes == now.mapped_bytes:
            status = Status.SHIFTED
    is_known = all(one.bytes is not None for one in (before, now) if one)
    return Change(
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


def _status(before: Row | None, now: Row | None, owners: dict[str, str]) -> Status:
    if before is None:
        return Status.ADDED
    if now is None:
        return Status.REMOVED
    if (owners.get(before.owner, before.owner), before.section) != (now.owner, now.section):
        return Status.MOVED
    if before.symbol == now.symbol or before.symbol is None or now.symbol is None:
        return Status.CHANGED
    is_renamed = comparable_name(before.symbol) != comparable_name(now.symbol)
    return Status.RENAMED if is_renamed else Status.CHANGED


# --- Totals and findings ----------------------------------------------------------------------------------------------


def _total_changes(old: Audit, new: Audit, old_spreads: Spreads, new_spreads: Spreads) -> Iterable[TotalChange]:
    noise = {
        "private": _overlap(old_spreads.private, new_spreads.private),
        "per_process": _overlap(old_spreads.per_process, new_spreads.per_process),
    }
    for name in old.totals._fields:
        if name == "of_which":
            continue
        before, now = getattr(old.totals, name), getattr(new.totals, name)
        if before.bytes is not None or now.bytes is not None:
            yield TotalChange(name, before, now, noise.get(name))


def _overlap(old: Spread | None, new: Spread | None) -> bool | None:
    if old is None or new is None:
        return None
    return old.min_bytes <= new.max_bytes and new.min_bytes <= old.max_bytes


def was_looked_into(audit: Audit, rule: str | None = None) -> bool:
    """Tell whether a rule was applied, or those that read files: what has no findings without that may have some."""
    if rule == HEAP_AT_START:
        return audit.heap is not None
    return bool(audit.objects) or any(one.rule != HEAP_AT_START for one in audit.findings)


def _only_in(audit: Audit, other: Audit) -> Iterable[Finding]:
    """Give the findings that the other was looked into for, and lacks; the same thing in another folder is the same."""
    known = Counter(one.key for one in other.findings)
    for one in audit.findings:
        if known[one.key]:
            known[one.key] -= 1
        elif was_looked_into(other, one.rule):
            yield one
