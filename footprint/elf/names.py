"""Linker names for people to read: C++ and Rust demangled, suffixes of compilers kept apart.

Keys are linker names everywhere; what this module makes is only ever shown.
"""

import re
from typing import Final

__all__ = ("shown_name",)

_SUFFIX_PART: Final = re.compile(r"[a-z_]{1,32}|[0-9]{1,20}")
_CAPITALS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FEW_LIFETIMES: Final = frozenset({"", *"0123456789abcdef"})
_PACK: Final = re.compile(r"Dp|sp|f[lrLR]")
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
    references = parameters = 0
    # Every reference ends with "_"; whatever digits stand before it, leading zeros too, it is one.
    for run in core.split("_")[:-1]:
        if core.startswith("_R"):
            references += "B" in run
            # A binder of a function or trait object names as many lifetimes as its number says.
            if any(run[at + 2 :] not in _FEW_LIFETIMES for at in (run.find("FG"), run.find("DG")) if at >= 0):
                return False
        else:
            tail = run[len(run.rstrip(_CAPITALS)) :]
            references += "S" in tail or "T" in tail
            parameters += "T" in tail
    # A pack is expanded where a template parameter stands in it.
    packs = min(len(_PACK.findall(core)), parameters, 8)
    expanded_bytes: int = len(core) ** (packs + 1) << min(references, 64)
    return expanded_bytes <= _MOST_EXPANDED_BYTES


_ADDED: Final = re.compile(r"(?:\.(?:lto_priv|constprop|isra|part|llvm)\.[0-9A-F]+|\.localalias|\.cold|\.[0-9]+)+$")


def normalised(name: str) -> str:
    """Give a linker name without what compilers and linkers add to tell copies apart."""
    return _ADDED.sub("", name)
