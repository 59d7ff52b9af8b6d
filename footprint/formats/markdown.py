"""A report as Markdown, for comments on a change: the verdict, and the tables folded below it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from footprint.formats.document import About, Block, Document, Facts, Graph, Heading, Paragraph, Table, Verdict
from footprint.text.escape import printable, shortened
from footprint.text.units import counted

# GitHub allows 65,536 characters in a comment and 1 MiB in the summary of a step. Both limits are checked in bytes:
# a text has at least as many bytes as characters.
COMMENT_BYTES: Final = 65_536
SUMMARY_BYTES: Final = 1 << 20
_LONGEST_CELL: Final = 300
_LONGEST_TEXT: Final = 1000
_LONGEST_VERDICT: Final = 500
_LONGEST_TITLE: Final = 200
_LONGEST_NAME: Final = 100
_CLOSING: Final = ("", "</details>", "")
_CUT_HERE: Final = "_{} cut here: the text has reached its limit._"
_REST: Final = "_{} left out: the text has reached its limit._"
# The maximum length of one of these lines.
_CUT_LINE_BYTES: Final = 80
_APART: Final = "<!-- -->"
# Characters that begin markup in Markdown, HTML or mathematics.
_ENTITIES: Final = str.maketrans({mark: f"&#{ord(mark)};" for mark in "\\`*[]<>&|~$"}) | {1: "&#95;"}
# An underscore inside a word is plain text; elsewhere it may begin or end emphasis.
_STRESS: Final = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_NUMBERED: Final = re.compile(r"[0-9]{1,9}[.)]")
# Text that would notify a user, or become a link: a name must stay a name.
_REFERENCE: Final = re.compile(r"[@#](?=\w)|:(?=//)|(?<=\bwww)\.|\bGH(?=-)", re.IGNORECASE)


class _Section(NamedTuple):
    """A heading and the lines below it; each line can be left out."""

    title: str
    lines: list[str]


def markdown(document: Document, about: About, most_bytes: int = COMMENT_BYTES) -> str:
    """Format a report. Its first line is an HTML comment that names what was asked, so that a bot finds its own text.

    Args:
        document: The report.
        about: What was asked.
        most_bytes: The maximum length. The ends of the largest tables are left out, with a line that says so; the
            heading and the verdict are always kept.
    """
    verdicts = [f"**{_text(block.text, _LONGEST_VERDICT)}**" for block in document if isinstance(block, Verdict)]
    title, *sections = _sections(document)
    head = [f"<!-- footprint: {_marker(about.name)} -->", f"### {title.title}", "", *verdicts, ""]
    tail = [f"_Written by footprint {_safe(about.version)}._", ""]
    room = most_bytes - _size(head) - _size(tail)
    shown = _fitting([title, *sections], room - _CUT_LINE_BYTES) or [title._replace(lines=[])]
    lines = [*head, *shown[0].lines, ""]
    for section in shown[1:]:
        lines += [*_opening(section), *section.lines, *_CLOSING]
    if rest := 1 + len(sections) - len(shown):
        lines += [_REST.format(counted(rest, "section")), ""]
    return "\n".join([*lines, *tail])


def _opening(section: _Section) -> list[str]:
    return ["<details>", f"<summary>{section.title}</summary>", ""]


def _fitting(sections: Sequence[_Section], room: int) -> list[_Section]:
    """Return the sections that fit; a section that is longer than its share of the room is cut."""
    folds = [_size([*_opening(section), *_CLOSING]) + _CUT_LINE_BYTES for section in sections]
    shown = [section for section, needed in zip(sections, accumulate(folds), strict=True) if needed <= room]
    room -= sum(folds[: len(shown)])
    sizes = [_size(section.lines) for section in shown]
    shares = [0] * len(shown)
    # The smallest first: the room that they leave is for the others.
    for done, place in enumerate(sorted(range(len(shown)), key=sizes.__getitem__)):
        shares[place] = min(sizes[place], room // (len(shown) - done))
        room -= shares[place]
    return [section._replace(lines=_cut(section.lines, share)) for section, share in zip(shown, shares, strict=True)]


def _cut(lines: list[str], most_bytes: int) -> list[str]:
    kept = [
        line
        for line, needed in zip(lines, accumulate(_size([line]) for line in lines), strict=True)
        if needed <= most_bytes
    ]
    rest = sum(map(bool, lines[len(kept) :]))
    if not rest:
        return lines
    # The end of a code block may have been cut.
    ends = ["```"] if sum(line.startswith("```") for line in kept) % 2 else []
    return [*kept, *ends, "", _CUT_HERE.format(counted(rest, "line"))]


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _sections(document: Document) -> list[_Section]:
    sections = [_Section("footprint", [])]
    for number, block in enumerate(document):
        if isinstance(block, Heading):
            section = _Section(_text(block.text, _LONGEST_TITLE), [])
            sections[-1:] = [section] if number == 0 else [sections[-1], section]
        else:
            lines = sections[-1].lines
            for line in _lines(block):
                if line or (lines and lines[-1]):
                    lines.append(line)
    for section in sections:
        while section.lines and not section.lines[-1]:
            section.lines.pop()
    return sections


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield f"- {_text(block.text, _LONGEST_TEXT)}"
    elif isinstance(block, Facts):
        yield from _table(block.columns, [row[: len(block.columns)] for row in block.rows], {0, 2})
    elif isinstance(block, Table):
        rows = (*block.rows, *block.footer)
        yield from _table(block.columns, rows, {*block.text_columns, len(block.columns) - 1})
    elif isinstance(block, Graph):
        yield from _graph(block)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], text_columns: set[int]) -> Iterator[str]:
    # A table needs an empty line before it.
    yield ""
    yield _row([shortened(column, _LONGEST_CELL) for column in columns])
    yield "|" + "|".join("---" if number in text_columns else "---:" for number in range(len(columns))) + "|"
    for row in rows:
        yield _row([shortened(cell, _LONGEST_CELL) for cell in row])
    yield ""


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    # An indented label is a part of the label above it.
    inside = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(inside)) + _safe(inside)


def _graph(graph: Graph) -> Iterator[str]:
    from footprint.formats.text import plain  # noqa: PLC0415 # only the verb `heap` has graphs

    yield ""
    # The graph holds figures, marks and units. The unit is foreign text: a backtick in it could end the code block.
    yield from ("```text", *plain((graph,)).replace("`", "'").rstrip("\n").split("\n"), "```", "")


def _text(text: str, most: int) -> str:
    """Format running text on one line, cut where it is very long; its first character never begins a list."""
    cut = shortened(text, most).strip()
    is_plain = not cut or (cut[0].isalnum() and not _NUMBERED.match(cut)) or cut[0] in "[<&"
    return _safe(cut) if is_plain else f"&#{ord(cut[0])};{_safe(cut[1:])}"


def _safe(text: str) -> str:
    # \x00 and \x01 do not occur in printable text: they mark the places of what is inserted afterwards.
    apart = _STRESS.sub("\x01", _REFERENCE.sub("\\g<0>\x00", printable(text)))
    return apart.translate(_ENTITIES).replace("\x00", _APART)


def _marker(name: str) -> str:
    """Return a name on one line that cannot end an HTML comment."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in " ._/+=:,-") else "?" for c in name)
    return re.sub("--+", "-", shortened(kept, _LONGEST_NAME)).strip("- ") or "report"
