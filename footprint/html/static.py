"""A document as plain HTML: the report without JavaScript."""

from collections.abc import Iterable
from html import escape

from footprint.formats.document import Document, Facts, Graph, Heading, Paragraph, Table, Verdict
from footprint.formats.escape import printable
from footprint.formats.sections.rest import without_options

__all__ = ("static_html", "text_html")


def text_html(text: str) -> str:
    """Escape foreign text, so that HTML shows it and does nothing else with it."""
    return escape(printable(without_options(text)))


def static_html(document: Document) -> str:
    """Write a document as headings, paragraphs and tables, the verdicts first. A graph becomes one sentence."""
    parts: list[str] = []
    table_count = 0
    for block in sorted(document, key=lambda block: not isinstance(block, Verdict)):
        if isinstance(block, Heading):
            parts.append(f"<h2>{text_html(block.text)}</h2>")
        elif isinstance(block, Verdict):
            parts.append(f'<p class="verdict">{text_html(block.text)}</p>')
        elif isinstance(block, Paragraph):
            parts.append(f"<p>{text_html(block.text)}</p>")
        elif isinstance(block, Facts):
            table_count += 1
            parts.append(_table(table_count, block.columns, [row[: len(block.columns)] for row in block.rows], ()))
        elif isinstance(block, Table):
            table_count += 1
            parts.append(_table(table_count, block.columns, block.rows, block.footer))
        elif isinstance(block, Graph):
            parts.append(f"<p>Memory over time, at {len(block.points):,} moments: the script draws it.</p>")
    return "\n".join(parts)


def _table(number: int, columns: Iterable[str], rows: Iterable[Iterable[str]], footer: Iterable[Iterable[str]]) -> str:
    head = _row("th", columns).replace("<th></th>", "<td></td>")
    body = "\n".join(_row("td", row) for row in rows)
    foot = "\n".join(_row("td", row) for row in footer)
    # A table may be wider than the screen: it scrolls by itself, also with the keyboard.
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="table {number}">'
        f"<table><thead>{head}</thead><tbody>{body}</tbody>{f'<tfoot>{foot}</tfoot>' if foot else ''}</table></div>"
    )


def _row(cell: str, texts: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{cell}>{text_html(text)}</{cell}>" for text in texts) + "</tr>"
