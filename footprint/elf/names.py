"""Linker names for people to read: C++ and Rust demangled, suffixes of compilers kept apart.

Keys are linker names everywhere; what this module makes is only ever shown.
"""

import re
from typing import Final

__all__ = ("shown_name",)

_SUFFIX_PART: Final = re.compile(r"[a-z_]{1,32}|[0-9]{1,20}")
_BACK_REFERENCE: Final = re.compile(r"[ST][0-9A-Z]{0,4}_|B[0-9A-Za-z]{0,4}_")
_MANY_LIFETIMES: Final = re.compile(r"G[0-9A-Za-z]{2,}_")
_LONGEST_NAME: Final = 8192
# Each back reference can double a name, and a parameter pack multiply it by its length: 199 bytes have been made that
# expand to 38 MB. A name that could come to more than this is shown as it is.
_MOST_EXPANDED_BYTES: Final = 1 << 23
_LONGEST_SHOWN: Final = 8192


def shown_name(name: str) -> str:
    """Give what to show for a linker name: demangled where it is mangled, else as it is.

    Only `_Z` and `_R` names are touched: the C variable `i` would become `int`.
    """
    if not name.startswith(("_Z", "_R")) or len(name) > _LONGEST_NAME or not name.isascii():
        return name
    core = _without_suffix(name)
    if not _is_tame(core):
        return name
    import pycxxfilt  # noqa: PLC0415 # only a name that needs it pays for it

    try:
        demangled = pycxxfilt.demangle(core)
    except ValueError:
        return name
    return demangled + name[len(core) :] if demangled and len(demangled) <= _LONGEST_SHOWN else name


def _without_suffix(name: str) -> str:
    """Cut off what compilers and linkers put behind a name: `.constprop.0`, `.llvm.123`, `@@VERSION`."""
    core = name.partition("@")[0]
    while True:
        head, dot, tail = core.rpartition(".")
        # Paths of old Rust names hold `..`, which is no suffix.
        if not dot or not head or head.endswith(".") or not _SUFFIX_PART.fullmatch(tail):
            return core
        core = head


def _is_tame(core: str) -> bool:
    """Tell whether a name can be demangled within bounds, by what its references could multiply it to at most."""
    if core.startswith("_R") and _MANY_LIFETIMES.search(core):
        return False
    packs = min(core.count("Dp"), 8)
    references = min(len(_BACK_REFERENCE.findall(core)), 64)
    expanded_bytes: int = len(core) ** (packs + 1) << references
    return expanded_bytes <= _MOST_EXPANDED_BYTES
