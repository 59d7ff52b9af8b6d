"""What strangers put where an output goes is refused, and what it leads to stays as it is; for root and for others."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STRANGER, ORDINARY = 65533, 65532
PROTECTION = Path("/proc/sys/fs/protected_symlinks")

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can act as two other users"
)
OUTPUTS = {
    "audit": ["audit", "PID", "-o", "OUT"],
    "audit --html": ["audit", "PID", "-q", "--html", "OUT"],
    "audit --json": ["audit", "PID", "--json", "-o", "OUT"],
    "capture": ["capture", "PID", "-o", "OUT"],
    "watch": ["watch", "PID", "--for", "200ms", "--every", "100ms", "-o", "OUT"],
    "trend --add": ["trend", "--add", "/bin/true", "--version", "1", "--history", "OUT"],
}
by_each_output = pytest.mark.parametrize("words", OUTPUTS.values(), ids=OUTPUTS)


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """Make a folder that every user can enter."""
    folder = Path("/tmp") / f"footprint-strangers-{os.getpid()}"  # noqa: S108 # its own name, and made for all
    folder.mkdir()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=[0, ORDINARY], ids=["root", "an ordinary user"])
def user(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def sleeper(user: int) -> Iterator[int]:
    """Start a process of the user."""
    with subprocess.Popen([*acting_as(user), "sleep", "1000"]) as started:
        yield started.pid
        started.kill()


@pytest.fixture(params=["0", "1"], ids=["unprotected links", "protected links"])
def protection(request: pytest.FixtureRequest) -> Iterator[str]:
    """Set whether the kernel itself refuses links of strangers in folders like /tmp."""
    before = PROTECTION.read_text()
    try:
        PROTECTION.write_text(request.param)
    except OSError as error:
        pytest.skip(f"this machine keeps its setting: {error}")
    yield request.param
    PROTECTION.write_text(before)


@pytest.fixture
def shared(base: Path, user: int, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Make a folder like /tmp, and one of the user alone in which a file stands that only the user may read."""
    folder, home = base / "shared", base / "home"
    folder.mkdir()
    folder.chmod(getattr(request, "param", 0o1777))
    home.mkdir()
    (home / "precious").write_bytes(b"PRECIOUS\n")
    for path in (home, home / "precious"):
        os.chown(path, user, user)
        path.chmod(0o700 if path == home else 0o600)
    yield folder
    shutil.rmtree(folder)
    shutil.rmtree(home)


def acting_as(user: int) -> list[str]:
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []


def footprint(user: int, words: list[str], pid: int, out: Path) -> "subprocess.CompletedProcess[bytes]":
    given = {"PID": str(pid), "OUT": str(out)}
    command = [*acting_as(user), sys.executable, "-m", "footprint", *[given.get(word, word) for word in words]]
    # Whoever opens a pipe without a reader waits for ever: that is the error which the patience here tells.
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=120, stdin=subprocess.DEVNULL)


def check_refused(done: "subprocess.CompletedProcess[bytes]", home: Path) -> None:
    assert done.returncode == 3, done.stderr
    assert done.stderr.count(b"footprint: ") == 1
    assert b"Traceback" not in done.stderr
    assert (home / "precious").read_bytes() == b"PRECIOUS\n"
    assert os.listdir(home) == ["precious"]


@by_each_output
@pytest.mark.parametrize("shared", [0o1777, 0o777], ids=["like /tmp", "open to all"], indirect=True)
def test_a_strangers_link_is_refused(
    shared: Path, base: Path, user: int, protection: str, sleeper: int, words: list[str]
) -> None:
    assert PROTECTION.read_text().strip() == protection
    for target in ("precious", "new"):
        link = shared / target
        link.symlink_to(base / "home" / target)
        os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
        check_refused(footprint(user, words, sleeper, link), base / "home")
        assert link.is_symlink()


@by_each_output
def test_a_strangers_file_and_pipe_are_refused(
    shared: Path, base: Path, user: int, sleeper: int, words: list[str]
) -> None:
    file, pipe = shared / "file", shared / "pipe"
    file.write_bytes(b"")
    os.mkfifo(pipe)
    for path in (file, pipe):
        path.chmod(0o666)
        os.chown(path, STRANGER, STRANGER)
        check_refused(footprint(user, words, sleeper, path), base / "home")
    assert file.read_bytes() == b""
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_scan_writes_into_no_folder_that_a_stranger_may_change(shared: Path, base: Path, user: int) -> None:
    dataset = shared / "dataset"
    dataset.mkdir()
    (dataset / "programs").symlink_to(base / "home")
    for path in (dataset / "programs", dataset):
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    for folder in (dataset, shared):
        done = footprint(user, ["scan", "/bin/true", "-o", "OUT"], 0, folder)
        check_refused(done, base / "home")
    assert os.listdir(dataset) == ["programs"]
    assert os.listdir(shared) == ["dataset"]


def test_a_folder_of_ones_own_takes_everything(shared: Path, base: Path, user: int, sleeper: int) -> None:
    assert shared.is_dir()
    for name, words in OUTPUTS.items():
        done = footprint(user, words, sleeper, base / "home" / name)
        assert done.returncode == 0, done.stderr
        assert (base / "home" / name).stat().st_size
    done = footprint(user, ["scan", "/bin/true", "-o", "OUT"], 0, base / "home" / "dataset")
    # The interpreter of root may be in a folder that is closed to others.
    starts = subprocess.run(
        [*acting_as(user), "sh", "-c", f"{sys.executable} -c pass"], check=False, capture_output=True
    )
    if starts.returncode == 0:
        assert done.returncode == 0, done.stderr
    else:
        assert (done.returncode, done.stderr) == (3, b"footprint: scan: no worker can be started: Permission denied\n")
