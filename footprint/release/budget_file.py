"""The contents of a budget file: what is limited, by how much, and until when a limit may be exceeded.

The file is TOML, and read elsewhere: here is what it may say.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

from footprint.errors import UsageError
from footprint.findings.registry import rule_names
from footprint.members import Pattern, json_members
from footprint.model.figures import BUDGETED, FIGURES
from footprint.model.finding import CONFIDENCES, Confidence, Finding
from footprint.model.row import MemoryKind
from footprint.units import parse_bytes

__all__ = (
    "Budget",
    "Budgets",
    "CountedFindings",
    "Limit",
    "Waiver",
    "matches",
    "nearest_of",
    "parse_budgets",
    "usually_counted",
)

_TABLES: Final = ("owners", "kinds", "symbols", "retained", "findings")
_KEYS: Final = ("at_processes", "baseline", "reproducible", "budgets", "libraries", "waivers")
LIBRARY_KEYS: Final = ("allow", "deny", "allow_new")
LIMIT_KEYS: Final = ("max", "max_increase")
_FINDING_KEYS: Final = (*LIMIT_KEYS, "least_confidence", "confidence", "least_bytes")
_WAIVER_KEYS: Final = ("budget", "reason", "expires")
_MOST_COUNT: Final = 10**12
_MOST_AMOUNT: Final = 1 << 63
# Limits for patterns of libraries: file names are no longer, and matching is not linear.
_MOST_PATTERNS: Final = 1000
_MOST_PATTERN_CHARS: Final = 255
# How much of a text from the file a message repeats.
_SHOWN_CHARS: Final = 80


class CountedFindings(NamedTuple):
    """Which findings a budget counts.

    Attributes:
        least_confidence: The weakest confidence that counts.
        least_bytes: The smallest saving that counts; of findings that save nothing by themselves, the smallest size.
    """

    least_confidence: Confidence
    least_bytes: int = 0


# The findings that count, if a budget says nothing else: all that can be had of what is certainly there, and only sure
# ones of what may be a mistake.
_USUALLY_COUNTED: Final = {
    "unused-library": CountedFindings(Confidence.LOW, 1),
    "large-static": CountedFindings(Confidence.LOW, 0),
}
_SURE_ONES: Final = CountedFindings(Confidence.HIGH, 0)
_MEDIUM: Final = CONFIDENCES.index(Confidence.MEDIUM)


def usually_counted(rule: str) -> CountedFindings:
    """Return the findings of a rule that count, if a budget says nothing else."""
    return _USUALLY_COUNTED.get(rule, _SURE_ONES)


class Limit(NamedTuple):
    """The limits of one budget; at least one of the three is given. Of two increases the larger one holds.

    Attributes:
        most: The largest value that passes: bytes, or a number of things.
        most_increase: The largest growth since the baseline that passes.
        most_increase_share: The same as a share of the value of the baseline.
    """

    most: int | None = None
    most_increase: int | None = None
    most_increase_share: Fraction | None = None

    def increase_from(self, before: int) -> int:
        """Return how much it may grow since the baseline."""
        share = 0 if self.most_increase_share is None else int(before * self.most_increase_share)
        return max(self.most_increase or 0, share)

    @property
    def needs_baseline(self) -> bool:
        """Return whether it can be checked only against a baseline."""
        return self.most_increase is not None or self.most_increase_share is not None


class Budget(NamedTuple):
    """A budget: one thing with a limit.

    Attributes:
        key: Where it stands in the file, such as `owners."[heap]"`.
        table: `figures`, `owners`, `kinds`, `symbols`, `retained` or `findings`.
        name: The name of the thing in its table.
        limit: The limit.
        counted: For findings: those that count.
        is_of_bytes: For findings: whether the limit is one of their bytes, not of their number.
        line: The line of the file, where that is known.
        owners: The owners that the name stands for, once they are known.
    """

    key: str
    table: str
    name: str
    limit: Limit
    counted: CountedFindings | None = None
    is_of_bytes: bool = False
    line: int | None = None
    owners: frozenset[str] = frozenset()

    def counts(self, finding: Finding) -> bool:
        """Return whether it counts a finding."""
        return finding.rule == self.name and self.counts_as(finding.confidence, finding.about_bytes)

    def counts_as(self, confidence: Confidence, about_bytes: int) -> bool:
        """Return whether it counts findings of its rule of this confidence and size."""
        counted = self.counted or usually_counted(self.name)
        is_sure = CONFIDENCES.index(confidence) <= CONFIDENCES.index(counted.least_confidence)
        return is_sure and about_bytes >= counted.least_bytes

    @property
    def counts_doubtful(self) -> bool:
        """Return whether it counts findings that are doubtful."""
        counted = self.counted or usually_counted(self.name)
        return self.table == "findings" and CONFIDENCES.index(counted.least_confidence) > _MEDIUM


_DayText = Annotated[str, Pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


@json_members("reason expires=expires_text is_expired")
class Waiver(NamedTuple):
    """The permission to exceed a budget for a time.

    Attributes:
        budget: The key of the budget.
        reason: Why it was given.
        expires: The last day on which it holds.
        is_expired: Whether that day is over.
    """

    budget: str
    reason: str
    expires: date
    is_expired: bool = False

    @property
    def expires_text(self) -> _DayText:
        """Return the last day on which it holds."""
        return self.expires.isoformat()


class Budgets(NamedTuple):
    """The contents of a budget file.

    Attributes:
        file: The path of the file.
        at_processes: The number of processes for `total_at_count_bytes`; 1 by default.
        baseline: The saved audit to compare with, as the file names it.
        budgets: The limits, in the order of the file.
        allowed: Patterns of the libraries that may be mapped; None for all.
        denied: Patterns of the libraries that must not be mapped.
        allows_new: Whether libraries that the baseline lacks may be mapped.
        waivers: The budgets that may be exceeded until a day.
        library_lines: The lines of the keys of `[libraries]`.
        is_reproducible: Whether programs are predicted without what this machine adds, as with `audit --reproducible`.
    """

    file: str
    at_processes: int
    baseline: str | None
    budgets: tuple[Budget, ...]
    allowed: tuple[str, ...] | None
    denied: tuple[str, ...]
    allows_new: bool
    waivers: tuple[Waiver, ...]
    library_lines: Mapping[str, int] = MappingProxyType({})
    is_reproducible: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether it limits nothing."""
        return not self.budgets and self.allowed is None and not self.denied and self.allows_new

    @property
    def needs_baseline(self) -> bool:
        """Return whether a part of it can be checked only against a baseline."""
        return not self.allows_new or any(one.limit.needs_baseline for one in self.budgets)


Lines = Mapping[tuple[str, ...], int]


def parse_budgets(told: Mapping[str, Any], file: str = "budgets", lines: Lines = MappingProxyType({})) -> Budgets:
    """Make budgets from the tables of a budget file.

    Args:
        told: The tables, as `tomllib` reads them.
        file: Where they are from: the messages name it, and the path of the baseline is relative to its folder.
        lines: The lines of the tables and keys, where known.

    Raises:
        UsageError: For an unknown key (the message names the nearest known one), or a value that is no limit.
    """
    at = _File(file)
    at.only(told, _KEYS, "")
    tables = at.table(told, "budgets")
    at.only(tables, (*BUDGETED, *_TABLES), "budgets")
    libraries = at.table(told, "libraries")
    at.only(libraries, LIBRARY_KEYS, "libraries")
    allowed = at.patterns(libraries, "allow", "libraries") if "allow" in libraries else None
    denied = at.patterns(libraries, "deny", "libraries")
    # Of two patterns, the narrower one may be an exception; a full name on both lists is a contradiction.
    both = [name for name in allowed or () if name in denied or (not set(name) & set("*?[") and matches(name, denied))]
    if both:
        raise at.wrong(f"libraries: {both[0]!r} is both allowed and denied")
    budgets = tuple(_budgets(tables, at, lines))
    found = Budgets(
        file,
        at.count(told, "at_processes", 1),
        at.text(told, "baseline") if "baseline" in told else None,
        budgets,
        allowed,
        denied,
        at.truth(libraries, "allow_new", "libraries", default=True),
        tuple(_waiver(one, at) for one in at.tables(told, "waivers")),
        {key: line for key in LIBRARY_KEYS if (line := _nearest_line(("libraries", key), lines)) is not None},
        at.truth(told, "reproducible", "", default=False),
    )
    known = [*(one.key for one in budgets), *(f"libraries.{key}" for key in LIBRARY_KEYS)]
    waived: set[str] = set()
    for waiver in found.waivers:
        if waiver.budget not in known:
            raise at.wrong(f"waivers: there is no budget {_quoted(waiver.budget)}{nearest_of(waiver.budget, known)}")
        if waiver.budget in waived:
            raise at.wrong(f"waivers: {waiver.budget!r} has several: keep one")
        waived.add(waiver.budget)
    return found


def _budgets(tables: Mapping[str, Any], at: "_File", lines: Lines) -> Iterable[Budget]:
    for name, told in tables.items():
        if name in BUDGETED:
            limit = at.limit(told, name, is_count=FIGURES[name].is_count)
            yield Budget(name, "figures", name, limit, line=_nearest_line(("budgets", name), lines))
            continue
        for each, told_limit in at.table(tables, name).items():
            line = _nearest_line(("budgets", name, each), lines)
            key = f"{name}.{each}" if each.replace("-", "").replace("_", "").isalnum() else f'{name}."{each}"'
            if name == "findings":
                at.one_of(each, rule_names(), key)
                yield from (one._replace(line=line) for one in at.finding_budgets(told_limit, key, each))
                continue
            if name == "kinds":
                at.one_of(each, [kind.value for kind in MemoryKind], key)
            yield Budget(key, name, each, at.limit(told_limit, key, is_count=False), line=line)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the patterns of a list of libraries matches a name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _nearest_line(path: tuple[str, ...], lines: Lines) -> int | None:
    """Return the line of a key, or of the innermost table around it."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)


def _waiver(told: Mapping[str, Any], at: "_File") -> Waiver:
    at.only(told, _WAIVER_KEYS, "waivers")
    missing = [key for key in _WAIVER_KEYS if key not in told]
    if missing:
        raise at.wrong(f"waivers: each has a budget, a reason and a day on which it expires; `{missing[0]}` is missing")
    expires = told["expires"]
    # In Python a datetime is a date, too.
    if type(expires) is not date:
        raise at.wrong(f"waivers: `expires` is {_quoted(expires)}, not a date such as 2027-01-31")
    return Waiver(at.text(told, "budget"), at.text(told, "reason"), expires)


def _quoted(told: object) -> str:
    """Return a value for a message; only the beginning of a long one."""
    shown = repr(told)
    return shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}..."


def nearest_of(word: str, known: Iterable[str]) -> str:
    """Return a suggestion for the end of a message: the nearest known word; "" if none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 # only for a message

    found = get_close_matches(word, list(known), 1, 0.5)
    return f"; did you mean {found[0]!r}?" if found else ""


class _File:
    """Reads values of a budget file; each error names the file and the key."""

    def __init__(self, file: str) -> None:
        self._file = file

    def wrong(self, cause: str) -> UsageError:
        return UsageError(f"{self._file}: {cause}")

    def only(self, told: Mapping[str, Any], known: Sequence[str], where: str) -> None:
        """Refuse unknown keys."""
        for key in told:
            if key not in known:
                place = f"{where}: " if where else ""
                raise self.wrong(f"{place}there is no key {_quoted(key)}{nearest_of(key, known)}")

    def one_of(self, word: str, known: Sequence[str], key: str) -> None:
        if word not in known:
            raise self.wrong(f"{key}: {_quoted(word)} is none of {', '.join(known)}{nearest_of(word, known)}")

    def table(self, told: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        found = told.get(key, {})
        if not isinstance(found, dict):
            raise self.wrong(f"`{key}` is not a table")
        if not all(isinstance(name, str) for name in found):
            raise self.wrong(f"`{key}` has a name that is not a text")
        return found

    def tables(self, told: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
        found = told.get(key, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self.wrong(f"`{key}` is not a list of tables: write [[{key}]]")
        return found

    def text(self, told: Mapping[str, Any], key: str) -> str:
        found = told[key]
        if not isinstance(found, str) or not found:
            raise self.wrong(f"`{key}` is {_quoted(found)}, not a text")
        return found

    def patterns(self, told: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
        found = told.get(key, [])
        if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):
            raise self.wrong(f"{where}: `{key}` is not a list of texts")
        if len(found) > _MOST_PATTERNS:
            raise self.wrong(f"{where}: `{key}` has more than {_MOST_PATTERNS:,} patterns")
        if too_long := [one for one in found if len(one) > _MOST_PATTERN_CHARS]:
            raise self.wrong(f"{where}: `{key}`: {_quoted(too_long[0])} is longer than any name of a library")
        return tuple(found)

    def truth(self, told: Mapping[str, Any], key: str, where: str, *, default: bool) -> bool:
        found = told.get(key, default)
        if not isinstance(found, bool):
            place = f"{where}: " if where else ""
            raise self.wrong(f"{place}`{key}` is neither true nor false")
        return found

    def count(self, told: Mapping[str, Any], key: str, default: int) -> int:
        found = told.get(key, default)
        if type(found) is not int or not 1 <= found <= _MOST_COUNT:
            raise self.wrong(f"`{key}` is {_quoted(found)}, not a number of at least 1")
        return found

    def amount(self, told: object, key: str, *, is_count: bool) -> int:
        """Parse a size such as `"24 MiB"`, or a number of bytes or of things."""
        if type(told) is int and told >= 0:
            return self.possible(told, key)
        if is_count or not isinstance(told, str):
            what = "a number of at least 0" if is_count else 'a size such as "24 MiB", or a number of bytes'
            raise self.wrong(f"{key}: {_quoted(told)} is not {what}")
        try:
            amount = parse_bytes(told)
        except UsageError as error:
            raise self.wrong(f"{key}: {error}") from error
        return self.possible(amount, key)

    def possible(self, amount: int, key: str) -> int:
        if amount >= _MOST_AMOUNT:
            raise self.wrong(f"{key}: it is larger than any memory")
        return amount

    def limit(self, told: object, key: str, *, is_count: bool) -> Limit:
        if not isinstance(told, dict):
            return Limit(self.amount(told, key, is_count=is_count))
        self.only(told, LIMIT_KEYS, key)
        if not told:
            raise self.wrong(f"{key}: it has neither `max` nor `max_increase`")
        most = self.amount(told["max"], f"{key}.max", is_count=is_count) if "max" in told else None
        if "max_increase" not in told:
            return Limit(most)
        increase, place = told["max_increase"], f"{key}.max_increase"
        amount, share = None, None
        parts = increase.split(" or ") if isinstance(increase, str) else [increase]
        for part in parts:
            if isinstance(part, str) and part.rstrip().endswith("%"):
                share = self._share(part.strip(), place)
            else:
                amount = self.amount(part, place, is_count=is_count)
        if len(parts) > (amount is not None) + (share is not None):
            raise self.wrong(f'{place}: {_quoted(increase)} is not a share and a size, such as "5 % or 100 KiB"')
        return Limit(most, amount, share)

    def _share(self, text: str, place: str) -> Fraction:
        number = text.rstrip().removesuffix("%").strip()
        whole, _, part = number.partition(".")
        if not (whole.isdecimal() and whole.isascii() and (part.isdecimal() or not part) and len(number) < 20):
            raise self.wrong(f'{place}: {_quoted(text)} is not a share such as "2 %"')
        return Fraction(number) / 100

    def finding_budgets(self, told: object, key: str, rule: str) -> Iterable[Budget]:
        """Read the limits on findings of a rule: a number limits their number, a size with a unit their bytes."""
        if not isinstance(told, dict):
            is_size = _is_size(told)
            limit = Limit(self.amount(told, key, is_count=not is_size))
            yield Budget(key, "findings", rule, limit, usually_counted(rule), is_size)
            return
        self.only(told, _FINDING_KEYS, key)
        if "confidence" in told and "least_confidence" in told:
            raise self.wrong(f"{key}: `confidence` is the old name of `least_confidence`: keep one")
        usual = usually_counted(rule)
        confidence = str(told.get("least_confidence", told.get("confidence", usual.least_confidence.value)))
        self.one_of(confidence, [one.value for one in CONFIDENCES], key)
        least_bytes = usual.least_bytes
        if "least_bytes" in told:
            least_bytes = self.amount(told["least_bytes"], f"{key}.least_bytes", is_count=False)
        # A budget that only says which findings count allows none of them.
        amounts = {name: told[name] for name in LIMIT_KEYS if name in told} or {"max": 0}
        counted = CountedFindings(Confidence(confidence), least_bytes)
        for is_size in (False, True):
            alike = {name: amount for name, amount in amounts.items() if _is_size(amount) is is_size}
            if alike:
                yield Budget(key, "findings", rule, self.limit(alike, key, is_count=not is_size), counted, is_size)


def _is_size(told: object) -> bool:
    """Return whether a limit is a size with a unit, or has one beside a share."""
    return isinstance(told, str) and any(not part.rstrip().endswith("%") for part in told.split(" or "))
