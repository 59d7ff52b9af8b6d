"""Where variables are declared, from the debug information (DWARF) of one ELF file."""

from footprint.dwarf.by_name import compiled_sources, declarations_by_name
from footprint.dwarf.declarations import Declarations, read_declarations
from footprint.dwarf.describe import Declaration

__all__ = ("Declaration", "Declarations", "compiled_sources", "declarations_by_name", "read_declarations")
