"""The HTML report: one file that a browser opens without a network.

Its script and style are built from `app/` (TypeScript); the built files `app.js` and `app.css` are part of the package.
The report has the JSON for the script, and the same answer as plain HTML.

The tables of an answer stand as compressed columns, a tenth of the size of the JSON. Each text is stored once, in the
order in which it is first met. A column of texts has their numbers, and it and a column of ascending integers have the
difference of each value to the one before it. A column with few changes has each value once, with the number of rows
that have it. The script of the report restores the rows of the JSON from that.
"""

import json
import platform
import zlib
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import chain, compress, count, islice
from operator import add, le, ne, sub
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from footprint.elf.names import shown_name
from footprint.formats.document import (
    NOTES,
    About,
    Document,
    Facts,
    Graph,
    Heading,
    Paragraph,
    Table,
    Verdict,
    without_options,
)
from footprint.json.answer import Json, in_memory
from footprint.json.codec import Columns
from footprint.text.escape import printable, well_formed
from footprint.text.units import counted, format_bytes

MOST_EXACT: Final = (1 << 53) - 1
"""The largest integer that a browser holds exactly, together with all smaller ones."""
# The next higher level takes a third more time for 4 % of the size (benchmarks/report.py).
_LEVEL: Final = 4
_ROUNDED: Final = frozenset({dict, list, int})
_TEXTS: Final = frozenset({str, type(None)})
_INTEGERS: Final = frozenset({int, type(None)})
# Python takes True for 1, and 1.0 as well: a column with one of these types has neither of the others.
_SINGLE: Final = (_INTEGERS, frozenset({bool, type(None)}))
# The mean number of rows from which runs take less room.
_LEAST_RUN: Final = 4
_Numbers = defaultdict[str | None, int]
SCRIPT_PATH: Final = Path(__file__).with_name("app.js")
STYLE_PATH: Final = Path(__file__).with_name("app.css")
_LONGEST_TITLE: Final = 200
_KEYS: Final = ("gap_bytes", "size_bytes", "section", "name")


def html(report: str, _about: About) -> str:
    """Return a report as the text of a format: it is complete already."""
    return report


if TYPE_CHECKING:
    from footprint.model.audit import Audit
    from footprint.model.page_map import Place


def pack(answers: Json) -> tuple[dict[str, object], list[str | None], int]:
    """Replace each table in answers by an object: `rows`, `keys`, and columns as they are packed.

    These are `texts`, `steps`, `values`, `runs` and, of texts, `text_runs`. Returns the answers, each text in their
    tables in the order of its number, and the number of integers that a browser would round: it has all numbers with
    53 bits.
    """
    # Each text that is looked up for the first time gets the next number; what is unknown is the text 0.
    numbers: _Numbers = defaultdict(count().__next__)
    numbers[None]  # gets its number
    inexact: list[int] = []
    packed = {key: _packed(member, numbers, inexact) for key, member in answers.items()}
    return packed, list(numbers), sum(inexact)


def payload(answers: Mapping[str, object], texts: Sequence[str | None]) -> str:
    """Write packed answers as text: two lines of JSON, the answers and the texts in them, deflated and in base64."""
    text = "\n".join([json.dumps(part, separators=(",", ":")) for part in (answers, texts)])
    return b64encode(zlib.compress(text.encode("ascii"), _LEVEL)).decode("ascii")


def _inexact_count(value: object) -> int:
    if isinstance(value, dict | list):
        return sum(map(_inexact_count, value.values() if isinstance(value, dict) else value))
    return int(
        isinstance(value, int) and abs(value) > MOST_EXACT and (value.bit_length() > 1000 or int(float(value)) != value)
    )


def _inexact_in(column: Sequence[object], types: set[type]) -> int:
    """Count them in a column: a large one has few types, and hardly ever such an integer."""
    if int in types and types <= _INTEGERS:
        # Zero is no such integer, and is left out with what is unknown.
        figures = cast("list[int]", list(filter(None, column)))
        if not figures or (max(figures) <= MOST_EXACT and min(figures) >= -MOST_EXACT):
            return 0
    return sum(map(_inexact_count, column)) if types & _ROUNDED else 0


def _packed(value: object, numbers: _Numbers, inexact: list[int]) -> object:
    """Pack the tables in a value, and list how many integers of each part a browser would round."""
    if isinstance(value, dict):
        return {key: _packed(member, numbers, inexact) for key, member in value.items()}
    table = value if isinstance(value, Columns) else _columns(value)
    if table is None:
        inexact.append(_inexact_count(value))
        return value
    packed: dict[str, dict[str, object]] = {kind: {} for kind in ("texts", "steps", "values", "runs", "text_runs")}
    for key, column in zip(table.keys, table.cells, strict=True):
        types = set(map(type, column))
        inexact.append(_inexact_in(column, types))
        is_text = types <= _TEXTS
        if (is_text or any(types <= kind for kind in _SINGLE)) and (runs := _runs(column)) is not None:
            values, counts = runs
            if is_text:
                packed["text_runs"][key] = list(map(numbers.__getitem__, cast("list[str | None]", values))), counts
            else:
                packed["runs"][key] = runs
        elif is_text:
            packed["texts"][key] = _steps(list(map(numbers.__getitem__, column)))
        elif types == {int} and all(map(le, column, islice(column, 1, None))):
            packed["steps"][key] = _steps(column)
        else:
            packed["values"][key] = column
    return {"rows": len(table.cells[0]), "keys": table.keys, **packed}


def _runs(column: Sequence[object]) -> tuple[list[object], list[int]] | None:
    """Return the values of neighbouring rows that are equal, and how many rows have each; None for many values."""
    # Rows with another value than the one before: Python runs no step for a row.
    changes = compress(count(1), map(ne, column, islice(column, 1, None)))
    starts = [0, *islice(changes, len(column) // _LEAST_RUN)]
    if len(starts) * _LEAST_RUN > len(column):
        return None
    return [column[start] for start in starts], list(map(sub, chain(starts[1:], (len(column),)), starts))


def _columns(value: object) -> Columns | None:
    """Return a list of rows as a table; None for anything else, and where rows have different members."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict) or not value[0]:
        return None
    keys = value[0].keys()
    if not all(isinstance(row, dict) and row.keys() == keys for row in value):
        return None
    return Columns(tuple(keys), tuple([row[key] for row in value] for key in keys))


def _steps(values: Sequence[int]) -> list[int]:
    """Return the difference of each value to the one before it, of the first one to 0."""
    return list(map(sub, values, chain((0,), values)))


def text_html(text: str) -> str:
    """Escape foreign text, so that HTML shows it and does nothing else with it."""
    return escape(printable(without_options(text)))


def static_html(document: Document) -> str:
    """Format a document as headings, paragraphs and tables, the verdicts first. A graph becomes one sentence."""
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
            parts.append(
                _plain_table(table_count, block.columns, [row[: len(block.columns)] for row in block.rows], ())
            )
        elif isinstance(block, Table):
            table_count += 1
            parts.append(_plain_table(table_count, block.columns, block.rows, block.footer))
        elif isinstance(block, Graph):
            parts.append(f"<p>Memory over time, at {len(block.points):,} moments: the script draws it.</p>")
    return "\n".join(parts)


def _plain_table(
    number: int, columns: Iterable[str], rows: Iterable[Iterable[str]], footer: Iterable[Iterable[str]]
) -> str:
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


def html_file(title: str, data: str, static: str) -> str:
    """Build the HTML file of a report.

    Args:
        title: The title of the window; a long one is cut.
        data: The data that the script shows, in base64.
        static: The HTML that is shown where the script does not run.
    """
    # In a zipapp they are no files of their own.
    folder = files(__package__)
    script = (folder / SCRIPT_PATH.name).read_text(encoding="utf-8")
    style = (folder / STYLE_PATH.name).read_text(encoding="utf-8")
    # The browser runs only the script and applies only the style with these hashes, and it loads nothing, so a name in
    # the data can do nothing.
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{text_html(title[:_LONGEST_TITLE])}</title>
<style>{style}</style>
</head>
<body>
<main id="app" hidden></main>
<main id="static">
<h1>{text_html(title[:_LONGEST_TITLE])}</h1>
{static}
</main>
<script type="application/octet-stream" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")


def map_members(audit: "Audit", ledger: Columns | list[Json]) -> dict[str, Json]:
    """Return the private bytes of each object with a page map, and its variables as a table, by the number of the map.

    A saved audit has no variables. Each variable begins `gap_bytes` behind the end of the one before it, which is
    nothing for most. Most stand in the ledger of the answer, too, with the names that are shown.
    """
    maps = audit.page_maps
    names: dict[str | None, str | None] = {}
    if maps and isinstance(ledger, Columns):
        columns = dict(zip(ledger.keys, ledger.cells, strict=True))
        names = dict(zip(columns["symbol"], columns["name"], strict=True))
    private = dict.fromkeys([m.owner for m in maps], 0)
    for row in audit.ledger if maps else ():
        if row.owner in private:
            private[row.owner] += row.bytes or 0
    return {
        str(number): {
            "private_bytes": private[m.owner],
            "variables": None if m.variables is None else _table(m.variables, names),
            "omitted_count": m.omitted_variables,
        }
        for number, m in enumerate(maps)
    }


def _table(variables: "Sequence[Place]", names: dict[str | None, str | None]) -> Columns | list[Json]:
    if not variables:
        return []
    addrs, sizes, sections, symbols = zip(*variables, strict=True)
    gaps = list(map(sub, addrs, chain((0,), map(add, addrs, sizes))))
    # Few sections have many variables.
    shown = {section: well_formed(section) for section in set(sections)}
    names |= {symbol: symbol and well_formed(shown_name(symbol)) for symbol in set(symbols).difference(names)}
    return Columns(_KEYS, (gaps, sizes, list(map(shown.get, sections)), list(map(names.get, symbols))))


def page(title: str, members: Json, document: Document, more: Json | None = None) -> str:
    """Build the HTML report of any answer: its most important lines, and its tables.

    `app/src/sections.ts` says how each table is shown.

    Args:
        title: What was asked.
        members: The JSON of the answer.
        document: The answer as a document.
        more: What `app/src/answerdata.ts` describes beside them.
    """
    title = " ".join(title.split())
    verdicts = [
        {"text": block.text.replace(block.at_count, "", 1), "is_failure": block.is_failure}
        for block in document
        if isinstance(block, Verdict)
    ]
    answers = {
        "kind": "answer",
        "answer": in_memory(members),
        "verdicts": verdicts,
        "parts": _parts(document),
        **(more or {}),
    }
    return report(title, answers, document)


def _parts(document: Document) -> list[Json]:
    """Return the figures and sentences of a document by their headings, without the rows of tables and the notes."""
    parts: list[Json] = []
    heading = ""
    for place, block in enumerate(document):
        if isinstance(block, Heading):
            # The first one is the title.
            heading = block.text if place else ""
        elif isinstance(block, Paragraph | Facts | Table) and heading != NOTES:
            if not parts or parts[-1]["heading"] != heading:
                parts.append({"heading": heading, "sentences": [], "facts": [], "columns": ()})
            if isinstance(block, Table):
                continue
            if isinstance(block, Facts):
                parts[-1]["facts"] += [list(row) for row in block.rows]
                parts[-1]["columns"] = max(parts[-1]["columns"], block.columns, key=len)
            else:
                parts[-1]["sentences"].append(block.text)
    return parts


def made_here(*, is_report: bool = False) -> Json:
    """Return the date and the host of an audit that is made here and now, or only of its report."""
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {"date": date, "host": well_formed(platform.node()), "is_report": is_report}


def report(title: str, answers: Json, document: Document, warning: str = "", failure: str = "") -> str:
    """Build the HTML report of an answer.

    Args:
        title: The title of the window.
        answers: The data that the script draws: `kind` (`audit`, `group`, `diff`, `heap` or `answer`), and what
            `app/src/data.ts` describes for this kind. The member `made` tells when and where the audit was made, null
            if the report may not tell; without it the report tells when and where it is written itself.
        document: The answer as a document: browsers show it without JavaScript.
        warning: What the report leaves out; "" where it is complete.
        failure: Why the command fails, where `document` does not end with it.
    """
    packed, texts, inexact = pack(answers)
    if inexact:
        rounding = (
            f"A browser rounds figures above {format_bytes(MOST_EXACT + 1)}: {counted(inexact, 'figure')} of this "
            "report and of the JSON saved from it are not exact. `--json` has the exact figures."
        )
        warning = f"{rounding} {warning}".rstrip()
    if warning:
        document = (Paragraph(warning), *document)
    shown = {"made": made_here(is_report=True), **packed, "warning": warning, "failure": failure}
    return html_file(f"footprint: {title}", payload(shown, texts), static_html(document))
