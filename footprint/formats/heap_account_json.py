"""The member `heap_account` of an audit that an allocator profile was joined with."""

from typing import Annotated, NamedTuple

from footprint.elf.names import shown_name
from footprint.json.codec import like
from footprint.members import LATER, Later, Signed
from footprint.model.heap_account import HeapAccount, Share
from footprint.model.row import Evidence


class HeapShare(NamedTuple):
    """The live bytes that one function asked for.

    Attributes:
        owner: The path of the object that the function is in, or in brackets why that is not known.
        symbol: The linker name of the function; null where it has none.
        name: The name to show; in brackets the address where it starts in its file, or why it has no name.
        bytes: The bytes.
        block_count: The blocks; null where the profile does not count them.
    """

    owner: str
    symbol: str | None
    name: str
    bytes: int
    block_count: int | None


class HeapAccountMembers(NamedTuple):
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


def heap_account_members(account: HeapAccount) -> HeapAccountMembers:
    """Return the JSON of what the heap is made of."""
    return like(HeapAccountMembers, account, shares=tuple(map(heap_share, account.shares)))


def heap_account_of(members: HeapAccountMembers) -> HeapAccount:
    """Return what the heap is made of, as a saved audit has it.

    Raises:
        ValueError: It does not add up.
    """
    shares = tuple([Share(row.owner, row.symbol or row.name, row.bytes, row.block_count) for row in members.shares])
    return like(HeapAccount, members, shares=shares)


def heap_share(share: Share) -> HeapShare:
    """Return the row of what one function asked for."""
    function = share.function
    symbol = None if function.startswith("[") else function
    return HeapShare(share.owner, symbol, shown_name(function), share.size_bytes, share.block_count)
