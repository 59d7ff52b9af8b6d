"""Which programs footprint starts by itself: never one that a stranger may have put there."""

import os
from pathlib import Path

import pytest

from footprint.elf.names import shown_name
from footprint.process.launch.moment import Moment, When
from footprint.sources.demanglers import find_tool, learn_foreign_names
from footprint.verbs.run.massif import _under_valgrind, valgrind

IS_ROOT = os.geteuid() == 0
STRANGER = 54321


def program(folder: Path, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tool"
    path.write_text("#!/bin/sh\n", "ascii")
    path.chmod(mode)
    return path


def test_the_first_program_in_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "a", 0o644)
    paths = [program(tmp_path / "b"), program(tmp_path / "c")]
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "a"), *(str(path.parent) for path in paths)]))
    assert find_tool("tool") == str(paths[0])
    assert find_tool("other") is None


@pytest.mark.parametrize("entry", ["", ".", "bin", "../here/bin", ":", ".:bin"])
def test_nothing_is_found_where_we_happen_to_be(entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    program(here)
    program(here / "bin")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", entry)
    assert find_tool("tool") is None


@pytest.mark.parametrize("writable", ["above", "above/bin", "above/bin/tool"])
def test_nothing_is_found_that_anybody_may_replace(
    writable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path / "above" / "bin")
    link = tmp_path / "links" / "tool"
    link.parent.mkdir()
    link.symlink_to(path)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{link.parent}")
    assert find_tool("tool") == str(path)
    (tmp_path / writable).chmod(0o777)
    assert find_tool("tool") is None


@pytest.mark.skipif(not IS_ROOT, reason="only root may give files to others")
@pytest.mark.parametrize("given", ["shared/bin", "shared/bin/tool", None])
def test_below_a_folder_as_tmp_only_what_is_ours_is_found(
    given: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path / "shared" / "bin")
    path.parent.chmod(0o1777)
    path.parent.parent.chmod(0o1777)
    if given:
        os.chown(tmp_path / given, STRANGER, STRANGER)
    monkeypatch.setenv("PATH", str(path.parent))
    assert find_tool("tool") == (None if given else str(path))


def test_valgrind_of_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path).rename(tmp_path / "valgrind")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.pathsep}{tmp_path / 'none'}")
    with pytest.raises(Exception, match="it is not installed, or anybody may replace it"):
        valgrind()


def test_cxxfilt_of_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path).rename(tmp_path / "c++filt")
    path.write_text('#!/bin/sh\n: > ran\nexec /bin/sed "s/.*/demangled/"\n', "ascii")
    monkeypatch.chdir(tmp_path)
    for entries, ran in ((".", False), ("", False), (str(tmp_path), True)):
        monkeypatch.setenv("PATH", entries)
        name = f"_D3std5stdio4File{len(entries)}ran"
        learn_foreign_names([name])
        assert (tmp_path / "ran").exists() == ran
        assert shown_name(name) == ("demangled" if ran else name)


def test_under_valgrind_a_time_is_twenty_times_as_long_within_the_limit() -> None:
    for seconds, limit_seconds, expected_seconds in ((0.5, 600, 10), (60, 600, 600)):
        moment = _under_valgrind(Moment(When.TIME, seconds), limit_seconds)
        assert (moment.when, moment.seconds) == (When.TIME, expected_seconds)
