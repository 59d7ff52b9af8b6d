"""Linker names for people to read: C++ and Rust demangled, suffixes of compilers kept apart.

Keys are linker names everywhere; what this module makes is only ever shown.
"""

import re
from typing import Final

__all__ = ("shown_name",)

# .constprop.0, .lto_priv.3, .llvm.123, and the numbers of function-local statics; never the `..` of Rust paths.
_SUFFIX: Final = re.compile(r"(?:(?<!\.)\.(?:[a-z_]{1,32}|[0-9]{1,20}))+$|@.*$", re.DOTALL)
_BACK_REFERENCE: Final = re.compile(r"[ST][0-9A-Z]*_|B[0-9A-Za-z]*_")
# Each back reference can double a name: 199 bytes have been made that expand to 38 MB. Beyond this many, which a few
# of the longest real names have, a name is shown as it is.
_MOST_BACK_REFERENCES: Final = 12
_LONGEST_SHOWN: Final = 8192


def shown_name(name: str) -> str:
    """Give what to show for a linker name: demangled where it is mangled, else as it is.

    Only `_Z` and `_R` names are touched: the C variable `i` would become `int`.
    """
    if not name.startswith(("_Z", "_R")) or len(name) > _LONGEST_SHOWN or not name.isascii():
        return name
    suffix = match.group() if (match := _SUFFIX.search(name)) else ""
    core = name.removesuffix(suffix)
    if len(_BACK_REFERENCE.findall(core)) > _MOST_BACK_REFERENCES:
        return name
    import pycxxfilt  # noqa: PLC0415 # only a name that needs it pays for it

    try:
        demangled = pycxxfilt.demangle(core)
    except ValueError:
        return name
    return demangled + suffix if demangled and len(demangled) <= _LONGEST_SHOWN else name
