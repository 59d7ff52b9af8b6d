"""The section on findings."""

from collections.abc import Sequence

from footprint.formats.document import Block, Fold, Heading, Paragraph, Table
from footprint.model.finding import Finding
from footprint.units import counted, format_bytes

__all__ = ("finding_blocks",)

_MOST_ALIKE = 10


def finding_blocks(findings: Sequence[Finding], count: int, *, is_verbose: bool = False) -> list[Block]:
    """List the findings that save memory, each with its remedy, and count the others.

    Args:
        findings: The findings, the largest saving first.
        count: The number of processes or groups that the total saving is computed for.
        is_verbose: Whether to list the findings that save nothing too, and every row of a table of similar findings.
    """
    shown = [one for one in findings if one.saving_bytes or is_verbose]
    blocks: list[Block] = [Heading("Findings")] if findings else []
    of_rules: dict[str, dict[str, list[Finding]]] = {}
    for one in shown:
        of_rules.setdefault(one.rule, {}).setdefault(one.remedy, []).append(one)
    for alike in (alike for of_rule in of_rules.values() for alike in of_rule.values()):
        if len(alike) > 1:
            blocks.extend(_alike(alike, len(alike) if is_verbose else _MOST_ALIKE))
        else:
            blocks.append(Paragraph(_text(alike[0], count)))
    if rest := len(findings) - len(shown):
        more = " more" if shown else ""
        single, many = f"1{more} saves nothing: -v shows it.", f"{rest}{more} save nothing: -v shows them."
        blocks.append(Paragraph(single if rest == 1 else many))
    return blocks


def _alike(findings: Sequence[Finding], most: int) -> list[Block]:
    """List findings that have the same rule and remedy, in one table."""
    # Of a group, a column has the number of its processes.
    is_group = findings[0].member_count is not None
    rows = tuple(
        (
            f"{'' if one.is_counted else 'up to '}{format_bytes(one.saving_bytes)}",
            *([f"{one.member_count:,}"] if is_group else ()),
            one.confidence.value,
            f"{one.message}{_place(one)}",
        )
        for one in findings[:most]
    )
    rest = findings[most:]
    rest_bytes = sum(one.saving_bytes for one in rest if one.is_counted)
    more = f"[{len(rest)} more: -v shows all]"
    footer = ((format_bytes(rest_bytes) if rest_bytes else "", *([""] if is_group else ()), "", more),) if rest else ()
    remedy = findings[0].remedy
    rule = findings[0].rule
    saves = "a thread" if all(one.is_per_thread for one in findings) else "saves"
    return [
        Table(
            (saves, *(["processes"] if is_group else []), "confidence", rule),
            rows,
            frozenset({2 if is_group else 1}),
            footer,
            Fold.TEXT,
        ),
        Paragraph(f"Remedy: {remedy}."),
    ]


def _text(finding: Finding, count: int) -> str:
    saves = f"{finding.saving_verb} {format_bytes(finding.saving_bytes)} a {finding.noun}"
    saving = saves if finding.saving_bytes else "saves nothing"
    if finding.member_count is not None:
        saving += f", in {counted(finding.member_count, 'process')} of it"
    if finding.saving_bytes and count > 1:
        threads = " processes of one thread" if finding.noun == "thread" else ""
        saving += f", {format_bytes(finding.saving_bytes * count)} in {count:,}{threads}"
    if finding.thread_bytes:
        saving += f", and {format_bytes(finding.thread_bytes)} more for each further thread"
    head = f"{finding.rule} ({finding.confidence.value}): {finding.message}{_place(finding)}."
    why = "; ".join(finding.reasons)
    return f"{head} It {saving}. Why {finding.confidence.value}: {why}. Remedy: {finding.remedy}."


def _place(finding: Finding) -> str:
    return f" ({finding.location.file}:{finding.location.line})" if finding.location else ""
