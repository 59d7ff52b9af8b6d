"""The report of `footprint explain`."""

from collections.abc import Iterator, Mapping

from footprint.formats.document import Block, Document, Facts, Heading, Paragraph, Verdict
from footprint.formats.words import Explanation
from footprint.units import counted

__all__ = ("explain_document", "words_document")


def explain_document(found: tuple[Explanation, ...]) -> Document:
    """Write the meanings of a word."""
    blocks: list[Block] = []
    for one in found:
        also = f", also {', '.join(one.also)}" if one.also else ""
        blocks.append(Heading(f"{one.word}{also} ({one.subject.lower()})"))
        blocks.extend(_blocks(one.text))
    pages = dict.fromkeys(one.page for one in found)
    return (*blocks, Verdict(f"From {' and '.join(pages)}."))


def words_document(known: Mapping[str, tuple[Explanation, ...]]) -> Document:
    """Write the list of all words, by subject."""
    by_subject: dict[str, list[str]] = {}
    for found in known.values():
        for one in found:
            words = by_subject.setdefault(one.subject, [])
            if one.word not in words:
                words.append(one.word)
    blocks: list[Block] = []
    for subject, words in by_subject.items():
        blocks += [Heading(subject), Paragraph(", ".join(words))]
    return (*blocks, Verdict(f"{counted(len(known), 'word')}: `footprint explain WORD` says what one means."))


def _blocks(text: str) -> Iterator[Block]:
    """Split a page into blocks: paragraphs, tables as facts, and commands as they stand."""
    for part in text.split("\n\n"):
        lines = part.strip().split("\n")
        if lines[0].startswith("```"):
            commands = [line for line in lines if not line.startswith("```")]
            yield Facts(tuple((f"  {line}", "", "") for line in commands))
        elif lines[0].startswith("|"):
            rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]
            for word, meaning, *_ in rows:
                yield Paragraph(f"{word}: {meaning}.")
        else:
            yield Paragraph(" ".join(lines).replace("**", "").replace("`", ""))
