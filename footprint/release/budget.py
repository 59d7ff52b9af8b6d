"""Check the budgets of a process, by itself and against a baseline, and find what makes it exceed them."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from fractions import Fraction
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.errors import Note, UsageError
from footprint.findings.registry import Fact, fact_of
from footprint.members import Positive, Signed, json_members
from footprint.model.audit import NO_MEMORY, ONE_START, Spreads, overlap, separation_confidence
from footprint.model.cost_parts import OF_GROUP, CostPart, cost_parts, term_parts
from footprint.model.costs import ObjectCost, Spread, holders_of, unread_paths
from footprint.model.figures import FIGURES, FigureUnit
from footprint.model.finding import Finding, SourceLocation
from footprint.model.over_time import WatchGap, WatchGapKind
from footprint.model.projection import cost_at
from footprint.model.row import OF_OBJECTS, MemoryKind, Row, file_name, is_file
from footprint.release.budget_file import (
    Budget,
    Budgets,
    Limit,
    Waiver,
    matches,
    nearest_of,
)
from footprint.release.compare import Comparison, RowChange, compare, covers, covers_files
from footprint.release.matching import named_owners, owner_names, paired_findings, soname_of
from footprint.release.new_libraries import NewRoot
from footprint.text.units import format_bytes, format_us, parse_bytes

if TYPE_CHECKING:
    from footprint.model.audit import Audit


_MOST_CONTRIBUTORS: Final = 3
A_TWENTIETH: Final = Fraction(1, 20)
"""The room that a proposed budget leaves, if nothing else is asked for."""
_TIME_ROOM: Final = Fraction(1, 2)
_NUMBER: Final = re.compile(r" ?\d[\d,]* ?")
# The figures that are computed from others, or from objects.
START_CPU: Final = "start_cpu_seconds"
_OF_SERIES: Final = frozenset({"usual_most_bytes", "hourly_growth_bytes", "most_process_count"})
_OF_OBJECT: Final[dict[str, Callable[[ObjectCost], int | None]]] = {
    "tls_bytes": attrgetter("tls_bytes"),
    "start_relocation_count": lambda c: c.start and c.start.relocation_count,
    "start_lookup_count": lambda c: c.start and c.start.lookup_count,
    "start_failed_opens": lambda c: c.start and c.start.failed_open_count,
    "start_page_faults": lambda c: c.start and c.start.page_faults,
}
_OF_START: Final = frozenset(_OF_OBJECT) - {"tls_bytes"}
_OF_ANY: Final = frozenset({"total_at_count_bytes", "library_count", "peak_bytes", START_CPU, *_OF_OBJECT, *_OF_SERIES})
# Owners do not make up these figures.
_WITHOUT_PARTS: Final = frozenset(
    {"mapping_count", "process_count", "per_worker_bytes", "peak_bytes", START_CPU, *_OF_SERIES, *OF_GROUP}
)
_SMALLER: Final = "smaller than the baseline by more than it may grow: --update-baseline lowers it"
RUN: Final = "run"
"""The key of the result that says how a run failed."""
WATCH: Final = "watch"
"""The key of the result that says what a watch cannot tell."""
START: Final = "start"
"""The key of the result that says what the counts of a start lack."""
UNTOLD: Final = {WATCH: "The watch cannot tell", START: "The start is not counted as a whole"}
"""The keys of results that no limit has: what cannot be told."""
# What makes the figures that few audits have.
_MAKERS: Final = {
    "peak_bytes": "only a saved `run` has a peak, or a series: save one with `footprint run -o FILE.json -- COMMAND`",
    START_CPU: "only a saved `run --start-cost` has it: `footprint run --start-cost -o FILE.json -- COMMAND`",
    **dict.fromkeys(_OF_SERIES, "only a series has it: make one with `footprint watch PID -o FILE.fps`"),
}
# What a figure of a series needs beside a whole series; all other figures are those of an audit.
_NEEDS: Final = {
    "peak_bytes": WatchGapKind.LOWER_BOUND,
    "hourly_growth_bytes": WatchGapKind.TOO_SHORT,
    "usual_most_bytes": None,
    "most_process_count": None,
}


class Contributor(NamedTuple):
    """A part of the value of a budget.

    Attributes:
        name: The owner, variable or finding.
        size_bytes: Its bytes, or how much it grew.
    """

    name: str
    size_bytes: Signed


@json_members("key value limit unit is_exceeded fails grew_from contributors is_growth waiver is_noise remark line")
class BudgetResult(NamedTuple):
    """One limit of the budget file.

    Attributes:
        key: Its key in the file.
        value: The value of the audit; of a limit of growth of findings, what the baseline has not of them.
        limit: The largest value that passes.
        is_count: Whether both are numbers of things, or microseconds, not bytes.
        is_exceeded: Whether the value is larger than the limit.
        waiver: The waiver of the budget; None where there is none.
        contributors: The largest parts of the value, or of its growth; at most three.
        is_growth: Whether the contributors are what grew since the baseline.
        grew_from: The value of the baseline, where the limit is one of growth, and 0 for findings; else None.
        is_noise: Whether the starts of both runs overlap, so that the growth may be chance.
        remark: What else there is to know; often empty.
        line: The line of the file; None where it is not known.
    """

    key: str
    value: int
    limit: int
    is_count: bool
    is_exceeded: bool
    waiver: Waiver | None = None
    contributors: tuple[Contributor, ...] = ()
    is_growth: bool = False
    grew_from: int | None = None
    is_noise: bool = False
    remark: str = ""
    line: Positive | None = None

    @property
    def unit(self) -> FigureUnit:
        """Return what both count."""
        if self.key == START_CPU:
            return FigureUnit.MICROSECONDS
        return FigureUnit.THINGS if self.is_count else FigureUnit.BYTES

    @property
    def excess_share(self) -> float:
        """Return by which part of the limit the value exceeds it; of a limit of 0, each thing counts as a whole."""
        return max(0, self.value - self.limit) / max(1, self.limit)

    @property
    def is_expired(self) -> bool:
        """Return whether the waiver has expired."""
        return self.waiver is not None and self.waiver.is_expired

    @property
    def fails(self) -> bool:
        """Return whether it is exceeded, surely and without a waiver that holds."""
        return self.is_exceeded and not self.is_noise and (self.waiver is None or self.is_expired)


class Checked(NamedTuple):
    """The results of all budgets.

    Attributes:
        audit: What was checked.
        budgets: The budgets.
        results: One for each limit, and for a run that failed or what cannot be told; first what fails, and of
            that the failed run, then the limit that is exceeded by its largest part.
        comparison: The changes since the baseline, where there is one.
    """

    audit: "Audit"
    budgets: Budgets
    results: tuple[BudgetResult, ...]
    comparison: Comparison | None

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes of the audit, and what makes it hard to compare with the baseline."""
        return (*self.audit.notes, *(() if self.comparison is None else self.comparison.loader_notes))

    @property
    def limits(self) -> tuple[BudgetResult, ...]:
        """The results that are those of limits."""
        return tuple(result for result in self.results if result.key not in {RUN, *UNTOLD})

    @property
    def failures(self) -> tuple[BudgetResult, ...]:
        """The limits that are exceeded without a valid waiver."""
        return tuple(result for result in self.results if result.fails)


def check_audit(
    audit: "Audit",
    budgets: Budgets,
    baseline: "Audit | None",
    today: date,
    spreads: Spreads = ONE_START,
    baseline_spreads: Spreads = ONE_START,
) -> Checked:
    """Check an audit, by itself and against a baseline; a spread is that of the starts whose median an audit is.

    Raises:
        UsageError: If a budget is about something that the audit does not contain, or needs a baseline.
    """
    if baseline is None and budgets.needs_baseline:
        raise UsageError(
            f"{budgets.file}: a limit of growth needs a baseline: name one there, and write it with --update-baseline"
        )
    budgets = budgets._replace(budgets=(*budgets.budgets, *_cost_budgets(budgets, audit)))
    comparison = None if baseline is None else compare(baseline, audit, budgets.at_processes, baseline_spreads, spreads)
    limits = [budget._replace(owners=_owners_of(budget, audit, baseline)) for budget in budgets.budgets]
    waivers = {waiver.budget: waiver._replace(is_expired=waiver.expires < today) for waiver in budgets.waivers}
    results = [
        *_run_results(audit, spreads.start_count),
        *_untold_results(audit, budgets),
        *(
            result
            for limit in limits
            for result in _results(limit, audit, baseline, budgets, comparison, (baseline_spreads, spreads))
        ),
        *_libraries(audit, budgets, comparison),
    ]
    waived = [result._replace(waiver=waiver) if (waiver := waivers.get(result.key)) else result for result in results]
    waived.sort(key=_severity)
    return Checked(audit, budgets, tuple(waived), comparison)


def _cost_budgets(budgets: Budgets, audit: "Audit") -> Iterable[Budget]:
    """Return the budgets of the figures that a limit on the growth of the cost is about, as far as the audit has them.

    A prediction is of the start: its maximum has what the program may write later.
    """
    if budgets.cost_limit is None:
        return
    costs = (_cost_name(audit), "private_bytes", "mapped_writable_bytes")
    names = [name for name in costs if figure_of(name, audit) is not None][:1]
    for name in (*names, "ceiling_bytes") if audit.source == "prediction" else names:
        yield Budget(name, "figures", name, budgets.cost_limit)


def _severity(result: BudgetResult) -> tuple[object, ...]:
    """Return what sorts results: first what fails, of that a failed run, then the limit that is exceeded most."""
    return not result.fails, not result.is_exceeded, result.key not in {RUN, *UNTOLD}, -result.excess_share


def _owners_of(budget: Budget, audit: "Audit", baseline: "Audit | None") -> frozenset[str]:
    """Return the owners that a budget names, in both audits: each with the name that it has on the other side."""
    if budget.table not in {"owners", "retained"}:
        return frozenset()
    owners = named_owners(budget.name, audit)
    if baseline is None:
        return owners
    before, names = named_owners(budget.name, baseline), owner_names(baseline, audit)
    owners |= before | {names[owner] for owner in before if owner in names}
    return owners | {owner for owner, name in names.items() if name in owners}


def roots_of(result: BudgetResult, checked: Checked) -> tuple[NewRoot, ...]:
    """Return the new libraries that brought what makes a budget exceeded: the roots of its contributors, by size."""
    comparison = checked.comparison
    if comparison is None or not comparison.roots:
        return ()
    root_by_name = {file_name(owner): root for owner, root in comparison.root_of.items()}
    names = {contributor.name.rpartition(" (")[2].removesuffix(")") for contributor in result.contributors}
    roots = {root_by_name[name] for name in names if name in root_by_name}
    selected = [root for root in comparison.roots if root.owner in roots]
    return tuple(sorted(selected, key=lambda root: (-root.delta_bytes, root.name)))


def lines_of(checked: Checked) -> dict[str, SourceLocation]:
    """Return the lines that declare the variables that grew, by the names that these have as contributors."""
    places: dict[str, set[SourceLocation | None]] = {}
    for grown_variable in () if checked.comparison is None else checked.comparison.grown_variables:
        places.setdefault(_variable_name(grown_variable), set()).add(grown_variable.location)
    return {name: line for name, (line, *others) in places.items() if line is not None and not others}


def _variable_name(change: RowChange) -> str:
    return f"{change.symbol} ({file_name(change.owner)})"


def _run_results(audit: "Audit", start_count: int) -> Iterable[BudgetResult]:
    """Return the failures of the run whose audit it is; no budget has to name them."""
    if audit.run_failures:
        from footprint.model.over_time import which_starts  # noqa: PLC0415 # few runs fail

        count = len(audit.run_failures)
        starts: dict[str, list[int]] = {}
        for run_failure in audit.run_failures:
            starts.setdefault(run_failure.detail, []).append(run_failure.start)
        shown = tuple(
            Contributor(f"{detail}{which_starts(failed, start_count)}", 0) for detail, failed in starts.items()
        )
        yield BudgetResult(RUN, count, 0, is_count=True, is_exceeded=True, contributors=shown)


def _open_gaps(audit: "Audit", budgets: Budgets) -> tuple[WatchGap, ...]:
    """Return what the watch cannot tell whose series it is from, of what the budgets need and nobody accepts."""
    if audit.over_time is None:
        return ()
    needed = {WatchGapKind.CUT, WatchGapKind.NOT_WATCHED}
    needed |= {_NEEDS.get(budget.name, WatchGapKind.NO_AUDIT) or WatchGapKind.CUT for budget in budgets.budgets}
    return tuple([gap for gap in audit.over_time.gaps if gap.kind in needed - budgets.accepted])


def _start_gaps(audit: "Audit", budgets: Budgets) -> tuple[WatchGap, ...]:
    """Return the objects that are not in the counts of a start, where budgets limit these and nobody accepts it."""
    kind = WatchGapKind.LOWER_BOUND
    if kind in budgets.accepted or not any(budget.name in _OF_START for budget in budgets.budgets):
        return ()
    missing = [f"{note.subject} is missing" for note in audit.notes if note.slug == "library-missing"]
    unread = unread_paths([linked.path for linked in audit.objects], audit.notes)
    causes = [*missing, *[f"{path} cannot be read" for path in unread]]
    return tuple([WatchGap(kind, cause) for cause in dict.fromkeys(causes)])


def _untold_results(audit: "Audit", budgets: Budgets) -> Iterable[BudgetResult]:
    """Return what the watch cannot tell, and what the counts of a start lack; no budget has to name it."""
    for key, gaps in ((WATCH, _open_gaps(audit, budgets)), (START, _start_gaps(audit, budgets))):
        if gaps:
            shown = tuple(Contributor(f"{gap.detail} (--accept {gap.kind.value})", 0) for gap in gaps)
            yield BudgetResult(key, len(gaps), 0, is_count=True, is_exceeded=True, contributors=shown)


def _results(
    budget: Budget,
    audit: "Audit",
    baseline: "Audit | None",
    budgets: Budgets,
    comparison: Comparison | None,
    spreads: tuple[Spreads, Spreads],
) -> Iterable[BudgetResult]:
    """Check each limit of a budget; the spreads are those of the starts of the baseline, and of those now."""
    measured = 0 if _is_gone(budget, comparison, budgets) else _measure(budget, audit, budgets)
    if measured is None:
        # What is limited may not have come into being, or was watched too short: that itself is a result, or accepted.
        if audit.run_failures or (audit.over_time is not None and budget.name in _NEEDS):
            return
        raise UsageError(f"{budgets.file}: {budget.key}: {_absent(budget, audit)}")
    contributors, is_growth = _contributors(budget, audit, comparison, budgets.at_processes)
    contributors, parts = _without_counts(budget, contributors)

    def result(most: int, grew_from: int | None = None, remark: str = "") -> BudgetResult:
        return BudgetResult(
            budget.key,
            measured,
            most,
            _is_count(budget),
            measured > most,
            contributors=tuple(map(Contributor._make, contributors)),
            is_growth=is_growth,
            grew_from=grew_from,
            remark=remark or parts,
            line=budget.line,
        )

    limit = budget.limit
    if limit.most is not None:
        spread = _spread_of(budget, audit, spreads[1], budgets.at_processes)
        beside = _starts_beside(spread, _start_count(budget, spreads[1]), measured, limit.most, budget.name)
        yield result(limit.most, remark=beside or _trend_beside(budget, audit))
    if not limit.needs_baseline or baseline is None:
        return
    before = _before(budget, baseline, audit, budgets)
    increase = limit.increase_from(before)
    if budget.table == "findings":
        yield _growth_of_findings(result(increase, 0), budget, audit, baseline, before)
        return
    is_noise = comparison and _is_noise(budget, comparison, measured - before, spreads)
    remark = ""
    counts = [_start_count(budget, spread) for spread in spreads]
    if is_noise:
        remark = "within the spread of the starts"
    elif measured < before - increase:
        remark = "" if audit.run_failures else _SMALLER
    elif is_noise is False and measured > before + increase and max(counts) > 1:
        remark = f"beyond the spread of the starts, with {100 * separation_confidence(*counts):.3g} % confidence"
    yield result(before + increase, before, remark)._replace(is_noise=is_noise is True)


def _without_counts(budget: Budget, parts: "_Contributors") -> "tuple[_Contributors, str]":
    """Return contributors whose sizes are sizes: numbers of things become a remark."""
    if budget.name not in _OF_OBJECT or not _is_count(budget):
        return parts, ""
    return tuple([(name, 0) for name, _ in parts]), ", ".join([f"{count:,} in {name}" for name, count in parts])


def _is_count(budget: Budget) -> bool:
    """Return whether a budget limits a number of things, not bytes."""
    if budget.table == "findings":
        return not budget.is_of_bytes
    return budget.table == "figures" and FIGURES[budget.name].is_count


def _before(budget: Budget, baseline: "Audit", audit: "Audit", budgets: Budgets) -> int:
    """Return the figure of the baseline; 0 for what it does not contain.

    Raises:
        UsageError: If the baseline may contain it, but does not know its size, or if it is about processes that start
            in another way.
    """
    before = _measure(budget, baseline, budgets)
    if before is not None:
        # Groups are started as they are.
        models = [None if side.is_group else side.projection.model for side in (baseline, audit)]
        if budget.name == "total_at_count_bytes" and models[0] is not models[1]:
            how = f"the baseline has the cost in the model {models[0]}, this in the model {models[1]}"
            raise UsageError(f"{budgets.file}: {budget.key}: {how}: --update-baseline writes a new one")
        return before
    if budget.table in {"figures", "findings"} or _is_untold(budget, baseline):
        name = baseline.saved_in or "the baseline"
        raise UsageError(
            f"{budgets.file}: {budget.key}: {name} does not have its value: --update-baseline writes a new one"
        )
    return 0


def _measure(budget: Budget, audit: "Audit", budgets: Budgets) -> int | None:
    """Return the figure that a budget limits; None if the audit does not contain it, or does not know it."""
    if budget.table == "figures":
        return figure_of(budget.name, audit, budgets.at_processes)
    if budget.table == "findings":
        if not _has_all_counted(budget, audit):
            return None
        counted = _counted_findings(budget, audit.findings)
        return sum(f.about_bytes for f in counted) if budget.is_of_bytes else len(counted)
    if budget.table == "retained":
        return _retained_bytes(budget, audit)
    rows = _rows_of(budget, audit)
    if not rows:
        return 0 if budget.table == "kinds" and _tells_kind(budget.name, audit) else None
    if budget.table == "symbols":
        return sum(row.mapped_bytes for row in rows)
    values = [row.bytes for row in rows if row.bytes is not None]
    return sum(values) if len(values) == len(rows) else None


def _retained_bytes(budget: Budget, audit: "Audit") -> int | None:
    """Return what leaves with the objects that a budget names, each byte once; None if none of them is there."""
    named = _objects_of(budget, audit)
    if len(named) > 1:
        return sum(linked.own_bytes for linked in _leaving(budget, audit))
    return named[0].retained_bytes if named else None


def _leaving(budget: Budget, audit: "Audit") -> list[ObjectCost]:
    """Return the objects that leave with one of those that a budget names."""
    holders = {linked.path: linked.held_by for linked in audit.objects}
    paths = {linked.path for linked in _objects_of(budget, audit)}
    return [o for o in audit.objects if not paths.isdisjoint((o.path, *holders_of(o.path, holders)))]


def _tells_kind(kind: str, audit: "Audit") -> bool:
    """Return whether an audit without memory of a kind proves that there is none: files say nothing about heaps."""
    return audit.source != "prediction" or MemoryKind(kind) in OF_OBJECTS


def figure_of(name: str, audit: "Audit", count: int = 1) -> int | None:
    """Return a figure of `BUDGETED`; None if the audit does not know it."""
    if name == "library_count":
        return len(_files(audit))
    if name == "peak_bytes":
        return audit.peak_bytes
    if name == START_CPU:
        return audit.start_cpu_us
    if name in _OF_SERIES:
        return None if audit.over_time is None else audit.over_time._asdict()[name]
    if name in _OF_OBJECT:
        values = [value for o in audit.objects if (value := _OF_OBJECT[name](o)) is not None]
        return sum(values) if values else None
    if name == "total_at_count_bytes":
        # What the audit itself says of so many: in another model one more costs something else.
        return None if audit.cost_projection is None else cost_at(audit.cost_projection.terms, count)
    figure = audit.figures.get(name)
    return audit.counts.get(name) if figure is None else figure.bytes


def _cost_name(audit: "Audit") -> str:
    """Return the name of the figure that is what one more costs."""
    return f"per_{audit.noun}_bytes"


def _files(audit: "Audit") -> dict[str, None]:
    """Return the objects of a process: the files whose code or data is mapped."""
    return dict.fromkeys(row.owner for row in audit.ledger if row.kind in OF_OBJECTS and is_file(row.owner))


def _rows_of(budget: Budget, audit: "Audit") -> list[Row]:
    return [row for row in audit.ledger if _is_limited(row, budget)]


def _is_limited(row: Row | RowChange, budget: Budget) -> bool:
    """Return whether a row counts towards the figure that a budget limits."""
    if budget.table == "figures":
        return True
    if budget.table == "owners":
        return row.owner in budget.owners
    if budget.table == "kinds":
        return row.kind.value == budget.name
    # By its linker name, or by the name that is shown.
    return row.symbol is not None and budget.name in {row.symbol, row.name}


def _counted_findings(budget: Budget, findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if budget.counts(finding)]


def _grown_findings(budget: Budget, audit: "Audit", baseline: "Audit") -> Iterable[tuple[Finding, int, bool]]:
    """Return the counted findings that are new or larger than in the baseline: by how much, and whether they are new.

    What is gone makes no room for them.
    """
    names = {now: before for before, now in owner_names(baseline, audit).items()}
    counted, before = (_counted_findings(budget, side.findings) for side in (audit, baseline))
    for finding, partner in paired_findings(counted, before, names):
        grown_bytes = finding.about_bytes - (0 if partner is None else partner.about_bytes)
        if partner is None or grown_bytes > 0:
            yield finding, grown_bytes, partner is None


def _growth_of_findings(
    result: BudgetResult, budget: Budget, audit: "Audit", baseline: "Audit", before: int
) -> BudgetResult:
    """Return the result for what the baseline does not have, given one for what is there now."""
    grown = list(_grown_findings(budget, audit, baseline))
    value = sum(size_bytes for _, size_bytes, _ in grown) if budget.is_of_bytes else sum(new for _, _, new in grown)
    remark = ""
    if result.value - value < before and not audit.run_failures:
        remark = "what is gone since the baseline makes no room for what is new"
        if not value:
            remark = "less than in the baseline: --update-baseline keeps it so"
    return result._replace(value=value, is_exceeded=value > result.limit, remark=remark)


def _has_all_counted(budget: Budget, audit: "Audit") -> bool:
    """Return whether an audit has all findings that a budget counts: the rule was run, and none of them is left out."""
    return covers(audit, budget.name) and not (budget.counts_doubtful and _leaves_out(budget.name, audit))


def check_counted(conditions: Iterable[Budget], audit: "Audit") -> None:
    """Check that an audit has all findings that budgets count.

    Raises:
        UsageError: If it was not searched for some of them, or leaves them out.
    """
    for condition in conditions:
        if not _has_all_counted(condition, audit):
            raise UsageError(f"{condition.key}: {_not_searched(condition, audit)}")


def _leaves_out(rule: str, audit: "Audit") -> bool:
    """Return whether doubtful findings of a rule may be missing in an audit; those of earlier versions do not tell."""
    if not audit.searched_rules:
        return fact_of(rule) is Fact.VARIABLES
    return any(searched_rule.left_out_count for searched_rule in audit.searched_rules if searched_rule.rule == rule)


def _is_untold(budget: Budget, audit: "Audit") -> bool:
    """Return whether the subject of a budget may be there although its size is not known."""
    return not audit.objects if budget.table == "retained" else bool(_rows_of(budget, audit))


def _is_gone(budget: Budget, comparison: Comparison | None, budgets: Budgets) -> bool:
    """Return whether the subject of a budget is in the baseline, and left since: its name is not mistyped."""
    if comparison is None or budget.table not in {"owners", "retained", "symbols"}:
        return False
    audit = comparison.new
    if _measure(budget, audit, budgets) is not None or _is_untold(budget, audit):
        return False
    if budget.table == "symbols" and (comparison.unevenly_named or all(row.symbol is None for row in audit.ledger)):
        return False  # without its symbols, the variable may still be there
    return _measure(budget, comparison.old, budgets) is not None


def _absent(budget: Budget, audit: "Audit") -> str:
    """Explain why a figure is missing, and suggest what could be meant."""
    if budget.table == "findings":
        return _not_searched(budget, audit)
    if budget.table == "figures" and budget.name not in {*audit.figures, *audit.counts, *_OF_ANY}:
        return f"this is a {audit.noun}, which has no such figure: its cost is {_cost_name(audit)}"
    if budget.name in _MAKERS:
        return _MAKERS[budget.name]
    if budget.table == "figures" or (budget.table == "retained" and not audit.objects):
        return "this target does not have this figure"
    if _is_untold(budget, audit):
        return "this target has virtual sizes only"
    alternatives: set[str | None]
    if budget.table == "owners":
        alternatives = {file_name(row.owner) for row in audit.ledger}
    elif budget.table == "kinds":
        alternatives = {row.kind.value for row in audit.ledger}
    elif budget.table == "retained":
        alternatives = {linked.name for linked in audit.objects}
    else:
        alternatives = {row.symbol for row in audit.ledger}
    among = {"retained": "libraries"}.get(budget.table, budget.table)
    return f"there is no {budget.name!r} among its {among}{nearest_of(budget.name, sorted(filter(None, alternatives)))}"


def _not_searched(budget: Budget, audit: "Audit") -> str:
    """Explain why the findings of a rule are missing, and what to do."""
    name = audit.saved_in or audit.target
    if fact_of(budget.name) is Fact.HEAP:
        return f"{name} was not looked into for that: `--heap` joins a profile"
    if not covers_files(audit):
        how = "`--findings` does so for a live process; for a run, check its program"
        return f"{name} was not looked into for that: {how}"
    if not covers(audit, budget.name):
        return f"{name} has no symbols, so its variables are not known: keep its debug file, or do not strip it"
    return (
        f"{name} was saved without doubtful findings, which count here: save it with `audit --findings`, or set "
        'least_confidence = "medium"'
    )


_Contributors = tuple[tuple[str, int], ...]


def _contributors(
    budget: Budget, audit: "Audit", comparison: Comparison | None, count: int
) -> tuple[_Contributors, bool]:
    """Return what of a figure grew since the baseline, or else what it is made of; and which of the two it is."""
    if budget.name == "hourly_growth_bytes" and audit.over_time is not None:
        hourly_bytes = audit.over_time.hourly_growth_bytes or 0
        shares = audit.over_time.growth_shares
        return _largest((file_name(owner), round(share * hourly_bytes)) for owner, share in shares), True
    grown = () if comparison is None else _grown(budget, comparison)
    if grown:
        return grown, True
    return _parts(budget, audit, count), False


def _parts(budget: Budget, audit: "Audit", count: int) -> _Contributors:
    """Return the largest parts of a figure."""
    if budget.table == "findings":
        return _of_findings(_counted_findings(budget, audit.findings))
    if budget.table == "retained":
        return _largest((linked.name, linked.own_bytes) for linked in _leaving(budget, audit))
    if budget.name in {"peak_bytes", "usual_most_bytes"} and audit.over_time is not None:
        return _largest((file_name(owner), size_bytes) for owner, size_bytes in audit.over_time.peak_parts)
    if budget.name == "library_count":
        # As parts they count one each; the sizes show which of them could go.
        files = _files(audit)
        rows = [row for row in audit.ledger if row.owner in files]
        figure = "private_bytes" if audit.figures["private_bytes"].bytes is not None else "mapped_bytes"
        sums = _sums_by_file(figure, rows)
    elif budget.name == "total_at_count_bytes":
        sums = _added_up((_part_name(cost_part), cost_part.at_count(count)) for cost_part in cost_parts(audit))
    elif budget.table == "figures":
        sums = parts_of(budget.name, audit)
    elif budget.table == "kinds":
        sums = _sums_by_file(budget.table, _rows_of(budget, audit))
    else:
        sums = _sums(
            budget.table,
            _rows_of(budget, audit),
            lambda row: row.symbol or row.name or row.section or file_name(row.owner),
        )
    return _largest(sums.items())


def _largest(parts: Iterable[tuple[str, int]]) -> _Contributors:
    largest = sorted(parts, key=lambda item: (-item[1], item[0]))
    return tuple(part for part in largest[:_MOST_CONTRIBUTORS] if part[1] > 0)


def _of_findings(findings: Iterable[Finding]) -> _Contributors:
    largest = sorted(findings, key=lambda finding: (-finding.about_bytes, finding.subject))
    return tuple((finding.subject, finding.about_bytes) for finding in largest[:_MOST_CONTRIBUTORS])


def parts_of(figure: str, audit: "Audit") -> dict[str, int]:
    """Return the parts of a figure of `BUDGETED` by file name of the owner; empty if owners do not make it up."""
    if figure in _WITHOUT_PARTS:
        return {}
    if figure == "library_count":
        return dict(Counter(map(file_name, _files(audit))))
    if figure in _OF_OBJECT:
        return _added_up((file_name(o.path), _OF_OBJECT[figure](o) or 0) for o in audit.objects)
    if figure == "floor_bytes":
        # A process is measured: its pages are not those of the startup minimum.
        of_objects = audit.objects if audit.source == "prediction" else ()
        return _added_up((file_name(linked.path), linked.own_bytes) for linked in of_objects)
    sums = _sums_by_file(figure, audit.ledger)
    return sums | (_shared_parts(audit) if figure == _cost_name(audit) else {})


def _shared_parts(audit: "Audit") -> dict[str, int]:
    """Return the shared memory that is part of what one more costs, and that no row of the ledger has as its own."""
    figures = audit.figures
    if audit.members:
        sizes = {name: figures[name].bytes for name in OF_GROUP}
    else:
        listed_bytes = sum(figures[name].bytes or 0 for name in ("private_bytes", "kernel_bytes"))
        sizes = {"own_shared_bytes": (audit.cost.bytes or listed_bytes) - listed_bytes}
    return {f"[{FIGURES[name].title}]": size_bytes for name, size_bytes in sizes.items() if size_bytes}


def _part_name(part: CostPart) -> str:
    return file_name(part.name) if part.is_owner else f"[{part.name}]"


def _sums_by_file(figure: str, rows: Iterable[Row]) -> dict[str, int]:
    # There are far fewer owners than rows.
    sums = _sums(figure, rows, attrgetter("owner"))
    return _added_up((file_name(owner), size_bytes) for owner, size_bytes in sums.items())


def _sums(figure: str, rows: Iterable[Row], name_of: Callable[[Row], str]) -> dict[str, int]:
    if figure == "shared_once_bytes":
        return _added_up((name_of(row), row.shared_bytes or 0) for row in rows)
    return _added_up(
        (name_of(row), _part(figure, row.kind, row.bytes or 0, row.mapped_bytes, is_writable=row.is_writable))
        for row in rows
    )


def _added_up(parts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Add up sizes by their names; without those that are 0."""
    sums: dict[str, int] = {}
    for name, size_bytes in parts:
        sums[name] = sums.get(name, 0) + size_bytes
    return {name: size_bytes for name, size_bytes in sums.items() if size_bytes}


# The initial values of thread-local variables lie in the part that the loader seals.
_WRITTEN: Final = frozenset({MemoryKind.DATA, MemoryKind.BSS, MemoryKind.RELRO, MemoryKind.TLS})


def _part(figure: str, kind: MemoryKind, private_bytes: int, mapped_bytes: int, *, is_writable: bool) -> int:
    """Return what a row, or the change of a row, adds to a figure or to a table of budgets."""
    if figure in {"private_bytes", "floor_bytes"}:
        return 0 if kind is MemoryKind.KERNEL else private_bytes
    if figure == "kernel_bytes":
        return private_bytes if kind is MemoryKind.KERNEL else 0
    if figure in {"mapped_bytes", "symbols"}:
        return mapped_bytes
    if figure == "mapped_writable_bytes":
        return mapped_bytes if is_writable else 0
    if figure == "ceiling_bytes":
        return mapped_bytes if kind in _WRITTEN else 0
    return private_bytes


def _objects_of(budget: Budget, audit: "Audit") -> list[ObjectCost]:
    return [linked for linked in audit.objects if linked.path in budget.owners]


def _grown(budget: Budget, comparison: Comparison) -> _Contributors:
    """Return what grew of the subject of a budget, the most first: by symbol, or else by owner."""
    if budget.table == "findings":
        grown = _grown_findings(budget, comparison.new, comparison.old)
        sizes = [(finding.subject, size_bytes) for finding, size_bytes, is_new in grown if is_new or budget.is_of_bytes]
        return tuple(sorted(sizes, key=lambda item: (-item[1], item[0]))[:_MOST_CONTRIBUTORS])
    if budget.name == "library_count":
        return tuple(_new_files(comparison)[:_MOST_CONTRIBUTORS])
    if budget.name == "floor_bytes" or budget.name in _OF_OBJECT:
        before = parts_of(budget.name, comparison.old)
        now = parts_of(budget.name, comparison.new)
        return _largest((name, size_bytes - before.get(name, 0)) for name, size_bytes in now.items())
    if budget.table == "retained":
        left = {o.name: o.own_bytes for o in _leaving(budget, comparison.old)}
        return _largest((o.name, o.own_bytes - left.get(o.name, 0)) for o in _leaving(budget, comparison.new))
    if budget.name in _WITHOUT_PARTS:
        return ()
    if budget.name == "total_at_count_bytes":
        return _largest(_grown_cost(budget, comparison).items())
    rows = _grown_rows(budget, comparison)
    if budget.name == _cost_name(comparison.new):
        before = _shared_parts(comparison.old)
        rows += [(name, -size_bytes) for name, size_bytes in before.items()]
        rows += _shared_parts(comparison.new).items()
    return _largest(_added_up(rows).items())


def _grown_rows(budget: Budget, comparison: Comparison) -> list[tuple[str, int]]:
    """Return what grew of the rows that a budget limits, by variable, or else by owner."""
    figure = budget.name if budget.table == "figures" else budget.table
    root_of = comparison.root_of if budget.table in {"figures", "kinds"} else {}
    return [
        (
            file_name(root_of.get(change.owner, change.owner))
            if change.symbol is None or change.owner in root_of
            else _variable_name(change),
            _part(figure, change.kind, change.delta_bytes, change.mapped_delta_bytes, is_writable=change.is_writable),
        )
        for change in comparison.changes
        if _is_limited(change, budget)
    ]


def _grown_cost(budget: Budget, comparison: Comparison) -> dict[str, int]:
    """Return what grew of what N cost, by variable, owner or term: the sum is the growth of the whole."""
    count, names = comparison.count, owner_names(comparison.old, comparison.new)
    sides = [cost_parts(audit) for audit in (comparison.old, comparison.new)]
    grown: list[tuple[str, int]] = []
    if all(any(part.is_owner for part in side) for side in sides):
        grown = [(name, count * size_bytes) for name, size_bytes in _grown_rows(budget, comparison)]
        sides = [tuple(p._replace(each_bytes=0) if p.is_owner else p for p in side) for side in sides]
    else:
        sides = [term_parts(audit.projection.terms) for audit in (comparison.old, comparison.new)]
    for sign, side in zip((-1, 1), sides, strict=True):
        for part in side:
            owner = names.get(part.name, part.name) if sign < 0 else part.name
            name = _part_name(part._replace(name=comparison.root_of.get(owner, owner)))
            # The number of a process, or of workers, is another one in each audit.
            grown.append((name if part.is_owner else _NUMBER.sub("", name), sign * part.at_count(count)))
    return _added_up(grown)


def _is_noise(
    budget: Budget, comparison: Comparison, delta_bytes: int, spreads: tuple[Spreads, Spreads]
) -> bool | None:
    """Return whether the starts of both runs overlap in a figure: its growth may be chance; None if that is unknown."""
    if not delta_bytes:
        return None
    if budget.table == "owners":
        owners = [owner for owner in comparison.owners if owner.owner in budget.owners]
        if sum(owner.delta_bytes for owner in owners) != delta_bytes or any(owner.is_noise is None for owner in owners):
            return None
        return all(owner.is_noise for owner in owners)
    before, now = (
        _spread_of(budget, audit, spread, comparison.count)
        for audit, spread in zip((comparison.old, comparison.new), spreads, strict=True)
    )
    return None if before is None or now is None else overlap(before, now)


def _spread_of(budget: Budget, audit: "Audit", spreads: Spreads, count: int) -> Spread | None:
    """Return how far the starts differ in what a budget limits; None where that is unknown, or one value for all."""
    if budget.table == "figures":
        figures = {"private_bytes": spreads.private, _cost_name(audit): spreads.per_process}
        figures |= {"peak_bytes": spreads.peak, START_CPU: spreads.start_cpu}
        if budget.name == "total_at_count_bytes" and spreads.per_process is not None:
            rest_bytes = (figure_of(budget.name, audit, count) or 0) - count * (audit.cost.bytes or 0)
            return Spread._make(rest_bytes + size_bytes * count for size_bytes in spreads.per_process)
        return figures.get(budget.name)
    tables = {"owners": spreads.owners, "kinds": spreads.kinds, "retained": spreads.retained}
    table = tables.get(budget.table)
    if not table:
        return None
    fitting = [spread for name, spread in table.items() if name == budget.name or name in budget.owners]
    # Without it, a run holds 0. Several have no common spread: in one start the one is large, in the next the other.
    return None if len(fitting) > 1 else fitting[0] if fitting else NO_MEMORY


def _start_count(budget: Budget, spreads: Spreads) -> int:
    """Return in how many starts what a budget limits was measured."""
    return spreads.start_cpu_count if budget.name == START_CPU else spreads.start_count


def _starts_beside(spread: Spread | None, start_count: int, measured: int, most: int, name: str) -> str:
    """Remark that some starts lie on the other side of a limit than the median, which decides."""
    if spread is None or start_count < 2 or (spread.min > most) is (spread.max > most):
        return ""
    word, size_bytes = ("smallest", spread.min) if measured > most else ("largest", spread.max)
    size = format_us(size_bytes) if name == START_CPU else format_bytes(size_bytes)
    return f"the {word} of {start_count:,} starts is {size}"


def _trend_beside(budget: Budget, audit: "Audit") -> str:
    """Return the growth as `watch` shows it: a limit holds for the lower end of its interval."""
    if budget.name != "hourly_growth_bytes" or audit.over_time is None or audit.over_time.hourly_trend is None:
        return ""
    rate, *ends = (f"{format_bytes(round(size))}/h" for size in audit.over_time.hourly_trend)
    return f"at least: it grows {rate} ({' to '.join(ends)})"


def _new_files(comparison: Comparison) -> list[tuple[str, int]]:
    """Return the files that the baseline does not have, the largest first: each root with all that it brought."""
    root_of = comparison.root_of
    sizes: dict[str, int] = {}
    for change in comparison.owners:
        if change.is_new and change.is_object:
            name = file_name(root_of.get(change.owner, change.owner))
            sizes[name] = sizes.get(name, 0) + change.delta_bytes
    return sorted(sizes.items(), key=lambda item: (-item[1], item[0]))


def _libraries(audit: "Audit", budgets: Budgets, comparison: Comparison | None) -> Iterable[BudgetResult]:
    """Check each list of libraries: count the mapped ones that must not be mapped."""
    program, *libraries = _files(audit) or [""]
    names = [file_name(path) for path in (program, *libraries) if ".so" in file_name(path)]
    sizes = parts_of(_cost_name(audit), audit)
    lists: list[tuple[str, int, Iterable[tuple[str, int]], str]] = []
    if budgets.allowed is not None:
        strange = [(name, sizes.get(name, 0)) for name in names if not matches(name, budgets.allowed)]
        lists.append(("libraries.allow", len(strange), strange, "not in the list"))
    if budgets.denied:
        denied = [(name, sizes.get(name, 0)) for name in names if matches(name, budgets.denied)]
        lists.append(("libraries.deny", len(denied), denied, "denied"))
    if not budgets.allows_new and comparison is not None:
        new_count = sum(owner.is_new and owner.is_object for owner in comparison.owners)
        lists.append(("libraries.allow_new", new_count, _new_files(comparison), "not in the baseline"))
    for key, count, parts, remark in lists:
        yield BudgetResult(
            key,
            count,
            0,
            is_count=True,
            is_exceeded=bool(count),
            contributors=tuple(map(Contributor._make, parts)),
            is_growth=key == "libraries.allow_new",
            remark=remark if count else "",
            line=budgets.library_lines.get(key.removeprefix("libraries.")),
        )


def propose(audit: "Audit", room: Fraction = A_TWENTIETH) -> str:
    """Format a first budget file: each measured value, and a part of it as room."""
    heading = f"# What one {audit.noun} may cost. `footprint check` fails where one of these is exceeded."
    lines = [heading, "", "[budgets]"]
    for name in (_cost_name(audit), "private_bytes", "per_worker_bytes", "mapped_writable_bytes"):
        size_bytes = figure_of(name, audit)
        if size_bytes is not None:
            lines.append(
                f'{name} = "{_with_room(size_bytes, room)}"  # {format_bytes(size_bytes)} now: {FIGURES[name].meaning}'
            )
    lines.append(f"library_count = {len(_files(audit))}")
    if audit.start_cpu_us is not None:
        # What else the machine does adds to times: by half as much again on a busy one.
        most_us, now = math.ceil(audit.start_cpu_us * (1 + max(room, _TIME_ROOM))), format_us(audit.start_cpu_us)
        lines.append(f'{START_CPU} = "{most_us} us"  # {now} now: {FIGURES[START_CPU].meaning}')
    sonames = {file_name(owner): soname_of(owner, audit) for owner in dict.fromkeys(row.owner for row in audit.ledger)}
    parts = parts_of("private_bytes", audit).items()
    if largest := _largest(_added_up((sonames[name], size) for name, size in parts).items()):
        lines += ["", "[budgets.owners]"]
        # TOML has no name that is not UTF-8.
        utf8 = [(name, size) for name, size in largest if name == name.encode(errors="ignore").decode()]
        lines += [f'{_quoted(name)} = "{_with_room(size, room)}"  # {format_bytes(size)} now' for name, size in utf8]
    rules = [Budget("", "findings", rule, Limit(0)) for rule in dict.fromkeys(f.rule for f in audit.findings)]
    counts = {b.name: len(_counted_findings(b, audit.findings)) for b in rules if _has_all_counted(b, audit)}
    if any(counts.values()):
        lines += ["", "[budgets.findings]", *(f"{rule} = {count}" for rule, count in counts.items() if count)]
    return "\n".join(lines) + "\n"


def _with_room(size_bytes: int, room: Fraction) -> str:
    """Format a size and a part of it, in the digits that sizes are written with; never less than the size."""
    most_bytes = math.ceil(size_bytes * (1 + room))
    text = format_bytes(most_bytes)
    if parse_bytes(text) < size_bytes:
        # One more in the last digit: sizes have two decimals below 10, one below 1000.
        unit_bytes = 1 << (most_bytes.bit_length() - 1) // 10 * 10
        digits = 100 if most_bytes < 9.995 * unit_bytes else 10 if most_bytes < 999.95 * unit_bytes else 1
        text = format_bytes(most_bytes + unit_bytes // digits)
    return text


def _quoted(text: str) -> str:
    """Format a text as a TOML string: quotes, backslashes and control characters as escapes."""
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 0x20 or ord(c) == 0x7F or c in '"\\' else c for c in text)
    return f'"{escaped}"'
