"""Where variables are declared, from the debug information (DWARF) of one ELF file."""

from footprint.elf.dwarf.declarations import Declaration, Declarations, read_declarations

__all__ = ("Declaration", "Declarations", "read_declarations")
