"""`footprint explain`: what a word of an answer means."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint import __version__
from footprint.verbs import options

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json

__all__ = ("explain",)


def explain(
    word: Annotated[
        str | None,
        typer.Argument(help="A figure, finding, note, owner, kind or exit code; without one all are listed."),
    ] = None,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
) -> None:
    """Say what a word of an answer means: a figure, a finding, a note, an owner, an exit code.

    \b
    footprint explain per_process_bytes
    footprint explain unused-library
    footprint explain 3
    """
    from footprint.verbs.explain.words import explain as look_up
    from footprint.verbs.explain.words import known_words
    from footprint.verbs.output import Answer, chosen, write

    form = chosen("explain", format_, output, is_json=json, table=table, color=color)
    found = look_up(word) if word is not None else None

    def document() -> "Document":
        from footprint.verbs.explain.text import explain_report, words_report

        return words_report(known_words()) if found is None else explain_report(found)

    def members() -> "Json":
        from footprint.verbs.explain.json import explain_members

        rows = found or tuple(dict.fromkeys(one for each in known_words().values() for one in each))
        return explain_members(rows, __version__)

    write(Answer("explain" if word is None else f"explain {word}", document, members, "words"), form)
