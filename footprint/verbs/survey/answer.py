"""The answer of `audit --all`: its columns, its JSON, and its metrics."""

from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, page_columns, row_metrics, rows_of, table
from footprint.formats.document import Block, Document, Heading, Paragraph, Table, Verdict, note_blocks
from footprint.formats.metrics import MetricFamily
from footprint.formats.report_parts import cut_at, rest_rows
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import Positive, dataclass
from footprint.text.units import counted, format_bytes
from footprint.verbs.survey.call import Survey, SurveyedProgram


class FoldersTarget(NamedTuple):
    """The folders that were searched for programs.

    Attributes:
        folders: The folders.
    """

    folders: tuple[str, ...]


@answer_table
class ProgramRow:
    """One program; `at_start_bytes` is `floor_bytes` and `start_bytes` together."""

    path: str = column("The file.")
    at_start_bytes: int = column("The private memory of a process at its start.", title="at start", views="report main")
    floor_bytes: int = column(
        "The startup minimum: what its objects have surely written at start.",
        "startup_min_bytes",
        title="startup min",
        views="report metric",
    )
    ceiling_bytes: int = column(
        "The startup maximum: what can ever be written of its objects.",
        "startup_max_bytes",
        title="startup max",
        views="report metric",
    )
    start_bytes: int = column(
        "What a process has at start beside its objects: stack, thread block, the loader's lists.", views="metric"
    )
    object_count: int = column("How many objects a process of it has.", title="objects", views="report")
    unused_bytes: int = column(
        "What libraries cost that nobody uses, where it is at least `medium` that they can be dropped.",
        title="unused",
        views="report metric",
    )
    unused: tuple[str, ...] = column("Those libraries.", views="report", heading="Unused libraries")
    doubtful_bytes: int = column("What libraries cost for which that is `low`.")
    is_complete: bool = column("Whether all libraries were found.")


@dataclass(frozen=True, kw_only=True)
class SurveyJson(Envelope):
    """The programs of folders.

    Attributes:
        target: The folders.
        count: The number of processes of each program.
        programs: The programs, the costliest first.
        notes: What the reader of the figures must know.
    """

    verb: Literal["audit"] = "audit"
    target: FoldersTarget
    count: Positive
    programs: tuple[ProgramRow, ...]
    notes: tuple[Note, ...]


def survey_members(survey: Survey, version: str) -> Json:
    """Return the members of the answer."""
    return encode(
        SurveyJson(
            tool=Tool("footprint", version),
            host={},
            target=FoldersTarget(survey.folders),
            count=survey.count,
            programs=rows_of(ProgramRow, survey.programs),
            notes=survey.notes,
        )
    )


def survey_page(_: Survey) -> Json:
    """Return the columns of the HTML report."""
    return page_columns(programs=ProgramRow)


def survey_metrics(survey: Survey) -> list[MetricFamily]:
    """Return what a process of each program costs."""
    return row_metrics(ProgramRow, survey.programs, "program", lambda row: {"path": row.path})


_MOST_NOTES = 10

_COLUMNS = (
    "Private memory of one process, predicted from files. At start: when its own code begins; the part of its objects "
    "is the startup minimum; if every variable is written, the startup maximum. Unused: of libraries that nobody uses."
)


def survey_document(survey: Survey, *, top: int = 20) -> Document:
    """Rank the programs of some folders; `top` rows, 0 for all."""
    programs = survey.programs
    blocks: list[Block] = [Heading(f"{counted(len(programs), 'program')} in {', '.join(survey.folders)}")]
    if programs:
        blocks += [Paragraph(_COLUMNS), table(ProgramRow, programs, heading="program", label=_label, top=top)]
    wasteful = [program for program in programs if program.unused_bytes]
    if wasteful:
        wasteful.sort(key=lambda p: (-p.unused_bytes, p.path))
        some, others = cut_at(wasteful, top)
        blocks.append(Heading("Libraries that nobody uses"))
        unused = tuple((format_bytes(p.unused_bytes), p.path, ", ".join(p.unused)) for p in some)
        blocks.append(Table(("saves", "program", "libraries"), unused, frozenset({1}), rest_rows(len(others), 3)))
    notes = survey.notes[:_MOST_NOTES]
    blocks.extend(note_blocks(notes))
    if len(survey.notes) > len(notes):
        blocks.append(Paragraph(f"[{len(survey.notes) - len(notes)} more: --json has all]"))
    return (*blocks, Verdict(_verdict(survey)))


def _label(program: SurveyedProgram) -> str:
    return program.path + ("" if program.is_complete else "  [libraries missing]")


def _verdict(survey: Survey) -> str:
    if not survey.programs:
        return "There is no program."
    unused_bytes = sum(program.unused_bytes for program in survey.programs)
    doubtful_bytes = sum(program.doubtful_bytes for program in survey.programs)
    saved = ""
    if unused_bytes or doubtful_bytes:
        number = "one" if survey.count == 1 else f"{survey.count:,}"
        size = format_bytes((unused_bytes or doubtful_bytes) * survey.count)
        saved = f"; {number} of each would save {size} without unused libraries"
    if unused_bytes and doubtful_bytes:
        saved += f", and {format_bytes(doubtful_bytes * survey.count)} more with low confidence"
    elif doubtful_bytes:
        saved += ", with low confidence"
    first = survey.programs[0]
    size = format_bytes(first.at_start_bytes)
    return f"{first.path} costs most, {size} at its start (estimated){saved}."
