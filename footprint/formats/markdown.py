"""A report as Markdown, for comments on a change: how it came out, and the tables folded below it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from footprint.formats.document import About, Block, Document, Facts, Graph, Heading, Paragraph, Table, Verdict
from footprint.formats.escape import printable, shortened
from footprint.units import counted

__all__ = ("COMMENT_BYTES", "SUMMARY_BYTES", "markdown")

# A comment may have 65,536 characters, the summary of a step 1 MiB; both are kept in bytes, which are no fewer.
COMMENT_BYTES: Final = 65_536
SUMMARY_BYTES: Final = 1 << 20
_LONGEST_CELL: Final = 300
_LONGEST_TEXT: Final = 1000
_LONGEST_VERDICT: Final = 500
_LONGEST_TITLE: Final = 200
_LONGEST_NAME: Final = 100
_CLOSING: Final = ("", "</details>", "")
_CUT_HERE: Final = "_{} cut here, for want of room._"
_REST: Final = "_{} left out, for want of room._"
# What one of these takes at most.
_SAYING_BYTES: Final = 80
_APART: Final = "<!-- -->"
# What Markdown, HTML or mathematics could begin with.
_ENTITIES: Final = str.maketrans({one: f"&#{ord(one)};" for one in "\\`*[]<>&|~$"}) | {1: "&#95;"}
# An underscore inside of a word is one; elsewhere it may begin or end what is stressed.
_STRESS: Final = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_NUMBERED: Final = re.compile(r"[0-9]{1,9}[.)]")
# What would tell somebody, link to something, or fetch it: a name stands for itself alone.
_REFERENCE: Final = re.compile(r"[@#](?=\w)|:(?=//)|(?<=\bwww)\.|\bGH(?=-)", re.IGNORECASE)


class _Section(NamedTuple):
    """A heading with what stands below it, each line of which can be left out."""

    title: str
    lines: list[str]


def markdown(document: Document, about: About, most_bytes: int = COMMENT_BYTES) -> str:
    """Write a report; its first line is a comment by which a program finds its own text again.

    Args:
        document: The report.
        about: What was asked: it is what the first line names.
        most_bytes: What does not fit is left out, from the end of the largest tables, and it says so; the heading and
            how it came out always stand there.
    """
    verdicts = [f"**{_text(block.text, _LONGEST_VERDICT)}**" for block in document if isinstance(block, Verdict)]
    title, *sections = _sections(document)
    head = [f"<!-- footprint: {_marker(about.name)} -->", f"### {title.title}", "", *verdicts, ""]
    tail = [f"_Written by footprint {_safe(about.version)}._", ""]
    room = most_bytes - _size(head) - _size(tail)
    shown = _fitting([title, *sections], room - _SAYING_BYTES) or [title._replace(lines=[])]
    lines = [*head, *shown[0].lines, ""]
    for section in shown[1:]:
        lines += [*_opening(section), *section.lines, *_CLOSING]
    if rest := 1 + len(sections) - len(shown):
        lines += [_REST.format(counted(rest, "section")), ""]
    return "\n".join([*lines, *tail])


def _opening(section: _Section) -> list[str]:
    return ["<details>", f"<summary>{section.title}</summary>", ""]


def _fitting(sections: Sequence[_Section], room: int) -> list[_Section]:
    """Give the sections that have room, those cut that are longer than their share of it."""
    folds = [_size([*_opening(one), *_CLOSING]) + _SAYING_BYTES for one in sections]
    shown = [one for one, needed in zip(sections, accumulate(folds), strict=True) if needed <= room]
    room -= sum(folds[: len(shown)])
    sizes = [_size(section.lines) for section in shown]
    shares = [0] * len(shown)
    # The smallest first: what they leave of their share is for the others.
    for done, place in enumerate(sorted(range(len(shown)), key=sizes.__getitem__)):
        shares[place] = min(sizes[place], room // (len(shown) - done))
        room -= shares[place]
    return [section._replace(lines=_cut(section.lines, share)) for section, share in zip(shown, shares, strict=True)]


def _cut(lines: list[str], most_bytes: int) -> list[str]:
    kept = [
        line
        for line, needed in zip(lines, accumulate(_size([one]) for one in lines), strict=True)
        if needed <= most_bytes
    ]
    rest = sum(map(bool, lines[len(kept) :]))
    if not rest:
        return lines
    # A block of text that lost its end.
    ends = ["```"] if sum(line.startswith("```") for line in kept) % 2 else []
    return [*kept, *ends, "", _CUT_HERE.format(counted(rest, "line"))]


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _sections(document: Document) -> list[_Section]:
    found = [_Section("footprint", [])]
    for number, block in enumerate(document):
        if isinstance(block, Heading):
            section = _Section(_text(block.text, _LONGEST_TITLE), [])
            found[-1:] = [section] if number == 0 else [found[-1], section]
        else:
            lines = found[-1].lines
            for line in _lines(block):
                if line or (lines and lines[-1]):
                    lines.append(line)
    for section in found:
        while section.lines and not section.lines[-1]:
            section.lines.pop()
    return found


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield f"- {_text(block.text, _LONGEST_TEXT)}"
    elif isinstance(block, Facts):
        yield from _table(("what", "figure", "how it is known"), block.rows, {0, 2})
    elif isinstance(block, Table):
        rows = (*block.rows, *block.footer)
        yield from _table(block.columns, rows, {*block.text_columns, len(block.columns) - 1})
    elif isinstance(block, Graph):
        yield from _graph(block)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], text_columns: set[int]) -> Iterator[str]:
    # A table needs a line of its own before it.
    yield ""
    yield _row([shortened(column, _LONGEST_CELL) for column in columns])
    yield "|" + "|".join("---" if number in text_columns else "---:" for number in range(len(columns))) + "|"
    for row in rows:
        yield _row([shortened(cell, _LONGEST_CELL) for cell in row])
    yield ""


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    # A label that is indented is a part of the one above it.
    inside = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(inside)) + _safe(inside)


def _graph(graph: Graph) -> Iterator[str]:
    from footprint.terminal import plain  # noqa: PLC0415 # one verb of many has graphs

    yield ""
    # Its text is ours: figures, marks and units. A unit that a profile made up could still end the block.
    yield from ("```text", *plain((graph,)).replace("`", "'").rstrip("\n").split("\n"), "```", "")


def _text(text: str, most: int) -> str:
    """Give running text: one line, cut where it is very long; its first character begins no list."""
    cut = shortened(text, most).strip()
    is_plain = not cut or (cut[0].isalnum() and not _NUMBERED.match(cut)) or cut[0] in "[<&"
    return _safe(cut) if is_plain else f"&#{ord(cut[0])};{_safe(cut[1:])}"


def _safe(text: str) -> str:
    # Two characters that no printable text has stand for what is put in afterwards.
    apart = _STRESS.sub("\x01", _REFERENCE.sub("\\g<0>\x00", printable(text)))
    return apart.translate(_ENTITIES).replace("\x00", _APART)


def _marker(name: str) -> str:
    """Give a name that ends no comment, of one line."""
    kept = "".join(one if one.isascii() and (one.isalnum() or one in " ._/+=:,-") else "?" for one in name)
    return re.sub("--+", "-", shortened(kept, _LONGEST_NAME)).strip("- ") or "report"
