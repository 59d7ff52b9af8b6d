"""The JSON of `symbols`."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from footprint.elf.contents import Contents, ResidueCause, SectionContents, SectionKind
from footprint.elf.names import shown_name
from footprint.elf.origins import ByteOrigin, Origins, OriginShare, SectionOrigins
from footprint.elf.symbols import Symbol
from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, row_metrics, rows_of
from footprint.formats.metrics import MetricFamily
from footprint.json.answer import Envelope, Json, LargeTable, Tool
from footprint.json.codec import encode, shape_of
from footprint.members import ABSENT, Absent, Address, dataclass, records

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceGroups
    from footprint.dwarf.declared_variables import DeclaredVariables


_ROWS_AT_ONCE: Final = 1 << 12
_NAME, _SIZE = attrgetter("name"), attrgetter("size_bytes")
_BINDINGS: Final = {0: "local", 1: "global", 2: "weak", 10: "unique"}


class SymbolsTarget(NamedTuple):
    """The files that were read.

    Attributes:
        files: The files.
        map: The linker map; null where none was named.
    """

    files: tuple[str, ...]
    map: str | None


class _SectionOfFile(NamedTuple):
    contents: Contents
    section: SectionContents


@answer_table
class SectionRow:
    """One writable or thread-local section."""

    file: str = column("The file.", "contents.file")
    section: str = column("The section.", "section.section.name")
    kind: SectionKind = column("What makes its memory private.", "section.kind")
    vaddr: Address = column("Its link-time address.", "section.section.vaddr")
    size_bytes: int = column("Its size in memory.", "section.size_bytes", views="metric")
    named_bytes: int = column("The bytes that a variable names.", "section.named_bytes", views="metric")
    residue: Mapping[ResidueCause, int] = column(
        "The other bytes, by the cause why no variable names them; with `named_bytes` they add up to `size_bytes`.",
        "section.residue_bytes",
    )
    overlap_bytes: int = column(
        "The bytes that several symbols name, beyond the one that counts.", "section.lost_bytes"
    )
    symbols_from: str | None = column(
        "The symbol table: `.symtab`, `.dynsym`, `.gnu_debugdata`; null where the file names nothing.",
        "contents.symbols_from",
    )
    debug_file: str | None = column(
        "The file that has the symbol table; null where it is the file itself.", "contents.debug_file"
    )


class _OriginOfSection(NamedTuple):
    origins: Origins
    section: SectionContents
    origin: ByteOrigin
    share: OriginShare
    group: str | None


@answer_table
class OriginRow:
    """The part of a section that came from one object or source file; all parts add up to the section."""

    file: str = column("The file.", "origins.contents.file")
    section: str = column("The section.", "section.section.name")
    kind: SectionKind = column("What makes its memory private.", "section.kind")
    object: str | None = column(
        "The object file or archive, as the linker or the user named it; null where it is not known.", "origin.object"
    )
    member: str | None = column("The member of the archive; null where there is none.", "origin.member")
    unit: str | None = column(
        "The source file, without folders; with them where debug information names it; null where it is not known.",
        "origin.unit",
    )
    group: str | None = column(
        "The group of the source file or object, by the options; null without one, or where neither is known."
    )
    cause: str | None = column("Why neither is known; null where one is.", lambda row: row.origin.cause or None)
    size_bytes: int = column("The bytes that came from there.", "share.size_bytes")
    named_bytes: int = column("The bytes of these that a variable names.", "share.named_bytes")
    variable_count: int = column("The number of variables.", "share.variable_count")


class SymbolRow(NamedTuple):
    """One variable.

    Attributes:
        file: The file.
        section: The section.
        kind: What makes its memory private.
        symbol: The linker name.
        name: The name to show.
        aliases: Other names of the same bytes.
        section_offset: Its offset in the section.
        size_bytes: Its size.
        binding: The binding of its symbol: `local`, `global`, `weak`, `unique`, or a number.
        object: The object file or archive that it came from; null where it is not known.
        member: The member of the archive; null where there is none.
        unit: The source file, without folders; null where it is not known.
        declared_file: The file that declares it, with `--source`; null where it is not known.
        declared_line: The line there, with `--source`; null where it is not known.
        type: Its type, with `--source`; null where it is not known.
        function: The linker name of the function whose static it is, with `--source`; null where there is none.
        named_by: Where the name is from, with `--source`.
    """

    file: str
    section: str
    kind: SectionKind
    symbol: str
    name: str
    aliases: tuple[str, ...]
    section_offset: Address
    size_bytes: int
    binding: str
    object: str | None
    member: str | None
    unit: str | None
    declared_file: str | Absent | None = ABSENT
    declared_line: int | Absent | None = ABSENT
    type: str | Absent | None = ABSENT
    function: str | Absent | None = ABSENT
    named_by: Literal["symbol", "debug information"] | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class SymbolsJson(Envelope):
    """What the writable memory of files holds.

    Attributes:
        target: The files.
        sections: The sections.
        origins: The objects and source files that the sections came from.
        symbols: The variables, the largest first.
        notes: What the reader of the figures must know.
    """

    verb: Literal["symbols"] = "symbols"
    target: SymbolsTarget
    sections: tuple[SectionRow, ...]
    origins: tuple[OriginRow, ...]
    symbols: tuple[SymbolRow, ...]
    notes: tuple[Note, ...]


def symbols_members(
    files: Sequence[Origins],
    notes: Sequence[Note],
    version: str,
    sources: "Sequence[DeclaredVariables] | None" = None,
    groups: "SourceGroups | None" = None,
) -> Json:
    """Return the members of the answer; `sources` tells where variables are declared, where that was asked for."""
    maps = [file.linker_map.file for file in files if file.linker_map]
    origins = rows_of(OriginRow, (row for file in files for row in _origins(file, groups)))
    members = encode(
        SymbolsJson(
            tool=Tool("footprint", version),
            host={},
            target=SymbolsTarget(tuple([file.contents.file for file in files]), maps[0] if maps else None),
            sections=rows_of(SectionRow, _sections(files)),
            origins=tuple(sorted(origins, key=lambda row: (row.file, row.section, -row.size_bytes))),
            symbols=(),
            notes=tuple(notes),
        )
    )
    shape = shape_of(SymbolRow)
    members["symbols"] = LargeTable(
        lambda: (list(shape.write(rows)) for rows in _symbols(files, sources)),
        lambda: (shape.texts(rows) for rows in _symbols(files, sources)),
    )
    return members


def _sections(files: Iterable[Origins]) -> list[_SectionOfFile]:
    return [_SectionOfFile(file.contents, section) for file in files for section in file.contents.sections]


def _origins(file: Origins, groups: "SourceGroups | None") -> Iterator[_OriginOfSection]:
    for cut in file.sections:
        for origin, share in file.shares(cut).items():
            group = None if groups is None else groups.of(origin)
            yield _OriginOfSection(file, cut.contents, origin, share, group)


def symbols_metrics(files: Iterable[Origins]) -> list[MetricFamily]:
    """Return the sizes of writable sections, and how much of each has a name."""

    def labels(row: _SectionOfFile) -> dict[str, str]:
        return {"file": row.contents.file, "section": row.section.section.name, "kind": row.section.kind.value}

    return row_metrics(SectionRow, _sections(files), "section", labels)


def _symbols(files: Sequence[Origins], sources: "Sequence[DeclaredVariables] | None") -> Iterator[list[SymbolRow]]:
    """Yield the rows of the variables, the largest first, some at a time: there may be a million."""
    sections = [
        _Section(file, cut, sources[number] if sources else None)
        for number, file in enumerate(files)
        for cut in file.sections
    ]
    sections.sort(key=lambda section: section.origins.contents.file)
    counts = [len(section.cut.contents.variables) for section in sections]
    variables = list(chain.from_iterable(section.cut.contents.variables for section in sections))
    numbers = array("I", chain.from_iterable(map(repeat, count(), counts)))
    # The last key first: sorts keep the order of equals.
    order = sorted(range(len(variables)), key=list(map(_NAME, variables)).__getitem__)
    order.sort(key=list(map(_SIZE, variables)).__getitem__, reverse=True)
    for at in range(0, len(order), _ROWS_AT_ONCE):
        some = order[at : at + _ROWS_AT_ONCE]
        yield _rows(sections, list(map(numbers.__getitem__, some)), list(map(variables.__getitem__, some)))


class _Section(NamedTuple):
    """A section of a file with the origins of its bytes, and the declarations of its variables."""

    origins: Origins
    cut: SectionOrigins
    declared: "DeclaredVariables | None"


def _rows(sections: Sequence[_Section], numbers: Sequence[int], variables: Sequence[Symbol]) -> list[SymbolRow]:
    """Return the rows of variables, each with the number of its section; by columns, which takes half the time."""
    heads = [(s.origins.contents.file, s.cut.contents.section.name, s.cut.contents.kind) for s in sections]
    places = [sections[number] for number in numbers]
    origins = [place.origins.of(place.cut, variable) for place, variable in zip(places, variables, strict=True)]
    objects, members, units, _ = zip(*origins, strict=True)
    names = list(map(_NAME, variables))
    columns: list[Iterable[Any]] = [
        *zip(*map(heads.__getitem__, numbers), strict=True),
        *(names, map(shown_name, names)),
        *(map(attrgetter(name), variables) for name in ("aliases", "offset", "size_bytes")),
        [_BINDINGS.get(variable.binding) or str(variable.binding) for variable in variables],
        *(objects, members, units),
    ]
    if sections[0].declared is None:
        columns += [repeat(ABSENT)] * 5
    else:
        texts = (
            _declaration(place.declared, place.cut.contents, variable)
            for place, variable in zip(places, variables, strict=True)
            if place.declared is not None
        )
        columns += zip(*texts, strict=True)
    return records(SymbolRow, zip(*columns, strict=False))


def _declaration(
    sources: "DeclaredVariables", section: SectionContents, variable: Symbol
) -> tuple[str | None, int | None, str | None, str | None, Literal["symbol", "debug information"]]:
    line = sources.of(section, variable)
    named_by: Literal["symbol", "debug information"] = (
        "debug information" if sources.is_named_here(section, variable) else "symbol"
    )
    if line is None:
        return None, None, None, None, named_by
    return (line.defined_in, line.defined_at_line or None, line.type_name, line.function, named_by)
