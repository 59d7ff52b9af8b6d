"""Check the budgets of a process, by itself and against a baseline, and find what makes it exceed them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.errors import Note, UsageError
from footprint.findings.registry import Fact, fact_of
from footprint.members import Positive, Signed, json_members
from footprint.model.cost_parts import OF_GROUP, CostPart, cost_parts, term_parts
from footprint.model.figures import FIGURES, FigureUnit
from footprint.model.finding import Finding, SourceLocation
from footprint.model.object_cost import ObjectCost, holders_of
from footprint.model.owner import file_name, is_file
from footprint.model.projection import Model, cost_at
from footprint.model.row import OF_OBJECTS, MemoryKind, Row
from footprint.model.run_failure import which_starts
from footprint.model.spread import NO_MEMORY, ONE_START, Spread, Spreads, overlap, separation_confidence
from footprint.release.budget_file import (
    Budget,
    Budgets,
    Limit,
    Waiver,
    matches,
    nearest_of,
    parse_budgets,
)
from footprint.release.compare import Comparison, RowChange, compare, covers, covers_files
from footprint.release.matching import named_owners, owner_names, paired_findings, soname_of
from footprint.release.new_libraries import NewRoot
from footprint.units import format_bytes

if TYPE_CHECKING:
    from footprint.model.audited import Audited

__all__ = (
    "RUN",
    "Budget",
    "BudgetResult",
    "Budgets",
    "Checked",
    "Limit",
    "Waiver",
    "check_audit",
    "check_counted",
    "figure_of",
    "lines_of",
    "nearest_of",
    "parse_budgets",
    "parts_of",
    "propose",
    "roots_of",
)

_MOST_CONTRIBUTORS: Final = 3
_NUMBER: Final = re.compile(r" ?\d[\d,]* ?")
# The figures that are computed from others, or from objects.
_OF_SERIES: Final = frozenset({"usual_most_bytes", "hourly_growth_bytes", "most_process_count"})
_OF_ANY: Final = frozenset({"total_at_count_bytes", "library_count", "tls_bytes", "peak_bytes", *_OF_SERIES})
# Owners do not make up these figures.
_WITHOUT_PARTS: Final = frozenset(
    {"mapping_count", "process_count", "per_worker_bytes", "peak_bytes", *_OF_SERIES, *OF_GROUP}
)
_SMALLER: Final = "smaller than the baseline by more than it may grow: --update-baseline lowers it"
RUN: Final = "run"
"""The key of the result that says how a run failed."""


class Contributor(NamedTuple):
    """A part of the value of a budget.

    Attributes:
        name: The owner, variable or finding.
        size_bytes: Its bytes, or how much it grew.
    """

    name: str
    size_bytes: Signed


@json_members("key value limit unit is_exceeded fails grew_from contributors waiver is_noise remark line")
class BudgetResult(NamedTuple):
    """One limit of the budget file.

    Attributes:
        key: Its key in the file.
        value: The value of the audit; of a limit of growth of findings, what the baseline has not of them.
        limit: The largest value that passes.
        is_count: Whether both are numbers of things, not bytes.
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
        return FigureUnit.THINGS if self.is_count else FigureUnit.BYTES

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
        results: One for each limit, those that fail first.
        comparison: The changes since the baseline, where there is one.
    """

    audit: "Audited"
    budgets: Budgets
    results: tuple[BudgetResult, ...]
    comparison: Comparison | None

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes of the audit, and what makes it hard to compare with the baseline."""
        return (*self.audit.notes, *(() if self.comparison is None else self.comparison.loader_notes))

    @property
    def failures(self) -> tuple[BudgetResult, ...]:
        """The limits that are exceeded without a valid waiver."""
        return tuple(one for one in self.results if one.fails)


def check_audit(
    audit: "Audited",
    budgets: Budgets,
    baseline: "Audited | None",
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
    comparison = None if baseline is None else compare(baseline, audit, budgets.at_processes, baseline_spreads, spreads)
    limits = [one._replace(owners=_owners_of(one, audit, baseline)) for one in budgets.budgets]
    waivers = {one.budget: one._replace(is_expired=one.expires < today) for one in budgets.waivers}
    results = [
        *_run_results(audit, spreads.start_count),
        *(
            result
            for one in limits
            for result in _results(one, audit, baseline, budgets, comparison, (baseline_spreads, spreads))
        ),
        *_libraries(audit, budgets, comparison),
    ]
    waived = [one._replace(waiver=waiver) if (waiver := waivers.get(one.key)) else one for one in results]
    waived.sort(key=lambda one: (not one.fails, not one.is_exceeded))
    return Checked(audit, budgets, tuple(waived), comparison)


def _owners_of(budget: Budget, audit: "Audited", baseline: "Audited | None") -> frozenset[str]:
    """Return the owners that a budget names, in both audits: each with the name that it has on the other side."""
    if budget.table not in {"owners", "retained"}:
        return frozenset()
    found = named_owners(budget.name, audit)
    if baseline is None:
        return found
    before, names = named_owners(budget.name, baseline), owner_names(baseline, audit)
    found |= before | {names[owner] for owner in before if owner in names}
    return found | {owner for owner, name in names.items() if name in found}


def roots_of(result: BudgetResult, checked: Checked) -> tuple[NewRoot, ...]:
    """Return the new libraries that brought what makes a budget exceeded: the roots of its contributors."""
    comparison = checked.comparison
    if comparison is None or not comparison.roots:
        return ()
    root_by_name = {file_name(owner): root for owner, root in comparison.root_of.items()}
    names = {one.name.rpartition(" (")[2].removesuffix(")") for one in result.contributors}
    roots = {root_by_name[name] for name in names if name in root_by_name}
    return tuple(one for one in comparison.roots if one.owner in roots)


def lines_of(checked: Checked) -> dict[str, SourceLocation]:
    """Return the lines that declare the variables that grew, by the names that these have as contributors."""
    places: dict[str, set[SourceLocation | None]] = {}
    for one in () if checked.comparison is None else checked.comparison.grown_variables:
        places.setdefault(_variable_name(one), set()).add(one.location)
    return {name: line for name, (line, *others) in places.items() if line is not None and not others}


def _variable_name(one: RowChange) -> str:
    return f"{one.symbol} ({file_name(one.owner)})"


def _run_results(audit: "Audited", start_count: int) -> Iterable[BudgetResult]:
    """Return the failures of the run whose audit it is; no budget has to name them."""
    if audit.run_failures:
        count = len(audit.run_failures)
        starts: dict[str, list[int]] = {}
        for one in audit.run_failures:
            starts.setdefault(one.detail, []).append(one.start)
        shown = tuple(
            Contributor(f"{detail}{which_starts(failed, start_count)}", 0) for detail, failed in starts.items()
        )
        yield BudgetResult(RUN, count, 0, is_count=True, is_exceeded=True, contributors=shown)


def _results(
    budget: Budget,
    audit: "Audited",
    baseline: "Audited | None",
    budgets: Budgets,
    comparison: Comparison | None,
    spreads: tuple[Spreads, Spreads],
) -> Iterable[BudgetResult]:
    """Check each limit of a budget; the spreads are those of the starts of the baseline, and of those now."""
    measured = 0 if _is_gone(budget, comparison, budgets) else _measure(budget, audit, budgets)
    if measured is None:
        if audit.run_failures:  # what is limited may not have come into being; the failure itself is a result
            return
        raise UsageError(f"{budgets.file}: {budget.key}: {_absent(budget, audit)}")
    contributors, is_growth = _contributors(budget, audit, comparison, budgets.at_processes)

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
            remark=remark,
            line=budget.line,
        )

    limit = budget.limit
    if limit.most is not None:
        spread = _spread_of(budget, audit, spreads[1], budgets.at_processes)
        yield result(limit.most, remark=_starts_beside(spread, spreads[1].start_count, measured, limit.most))
    if not limit.needs_baseline or baseline is None:
        return
    before = _before(budget, baseline, audit, budgets)
    increase = limit.increase_from(before)
    if budget.table == "findings":
        yield _growth_of_findings(result(increase, 0), budget, audit, baseline, before)
        return
    is_noise = comparison and _is_noise(budget, comparison, measured - before, spreads)
    remark = ""
    counts = [one.start_count for one in spreads]
    if is_noise:
        remark = "within the spread of the starts"
    elif measured < before - increase:
        remark = "" if audit.run_failures else _SMALLER
    elif is_noise is False and measured > before + increase and max(counts) > 1:
        remark = f"beyond the spread of the starts, with {100 * separation_confidence(*counts):.3g} % confidence"
    yield result(before + increase, before, remark)._replace(is_noise=is_noise is True)


def _is_count(budget: Budget) -> bool:
    """Return whether a budget limits a number of things, not bytes."""
    if budget.table == "findings":
        return not budget.is_of_bytes
    return budget.table == "figures" and FIGURES[budget.name].is_count


def _before(budget: Budget, baseline: "Audited", audit: "Audited", budgets: Budgets) -> int:
    """Return the figure of the baseline; 0 for what it does not contain.

    Raises:
        UsageError: If the baseline may contain it, but does not know its size, or if it is about processes that start
            in another way.
    """
    before = _measure(budget, baseline, budgets)
    if before is not None:
        models = [_model_of(one) for one in (baseline, audit)]
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


def _model_of(audit: "Audited") -> Model | None:
    """Return how the N processes start; groups are started as they are."""
    return None if audit.members or audit.projection is None else audit.projection.model


def _measure(budget: Budget, audit: "Audited", budgets: Budgets) -> int | None:
    """Return the figure that a budget limits; None if the audit does not contain it, or does not know it."""
    if budget.table == "figures":
        return figure_of(budget.name, audit, budgets.at_processes)
    if budget.table == "findings":
        if not _has_all_counted(budget, audit):
            return None
        found = _counted_findings(budget, audit.findings)
        return sum(one.about_bytes for one in found) if budget.is_of_bytes else len(found)
    if budget.table == "retained":
        return _retained_bytes(budget, audit)
    rows = _rows_of(budget, audit)
    if not rows:
        return 0 if budget.table == "kinds" and _tells_kind(budget.name, audit) else None
    if budget.table == "symbols":
        return sum(row.mapped_bytes for row in rows)
    known = [row.bytes for row in rows if row.bytes is not None]
    return sum(known) if len(known) == len(rows) else None


def _retained_bytes(budget: Budget, audit: "Audited") -> int | None:
    """Return what leaves with the objects that a budget names, each byte once; None if none of them is there."""
    named = _objects_of(budget, audit)
    if len(named) > 1:
        return sum(one.own_bytes for one in _leaving(budget, audit))
    return named[0].retained_bytes if named else None


def _leaving(budget: Budget, audit: "Audited") -> list[ObjectCost]:
    """Return the objects that leave with one of those that a budget names."""
    holders = {one.path: one.held_by for one in audit.objects}
    paths = {one.path for one in _objects_of(budget, audit)}
    return [one for one in audit.objects if not paths.isdisjoint((one.path, *holders_of(one.path, holders)))]


def _tells_kind(kind: str, audit: "Audited") -> bool:
    """Return whether an audit without memory of a kind proves that there is none: files say nothing about heaps."""
    return audit.source != "prediction" or MemoryKind(kind) in OF_OBJECTS


def figure_of(name: str, audit: "Audited", count: int = 1) -> int | None:
    """Return a figure of `BUDGETED`; None if the audit does not know it."""
    if name == "library_count":
        return len(_files(audit))
    if name == "peak_bytes":
        return audit.peak_bytes
    if name in _OF_SERIES:
        return None if audit.over_time is None else audit.over_time._asdict()[name]
    if name == "tls_bytes":
        return sum(one.tls_bytes for one in audit.objects) if audit.objects else None
    if name == "total_at_count_bytes":
        # What the audit itself says of so many: in another model one more costs something else.
        projection = None if audit.cost.bytes is None else audit.projection
        return None if projection is None else cost_at(projection.terms, count)
    figure = audit.figures.get(name)
    return audit.counts.get(name) if figure is None else figure.bytes


def _cost_name(audit: "Audited") -> str:
    """Return the name of the figure that is what one more costs."""
    return f"per_{audit.noun}_bytes"


def _files(audit: "Audited") -> dict[str, None]:
    """Return the objects of a process: the files whose code or data is mapped."""
    return dict.fromkeys(row.owner for row in audit.ledger if row.kind in OF_OBJECTS and is_file(row.owner))


def _rows_of(budget: Budget, audit: "Audited") -> list[Row]:
    return [row for row in audit.ledger if _is_limited(row, budget)]


def _is_limited(one: Row | RowChange, budget: Budget) -> bool:
    """Return whether a row counts towards the figure that a budget limits."""
    if budget.table == "figures":
        return True
    if budget.table == "owners":
        return one.owner in budget.owners
    if budget.table == "kinds":
        return one.kind.value == budget.name
    # By its linker name, or by the name that is shown.
    return one.symbol is not None and budget.name in {one.symbol, one.name}


def _counted_findings(budget: Budget, findings: Iterable[Finding]) -> list[Finding]:
    return [one for one in findings if budget.counts(one)]


def _grown_findings(budget: Budget, audit: "Audited", baseline: "Audited") -> Iterable[tuple[Finding, int, bool]]:
    """Return the counted findings that are new or larger than in the baseline: by how much, and whether they are new.

    What is gone makes no room for them.
    """
    names = {now: before for before, now in owner_names(baseline, audit).items()}
    counted, before = (_counted_findings(budget, one.findings) for one in (audit, baseline))
    for one, partner in paired_findings(counted, before, names):
        grown_bytes = one.about_bytes - (0 if partner is None else partner.about_bytes)
        if partner is None or grown_bytes > 0:
            yield one, grown_bytes, partner is None


def _growth_of_findings(
    result: BudgetResult, budget: Budget, audit: "Audited", baseline: "Audited", before: int
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


def _has_all_counted(budget: Budget, audit: "Audited") -> bool:
    """Return whether an audit has all findings that a budget counts: the rule was run, and none of them is left out."""
    return covers(audit, budget.name) and not (budget.counts_doubtful and _leaves_out(budget.name, audit))


def check_counted(conditions: Iterable[Budget], audit: "Audited") -> None:
    """Check that an audit has all findings that budgets count.

    Raises:
        UsageError: If it was not searched for some of them, or leaves them out.
    """
    for one in conditions:
        if not _has_all_counted(one, audit):
            raise UsageError(f"{one.key}: {_not_searched(one, audit)}")


def _leaves_out(rule: str, audit: "Audited") -> bool:
    """Return whether doubtful findings of a rule may be missing in an audit; those of earlier versions do not tell."""
    if not audit.searched_rules:
        return fact_of(rule) is Fact.VARIABLES
    return any(one.left_out_count for one in audit.searched_rules if one.rule == rule)


def _is_untold(budget: Budget, audit: "Audited") -> bool:
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


def _absent(budget: Budget, audit: "Audited") -> str:
    """Explain why a figure is missing, and suggest what could be meant."""
    if budget.table == "findings":
        return _not_searched(budget, audit)
    if budget.table == "figures" and budget.name not in {*audit.figures, *audit.counts, *_OF_ANY}:
        return f"this is a {audit.noun}, which has no such figure: its cost is {_cost_name(audit)}"
    if budget.name == "peak_bytes":
        return "only a saved `run` has a peak, or a series: save one with `footprint run -o FILE.json -- COMMAND`"
    if budget.name in _OF_SERIES:
        return "only a series has it: make one with `footprint watch PID -o FILE.fps`"
    if budget.table == "figures" or (budget.table == "retained" and not audit.objects):
        return "this target does not tell it"
    if _is_untold(budget, audit):
        return "this target tells virtual sizes only"
    known: set[str | None]
    if budget.table == "owners":
        known = {file_name(row.owner) for row in audit.ledger}
    elif budget.table == "kinds":
        known = {row.kind.value for row in audit.ledger}
    elif budget.table == "retained":
        known = {one.name for one in audit.objects}
    else:
        known = {row.symbol for row in audit.ledger}
    among = {"retained": "libraries"}.get(budget.table, budget.table)
    return f"there is no {budget.name!r} among its {among}{nearest_of(budget.name, sorted(filter(None, known)))}"


def _not_searched(budget: Budget, audit: "Audited") -> str:
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
    budget: Budget, audit: "Audited", comparison: Comparison | None, count: int
) -> tuple[_Contributors, bool]:
    """Return what of a figure grew since the baseline, or else what it is made of; and which of the two it is."""
    grown = () if comparison is None else _grown(budget, comparison)
    if grown:
        return grown, True
    return _parts(budget, audit, count), False


def _parts(budget: Budget, audit: "Audited", count: int) -> _Contributors:
    """Return the largest parts of a figure."""
    if budget.table == "findings":
        return _of_findings(_counted_findings(budget, audit.findings))
    if budget.table == "retained":
        return _largest((one.name, one.own_bytes) for one in _leaving(budget, audit))
    if budget.name == "library_count":
        # As parts they count one each; the sizes show which of them could go.
        files = _files(audit)
        rows = [row for row in audit.ledger if row.owner in files]
        figure = "private_bytes" if audit.figures["private_bytes"].bytes is not None else "mapped_bytes"
        sums = _sums_by_file(figure, rows)
    elif budget.name == "total_at_count_bytes":
        sums = _added_up((_part_name(one), one.at_count(count)) for one in cost_parts(audit))
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
    return tuple(one for one in largest[:_MOST_CONTRIBUTORS] if one[1] > 0)


def _of_findings(findings: Iterable[Finding]) -> _Contributors:
    found = sorted(findings, key=lambda one: (-one.about_bytes, one.subject))
    return tuple((one.subject, one.about_bytes) for one in found[:_MOST_CONTRIBUTORS])


def parts_of(figure: str, audit: "Audited") -> dict[str, int]:
    """Return the parts of a figure of `BUDGETED` by file name of the owner; empty if owners do not make it up."""
    if figure in _WITHOUT_PARTS:
        return {}
    if figure == "library_count":
        return dict(Counter(map(file_name, _files(audit))))
    if figure == "tls_bytes":
        return _added_up((file_name(one.path), one.tls_bytes) for one in audit.objects)
    if figure == "floor_bytes":
        # A process is measured: its pages are not those of the startup minimum.
        of_objects = audit.objects if audit.source == "prediction" else ()
        return _added_up((file_name(one.path), one.own_bytes) for one in of_objects)
    sums = _sums_by_file(figure, audit.ledger)
    return sums | (_shared_parts(audit) if figure == _cost_name(audit) else {})


def _shared_parts(audit: "Audited") -> dict[str, int]:
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


def _objects_of(budget: Budget, audit: "Audited") -> list[ObjectCost]:
    return [one for one in audit.objects if one.path in budget.owners]


def _grown(budget: Budget, comparison: Comparison) -> _Contributors:
    """Return what grew of the subject of a budget, the most first: by symbol, or else by owner."""
    if budget.table == "findings":
        grown = _grown_findings(budget, comparison.new, comparison.old)
        sizes = [(one.subject, size_bytes) for one, size_bytes, is_new in grown if is_new or budget.is_of_bytes]
        return tuple(sorted(sizes, key=lambda item: (-item[1], item[0]))[:_MOST_CONTRIBUTORS])
    if budget.name == "library_count":
        return tuple(_new_files(comparison)[:_MOST_CONTRIBUTORS])
    if budget.name in {"tls_bytes", "floor_bytes"}:
        before = parts_of(budget.name, comparison.old)
        now = parts_of(budget.name, comparison.new)
        return _largest((name, size_bytes - before.get(name, 0)) for name, size_bytes in now.items())
    if budget.table == "retained" or budget.name in _WITHOUT_PARTS:
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
            file_name(root_of.get(one.owner, one.owner))
            if one.symbol is None or one.owner in root_of
            else _variable_name(one),
            _part(figure, one.kind, one.delta_bytes, one.mapped_delta_bytes, is_writable=one.is_writable),
        )
        for one in comparison.changes
        if _is_limited(one, budget)
    ]


def _grown_cost(budget: Budget, comparison: Comparison) -> dict[str, int]:
    """Return what grew of what N cost, by variable, owner or term: the sum is the growth of the whole."""
    count, names = comparison.count, owner_names(comparison.old, comparison.new)
    sides = [cost_parts(one) for one in (comparison.old, comparison.new)]
    grown: list[tuple[str, int]] = []
    if all(any(one.is_owner for one in side) for side in sides):
        grown = [(name, count * size_bytes) for name, size_bytes in _grown_rows(budget, comparison)]
        sides = [tuple(one._replace(each_bytes=0) if one.is_owner else one for one in side) for side in sides]
    else:
        sides = [term_parts(one.projection.terms) for one in (comparison.old, comparison.new) if one.projection]
    for sign, side in zip((-1, 1), sides, strict=True):
        for one in side:
            owner = names.get(one.name, one.name) if sign < 0 else one.name
            name = _part_name(one._replace(name=comparison.root_of.get(owner, owner)))
            # The number of a process, or of workers, is another one in each audit.
            grown.append((name if one.is_owner else _NUMBER.sub("", name), sign * one.at_count(count)))
    return _added_up(grown)


def _is_noise(
    budget: Budget, comparison: Comparison, delta_bytes: int, spreads: tuple[Spreads, Spreads]
) -> bool | None:
    """Return whether the starts of both runs overlap in a figure: its growth may be chance; None if that is unknown."""
    if not delta_bytes:
        return None
    if budget.table == "owners":
        own = [one for one in comparison.owners if one.owner in budget.owners]
        if sum(one.delta_bytes for one in own) != delta_bytes or any(one.is_noise is None for one in own):
            return None
        return all(one.is_noise for one in own)
    before, now = (
        _spread_of(budget, audit, spread, comparison.count)
        for audit, spread in zip((comparison.old, comparison.new), spreads, strict=True)
    )
    return None if before is None or now is None else overlap(before, now)


def _spread_of(budget: Budget, audit: "Audited", spreads: Spreads, count: int) -> Spread | None:
    """Return how far the starts differ in what a budget limits; None where that is unknown, or one value for all."""
    if budget.table == "figures":
        figures = {"private_bytes": spreads.private, _cost_name(audit): spreads.per_process, "peak_bytes": spreads.peak}
        if budget.name == "total_at_count_bytes" and spreads.per_process is not None:
            rest_bytes = (figure_of(budget.name, audit, count) or 0) - count * (audit.cost.bytes or 0)
            return Spread._make(rest_bytes + size_bytes * count for size_bytes in spreads.per_process)
        return figures.get(budget.name)
    tables = {"owners": spreads.owners, "kinds": spreads.kinds, "retained": spreads.retained}
    table = tables.get(budget.table)
    if not table:
        return None
    found = [spread for name, spread in table.items() if name == budget.name or name in budget.owners]
    # Without it, a run holds 0. Several have no common spread: in one start the one is large, in the next the other.
    return None if len(found) > 1 else found[0] if found else NO_MEMORY


def _starts_beside(spread: Spread | None, start_count: int, measured: int, most: int) -> str:
    """Write that some starts lie on the other side of a limit than the median, which decides."""
    if spread is None or start_count < 2 or (spread.min_bytes > most) is (spread.max_bytes > most):
        return ""
    word, size_bytes = ("smallest", spread.min_bytes) if measured > most else ("largest", spread.max_bytes)
    return f"the {word} of {start_count:,} starts is {format_bytes(size_bytes)}"


def _new_files(comparison: Comparison) -> list[tuple[str, int]]:
    """Return the files that the baseline does not have, each with its size: first those that brought others."""
    found = [one for one in comparison.owners if one.is_new and one.is_object]
    found.sort(key=lambda one: one.came_with is not None)
    return [(file_name(one.owner), one.delta_bytes) for one in found]


def _libraries(audit: "Audited", budgets: Budgets, comparison: Comparison | None) -> Iterable[BudgetResult]:
    """Check each list of libraries: count the mapped ones that must not be mapped."""
    program, *libraries = _files(audit) or [""]
    names = [file_name(path) for path in (program, *libraries) if ".so" in file_name(path)]
    lists: list[tuple[str, list[str], str]] = []
    if budgets.allowed is not None:
        strange = [name for name in names if not matches(name, budgets.allowed)]
        lists.append(("libraries.allow", strange, "not in the list"))
    if budgets.denied:
        lists.append(("libraries.deny", [name for name in names if matches(name, budgets.denied)], "denied"))
    if not budgets.allows_new and comparison is not None:
        new = [name for name, _ in _new_files(comparison)]
        lists.append(("libraries.allow_new", new, "not in the baseline"))
    sizes = parts_of(_cost_name(audit), audit) if lists else {}
    for key, found, remark in lists:
        yield BudgetResult(
            key,
            len(found),
            0,
            is_count=True,
            is_exceeded=bool(found),
            contributors=tuple(Contributor(name, sizes.get(name, 0)) for name in found),
            remark=remark if found else "",
            line=budgets.library_lines.get(key.removeprefix("libraries.")),
        )


def propose(audit: "Audited") -> str:
    """Write a first budget file: each measured value plus a twentieth, rounded up."""
    heading = f"# What one {audit.noun} may cost. `footprint check` fails where one of these is exceeded."
    lines = [heading, "", "[budgets]"]
    for name in (_cost_name(audit), "private_bytes", "per_worker_bytes", "mapped_writable_bytes"):
        size_bytes = figure_of(name, audit)
        if size_bytes is not None:
            lines.append(
                f'{name} = "{_rounded(size_bytes)}"  # {format_bytes(size_bytes)} now: {FIGURES[name].meaning}'
            )
    lines.append(f"library_count = {len(_files(audit))}")
    sonames = {file_name(one): soname_of(one, audit) for one in dict.fromkeys(row.owner for row in audit.ledger)}
    parts = parts_of("private_bytes", audit).items()
    if largest := _largest(_added_up((sonames[name], size) for name, size in parts).items()):
        lines += ["", "[budgets.owners]"]
        lines += [f'{_quoted(name)} = "{_rounded(size)}"  # {format_bytes(size)} now' for name, size in largest]
    rules = [Budget("", "findings", rule, Limit(0)) for rule in dict.fromkeys(one.rule for one in audit.findings)]
    counts = {one.name: len(_counted_findings(one, audit.findings)) for one in rules if _has_all_counted(one, audit)}
    if any(counts.values()):
        lines += ["", "[budgets.findings]", *(f"{rule} = {count}" for rule, count in counts.items() if count)]
    return "\n".join(lines) + "\n"


def _rounded(size_bytes: int) -> str:
    """Write a size plus a twentieth, rounded to a short number."""
    room_bytes = size_bytes + size_bytes // 20
    step = 64
    while step * 16 < room_bytes:
        step *= 2
    return format_bytes(-(-room_bytes // step) * step)


def _quoted(text: str) -> str:
    """Write a text as a TOML string: quotes, backslashes and control characters as escapes."""
    escaped = "".join(
        f"\\u{ord(one):04x}" if ord(one) < 0x20 or ord(one) == 0x7F or one in '"\\' else one for one in text
    )
    return f'"{escaped}"'
