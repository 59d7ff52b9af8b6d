"""The declarations of variables, from the debug information (DWARF) of one ELF file.

All readers raise `InputError` where the bytes that they need are damaged, cut, or outside of their section.
"""

from footprint.dwarf.declarations import (
    Declarations,
    DefinedFunctions,
    compiled_sources,
    declarations_by_name,
    read_declarations,
)
from footprint.dwarf.description import Declaration
from footprint.dwarf.places import VariablePlace
from footprint.dwarf.units import DebugInfo

__all__ = (
    "DebugInfo",
    "Declaration",
    "Declarations",
    "DefinedFunctions",
    "VariablePlace",
    "compiled_sources",
    "declarations_by_name",
    "read_declarations",
)
