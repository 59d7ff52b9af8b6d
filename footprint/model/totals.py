"""The figures of a whole process, each with its evidence."""

from typing import Final, NamedTuple

from footprint.model.evidence import Evidence

__all__ = ("FIGURE_NAMES", "OfWhich", "Total", "Totals")


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
        own_shared_bytes: Part of `shared_once` and of `per_process`: shared memory that only this process has mapped
            (memfd, shared anonymous memory, SysV, deleted files, `/dev/shm`). Each started copy makes its own.
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
