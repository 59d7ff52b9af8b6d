"""The page around the data: one file, which asks nobody for anything."""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Final

from footprint.html.static import text_html

__all__ = ("SCRIPT_PATH", "STYLE_PATH", "page")

SCRIPT_PATH: Final = Path(__file__).with_name("app.js")
STYLE_PATH: Final = Path(__file__).with_name("app.css")
_LONGEST_TITLE: Final = 200


def page(title: str, data: str, static: str) -> str:
    """Put a page together.

    Args:
        title: Its title; it is cut where it is long.
        data: What the script shows, in base64.
        static: HTML that stands for it where the script does not run, and on paper.
    """
    script = SCRIPT_PATH.read_text(encoding="utf-8")
    style = STYLE_PATH.read_text(encoding="utf-8")
    # Nothing runs or is drawn but what has these hashes, and nothing is fetched: whatever a name in the data says.
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
<h1>footprint</h1>
{static}
</main>
<script type="application/octet-stream" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")
