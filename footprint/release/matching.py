"""Match the owners and rows of two audits.

Rows are matched from the strictest criterion to the loosest, so that the noise of a build (numbers in names, other
folders) is no change: the same linker name in the same section; the same name except for numbers of the compiler; the
same name elsewhere; the same size under another name, if only one row can be meant, and its contents and declaration do
not contradict.
"""

import re
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from footprint.elf.names import normalised
from footprint.model.finding import Finding
from footprint.model.row import OF_OBJECTS, MemoryKind, Row, file_name, is_file

if TYPE_CHECKING:
    from footprint.model.audit import Audit


# A number is looked at from its first digit only, and a version from its end: names may be very long.
_VERSION_IN_NAME: Final = re.compile(
    r"(?:-|(?<![0-9.])\.*)[0-9][0-9.]*(?=\.so\b|$)|(?<=\.so)[.0-9]+$|(?<=\.cpython-)[0-9]+"
)
_REVERSED_VERSION: Final = re.compile(r"(?:[0-9]+v?[-._])*")
_VERSION_PAST_SONAME: Final = re.compile(r"(?<=\.so)(\.[0-9]+)(?:\.[0-9]+)+$")


def is_same_program(name: str, other: str) -> bool:
    """Return whether two file names are those of one program, apart from its version."""
    return _without_version(name) == _without_version(other)


def _without_version(name: str) -> str:
    match = _REVERSED_VERSION.match(name[::-1])
    return name[: len(name) - match.end()] if match else name


def soname_of(owner: str, audit: "Audit") -> str:
    """Return the soname of an owner; its file name up to the first number of its version, if no object tells."""
    soname = next((linked.name for linked in audit.objects if linked.path == owner), None)
    return soname or _VERSION_PAST_SONAME.sub(r"\1", file_name(owner))


def named_owners(name: str, audit: "Audit") -> frozenset[str]:
    """Return the owners that a name stands for: a path, a file name, a soname, or a pattern of one of these.

    The soname `libz.so.1` stands for the file `libz.so.1.2.13`, too. `[heap]` is a name, not a pattern.
    """
    sonames = {linked.path: linked.name for linked in audit.objects}
    is_pattern = not name.startswith("[") and not set(name).isdisjoint("*?[")
    version = re.compile(re.escape(name) + r"(?:\.[0-9]+)+") if ".so" in name else None
    owners = set()
    for owner in dict.fromkeys((*map(itemgetter(0), audit.ledger), *sonames)):
        file = file_name(owner)
        names = {owner, file, sonames.get(owner, file)}
        is_named = name in names or (is_pattern and any(fnmatchcase(part, name) for part in names))
        if is_named or (version is not None and version.fullmatch(file)):
            owners.add(owner)
    return frozenset(owners)


def owner_names(old: "Audit", new: "Audit") -> dict[str, str]:
    """Return for the owners of the old audit their names in the new one, if they are there.

    Owners are matched by path; by file name; by file name without version; and if exactly one program is left on each
    side, as a program with a new name.
    """
    before, now = (set(map(itemgetter(0), audit.ledger)) for audit in (old, new))
    names = matched_owners(before, now)
    gone, added = before - names.keys(), now - set(names.values())
    if gone and added:
        old_programs, new_programs = _programs(old, gone), _programs(new, added)
        if len(old_programs) == len(new_programs) == 1:
            names[old_programs[0]] = new_programs[0]
    return names


def matched_owners(before: AbstractSet[str], now: AbstractSet[str]) -> dict[str, str]:
    """Match owners by path, by file name, and libraries by file name without version."""
    return _matched(before, now, (file_name, _stem))


def matched_programs(before: AbstractSet[str], now: AbstractSet[str]) -> dict[str, str]:
    """Match programs by path, by file name, and by file name without version."""
    return _matched(before, now, (file_name, lambda path: _without_version(file_name(path)) or None))


def _matched(
    before: AbstractSet[str], now: AbstractSet[str], keys: Iterable[Callable[[str], str | None]]
) -> dict[str, str]:
    names = {name: name for name in before & now}
    for key in keys:
        names |= _one_to_one(before - names.keys(), now - set(names.values()), key)
    return names


def _programs(audit: "Audit", owners: Container[str]) -> list[str]:
    """Return the owners that have code or data but are no library; files that are only mapped are no programs."""
    files = {row.owner: None for row in audit.ledger if row.owner in owners and row.kind in OF_OBJECTS}
    return [owner for owner in files if is_file(owner) and ".so" not in file_name(owner)]


def _one_to_one(before: Iterable[str], now: Iterable[str], key: Callable[[str], str | None]) -> dict[str, str]:
    """Pair owners with the same key, if the key is unique on both sides."""
    sides: list[dict[str, list[str]]] = [{}, {}]
    for side, owners in zip(sides, (before, now), strict=True):
        for owner in owners:
            match = key(owner)
            if match is not None:
                side.setdefault(match, []).append(owner)
    return {
        owners[0]: sides[1][match][0]
        for match, owners in sides[0].items()
        if len(owners) == 1 and len(sides[1].get(match, ())) == 1
    }


def _stem(owner: str) -> str | None:
    """Return the file name of a library without its version; None for other files."""
    name = file_name(owner)
    return _VERSION_IN_NAME.sub("", name) if is_file(owner) and ".so" in name else None


Pair = tuple[Row | None, Row | None]
# Numbers that compilers choose anew when earlier code or a seed changes: those of lambdas, of types without a name, of
# statics with one name in one function, of crates of Rust; and hashes.
_NUMBERED: Final = (
    (re.compile(r"17h[0-9a-f]{16}E"), "17hE"),
    (re.compile(r"Cs[0-9A-Za-z]{1,16}_"), "Cs_"),
    (re.compile(r"E[0-9]{1,6}_"), "E_"),
    (re.compile(r"Ut[0-9]{1,6}_"), "Ut_"),
    (re.compile(r"(?<=[A-Za-z0-9])(?:_[0-9]|__[0-9]{1,6}_)\Z"), ""),
    (re.compile(r"_GLOBAL__([A-Z])_[0-9A-Za-z_.]*?[0-9A-Fa-f]{8}(?:_[0-9A-Fa-f]{8})*"), r"_GLOBAL__\1_"),
)
_DIGITS: Final = re.compile(r"[0-9]+")
# A smaller variable with another name is most likely another variable.
LEAST_RENAMED_BYTES: Final = 256


# A comparison asks three times for each name; more names than this are not kept.
@lru_cache(1 << 16)
def comparable_name(symbol: str) -> str:
    """Return a linker name without what differs between two builds of one source."""
    name = normalised(symbol)
    if name.startswith(("_Z", "_R", "_GLOBAL__")):
        for pattern, kept in _NUMBERED:
            name = pattern.sub(kept, name)
    return name


# How many rows two ledgers may be apart before rows are matched by name.
_MOST_AHEAD: Final = 16


def differing_rows(before: Sequence[Row], now: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows of both sides that differ; nearly all rows are the same, in the same order."""
    old_rest: list[Row] = []
    new_rest: list[Row] = []
    at = old_at = 0
    while old_at < len(before) and at < len(now):
        row, other = before[old_at], now[at]
        if row is other or row == other:
            old_at += 1
            at += 1
            continue
        # One of the two is new or gone, or both have changed.
        ahead = next((n for n in range(1, _MOST_AHEAD) if before[old_at + n : old_at + n + 1] == (other,)), None)
        past = next((n for n in range(1, _MOST_AHEAD) if now[at + n : at + n + 1] == (row,)), None)
        old_step, step = (1, 1) if ahead is None and past is None else (ahead or 0, 0) if past is None else (0, past)
        old_rest += before[old_at : old_at + old_step]
        new_rest += now[at : at + step]
        old_at += old_step
        at += step
    return [*old_rest, *before[old_at:]], [*new_rest, *now[at:]]


def paired_rows(
    before: Sequence[Row],
    now: Sequence[Row],
    owners: dict[str, str],
    is_same: Callable[[Row, Row], bool] | None,
) -> list[Pair]:
    """Pair each row before with its row now, criterion by criterion; rows without a partner stand alone.

    `owners` has the names of old owners now; `is_same` says whether two variables of one size may be one variable with
    a new name.
    """
    pairs: list[Pair] = []
    old_left, new_left = dict(enumerate(before)), dict(enumerate(now))
    for key_of, is_unique in _CRITERIA:
        news: dict[Hashable, list[int]] = {}
        for place, row in new_left.items():
            if (key := key_of(row, row.owner)) is not None:
                news.setdefault(key, []).append(place)
        olds: dict[Hashable, list[int]] = {}
        for place, row in old_left.items():
            if (key := key_of(row, owners.get(row.owner, row.owner))) in news:
                olds.setdefault(key, []).append(place)
        for key, places in olds.items():
            if is_unique and not len(places) == len(news[key]) == 1:
                continue
            for old_place, new_place in _in_order(places, news[key], before, now):
                row, other = before[old_place], now[new_place]
                if key_of is not _same_size or is_same is None or is_same(row, other):
                    pairs.append((row, other))
                    del old_left[old_place], new_left[new_place]
    return [*pairs, *((row, None) for row in old_left.values()), *((None, row) for row in new_left.values())]


def _exact(row: Row, owner: str) -> Hashable:
    return (owner, row[1:5], row.is_writable)


def _same_but_numbers(row: Row, owner: str) -> Hashable:
    # The name of memory without a symbol may contain a count: `[kernel stacks of 7 threads]`.
    name = comparable_name(row.symbol) if row.symbol is not None else _DIGITS.sub("#", row.name or "")
    return (owner, row.kind, row.section, row.symbol is None, name)


def _same_symbol(row: Row, owner: str | None) -> Hashable:
    if row.symbol is None:
        return None
    # The memory that a function asked for is not a variable of the same name.
    return (owner, comparable_name(row.symbol), row.kind is MemoryKind.HEAP)


def _same_symbol_elsewhere(row: Row, _owner: str) -> Hashable:
    return _same_symbol(row, None)


def _same_size(row: Row, owner: str) -> Hashable:
    # Functions ask for round sizes: two that ask for the same amount are no match.
    if row.symbol is None or row.mapped_bytes < LEAST_RENAMED_BYTES or row.kind is MemoryKind.HEAP:
        return None
    return (owner, row.section, row.mapped_bytes)


# From the strictest to the loosest: what rows with one partner have in common, given a row and the name of its owner
# now; None for a row that has no partner. And whether only one row on each side may have it.
_CRITERIA: Final[tuple[tuple[Callable[[Row, str], Hashable], bool], ...]] = (
    (_exact, False),
    (_same_but_numbers, False),
    (_same_symbol, True),
    (_same_symbol_elsewhere, True),
    (_same_size, True),
)


def _in_order(olds: list[int], news: list[int], before: Sequence[Row], now: Sequence[Row]) -> list[tuple[int, int]]:
    """Pair rows with one key: first those of the same size, then by size."""
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


def finding_key(finding: Finding) -> tuple[str, str, str]:
    """Return what identifies a finding from build to build, in any folder: its rule, kind and subject."""
    # The path of the object is one word, also if a folder has a space in its name.
    subject = finding.subject
    if finding.object_path:
        subject = subject.replace(finding.object_path, file_name(finding.object_path))
    return finding.rule, finding.kind, normalised(" ".join(map(file_name, subject.split(" "))))


def paired_findings(
    findings: Sequence[Finding], others: Iterable[Finding], names: Mapping[str, str]
) -> Iterator[tuple[Finding, Finding | None]]:
    """Pair each finding with one of the others about the same thing in the same file; of several by size.

    `names` has the names that owners have on the other side.
    """
    left: dict[Hashable, list[Finding]] = {}
    for other in sorted(others, key=_about_bytes):
        left.setdefault((finding_key(other), file_name(other.object_path)), []).append(other)
    partners: dict[int, Finding] = {}
    for number, finding in sorted(enumerate(findings), key=lambda item: -_about_bytes(item[1])):
        path = names.get(finding.object_path, finding.object_path)
        if alike := left.get((finding_key(finding), file_name(path))):
            partners[number] = alike.pop()
    return ((finding, partners.get(number)) for number, finding in enumerate(findings))


def _about_bytes(finding: Finding) -> int:
    return finding.about_bytes
