"""The pages of the documentation, and the examples in them."""

import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ("GUIDES", "PAGES", "ROOT", "blocks", "commands")

ROOT = Path(__file__).resolve().parents[1]
# The tutorial and the how-to pages.
GUIDES = [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "findings").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str, pages: list[Path] | None = None) -> Iterator[tuple[str, str]]:
    """Find the blocks of a language, each with the name of its page."""
    for page in pages or PAGES:
        for found, text in _BLOCK.findall(page.read_text()):
            if found == language:
                yield page.name, text


def commands() -> list[tuple[str, str]]:
    """Return the commands with footprint that pages show at a prompt, each once, with the name of its first page."""
    found: dict[str, str] = {}
    for page, text in blocks("console"):
        for line in text.splitlines():
            if line.startswith("$ ") and "footprint" in line:
                found.setdefault(line[2:], page)
    return [(page, line) for line, page in found.items()]
