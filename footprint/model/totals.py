"""The figures of a whole process, each with its evidence."""

from typing import NamedTuple

from footprint.model.evidence import Evidence

__all__ = ("OfWhich", "Total", "Totals")


class Total(NamedTuple):
    """A figure of the whole process with how it is known; `bytes` is None where the input cannot tell."""

    bytes: int | None
    evidence: Evidence


class OfWhich(NamedTuple):
    """What kinds of memory the figures contain that behave in their own way; 0 where there is none, or none is told.

    Attributes:
        swapped_bytes: Part of `private`: on a swap device, back in memory when touched.
        lazy_free_bytes: Part of `private`: given back with MADV_FREE, taken by the kernel when it needs it.
        locked_bytes: Never swapped (mlock); its share of pages that others map too.
        huge_page_bytes: Part of `private`, in transparent huge pages: a whole one is paid for each byte written.
        ksm_bytes: Merged with equal pages, of others or its own; no part of `private` where others map them.
        hugetlb_private_bytes: Huge pages of the reserved pool that it holds alone; in no total, as they were paid for
            when the pool was made.
        hugetlb_shared_bytes: The same, shared.
        own_shared_bytes: Part of `shared_once`: memory of its own that is mapped shared (memfd, shared anonymous), and
            which each started copy would make for itself.
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
        per_process: Both: what one more process costs.
        shared_once: Resident pages of files and shared memory, paid once per machine.
        shared_with_relatives: Anonymous memory that fork relatives hold too, or that KSM merged.
        mapped_writable: Virtual size of the private writable mappings: pmap's `writeable/private`.
        mapped_shared: Virtual size of the shared mappings: pmap's `shared`.
        mapped: Virtual size of all mappings.
        floor: Pages surely written at start, predicted from the files.
        ceiling: All pages that can ever be written, predicted from the files.
        of_which: Kinds of memory in them that behave in their own way.
    """

    private: Total
    kernel: Total
    per_process: Total
    shared_once: Total
    shared_with_relatives: Total
    mapped_writable: Total
    mapped_shared: Total
    mapped: Total
    floor: Total
    ceiling: Total
    of_which: OfWhich
