"""The object `heap_account` of an audit that an allocator profile was joined with."""

from footprint.elf import shown_name
from footprint.formats.escape import well_formed
from footprint.formats.json import Json
from footprint.model.heap_account import HeapAccount

__all__ = ("heap_account_json",)


def heap_account_json(account: HeapAccount) -> Json:
    """Give what the heap is made of, with what each function asked for as profiled."""
    return {
        "file": well_formed(account.file),
        "format": account.format,
        "command": None if account.command is None else well_formed(account.command),
        "snapshot": account.snapshot,
        "snapshot_count": account.snapshot_count,
        "is_peak": account.is_peak,
        "live_bytes": account.live_bytes,
        "extra_bytes": account.extra_bytes,
        "peak_bytes": account.peak_bytes,
        "held_bytes": account.held_bytes,
        "apart_bytes": account.apart_bytes,
        "free_bytes": account.free_bytes,
        "difference_bytes": account.difference_bytes,
        "evidence": account.evidence.value,
        "shares": [
            {
                "owner": well_formed(share.owner),
                "symbol": None if share.function.startswith("[") else well_formed(share.function),
                "name": well_formed(shown_name(share.function)),
                "bytes": share.size_bytes,
                "block_count": share.block_count,
            }
            for share in account.shares
        ],
    }
