"""The heap of a process by who asked for it, as a report shows it."""

from footprint.attribution.heap_join import BEYOND, FREE, NOT_TOLD, OVERHEAD
from footprint.formats.document import Block, Facts, Fold, Heading, Names, Paragraph, Table, cut_at, more
from footprint.model.heap_account import AllocatorAccount, HeapAccount
from footprint.model.row import NAMELESS, Evidence
from footprint.text.units import format_bytes

_MISSING = "[asked for, and not held]"
_REPLACED = (
    "In the ledger its functions have the heap's bytes: what is left of a row [heap] there is address space that is "
    "not private."
)
_LONGEST = 120
_Row = tuple[str, ...]


def heap_account_blocks(
    account: HeapAccount,
    allocator: AllocatorAccount | None,
    names: Names,
    top: int,
    *,
    nameless_bytes: int,
    is_measured: bool,
) -> list[Block]:
    """Show what the heap is made of, to the byte.

    Args:
        account: The heap.
        allocator: What its allocator has, where that was read.
        names: How owners and functions are shown.
        top: How many functions; 0 for all.
        nameless_bytes: How much nameless memory is left in the ledger.
        is_measured: Whether the kernel counts private bytes, or only address space is known.
    """
    blocks: list[Block] = [Heading(f"The heap, by who asked for it: {_moment(account)} of {account.file}")]
    if account.held_bytes is None:
        blocks.append(Paragraph("virtual: the profile counts address space, so it is shown and added to nothing."))
    else:
        blocks.append(_heap_facts(account, is_measured=is_measured))
    blocks.append(_table(account, names, top))
    if account.held_bytes is not None:
        texts = _explained(account, allocator, nameless_bytes, is_measured=is_measured)
        blocks += [Paragraph(text) for text in texts]
    return blocks


def _moment(account: HeapAccount) -> str:
    if account.snapshot_count == 1:
        return "as saved in the only snapshot"
    which = f"snapshot {account.snapshot}"
    return f"the peak ({which})" if account.is_peak else which


def _heap_facts(account: HeapAccount, *, is_measured: bool) -> Facts:
    how = "measured" if is_measured else "virtual: what is mapped"
    rows = [("heap of the process", format_bytes(account.total_bytes), how)]
    if account.apart_bytes:
        apart = format_bytes(account.apart_bytes)
        which = "blocks that are mapped each on its own" if account.held_bytes else "as much as is profiled"
        rows = [
            ("heap of the process", format_bytes(account.total_bytes), "estimated"),
            ("  heap and arenas", format_bytes(account.held_bytes or 0), how),
            ("  nameless memory", apart, f"estimated: {which}"),
        ]
    rows.append(("live, as profiled", format_bytes(account.live_bytes), "never scaled"))
    return Facts(tuple(rows))


def _table(account: HeapAccount, names: Names, top: int) -> Table:
    total_bytes = account.live_bytes if account.held_bytes is None else account.total_bytes

    # Where more is profiled than there is, shares are of what is profiled.
    whole_bytes = max(total_bytes, account.profiled_bytes)

    def row(size_bytes: int, owner: str, function: str = "") -> _Row:
        share = f"{size_bytes / whole_bytes:.1%}" if whole_bytes else "-"
        return f"{size_bytes:,}", share, owner, function

    shown, rest = cut_at(account.shares, top)
    rows = tuple(
        row(
            share.size_bytes,
            _cut(names.owner(share.owner)),
            "" if share.function == share.owner else _cut(names.symbol(share.function)),
        )
        for share in shown
    )
    footer = [row(sum(share.size_bytes for share in rest), more(len(rest)))] if rest else []
    if account.held_bytes is not None:
        footer += [row(size, label) for size, label in _beside(account) if size]
    footer.append(row(total_bytes, "[total]"))
    return Table(("bytes", "share", "object", "function"), rows, frozenset({2}), tuple(footer), Fold.WHOLE)


def _beside(account: HeapAccount) -> list[tuple[int, str]]:
    difference = account.difference_bytes
    return [
        (account.extra_bytes or 0, OVERHEAD),
        (account.free_bytes, FREE),
        (difference, BEYOND if difference > 0 else _MISSING),
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}...{text[-_LONGEST // 2 :]}"


def _parts_explained(account: HeapAccount) -> list[str]:
    """Describe what the parts of the heap are taken from."""
    texts = []
    if account.apart_bytes and not account.held_bytes:
        texts.append(
            f"Its allocator gives its memory no name and uses no [heap], as jemalloc does: of {NAMELESS} as much as is "
            "profiled is taken for it."
        )
    elif account.apart_bytes:
        texts.append(
            f"{format_bytes(account.apart_bytes)} of {NAMELESS} are taken for large blocks: allocators map these (with "
            "glibc from 128 KiB on) each on its own, in memory that has no name."
        )
    if not account.has_end and not account.is_peak:
        unknown = "the live bytes" if account.is_free_measured else "the live and the free bytes"
        why = (
            "The recording was cut"
            if account.format == "heaptrack"
            else "Massif writes no snapshot at the end of a run"
        )
        texts.append(f"{why}: what was freed after this one is still live in it, so {unknown} at the end are unknown.")
    if account.extra_bytes:
        whose = account.allocator if account.is_extra_modelled else "Valgrind's own allocator"
        texts.append(f"{OVERHEAD} is a model by the block sizes of {whose}, not a measurement.")
    if account.is_free_measured:
        texts.append(f"{FREE} is what the allocator itself has as free, read from the process.")
    elif account.free_bytes:
        used_bytes = account.live_bytes + (account.extra_bytes or 0)
        is_by_peak = account.free_bytes <= account.peak_bytes - used_bytes
        before = f"{format_bytes(account.peak_bytes)} were in use" if is_by_peak else "other blocks were freed"
        texts.append(f"{FREE}: before this moment {before}, and what is freed stays with the allocator.")
    return texts


def _live(account: HeapAccount, allocator: AllocatorAccount | None) -> str:
    """Describe what the profile and the allocator itself have as live, where that was read."""
    if allocator is None or allocator.allocator != account.allocator:
        return ""
    in_use_bytes = allocator.live_bytes + allocator.overhead_bytes
    absent_bytes = in_use_bytes - account.total_bytes + account.free_bytes if account.is_free_measured else 0
    absent = f", {format_bytes(absent_bytes)} of it in no private page" if absent_bytes > 0 else ""
    profiled, read = format_bytes(account.live_bytes), format_bytes(allocator.live_bytes)
    return f" (profile {profiled} live, allocator {read} live{absent})"


def _missing_explained(account: HeapAccount, allocator: AllocatorAccount | None, *, is_measured: bool) -> str:
    """Describe why the profile has more than the process."""
    amount = f"{'held' if is_measured else 'mapped'}{_live(account, allocator)}"
    causes = "its samples hit more than their part, " if account.is_sampled else ""
    causes += "" if account.has_end else "some of it was freed after this snapshot, "
    causes += "the model of its blocks adds more than they have, " if account.is_extra_modelled else ""
    return (
        f"The profile has {format_bytes(-account.difference_bytes)} more than is {amount}: memory that was asked "
        f"for and never touched is not there, what fork relatives share is not its own, {causes}or the runs differ. "
        "Which functions lack it is unknown, so in the ledger each has what is left of it if all of that were missing "
        f"there, and {NOT_TOLD} is the rest."
    )


def _explained(
    account: HeapAccount, allocator: AllocatorAccount | None, nameless_bytes: int, *, is_measured: bool
) -> list[str]:
    """Describe what the remainders are, and what would make them smaller."""
    texts = [_REPLACED] if account.held_bytes and is_measured else []
    texts += _parts_explained(account)
    difference = account.difference_bytes
    if difference > 0:
        unknown = "" if is_measured else "memory that was never touched, since only virtual sizes are known; "
        unknown += "the chance of its samples; " if account.is_sampled else ""
        unknown += "" if account.extra_bytes is not None else "what the allocator itself uses, which it does not tell; "
        unknown += "" if account.is_free_measured else "whole pages of which parts are used, holes between blocks, and "
        texts.append(
            f"{BEYOND}: {format_bytes(difference)} that the profile does not explain{_live(account, allocator)}: "
            f"{unknown}what this run did otherwise than the profiled one."
        )
    if difference < 0:
        texts.append(_missing_explained(account, allocator, is_measured=is_measured))
    if account.is_sampled:
        error_bytes = account.sampling_error_bytes
        most = (
            ""
            if error_bytes is None
            else f": by chance they are up to {format_bytes(error_bytes)} off, in 19 of 20 runs"
        )
        texts.append(f"The profile is sampled, so its live bytes are an estimate{most}.")
    if account.peak_bytes > 2 * account.profiled_bytes:
        texts.append(
            f"At its peak the profiled run had {format_bytes(account.peak_bytes)}: `audit --heap FILE --heap-at peak` "
            "joins that moment."
        )
    if nameless_bytes and account.allocator is None:
        texts.append(f"{NAMELESS}, {format_bytes(nameless_bytes)}: its allocator is unknown, so that may be heap, too.")
    elif nameless_bytes and account.allocator and account.allocator.startswith("["):
        texts.append(
            f"{NAMELESS}, {format_bytes(nameless_bytes)}, is no part of it: what the runtime has for itself, and what "
            "libraries map, is in no profile of this heap."
        )
    elif nameless_bytes:
        texts.append(
            f"{NAMELESS}, {format_bytes(nameless_bytes)}, is no part of it: what the program maps past its allocator "
            "is in no such profile (massif --pages-as-heap=yes tells who maps)."
        )
    if account.shares and account.evidence is not Evidence.VIRTUAL:
        texts.append("Who asked is known from another run, so each part is estimated; their sum is the kernel's.")
    return texts
