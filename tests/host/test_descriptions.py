"""What a process has open, against the kernel: its descriptors, what they share with relatives, and what they cost."""

import contextlib
import ctypes
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import footprint
from footprint.model.audit import Audit
from footprint.process.descriptions import DescriptionOwners, OpenFileKind, read_open_files, read_own_open_files
from footprint.verbs.audit.call import audit_group

KIB = 1024


@pytest.fixture(autouse=True)
def uncalibrated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the calibration of this host out of the figures."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def opened() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def kinds(pid: int) -> dict[int, OpenFileKind]:
    return {open_file.descriptor: open_file.kind for open_file in read_open_files(pid)}


def test_the_kind_of_each_socket_is_known(opened: contextlib.ExitStack) -> None:
    pair = [opened.enter_context(one) for one in socket.socketpair()]
    tcp = opened.enter_context(socket.socket())
    udp = opened.enter_context(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
    found = kinds(os.getpid())
    assert [found[one.fileno()] for one in (*pair, tcp, udp)] == [
        "UNIX socket",
        "UNIX socket",
        "TCP socket",
        "UDP socket",
    ]


def test_unread_data_of_pipes_and_sockets_is_counted(opened: contextlib.ExitStack) -> None:
    sender, _other = (opened.enter_context(end) for end in socket.socketpair())
    reading, writing = os.pipe()
    opened.callback(os.close, reading)
    opened.callback(os.close, writing)
    before = {file.descriptor: file.content_bytes for file in read_open_files(os.getpid())}
    sender.send(b"x" * 5000)
    os.write(writing, b"x" * 5000)
    after = {file.descriptor: file.content_bytes for file in read_open_files(os.getpid())}
    assert after[sender.fileno()] - before[sender.fileno()] >= 5000
    assert after[reading] - before[reading] == 2 * 4096


def test_the_watches_of_an_epoll_are_counted(opened: contextlib.ExitStack) -> None:
    poll = opened.enter_context(select.epoll())
    one, _other = (opened.enter_context(end) for end in socket.socketpair())
    poll.register(one)
    (found,) = [file for file in read_open_files(os.getpid()) if file.descriptor == poll.fileno()]
    assert (found.kind, found.watch_count, found.content_bytes) == (OpenFileKind.EPOLL, 1, 0)


def test_a_text_of_the_kernel_costs_its_page_once_it_was_read(opened: contextlib.ExitStack) -> None:
    unread, read = (os.open("/proc/self/stat", os.O_RDONLY) for _ in range(2))
    for one in (unread, read):
        opened.callback(os.close, one)
    os.read(read, 1)
    found = kinds(os.getpid())
    assert (found[unread], found[read]) == (OpenFileKind.FILE, OpenFileKind.TEXT)


def test_a_duplicate_is_the_same_description_and_a_second_open_is_another(opened: contextlib.ExitStack) -> None:
    first = os.open(__file__, os.O_RDONLY)
    second, copy = os.open(__file__, os.O_RDONLY), os.dup(first)
    for one in (first, second, copy):
        opened.callback(os.close, one)
    files = [file for file in read_open_files(os.getpid()) if file.descriptor in {first, second, copy}]
    assert [file.descriptor for file in DescriptionOwners().charged_to(os.getpid(), files)] == sorted((first, second))


def test_standard_input_output_and_error_are_not_a_process_s_own() -> None:
    assert min(kinds(os.getpid()), default=3) >= 3


def test_a_process_that_is_gone_has_nothing_open() -> None:
    assert read_open_files(2**31 - 1) == ()


INHERITING = """
import os, resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
pairs = [socket.socketpair() for _ in range(200)]
for _ in range(5):
    if os.fork() == 0:
        kept = socket.socketpair()
        print("ready", flush=True)
        time.sleep(600)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def family() -> Iterator[int]:
    """Start a parent with 400 sockets whose five children inherit them and make two of their own."""
    words = [sys.executable, "-ISc", INHERITING]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        for _ in range(6):
            assert parent.stdout.readline() == b"ready\n"
        yield parent.pid
        os.killpg(parent.pid, 9)


def descriptors_bytes(audit: Audit) -> int:
    return sum(row.bytes or 0 for row in audit.ledger if row.name == "[open descriptors]")


def test_inherited_sockets_cost_once_in_a_family(family: int) -> None:
    parent, *children = audit_group(tree=family).group.audits
    assert len(children) == 5
    assert 400 * 2_401 <= descriptors_bytes(parent) < 420 * 2_401
    for child in children:
        assert 2 * 2_401 <= descriptors_bytes(child) < 6 * 2_401


def test_what_a_child_inherited_is_no_cost_of_one_more_child(family: int) -> None:
    child = audit_group(tree=family).group.audits[1].pid
    assert child is not None
    assert descriptors_bytes(footprint.audit(child)) < 6 * 2_401
    assert len(read_own_open_files([family])[family]) >= 400


def test_what_the_prices_of_open_files_leave_out_is_a_note(opened: contextlib.ExitStack) -> None:
    library = ctypes.CDLL(None)
    watching = library.inotify_init1(0)
    opened.callback(os.close, watching)
    folder = Path(os.__file__).parent
    # Two names of one file are one watch.
    files = {path.stat().st_ino: path for path in sorted(folder.iterdir())}
    for path in [*files.values()][:100]:
        assert library.inotify_add_watch(watching, bytes(path), 2) > 0
    (found,) = [file for file in read_open_files(os.getpid()) if file.descriptor == watching]
    assert (found.kind, found.watch_count) == (OpenFileKind.INOTIFY, 100)
    notes = {note.slug: note.detail for note in footprint.audit(os.getpid()).notes}
    assert notes["watched-inodes"].startswith("its 100 watches")
