"""Write what joins the versions of a site, each in a folder of its own: the list of them, and the way to the newest.

python shell/site_versions.py build/site

`versions.html` is the list for readers, `versions.json` for programs, and `index.html` leads to the newest version.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_VERSION: Final = re.compile(r"\d+(?:\.\d+)*")
_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">{head}
<title>{title}</title>
<style>body {{ font: 1.1em/1.6 sans-serif; margin: 2em auto; max-width: 40em; padding: 0 1em }}</style>
<h1>{title}</h1>
{body}
"""


def versions_of(site: Path) -> list[str]:
    """Return the versions that a site has folders of, the newest first."""
    names = [path.parent.name for path in site.glob("*/index.html") if _VERSION.fullmatch(path.parent.name)]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")], reverse=True)


def write(site: Path, versions: Sequence[str]) -> None:
    """Write the pages beside the folders of the versions."""
    newest = versions[0]
    items = [f'<li><a href="{one}/index.html">{one}</a>{" (newest)" * (one == newest)}</li>' for one in versions]
    listed = "\n".join(["<ul>", *items, "</ul>"])
    lead = f'\n<meta http-equiv="refresh" content="0; url={newest}/index.html">'
    to_newest = f'<p><a href="{newest}/index.html">Version {newest}</a> is the newest.</p>'
    (site / "versions.json").write_text(json.dumps(versions) + "\n")
    (site / "versions.html").write_text(_PAGE.format(head="", title="All versions of footprint", body=listed))
    (site / "index.html").write_text(_PAGE.format(head=lead, title="footprint", body=to_newest))


if __name__ == "__main__":
    write(Path(sys.argv[1]), versions_of(Path(sys.argv[1])))
