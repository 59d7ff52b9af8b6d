"""What Valgrind, heaptrack, tcmalloc and jemalloc say of a heap. Reads bytes that it is given; opens nothing."""

from footprint.heap.detect import looks_like_profile, read_profile
from footprint.heap.profile import Buffer, CallTree, Counted, Frame, Module, Profile, Snapshot, Tally

__all__ = (
    "Buffer",
    "CallTree",
    "Counted",
    "Frame",
    "Module",
    "Profile",
    "Snapshot",
    "Tally",
    "looks_like_profile",
    "read_profile",
)
