"""The options of debug files, and what the answers say of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from footprint.cli import main
from tests.debugpairs import BUILD_ID_PATH, debug, mini, stripped


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a stripped library, whose debug file is in a folder `debug` beside it."""
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "none"))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    place = tmp_path / "debug" / BUILD_ID_PATH
    place.parent.mkdir(parents=True)
    place.write_bytes(debug())
    (tmp_path / "libdemo.so").write_bytes(stripped())
    return str(tmp_path / "libdemo.so")


def said(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Return what the command says, its errors where it fails."""
    assert main([*words]) == code
    out, error = capfd.readouterr()
    return error if code else out


def test_symbols_says_from_which_debug_file_the_names_are(library: str, capfd: pytest.CaptureFixture[str]) -> None:
    folder = str(Path(library).parent / "debug")
    first, *rest = said(capfd, "symbols", library, "--debug-dir", folder).splitlines()
    assert first == f"{library}: 5 symbols in .symtab of {folder}/{BUILD_ID_PATH}"
    assert any("zeros" in line for line in rest)
    assert said(capfd, "symbols", library).startswith(f"{library}: 2 symbols in .dynsym, stripped: only exported names")


def test_symbols_of_several_files_says_it_of_each(library: str, capfd: pytest.CaptureFixture[str]) -> None:
    folder = Path(library).parent
    (folder / "other.so").write_bytes(stripped(mini(debug())))
    text = said(capfd, "symbols", library, str(folder / "other.so"), "--debug-dir", str(folder / "debug"))
    # The lines are as wide as a page, and no path is cut.
    words = f"The names in {library}, which is stripped, are from {folder}/debug/{BUILD_ID_PATH}."
    assert words in " ".join(text.split())


def test_symbols_says_that_names_are_from_mini_debug_info(library: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path(library).write_bytes(stripped(mini(debug())))
    first = said(capfd, "symbols", library).splitlines()[0]
    assert first.endswith("symbols in .gnu_debugdata and .dynsym, stripped: exported names and a few more")
    assert ".dynsym, stripped: only" in said(capfd, "symbols", library, "--no-debug-files")


def test_json_has_the_debug_file(library: str, capfd: pytest.CaptureFixture[str]) -> None:
    folder = str(Path(library).parent / "debug")
    found: Any = json.loads(said(capfd, "symbols", library, "--json", "--debug-dir", folder))
    assert {row["debug_file"] for row in found["sections"]} == {f"{folder}/{BUILD_ID_PATH}"}
    found = json.loads(said(capfd, "symbols", library, "--json"))
    assert {row["debug_file"] for row in found["sections"]} == {None}


def test_an_audit_of_a_program_says_from_which_debug_files_the_names_are(
    library: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = str(Path(library).parent / "debug")
    text = said(capfd, "audit", library, "--debug-dir", folder, "-v")
    assert f"The names in {library}, which is stripped, are from" in " ".join(text.split())
    found: Any = json.loads(said(capfd, "audit", library, "--debug-dir", folder, "--json"))
    assert {"owner": library, "file": f"{folder}/{BUILD_ID_PATH}"} in found["debug_files"]
    assert json.loads(said(capfd, "audit", library, "--no-debug-files", "--json"))["debug_files"] == []


@pytest.mark.parametrize("verb", ["symbols", "audit"])
@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--no-debug-files", "--debuginfod"], "--no-debug-files goes with neither --debug-dir nor --debuginfod"),
        (["--debug-dir", "/no/such/folder"], "/no/such/folder is not a folder"),
        (["--debuginfod"], "DEBUGINFOD_URLS"),
    ],
)
def test_options_that_cannot_be_followed_are_wrong_use(
    library: str, capfd: pytest.CaptureFixture[str], verb: str, options: list[str], error: str
) -> None:
    assert error in said(capfd, verb, library, *options, code=2)
