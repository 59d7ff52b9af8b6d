"""The report of `footprint check`."""

from collections.abc import Sequence
from typing import Final

from footprint.elf.names import shown_name
from footprint.formats.document import Block, Document, Facts, Heading, Paragraph, Table, Verdict, note_blocks
from footprint.model.audit import is_reproducible
from footprint.model.figures import FigureUnit
from footprint.model.finding import listed_places
from footprint.release.budget import RUN, UNTOLD, BudgetResult, Checked, lines_of, roots_of
from footprint.release.budget_file import Budgets
from footprint.release.new_libraries import link_text, root_text
from footprint.text.units import counted, format_bytes, format_us
from footprint.verbs.audit.summary import advice_blocks

_MOST_STEPS: Final = 3


def check_document(checked: Checked, *, baseline: str | None = None) -> Document:
    """Show which budgets are exceeded, by how much, and what costs most; `baseline` is the file just written."""
    blocks: list[Block] = [
        Heading(f"footprint check: {checked.audit.target}"),
        Paragraph(_origin(checked)),
    ]
    blocks.extend(failure_document(checked))
    if any(result.fails for result in checked.limits):
        blocks.extend(_advice(checked))
    blocks.extend(_table([result for result in checked.results if not result.fails]))
    blocks.extend(note_blocks(checked.notes, checked.audit.target))
    return (*blocks, Verdict(check_verdict(checked, baseline), is_failure=bool(checked.failures)))


def failure_document(checked: Checked) -> Document:
    """Show only the exceeded budgets: by how much, and what costs most."""
    return tuple(block for failure in checked.failures for block in _failure(failure, checked))


def _advice(checked: Checked) -> list[Block]:
    """Write what takes the growth back, and what would save most, or what searches for it."""
    audit, lines = checked.audit, _taking_back(checked)
    blocks = advice_blocks(audit, f"`footprint audit -v {audit.target}`")[1:]
    if lines:
        blocks = [block for block in blocks if not isinstance(block, Paragraph)]
    elif not lines and not blocks and audit.is_live and audit.saved_in is None:
        lines = [f"`footprint audit --findings {audit.target}` searches for savings."]
    return [Heading("What to do"), *map(Paragraph, lines), *blocks] if lines or blocks else []


def _taking_back(checked: Checked) -> list[str]:
    """Write what takes back the growth of the limit that is exceeded most."""
    worst = next(result for result in checked.limits if result.fails)
    lines = []
    for root in roots_of(worst, checked):
        brought = " with what it brought" if root.brought_count > 1 else ""
        link = f"; it {text}" if (text := link_text(root)) else ""
        cost = format_bytes(root.delta_bytes)
        lines.append(f"Do without {root.name}, or open it only where it is used: it costs {cost}{brought}{link}.")
    places = lines_of(checked)
    for contributor in worst.contributors:
        if contributor.name in places:
            name = contributor_name(contributor.name, checked)
            lines.append(f"Make {name} smaller, or const if nothing writes to it.")
    return lines[:_MOST_STEPS]


def _origin(checked: Checked) -> str:
    source = "predicted from its files" if checked.audit.source == "prediction" else f"from its {checked.audit.source}"
    against = "" if checked.comparison is None else f", and against {checked.comparison.old.saved_in or 'a baseline'}"
    if is_reproducible(checked.audit):
        source += (
            " alone, as `audit --reproducible` has them: without what this machine was calibrated for, its page size "
        )
        source += "and its environment, which `audit` adds"
    return f"Against {checked.budgets.file}{against}; the figures are {source}."


def amount(size: int, result: BudgetResult) -> str:
    """Format a value of a budget: a size, a rate, a time, or a number of things."""
    if result.unit is FigureUnit.MICROSECONDS:
        return format_us(size)
    return (
        f"{size:,}" if result.is_count else f"{format_bytes(size)}{'/h' if result.key == 'hourly_growth_bytes' else ''}"
    )


def value_and_limit(result: BudgetResult) -> tuple[str, str]:
    """Return the value and the limit; to the byte, if rounded sizes would look alike."""
    if not result.is_count and 0 < abs(result.value - result.limit) * 1000 < result.limit:
        return f"{result.value:,} B", f"{result.limit:,} B"
    return amount(result.value, result), amount(result.limit, result)


def _failure(result: BudgetResult, checked: Checked) -> list[Block]:
    if result.key == RUN:
        causes = tuple(("  failed", "", name) for name, _ in result.contributors)
        accepted = "Its figures are those of a failure. `footprint run --allow` accepts failures by name."
        return [Heading("The run failed"), Facts(causes), Paragraph(accepted)]
    if result.key in UNTOLD:
        causes = tuple(("  not told", "", name) for name, _ in result.contributors)
        return [Heading(UNTOLD[result.key]), Facts(causes), Paragraph("A budget passes only what was measured.")]
    grew = (
        "" if result.grew_from is None else f"{amount(result.grew_from, result)} in the baseline, and what it may grow"
    )
    value, limit = value_and_limit(result)
    rows = [
        ("  is", value, ""),
        ("  limit", limit, grew),
        ("  too much", amount(result.value - result.limit, result), result.remark),
    ]
    label = f"  {contributors_label(result)}"
    for name, size_bytes in result.contributors:
        rows.append((label, contributor_size(result, size_bytes), contributor_name(name, checked)))
        label = ""
    for root in roots_of(result, checked):
        rows.append(("  came with", "", f"{root_text(root)} ({root.libraries_text})"))
        if link := link_text(root):
            rows.append(("", "", f"it {link}"))
    if result.waiver is not None:
        rows.append(("  waiver", "expired", f"{result.waiver.expires}: {result.waiver.reason}"))
    return [
        Heading(f"Exceeded: {result.key}"),
        Facts(tuple(rows)),
        Paragraph(limit_sentence(result, checked.budgets)),
    ]


def limit_sentence(result: BudgetResult, budgets: Budgets) -> str:
    """Describe where a limit is from: the budget file with its line, or the option."""
    if budgets.cost_limit is not None:
        return f"The limit is that of {budgets.file}."
    return f"The limit stands in {budgets.file}{'' if result.line is None else f', line {result.line}'}."


def contributors_label(result: BudgetResult) -> str:
    """Return what the contributors are: parts of a size, or some of the things that are counted."""
    if result.is_count:
        return "new" if result.is_growth else "among them"
    return "grew most" if result.is_growth else "most of it"


def contributor_size(result: BudgetResult, size_bytes: int) -> str:
    """Return the size of a contributor; nothing for a thing that is only counted."""
    if result.is_count and not size_bytes:
        return ""
    size = format_bytes(size_bytes) if result.is_count else amount(size_bytes, result)
    return f"{'+' if result.is_growth else ''}{size}"


def contributor_name(name: str, checked: Checked) -> str:
    """Return the name to show for a contributor; a symbol has its file behind it, and its line where that is known."""
    symbol, space, owner = name.partition(" (")
    shown = shown_name(symbol) + space + owner
    line = lines_of(checked).get(name)
    if line is None:
        return shown
    return f"{shown} at {line.file.removeprefix('./')}{'' if line.line is None else f':{line.line}'}"


def _table(results: Sequence[BudgetResult]) -> list[Block]:
    if not results:
        return []
    rows = tuple(
        (
            *value_and_limit(result),
            _why_it_passes(result) if result.is_exceeded else amount(result.limit - result.value, result),
            _label(result),
        )
        for result in results
    )
    return [Heading("Within the limits"), Table(("is", "limit", "room", "budget"), rows)]


def _why_it_passes(result: BudgetResult) -> str:
    """Return in one word why an exceeded limit passes."""
    return "noise" if result.is_noise else "waived"


def _label(result: BudgetResult) -> str:
    label = result.key
    if result.grew_from is not None:
        label += f", growth since {amount(result.grew_from, result)}"
    if result.is_exceeded and result.waiver is not None:
        label += f" (until {result.waiver.expires}: {result.waiver.reason})"
    elif result.is_expired and result.waiver is not None:
        label += f" (its waiver expired {result.waiver.expires}: take it out)"
    return f"{label} ({result.remark})" if result.remark else label


def check_verdict(checked: Checked, baseline: str | None = None) -> str:
    """Return the result of a check in one line, the worst first; `baseline` is the file that was just written."""
    limits = checked.limits
    exceeded = [limit for limit in limits if limit.fails]
    count = counted(len(limits), "limit")
    kept = "; the baseline is left as it was." if baseline is not None else "."
    if checked.failures and (first := checked.failures[0]).key in {RUN, *UNTOLD}:
        what = UNTOLD.get(first.key, "The run failed")
        others = f", and {len(exceeded):,} of {count} exceeded" if exceeded else ""
        return f"{what}: {first.contributors[0].name}{others}{kept}"
    if exceeded:
        worst = exceeded[0]
        excess = amount(worst.value - worst.limit, worst)
        return f"{len(exceeded):,} of {count} exceeded: {worst.key} by {excess}{_culprit(worst, checked)}{kept}"
    if baseline is not None:
        return f"{baseline} is the new baseline; the limits that need none hold."
    waived = sum(limit.is_exceeded and not limit.is_noise for limit in limits)
    noisy = sum(limit.is_exceeded and limit.is_noise for limit in limits)
    sentence = "Its limit holds" if len(limits) == 1 else f"All {count} hold" if limits else "There is nothing to check"
    if waived:
        sentence += f", {waived} of them by a waiver"
    return f"{sentence}; {noisy} grew by more, but within the spread of the starts." if noisy else f"{sentence}."


def _culprit(result: BudgetResult, checked: Checked) -> str:
    """Describe who makes a limit exceeded, with its line: the new library, what grew most, or else the largest part."""
    if roots := roots_of(result, checked):
        places = (roots[0].location,) if roots[0].location else roots[0].possible_locations
        return f", came with {roots[0].name}" + (f" at {listed_places(places, 'or')}" if places else "")
    if not result.contributors:
        return ""
    return f", {contributors_label(result)} {contributor_name(result.contributors[0].name, checked)}"
