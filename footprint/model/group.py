"""Several processes as one group."""

from dataclasses import dataclass

from footprint.errors import Note
from footprint.model.audit import Audit
from footprint.model.row import MemoryKind, Row
from footprint.model.totals import Total

__all__ = ("Group",)


@dataclass(frozen=True, slots=True)
class Group:
    """Where the memory of several processes goes.

    Attributes:
        audits: The audit of each process.
        private: The private memory of all processes.
        kernel: What the kernel spends on all processes.
        shared_between: Anonymous memory that several of them have shared since a fork, counted once.
        own_shared: Shared memory that they made and that nobody else maps, each page once.
        per_group: These four: what one more group of them costs.
        shared_once: Resident pages of files and of shared memory that others have too, each counted once.
        ledger: The rows of all, those of one owner, section and symbol added up; `bytes` add up to `private`,
            those of the kernel to `kernel`.
        notes: What the reader must know, with the process it is about.

    Raises:
        ValueError: Where the rows do not add up: a defect of footprint, never of the input.
    """

    audits: tuple[Audit, ...]
    private: Total
    kernel: Total
    shared_between: Total
    own_shared: Total
    per_group: Total
    shared_once: Total
    ledger: tuple[Row, ...]
    notes: tuple[Note, ...]

    def __post_init__(self) -> None:
        for is_kernel, total in ((False, self.private), (True, self.kernel)):
            sum_bytes = sum(row.bytes or 0 for row in self.ledger if (row.kind is MemoryKind.KERNEL) is is_kernel)
            if total.bytes is not None and sum_bytes != total.bytes:
                raise ValueError(f"the rows hold {sum_bytes} bytes, the total is {total.bytes}")

    @property
    def debug_files(self) -> dict[str, str]:
        """The files from which the names of the variables of stripped owners are."""
        return {owner: path for audit in self.audits for owner, path in audit.debug_files.items()}
