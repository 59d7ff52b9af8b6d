"""The tables of abbreviations, split at the speed of a regular expression: most are never looked into.

Source: DWARF 5, section 7.5.3 (Abbreviations Tables).
"""

import re
from typing import Final, NamedTuple

from footprint.elf.dwarf.sections import DebugSection

__all__ = ("Abbreviation", "AbbreviationTables")

_LEB: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
# Code, tag and children of an abbreviation, then its attributes as one.
_ABBREVIATION: Final = re.compile(
    rb"(?!\x00)(%(leb)b)(%(leb)b)(.)((?:(?!\x00\x00)%(leb)b(?:\x21%(leb)b|(?!\x21)%(leb)b))*+)\x00\x00"
    % {b"leb": _LEB},
    re.DOTALL,
)
# Tables may share their bytes, but not without measure.
_MOST_READS: Final = 4
_SMALL_BYTES: Final = 1 << 16


class Abbreviation(NamedTuple):
    """What stands behind a code: a tag, whether children follow, and the attributes as they stand in the table."""

    code: bytes
    tag: int
    has_children: bool
    raw: bytes


class AbbreviationTables:
    """The tables of .debug_abbrev; each is read once."""

    def __init__(self, section: DebugSection) -> None:
        self._section = section
        self._known: dict[int, dict[int, Abbreviation]] = {}
        self._left_bytes = _SMALL_BYTES + section.size_bytes * _MOST_READS

    def table(self, offset: int) -> dict[int, Abbreviation]:
        """Give the abbreviations of the table at an offset by their codes.

        Raises:
            InputError: Where there are none, or tables overlap beyond reason.
        """
        known = self._known.get(offset)
        if known is not None:
            return known
        section = self._section
        found: dict[int, Abbreviation] = {}
        at = offset
        while self._left_bytes >= 0 and (match := _ABBREVIATION.match(section.data, at)):
            code, tag, children, raw = match.groups()
            number = code[0] if len(code) == 1 else section.uleb(at)[0]
            tag_number = tag[0] if len(tag) == 1 else section.uleb(at + len(code))[0]
            found.setdefault(number, Abbreviation(code, tag_number, children != b"\0", raw))
            self._left_bytes -= match.end() - at
            at = match.end()
        if at < section.size_bytes and section.data[at] != 0:
            # What has no end was looked through up to the end of the section.
            self._left_bytes -= section.size_bytes - at
        if self._left_bytes < 0:
            raise section.damage("tables overlap beyond reason", offset)
        if not found:
            raise section.damage("no abbreviations", offset)
        self._known[offset] = found
        return found
