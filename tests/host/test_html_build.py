"""The script and style of the report: their types fit, and the committed files are what Node builds from them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parents[2] / "footprint" / "html" / "app"


@pytest.mark.parametrize("words", [["build.mjs", "--check"], ["node_modules/typescript/bin/tsc", "--noEmit"]])
def test_the_types_fit_and_the_committed_files_are_what_their_sources_build(words: list[str]) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is missing")
    if not (APP / "node_modules" / "esbuild").is_dir():
        pytest.skip("esbuild is missing: npm ci in footprint/html/app")
    done = subprocess.run(
        ["node", *words],
        cwd=APP,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
