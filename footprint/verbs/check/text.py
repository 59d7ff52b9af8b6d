"""The report of `footprint check`."""

from collections.abc import Sequence

from footprint.elf import shown_name
from footprint.formats.document import Block, Document, Facts, Heading, Paragraph, Table, Verdict
from footprint.formats.issues import relative_path
from footprint.formats.sections.notes import note_blocks
from footprint.release.budget import RUN, BudgetResult, Budgets, Checked, lines_of, roots_of
from footprint.release.new_libraries import link_text, root_text
from footprint.units import counted, format_bytes

__all__ = (
    "amount",
    "check_document",
    "check_verdict",
    "contributor_name",
    "contributor_size",
    "contributors_label",
    "failure_document",
    "place_of",
    "value_and_limit",
)


def check_document(checked: Checked, *, baseline: str | None = None) -> Document:
    """Write which budgets are exceeded, by how much, and what costs most; `baseline` is the file just written."""
    blocks: list[Block] = [
        Heading(f"footprint check: {checked.audit.target}"),
        Paragraph(_origin(checked)),
    ]
    blocks.extend(failure_document(checked))
    blocks.extend(_table([one for one in checked.results if not one.fails]))
    blocks.extend(note_blocks(checked.notes, checked.audit.target))
    return (*blocks, Verdict(check_verdict(checked, baseline), is_failure=bool(checked.failures)))


def failure_document(checked: Checked) -> Document:
    """Write only the exceeded budgets: by how much, and what costs most."""
    return tuple(block for one in checked.failures for block in _failure(one, checked))


def _origin(checked: Checked) -> str:
    source = "predicted from its files" if checked.audit.source == "prediction" else f"from its {checked.audit.source}"
    against = "" if checked.comparison is None else f", and against {checked.comparison.old.saved_in or 'a baseline'}"
    return f"Against {checked.budgets.file}{against}; the figures are {source}."


def amount(size: int, one: BudgetResult) -> str:
    """Write a value of a budget: a size, or a number of things."""
    return f"{size:,}" if one.is_count else format_bytes(size)


def value_and_limit(one: BudgetResult) -> tuple[str, str]:
    """Write the value and the limit; to the byte, if rounded sizes would look alike."""
    if not one.is_count and 0 < abs(one.value - one.limit) * 1000 < one.limit:
        return f"{one.value:,} B", f"{one.limit:,} B"
    return amount(one.value, one), amount(one.limit, one)


def _failure(one: BudgetResult, checked: Checked) -> list[Block]:
    if one.key == RUN:
        causes = tuple(("  failed", "", name) for name, _ in one.contributors)
        accepted = "Its figures are those of a failure. `footprint run --allow` accepts failures by name."
        return [Heading("The run failed"), Facts(causes), Paragraph(accepted)]
    grew = "" if one.grew_from is None else f"{amount(one.grew_from, one)} in the baseline, and what it may grow"
    value, limit = value_and_limit(one)
    rows = [
        ("  is", value, ""),
        ("  limit", limit, grew),
        ("  too much", amount(one.value - one.limit, one), one.remark),
    ]
    label = f"  {contributors_label(one)}"
    for name, size_bytes in one.contributors:
        rows.append((label, contributor_size(one, size_bytes), contributor_name(name, checked)))
        label = ""
    for root in roots_of(one, checked):
        count = "1 library" if root.library_count == 1 else f"{root.library_count:,} libraries"
        rows.append(("  came with", format_bytes(root.retained_bytes), f"{root_text(root)} ({count})"))
        if link := link_text(root):
            rows.append(("", "", f"it {link}"))
    if one.waiver is not None:
        rows.append(("  waiver", "expired", f"{one.waiver.expires}: {one.waiver.reason}"))
    return [
        Heading(f"Exceeded: {one.key}"),
        Facts(tuple(rows)),
        Paragraph(f"The limit stands in {place_of(one, checked.budgets)}."),
    ]


def place_of(one: BudgetResult, budgets: Budgets) -> str:
    """Return where a limit is written."""
    return budgets.file if one.line is None else f"{budgets.file}, line {one.line}"


def contributors_label(one: BudgetResult) -> str:
    """Return what the contributors are: parts of a size, or some of the things that are counted."""
    if one.is_count:
        return "new" if one.is_growth else "among them"
    return "grew most" if one.is_growth else "most of it"


def contributor_size(one: BudgetResult, size_bytes: int) -> str:
    """Return the size of a contributor; nothing for a thing that is only counted."""
    if one.is_count and not size_bytes:
        return ""
    return f"{'+' if one.is_growth else ''}{format_bytes(size_bytes)}"


def contributor_name(name: str, checked: Checked) -> str:
    """Return the name to show for a contributor; a symbol has its file behind it, and its line where that is known."""
    symbol, space, owner = name.partition(" (")
    shown = shown_name(symbol) + space + owner
    line = lines_of(checked).get(name)
    if line is None:
        return shown
    return f"{shown} at {relative_path(line.file, '')}{'' if line.line is None else f':{line.line}'}"


def _table(results: Sequence[BudgetResult]) -> list[Block]:
    if not results:
        return []
    rows = tuple(
        (
            *value_and_limit(one),
            _why_it_passes(one) if one.is_exceeded else amount(one.limit - one.value, one),
            _label(one),
        )
        for one in results
    )
    return [Heading("Within the limits"), Table(("is", "limit", "room", "budget"), rows)]


def _why_it_passes(one: BudgetResult) -> str:
    """Return in one word why an exceeded limit passes."""
    return "noise" if one.is_noise else "waived"


def _label(one: BudgetResult) -> str:
    label = one.key
    if one.grew_from is not None:
        label += f", growth since {amount(one.grew_from, one)}"
    if one.is_exceeded and one.waiver is not None:
        label += f" (until {one.waiver.expires}: {one.waiver.reason})"
    elif one.is_expired and one.waiver is not None:
        label += f" (its waiver expired {one.waiver.expires}: take it out)"
    return f"{label} ({one.remark})" if one.remark else label


def check_verdict(checked: Checked, baseline: str | None = None) -> str:
    """Write the result of a check in one line; `baseline` is the file that was just written."""
    count = len(checked.results)
    failures = checked.failures
    if failures:
        worst = failures[0]
        if worst.key == RUN:
            others = f", and {counted(len(failures) - 1, 'limit')} exceeded" if len(failures) > 1 else ""
            return f"The run failed: {worst.contributors[0].name}{others}."
        text = f"{len(failures)} of {counted(count, 'limit')} exceeded: {worst.key} by "
        text += amount(worst.value - worst.limit, worst)
        if worst.contributors:
            word = "among them" if worst.is_count else "most of it"
            text += f", {word} {contributor_name(worst.contributors[0].name, checked)}"
        return text + ("; the baseline is left as it was." if baseline is not None else ".")
    if baseline is not None:
        return f"{baseline} is the new baseline; the limits that need none hold."
    waived = sum(one.is_exceeded and not one.is_noise for one in checked.results)
    noisy = sum(one.is_exceeded and one.is_noise for one in checked.results)
    held = "Its limit holds" if count == 1 else f"All {count} limits hold" if count else "There is nothing to check"
    if waived:
        held += f", {waived} of them by a waiver"
    return f"{held}; {noisy} grew by more, but within the spread of the starts." if noisy else f"{held}."
