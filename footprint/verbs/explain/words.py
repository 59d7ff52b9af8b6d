"""What the words of answers mean, from the same pages that the documentation has.

`docs/words.md` and `docs/notes.md` have a table row for each word, `docs/findings/` a page for each rule. A wheel holds
copies of them.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

from footprint.errors import UsageError

__all__ = ("Explanation", "explain", "known_words")

_HERE: Final = Path(__file__).resolve().parents[2]
# In a wheel the pages lie in the package, in a checkout beside it.
_FOLDERS: Final = (_HERE / "docs", _HERE.parent / "docs")
_WORD: Final = re.compile(r"`([^`]{1,200})`|\[[^\]]{1,200}\]\([^)]{1,200}\)")
_LINK: Final = re.compile(r"\[([^\]]{1,200})\]\([^)]{1,200}\)")


class Explanation(NamedTuple):
    """What a word means.

    Attributes:
        word: The word, as answers have it.
        also: Other words for the same.
        subject: What kind of word it is: a heading of the page, `Notes`, or `Findings`.
        text: What it means, in Markdown: a sentence, or a whole page.
        page: The page of the documentation that says so.
    """

    word: str
    also: tuple[str, ...]
    subject: str
    text: str
    page: str


def explain(word: str) -> tuple[Explanation, ...]:
    """Say what a word means; each of its meanings where it has several.

    Raises:
        UsageError: For a word that no answer has; the nearest that one has is named.
    """
    known = known_words()
    wanted = _normalised(word)
    if wanted in known:
        return known[wanted]
    nearest = get_close_matches(wanted, known, 3, 0.6)
    hint = f"; did you mean {' or '.join(nearest)}?" if nearest else "; `footprint explain` lists all"
    raise UsageError(f"no answer has the word {word[:80]!r}{hint}")


def known_words() -> Mapping[str, tuple[Explanation, ...]]:
    """Give all words, in the order of the pages."""
    found: dict[str, tuple[Explanation, ...]] = {}
    for one in _explanations():
        for word in (one.word, *one.also):
            key = _normalised(word)
            found[key] = (*found.get(key, ()), one)
    return found


def _normalised(word: str) -> str:
    """Write a word as it is looked up: what answers write differently in text and JSON is one word."""
    return word.strip().strip("`").lower()


def _explanations() -> Iterator[Explanation]:
    folder = next((one for one in _FOLDERS if (one / "words.md").is_file()), None)
    if folder is None:
        raise UsageError("the pages of the documentation are not installed")
    for name, subject in (("words.md", ""), ("notes.md", "Notes")):
        yield from _rows((folder / name).read_text(encoding="utf-8"), subject, f"docs/{name}")
    for page in sorted((folder / "findings").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        title, _, rest = text.partition("\n")
        yield Explanation(title.removeprefix("# "), (), "Findings", rest.strip(), f"docs/findings/{page.name}")
        yield from _rows(rest, f"Kinds of {title.removeprefix('# ')}", f"docs/findings/{page.name}")


def _rows(text: str, subject: str, page: str) -> Iterator[Explanation]:
    """Read the tables of a page whose first cells are words."""
    heading = subject
    for line in text.split("\n"):
        if line.startswith("## ") and not subject:
            heading = line.removeprefix("## ")
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| `") else []
        words = [one for one in _WORD.findall(cells[0]) if one] if cells else []
        if words:
            said = [_LINK.sub(r"\1", cell) for cell in cells[1:] if cell]
            meaning, *cures = said or [""]
            cure = f" What to do: {cures[0]}." if cures else ""
            yield Explanation(words[0], tuple(words[1:]), heading, f"{meaning}.{cure}", page)
