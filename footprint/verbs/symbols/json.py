"""The JSON of `symbols`."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from footprint.elf import SectionContents, Symbol, shown_name
from footprint.elf.contents import ResidueCause, SectionKind
from footprint.elf.origins import Origins, SectionOrigins
from footprint.errors import Note
from footprint.formats.codec import encode, shape_of
from footprint.formats.json import Envelope, Json, LargeTable, Tool
from footprint.members import ABSENT, Absent, Address
from footprint.records import records

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceGroups
    from footprint.dwarf.declared_variables import DeclaredVariables

__all__ = ("SymbolsJson", "symbols_members")

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


class SectionRow(NamedTuple):
    """One writable or thread-local section.

    Attributes:
        file: The file.
        section: The section.
        kind: What makes its memory private.
        vaddr: Its link-time address.
        size_bytes: Its size in memory.
        named_bytes: The bytes that a variable names.
        residue: The other bytes, by the cause why no variable names them; with `named_bytes` they add up to
            `size_bytes`.
        overlap_bytes: The bytes that several symbols name, beyond the one that counts.
        symbols_from: The symbol table: `.symtab`, `.dynsym`, `.gnu_debugdata`; null where the file names nothing.
        debug_file: The file that has the symbol table; null where it is the file itself.
    """

    file: str
    section: str
    kind: SectionKind
    vaddr: Address
    size_bytes: int
    named_bytes: int
    residue: Mapping[ResidueCause, int]
    overlap_bytes: int
    symbols_from: str | None
    debug_file: str | None


class OriginRow(NamedTuple):
    """The part of a section that came from one object or source file; all parts add up to the section.

    Attributes:
        file: The file.
        section: The section.
        kind: What makes its memory private.
        object: The object file or archive, as the linker or the user named it; null where it is not known.
        member: The member of the archive; null where there is none.
        unit: The source file, without folders; with them where debug information names it; null where it is not known.
        group: The group of the source file or object, by the options; null without one, or where neither is known.
        cause: Why neither is known; null where one is.
        size_bytes: The bytes that came from there.
        named_bytes: The bytes of these that a variable names.
        variable_count: The number of variables.
    """

    file: str
    section: str
    kind: SectionKind
    object: str | None
    member: str | None
    unit: str | None
    group: str | None
    cause: str | None
    size_bytes: int
    named_bytes: int
    variable_count: int


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
    maps = [known.linker_map.file for known in files if known.linker_map]
    origins = [row for known in files for row in _origins(known, groups)]
    members = encode(
        SymbolsJson(
            tool=Tool("footprint", version),
            host={},
            target=SymbolsTarget(tuple([known.contents.file for known in files]), maps[0] if maps else None),
            sections=tuple([row for known in files for row in _sections(known)]),
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


def _sections(known: Origins) -> Iterator[SectionRow]:
    contents = known.contents
    for one in contents.sections:
        yield SectionRow(
            file=contents.file,
            section=one.section.name,
            kind=one.kind,
            vaddr=one.section.vaddr,
            size_bytes=one.size_bytes,
            named_bytes=one.named_bytes,
            residue=one.residue_bytes,
            overlap_bytes=one.lost_bytes,
            symbols_from=contents.symbols_from,
            debug_file=contents.debug_file,
        )


def _origins(known: Origins, groups: "SourceGroups | None") -> Iterator[OriginRow]:
    for cut in known.sections:
        one = cut.contents
        for origin, share in known.shares(cut).items():
            yield OriginRow(
                known.contents.file,
                one.section.name,
                one.kind,
                origin.object,
                origin.member,
                origin.unit,
                None if groups is None else groups.of(origin),
                origin.cause or None,
                *share,
            )


def _symbols(files: Sequence[Origins], sources: "Sequence[DeclaredVariables] | None") -> Iterator[list[SymbolRow]]:
    """Yield the rows of the variables, the largest first, some at a time: there may be a million."""
    sections = [
        _Section(known, cut, sources[number] if sources else None)
        for number, known in enumerate(files)
        for cut in known.sections
    ]
    sections.sort(key=lambda one: one.known.contents.file)
    counts = [len(one.cut.contents.variables) for one in sections]
    variables = list(chain.from_iterable(one.cut.contents.variables for one in sections))
    numbers = array("I", chain.from_iterable(map(repeat, count(), counts)))
    # The last key first: sorts keep the order of equals.
    order = sorted(range(len(variables)), key=list(map(_NAME, variables)).__getitem__)
    order.sort(key=list(map(_SIZE, variables)).__getitem__, reverse=True)
    for at in range(0, len(order), _ROWS_AT_ONCE):
        some = order[at : at + _ROWS_AT_ONCE]
        yield _rows(sections, list(map(numbers.__getitem__, some)), list(map(variables.__getitem__, some)))


class _Section(NamedTuple):
    """A section of a file with the origins of its bytes, and the declarations of its variables."""

    known: Origins
    cut: SectionOrigins
    declared: "DeclaredVariables | None"


def _rows(sections: Sequence[_Section], numbers: Sequence[int], variables: Sequence[Symbol]) -> list[SymbolRow]:
    """Return the rows of variables, each with the number of its section; by columns, which takes half the time."""
    heads = [(one.known.contents.file, one.cut.contents.section.name, one.cut.contents.kind) for one in sections]
    places = [sections[number] for number in numbers]
    origins = [one.known.of(one.cut, variable) for one, variable in zip(places, variables, strict=True)]
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
        said = (
            _declaration(one.declared, one.cut.contents, variable)
            for one, variable in zip(places, variables, strict=True)
            if one.declared is not None
        )
        columns += zip(*said, strict=True)
    return records(SymbolRow, zip(*columns, strict=False))


def _declaration(
    sources: "DeclaredVariables", section: SectionContents, variable: Symbol
) -> tuple[str | None, int | None, str | None, str | None, Literal["symbol", "debug information"]]:
    said = sources.of(section, variable)
    named_by: Literal["symbol", "debug information"] = (
        "debug information" if sources.is_named_here(section, variable) else "symbol"
    )
    if said is None:
        return None, None, None, None, named_by
    return said.defined_in, said.defined_at_line or None, said.type_name, said.function, named_by
