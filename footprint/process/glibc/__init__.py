"""The heap of glibc's malloc, read from the memory of a process: which of its addresses are in use and which are free.

No symbol is needed: `main_arena` is found by its shape, and each structure is believed only where it proves itself.

1. `arenas`: an empty bin of an arena points to itself, and the arenas are a ring. Nothing else looks like this.
2. `chunks`: the chunks of a heap lie end to end from its first byte to `top`, which ends where the heap ends. Bit 0 of
   a size says whether the chunk before is free. One size that does not fit makes the heap unknown, with the cause.
3. `free_lists`: free chunks that a thread keeps for itself (tcache) and those of fastbins have this bit set. Lists lead
   to them, and each must have the size of its list.
4. `arenas`, too: large blocks have mappings of their own, with a header at their start. malloc counts them.

The process may run meanwhile. A walk that does not fit is tried again. One that fits is the heap of that moment, as far
as there is one moment.

Source: malloc/malloc.c and malloc/arena.c of glibc 2.26 to 2.43.
"""
