"""`footprint explain`: what a word of an answer means."""

from typing import Annotated

from footprint.verbs import options
from footprint.verbs.commands import Argument
from footprint.verbs.output import Answer, check_formats, write

ORDER = 150


@options.shared_options("output format_ table json color")
def explain(
    word: Annotated[
        str | None,
        Argument(help="A figure, finding, note, owner, kind or exit code; without one all are listed."),
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
    from footprint.formats.words import Explanation, known_words
    from footprint.formats.words import explain as look_up
    from footprint.verbs.explain import answer

    def all_words() -> tuple[Explanation, ...]:
        return tuple(dict.fromkeys(meaning for meanings in known_words().values() for meaning in meanings))

    # Without a word all are listed.
    parts: Answer[tuple[Explanation, ...] | None] = Answer(
        "explain",
        "words",
        document=lambda meanings: (
            answer.words_document(known_words()) if meanings is None else answer.explain_document(meanings)
        ),
        members=lambda meanings, version: answer.explain_members(meanings or all_words(), version),
    )
    check_formats(parts, output)
    document = None if word is None else look_up(word)
    return write(parts, document, "explain" if word is None else f"explain {word}", output)
