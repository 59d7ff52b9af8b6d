"""How Sphinx builds the site: `make docs`. The pages of the reference are written from the code first."""

import posixpath
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from footprint import __version__
from shell import reference

ADDRESS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]

project = "footprint"
author = "the footprint authors"
copyright = f"2026, {author}"  # noqa: A001 # the name that Sphinx asks for
release = version = __version__

extensions = ["myst_parser"]
myst_heading_anchors = 4
# Languages of examples that Pygments does not know, or reads differently.
highlight_language = "none"
nitpicky = True
exclude_patterns = ["examples/*/.*"]

html_theme = "furo"
html_title = f"footprint {__version__}"
html_static_path = ["static"]
html_css_files = ["footprint.css"]
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
        "versions.html",
    ]
}
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "source_repository": ADDRESS,
    "source_branch": "main",
    "source_directory": "docs/",
    "footer_icons": [],
}
# The pictures far below are loaded when the reader comes near them.
image_loading = "lazy"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# A list of their headings would be as long as these pages.
_LONG = {"json", "reference/api"}


def _outward(_app, name, source):  # noqa: ANN001, ANN202 # as Sphinx calls it
    """Lead links to files outside of the site to the repository."""
    folder = posixpath.dirname(f"docs/{name}")

    def lead(found):  # noqa: ANN001, ANN202 # one link, as `re.sub` finds it
        path = posixpath.normpath(posixpath.join(folder, found[1]))
        return found[0] if path.startswith("docs/") else f"]({ADDRESS}/blob/main/{path})"

    if name in _LONG:
        source[0] = f"---\nhide-toc: true\n---\n{source[0]}"
    source[0] = re.sub(r"\]\(((?:\.\./)+[A-Za-z][^)]*)\)", lead, source[0])


def _without_source(_app, name, _template, context, _tree) -> None:  # noqa: ANN001 # as Sphinx calls it
    """Leave out the links to the source of a page that is written from the code: the repository does not have it."""
    if name.startswith("reference/"):
        context["page_source_suffix"] = ""


def setup(app) -> None:  # noqa: ANN001 # Sphinx is installed for the site only
    """Write the reference, and read all pages."""
    reference.write(ROOT / "docs" / "reference")
    app.connect("source-read", _outward)
    app.connect("html-page-context", _without_source)
