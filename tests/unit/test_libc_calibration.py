"""What is kept of a C library's first steps; measuring it is for the oracle tests."""

import json
from pathlib import Path
from typing import Any

import pytest

from footprint.attribution.object_prediction import UNKNOWN_LIBC, LibcStart
from footprint.elf.image import Image, read_image
from footprint.sources.calibration import keep
from footprint.sources.startup_write_calibration import load_libc_start
from tests.elfwriter import RW, ElfFile, Section, write

ID = bytes(range(20))
KEPT: dict[str, Any] = {"page_bytes": 4096, "pages": [473, 481]}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of calibrations, which is not there yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "footprint" / "libc.json"


def libc(identity: bytes = ID) -> Image:
    file = ElfFile(sections=[Section(".data", flags=RW, data=bytes(8))], build_id=identity)
    return read_image(write(file), "libc.so.6")


def test_a_library_that_was_not_calibrated_is_assumed_to_be_like_ours(state: Path) -> None:
    assert load_libc_start(libc()) == UNKNOWN_LIBC
    assert UNKNOWN_LIBC.is_assumed
    assert not state.exists()


def test_what_was_kept_is_for_that_build_only(state: Path) -> None:
    keep(str(state), "libcs", {ID.hex(): KEPT})
    found = load_libc_start(libc())
    assert found == LibcStart((473, 481), 4096, 2, "calibrated for this build")
    assert not found.is_assumed
    assert load_libc_start(libc(bytes(20))) == UNKNOWN_LIBC
    assert load_libc_start(libc(b"")) == UNKNOWN_LIBC


def test_a_library_may_write_nothing_in_itself(state: Path) -> None:
    keep(str(state), "libcs", {ID.hex(): KEPT | {"pages": []}})
    found = load_libc_start(libc())
    assert (found.pages, found.is_assumed) == ((), False)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"kernels": {}}',
        json.dumps({"libcs": {ID.hex(): 7}}),
        json.dumps({"libcs": {ID.hex(): {}}}),
        json.dumps({"libcs": {ID.hex(): KEPT | {"page_bytes": 4095}}}),
        json.dumps({"libcs": {ID.hex(): KEPT | {"page_bytes": True}}}),
        json.dumps({"libcs": {ID.hex(): KEPT | {"pages": 7}}}),
        json.dumps({"libcs": {ID.hex(): KEPT | {"pages": [1.5]}}}),
        json.dumps({"libcs": {ID.hex(): KEPT | {"pages": [0] * 2000}}}),
    ],
)
def test_a_damaged_file_is_a_note_and_what_is_assumed(state: Path, text: str) -> None:
    state.parent.mkdir()
    state.write_text(text, encoding="utf-8")
    found = load_libc_start(libc())
    assert [(note.slug, note.subject) for note in found.notes] == [("calibration-unreadable", str(state))]
    assert (found.count, found.is_assumed) == (UNKNOWN_LIBC.count, True)
