"""The section on findings."""

from collections.abc import Collection, Sequence

from footprint.formats.document import Block, Fold, Heading, Paragraph, Table
from footprint.model.finding import Finding, is_packaged
from footprint.text.escape import shortened
from footprint.text.units import counted, first_of, format_bytes, format_us

_MOST_ALIKE = 10
_MOST_SUBJECTS = 3
_LONGEST_SUBJECT = 60
# Findings that save less time at start, and no memory, are shown on request.
_LEAST_SHOWN_US = 1_000


def finding_blocks(
    findings: Sequence[Finding], count: int, programs: Collection[str] = (), *, is_verbose: bool = False
) -> list[Block]:
    """List the findings that save memory, each with its remedy, and count the others.

    What would save time at start in files of packages, which the user does not build, is named behind them.

    Args:
        findings: The findings, the largest saving first.
        count: The number of processes or groups that the total saving is computed for.
        programs: The paths that count as the user's wherever they are.
        is_verbose: Whether to list the findings that save nothing too, and every row of a table of similar findings.
    """
    shown = [one for one in findings if one.saving_bytes or is_verbose or one.saving_us >= _LEAST_SHOWN_US]
    blocks: list[Block] = [Heading("Findings")] if findings else []
    packaged = _packaged(shown, programs)
    of_rules: dict[str, dict[str, list[Finding]]] = {}
    for finding in shown:
        if finding not in packaged.get(finding.rule, ()):
            of_rules.setdefault(finding.rule, {}).setdefault(finding.remedy, []).append(finding)
    for alike in (alike for of_rule in of_rules.values() for alike in of_rule.values()):
        if len(alike) > 1:
            blocks.extend(_alike(alike, len(alike) if is_verbose else _MOST_ALIKE))
        else:
            blocks.append(Paragraph(_text(alike[0], count)))
    if packaged:
        blocks.append(Paragraph(f"In files of packages, of each start: {'; '.join(map(_slow, packaged.values()))}."))
    if rest := len(findings) - len(shown):
        more = " more" if shown else ""
        what = "little" if any(finding.saving_us for finding in findings if finding not in shown) else "nothing"
        single, many = f"1{more} saves {what}: -v shows it.", f"{rest}{more} save {what}: -v shows them."
        blocks.append(Paragraph(single if rest == 1 else many))
    return blocks


def _packaged(findings: Sequence[Finding], programs: Collection[str]) -> dict[str, list[Finding]]:
    """Return by rule the findings that save time at start in files of packages, the largest saving first."""
    slow = [finding for finding in findings if finding.saving_us and finding.object_path not in programs]
    if not slow:
        return {}
    packaged: dict[str, list[Finding]] = {}
    for finding in slow:
        if is_packaged(finding.object_path):
            packaged.setdefault(finding.rule, []).append(finding)
    return packaged


def _slow(findings: Sequence[Finding]) -> str:
    """Name the objects that one rule found, each with the time that it is about."""
    names = [f"{finding.subject} ({format_us(finding.saving_us)})" for finding in findings]
    return f"{findings[0].rule} of {first_of(names, _MOST_SUBJECTS)}"


def first_remedy(findings: Sequence[Finding], programs: Collection[str]) -> list[Block]:
    """Show the remedy of most memory in what the user builds, and for what; `programs` count as the user's."""
    promising = [f for f in findings if f.confidence.is_counted and f.about_bytes and f.object_path]
    own = [f for f in promising if f.object_path in programs or not is_packaged(f.object_path)]
    if not own:
        return [Paragraph("All that could be saved is in files of packages.")] if promising else []
    largest = max(own, key=lambda finding: (finding.saving_bytes, finding.about_bytes))
    alike = [finding for finding in own if (finding.rule, finding.remedy) == (largest.rule, largest.remedy)]
    names = list(dict.fromkeys(shortened(f.subject, _LONGEST_SUBJECT) for f in alike))
    each = "each of " if len(names) > 1 else ""
    size = format_bytes(sum(finding.about_bytes for finding in alike))
    return [Paragraph(f"What to do first ({each}{first_of(names, _MOST_SUBJECTS)}: {size}): {largest.remedy}.")]


def _alike(findings: Sequence[Finding], most: int) -> list[Block]:
    """List findings that have the same rule and remedy, in one table."""
    # Of a group, a column has the number of its processes.
    is_group = findings[0].member_count is not None
    rows = tuple(
        (
            f"{'' if finding.is_counted or not finding.saving_bytes else 'up to '}{format_bytes(finding.saving_bytes)}",
            *([f"{finding.member_count:,}"] if is_group else ()),
            finding.confidence.value,
            f"{finding.message}{_place(finding)}",
        )
        for finding in findings[:most]
    )
    rest = findings[most:]
    rest_bytes = sum(finding.saving_bytes for finding in rest if finding.is_counted)
    more = f"[{len(rest)} more: -v shows all]"
    footer = ((format_bytes(rest_bytes) if rest_bytes else "", *([""] if is_group else ()), "", more),) if rest else ()
    remedy = findings[0].remedy
    rule = findings[0].rule
    saves = "a thread" if all(finding.saving_per == "thread" for finding in findings) else "saves"
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
    saving = saves if finding.saving_bytes else "saves no memory" if finding.saving_us else "saves nothing"
    if finding.member_count is not None:
        saving += f", in {counted(finding.member_count, 'process')} of it"
    if finding.saving_bytes and count > 1:
        threads = " processes of one thread" if finding.noun == "thread" else ""
        saving += f", {format_bytes(finding.saving_bytes * count)} in {count:,}{threads}"
    if finding.thread_bytes:
        saving += f", and {format_bytes(finding.thread_bytes)} more for each further thread"
    if finding.saving_us:
        saving += f", and about {format_us(finding.saving_us)} of each start"
    head = f"{finding.rule} ({finding.confidence.value}): {finding.message}{_place(finding)}."
    why = f" Why {finding.confidence.value}: {'; '.join(finding.reasons)}." if finding.reasons else ""
    return f"{head} It {saving}.{why} Remedy: {finding.remedy}."


def _place(finding: Finding) -> str:
    return f" ({finding.location.file}:{finding.location.line})" if finding.location else ""
