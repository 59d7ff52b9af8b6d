"""The report of `footprint audit --all`."""

from footprint.formats.document import Block, Document, Heading, Paragraph, Table, Verdict
from footprint.formats.sections.notes import note_blocks
from footprint.formats.sections.rest import cut_at, rest_rows
from footprint.units import counted, format_bytes
from footprint.verbs.survey.call import Survey

__all__ = ("survey_document",)

_MOST_NOTES = 10

_COLUMNS = (
    "Private memory of one process, predicted from files. At start: when its own code begins; the part of its objects "
    "is the startup minimum; if every variable is written, the startup maximum. Unused: of libraries that nobody uses."
)


def survey_document(survey: Survey, *, top: int = 20) -> Document:
    """Rank the programs of some folders; `top` rows, 0 for all."""
    programs = survey.programs
    shown, rest = cut_at(programs, top)
    rows = tuple(
        (
            format_bytes(one.at_start_bytes),
            format_bytes(one.startup_min_bytes),
            format_bytes(one.startup_max_bytes),
            str(one.object_count),
            format_bytes(one.unused_bytes) if one.unused_bytes else "-",
            f"{one.path}{'' if one.is_complete else '  [libraries missing]'}",
        )
        for one in shown
    )
    columns = ("at start", "startup min", "startup max", "objects", "unused", "program")
    blocks: list[Block] = [Heading(f"{counted(len(programs), 'program')} in {', '.join(survey.folders)}")]
    if programs:
        blocks += [Paragraph(_COLUMNS), Table(columns, rows, frozenset(), rest_rows(len(rest), len(columns)))]
    wasteful = [one for one in programs if one.unused_bytes]
    if wasteful:
        wasteful.sort(key=lambda one: (-one.unused_bytes, one.path))
        some, others = cut_at(wasteful, top)
        blocks.append(Heading("Libraries that nobody uses"))
        unused = tuple((format_bytes(one.unused_bytes), one.path, ", ".join(one.unused)) for one in some)
        blocks.append(Table(("saves", "program", "libraries"), unused, frozenset({1}), rest_rows(len(others), 3)))
    notes = survey.notes[:_MOST_NOTES]
    blocks.extend(note_blocks(notes))
    if len(survey.notes) > len(notes):
        blocks.append(Paragraph(f"[{len(survey.notes) - len(notes)} more: --json has all]"))
    return (*blocks, Verdict(_verdict(survey)))


def _verdict(survey: Survey) -> str:
    if not survey.programs:
        return "There is no program."
    unused_bytes = sum(one.unused_bytes for one in survey.programs)
    doubtful_bytes = sum(one.doubtful_bytes for one in survey.programs)
    spared = ""
    if unused_bytes or doubtful_bytes:
        number = "one" if survey.count == 1 else f"{survey.count:,}"
        spared = (
            f"; {format_bytes((unused_bytes or doubtful_bytes) * survey.count)} could be spared if {number} of each ran"
        )
    if unused_bytes and doubtful_bytes:
        spared += f", {format_bytes(doubtful_bytes * survey.count)} more with low confidence"
    elif doubtful_bytes:
        spared += ", with low confidence"
    first = survey.programs[0]
    size = format_bytes(first.at_start_bytes)
    return f"{first.path} costs most, {size} at its start (estimated){spared}."
