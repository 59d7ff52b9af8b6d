"""Where variables are declared, as `footprint symbols --source` shows it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from footprint.elf.contents import SectionContents
from footprint.elf.names import lacks_function
from footprint.elf.symbols import Symbol
from footprint.formats.document import Block, Paragraph
from footprint.text.escape import shortened
from footprint.text.units import counted
from footprint.verbs.symbols.call import FileSymbols

if TYPE_CHECKING:
    from footprint.dwarf.declared_variables import DeclaredVariables
    from footprint.dwarf.description import Declaration


# On a terminal of 80 columns that leaves some 30 for the name and the type.
_LONGEST_PLACE: Final = 28
_LONGEST_TYPE: Final = 60


def declared_place(declaration: "Declaration | None", *, is_whole: bool) -> str:
    """Return the file and line of a declaration; of a long path the last parts that fit, if not `is_whole`."""
    if declaration is None or declaration.defined_in is None:
        return "-"
    line = declaration.defined_at_line
    text = f"{declaration.defined_in}:{line}" if line else declaration.defined_in
    if is_whole or len(text) <= _LONGEST_PLACE:
        return text
    # A long file name loses its beginning too.
    start = len(text) - _LONGEST_PLACE + 3
    slash = text.find("/", start)
    return f"...{text[slash if slash >= 0 else start :]}"


def declared_words(
    sources: "DeclaredVariables",
    section: SectionContents,
    variable: Symbol,
    show: Callable[[str], str],
    *,
    is_whole: bool,
) -> str:
    """Return the words behind a name: the function that it is in, its type, and whether no symbol names it."""
    declaration = sources.of(section, variable)
    if declaration is None:
        return ""
    function, type_name = declaration.function, declaration.type_name or ""
    words = f" in {show(function)}" if function and lacks_function(variable.name, function) else ""
    if type_name:
        words += f": {type_name if is_whole else shortened(type_name, _LONGEST_TYPE)}"
    return f"{words}  (no symbol)" if sources.is_named_here(section, variable) else words


def sources_paragraph(symbols: FileSymbols) -> list[Block]:
    """Show for how many variables the line is known."""
    count = found_count = size_bytes = found_bytes = 0
    for contents, sources in zip(symbols.files, symbols.sources or (), strict=True):
        for section in contents.sections:
            has_line = {}
            for variable in section.variables:
                declaration = sources.of(section, variable)
                has_line[variable] = declaration is not None and bool(declaration.defined_at_line)
            count += len(has_line)
            found_count += sum(has_line.values())
            # Not by their sizes: one symbol can lie in another.
            for start, end, owner in section.ranges.pieces:
                if isinstance(owner, Symbol) and owner in has_line:
                    size_bytes += end - start
                    found_bytes += end - start if has_line[owner] else 0
    if not count:
        return []
    # Rounded down: 100 % is all of it.
    share = f" ({1000 * found_bytes // size_bytes / 10}%)" if size_bytes else ""
    text = f"Debug information tells the lines of {found_count:,} of {counted(count, 'variable')}, "
    return [Paragraph(f"{text}{found_bytes:,} of {size_bytes:,} bytes{share}.")]
