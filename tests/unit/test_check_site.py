"""The check of the site finds what is wrong with a page."""

from pathlib import Path

import pytest

from shell import check_site

STYLE = (
    "body{"
    + ";".join(
        f"--color-{name}:{value}"
        for name, value in {
            "foreground-primary": "#000",
            "foreground-secondary": "#333",
            "foreground-muted": "#999",
            "background-primary": "#fff",
            "background-secondary": "#eee",
            "brand-content": "#00f",
            "brand-visited": "#808",
            "brand-primary": "#00f",
        }.items()
    )
    + "}"
)


def test_contrast_is_that_of_wcag() -> None:
    assert check_site.contrast("#000", "#ffffff") == pytest.approx(21)
    assert check_site.contrast("#767676", "#fff") == pytest.approx(4.54, abs=0.01)


def test_each_mistake_of_a_page_is_named(tmp_path: Path) -> None:
    for folder, text in (("styles/furo.css", STYLE), ("pygments.css", ".highlight { background: #fff }\n")):
        path = tmp_path / "_static" / folder
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    file = "https://github.com/OWNER/footprint/blob/main"
    (tmp_path / "sound.html").write_text(
        f'<html lang="en"><h1 id="a">A</h1><a href="page.html#b">b</a><a href="{file}/README.md#c">c</a></html>'
    )
    (tmp_path / "page.html").write_text(
        '<html><h1>A</h1><h3 id="b">B</h3><img src="x.png"><a href="none.html">c</a><a href="sound.html#c">d</a>'
        f'<a href="{file}/commands.md">e</a></html>'
    )
    (tmp_path / "x.png").write_bytes(b"x" * 100_001)
    assert list(check_site.problems(tmp_path)) == [
        "page.html: none.html leads nowhere",
        "page.html: sound.html#c leads to no place of that page",
        f"page.html: {file}/commands.md leads to no file of the repository",
        "page.html: a heading of level 3 follows one of level 1",
        "page.html: no language",
        "page.html: x.png has no alternative text",
        "x.png: 100001 bytes, more than 100000",
        "body: foreground-muted on background-secondary has a contrast of 2.5",
    ]
