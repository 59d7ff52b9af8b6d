"""The heap of a process by the functions that asked for it."""

from math import isqrt
from typing import Annotated

from footprint.members import LATER, Later, NamedTuple, Signed, dataclass, json_members
from footprint.model.row import Evidence


class AllocatorAccount(NamedTuple):
    """The heap of a process, read from the structures of its allocator in its memory.

    Sizes are of addresses, touched or not, except where they say `private`. `held_bytes` are `live_bytes`,
    `overhead_bytes` and `free_bytes` together.

    Attributes:
        allocator: Whose structures were read: `glibc` or `musl`.
        arena_count: How many arenas it has; musl has one.
        live_block_count: The number of blocks that the program has.
        live_bytes: The room in these blocks: what malloc_usable_size(3) returns of them. With musl it is what the
            program asked for, with glibc this is rounded up to sizes that the allocator has.
        overhead_bytes: What the allocator has for itself: a header before each block, and its structures.
        free_bytes: What it has from the kernel and the program does not use.
        held_bytes: What it has from the kernel.
        cached_bytes: The part of `free_bytes` in blocks that threads or fastbins keep for requests of the same size.
            mallinfo2(3) counts those of threads as in use. musl keeps none.
        mapped_block_count: The number of large blocks that it maps alone; they are live.
        mapped_block_bytes: The size of their mappings, as part of `held_bytes`.
        free_private_bytes: The part of `free_bytes` that is in private memory: the rows `[free]` of the ledger.
        trimmable_bytes: The private memory in whole free pages that malloc_trim(3) returns to the kernel; musl has no
            such function.
        unread: What could not be read and why, in sentences: that memory is in no figure of the account.
        captured_at: When a capture read it, as `2026-11-27T19:40:00Z`: the ledger then has no rows of it. Null where
            the process was audited while it ran.
    """

    allocator: str
    arena_count: int
    live_block_count: int
    live_bytes: int
    overhead_bytes: int
    free_bytes: int
    held_bytes: int
    cached_bytes: int
    mapped_block_count: int
    mapped_block_bytes: int
    free_private_bytes: int
    trimmable_bytes: int
    unread: tuple[str, ...] = ()
    captured_at: Annotated[str | None, LATER] = None

    @property
    def adds_up(self) -> bool:
        """Return whether no part is more than what it is a part of."""
        of_free = (self.cached_bytes, self.free_private_bytes, self.trimmable_bytes)
        parts_bytes = self.live_bytes + self.overhead_bytes + self.free_bytes
        return parts_bytes == self.held_bytes >= self.mapped_block_bytes and max(of_free) <= self.free_bytes


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


@json_members("owner symbol name bytes=size_bytes block_count")
class HeapShare(NamedTuple):
    """The live bytes that one function asked for.

    Attributes:
        owner: The path of the object that the function is in, or in brackets why that is not known.
        symbol: The linker name of the function; null where it has none.
        name: The name to show; in brackets the address where it starts in its file, or why it has no name.
        size_bytes: The bytes.
        block_count: The blocks; null where the profile does not count them.
    """

    owner: str
    symbol: str | None
    name: str
    size_bytes: int
    block_count: int | None

    @property
    def function(self) -> str:
        """The name of the function, as `Share` has it."""
        return self.symbol or self.name


@dataclass(frozen=True)
class HeapAccount:
    """What the heap of a process is made of, by an allocator profile of another run.

    `held_bytes` and `apart_bytes` together are `live_bytes`, `extra_bytes`, `free_bytes` and `difference_bytes`
    together.

    Attributes:
        file: The profile, as the user named it.
        format: The profiler that wrote it.
        command: The program that was profiled; null where the profile does not say.
        snapshot: The number of the snapshot that was taken.
        snapshot_count: The number of snapshots in the profile.
        is_peak: Whether the snapshot is the peak of the profile: the one that it marks, unless another is larger.
        has_end: Whether the last snapshot of the profile is the end of the run: massif writes none there.
        live_bytes: The bytes that the program had asked for and not freed.
        extra_bytes: The bytes that the allocator used besides: by a model of its block sizes, or else as the profile
            has them; null where neither is known.
        is_extra_modelled: Whether that is the model.
        allocator: The allocator of the process; null where it is unknown.
        peak_bytes: The most that both were up to the snapshot.
        held_bytes: The heap and the arenas of the process: private memory, or the mapped size where only virtual sizes
            are known; null for a profile of address space, which is joined with nothing.
        apart_bytes: The nameless memory that was taken for blocks which the allocator maps one by one.
        free_bytes: The memory that the allocator has and the program does not use: read from the process, or else what
            the process holds beyond both, as far as the profiled run had used it before.
        is_free_measured: Whether the allocator of the process was read for `free_bytes`.
        difference_bytes: The memory that the process holds beyond all that; negative where the profile has more.
        evidence: How the split is known.
        shares: The functions that asked for the live bytes, as profiled, the largest first; they add up to
            `live_bytes`.
        sample_period_bytes: The mean distance of the samples, where the profile is sampled: then the live bytes are an
            estimate; 0 where it is unknown, null where it counts every block.

    Raises:
        ValueError: Where it does not add up: a defect of footprint, or a changed file.
    """

    file: str
    format: str
    command: str | None
    snapshot: int
    snapshot_count: int
    is_peak: bool
    has_end: Annotated[bool, Later(default=True)]
    live_bytes: int
    extra_bytes: int | None
    is_extra_modelled: Annotated[bool, Later(default=False)]
    allocator: Annotated[str | None, LATER]
    peak_bytes: int
    held_bytes: int | None
    apart_bytes: int
    free_bytes: int
    is_free_measured: Annotated[bool, Later(default=False)]
    difference_bytes: Signed
    evidence: Evidence
    shares: tuple[HeapShare, ...]
    sample_period_bytes: Annotated[int | None, LATER]

    def __post_init__(self) -> None:
        if sum(share.size_bytes for share in self.shares) != self.live_bytes:
            raise ValueError("the shares of a heap do not add up to its live bytes")
        if self.held_bytes is not None:
            sum_bytes = self.profiled_bytes + self.free_bytes + self.difference_bytes
            if self.total_bytes != sum_bytes:
                raise ValueError(f"the parts of the heap are {sum_bytes} bytes, it has {self.total_bytes}")

    @property
    def is_sampled(self) -> bool:
        """Whether the live bytes are an estimate from samples."""
        return self.sample_period_bytes not in {None, 1}

    @property
    def sampling_error_bytes(self) -> int | None:
        """The most that chance adds to the live bytes, or takes from them, in 19 of 20 runs; None where it is unknown.

        A block of x bytes is sampled with the probability 1 - exp(-x / period) and then counted as x divided by it, so
        its variance is x**2 / (exp(x / period) - 1), which is less than x * period. Two standard deviations of the sum.
        """
        period_bytes = self.sample_period_bytes
        return 2 * isqrt(period_bytes * self.live_bytes) if self.is_sampled and period_bytes else None

    @property
    def profiled_bytes(self) -> int:
        """The bytes in use as profiled, with those of the allocator itself."""
        return self.live_bytes + (self.extra_bytes or 0)

    @property
    def total_bytes(self) -> int:
        """The bytes of the process that the account explains."""
        return (self.held_bytes or 0) + self.apart_bytes
