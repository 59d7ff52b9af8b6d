"""The keys of smaps in every kernel, and which of them unnamed columns of figures can be.

Source: fs/proc/task_mmu.c of Linux 2.6.14 to 6.18; pmap.c of procps 3.3.4 to 4.0.6 for the keys that pmap -X omits.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

BARE_KEYS: Final = frozenset({"ProtectionKey", "THPeligible"})
"""Keys with a plain number. All others are in kB."""
NOT_IN_X: Final = frozenset(
    {"AnonHugePages", "KernelPageSize", "MMUPageSize", "Private_Clean", "Private_Dirty", "Shared_Clean", "Shared_Dirty"}
)
"""Keys that pmap -XX shows and pmap -X omits."""

# The kernel, the key before the new ones, and the new keys. A key that existed before has moved.
_HISTORY: Final = (
    ("2.6.14", "", "Size Rss Shared_Clean Shared_Dirty Private_Clean Private_Dirty"),
    ("2.6.22", "Private_Dirty", "Referenced"),
    ("2.6.25", "Rss", "Pss"),
    ("2.6.26", "Referenced", "Swap"),
    ("2.6.29", "Swap", "KernelPageSize MMUPageSize"),
    ("2.6.37", "Referenced", "Anonymous"),
    ("2.6.38", "MMUPageSize", "Locked"),
    ("2.6.39", "Anonymous", "AnonHugePages"),
    ("4.3", "Swap", "SwapPss"),
    ("4.4", "AnonHugePages", "Shared_Hugetlb Private_Hugetlb"),
    ("4.8", "AnonHugePages", "ShmemPmdMapped"),
    ("4.12", "Anonymous", "LazyFree"),
    ("4.19", "Size", "KernelPageSize MMUPageSize"),
    ("5.0", "Locked", "THPeligible"),
    ("5.4", "ShmemPmdMapped", "FilePmdMapped"),
    ("6.0", "Pss", "Pss_Dirty"),
    ("6.7", "Anonymous", "KSM"),
)
_LAST_WITHOUT_FLAGS: Final = (2, 6, 39)  # these keys stayed until 4.2; VmFlags came in 3.8
_SINCE_PROTECTION_KEY: Final = (4, 6)
# (smaller, larger): true of every mapping in every kernel. These laws distinguish key sets of equal length.
_NEVER_LARGER: Final = (
    ("Rss", "Size"),
    ("Pss", "Rss"),
    ("Pss_Dirty", "Pss"),
    ("Referenced", "Rss"),
    ("Anonymous", "Rss"),
    ("LazyFree", "Anonymous"),
    ("AnonHugePages", "Rss"),
    ("SwapPss", "Swap"),
    ("Locked", "Pss"),
    ("MMUPageSize", "KernelPageSize"),
)
_RSS_PARTS: Final = ("Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty")


@cache
def known_keys() -> frozenset[str]:
    """Return every key of every kernel."""
    return frozenset().union(*_keys_by_kernel().values())


def assume_keys(
    columns: Sequence[tuple[int, ...]], width: int, *, has_flags: bool
) -> tuple[tuple[str | None, ...], str]:
    """Find the keys of columns without names, by their number and by the laws that hold for every mapping.

    Args:
        columns: The figures of each column.
        width: The number of columns.
        has_flags: Whether VmFlags follow.

    Returns:
        The keys, None for each column that has several possible keys; and a text that says how they were found.
    """
    scores = {
        (kernel, keys): sum(_broken_laws(dict(zip(keys, columns, strict=True))))
        for kernel, keys in _possible_keys(has_flags=has_flags)
        if len(keys) == len(columns)
    }
    if not scores:
        keys = ("Size", *(None,) * (width - 1)) if width else ()
        return keys, f"no header, and no known kernel has {width} counters: only the first, Size, is read"
    best = [candidate for candidate, score in scores.items() if score == min(scores.values())]
    kernel, newest = max(best, key=lambda candidate: _version(candidate[0]))
    # A key is certain where every possible key set has it with the same figures.
    certain = tuple(
        key if all(key in other and columns[other.index(key)] == columns[place] for _, other in best) else None
        for place, key in enumerate(newest)
    )
    doubtful = [key for key, kept in zip(newest, certain, strict=True) if kept is None]
    left_out = f"; left out because they have several possible keys: {', '.join(doubtful)}" if doubtful else ""
    return certain, f"no header: the {width} counters are read as those of Linux {kernel} or later{left_out}"


@cache
def _keys_by_kernel() -> dict[str, tuple[str, ...]]:
    """Return the keys in order, by the first kernel that had them."""
    by_kernel = {}
    keys: list[str] = []
    for kernel, before, added in _HISTORY:
        new = added.split()
        keys = [key for key in keys if key not in new]
        place = keys.index(before) + 1 if before else 0
        keys[place:place] = new
        by_kernel[kernel] = tuple(keys)
        if _version(kernel) >= _SINCE_PROTECTION_KEY:
            by_kernel[f"{kernel} with protection keys"] = (*keys, "ProtectionKey")
    by_kernel["4.6 with protection keys"] = (*by_kernel["4.4"], "ProtectionKey")
    return by_kernel


def _version(kernel: str) -> tuple[int, ...]:
    return tuple(int(part) for part in kernel.partition(" ")[0].split("."))


def _possible_keys(*, has_flags: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the key sets that pmap -X and -XX can print, with their kernels."""
    for kernel, keys in _keys_by_kernel().items():
        if has_flags and _version(kernel) >= _LAST_WITHOUT_FLAGS:
            yield kernel, keys
        if not has_flags:
            yield kernel, tuple(key for key in keys if key not in NOT_IN_X)
            if _version(kernel) <= _LAST_WITHOUT_FLAGS:
                yield kernel, keys


def _broken_laws(columns: dict[str, tuple[int, ...]]) -> Iterator[bool]:
    """Yield for each law and row whether the row breaks the law."""
    for small, large in _NEVER_LARGER:
        if small in columns and large in columns:
            yield from (less > more for less, more in zip(columns[small], columns[large], strict=True))
    if all(key in columns for key in _RSS_PARTS):
        parts = zip(*(columns[key] for key in _RSS_PARTS), strict=True)
        yield from (sum(part) != rss for part, rss in zip(parts, columns["Rss"], strict=True))
    if "THPeligible" in columns:
        yield from (value > 1 for value in columns["THPeligible"])
    if "KernelPageSize" in columns:
        yield from (value == 0 for value in columns["KernelPageSize"])
