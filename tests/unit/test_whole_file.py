"""Tests of the one writer: what is written is there whole or not at all, and what it is written to stays what it is."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from footprint.errors import AccessError
from footprint.system import whole_file as module
from footprint.system.whole_file import open_kept, own_folder, refuse_shared_place, whole_file, write_file

IS_ROOT = os.geteuid() == 0
STRANGER = 54321


def run(code: str, *arguments: object, **options: int) -> "subprocess.CompletedProcess[bytes]":
    """Run some lines of Python that may use both functions."""
    head = "import os, resource, signal, sys\nfrom footprint.system.whole_file import whole_file, write_file\n"
    words = [sys.executable, "-c", head + code, *map(str, arguments)]
    return subprocess.run(words, check=False, capture_output="stdout" not in options, timeout=60, **options)  # type: ignore[call-overload,no-any-return]


def test_an_empty_name_is_shown_as_one() -> None:
    with pytest.raises(AccessError, match=r"^'': No such file or directory$"):
        write_file("", b"answer")


@pytest.mark.parametrize("error", [None, OSError, KeyboardInterrupt])
def test_a_file_is_written_whole_or_not_at_all(error: type[BaseException] | None, tmp_path: Path) -> None:
    path = tmp_path / "answer"
    path.write_bytes(b"old")
    with suppress(OSError, KeyboardInterrupt), whole_file(str(path)) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
        if error is not None:
            raise error
    assert path.read_bytes() == (b"new" if error is None else b"old")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("mode", "umask", "expected"), [(0o666, 0o027, 0o640), (0o600, 0o022, 0o600)])
def test_a_new_file_has_the_mode_asked_for_less_the_umask(mode: int, umask: int, expected: int, tmp_path: Path) -> None:
    path = tmp_path / "answer"
    before = os.umask(umask)
    try:
        write_file(path, b"new", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == expected


@pytest.mark.parametrize(("mode", "expected"), [(0o640, 0o640), (0o666, 0o666), (0o4755, 0o755)])
def test_a_file_keeps_its_mode_but_for_setuid(mode: int, expected: int, tmp_path: Path) -> None:
    path = tmp_path / "answer"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_file(path, b"new", mode=0o600)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == expected


def test_a_file_for_its_owner_alone_is_narrowed_before_it_holds_anything(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    path.write_bytes(b"old")
    path.chmod(0o666)
    with whole_file(str(path), mode=0o600, keeps_mode=False) as file:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        file.write(b"secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == b"secret"


@pytest.mark.skipif(not IS_ROOT, reason="only root may change owners")
def test_a_file_keeps_its_owner_and_group(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    path.write_bytes(b"old")
    os.chown(path, STRANGER, STRANGER + 1)
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert (path.stat().st_uid, path.stat().st_gid) == (STRANGER, STRANGER + 1)


def test_a_file_keeps_its_extended_attributes(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.origin", b"a build")
    except OSError:
        pytest.skip("the file system has none")
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.getxattr(path, "user.origin") == b"a build"


@pytest.mark.parametrize("old", [b"old", None])
def test_a_link_stays_and_what_it_leads_to_is_written(old: bytes | None, tmp_path: Path) -> None:
    target = tmp_path / "folder" / "target"
    target.parent.mkdir()
    if old is not None:
        target.write_bytes(old)
    (tmp_path / "second").symlink_to("folder/target")
    (tmp_path / "first").symlink_to(tmp_path / "second")
    write_file(tmp_path / "first", b"new")
    assert target.read_bytes() == b"new"
    assert not target.is_symlink()
    assert os.readlink(tmp_path / "first") == str(tmp_path / "second")
    assert os.readlink(tmp_path / "second") == "folder/target"
    assert list(target.parent.iterdir()) == [target]


def test_where_a_link_leads_to_nothing_an_error_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(OSError, match="damaged"), whole_file(str(tmp_path / "link")):
        raise OSError("damaged")
    assert os.listdir(tmp_path) == ["link"]


@pytest.mark.parametrize("error", [None, OSError])
def test_a_pipe_gets_all_or_nothing(error: type[OSError] | None) -> None:
    read_end, write_end = os.pipe()
    try:
        with suppress(OSError), whole_file(f"/dev/fd/{write_end}") as file:
            file.write(b"text")
            if error is not None:
                raise error
        os.close(write_end)
        assert os.read(read_end, 100) == (b"text" if error is None else b"")
    finally:
        os.close(read_end)


def test_a_named_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_file(path, b"text")
    reader.join(10)
    assert read == [b"text"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_terminal_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    master, slave = os.openpty()
    try:
        path = os.ttyname(slave)
        (tmp_path / "link").symlink_to(path)
        write_file(tmp_path / "link", b"text")
        assert os.read(master, 100) == b"text"
        assert stat.S_ISCHR(os.stat(path).st_mode)
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.skipif(not IS_ROOT, reason="only root may make devices")
def test_a_device_of_root_stays_a_device(tmp_path: Path) -> None:
    path = tmp_path / "null"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        (tmp_path / "link").symlink_to("null")
        for name in ("null", "link"):
            with suppress(AccessError):  # of a file system mounted with nodev
                write_file(tmp_path / name, b"text")
    except PermissionError:
        pytest.skip("no device can be made here")
    assert stat.S_ISCHR(path.lstat().st_mode)
    assert (tmp_path / "link").is_symlink()


def test_what_the_shell_has_opened_is_written_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    with path.open("wb") as file:
        file.write(b"before, ")
        file.flush()
        done = run("write_file('/dev/stdout', b'text')\nos.write(1, b', after')", stdout=file.fileno())
    assert done.returncode == 0
    assert path.read_bytes() == b"before, text, after"


def test_a_closed_descriptor_is_an_error_and_no_file() -> None:
    done = run("os.close(1)\nwrite_file('/dev/stdout', b'text')")
    assert done.stderr.endswith(b"AccessError: /dev/stdout: Bad file descriptor\n")


@pytest.mark.parametrize("overwrites", ["yes", "no"])
def test_a_full_disk_leaves_the_old_file(overwrites: str, tmp_path: Path) -> None:
    path = tmp_path / "answer"
    path.write_bytes(b"old")
    lines = """
from footprint.system import whole_file as module
def fail(*_):
    raise PermissionError(13, "the folder takes no file")
if sys.argv[2] == "yes":
    module._create = fail
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
write_file(sys.argv[1], bytes(1_000_000))
"""
    done = run(lines, path, overwrites)
    assert b"AccessError: " in done.stderr
    assert done.stderr.endswith(b"answer: File too large\n")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_command_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    path.write_bytes(b"old")
    lines = """
with whole_file(sys.argv[1]) as file:
    file.write(bytes(1_000_000))
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run(lines, path).returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("name", ["_create", "_keep_facts", "_replace"])
@pytest.mark.parametrize("text", [b"longer than the old text", b"new", b""])
def test_a_file_that_cannot_be_replaced_is_overwritten(
    name: str, text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EBUSY, "a file is mounted on it")

    path = tmp_path / "answer"
    path.write_bytes(b"the old text")
    inode = path.stat().st_ino
    monkeypatch.setattr(module, name, fail)
    write_file(path, text)
    assert path.read_bytes() == text
    assert path.stat().st_ino == inode
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", ["missing/answer", ".", "answer/", "a\0b", ""])
def test_a_path_that_cannot_be_written_is_an_error(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AccessError):
        write_file(path, b"text")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/", ".", "old", "old/"])
def test_a_folder_is_called_one(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old").mkdir()
    with pytest.raises(AccessError, match="Is a directory"):
        write_file(path, b"text")


# --- strangers --------------------------------------------------------------------------------------------------------

OPENERS: dict[str, Callable[[Path], object]] = {
    "write_file": lambda path: write_file(path, b"secret"),
    "open_kept": lambda path: os.close(open_kept(str(path))),
    "refuse_shared_place": lambda path: refuse_shared_place(str(path)),
}
by_each_opener = pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS)
only_root = pytest.mark.skipif(not IS_ROOT, reason="only root may give files to others")


def strangers(path: Path) -> Path:
    """Make a stranger the owner of a file, and return its path."""
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    return path


@pytest.fixture(params=[0o1777, 0o777, 0o755], ids=["like /tmp", "open to all", "the stranger's"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Make a folder in which a stranger may put files."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(request.param)
    return strangers(folder) if request.param == 0o755 else folder


@only_root
@by_each_opener
@pytest.mark.parametrize("place", ["answer", "folder/answer"])
def test_a_strangers_link_is_refused(
    shared: Path, place: str, opener: Callable[[Path], object], tmp_path: Path
) -> None:
    # The kernel refuses it only where fs.protected_symlinks is set, and only in folders like /tmp.
    target = tmp_path / "target"
    target.mkdir()
    (target / "answer").write_bytes(b"old")
    link = shared / place.partition("/")[0]
    link.symlink_to(target if "/" in place else target / "answer")
    strangers(link)
    with pytest.raises((OSError, AccessError), match=r"a link on the way to it belongs to another user|everybody may"):
        opener(shared / place)
    assert (target / "answer").read_bytes() == b"old"
    assert os.listdir(target) == ["answer"]


@only_root
@pytest.mark.parametrize("mode", [0o1777, 0o777], ids=["like /tmp", "open to all"])
@by_each_opener
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_a_strangers_file_in_a_shared_folder_is_refused(
    mode: int, kind: str, opener: Callable[[Path], object], tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    path = shared / "answer"
    path.write_bytes(b"old") if kind == "file" else os.mkfifo(path)
    strangers(path)
    # The pipe has no reader: to open it for writing would wait for ever.
    with pytest.raises((OSError, AccessError), match=r"it belongs to another user|it is not a file|everybody may"):
        opener(path)
    assert stat.S_ISFIFO(path.stat().st_mode) if kind == "pipe" else path.read_bytes() == b"old"


def test_what_is_written_bit_by_bit_is_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "new/"):
        with pytest.raises(OSError, match=r"it is not a file|Is a directory|No such file"):
            open_kept(f"{tmp_path}/{name}")
    descriptor = open_kept(str(tmp_path / "new"))
    os.write(descriptor, b"text")
    os.close(descriptor)
    assert (tmp_path / "new").read_bytes() == b"text"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


@only_root
def test_a_folder_where_strangers_may_put_files_is_refused(tmp_path: Path) -> None:
    stranger, shared, link = tmp_path / "stranger", tmp_path / "shared", tmp_path / "link"
    for folder in (stranger, shared):
        folder.mkdir()
    strangers(stranger)
    shared.chmod(0o1777)
    link.symlink_to(tmp_path)
    strangers(link)
    for folder in (stranger, shared, link, link / "new"):
        with pytest.raises(PermissionError):
            own_folder(str(folder))
    own_folder(str(tmp_path / "new" / "inner"))
    own_folder(f"{tmp_path}/new/inner/")
    assert stat.S_IMODE((tmp_path / "new" / "inner").stat().st_mode) & stat.S_IWOTH == 0
    assert sorted(os.listdir(tmp_path)) == ["link", "new", "shared", "stranger"]


def test_links_and_steps_up_lead_where_the_kernel_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "up").symlink_to("a/b/..")
    (tmp_path / "round").symlink_to("round")
    for path in ("a/b/../x", "up/x", f"{tmp_path}/up/b/../../a/./x", "/proc/self/cwd/a/x"):
        write_file(path, path.encode())
        assert (tmp_path / "a" / "x").read_bytes() == path.encode()
    with pytest.raises(AccessError, match="symbolic links"):
        write_file("round/x", b"")


def test_an_open_file_of_another_process_is_written_to_at_its_end(tmp_path: Path) -> None:
    # As `-o /proc/1/fd/1` writes to the log of a container.
    with (
        (tmp_path / "log").open("ab", buffering=0) as log,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=log) as other,  # of the system
    ):
        log.write(b"old\n")
        write_file(f"/proc/{other.pid}/fd/1", b"new\n")
        other.communicate(b"newer\n", timeout=60)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:  # the same
        write_file(f"/proc/{other.pid}/fd/1", b"new\n")
        assert other.communicate(timeout=60)[0] == b"new\n"
    assert (tmp_path / "log").read_bytes() == b"old\nnew\nnewer\n"


@only_root
def test_the_folder_and_open_files_of_a_strangers_process_are_refused(tmp_path: Path) -> None:
    # It may have its folder anywhere, and have opened for reading what only root may write.
    (tmp_path / "file").write_bytes(b"old")
    words = ["setpriv", f"--reuid={STRANGER}", "--clear-groups", "cat", "/dev/fd/0", "-"]
    with (tmp_path / "file").open("rb") as file, subprocess.Popen(words, stdin=subprocess.PIPE, stderr=file) as other:
        # Between setuid(2) and execve(2) its files in /proc are root's.
        while Path(f"/proc/{other.pid}/comm").read_text() != "cat\n" or Path(f"/proc/{other.pid}").stat().st_uid == 0:
            assert other.poll() is None
        for path in ("fd/2", "cwd/new"):
            with pytest.raises(AccessError, match="a link on the way to it belongs to another user"):
                write_file(f"/proc/{other.pid}/{path}", b"new")
        other.communicate(timeout=60)
    assert (tmp_path / "file").read_bytes() == b"old"


@only_root
def test_a_folder_that_is_exchanged_for_a_link_on_the_way_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "target").mkdir()
    link_target = module._link_target

    def exchange(folder: int, name: str) -> str | None:
        target = link_target(folder, name)
        if name == "folder":
            (tmp_path / "folder").rmdir()
            strangers_link = tmp_path / "folder"
            strangers_link.symlink_to(tmp_path / "target")
            strangers(strangers_link)
        return target

    monkeypatch.setattr(module, "_link_target", exchange)
    with pytest.raises(AccessError, match="Not a directory"):
        write_file(tmp_path / "folder" / "answer", b"new")
    assert os.listdir(tmp_path / "target") == []
