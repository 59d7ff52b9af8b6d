"""The rows of the ledger, and the figures of a whole process, which they add up to; each with its evidence."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import compress, repeat
from operator import add, attrgetter, is_
from typing import Final

from footprint.members import NamedTuple

DELETED = " (deleted)"
NAMELESS: Final = "[anonymous]"
"""The owner of anonymous memory of which nothing more is known."""
# What allocators call their memory where the kernel lets them: glibc 2.39, bionic, scudo, jemalloc.
_NAMED_HEAPS: Final = ("[anon: glibc: malloc", "[anon:libc_malloc", "[anon:scudo:", "[anon:jemalloc")
_OTHER_NAMES: Final = {"cow_shared": "shared_with_relatives", "startup_min": "floor", "startup_max": "ceiling"}


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


_KIND: Final = attrgetter("kind")


class CommonRows:
    """Rows that alike processes have in common: what is computed of them is computed once."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.sums = sum_rows(rows)
        self.kinds = frozenset(map(_KIND, rows))


class Ledger(tuple[Row, ...]):  # noqa: SLOT001 # a tuple has no room for slots
    """The rows of one of many processes, the largest first.

    Attributes:
        own_rows: Those that only this process has.
        common: The others.
    """

    own_rows: Sequence[Row]
    common: CommonRows


def rows_of_kind(rows: Sequence[Row], kind: MemoryKind) -> Iterator[Row]:
    """Return the rows of one kind. Of a process they are few among hundreds: Python runs no step for the others."""
    if isinstance(rows, Ledger) and kind not in rows.common.kinds:
        rows = rows.own_rows
    return compress(rows, map(is_, map(_KIND, rows), repeat(kind)))


def sum_rows(rows: Iterable[Row]) -> RowSums:
    """Add up some rows."""
    if isinstance(rows, Ledger):
        return RowSums(*map(add, sum_rows(rows.own_rows), rows.common.sums))
    given = tuple(rows)
    if not given:
        return RowSums(0, 0, 0, 0)
    # By columns: a loop over the rows takes five times as long.
    *_, private, mapped, shared, _, _, _, is_writable, _, _ = zip(*given, strict=True)
    return RowSums(
        sum(filter(None, private)), sum(mapped), sum(compress(mapped, is_writable)), sum(filter(None, shared))
    )


class Total(NamedTuple):
    """A figure of the whole process and how it is known; `bytes` is None where the input does not contain it."""

    bytes: int | None
    evidence: Evidence


class OfWhich(NamedTuple):
    """Kinds of memory within the totals that behave in their own way; 0 where there is none, or none is reported.

    Attributes:
        swapped_bytes: Part of `private`: on a swap device, back in memory when touched.
        lazy_free_bytes: Part of `private`: freed with MADV_FREE; the kernel takes it when it needs memory.
        locked_bytes: Never swapped (mlock); the process's share of pages that others map too.
        huge_page_bytes: Part of `private`, in transparent huge pages: writing one byte costs a whole huge page.
        ksm_bytes: Merged by KSM with equal pages of this or another process; not part of `private` where others map
            them too.
        hugetlb_private_bytes: Huge pages of the reserved pool that only this process holds; in no total, because they
            were paid for when the pool was reserved.
        hugetlb_shared_bytes: Huge pages of the reserved pool that several processes hold; in no total.
        own_shared_bytes: Part of `shared_once` and of `per_process`: files in memory that only this process and its
            descendants keep (memfd, shared anonymous memory, SysV, files of tmpfs), and mapped buffers of the kernel
            that no price of a descriptor has. Each started copy makes its own.
    """

    swapped_bytes: int
    lazy_free_bytes: int
    locked_bytes: int
    huge_page_bytes: int
    ksm_bytes: int
    hugetlb_private_bytes: int
    hugetlb_shared_bytes: int
    own_shared_bytes: int


class Totals(NamedTuple):
    """The figures of a whole process.

    Attributes:
        private: Resident or swapped anonymous memory that only this process holds.
        kernel: Page tables, kernel stacks, kernel objects.
        per_process: What one more process costs: `private`, `kernel`, and the shared memory that it makes for itself.
        shared_once: Resident pages of files and shared memory, paid once per machine.
        cow_shared: COW-shared memory: anonymous pages that other processes hold too since a fork, or that KSM merged.
        mapped_writable: Virtual size of the private writable mappings: pmap's `writeable/private`.
        mapped_shared: Virtual size of the shared mappings: pmap's `shared`.
        mapped: Virtual size of all mappings.
        startup_min: Startup minimum: the pages that the loader surely writes, predicted from the files.
        startup_max: Startup maximum: all pages of the files that can ever be written, predicted from the files.
        of_which: Kinds of memory within these totals that behave in their own way.
    """

    private: Total
    kernel: Total
    per_process: Total
    shared_once: Total
    cow_shared: Total
    mapped_writable: Total
    mapped_shared: Total
    mapped: Total
    startup_min: Total
    startup_max: Total
    of_which: OfWhich

    @property
    def figures(self) -> dict[str, Total]:
        """Return each figure by its name, also those that the input cannot tell."""
        return {name: getattr(self, field) for field, name in FIGURE_NAMES.items()}


FIGURE_NAMES: Final = {
    field: _OTHER_NAMES.get(field, field) + "_bytes" for field in Totals._fields if field != "of_which"
}
"""By the field of `Totals`, its name in JSON, budgets and metrics; the schema footprint/1 fixes it."""


_NOTHING: Final = Total(0, Evidence.MEASURED)


class Part(StrEnum):
    """A kind of memory in the cost of a process or of a group."""

    HEAP = "heap"
    RUNTIME_HEAP = "runtime_heap"
    OBJECTS = "objects"
    STACKS = "stacks"
    OTHER = "other"
    SHARED_BETWEEN = "shared_between"
    OWN_SHARED = "own_shared"
    KERNEL = "kernel"

    @classmethod
    def of(cls, row: Row) -> "Part":
        """Return the part that a row belongs to, by its owner and kind."""
        if row.kind is MemoryKind.KERNEL:
            return cls.KERNEL
        if row.is_heap:
            return cls.HEAP
        if row.kind in OF_OBJECTS:
            return cls.OBJECTS
        if row.kind is MemoryKind.ANONYMOUS and row.owner.endswith(" heap]"):
            return cls.RUNTIME_HEAP
        return cls.STACKS if row.kind is MemoryKind.STACK else cls.OTHER


class KindPart(NamedTuple):
    """A part of the cost.

    Attributes:
        part: `heap` (of malloc), the heap of Java, of Go or of a sanitizer (`runtime_heap`), the program and its
            libraries (`objects`), `stacks`, all `other` private memory, memory that processes of a group have shared
            since a fork (`shared_between`), files in memory that nobody else keeps (`own_shared`), or what the
            `kernel` spends.
        bytes: The bytes.
        evidence: How they are known.
    """

    part: Part
    bytes: int
    evidence: Evidence


def kind_parts(
    ledger: Iterable[Row], own_shared: Total = _NOTHING, shared_between: Total = _NOTHING
) -> tuple[KindPart, ...]:
    """Add up what one more process or group costs by kinds of memory, without those that it has none of."""
    # An owner has thousands of rows of a kind, which are of one part.
    alike: dict[tuple[object, ...], list[Row]] = {}
    for row in ledger:
        alike.setdefault(row[:2], []).append(row)
    rows: dict[Part, list[Row]] = {part: [] for part in Part}
    for some in alike.values():
        rows[Part.of(some[0])] += some
    sums = {part: Total(sum([row.bytes or 0 for row in some]), _evidence(some)) for part, some in rows.items()}
    sums |= {Part.OWN_SHARED: own_shared, Part.SHARED_BETWEEN: shared_between}
    return tuple([KindPart(part, total.bytes, total.evidence) for part, total in sums.items() if total.bytes])


def _evidence(rows: Iterable[Row]) -> Evidence:
    return weakest({row.evidence for row in rows if row.bytes} or {Evidence.MEASURED})
