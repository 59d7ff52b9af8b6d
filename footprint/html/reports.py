"""The HTML report of an answer: JSON for the script, and the same answer as plain HTML."""

import platform
from datetime import UTC, datetime

from footprint.formats.document import Document, Facts, Heading, Paragraph, Table, Verdict
from footprint.formats.escape import well_formed
from footprint.formats.json import Json, in_memory
from footprint.formats.sections.notes import NOTES
from footprint.html.columns import MOST_EXACT, pack, payload
from footprint.html.shell import html_file
from footprint.html.static import static_html
from footprint.units import counted, format_bytes

__all__ = ("made_here", "page", "report")


def page(title: str, members: Json, document: Document, more: Json | None = None) -> str:
    """Write the HTML report of any answer: its most important lines, and its tables.

    `app/src/sections.ts` says how each table is shown.

    Args:
        title: What was asked.
        members: The JSON of the answer.
        document: The answer as a document.
        more: What `app/src/answerdata.ts` describes beside them.
    """
    title = " ".join(title.split())
    verdicts = [
        {"text": one.text.replace(one.at_count, "", 1), "is_failure": one.is_failure}
        for one in document
        if isinstance(one, Verdict)
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
    found: list[Json] = []
    heading = ""
    for place, block in enumerate(document):
        if isinstance(block, Heading):
            # The first one is the title.
            heading = block.text if place else ""
        elif isinstance(block, Paragraph | Facts | Table) and heading != NOTES:
            if not found or found[-1]["heading"] != heading:
                found.append({"heading": heading, "sentences": [], "facts": [], "columns": ()})
            if isinstance(block, Table):
                continue
            if isinstance(block, Facts):
                found[-1]["facts"] += [list(row) for row in block.rows]
                found[-1]["columns"] = max(found[-1]["columns"], block.columns, key=len)
            else:
                found[-1]["sentences"].append(block.text)
    return found


def made_here(*, is_report: bool = False) -> Json:
    """Return the date and the host of an audit that is made here and now, or only of its report."""
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {"date": date, "host": well_formed(platform.node()), "is_report": is_report}


def report(title: str, answers: Json, document: Document, warning: str = "", failure: str = "") -> str:
    """Write the HTML report of an answer.

    Args:
        title: The title of the window.
        answers: The data that the script draws: `kind` (`audit`, `group`, `diff`, `heap` or `answer`), and what
            `app/src/data.ts` describes for this kind. The member `made` tells when and where the audit was made, null
            if the report may not tell; without it the report tells when and where it is written itself.
        document: The answer as a document: browsers show it without JavaScript.
        warning: What the report leaves out; "" where it is complete.
        failure: Why the command fails, where `document` does not end with it.
    """
    packed = pack(answers)
    if inexact := packed.inexact_count:
        rounding = (
            f"A browser rounds figures above {format_bytes(MOST_EXACT + 1)}: {counted(inexact, 'figure')} of this "
            "report and of the JSON saved from it are not exact. `--json` has the exact figures."
        )
        warning = f"{rounding} {warning}".rstrip()
    if warning:
        document = (Paragraph(warning), *document)
    told = {"made": made_here(is_report=True), **packed.answers, "warning": warning, "failure": failure}
    return html_file(f"footprint: {title}", payload(packed._replace(answers=told)), static_html(document))
