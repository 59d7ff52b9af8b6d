"""`footprint explain`: what a word of an answer means."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("explain",)

ORDER = 150


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
    """Explain a word of an answer: a figure, a finding, a note, an owner, an exit code.

    \b
    footprint explain per_process_bytes
    footprint explain unused-library
    footprint explain 3
    """
    from footprint.formats.words import explain as look_up
    from footprint.verbs.explain.answer import ExplainAnswer
    from footprint.verbs.output import output_options, write

    written = output_options(ExplainAnswer, format_, output, is_json=json, table=table, color=color)
    found = look_up(word) if word is not None else None
    write(ExplainAnswer(found, "explain" if word is None else f"explain {word}"), written)
