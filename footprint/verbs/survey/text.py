"""The report of `footprint audit --all`."""

from footprint.formats.document import Block, Document, Heading, Paragraph, Table, Verdict
from footprint.formats.sections.notes import note_blocks
from footprint.units import counted, format_bytes
from footprint.verbs.survey.result import Survey

__all__ = ("survey_report",)

_MOST_NOTES = 10

_COLUMNS = (
    "Private memory of one process, predicted from files. At start: when its own code begins; the part of its objects "
    "is the startup minimum; if every variable is written, the startup maximum. Unused: of libraries that nobody uses."
)


def survey_report(survey: Survey, *, top: int = 20) -> Document:
    """Rank the programs of some folders; `top` rows, 0 for all."""
    programs = survey.programs
    shown = programs[:top] if top else programs
    rows = tuple(
        (
            format_bytes(one.startup_min_bytes + one.start_bytes),
            format_bytes(one.startup_min_bytes),
            format_bytes(one.startup_max_bytes),
            str(one.object_count),
            format_bytes(one.unused_bytes) if one.unused_bytes else "-",
            f"{one.path}{'' if one.is_complete else '  [libraries missing]'}",
        )
        for one in shown
    )
    footer = []
    if rest := len(programs) - len(shown):
        footer.append(("", "", "", "", "", f"[{rest} more: --top 0 shows all]"))
    columns = ("at start", "startup min", "startup max", "objects", "unused", "program")
    blocks: list[Block] = [Heading(f"{counted(len(programs), 'program')} in {', '.join(survey.folders)}")]
    if programs:
        blocks += [Paragraph(_COLUMNS), Table(columns, rows, frozenset(), tuple(footer))]
    wasteful = [one for one in programs if one.unused_bytes]
    if wasteful:
        wasteful.sort(key=lambda one: (-one.unused_bytes, one.path))
        some = wasteful[:top] if top else wasteful
        blocks.append(Heading("Libraries that nobody uses"))
        unused = tuple((format_bytes(one.unused_bytes), one.path, ", ".join(one.unused)) for one in some)
        more = len(wasteful) - len(some)
        left = (("", "", f"[{more} more: --top 0 shows all]"),) if more else ()
        blocks.append(Table(("saves", "program", "libraries"), unused, frozenset({1}), left))
    notes = survey.notes[:_MOST_NOTES]
    blocks.extend(note_blocks(notes))
    if len(survey.notes) > len(notes):
        blocks.append(Paragraph(f"[{len(survey.notes) - len(notes)} more: --json has all]"))
    return (*blocks, Verdict(_verdict(survey)))


def _verdict(survey: Survey) -> str:
    if not survey.programs:
        return "There is no program."
    unused_bytes = sum(one.unused_bytes for one in survey.programs)
    spared = ""
    if unused_bytes:
        number = "one" if survey.count == 1 else f"{survey.count:,}"
        spared = f"; {format_bytes(unused_bytes * survey.count)} could be spared if {number} of each ran"
    first = survey.programs[0]
    size = format_bytes(first.startup_min_bytes + first.start_bytes)
    return f"{first.path} costs most, {size} at its start (estimated){spared}."
