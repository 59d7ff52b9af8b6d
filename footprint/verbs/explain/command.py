"""`footprint explain`: what a word of an answer means."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.verbs import options
from footprint.verbs.lazy import lazy_modules
from footprint.verbs.output import Answer, check_formats, write

if TYPE_CHECKING:
    from footprint.formats.words import Explanation
    from footprint.verbs.explain import json, text
else:
    json, text = lazy_modules("footprint.verbs.explain", "json text")

__all__ = ("explain",)

ORDER = 150


@options.shared_options("output format_ table json color")
def explain(
    word: Annotated[
        str | None,
        typer.Argument(help="A figure, finding, note, owner, kind or exit code; without one all are listed."),
    ] = None,
    *,
    output: options.OutputOptions,
) -> int:
    """Explain a word of an answer: a figure, a finding, a note.

    \b
    footprint explain per_process_bytes
    footprint explain unused-library
    footprint explain 3
    """
    from footprint.formats.words import explain as look_up
    from footprint.formats.words import known_words

    def all_words() -> "tuple[Explanation, ...]":
        return tuple(dict.fromkeys(one for each in known_words().values() for one in each))

    # Without a word all are listed.
    answer: Answer[tuple[Explanation, ...] | None] = Answer(
        "explain",
        "words",
        document=lambda found: text.words_document(known_words()) if found is None else text.explain_document(found),
        members=lambda found, version: json.explain_members(found or all_words(), version),
    )
    check_formats(answer, output)
    found = None if word is None else look_up(word)
    return write(answer, found, "explain" if word is None else f"explain {word}", output)
