"""What the counters of a process say at one moment, and what they cost."""

from typing import NamedTuple


class ProcessCounters(NamedTuple):
    """What the counters of a process say at one moment.

    Attributes:
        private_bytes: Anonymous memory, swapped memory included; what is COW-shared by proportional shares.
        page_table_bytes: Page tables.
        shared_bytes: Shared memory that it has touched.
        resident_bytes: Resident memory, pages of files included.
        peak_resident_bytes: The most resident memory since it executed its program.
        thread_count: The number of threads.
        file_bytes: Resident pages of files.
        mapping_count: The number of mappings; 0 where they may not be read.
        descriptor_count: The number of open descriptors.
        object_bytes: The price of its kernel objects: process, threads, mappings.
        descriptor_bytes: The price of the open files that it pays for, with what they hold.
        memory_file_bytes: Files in memory that it pays for.
    """

    private_bytes: int
    page_table_bytes: int
    shared_bytes: int
    resident_bytes: int
    peak_resident_bytes: int
    thread_count: int
    file_bytes: int = 0
    mapping_count: int = 0
    descriptor_count: int = 0
    object_bytes: int = 0
    descriptor_bytes: int = 0
    memory_file_bytes: int = 0

    def cost_bytes(self, stack_bytes: int) -> int:
        """Compute the cost of the process; `stack_bytes` is the kernel stack of a thread."""
        kernel_bytes = self.page_table_bytes + stack_bytes * self.thread_count + self.object_bytes
        return self.private_bytes + kernel_bytes + self.descriptor_bytes + self.memory_file_bytes
