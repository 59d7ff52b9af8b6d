"""What the words of answers mean, read from the pages of the documentation.

`docs/words.md` and `docs/notes.md` have a table row for each word, `docs/findings/` has a page for each rule. A wheel
holds copies of them. The rows of the figures come from `footprint.model.figures`, and `docs/words.md` repeats them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.errors import UsageError
from footprint.findings.registry import rule_names
from footprint.model.figures import FIGURES, AddsUp, Figure

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SCHEMA_PATH: Final = Path(__file__).parents[1] / "json" / "footprint-1.schema.json"
_FIGURES: Final = "Figures"
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


def without_links(text: str) -> str:
    """Return a text of the documentation without its links between pages: they do not work elsewhere."""
    return _LINK.sub(r"\1", text)


def explain(word: str) -> tuple[Explanation, ...]:
    """Return the meanings of a word.

    Raises:
        UsageError: For a word that no answer has; the message names the nearest ones.
    """
    meanings = known_words()
    wanted = _normalised(word)
    if meaning := next((meanings[form] for form in _forms(wanted) if form in meanings), None):
        return meaning
    if members := _members_called(word):
        return members
    nearest = get_close_matches(wanted, meanings, 3, 0.6)
    hint = f"; did you mean {' or '.join(nearest)}?" if nearest else "; `footprint explain` lists all"
    raise UsageError(f"no answer has the word {word[:80]!r}{hint}")


def _forms(word: str) -> Iterator[str]:
    """Return a word as a page may have it: as it is, without brackets at its end, with `n` for a number."""
    for form in (word, re.sub(r"(?<=\S) ?\([^()]{0,200}\)$", "", word)):
        yield form
        yield re.sub(r"(?<= )[0-9][0-9,.]{0,20}(?= |$)", "n", form)


def _members_called(key: str) -> tuple[Explanation, ...]:
    """Return what the members of JSON objects with a name mean, as the schema has them."""
    types = json.loads(SCHEMA_PATH.read_bytes())["$defs"]
    members = [(name, shape["properties"][key]) for name, shape in types.items() if key in shape.get("properties", ())]
    return tuple(
        [
            Explanation(f"{name}.{key}", (), "JSON", member.get("description", ""), "docs/json.md")
            for name, member in members
        ]
    )


def known_words() -> Mapping[str, tuple[Explanation, ...]]:
    """Return the meanings of every word, in the order of the pages."""
    meanings: dict[str, tuple[Explanation, ...]] = {}
    for explanation in _explanations():
        for word in (explanation.word, *explanation.also):
            key = _normalised(word)
            meanings[key] = (*meanings.get(key, ()), explanation)
    return meanings


def rule_page(name: str) -> str:
    """Return the page of a rule without its title, in Markdown; "" where it is not installed."""
    folder = _folder()
    if folder is None or name not in rule_names():
        return ""
    path = folder / "findings" / f"{name}.md"
    return path.read_text(encoding="utf-8").partition("\n")[2].strip() if path.is_file() else ""


def figure_rows() -> str:
    """Return the table of all figures in Markdown, as `docs/words.md` has it."""
    rows = [f"| {', '.join(f'`{w}`' for w in _names_of(figure))} | {_meaning(figure)} |" for figure in FIGURES.values()]
    return "\n".join(["| word | what it means |", "|---|---|", *rows])


def _names_of(figure: Figure) -> tuple[str, ...]:
    """Return the words for a figure: its key, its title, and its key without the unit."""
    short = figure.name.removesuffix("_bytes")
    is_title = short.replace("_", " ") == figure.title
    return tuple(dict.fromkeys((figure.name, figure.title, *(() if is_title else (short,)))))


def _meaning(figure: Figure) -> str:
    once = "N processes pay it once" if figure.adds_up is AddsUp.ONCE else ""
    return ". ".join(part for part in (figure.meaning, figure.detail.rstrip("."), once) if part)


def _normalised(word: str) -> str:
    """Return a word as it is looked up: text and JSON may write one word differently."""
    return word.strip().strip("`").lower()


def _folder() -> "Traversable | None":
    """Return the folder of the pages; None if they are not installed."""
    from importlib.resources import files  # noqa: PLC0415 # few answers have explanations

    # In a wheel and in a zipapp the pages lie in the package, in a checkout beside it.
    folders: tuple[Traversable, ...] = (files("footprint") / "docs", Path(__file__).resolve().parents[2] / "docs")
    return next((folder for folder in folders if (folder / "words.md").is_file()), None)


def _explanations() -> Iterator[Explanation]:
    folder = _folder()
    if folder is None:
        raise UsageError("the pages of the documentation are not installed")
    yield from _rows(figure_rows(), _FIGURES, "docs/words.md")
    for name, subject in (("words.md", ""), ("notes.md", "Notes")):
        rows = _rows((folder / name).read_text(encoding="utf-8"), subject, f"docs/{name}")
        yield from (row for row in rows if row.subject != _FIGURES)
    for name in rule_names():
        if page := rule_page(name):
            place = f"docs/findings/{name}.md"
            yield Explanation(name, (), "Findings", page, place)
            yield from _rows(page, f"Kinds of {name}", place)


def _rows(text: str, subject: str, page: str) -> Iterator[Explanation]:
    """Read the tables of a page: the first cell of a row has the words, the second what they mean."""
    heading = subject
    for line in text.split("\n"):
        if line.startswith("## ") and not subject:
            heading = line.removeprefix("## ")
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| `") else []
        words = [word for word in _WORD.findall(cells[0]) if word] if cells else []
        if words:
            texts = [without_links(cell) for cell in cells[1:] if cell]
            meaning, *cures = texts or [""]
            cure = f" What to do: {cures[0]}." if cures else ""
            yield Explanation(words[0], tuple(words[1:]), heading, f"{meaning}.{cure}", page)
