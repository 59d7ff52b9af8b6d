"""Where variables are declared, as `footprint symbols --source` shows it."""

from collections.abc import Sequence
from typing import Final

from footprint.dwarf import Declaration
from footprint.dwarf.declared_variables import DeclaredVariables
from footprint.elf import SectionContents, Symbol
from footprint.elf.names import lacks_function
from footprint.elf.origins import Origins
from footprint.formats.document import Block, Paragraph
from footprint.units import counted
from footprint.verbs.symbols.variables_text import Column, Placed, Show, Words

__all__ = ("shortened_place", "source_column", "source_words", "sources_paragraph")

# On a terminal of 80 columns that leaves some 30 for the name and the type.
_LONGEST_PLACE: Final = 28
_LONGEST_TYPE: Final = 60


def source_column(origins: Sequence[Origins], sources: Sequence[DeclaredVariables], *, is_whole: bool) -> Column:
    """Return the column with the file and line that declare each variable; of a long path its end."""

    def cell(one: Placed) -> str:
        said = _said(one, origins, sources)
        if said is None or said.defined_in is None:
            return "-"
        line = f":{said.defined_at_line}" if said.defined_at_line else ""
        return f"{said.defined_in}{line}" if is_whole else shortened_place(said.defined_in, line, _LONGEST_PLACE)

    return Column("declared", cell)


def source_words(origins: Sequence[Origins], sources: Sequence[DeclaredVariables], *, is_whole: bool) -> Words:
    """Return the words on each variable: the function that it is in, its type, and whether no symbol names it."""

    def words(one: Placed, show: Show) -> str:
        said = _said(one, origins, sources)
        if said is None:
            return ""
        function = said.function
        inside = f" in {show(function)}" if function and lacks_function(one.variable.name, function) else ""
        type_name = said.type_name or ""
        if len(type_name) > _LONGEST_TYPE and not is_whole:
            type_name = f"{type_name[: _LONGEST_TYPE - 3]}..."
        type_words = f": {type_name}" if type_name else ""
        contents = origins[one.file].contents.sections[one.section]
        nameless = "  (no symbol)" if sources[one.file].is_named_here(contents, one.variable) else ""
        return f"{inside}{type_words}{nameless}"

    return words


def sources_paragraph(origins: Sequence[Origins], sources: Sequence[DeclaredVariables]) -> list[Block]:
    """Write for how many variables the line is known."""
    count = found_count = size_bytes = found_bytes = 0
    for known, here in zip(origins, sources, strict=True):
        for section in known.contents.sections:
            told = {one: _has_line(here, section, one) for one in section.variables}
            count += len(told)
            found_count += sum(told.values())
            # Not by their sizes: one symbol can lie in another.
            for start, end, owner in section.ranges.pieces:
                if isinstance(owner, Symbol) and owner in told:
                    size_bytes += end - start
                    found_bytes += end - start if told[owner] else 0
    if not count:
        return []
    # Rounded down: 100 % is all of it.
    share = f" ({1000 * found_bytes // size_bytes / 10}%)" if size_bytes else ""
    text = f"Debug information tells the lines of {found_count:,} of {counted(count, 'variable')}, "
    return [Paragraph(f"{text}{found_bytes:,} of {size_bytes:,} bytes{share}.")]


def shortened_place(path: str, line: str, longest: int) -> str:
    """Return the last parts of a path that fit, and the line; a long name loses its beginning."""
    whole = f"{path}{line}"
    if len(whole) <= longest:
        return whole
    room = longest - 3
    cut = whole.find("/", len(whole) - room)
    return f"...{whole[cut:] if cut >= 0 else whole[len(whole) - room :]}"


def _has_line(sources: DeclaredVariables, section: SectionContents, variable: Symbol) -> bool:
    said = sources.of(section, variable)
    return said is not None and bool(said.defined_at_line)


def _said(one: Placed, origins: Sequence[Origins], sources: Sequence[DeclaredVariables]) -> Declaration | None:
    contents = origins[one.file].contents.sections[one.section]
    return sources[one.file].of(contents, one.variable)
