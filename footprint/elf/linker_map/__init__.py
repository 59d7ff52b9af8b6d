"""The map that a linker writes (`-Wl,-Map=FILE`): where each piece of a linked file came from, and its libraries."""
