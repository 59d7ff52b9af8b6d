"""What Valgrind, heaptrack, tcmalloc and jemalloc say of a heap. Reads bytes that it is given; opens nothing."""

from footprint.heap.detect import looks_like_profile, read_profile
from footprint.heap.profile import Buffer, CallTree, Counted, Frame, HeapSnapshot, Module, Profile, Tally

__all__ = (
    "Buffer",
    "CallTree",
    "Counted",
    "Frame",
    "HeapSnapshot",
    "Module",
    "Profile",
    "Tally",
    "looks_like_profile",
    "read_profile",
)
