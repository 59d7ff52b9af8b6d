"""Findings as a report lists them."""

from collections.abc import Sequence

from footprint.audit.finding import Finding
from footprint.report.document import Block, Heading, Paragraph
from footprint.units import format_bytes

__all__ = ("finding_blocks",)


def finding_blocks(findings: Sequence[Finding], count: int, *, is_verbose: bool = False) -> list[Block]:
    """List the findings that save something, each with its remedy; of the others only how many there are.

    Args:
        findings: Those that save most first.
        count: How many processes to tell the saving of.
        is_verbose: Whether to list those that save nothing too.
    """
    shown = [one for one in findings if one.saving_bytes or is_verbose]
    blocks: list[Block] = []
    if shown:
        blocks.append(Heading("Findings"))
        blocks.extend(Paragraph(_text(one, count)) for one in shown)
    if rest := len(findings) - len(shown):
        blocks.append(Paragraph(f"{rest} more save{'s' if rest == 1 else ''} nothing by itself: -v shows them"))
    return blocks


def _text(finding: Finding, count: int) -> str:
    saving = f"saves {format_bytes(finding.saving_bytes)} a process" if finding.saving_bytes else "saves nothing"
    if finding.saving_bytes and count > 1:
        saving += f", {format_bytes(finding.saving_bytes * count)} in {count:,}"
    place = f" ({finding.location.file}:{finding.location.line})" if finding.location else ""
    head = f"{finding.rule} ({finding.confidence.value}): {finding.message}{place}."
    return (
        f"{head} It {saving}. Why {finding.confidence.value}: {'; '.join(finding.reasons)}. Remedy: {finding.remedy}."
    )
