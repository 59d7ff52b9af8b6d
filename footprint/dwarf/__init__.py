"""The declarations of variables, from the debug information (DWARF) of one ELF file."""

from footprint.dwarf.declarations import Declarations, compiled_sources, declarations_by_name, read_declarations
from footprint.dwarf.description import Declaration
from footprint.dwarf.search import VariablePlace

__all__ = (
    "Declaration",
    "Declarations",
    "VariablePlace",
    "compiled_sources",
    "declarations_by_name",
    "read_declarations",
)
