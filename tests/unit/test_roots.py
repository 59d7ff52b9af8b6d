"""Paths below another root: whatever is in it, no path leads out of it."""

import errno
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from footprint.process.mappings import open_regular
from footprint.system import roots
from footprint.system.limits import answer
from footprint.system.roots import enter_root, open_path, path_inside, stat_path
from tests.workcount import work_of


@pytest.fixture(params=["openat2", "name by name"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A root, with a file beside it that is not to be reached."""

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    if request.param != "openat2":
        monkeypatch.setattr(roots, "_open_in_root", refuse)
    found = tmp_path / "root"
    (found / "lib").mkdir(parents=True)
    (found / "lib/file").write_bytes(b"inside")
    (tmp_path / "file").write_bytes(b"outside")
    return str(found)


def read(path: str) -> bytes:
    descriptor = open_path(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 100)
    finally:
        os.close(descriptor)


@answer
def test_links_and_steps_up_stay_in_the_root(root: str) -> None:
    enter_root(root)
    os.symlink("/lib", f"{root}/absolute")
    os.symlink("../../../lib/./file", f"{root}/lib/up")
    for path in ("/lib/file", "/absolute/file", "/lib/up", "/../lib/../../lib//file", "/absolute/../lib/file"):
        assert read(root + path) == b"inside"
        assert stat_path(root + path).st_size == 6
    assert stat_path(f"{root}/..").st_ino == os.stat(root).st_ino


@answer
def test_what_is_outside_is_not_found(root: str, tmp_path: Path) -> None:
    enter_root(root)
    os.symlink("../../file", f"{root}/lib/out")
    os.symlink(tmp_path, f"{root}/away")
    for path in ("/../file", "/lib/out", "/away/file"):
        with pytest.raises(OSError, match="No such file"):
            open_path(root + path, os.O_RDONLY)


@answer
def test_links_of_proc_lead_nowhere_or_into_the_root(root: str) -> None:
    # A process with the file system of /proc in its root can have links there that jump to any file.
    enter_root("/proc/self")
    del root
    with pytest.raises(OSError, match=r"Too many levels|No such file"):
        open_path("/proc/self/cwd/etc/passwd", os.O_RDONLY)


@answer
def test_links_that_go_round_in_circles_end(root: str) -> None:
    enter_root(root)
    os.symlink("loop", f"{root}/loop")
    with pytest.raises(OSError, match="Too many levels"):
        open_path(f"{root}/loop", os.O_RDONLY)


@answer
def test_a_folder_that_is_replaced_by_a_link_after_it_was_resolved_leads_nowhere(root: str, tmp_path: Path) -> None:
    path = path_inside(root, "/lib/file")
    os.rename(f"{root}/lib", f"{root}/old")
    os.symlink(tmp_path, f"{root}/lib")
    assert open_regular(path, None) == "No such file or directory"


SWAP = """
import os, sys
folder, link, away = sys.argv[1:]
print("ready", flush=True)
while True:
    os.rename(folder, away)
    os.rename(link, folder)
    os.rename(folder, link)
    os.rename(away, folder)
"""


@answer
def test_a_folder_that_others_swap_for_a_link_all_the_time_leads_nowhere(root: str, tmp_path: Path) -> None:
    enter_root(root)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_bytes(b"outside")
    os.symlink("../outside", f"{root}/link")
    places = [f"{root}/{name}" for name in ("lib", "link", "away")]
    result = set()
    with subprocess.Popen([sys.executable, "-S", "-c", SWAP, *places], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for number in range(2000):
            with suppress(OSError):
                result.add(read(root + ("/lib/file" if number % 2 else "/lib/../lib/file")))
        process.kill()
    assert result <= {b"inside"}


def test_the_root_of_a_process_needs_no_entering() -> None:
    assert stat_path(f"/proc/{os.getpid()}/root/proc/self/../../etc").st_ino == os.stat("/etc").st_ino
    assert stat_path(f"/proc/{os.getpid()}/root").st_ino == os.stat("/").st_ino


def test_descriptors_are_closed(root: str) -> None:
    @answer
    def call() -> None:
        enter_root(root)
        os.symlink("../lib/file", f"{root}/lib/link")
        before = len(os.listdir("/proc/self/fd"))
        assert read(f"{root}/lib/../lib/link") == b"inside"
        with pytest.raises(OSError, match="No such file"):
            open_path(f"{root}/lib/../none/x", os.O_RDONLY)
        assert len(os.listdir("/proc/self/fd")) == before

    call()


def test_a_root_is_left_with_the_answer(root: str, tmp_path: Path) -> None:
    os.symlink("../file", f"{root}/out")
    answer(lambda: enter_root(root))()
    assert read(f"{root}/out") == (tmp_path / "file").read_bytes()


def test_a_path_costs_the_same_however_many_roots_were_entered(root: str) -> None:
    @answer
    def call() -> None:
        enter_root(root)
        few = work_of(lambda: stat_path(f"{root}/lib/file"))
        for number in range(1000):
            enter_root(f"{root}{number}")
        assert work_of(lambda: stat_path(f"{root}/lib/file")).line_count < 1.1 * few.line_count + 10

    call()
