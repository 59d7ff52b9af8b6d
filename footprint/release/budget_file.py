"""The contents of a budget file: what is limited, by how much, and until when a limit may be exceeded.

The file is TOML, and read elsewhere: here is what it may say.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

from footprint.errors import UsageError
from footprint.findings.registry import rule_names
from footprint.members import Pattern, json_members
from footprint.model.figures import BUDGETED, FIGURES, FigureUnit
from footprint.model.finding import CONFIDENCES, Confidence, Finding
from footprint.model.over_time import WatchGapKind, parse_accepted
from footprint.model.row import MemoryKind
from footprint.text.units import parse_bytes

_TABLES: Final = ("owners", "kinds", "symbols", "retained", "findings")
_KEYS: Final = ("accept", "at_processes", "baseline", "reproducible", "budgets", "libraries", "waivers")
LIBRARY_KEYS: Final = ("allow", "deny", "allow_new")
LIMIT_KEYS: Final = ("max", "max_increase")
_FINDING_KEYS: Final = (*LIMIT_KEYS, "least_confidence", "confidence", "least_bytes")
_WAIVER_KEYS: Final = ("budget", "reason", "expires")
_MOST_COUNT: Final = 10**12
_MOST_AMOUNT: Final = 1 << 63
# Limits for patterns of libraries: file names are no longer, and matching is not linear.
_MOST_PATTERNS: Final = 1000
_MOST_PATTERN_CHARS: Final = 255
_MOST_SECONDS: Final = 10**6
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(us|ms|s)", re.ASCII)
_UNIT_US: Final = {"us": 1, "ms": 1_000, "s": 1_000_000}
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
        accepted: What a watch need not tell, for its series to pass.
        cost_limit: How much the cost of whatever is checked may grow; None where only the other limits hold.
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
    accepted: frozenset[WatchGapKind] = frozenset()
    cost_limit: Limit | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether it limits nothing."""
        return not self.budgets and self.allowed is None and not self.denied and self.allows_new

    @property
    def needs_baseline(self) -> bool:
        """Return whether a part of it can be checked only against a baseline."""
        is_growth = self.cost_limit is not None or not self.allows_new
        return is_growth or any(budget.limit.needs_baseline for budget in self.budgets)


Lines = Mapping[tuple[str, ...], int]


def limit_growth(increase: str, baseline: str, *, is_reproducible: bool) -> Budgets:
    """Make budgets that limit the growth of the cost, and nothing else.

    Args:
        increase: How much it may grow, as `max_increase` of a budget file says it: `5 %`, `64 KiB`, `5 % or 64 KiB`.
        baseline: The saved audit to compare with.
        is_reproducible: Whether a program is predicted without what this machine adds.

    Raises:
        UsageError: If it is neither a share nor a size.
    """
    limit = _increase_limit(increase)
    return parse_budgets(
        {"baseline": baseline, "reproducible": is_reproducible}, f"--max-increase {increase}"
    )._replace(cost_limit=limit)


def _increase_limit(text: str) -> Limit:
    """Read the value of `--max-increase`; a message about it names no key of a file."""
    try:
        return _File("--max-increase").limit({"max_increase": text}, "", is_count=False)
    except UsageError as error:
        raise UsageError(str(error).replace(" .max_increase:", "", 1)) from None


def parse_share(text: str) -> Fraction:
    """Read a share such as `5 %`.

    Raises:
        UsageError: For anything else.
    """
    share = _increase_limit(text).most_increase_share
    if share is None:
        raise UsageError(f"--max-increase: {_quoted(text)} is no share: write it like 5 %")
    return share


def parse_budgets(document: Mapping[str, Any], file: str = "budgets", lines: Lines = MappingProxyType({})) -> Budgets:
    """Make budgets from the tables of a budget file.

    Args:
        document: The tables, as `tomllib` reads them.
        file: Where they are from: the messages name it, and the path of the baseline is relative to its folder.
        lines: The lines of the tables and keys, where known.

    Raises:
        UsageError: For an unknown key (the message names the nearest known one), or a value that is no limit.
    """
    at = _File(file)
    at.only(document, _KEYS, "")
    tables = at.table(document, "budgets")
    at.only(tables, (*BUDGETED, *_TABLES), "budgets")
    libraries = at.table(document, "libraries")
    at.only(libraries, LIBRARY_KEYS, "libraries")
    allowed = at.patterns(libraries, "allow", "libraries") if "allow" in libraries else None
    denied = at.patterns(libraries, "deny", "libraries")
    # Of two patterns, the narrower one may be an exception; a full name on both lists is a contradiction.
    both = [name for name in allowed or () if name in denied or (not set(name) & set("*?[") and matches(name, denied))]
    if both:
        raise at.wrong(f"libraries: {both[0]!r} is both allowed and denied")
    budgets = tuple(_budgets(tables, at, lines))
    parsed = Budgets(
        file,
        at.count(document, "at_processes", 1),
        at.text(document, "baseline") if "baseline" in document else None,
        budgets,
        allowed,
        denied,
        at.truth(libraries, "allow_new", "libraries", default=True),
        tuple(_waiver(table, at) for table in at.tables(document, "waivers")),
        {key: line for key in LIBRARY_KEYS if (line := _nearest_line(("libraries", key), lines)) is not None},
        at.truth(document, "reproducible", "", default=False),
        at.accepted(document),
    )
    keys = [*(budget.key for budget in budgets), *(f"libraries.{key}" for key in LIBRARY_KEYS)]
    waived: set[str] = set()
    for waiver in parsed.waivers:
        if waiver.budget not in keys:
            raise at.wrong(f"waivers: there is no budget {_quoted(waiver.budget)}{nearest_of(waiver.budget, keys)}")
        if waiver.budget in waived:
            raise at.wrong(f"waivers: {waiver.budget!r} has several: keep one")
        waived.add(waiver.budget)
    return parsed


def _budgets(tables: Mapping[str, Any], at: "_File", lines: Lines) -> Iterable[Budget]:
    for name, values in tables.items():
        if name in BUDGETED:
            is_time = FIGURES[name].unit is FigureUnit.MICROSECONDS
            limit = at.limit(values, name, is_count=FIGURES[name].is_count, is_time=is_time)
            yield Budget(name, "figures", name, limit, line=_nearest_line(("budgets", name), lines))
            continue
        for entry, told_limit in at.table(tables, name).items():
            line = _nearest_line(("budgets", name, entry), lines)
            key = f"{name}.{entry}" if entry.replace("-", "").replace("_", "").isalnum() else f'{name}."{entry}"'
            if name == "findings":
                at.one_of(entry, rule_names(), key)
                yield from (b._replace(line=line) for b in at.finding_budgets(told_limit, key, entry))
                continue
            if name == "kinds":
                at.one_of(entry, [kind.value for kind in MemoryKind], key)
            yield Budget(key, name, entry, at.limit(told_limit, key, is_count=False), line=line)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the patterns of a list of libraries matches a name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _nearest_line(path: tuple[str, ...], lines: Lines) -> int | None:
    """Return the line of a key, or of the innermost table around it."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)


def _waiver(waiver: Mapping[str, Any], at: "_File") -> Waiver:
    at.only(waiver, _WAIVER_KEYS, "waivers")
    missing = [key for key in _WAIVER_KEYS if key not in waiver]
    if missing:
        raise at.wrong(f"waivers: each has a budget, a reason and a day on which it expires; `{missing[0]}` is missing")
    expires = waiver["expires"]
    # In Python a datetime is a date, too.
    if type(expires) is not date:
        raise at.wrong(f"waivers: `expires` is {_quoted(expires)}, not a date such as 2027-01-31")
    return Waiver(at.text(waiver, "budget"), at.text(waiver, "reason"), expires)


def _quoted(value: object) -> str:
    """Return a value for a message; only the beginning of a long one."""
    shown = repr(value)
    return shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}..."


def nearest_of(word: str, words: Iterable[str]) -> str:
    """Return a suggestion for the end of a message: the nearest known word; "" if none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 # only for a message

    nearest = get_close_matches(word, list(words), 1, 0.5)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


class _File:
    """Reads values of a budget file; each error names the file and the key."""

    def __init__(self, file: str) -> None:
        self._file = file

    def wrong(self, cause: str) -> UsageError:
        return UsageError(f"{self._file}: {cause}")

    def only(self, table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
        """Refuse unknown keys."""
        for key in table:
            if key not in keys:
                place = f"{where}: " if where else ""
                raise self.wrong(f"{place}there is no key {_quoted(key)}{nearest_of(key, keys)}")

    def one_of(self, word: str, words: Sequence[str], key: str) -> None:
        if word not in words:
            raise self.wrong(f"{key}: {_quoted(word)} is none of {', '.join(words)}{nearest_of(word, words)}")

    def table(self, parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        table = parent.get(key, {})
        if not isinstance(table, dict):
            raise self.wrong(f"`{key}` is not a table")
        if not all(isinstance(name, str) for name in table):
            raise self.wrong(f"`{key}` has a name that is not a text")
        return table

    def tables(self, parent: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
        tables = parent.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(entry, dict) for entry in tables):
            raise self.wrong(f"`{key}` is not a list of tables: write [[{key}]]")
        return tables

    def text(self, table: Mapping[str, Any], key: str) -> str:
        text = table[key]
        if not isinstance(text, str) or not text:
            raise self.wrong(f"`{key}` is {_quoted(text)}, not a text")
        return text

    def patterns(self, table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
        patterns = table.get(key, [])
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) and pattern for pattern in patterns):
            raise self.wrong(f"{where}: `{key}` is not a list of texts")
        if len(patterns) > _MOST_PATTERNS:
            raise self.wrong(f"{where}: `{key}` has more than {_MOST_PATTERNS:,} patterns")
        if too_long := [pattern for pattern in patterns if len(pattern) > _MOST_PATTERN_CHARS]:
            raise self.wrong(f"{where}: `{key}`: {_quoted(too_long[0])} is longer than any name of a library")
        return tuple(patterns)

    def accepted(self, table: Mapping[str, Any]) -> frozenset[WatchGapKind]:
        try:
            return parse_accepted(self.patterns(table, "accept", "the file"))
        except UsageError as error:
            raise self.wrong(f"accept: {error}") from error

    def truth(self, table: Mapping[str, Any], key: str, where: str, *, default: bool) -> bool:
        value = table.get(key, default)
        if not isinstance(value, bool):
            place = f"{where}: " if where else ""
            raise self.wrong(f"{place}`{key}` is neither true nor false")
        return value

    def count(self, table: Mapping[str, Any], key: str, default: int) -> int:
        count = table.get(key, default)
        if type(count) is not int or not 1 <= count <= _MOST_COUNT:
            raise self.wrong(f"`{key}` is {_quoted(count)}, not a number of at least 1")
        return count

    def amount(self, value: object, key: str, *, is_count: bool, is_time: bool = False) -> int:
        """Parse a size such as `"24 MiB"`, or a number of bytes or of things; or a time."""
        if is_time:
            return self._microseconds(value, key)
        if type(value) is int and value >= 0:
            return self.possible(value, key)
        if is_count or not isinstance(value, str):
            what = "a number of at least 0" if is_count else 'a size such as "24 MiB", or a number of bytes'
            raise self.wrong(f"{key}: {_quoted(value)} is not {what}")
        try:
            amount = parse_bytes(value)
        except UsageError as error:
            raise self.wrong(f"{key}: {error}") from error
        return self.possible(amount, key)

    def _microseconds(self, value: object, key: str) -> int:
        """Parse a time such as `"5 ms"`, or a number of seconds."""
        if isinstance(value, str) and (duration := _DURATION.fullmatch(value.strip())):
            return round(Fraction(duration.group(1)) * _UNIT_US[duration.group(2)])
        if type(value) in {int, float} and isinstance(value, int | float) and 0 <= value <= _MOST_SECONDS:
            return round(value * 1_000_000)
        raise self.wrong(f'{key}: {_quoted(value)} is not a time such as "5 ms", or a number of seconds')

    def possible(self, amount: int, key: str) -> int:
        if amount >= _MOST_AMOUNT:
            raise self.wrong(f"{key}: it is larger than any memory")
        return amount

    def limit(self, value: object, key: str, *, is_count: bool, is_time: bool = False) -> Limit:
        if not isinstance(value, dict):
            return Limit(self.amount(value, key, is_count=is_count, is_time=is_time))
        self.only(value, LIMIT_KEYS, key)
        if not value:
            raise self.wrong(f"{key}: it has neither `max` nor `max_increase`")
        most = None
        if "max" in value:
            most = self.amount(value["max"], f"{key}.max", is_count=is_count, is_time=is_time)
        if "max_increase" not in value:
            return Limit(most)
        increase, place = value["max_increase"], f"{key}.max_increase"
        amount, share = None, None
        parts = increase.split(" or ") if isinstance(increase, str) else [increase]
        for part in parts:
            if isinstance(part, str) and part.rstrip().endswith("%"):
                share = self._share(part.strip(), place)
            else:
                amount = self.amount(part, place, is_count=is_count, is_time=is_time)
        if len(parts) > (amount is not None) + (share is not None):
            raise self.wrong(f'{place}: {_quoted(increase)} is not a share and a size, such as "5 % or 100 KiB"')
        return Limit(most, amount, share)

    def _share(self, text: str, place: str) -> Fraction:
        number = text.rstrip().removesuffix("%").strip()
        whole, _, part = number.partition(".")
        if not (whole.isdecimal() and whole.isascii() and (part.isdecimal() or not part) and len(number) < 20):
            raise self.wrong(f'{place}: {_quoted(text)} is not a share such as "2 %"')
        return Fraction(number) / 100

    def finding_budgets(self, value: object, key: str, rule: str) -> Iterable[Budget]:
        """Read the limits on findings of a rule: a number limits their number, a size with a unit their bytes."""
        if not isinstance(value, dict):
            is_size = _is_size(value)
            limit = Limit(self.amount(value, key, is_count=not is_size))
            yield Budget(key, "findings", rule, limit, usually_counted(rule), is_size)
            return
        self.only(value, _FINDING_KEYS, key)
        if "confidence" in value and "least_confidence" in value:
            raise self.wrong(f"{key}: `confidence` is the old name of `least_confidence`: keep one")
        usual = usually_counted(rule)
        confidence = str(value.get("least_confidence", value.get("confidence", usual.least_confidence.value)))
        self.one_of(confidence, [confidence.value for confidence in CONFIDENCES], key)
        least_bytes = usual.least_bytes
        if "least_bytes" in value:
            least_bytes = self.amount(value["least_bytes"], f"{key}.least_bytes", is_count=False)
        # A budget that only says which findings count allows none of them.
        amounts = {name: value[name] for name in LIMIT_KEYS if name in value} or {"max": 0}
        counted = CountedFindings(Confidence(confidence), least_bytes)
        for is_size in (False, True):
            alike = {name: amount for name, amount in amounts.items() if _is_size(amount) is is_size}
            if alike:
                yield Budget(key, "findings", rule, self.limit(alike, key, is_count=not is_size), counted, is_size)


def _is_size(value: object) -> bool:
    """Return whether a limit is a size with a unit, or has one beside a share."""
    return isinstance(value, str) and any(not part.rstrip().endswith("%") for part in value.split(" or "))
