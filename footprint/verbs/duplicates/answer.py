"""The answer of `duplicates`: its report, its JSON and its metrics."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from footprint.elf.names import lacks_function, shown_name
from footprint.errors import Note
from footprint.findings.copies import CopiedVariable, CopyOrigin, Cost, SearchedFile
from footprint.findings.linked_twice import LinkedTwice
from footprint.formats.answer_table import answer_table, column, row_of
from footprint.formats.audit_rows import FailedFinding, finding_rows
from footprint.formats.document import (
    Block,
    Document,
    Fold,
    Heading,
    Names,
    Paragraph,
    Table,
    Verdict,
    cut_at,
    debug_file_blocks,
    note_blocks,
    rest_rows,
)
from footprint.formats.finding_blocks import finding_blocks, first_remedy
from footprint.formats.metrics import MetricFamily, MetricSample, finding_families
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import ABSENT, Absent, Positive, dataclass
from footprint.model.finding import CONFIDENCES, Confidence, Finding
from footprint.text.escape import shortened_name
from footprint.text.units import counted, first_of, format_bytes
from footprint.verbs.duplicates.call import Duplicates

_MOST_LARGE = 10
_MOST_INITIALISERS = 10
_MOST_NOTES_ALIKE = 2
_LONGEST_NAME = 60
_MOST_NAMED = 3
_NOT_COUNTED = {
    Confidence.MEDIUM: "need a check first",
    Confidence.LOW: "would be copies only by name",
}
# The words of the table; the section beside them tells the rest.
_WHEN = {
    Cost.AT_START: "at start",
    Cost.WHEN_TOUCHED: "when touched",
    Cost.PER_THREAD: "per thread",
    Cost.SHARED: "shared",
}


def duplicates_document(
    duplicates: Duplicates, *, count: int = 1, top: int = 20, has_linker_names: bool = False
) -> Document:
    """Show what files hold several times; `top` rows a table, 0 for all."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in duplicates.findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    # The findings of these rules stand in tables or paragraphs of their own.
    twice, large = by_rule.pop("linked-twice", []), by_rule.pop("large-static", [])
    constants = by_rule.pop("mutable-constant", [])
    copies = [f for f in by_rule.pop("duplicate-static", []) if f.confidence is not Confidence.LOW]
    saving = [copy for copy in copies if copy.saving_bytes]
    others = [finding for findings in by_rule.values() for finding in findings]
    real = [copy for file in duplicates.files for copy in file.copies if copy.origin is not CopyOrigin.STREAM_INIT]
    real.sort(key=lambda c: (not c.is_counted, c.confidence is Confidence.LOW, -c.waste_bytes, c.name, c.file))
    has_variables = any(file.variable_count for file in duplicates.files)
    debug_files = {file.file: file.debug_file for file in duplicates.files if file.debug_file is not None}
    twice_shown, _ = cut_at(twice, top)
    first = first_remedy([*copies, *twice, *constants], duplicates.targets)
    verdict = _verdict(real, count, duplicates.linked_twice)
    return (
        Heading(_title(duplicates)),
        _copies(real, top, is_whole=has_linker_names, has_variables=has_variables, has_files=len(duplicates.files) > 1),
        *first,
        *_initialisers(duplicates.files, top, is_whole=has_linker_names),
        *([Heading("Linked in several times")] if twice else []),
        *(Paragraph(f"{f.message}{_times(f.saving_bytes, count)}. Remedy: {f.remedy}.") for f in twice_shown),
        *_large(large, top, is_whole=has_linker_names),
        *_constants(constants, top, is_whole=has_linker_names),
        *finding_blocks(cut_at(saving, top)[0], count, is_verbose=has_linker_names),
        *finding_blocks(others, count),
        *_remedies(
            [
                *(copy for copy in copies if not copy.saving_bytes),
                *(f for f in large if f.kind != "buffer"),
                *(constant for constant in constants if constant.confidence is not Confidence.LOW),
            ]
        ),
        *debug_file_blocks(debug_files, Names((), is_whole=True), is_whole=has_linker_names),
        *note_blocks(_together(duplicates.notes)),
        Verdict(verdict if has_variables else "No variable has a name: there is nothing to compare."),
    )


def _title(duplicates: Duplicates) -> str:
    targets = tuple(dict.fromkeys(duplicates.targets))
    name = f"process {duplicates.pid}" if duplicates.pid is not None else ", ".join(targets[:3])
    if len(targets) > 3:
        name += f" and {len(targets) - 3} more"
    variables = counted(sum(file.variable_count for file in duplicates.files), "variable")
    units = counted(sum(file.unit_count for file in duplicates.files), "source file")
    return f"{name}: {variables} from {units}"


def _copies(
    copies: Sequence[CopiedVariable], top: int, *, is_whole: bool, has_variables: bool, has_files: bool
) -> Block:
    """List copies; without any, the text depends on whether symbols name variables at all."""
    if not copies:
        none = "no variable is there more than once, as far as its symbols show"
        return Paragraph(none if has_variables else "no symbol names a variable: copies of variables are not known")
    shown, rest = cut_at(copies, top)
    has_private = any(copy.private_bytes is not None for copy in copies)
    rows = tuple(
        (
            format_bytes(copy.waste_bytes),
            str(copy.copy_count),
            format_bytes(copy.size_bytes),
            *(["-" if copy.private_bytes is None else format_bytes(copy.private_bytes)] if has_private else []),
            ", ".join(_WHEN[cost] for cost in copy.waste),
            copy.confidence.value,
            *([copy.section] if is_whole else []),
            "  ".join(filter(None, _which(copy, is_whole=is_whole, has_file=has_files))),
        )
        for copy in shown
    )
    columns = [
        *("waste", "copies", "size"),
        *(["private"] if has_private else []),
        *("cost", "confidence"),
        *(["section"] if is_whole else []),
        "name",
    ]
    footer = rest_rows(len(rest), len(columns), _sum(copy.waste_bytes for copy in rest if copy.is_counted))
    words = frozenset(range(columns.index("cost"), len(columns) - 1))
    return Table(tuple(columns), rows, words, footer, Fold.WHOLE if is_whole else Fold.NAMES)


def _which(variable: CopiedVariable, *, is_whole: bool, has_file: bool) -> tuple[str, ...]:
    """Return the name, the place of its declaration or else its source files, who uses its address, and the file."""
    name = variable.name if is_whole else f"{variable.shown_name}{variable.bounds}"
    if variable.function and lacks_function(variable.name, variable.function):
        name += f" in {variable.function if is_whole else shown_name(variable.function)}"
    name = name if is_whole else _short(name)
    if variable.location is not None:
        source = variable.location.file if is_whole else variable.location.file.rsplit("/", 1)[-1]
        where = source if variable.location.line is None else f"{source}:{variable.location.line}"
        if is_whole and variable.units:
            where += f"  in {', '.join(variable.units)}"
    elif is_whole or len(variable.units) < 2:
        where = ", ".join(variable.units)
    else:
        where = _first_and_more(variable.units)
    used_in = variable.address_used_in
    if used_in is not None:
        used_in = f"address used in: {used_in if is_whole else _short(shown_name(used_in))}"
    file = variable.file if is_whole else variable.file.rsplit("/", 1)[-1]
    return name, where, used_in or "", f"({file})" if has_file else ""


def _first_and_more(units: Sequence[str]) -> str:
    return units[0] if len(units) == 1 else f"{units[0]} and {len(units) - 1} more"


def _per_file(units: Sequence[str]) -> str:
    return ", each" if len(units) > 1 else ""


def _large(findings: Sequence[Finding], top: int, *, is_whole: bool) -> list[Block]:
    """List large variables: first those that nothing uses, then those that are only zeros in the file."""
    if not findings:
        return []
    kinds = ("dead-code", "zero-filled", "buffer")
    ordered = sorted(findings, key=lambda finding: kinds.index(finding.kind))
    shown, rest = cut_at(ordered, min(top, _MOST_LARGE))
    rows = tuple((f.kind, f"{f.message}{_place(f, is_whole=is_whole)}") for f in shown)
    footer = rest_rows(len(rest), 2)
    table = Table(("kind", "variable"), rows, frozenset({0}), footer, Fold.WHOLE if is_whole else Fold.TEXT)
    return [Heading("Variables of a page and more"), table]


def _constants(findings: Sequence[Finding], top: int, *, is_whole: bool) -> list[Block]:
    """List the variables that could be constant; only those that surely are count."""
    if not findings:
        return []
    ordered = sorted(findings, key=lambda finding: (CONFIDENCES.index(finding.confidence), -(finding.size_bytes or 0)))
    shown, rest = cut_at(ordered, top)
    rows = tuple(
        (
            format_bytes(f.size_bytes or 0),
            f.confidence.value,
            f"{f.subject if is_whole else _short(f.subject)}{_place(f, is_whole=is_whole)}",
        )
        for f in shown
    )
    footer = rest_rows(len(rest), 3, _sum(f.size_bytes or 0 for f in rest if f.confidence.is_sure))
    columns = ("size", "confidence", "variable")
    table = Table(columns, rows, frozenset({1}), footer, Fold.WHOLE if is_whole else Fold.NAMES)
    sure = [finding.size_bytes or 0 for finding in findings if finding.confidence.is_sure]
    heading = f"Variables that nothing writes: {format_bytes(sum(sure))} could be const"
    return [Heading(heading if sure else "Variables that may be const"), table]


def _place(finding: Finding, *, is_whole: bool) -> str:
    if finding.location is None:
        return ""
    file, line = finding.location
    name = file if is_whole else file.rsplit("/", 1)[-1]
    return f" ({name})" if line is None else f" ({name}:{line})"


def _remedies(findings: Sequence[Finding]) -> list[Block]:
    """Show the remedies for data that costs no process private memory for sure: the tables have its sizes."""
    subjects: dict[str, dict[str, None]] = {}
    for finding in findings:
        subjects.setdefault(finding.remedy, {})[_short(finding.subject)] = None
    listed = [
        f"{'each of ' if len(names) > 1 else ''}{first_of(tuple(names), _MOST_NAMED)}: {remedy}."
        for remedy, names in subjects.items()
    ]
    return [Heading("What to do"), *map(Paragraph, listed)] if listed else []


def _short(name: str) -> str:
    return shortened_name(name, _LONGEST_NAME)


def _initialisers(files: Sequence[SearchedFile], top: int, *, is_whole: bool) -> list[Block]:
    count = sum(file.initialiser_count for file in files)
    size_bytes = sum(file.initialiser_bytes for file in files)
    blocks: list[Block] = []
    if count:
        run = f"{counted(count, 'initialiser')} of source files {'runs' if count == 1 else 'run'} at start"
        heap_bytes = sum(i.heap_bytes or 0 for file in files for i in file.source_initialisers)
        heap = f"; they take at least {format_bytes(heap_bytes)} of heap" if heap_bytes else ""
        blocks.append(Paragraph(f"{run}: {format_bytes(size_bytes)} of code, and what it calls{heap}"))
    streams = [copy for file in files for copy in file.copies if copy.origin is CopyOrigin.STREAM_INIT]
    stream_count = sum(stream.copy_count for stream in streams)
    if stream_count:
        where = f"<iostream> is included in {counted(stream_count, 'source file')}"
        blocks.append(Paragraph(f"{where}: each runs its initialiser at start (a byte each)"))
    return [*blocks, *_initialiser_table(files, top, is_whole=is_whole)]


def _initialiser_table(files: Sequence[SearchedFile], top: int, *, is_whole: bool) -> list[Block]:
    """List the functions that run at start and write or take something, with what each writes."""
    ordered = [
        (source_initialiser, file.file.rsplit("/", 1)[-1])
        for file in files
        for source_initialiser in file.source_initialisers
        if source_initialiser.variables or source_initialiser.heap_bytes
    ]
    ordered.sort(key=lambda item: (-(item[0].heap_bytes or 0), -item[0].written_bytes, item[0].name))
    # A header with such variables makes the same row for each source file that includes it.
    alike: dict[tuple[str, ...], list[str]] = {}
    for initialiser, file in ordered:
        variables = first_of(
            [name if is_whole else _short(shown_name(name)) for name in initialiser.variables],
            _MOST_NAMED,
        )
        row = (
            format_bytes(initialiser.code_bytes),
            format_bytes(initialiser.written_bytes) if initialiser.written_bytes else "-",
            f"at least {format_bytes(initialiser.heap_bytes)}" if initialiser.heap_bytes else "-",
            f" ({file})" if len(files) > 1 else "",
            f": {variables}" if variables else "",
        )
        unit = initialiser.unit or (initialiser.name if is_whole else _short(initialiser.shown_name))
        alike.setdefault(row, []).append(unit)
    shown, rest = cut_at(list(alike.items()), min(top, _MOST_INITIALISERS))
    rows = tuple(
        (*sizes, f"{', '.join(units) if is_whole else _first_and_more(units)}{_per_file(units)}{file}{variables}")
        for (*sizes, file, variables), units in shown
    )
    footer = rest_rows(len(rest), 4)
    fold = Fold.WHOLE if is_whole else Fold.TEXT
    columns = ("code", "writes", "heap", "source file: variables")
    return [Heading("What runs at start"), Table(columns, rows, frozenset(), footer, fold)] if rows else []


def _together(notes: Sequence[Note]) -> list[Note]:
    """Return a note once if many files have it: most libraries of a process are stripped."""
    subjects: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        subjects.setdefault((note.slug, note.detail), []).append(note.subject)
    joined = []
    for (slug, detail), files in subjects.items():
        if len(files) > _MOST_NOTES_ALIKE:
            joined.append(Note(slug, f"{len(files)} files, such as {files[0]}", detail))
        else:
            joined.extend(Note(slug, file, detail) for file in files)
    return joined


def _verdict(copies: Sequence[CopiedVariable], count: int, linked_twice: Sequence[LinkedTwice]) -> str:
    """Return the sum of what is sure; where that leaves copies out, it says which."""
    waste = _waste(copy.waste for copy in copies if copy.is_counted)
    rest = {level: sum(copy.waste_bytes for copy in copies if copy.confidence is level) for level in _NOT_COUNTED}
    left_out = "".join(f"; {format_bytes(size)} more {_NOT_COUNTED[level]}" for level, size in rest.items() if size)
    sure = [twice for twice in linked_twice if twice.confidence.is_sure]
    if not waste and (twice := _waste(group.waste for group in sure or linked_twice)):
        check = "" if sure else "; make sure first that one does for all"
        more = f"{_by_cost(twice)}{_many(twice, count)}{check}{left_out}"
        return f"What is linked in several times takes more than it would once: {more}."
    if not waste:
        return f"There is nothing to save {'for sure ' if left_out else ''}by having one of each{left_out}."
    counted_ones = " (proof and high)" if left_out else ""
    return f"One of each instead of all copies saves {_by_cost(waste)}{_many(waste, count)}{counted_ones}{left_out}."


def _waste(wastes: Iterable[Mapping[Cost, int]]) -> Mapping[Cost, int]:
    total: Counter[Cost] = Counter()
    for waste in wastes:
        total.update(waste)
    return total


def _sum(sizes: Iterable[int]) -> str:
    """Return the sum of a row that stands for others; nothing where sums count none of them."""
    size_bytes = sum(sizes)
    return format_bytes(size_bytes) if size_bytes else ""


def _many(waste: Mapping[Cost, int], count: int) -> str:
    """Return what many processes could have private; files they share."""
    own_bytes = sum(size for cost, size in waste.items() if cost is not Cost.SHARED)
    return f"; up to {format_bytes(own_bytes * count)} in {count:,} processes" if count > 1 and own_bytes else ""


def _times(saving_bytes: int, count: int) -> str:
    if count < 2 or not saving_bytes:
        return ""
    return f"; in {count:,} processes {format_bytes(saving_bytes * count)}"


def _by_cost(sizes: Mapping[Cost, int]) -> str:
    return ", ".join(f"{format_bytes(sizes[cost])} {cost.value}" for cost in Cost if sizes.get(cost))


@answer_table
class DuplicatesTarget:
    """The files or the process that were searched."""

    names: tuple[str, ...] = column("The targets, as the user named them.", "targets")
    pid: int | None = column("The process; null where files were named.")


@dataclass(frozen=True, kw_only=True)
class DuplicatesJson(Envelope):
    """What files hold several times.

    Attributes:
        target: The files or the process.
        files: The files that were searched.
        duplicates: The data of which one file has several copies.
        linked_twice: The data that belongs together and exists several times.
        count: The number of processes that savings are multiplied by.
        findings: What the files could do without.
        notes: What the reader of the figures must know.
        failed: The findings that fail the answer; the member is absent without `--fail-on`.
    """

    verb: Literal["duplicates"] = "duplicates"
    target: DuplicatesTarget
    files: tuple[SearchedFile, ...]
    duplicates: tuple[CopiedVariable, ...]
    linked_twice: tuple[LinkedTwice, ...]
    count: Positive
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]
    failed: tuple[FailedFinding, ...] | Absent = ABSENT


def duplicates_members(duplicates: Duplicates, version: str, count: int) -> Json:
    """Return the members of the answer."""
    return encode(
        DuplicatesJson(
            tool=Tool("footprint", version),
            host={},
            target=row_of(DuplicatesTarget, duplicates),
            files=duplicates.files,
            duplicates=tuple([copy for file in duplicates.files for copy in file.copies]),
            linked_twice=duplicates.linked_twice,
            count=count,
            findings=finding_rows(duplicates.findings, count),
            notes=duplicates.notes,
        )
    )


def duplicates_metrics(duplicates: Duplicates) -> list[MetricFamily]:
    """Return what copies take beyond one of each."""
    wastes: Counter[tuple[str, str]] = Counter()
    for file in duplicates.files:
        for copy in filter(lambda c: c.is_counted, file.copies):
            for cost, waste_bytes in copy.waste.items():
                wastes[file.file, cost.value] += waste_bytes
    samples = [MetricSample({"file": file, "cost": cost}, waste_bytes) for (file, cost), waste_bytes in wastes.items()]
    waste = MetricFamily(
        "duplicate_waste", "The size of all copies but one of data that headers define (proof and high).", samples
    )
    return [waste, *finding_families(duplicates.findings, {})]
