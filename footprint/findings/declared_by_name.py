"""Where constants are declared whose address the debug information lacks: found by name, source file and size.

gcc writes no address for an array whose contents it knows. A line is used only where nothing else can be meant:
every source of the name that the symbol table gives has debug information, each declares the one line, and each has
one variable for it.
"""

import posixpath
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from footprint.dwarf import Declaration
from footprint.elf.names import source_name
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.findings.copies import Declared

__all__ = ("declared_by_name",)


def declared_by_name(
    statics: Statics,
    lacking: Collection[Symbol],
    by_name: Mapping[str, Sequence[Declaration]],
    compiled: Sequence[str],
) -> dict[tuple[bool, int], Declared]:
    """Find where the variables `lacking` are declared, whose address the debug information lacks.

    `by_name` has the declarations without an address by their name in the source, `compiled` the source file of each
    unit with debug information.
    """
    file_counts = Counter(statics.units)
    compiled_counts = Counter(map(posixpath.basename, compiled))
    sources: dict[str, set[str]] = {}
    for path in compiled:
        sources.setdefault(posixpath.basename(path), set()).add(path)
    named = [(source_name(static.name), static) for static in lacking if static.unit is not None]
    counts = Counter((name, static.unit, static.size_bytes) for name, static in named)
    lines: dict[tuple[bool, int], Declared] = {}
    for name, static in named:
        unit = statics.units[static.unit or 0]
        if counts[name, static.unit, static.size_bytes] > 1 or file_counts[unit] > compiled_counts[unit]:
            continue
        fitting = [
            one
            for one in by_name.get(name, ())
            if one.size_bytes == static.size_bytes and one.unit in sources.get(unit, ())
        ]
        places = {
            (one.defined_in, one.defined_at_line, one.is_in_header, one.type_name, one.alignment_bytes)
            for one in fitting
        }
        if len(places) == 1 and {one.unit for one in fitting} == sources.get(unit):
            file, line, is_in_header, type_name, alignment_bytes = places.pop()
            if file is not None and line is not None:
                known = Declared(file, line, is_in_header, type_name=type_name, standard=fitting[0].standard)
                lines[static.is_tls, static.vaddr] = known._replace(alignment_bytes=alignment_bytes)
    return lines
