"""The heap of a process by the functions that asked for it."""

from dataclasses import dataclass
from typing import NamedTuple

from footprint.model.evidence import Evidence

__all__ = ("HeapAccount", "Share")


class Share(NamedTuple):
    """The bytes that one function asked for.

    Attributes:
        owner: The path of the object of the function, or in brackets why it is not known.
        function: The name of the function, or in brackets why there is none.
        size_bytes: The bytes.
        block_count: The number of blocks, where the profile counts them.
    """

    owner: str
    function: str
    size_bytes: int
    block_count: int | None = None


@dataclass(frozen=True, slots=True)
class HeapAccount:
    """The heap of a process, as far as a profile explains it.

    `held_bytes + apart_bytes` are `live_bytes`, `extra_bytes`, `free_bytes` and `difference_bytes` together.

    Attributes:
        file: The profile, as the user named it.
        format: Which profiler wrote it.
        command: What was profiled.
        snapshot: The number of the snapshot that was used.
        snapshot_count: The number of snapshots in the profile.
        is_peak: Whether the profile calls this snapshot its peak.
        has_end: Whether the last snapshot of the profile is the end of the run: massif writes none there.
        shares: The live bytes by function, as profiled, the largest first; they add up to `live_bytes`.
        live_bytes: The bytes that the program had asked for and not freed.
        extra_bytes: The bytes that the allocator used for itself: by a model of its block sizes, or else as the profile
            has them; None where neither is known.
        is_extra_modelled: Whether that is the model.
        allocator: The allocator of the process, where it is known.
        peak_bytes: The largest sum of both up to this moment.
        held_bytes: The private bytes in the heap and in the arenas of the allocator, or the mapped bytes where only
            virtual sizes are known; None where the profile counts address space, which is never joined.
        apart_bytes: The bytes of nameless memory that are taken for blocks that the allocator maps one by one.
        free_bytes: What the allocator has and the program does not use: read from the process, or else a difference of
            two runs, not a measured range: what the process holds beyond the profiled bytes, up to what the profiled
            run had used at its peak, or with threads allocated in all.
        is_free_measured: Whether the allocator of the process was read for `free_bytes`.
        difference_bytes: A difference of two runs, not a measured range: what the process holds beyond all others
            together; negative where the profile has more than the process.
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
    has_end: bool
    shares: tuple[Share, ...]
    live_bytes: int
    extra_bytes: int | None
    is_extra_modelled: bool
    allocator: str | None
    peak_bytes: int
    held_bytes: int | None
    apart_bytes: int
    free_bytes: int
    is_free_measured: bool
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
        """The bytes in use as profiled, with those of the allocator itself."""
        return self.live_bytes + (self.extra_bytes or 0)

    @property
    def total_bytes(self) -> int:
        """The bytes of the process that the account explains."""
        return (self.held_bytes or 0) + self.apart_bytes
