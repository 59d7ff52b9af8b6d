"""The reports of `footprint record` and `footprint trend`."""

from collections.abc import Sequence
from typing import Final

from footprint.errors import Note
from footprint.formats.document import Block, Document, Heading, Paragraph, Table, Verdict
from footprint.formats.sections.notes import note_blocks
from footprint.formats.sparkline import sparkline
from footprint.model.figures import FIGURES, FigureUnit
from footprint.release.history import History, Release, Trend, TrendStep
from footprint.units import counted, format_bytes

__all__ = ("record_document", "trend_document")

_MOST_WIDE: Final = 40
_SHORT_COMMIT: Final = 12
# The first that is told is what a program is judged by.
_JUDGED: Final = ("per_process_bytes", "per_group_bytes", "private_bytes", "floor_bytes", "mapped_writable_bytes")


def record_document(
    release: Release, replaced: Release | None, count: int, file: str, notes: Sequence[Note] = ()
) -> Document:
    """Write what was recorded, and which release it replaced."""
    told = tuple(note_blocks(notes, release.program))
    text = f"{release.program} {_version(release)} of {_day(release)} is recorded in {file}"
    if replaced is not None:
        return (
            *told,
            Verdict(f"{text}, in place of what was recorded for it before, of {_day(replaced)}."),
        )
    return (
        *told,
        Verdict(f"{text}, which has {counted(count, 'release')} of it now."),
    )


def trend_document(found: History, *, has_blocks: bool) -> Document:
    """Write how the figures of each program went; `has_blocks` draws with block characters, else with ASCII."""
    blocks: list[Block] = [Heading(f"footprint trend: {found.file}")]
    for program, releases in found.releases.items():
        trends = [one for one in found.trends if one.program == program]
        part = f", the part of {trends[0].owner}" if trends and trends[0].owner is not None else ""
        blocks.append(Heading(f"{program}{part}: {counted(len(releases), 'release')}"))
        span = f"From {_dated(releases[0])} to {_dated(releases[-1])}." if len(releases) > 1 else _dated(releases[0])
        blocks.append(Paragraph(span))
        if trends:
            rows = tuple(_row(one, has_blocks=has_blocks) for one in trends)
            blocks.append(Table(("first", "last", "change", "%", "trend", "figure"), rows, frozenset({4})))
        steps = tuple(_step(one, one.largest_step, releases) for one in trends if one.largest_step is not None)
        if steps:
            blocks.append(Heading(f"The largest steps of {program}"))
            blocks.append(Table(("change", "came with", "figure", "the most by"), steps, frozenset({1, 2})))
    blocks.extend(note_blocks(found.notes, found.file))
    return (*blocks, Verdict(_verdict(found)))


def _version(release: Release) -> str:
    return release.version[:_SHORT_COMMIT] if release.is_commit else release.version


def _day(release: Release) -> str:
    return release.time_text.partition("T")[0]


def _dated(release: Release) -> str:
    return f"{_version(release)} ({_day(release)})"


def _row(one: Trend, *, has_blocks: bool) -> tuple[str, ...]:
    return (
        _amount(one, one.first),
        _amount(one, one.last),
        _signed(one, one.change),
        f"{one.change / one.first:+.1%}" if one.first and one.change else "",
        sparkline(one.values, _MOST_WIDE, has_blocks=has_blocks),
        one.figure,
    )


def _amount(one: Trend, value: int) -> str:
    return format_bytes(value) if one.unit is FigureUnit.BYTES else f"{value:,}"


def _signed(one: Trend, value: int) -> str:
    return "-" if not value else f"{'+' if value > 0 else ''}{_amount(one, value)}"


def _step(one: Trend, step: TrendStep, releases: Sequence[Release]) -> tuple[str, ...]:
    share = "" if step.owner is None else f"{step.owner}  {_signed(one, step.owner_delta)}"
    return (_signed(one, step.delta), _version(_release(releases, step.after)), one.figure, share)


def _verdict(found: History) -> str:
    texts = []
    for program, releases in found.releases.items():
        told = {one.figure: one for one in found.trends if one.program == program}
        one = next((told[name] for name in _JUDGED if name in told), next(iter(told.values()), None))
        if one is None:
            continue
        text = f"{program}: {_title(one)}{'' if one.owner is None else f' of {one.owner}'}"
        step = one.largest_step
        ago = f"{counted(len(releases) - 1, 'release')} ago"
        if len(releases) == 1:
            text += f" {_amount(one, one.last)}, in one release"
        elif not one.change:
            text += f" as {'before' if step is None else ago}, {_amount(one, one.last)}"
        else:
            text += f" {_signed(one, one.change)} since {ago}, {_amount(one, one.last)} now"
        if step is not None:
            text += f"; the largest step came with {_version(_release(releases, step.after))}"
            if step.owner is not None and one.owner is None:
                text += f", the most of it by {step.owner}"
        texts.append(f"{text}.")
    return " ".join(texts) or "Nothing is recorded."


def _title(one: Trend) -> str:
    """Return what a sentence calls a figure."""
    title = FIGURES[one.figure].title if one.figure in FIGURES else one.figure
    return {"per_process_bytes": "cost per process", "per_group_bytes": "cost per group"}.get(one.figure, title)


def _release(releases: Sequence[Release], version: str) -> Release:
    return next(one for one in releases if one.version == version)
