"""`footprint explain`: what a word of an answer means."""

from typing import Annotated

import typer

from footprint import __version__
from footprint.cli import options

__all__ = ("explain",)


def explain(
    word: Annotated[
        str | None,
        typer.Argument(help="A figure, finding, note, owner, kind or exit code; without one all are listed."),
    ] = None,
    output: options.Output = "-",
    format_: options.FormatOption = options.Format.TEXT,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
) -> None:
    """Say what a word of an answer means: a figure, a finding, a note, an owner, an exit code.

    \b
    footprint explain per_process_bytes
    footprint explain unused-library
    footprint explain 3
    """
    from footprint.cli.output import emit, emit_document, wants_json
    from footprint.words import explain as look_up
    from footprint.words import known_words

    found = look_up(word) if word is not None else None
    if wants_json(format_, output, is_asked=json):
        from footprint.report.json.explain import explain_json

        rows = found or tuple(dict.fromkeys(one for each in known_words().values() for one in each))
        emit(explain_json(rows, __version__), output)
        return
    from footprint.report.views.explain import explain_report, words_report

    document = words_report(known_words()) if found is None else explain_report(found)
    emit_document(document, output, color, is_quiet=False)
