"""The table of systems that footprint was run on says with which release: none of them is long ago."""

import re
from pathlib import Path

from footprint import __version__

ROOT = Path(__file__).resolve().parents[2]
MOST_RELEASES_AGO = 2


def test_no_system_was_last_run_more_than_two_releases_ago() -> None:
    released = re.findall(r"^## \[([0-9][^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    releases = list(dict.fromkeys([__version__, *released]))
    text = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    title, _, *_ = rows
    systems = [row for row in rows[2:] if len(row) == len(title)]
    assert title == ["system", "kernel", "what was run", "deviation", "date", "release"]
    assert len(systems) >= 3
    for system, *_, date, release in systems:
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", date), system
        assert releases.index(release) <= MOST_RELEASES_AGO, f"{system} was last run with {release}"
