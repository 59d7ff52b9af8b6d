"""The lines of a pmap output: what each line is, and which lines belong to one process.

Rows are recognised by their form alone, because headers and totals are translated, and users cut them off.

Source: pmap.c of procps 2004 to 4.0.6, of toybox 0.4 to 0.8 and of busybox 1.17 to 1.37.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from footprint.errors import InputError
from footprint.process.pmap_rows import COMPACT_ROW, compact_kind

_START_BYTES: Final = 1 << 16
_START_LINES: Final = 40
_MOST_UNKNOWN_LINES: Final = 1 << 16
_MOST_OTHER_LINES: Final = 1 << 18  # heads, headers, rules and totals of more processes than any text has

_BLANK_LINES: Final = re.compile(rb"\s*\n")
# Swedish, Ukrainian and Georgian translate the K, some with a space before it.
_UNIT: Final = rb"[ ]?(?:[A-Za-z]|[\x80-\xff]{2,4})"
_WORDS: Final = rb"[^\d$#|]"  # no digit, and no character that is typical of a command line
# The groups here are bounded, not possessive: Python 3.11.2, that of Debian 12, matches possessive groups wrongly.
_SHAPES: Final = (
    ("row", "", COMPACT_ROW),
    ("row", "columns", re.compile(rb"[ \t]*+[0-9a-f]{8,16}[ \t]++[r-][w-][x-][sp](?:[ \t].*)?", re.DOTALL)),
    ("head", "", re.compile(rb"[ \t]*+(?P<pid>\d{1,10}):(?:(?P<gap> {1,3})(?P<command>.*))?", re.DOTALL)),
    ("rule", "", re.compile(rb"[ \t]*+(?:-{4,}(?:[ \t]++-{3,}){1,255}|=++(?:[ \t]++=++){0,255})\s*+")),
    ("totals", "columns", re.compile(rb"[ \t]*+(\d{1,20}(?:[ \t]++\d{1,20}){0,255})[ \t]++KB\s*+")),
    ("totals", "x", re.compile(_WORDS + rb"*[^\d\s$#|][ \t]++(\d{1,20}(?:[ \t]++(?:\d{1,20}|-)){2,3})\s*+")),
    ("totals", "default", re.compile(_WORDS + rb"*[^\d\s$#|][ \t]++(\d{1,20})" + _UNIT + rb"\s*+")),
    (
        "totals",
        "d",
        re.compile((_WORDS + rb"++(\d{1,20})" + _UNIT + rb"\s++") * 2 + _WORDS + rb"++(\d++)" + _UNIT + rb"\s*+"),
    ),
    ("header", "", re.compile(rb"\s*+(?:[^\d\s$#:/=|]++\s++){3}[^\d$#:/=|]*+")),
)
_HEADER_WORDS: Final = (b"Kbytes", b" Rss ", b" Pss ", b" Size ")


class PmapLine(NamedTuple):
    """One line that is not blank.

    Attributes:
        what: `row`, `head`, `header`, `rule`, `totals` or `unknown`.
        kind: The output that prints such a line: `default`, `d`, `x`, `other x` (toybox, busybox) or `columns`.
        text: The line.
        match: The match of its form.
        is_open: Whether it is the last line of a text without a line end at the end: it may be cut.
        is_after_blank: Whether blank lines precede it. They are not kept: a text can have millions.
    """

    what: str
    kind: str
    text: bytes
    match: re.Match[bytes] | None = None
    is_open: bool = False
    is_after_blank: bool = False


@dataclass(slots=True)
class PmapBlock:
    """The lines of one process."""

    head: PmapLine | None = None
    header: bytes | None = None
    rows: list[PmapLine] = field(default_factory=list)
    totals: PmapLine | None = None
    has_rule: bool = False
    blanks_between_rows: int = 0
    unknown_lines: list[bytes] = field(default_factory=list)
    cut_line: bytes | None = None

    @property
    def kind(self) -> str:
        """Return the output that most rows are of; without rows, that of the totals."""
        if self.rows:
            return Counter(line.kind for line in self.rows).most_common(1)[0][0]
        if self.totals is None or self.totals.match is None:
            return "default"
        cells = self.totals.match[1].split()
        return "other x" if self.totals.kind == "x" and len(cells) == 4 and b"-" not in cells else self.totals.kind

    @property
    def is_whole_without_rows(self) -> bool:
        """Return whether this block without rows is the whole output for a process: only a head, or with totals."""
        if self.totals is not None:
            return bool(self.head or self.header or self.has_rule or self.totals.kind == "d")
        return self.head is not None and self.header is None and self.cut_line is None

    @property
    def broken_path_count(self) -> int:
        """Return the blank lines among the rows: -xp breaks a line where a path is too long.

        A mail program may double all line ends: these are not counted.
        """
        return self.blanks_between_rows if 2 * self.blanks_between_rows < len(self.rows) else 0


def looks_like_pmap(text: bytes) -> bool:
    """Return whether a text is the output of a pmap, by its first lines.

    Source: procps, toybox and busybox pmap.c; see `parse_pmap`.
    """
    lines = list(islice(_lines(text[:_START_BYTES]), _START_LINES))
    if any(line.what == "row" or (line.what == "totals" and line.kind in {"d", "columns"}) for line in lines):
        return True
    # grep -n also prints `12: text`: a head without rows needs the spacing of procps, or totals behind it.
    heads = [line.match for line in lines if line.match and line.what == "head"]
    return any(head["gap"] == b"   " and not head.string.startswith(b" ") for head in heads) or (
        bool(heads) and any(line.what in {"rule", "totals"} for line in lines)
    )


def read_blocks(text: bytes, source: str) -> list[PmapBlock]:
    """Group the lines by process. The lines of a single process may be in any order (`sort -k2n`).

    Raises:
        InputError: Where more lines are not rows than any pmap prints.
    """
    lines = _known_lines(text, source)
    counts = Counter(line.what for line in lines)
    is_one = counts["head"] <= 1 and counts["totals"] <= 1
    block = PmapBlock()
    blocks = [block]
    for place, line in enumerate(lines):
        if not is_one and _begins_process(line, block):
            block = PmapBlock()
            blocks.append(block)
        if line.what == "row":
            block.blanks_between_rows += bool(block.rows) and line.is_after_blank
            block.rows.append(line)
        elif line.what == "head" and block.head is None:
            block.head = line
        elif line.what == "totals" and block.totals is None:
            block.totals = line
        elif line.what == "header" and block.header is None and _is_header(line, block, lines, place):
            block.header = line.text
        elif line.what == "rule":
            block.has_rule = True
        else:
            block.unknown_lines.append(line.text)
        if line.is_open and line.what in {"head", "header", "unknown"}:
            block.cut_line = line.text
    return [block for block in blocks if block.head or block.rows or block.totals] or blocks


def _known_lines(text: bytes, source: str) -> list[PmapLine]:
    lines: list[PmapLine] = []
    other_count = unknown_count = 0
    for line in _lines(text):
        lines.append(line)
        other_count += line.what != "row"
        unknown_count += line.what == "unknown"
        if unknown_count > _MOST_UNKNOWN_LINES or other_count > _MOST_OTHER_LINES:
            raise InputError(source, "more lines are not rows than any pmap prints")
    return lines


def _lines(text: bytes) -> Iterator[PmapLine]:
    """Classify every line that is not blank."""
    # Mail adds a carriage return to every line. Otherwise they are parts of names, and rare.
    if 2 * text.count(b"\r\n") > text.count(b"\n"):
        text = text.replace(b"\r\n", b"\n")
    start = 0
    while start < len(text):
        blank = _BLANK_LINES.match(text, start)
        start = blank.end() if blank else start
        end = text.find(b"\n", start)
        line = text[start:] if end < 0 else text[start:end]
        # Spaces behind the last line end are not a line.
        if line.strip():
            yield _line(line, is_open=end < 0, is_after_blank=blank is not None)
        start += len(line) + 1


def _line(text: bytes, *, is_open: bool, is_after_blank: bool) -> PmapLine:
    for what, kind, shape in _SHAPES:
        if match := shape.fullmatch(text):
            if shape is not COMPACT_ROW:
                return PmapLine(what, kind, text, match, is_open, is_after_blank)
            kind_of_row = compact_kind(match)
            return PmapLine("row" if kind_of_row else "unknown", kind_of_row, text, match, is_open, is_after_blank)
    return PmapLine("unknown", "", text, None, is_open, is_after_blank)


def _begins_process(line: PmapLine, block: PmapBlock) -> bool:
    if line.what == "head":
        return bool(block.head or block.rows or block.totals)
    return block.totals is not None and line.what in {"row", "totals", "header"}


def _is_header(line: PmapLine, block: PmapBlock, lines: Sequence[PmapLine], place: int) -> bool:
    """Return whether a line of words is a header: it has the English words, or is right before the first row."""
    if any(word in line.text for word in _HEADER_WORDS):
        return True
    after = lines[place + 1].what if place + 1 < len(lines) else "row"
    return not block.rows and after in {"row", "rule", "totals"}
