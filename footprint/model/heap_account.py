"""What the heap of a process is made of, by who asked for it."""

from dataclasses import dataclass
from typing import NamedTuple

from footprint.model.evidence import Evidence

__all__ = ("HeapAccount", "Share")


class Share(NamedTuple):
    """What one function asked for.

    Attributes:
        owner: The path of the object that it is in, or in brackets why that is not known.
        function: Its name, or in brackets why there is none.
        size_bytes: The bytes.
        block_count: The blocks, where the profile counts them.
    """

    owner: str
    function: str
    size_bytes: int
    block_count: int | None = None


@dataclass(frozen=True, slots=True)
class HeapAccount:
    """What the heap of a process is made of, as far as a profile tells.

    `held_bytes + apart_bytes` are `live_bytes`, `extra_bytes`, `free_bytes` and `difference_bytes` together.

    Attributes:
        file: The profile, as the user named it.
        format: Which profiler wrote it.
        command: What was profiled.
        snapshot: The number of the snapshot that was taken, among `snapshot_count`.
        snapshot_count: How many there are.
        is_peak: Whether it is the one that the profile calls its peak.
        shares: Who asked for the live bytes, as profiled, the largest first; they add up to them.
        live_bytes: What the program asked for and had not freed.
        extra_bytes: What the allocator used beside it; None where the profile does not tell.
        peak_bytes: The most that both were up to this moment.
        held_bytes: What the process holds in its heap and the arenas of its allocator, or, where only virtual sizes are
            known, what is mapped there; None where the profile counts address space, which is never joined.
        apart_bytes: How much nameless memory was taken for blocks that the allocator maps each on its own.
        free_bytes: What the process holds beyond both, as far as the profiled run had used it before.
        difference_bytes: What the process holds beyond all that; negative where the profile has more.
        evidence: How the split is known.

    Raises:
        ValueError: Where it does not add up: a defect of footprint, never of the input.
    """

    file: str
    format: str
    command: str | None
    snapshot: int
    snapshot_count: int
    is_peak: bool
    shares: tuple[Share, ...]
    live_bytes: int
    extra_bytes: int | None
    peak_bytes: int
    held_bytes: int | None
    apart_bytes: int
    free_bytes: int
    difference_bytes: int
    evidence: Evidence

    def __post_init__(self) -> None:
        if sum(share.size_bytes for share in self.shares) != self.live_bytes:
            raise ValueError("the shares of a heap do not add up to its live bytes")
        if self.held_bytes is not None:
            sum_bytes = self.profiled_bytes + self.free_bytes + self.difference_bytes
            if self.total_bytes != sum_bytes:
                raise ValueError(f"the parts of the heap are {sum_bytes} bytes, it has {self.total_bytes}")

    @property
    def profiled_bytes(self) -> int:
        """Give what was in use as profiled, the allocator's own included."""
        return self.live_bytes + (self.extra_bytes or 0)

    @property
    def total_bytes(self) -> int:
        """Give the bytes that are accounted for."""
        return (self.held_bytes or 0) + self.apart_bytes
