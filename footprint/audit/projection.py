"""What N processes cost, and how many fit: arithmetic on what one costs."""

from dataclasses import dataclass
from enum import StrEnum

from footprint.errors import UsageError
from footprint.evidence import Evidence

__all__ = ("Basis", "Projection", "fitting", "project")


class Basis(StrEnum):
    """Which figure of one process is multiplied."""

    PER_PROCESS = "per process"
    """Private memory, page tables, kernel stacks and kernel objects."""
    PRIVATE = "private"
    """Private memory only: the input does not tell what the kernel spends on the process."""
    MAPPED_WRITABLE = "mapped writable"
    """Address space that may become private: an upper bound for the pages, without what the kernel spends."""


@dataclass(frozen=True, slots=True)
class Projection:
    """The cost of `count` started copies of a process (exec model).

    Attributes:
        count: How many processes.
        per_process_bytes: What each costs.
        shared_once_bytes: What all of them pay once; None where unknown, and then not in the total.
        total_bytes: `shared_once_bytes + count * per_process_bytes`.
        basis: Which figure `per_process_bytes` is.
        evidence: How it is known; the weakest of its terms.
        memory_bytes: The memory that was asked to be filled, where `count` is how many fit; else None.
    """

    count: int
    per_process_bytes: int
    shared_once_bytes: int | None
    total_bytes: int
    basis: Basis
    evidence: Evidence
    memory_bytes: int | None = None


def project(
    count: int, per_process_bytes: int, shared_once_bytes: int | None, basis: Basis, evidence: Evidence
) -> Projection:
    """Give the cost of `count` processes.

    Raises:
        UsageError: For a count below 1.
    """
    if count < 1:
        raise UsageError(f"the number of processes is {count}: it must be 1 or more")
    total_bytes = (shared_once_bytes or 0) + count * per_process_bytes
    return Projection(count, per_process_bytes, shared_once_bytes, total_bytes, basis, evidence)


def fitting(
    memory_bytes: int, per_process_bytes: int, shared_once_bytes: int | None, basis: Basis, evidence: Evidence
) -> Projection:
    """Give how many processes fit into some memory, and what they cost; none where not even one does.

    Raises:
        UsageError: Where one process costs nothing, so that any number would fit.
    """
    if per_process_bytes <= 0:
        raise UsageError("one more process costs nothing by this input: any number fits")
    count = max(0, (memory_bytes - (shared_once_bytes or 0)) // per_process_bytes)
    total_bytes = (shared_once_bytes or 0) + count * per_process_bytes if count else 0
    return Projection(count, per_process_bytes, shared_once_bytes, total_bytes, basis, evidence, memory_bytes)
