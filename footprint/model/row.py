"""One row of the ledger."""

from collections.abc import Iterable
from enum import StrEnum
from itertools import compress
from typing import Final

from footprint.members import NamedTuple


class Evidence(StrEnum):
    """How a figure is known, from the strongest to the weakest."""

    MEASURED = "measured"
    """A kernel counter or page bit, as it stands."""
    DERIVED = "derived"
    """Exact arithmetic on measured figures."""
    PREDICTED = "predicted"
    """From ELF files, before running."""
    ESTIMATED = "estimated"
    """A model with constants, or an assumption that is usually right."""
    VIRTUAL = "virtual"
    """Address space only: an upper bound."""


_STRENGTH = {evidence: place for place, evidence in enumerate(Evidence)}


def weakest(evidence: Iterable[Evidence]) -> Evidence:
    """Return the weakest evidence of several figures, which is that of their sum; measured for none, as 0 is exact."""
    return max(evidence, key=_STRENGTH.__getitem__, default=Evidence.MEASURED)


DELETED = " (deleted)"
NAMELESS: Final = "[anonymous]"
"""The owner of anonymous memory of which nothing more is known."""


def is_file(owner: str) -> bool:
    """Return whether an owner is a file; memory without a file has an owner in brackets."""
    return not owner.startswith("[")


def file_name(owner: str) -> str:
    """Return the last part of an owner's path, without the kernel's remark that the file was deleted."""
    return owner.removesuffix(DELETED).rsplit("/", 1)[-1]


class MemoryKind(StrEnum):
    """What a range of a process is for. Rows of kind `kernel` are no part of the address space."""

    # Enum's own hash is computed in Python, and each row of a ledger needs one.
    __hash__ = str.__hash__

    DATA = "data"
    BSS = "bss"
    RELRO = "relro"
    TEXT = "text"
    TLS = "tls"
    FILE = "file"
    HEAP = "heap"
    STACK = "stack"
    ANONYMOUS = "anonymous"
    SHARED = "shared"
    KERNEL = "kernel"


OF_OBJECTS: Final = frozenset({MemoryKind.DATA, MemoryKind.BSS, MemoryKind.RELRO, MemoryKind.TEXT, MemoryKind.TLS})
"""The kinds of memory that the program and its libraries hold."""


# What allocators call their memory where the kernel lets them: glibc 2.39, bionic, scudo, jemalloc.
_NAMED_HEAPS: Final = ("[anon: glibc: malloc", "[anon:libc_malloc", "[anon:scudo:", "[anon:jemalloc")


class Attribution(StrEnum):
    """How the owner of a range is known, from the surest to the least sure."""

    PROGRAM_HEADERS = "program headers"
    """The program headers of the file say what lies at these addresses."""
    NAME = "name"
    """The kernel names the mapping."""
    ALLOCATOR = "allocator"
    """The structures of the allocator say what it has there, and which of it is in use."""
    THREAD_VECTOR = "thread vector"
    """The vector of a thread (dtv) says where it has the thread-local variables of a library."""
    STACK_POINTER = "stack pointer"
    """A thread's stack pointer lies in it."""
    SHAPE = "shape"
    """Its size, alignment and neighbours are those of arenas and stacks of the C library."""
    ADJACENCY = "adjacency"
    """It lies directly behind the owner's writable data, or where the kernel puts the heap; the file was not read."""
    PROFILE = "allocator profile"
    """A profile of another run says which function asked for it; its place in the heap is unknown."""
    NONE = "none"
    """Nothing says what it is for."""

    @property
    def is_assumed(self) -> bool:
        """Whether the owner is only likely."""
        return self in {Attribution.SHAPE, Attribution.ADJACENCY}


class Row(NamedTuple):
    """One line of the ledger.

    Attributes:
        owner: The object's path as the kernel names it, or a name in brackets for what no file owns.
        kind: What the memory is for.
        section: The section, several joined by `+` where they cannot be told apart, or None.
        symbol: The linker name, or None where no symbol owns the bytes.
        name: What to show for the symbol, or why there is none.
        bytes: Private bytes; None where only virtual sizes are known.
        mapped_bytes: Virtual size; 0 for what is no part of the address space.
        shared_bytes: Resident bytes that are paid once per machine; None where unknown.
        pages: The number of private pages in which the bytes lie, also those that other symbols lie in.
        sole_pages: The number of private pages in which no other variable lies: this one alone keeps them private.
        relocated_bytes: The part of the bytes in pages that relocations write at start; None where unknown.
        is_writable: Whether the range counts into `mapped_writable_bytes`.
        evidence: How `bytes` is known (for the virtual ones: `mapped_bytes`).
        attribution: How the owner is known.
    """

    owner: str
    kind: MemoryKind
    section: str | None
    symbol: str | None
    name: str | None
    bytes: int | None
    mapped_bytes: int
    shared_bytes: int | None
    pages: int | None
    sole_pages: int
    relocated_bytes: int | None
    is_writable: bool
    evidence: Evidence
    attribution: Attribution

    @property
    def is_heap(self) -> bool:
        """Whether it is memory of malloc: by its kind, or by the name that the allocator gave it."""
        is_named = self.kind is MemoryKind.ANONYMOUS and self.owner.startswith(_NAMED_HEAPS)
        return self.kind is MemoryKind.HEAP or is_named


class RowSums(NamedTuple):
    """Sums over rows; unknown figures count as 0."""

    private_bytes: int
    mapped_bytes: int
    writable_bytes: int
    shared_bytes: int


def sum_rows(rows: Iterable[Row]) -> RowSums:
    """Add up some rows."""
    given = tuple(rows)
    if not given:
        return RowSums(0, 0, 0, 0)
    # By columns: a loop over the rows takes five times as long.
    *_, private, mapped, shared, _, _, _, is_writable, _, _ = zip(*given, strict=True)
    return RowSums(
        sum(filter(None, private)), sum(mapped), sum(compress(mapped, is_writable)), sum(filter(None, shared))
    )
