"""The script and style of the report: the committed files are what Node builds from their sources."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parents[2] / "footprint" / "html" / "app"


def test_the_committed_files_are_what_their_sources_build() -> None:
    if shutil.which("node") is None:
        pytest.skip("node is missing")
    if not (APP / "node_modules" / "esbuild").is_dir():
        pytest.skip("esbuild is missing: npm ci in footprint/html/app")
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["node", "build.mjs", "--check"],
        cwd=APP,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
