"""One ELF file: what it holds in memory, and under which names. Reads bytes that it is given; opens nothing.

All readers raise `InputError` where the bytes that they need are damaged, cut, or outside of the file. It names the
file, the offset and the cause.
"""
