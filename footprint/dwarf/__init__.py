"""The declarations of variables, from the debug information (DWARF) of one ELF file.

All readers raise `InputError` where the bytes that they need are damaged, cut, or outside of their section.
"""
