"""Check a built site: links, headings, alternative texts, contrast, and what a page weighs. `make docs` runs it.

python shell/check_site.py build/site
"""

import re
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

# What a browser loads for a page, compressed as servers send it, without pictures, which it loads when they are near.
MOST_PAGE_BYTES: Final = 300_000
MOST_PICTURE_BYTES: Final = 100_000
LEAST_CONTRAST: Final = 4.5  # WCAG 2, level AA
_COLOURS: Final = (
    ("foreground-primary", "background-primary"),
    ("foreground-secondary", "background-secondary"),
    ("foreground-muted", "background-secondary"),
    ("brand-content", "background-primary"),
    ("brand-visited", "background-primary"),
    ("brand-primary", "background-secondary"),
)
_ROOT: Final = Path(__file__).resolve().parents[1]
# How a link to a file of the repository begins, whoever owns it.
_OF_REPOSITORY: Final = re.compile(r"https://github\.com/[^/]+/footprint/blob/main/")
# Pages that Sphinx makes, without text of their own.
_MADE: Final = {"genindex.html", "search.html"}


class Page(HTMLParser):
    """What a page has: headings, targets of links, pictures, styles and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.names: set[str] = set()
        self.links: list[str] = []
        self.pictures: list[dict[str, str | None]] = []
        self.loaded: list[str] = []
        self.language = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what one element says."""
        given = dict(attrs)
        self.names.add(given.get("id") or "")
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        elif tag == "html":
            self.language = given.get("lang") or ""
        elif tag == "a":
            self.links.append(given.get("href") or "")
        elif tag == "img":
            self.pictures.append(given)
        elif tag == "script" and given.get("src"):
            self.loaded.append(given["src"] or "")
        elif tag == "link" and given.get("rel") == "stylesheet":
            self.loaded.append(given.get("href") or "")


def problems(site: Path) -> Iterator[str]:
    """Find everything that is wrong with a site."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site)
        yield from (f"{name}: {text}" for text in _of_links(path, page, pages))
        yield from (f"{name}: {text}" for text in _of_page(path, page))
    for picture in site.rglob("*.png"):
        if picture.stat().st_size > MOST_PICTURE_BYTES:
            yield f"{picture.relative_to(site)}: {picture.stat().st_size} bytes, more than {MOST_PICTURE_BYTES}"
    yield from contrasts((site / "_static" / "styles" / "furo.css").read_text(encoding="utf-8"))
    yield from code_contrasts((site / "_static" / "pygments.css").read_text(encoding="utf-8"))


def _of_links(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    for link in page.links:
        parts = urlsplit(link)
        begin = _OF_REPOSITORY.match(link)
        if begin is not None and not (_ROOT / unquote(urlsplit(link[begin.end() :]).path)).exists():
            yield f"{link} leads to no file of the repository"
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.exists():
            yield f"{link} leads nowhere"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
            yield f"{link} leads to no place of that page"


def _of_page(path: Path, page: Page) -> Iterator[str]:
    if path.name not in _MADE:
        if page.levels.count(1) != 1:
            yield f"{page.levels.count(1)} headings of the first level"
        yield from (
            f"a heading of level {after} follows one of level {before}"
            for before, after in pairwise(page.levels)
            if after > before + 1
        )
    if not page.language:
        yield "no language"
    yield from (f"{picture.get('src')} has no alternative text" for picture in page.pictures if not picture.get("alt"))
    files = [path, *(path.parent / urlsplit(one).path for one in page.loaded)]
    weight_bytes = sum(len(zlib.compress(file.read_bytes())) for file in files)
    if weight_bytes > MOST_PAGE_BYTES:
        yield f"it weighs {weight_bytes} bytes, more than {MOST_PAGE_BYTES}"


def contrasts(style: str) -> Iterator[str]:
    """Find pairs of colours of the theme, light and dark, that are hard to read."""
    blocks = re.findall(r"([^{}]*)\{([^{}]*--color-foreground-primary:[^{}]*)\}", style)
    for selector, block in blocks:
        colours = dict(re.findall(r"--color-([\w-]+):(#[0-9a-f]{3,6})\b", block))
        for text, ground in _COLOURS:
            if (found := contrast(colours[text], colours[ground])) < LEAST_CONTRAST:
                yield f"{selector}: {text} on {ground} has a contrast of {found:.1f}"


def code_contrasts(style: str) -> Iterator[str]:
    """Find colours of code, light and dark, that are hard to read."""
    grounds = re.findall(r"^(.*)\.highlight \{ background: (#\w+)", style, re.MULTILINE)
    for prefix, ground in grounds:
        coloured = re.compile(rf"^{re.escape(prefix)}\.highlight (\.\w+) \{{ color: (#\w+)", re.MULTILINE)
        for name, colour in coloured.findall(style):
            if (found := contrast(colour, ground)) < LEAST_CONTRAST:
                yield f"{prefix}{name} has a contrast of {found:.1f}"


def contrast(first: str, other: str) -> float:
    """Return the contrast of two colours such as `#fff`, as WCAG 2 defines it."""
    darker, lighter = sorted((_luminance(first), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(one * 2 for one in colour[1:])
    shares = (int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4))
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1]).resolve()))
    sys.stderr.writelines(f"{one}\n" for one in found)
    sys.exit(bool(found))
