"""The report of `footprint duplicates`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from footprint.elf import shown_name
from footprint.elf.names import lacks_function
from footprint.errors import Note
from footprint.findings.copies import CopiedVariable, CopyOrigin, Cost, SearchedFile
from footprint.findings.linked_twice import LinkedTwice
from footprint.formats.document import Block, Document, Fold, Heading, Paragraph, Table, Verdict
from footprint.formats.escape import shortened_name
from footprint.formats.sections.debug_files import debug_file_blocks
from footprint.formats.sections.findings import finding_blocks
from footprint.formats.sections.names import Names
from footprint.formats.sections.notes import note_blocks
from footprint.formats.sections.rest import cut_at, rest_rows
from footprint.model.finding import CONFIDENCES, Confidence, Finding
from footprint.units import counted, first_of, format_bytes
from footprint.verbs.duplicates.call import Duplicates

__all__ = ("duplicates_document",)

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
    found: Duplicates, *, count: int = 1, top: int = 20, has_linker_names: bool = False
) -> Document:
    """Write what files hold several times; `top` rows a table, 0 for all."""
    by_rule: dict[str, list[Finding]] = {}
    for one in found.findings:
        by_rule.setdefault(one.rule, []).append(one)
    # The findings of these rules stand in tables or paragraphs of their own.
    twice, large = by_rule.pop("linked-twice", []), by_rule.pop("large-static", [])
    constants = by_rule.pop("mutable-constant", [])
    copies = [one for one in by_rule.pop("duplicate-static", []) if one.confidence is not Confidence.LOW]
    saving = [one for one in copies if one.saving_bytes]
    others = [one for findings in by_rule.values() for one in findings]
    real = [one for file in found.files for one in file.copies if one.origin is not CopyOrigin.STREAM_INIT]
    real.sort(
        key=lambda one: (not one.is_counted, one.confidence is Confidence.LOW, -one.waste_bytes, one.name, one.file)
    )
    has_variables = any(one.variable_count for one in found.files)
    debug_files = {one.file: one.debug_file for one in found.files if one.debug_file is not None}
    twice_shown, _ = cut_at(twice, top)
    verdict = _verdict(real, count, found.linked_twice)
    return (
        Heading(_title(found)),
        _copies(real, top, is_whole=has_linker_names, has_variables=has_variables, has_files=len(found.files) > 1),
        *_initialisers(found.files, top, is_whole=has_linker_names),
        *([Heading("Linked in several times")] if twice else []),
        *(Paragraph(f"{one.message}{_times(one.saving_bytes, count)}. Remedy: {one.remedy}.") for one in twice_shown),
        *_large(large, top, is_whole=has_linker_names),
        *_constants(constants, top, is_whole=has_linker_names),
        *finding_blocks(cut_at(saving, top)[0], count, is_verbose=has_linker_names),
        *finding_blocks(others, count),
        *_remedies(
            [
                *(one for one in copies if not one.saving_bytes),
                *(one for one in large if one.kind != "buffer"),
                *(one for one in constants if one.confidence is not Confidence.LOW),
            ]
        ),
        *debug_file_blocks(debug_files, Names((), is_whole=True), is_whole=has_linker_names),
        *note_blocks(_together(found.notes)),
        Verdict(verdict if has_variables else "No variable has a name: there is nothing to compare."),
    )


def _title(found: Duplicates) -> str:
    targets = tuple(dict.fromkeys(found.targets))
    name = f"process {found.pid}" if found.pid is not None else ", ".join(targets[:3])
    if len(targets) > 3:
        name += f" and {len(targets) - 3} more"
    variables = counted(sum(one.variable_count for one in found.files), "variable")
    units = counted(sum(one.unit_count for one in found.files), "source file")
    return f"{name}: {variables} from {units}"


def _copies(
    copies: Sequence[CopiedVariable], top: int, *, is_whole: bool, has_variables: bool, has_files: bool
) -> Block:
    """List copies; without any, the text depends on whether symbols name variables at all."""
    if not copies:
        told = "nothing is there more than once, as far as its symbols tell"
        return Paragraph(told if has_variables else "no symbol names a variable: it cannot be told what is there twice")
    shown, rest = cut_at(copies, top)
    has_private = any(one.private_bytes is not None for one in copies)
    rows = tuple(
        (
            format_bytes(one.waste_bytes),
            str(one.copy_count),
            format_bytes(one.size_bytes),
            *(["-" if one.private_bytes is None else format_bytes(one.private_bytes)] if has_private else []),
            ", ".join(_WHEN[cost] for cost in one.waste),
            one.confidence.value,
            *([one.section] if is_whole else []),
            "  ".join(filter(None, _which(one, is_whole=is_whole, has_file=has_files))),
        )
        for one in shown
    )
    columns = [
        *("waste", "copies", "size"),
        *(["private"] if has_private else []),
        *("cost", "confidence"),
        *(["section"] if is_whole else []),
        "name",
    ]
    footer = rest_rows(len(rest), len(columns), _sum(one.waste_bytes for one in rest if one.is_counted))
    words = frozenset(range(columns.index("cost"), len(columns) - 1))
    return Table(tuple(columns), rows, words, footer, Fold.NEVER if is_whole else Fold.NAMES)


def _which(one: CopiedVariable, *, is_whole: bool, has_file: bool) -> tuple[str, ...]:
    """Return the name, the place of its declaration or else its source files, who uses its address, and the file."""
    name = one.name if is_whole else f"{one.shown_name}{one.bounds}"
    if one.function and lacks_function(one.name, one.function):
        name += f" in {one.function if is_whole else shown_name(one.function)}"
    name = name if is_whole else _short(name)
    if one.location is not None:
        source = one.location.file if is_whole else one.location.file.rsplit("/", 1)[-1]
        where = source if one.location.line is None else f"{source}:{one.location.line}"
        if is_whole and one.units:
            where += f"  in {', '.join(one.units)}"
    elif is_whole or len(one.units) < 2:
        where = ", ".join(one.units)
    else:
        where = _first_and_more(one.units)
    used_in = one.address_used_in
    if used_in is not None:
        used_in = f"address used in: {used_in if is_whole else _short(shown_name(used_in))}"
    file = one.file if is_whole else one.file.rsplit("/", 1)[-1]
    return name, where, used_in or "", f"({file})" if has_file else ""


def _first_and_more(units: Sequence[str]) -> str:
    return units[0] if len(units) == 1 else f"{units[0]} and {len(units) - 1} more"


def _large(findings: Sequence[Finding], top: int, *, is_whole: bool) -> list[Block]:
    """List large variables: first those that nothing uses, then those that are only zeros in the file."""
    if not findings:
        return []
    kinds = ("dead-code", "zero-filled", "buffer")
    ordered = sorted(findings, key=lambda one: kinds.index(one.kind))
    shown, rest = cut_at(ordered, min(top, _MOST_LARGE))
    rows = tuple((one.kind, f"{one.message}{_place(one, is_whole=is_whole)}") for one in shown)
    footer = rest_rows(len(rest), 2)
    table = Table(("kind", "variable"), rows, frozenset({0}), footer, Fold.NEVER if is_whole else Fold.TEXT)
    return [Heading("Variables of a page and more"), table]


def _constants(findings: Sequence[Finding], top: int, *, is_whole: bool) -> list[Block]:
    """List the variables that could be constant; only those that surely are count."""
    if not findings:
        return []
    ordered = sorted(findings, key=lambda one: (CONFIDENCES.index(one.confidence), -(one.size_bytes or 0)))
    shown, rest = cut_at(ordered, top)
    rows = tuple(
        (
            format_bytes(one.size_bytes or 0),
            one.confidence.value,
            f"{one.subject if is_whole else _short(one.subject)}{_place(one, is_whole=is_whole)}",
        )
        for one in shown
    )
    footer = rest_rows(len(rest), 3, _sum(one.size_bytes or 0 for one in rest if one.confidence.is_sure))
    columns = ("size", "confidence", "variable")
    table = Table(columns, rows, frozenset({1}), footer, Fold.NEVER if is_whole else Fold.NAMES)
    sure = [one.size_bytes or 0 for one in findings if one.confidence.is_sure]
    heading = f"Variables that nothing writes: {format_bytes(sum(sure))} could be const"
    return [Heading(heading if sure else "Variables that may be const"), table]


def _place(finding: Finding, *, is_whole: bool) -> str:
    if finding.location is None:
        return ""
    file, line = finding.location
    name = file if is_whole else file.rsplit("/", 1)[-1]
    return f" ({name})" if line is None else f" ({name}:{line})"


def _remedies(findings: Sequence[Finding]) -> list[Block]:
    """Write the remedies for data that costs no process private memory for sure: the tables have its sizes."""
    subjects: dict[str, list[str]] = {}
    for one in findings:
        subjects.setdefault(one.remedy, []).append(_short(one.subject))
    if not subjects:
        return []
    listed = [f"{first_of(tuple(dict.fromkeys(names)), _MOST_NAMED)}: {remedy}." for remedy, names in subjects.items()]
    return [Heading("What to do"), *map(Paragraph, listed)]


def _short(name: str) -> str:
    return shortened_name(name, _LONGEST_NAME)


def _initialisers(files: Sequence[SearchedFile], top: int, *, is_whole: bool) -> list[Block]:
    count = sum(one.initialiser_count for one in files)
    size_bytes = sum(one.initialiser_bytes for one in files)
    blocks: list[Block] = []
    if count:
        run = f"{counted(count, 'initialiser')} of source files {'runs' if count == 1 else 'run'} at start"
        blocks.append(Paragraph(f"{run}: {format_bytes(size_bytes)} of code, and what it calls"))
    streams = [one for file in files for one in file.copies if one.origin is CopyOrigin.STREAM_INIT]
    stream_count = sum(one.copy_count for one in streams)
    if stream_count:
        where = f"<iostream> is included in {counted(stream_count, 'source file')}"
        blocks.append(Paragraph(f"{where}: each runs its initialiser at start (a byte each)"))
    return [*blocks, *_initialiser_table(files, top, is_whole=is_whole)]


def _initialiser_table(files: Sequence[SearchedFile], top: int, *, is_whole: bool) -> list[Block]:
    """List the functions that run at start and write or take something, with what each writes."""
    ordered = [
        (one, file.file.rsplit("/", 1)[-1])
        for file in files
        for one in file.source_initialisers
        if one.variables or one.heap_bytes
    ]
    ordered.sort(key=lambda item: (-(item[0].heap_bytes or 0), -item[0].written_bytes, item[0].name))
    # A header with such variables makes the same row for each source file that includes it.
    alike: dict[tuple[str, ...], list[str]] = {}
    for one, file in ordered:
        variables = first_of(
            [name if is_whole else _short(shown_name(name)) for name in one.variables],
            _MOST_NAMED,
        )
        row = (
            format_bytes(one.code_bytes),
            format_bytes(one.written_bytes) if one.written_bytes else "-",
            format_bytes(one.heap_bytes) if one.heap_bytes else "-",
            f" ({file})" if len(files) > 1 else "",
            f": {variables}" if variables else "",
        )
        unit = one.unit or (one.name if is_whole else _short(one.shown_name))
        alike.setdefault(row, []).append(unit)
    shown, rest = cut_at(list(alike.items()), min(top, _MOST_INITIALISERS))
    rows = tuple(
        (*sizes, f"{', '.join(units) if is_whole else _first_and_more(units)}{file}{variables}")
        for (*sizes, file, variables), units in shown
    )
    footer = rest_rows(len(rest), 4)
    fold = Fold.NEVER if is_whole else Fold.TEXT
    columns = ("code", "writes", "heap", "source file: variables")
    return [Heading("What runs at start"), Table(columns, rows, frozenset(), footer, fold)] if rows else []


def _together(notes: Sequence[Note]) -> list[Note]:
    """Write a note once if many files have it: most libraries of a process are stripped."""
    subjects: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        subjects.setdefault((note.slug, note.detail), []).append(note.subject)
    told = []
    for (slug, detail), files in subjects.items():
        if len(files) > _MOST_NOTES_ALIKE:
            told.append(Note(slug, f"{len(files)} files, such as {files[0]}", detail))
        else:
            told.extend(Note(slug, file, detail) for file in files)
    return told


def _verdict(copies: Sequence[CopiedVariable], count: int, linked_twice: Sequence[LinkedTwice]) -> str:
    """Write the sum of what is sure; where that leaves copies out, it says which."""
    waste = _waste(one.waste for one in copies if one.is_counted)
    rest = {level: sum(one.waste_bytes for one in copies if one.confidence is level) for level in _NOT_COUNTED}
    left_out = "".join(f"; {format_bytes(size)} more {_NOT_COUNTED[level]}" for level, size in rest.items() if size)
    sure = [one for one in linked_twice if one.confidence.is_sure]
    if not waste and (twice := _waste(one.waste for one in sure or linked_twice)):
        check = "" if sure else "; make sure first that one does for all"
        more = f"{_by_cost(twice)}{_many(twice, count)}{check}{left_out}"
        return f"What is linked in several times takes more than it would once: {more}."
    if not waste:
        return f"There is nothing to save by having one of each{left_out}."
    counted_ones = " (proof and high)" if left_out else ""
    return f"One of each instead of all copies saves {_by_cost(waste)}{_many(waste, count)}{counted_ones}{left_out}."


def _waste(wastes: Iterable[Mapping[Cost, int]]) -> Mapping[Cost, int]:
    total: Counter[Cost] = Counter()
    for one in wastes:
        total.update(one)
    return total


def _sum(sizes: Iterable[int]) -> str:
    """Write the sum of a row that stands for others; nothing where sums count none of them."""
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
