"""Heap profiles of Valgrind, heaptrack, pprof, jemalloc and others: bytes in, one `Profile` out; no file is opened."""

from footprint.heap.formats import looks_like_profile, read_profile
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
