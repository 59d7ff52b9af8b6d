"""Which program wrote a profile, told by its first bytes."""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Final

from footprint.errors import InputError, UnsupportedError
from footprint.heap.decompression import pieces_of
from footprint.heap.dhat import looks_like_dhat, read_dhat
from footprint.heap.gperftools import looks_like_gperftools, read_gperftools
from footprint.heap.heaptrack import looks_like_heaptrack, read_heaptrack
from footprint.heap.jemalloc import looks_like_jemalloc, read_jemalloc
from footprint.heap.massif import looks_like_massif, read_massif
from footprint.heap.profile import Buffer, Profile

__all__ = ("looks_like_profile", "read_profile")

_Reader = Callable[[Iterable[bytes], str], Profile]
_READERS: Final[tuple[tuple[Callable[[bytes], bool], _Reader], ...]] = (
    (looks_like_massif, read_massif),
    (looks_like_dhat, read_dhat),
    (looks_like_heaptrack, read_heaptrack),
    (looks_like_gperftools, read_gperftools),
    (looks_like_jemalloc, read_jemalloc),
)
# Texts that are made of profiles, and have lost much of them: what to read in their stead.
_RENDERED: Final = (
    (b"# callgrind format", "an XTree in callgrind's format: Valgrind writes massif's to a file named `*.ms`"),
    (b"-" * 80 + b"\nCommand:", "the output of ms_print: read the file that it was made of"),
    (b"--- symbol\n", "a profile that pprof or jeprof has rewritten: read the one that it was made of"),
)


def looks_like_profile(data: Buffer, name: str) -> bool:
    """Tell whether an input is a profile of allocations that can be read, compressed or not.

    Raises:
        InputError: Where it is compressed, and damaged in its first bytes or not to be inflated here.
    """
    start, _ = _opened(data, name)
    return any(looks_like(start) for looks_like, _ in _READERS)


def read_profile(data: Buffer, name: str, choose: Callable[[Profile], Collection[int]] | None = None) -> Profile:
    """Read a profile of allocations: massif, XTree, DHAT, heaptrack, gperftools or jemalloc, told by its content.

    Args:
        data: The file, which may be compressed with gzip, bzip2 or zstd.
        name: Its name in messages.
        choose: Is given the profile of massif without its trees, and gives the places of the snapshots of which they
            are built. A file of 1,000 trees is read in a tenth of the time where one of them is wanted. The other
            formats have few trees: all of them are built.

    Raises:
        InputError: Where it is none of these, or damaged so that nothing is left to say.
        UnsupportedError: Where it is one in a form that is not read.
    """
    start, pieces = _opened(data, name)
    if choose is not None and looks_like_massif(start):
        without_trees = read_massif(pieces, name, wanted=())
        # The trees of an XTree are columns of one table.
        if without_trees.format == "xtree":
            return read_massif(pieces_of(data, name), name)
        # Where a text was cut, the last tree shows it.
        wanted = {*choose(without_trees), *without_trees.detailed_places[-1:]}
        return read_massif(pieces_of(data, name), name, wanted)
    for looks_like, read in _READERS:
        if looks_like(start):
            return read(pieces, name)
    for begin, cause in _RENDERED:
        if start.startswith(begin):
            raise UnsupportedError(name, cause, 0)
    raise InputError(name, "no profile of massif, DHAT, heaptrack, gperftools or jemalloc", 0)


def _opened(data: Buffer, name: str) -> tuple[bytes, Iterator[bytes]]:
    pieces = pieces_of(data, name)
    start = next(pieces, b"")
    return start, chain((start,), pieces)
