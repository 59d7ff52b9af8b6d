"""The figures of a whole process, each with its evidence."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from footprint.members import NamedTuple
from footprint.model.row import OF_OBJECTS, Evidence, MemoryKind, Row, weakest


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
            descendants keep (memfd, shared anonymous memory, SysV, files of tmpfs). Each started copy makes its own.
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


_OTHER_NAMES: Final = {"cow_shared": "shared_with_relatives", "startup_min": "floor", "startup_max": "ceiling"}

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
