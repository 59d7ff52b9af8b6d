"""The versions of the site stand side by side, and are found without JavaScript."""

import json
from pathlib import Path

from shell import site_versions
from shell.check_site import Page


def test_the_newest_version_is_that_with_the_largest_number_and_the_list_leads_to_all(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "0.2.1", "_static"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    (tmp_path / "1.0").mkdir()  # without a page
    versions = site_versions.versions_of(tmp_path)
    assert versions == ["0.10.0", "0.9.0", "0.2.1"]
    site_versions.write(tmp_path, versions)
    assert json.loads((tmp_path / "versions.json").read_text()) == versions
    listed, first = (Page((tmp_path / name).read_text()) for name in ("versions.html", "index.html"))
    assert listed.links == ["0.10.0/index.html", "0.9.0/index.html", "0.2.1/index.html"]
    assert first.links == ["0.10.0/index.html"]
    assert '<meta http-equiv="refresh" content="0; url=0.10.0/index.html">' in (tmp_path / "index.html").read_text()
    assert (listed.language, listed.levels, first.language, first.levels) == ("en", [1], "en", [1])
