"""The answer of `explain`: its JSON and its report."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.document import Block, Document, Facts, Heading, Paragraph, Verdict
from footprint.formats.words import Explanation
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import dataclass
from footprint.text.units import counted


def explain_document(meanings: tuple[Explanation, ...]) -> Document:
    """Show the meanings of a word."""
    blocks: list[Block] = []
    for meaning in meanings:
        also = f", also {', '.join(meaning.also)}" if meaning.also else ""
        blocks.append(Heading(f"{meaning.word}{also} ({meaning.subject.lower()})"))
        blocks.extend(_blocks(meaning.text))
    pages = dict.fromkeys(meaning.page for meaning in meanings)
    return (*blocks, Verdict(f"From {' and '.join(pages)}."))


def words_document(meanings: Mapping[str, tuple[Explanation, ...]]) -> Document:
    """Show the list of all words, by subject."""
    by_subject: dict[str, list[str]] = {}
    for explanations in meanings.values():
        for explanation in explanations:
            words = by_subject.setdefault(explanation.subject, [])
            if explanation.word not in words:
                words.append(explanation.word)
    blocks: list[Block] = []
    for subject, words in by_subject.items():
        blocks += [Heading(subject), Paragraph(", ".join(words))]
    return (*blocks, Verdict(f"{counted(len(meanings), 'word')}: `footprint explain WORD` says what one means."))


def _blocks(text: str) -> Iterator[Block]:
    """Split a page into blocks: paragraphs, tables as facts, and commands as they stand."""
    for part in text.split("\n\n"):
        lines = part.strip().split("\n")
        if lines[0].startswith("```"):
            commands = [line for line in lines if not line.startswith("```")]
            yield Facts(tuple((f"  {line}", "", "") for line in commands))
        elif lines[0].startswith("|"):
            rows = [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines[2:]]
            for word, meaning, *_ in rows:
                yield Paragraph(f"{word}: {meaning}.")
        else:
            yield Paragraph(" ".join(lines).replace("**", "").replace("`", ""))


class WordsTarget(NamedTuple):
    """The vocabulary of answers.

    Attributes:
        name: Always `words`.
    """

    name: Literal["words"] = "words"


@dataclass(frozen=True, kw_only=True)
class ExplainJson(Envelope):
    """The meanings of words.

    Attributes:
        target: The vocabulary.
        words: The words.
        notes: Always empty.
    """

    verb: Literal["explain"] = "explain"
    target: WordsTarget
    words: tuple[Explanation, ...]
    notes: tuple[Note, ...]


def explain_members(meanings: Iterable[Explanation], version: str) -> Json:
    """Return the members of the answer."""
    return encode(
        ExplainJson(tool=Tool("footprint", version), host={}, target=WordsTarget(), words=tuple(meanings), notes=())
    )
