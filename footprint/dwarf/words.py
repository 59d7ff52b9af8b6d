"""Any of many numbers searched for at once, with one regular expression."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from footprint.dwarf.sections import DebugSection

__all__ = ("words_behind",)

# A byte that takes this many values in the wanted numbers is not worth a class of its own.
_MANY_VALUES: Final = 64


def words_behind(section: DebugSection, before: bytes, words: set[bytes], behind: bytes = b"") -> Iterator[int]:
    """Find where one of some words of equal length stands behind some bytes, and before any of others."""
    if not words:
        return
    first, *rest = [_byte_class(column) for column in zip(*words, strict=True)]
    ending = b"[%s]" % re.escape(behind) if behind else b""
    # What is looked ahead at may be a match of its own.
    start, ahead = (re.escape(before), first + b"".join(rest)) if before else (first, b"".join(rest))
    pattern = re.compile(b"%s(?=%s%s)" % (start, ahead, ending), re.DOTALL)
    size_bytes, data, back = len(next(iter(words))), section.data, 0 if before else 1
    for match in pattern.finditer(data):
        at = match.end() - back
        if bytes(data[at : at + size_bytes]) in words:
            yield at


def _byte_class(column: Iterable[int]) -> bytes:
    values = set(column)
    if len(values) >= _MANY_VALUES:
        return b"."
    return b"[%s]" % b"".join(re.escape(bytes([value])) for value in sorted(values))
