"""The tables of abbreviations, split at the speed of a regular expression: most are never looked into.

Source: DWARF 5, section 7.5.3 (Abbreviations Tables).
"""

import re
from typing import Final, NamedTuple

from footprint.dwarf.sections import DebugSection

__all__ = ("Abbreviation", "AbbreviationTables")

_LEB: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
# Code, tag and children of an abbreviation, then its attributes as one. Compilers give it some twenty.
_MOST_ATTRIBUTES: Final = 512
# The attributes are no possessive group: Python before 3.11.5 matches those wrongly (gh-106052).
_ABBREVIATION: Final = re.compile(
    rb"(?!\x00)(%(leb)b)(%(leb)b)(.)((?:(?!\x00\x00)%(leb)b(?:\x21%(leb)b|(?!\x21)%(leb)b)){0,%(most)d})\x00\x00"
    % {b"leb": _LEB, b"most": _MOST_ATTRIBUTES},
    re.DOTALL,
)
_LONGEST_BYTES: Final = _MOST_ATTRIBUTES * 30
# The largest programs, with all units in one (LTO), have some thousands.
_MOST_IN_TABLE: Final = 1 << 16
# Tables may share their bytes, but not without measure. Of those that were read the newest are kept; one that is asked
# for again is read again, as long as that is within the measure, too.
_MOST_READS: Final = 6
_READS_FOR_FORGOTTEN: Final = 3
_MOST_KEPT: Final = 1 << 15
_SMALL_BYTES: Final = 1 << 16


class Abbreviation(NamedTuple):
    """What stands behind a code: a tag, whether children follow, and the attributes as they stand in the table."""

    code: bytes
    tag: int
    has_children: bool
    raw: bytes


class AbbreviationTables:
    """The tables of .debug_abbrev, each read when it is asked for: every unit has one of its own, or all share one."""

    def __init__(self, section: DebugSection) -> None:
        self._section = section
        self._known: dict[int, dict[int, Abbreviation]] = {}
        self._kept_count = 0
        self._damaged: dict[int, str] = {}
        self._left_bytes = _SMALL_BYTES + section.size_bytes * _MOST_READS

    def table(self, offset: int) -> dict[int, Abbreviation]:
        """Give the abbreviations of the table at an offset by their codes.

        Raises:
            InputError: Where there are none, or tables overlap beyond reason.
        """
        known = self._known.get(offset)
        if known is not None:
            return known
        if offset in self._damaged:
            raise self._section.damage(self._damaged[offset], offset)
        found = self._read(offset)
        cause = ""
        if self._left_bytes < 0:
            cause = "tables overlap beyond reason"
        elif len(found) > _MOST_IN_TABLE:
            cause = f"more than {_MOST_IN_TABLE} abbreviations in one table"
        elif not found:
            cause = "no abbreviations"
        if cause:
            self._damaged[offset] = cause
            raise self._section.damage(cause, offset)
        self._forget(len(found))
        self._known[offset] = found
        return found

    def _read(self, offset: int) -> dict[int, Abbreviation]:
        section = self._section
        found: dict[int, Abbreviation] = {}
        # A regular expression takes no offset that is larger than an index.
        at = min(offset, section.size_bytes)
        while (
            self._left_bytes >= 0 and len(found) <= _MOST_IN_TABLE and (match := _ABBREVIATION.match(section.data, at))
        ):
            code, tag, children, raw = match.groups()
            number = code[0] if len(code) == 1 else section.uleb(at)[0]
            tag_number = tag[0] if len(tag) == 1 else section.uleb(at + len(code))[0]
            found.setdefault(number, Abbreviation(code, tag_number, children != b"\0", raw))
            self._left_bytes -= match.end() - at
            at = match.end()
        if at < section.size_bytes and section.data[at] != 0:
            # What has no end was looked through in vain.
            self._left_bytes -= _LONGEST_BYTES
        return found

    def _forget(self, new_count: int) -> None:
        """Forget the oldest tables where there are too many with a new one, and they may be read again."""
        self._kept_count += new_count
        while self._known and self._kept_count > _MOST_KEPT:
            if self._left_bytes < self._section.size_bytes * _READS_FOR_FORGOTTEN:
                return
            self._kept_count -= len(self._known.pop(next(iter(self._known))))
