"""The HTML file around the data: it loads nothing from anywhere."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final

from footprint.html.static import text_html

__all__ = ("SCRIPT_PATH", "STYLE_PATH", "html_file")

SCRIPT_PATH: Final = Path(__file__).with_name("app.js")
STYLE_PATH: Final = Path(__file__).with_name("app.css")
_LONGEST_TITLE: Final = 200


def html_file(title: str, data: str, static: str) -> str:
    """Write the HTML file of a report.

    Args:
        title: The title of the window; a long one is cut.
        data: The data that the script shows, in base64.
        static: The HTML that is shown where the script does not run.
    """
    # In a zipapp they are no files of their own.
    folder = files(__package__)
    script = (folder / SCRIPT_PATH.name).read_text(encoding="utf-8")
    style = (folder / STYLE_PATH.name).read_text(encoding="utf-8")
    # The browser runs only the script and applies only the style with these hashes, and it loads nothing, so a name in
    # the data can do nothing.
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{text_html(title[:_LONGEST_TITLE])}</title>
<style>{style}</style>
</head>
<body>
<main id="app" hidden></main>
<main id="static">
<h1>{text_html(title[:_LONGEST_TITLE])}</h1>
{static}
</main>
<script type="application/octet-stream" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")
