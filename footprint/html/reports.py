"""The HTML report of an answer: JSON for the script, and the same answer as plain HTML."""

from footprint.formats.document import Document, Paragraph
from footprint.formats.json import Json
from footprint.html.columns import MOST_EXACT, inexact_count, payload
from footprint.html.shell import html_file
from footprint.html.static import static_html
from footprint.units import counted, format_bytes

__all__ = ("report",)


def report(title: str, answers: Json, document: Document, warning: str = "") -> str:
    """Write the HTML report of an answer.

    Args:
        title: The title of the window.
        answers: The data that the script draws: `kind` (`audit`, `diff` or `heap`), and the members that
            `app/src/data.ts` describes for this kind.
        document: The answer as a document: browsers show it without JavaScript, and on paper.
        warning: What the report leaves out; "" where it is complete.
    """
    if inexact := inexact_count(answers):
        rounding = (
            f"A browser rounds figures above {format_bytes(MOST_EXACT + 1)}: {counted(inexact, 'figure')} of this "
            "report and of the JSON saved from it are not exact. `--json` has the exact figures."
        )
        warning = f"{rounding} {warning}".rstrip()
    if warning:
        document = (Paragraph(warning), *document)
    data = payload(answers | {"warning": warning})
    return html_file(f"footprint: {title}", data, static_html(document))
