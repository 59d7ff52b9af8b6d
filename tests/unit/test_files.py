"""Inputs of every kind: files, pipes, files that the kernel makes, and what is refused; and files written whole."""

import gc
import mmap
import os
import resource
import subprocess
from pathlib import Path

import pytest

import footprint
from footprint import cli
from footprint.errors import AccessError, InputError, LimitError
from footprint.process.mappings import open_regular
from footprint.system import files
from footprint.system.files import open_input, read_all, text_of
from footprint.system.limits import Limits, limited

LARGE_BYTES = (8 << 20) + 1


def test_a_file_that_is_truncated_after_it_was_opened_still_has_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "library.so"
    path.write_bytes(b"\x7fELF" * 4096)
    data = open_input(str(path))
    os.truncate(path, 0)
    assert bytes(data) == b"\x7fELF" * 4096


def test_a_large_file_is_mapped_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.touch()
    os.truncate(path, LARGE_BYTES)
    data = open_input(str(path))
    assert isinstance(data, memoryview)
    assert isinstance(data.obj, mmap.mmap)
    assert len(data) == LARGE_BYTES


@pytest.mark.parametrize(
    ("size_bytes", "how"),
    # Read, one that claims much would take as much memory; one of more than 2 GiB would be no text.
    [(LARGE_BYTES, bytes), (3 << 30, memoryview)],
    ids=["large", "very large"],
)
def test_where_few_descriptors_are_left_a_large_file_is_read_and_a_very_large_one_mapped(
    tmp_path: Path, size_bytes: int, how: type
) -> None:
    # Its map would hold one as long as it is there.
    path = tmp_path / "large"
    path.touch()
    os.truncate(path, size_bytes)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = [os.dup(0) for _ in range(8)]
    try:
        # 64 are left to others; as many as this are open at the most.
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(descriptors) + 64, limits[1]))
        data = open_input(str(path))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in descriptors:
            os.close(descriptor)
    assert isinstance(data, how)
    assert len(data) == size_bytes


def test_audits_keep_no_file_open() -> None:
    program = str(Path(__file__).resolve().parents[2] / "sample_binaries" / "condor_shadow" / "base")
    gc.collect()
    # Nor until Python looks for rings: it may be long until then.
    gc.disable()
    try:
        before = os.listdir("/proc/self/fd")
        for _ in range(2):
            footprint.audit(program)
            footprint.audit(os.getpid())
        assert os.listdir("/proc/self/fd") == before
    finally:
        gc.enable()


def test_an_empty_file_and_one_of_proc_that_claims_to_be_are_read(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert len(open_input(str(path))) == 0
    assert b"[stack]" in bytes(open_input("/proc/self/maps"))


def test_a_named_pipe_that_nobody_writes_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LONGEST_WAIT_SECONDS", 0)
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    with pytest.raises(InputError, match="nobody writes to"):
        open_input(path)


@pytest.mark.parametrize("before_seconds", [0, 0.2], ids=["at-once", "later"])
def test_of_a_named_pipe_all_is_read_whenever_its_writer_comes(tmp_path: Path, before_seconds: float) -> None:
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    # It opens the pipe, writes nothing for a while, then in two pieces.
    text = f"sleep {before_seconds}; exec >{path}; sleep 0.2; printf first; sleep 0.1; printf ' second'"
    with subprocess.Popen(["sh", "-c", text]):
        assert bytes(open_input(path)) == b"first second"


def test_a_pipe_without_a_name_waits_for_its_writer() -> None:
    reading, writing = os.pipe()
    with subprocess.Popen(["sh", "-c", "sleep 0.2; printf text"], stdout=writing):
        os.close(writing)
        assert bytes(open_input(f"/dev/fd/{reading}")) == b"text"
    assert bytes(open_input(f"/dev/fd/{reading}")) == b""
    os.close(reading)


@pytest.mark.parametrize("error", [OSError(12, "Cannot allocate memory"), ValueError("mmap length is too large")])
def test_a_file_that_cannot_be_mapped_is_an_access_error(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    path = tmp_path / "large"
    path.touch()
    os.truncate(path, LARGE_BYTES)
    monkeypatch.setattr("footprint.system.files.mmap", refuse)
    with pytest.raises(AccessError, match=r"Cannot allocate memory|too large") as caught:
        open_input(str(path))
    assert caught.value.subject == str(path)


def test_a_pipe_is_read_to_its_end() -> None:
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, b"text")
        os.close(write_end)
        assert open_input(f"/dev/fd/{read_end}") == b"text"
    finally:
        os.close(read_end)


@pytest.mark.parametrize(
    ("path", "error"), [("/", InputError), ("/dev/null", InputError), ("/no/such", AccessError), ("\0", AccessError)]
)
def test_what_is_no_file_is_refused(path: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        open_input(path)


def test_texts_beyond_the_cap_are_refused_from_files_and_from_pipes(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"x" * 11)
    spent = "^text: spent 11 B of 10 B; raise it with --limits bytes=20B$"
    with limited(Limits(size_bytes=10)):
        assert text_of(memoryview(b"x" * 10), "text") == b"x" * 10
    with limited(Limits(size_bytes=10)), pytest.raises(LimitError, match=spent):
        text_of(memoryview(b"x" * 11), "text")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with limited(Limits(size_bytes=10)), pytest.raises(LimitError, match=spent):
            read_all(descriptor, "text")
    finally:
        os.close(descriptor)


def test_a_name_of_a_saved_text_that_is_no_path_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"x")
    inode = path.stat().st_ino
    monkeypatch.chdir(tmp_path)
    assert open_regular("program", inode) == "pmap shows only the last part of its path"
    found = open_regular(str(path), inode)
    assert not isinstance(found, str)
    assert bytes(found) == b"x"


def test_memory_that_runs_out_is_one_line_and_exit_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: list[str]) -> int:
        raise MemoryError

    monkeypatch.setattr("footprint.cli.run", run)
    assert cli.main(["audit", "1"]) == 3
    assert capsys.readouterr().err == "footprint: there is not enough memory for the answer\n"
