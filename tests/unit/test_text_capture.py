"""Captures as text: what `capture --script` prints is read as the same process, also after a terminal or a cut."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import footprint
from footprint.elf.image import read_image
from footprint.elf.notes import build_id, build_id_of_start
from footprint.errors import InputError, UnsupportedError, UsageError
from footprint.process.descriptions import OpenFileKind
from footprint.process.snapshot import FileFacts, Snapshot, looks_like_capture, read_process
from footprint.process.text_capture import read_text_capture
from footprint.sources.target import Capture, resolve
from footprint.verbs.capture.call import capture_script

KIB = 1024
SMAPS = b"""\
00400000-00404000 rw-p 00001000 fe:00 77 /usr/bin/demo
Size:                 16 kB
KernelPageSize:        4 kB
Rss:                  12 kB
Anonymous:            12 kB
Private_Dirty:        12 kB
VmFlags: rd wr mr mw me ac
"""
# The command line of a process may hold anything, here the begin of a text of another process.
TEXT = (
    b"footprint-text-capture/1 0b12-77\nkernel 6.1.0\nmachine x86_64\n"
    b"\n0b12-77 4711 status\nName:\tdemo\nState:\tS\nVmSize:\t  24 kB\nVmPTE:\t  44 kB\nThreads:\t2\n"
    b"\n0b12-77 4711 smaps\n" + SMAPS + b"\n0b12-77 4711 smaps_rollup\n"
    b"00400000-00404000 ---p 00000000 00:00 0 [rollup]\nRss: 12 kB\nAnonymous: 12 kB\n"
    b"\n0b12-77 4711 cmdline\ndemo\0--file\0\n0b12-7 4712 smaps\n\0"
    b"\n0b12-77 4711 task/4712/syscall\n202 0x1 0x0 0x0 0x0 0x0 0x0 0x7f00deadb000 0x7f0012345678\n"
    b"\n0b12-77 4711 task/4713/syscall\nrunning\n"
    b"\n0b12-77 4711 fd 1\npipe:[90]\nflags:\t01\n"
    b"\n0b12-77 4711 fd 3\nsocket:[99]\npos:\t0\n"
    b"\n0b12-77 4711 fd 4\nsocket:[98]\npos:\t0\n"
    b"\n0b12-77 4711 fd 5\npipe:[97]\npos:\t0\nflags:\t0100001\n"
    b"\n0b12-77 4711 fd 6\nanon_inode:[eventpoll]\nino:\t5\ntfd:        3 events:\ntfd:        4 events:\n"
    b"\n0b12-77 4711 fd 7\nsocket:[99]\npos:\t0\n"
    b"\n0b12-77 4711 net/unix\nNum RefCount Protocol Flags Type St Inode Path\n"
    b"00000000: 00000002 00000000 00010000 0001 01    98 /run/x\n"
    b"\n0b12-77 4711 net/tcp\n  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
    b"   0: 0100007F:1F90 00000000:0000 0A 00000010:00000100 00:00000000 00000000     0        0 99 1 ff\n"
    b"\n0b12-77 4711 file fe:00 77 5120 /usr/bin/demo\n 7f 45 4c 46\n 02 01\n"
    b"\n0b12-77 end\n"
)


def no_build_id(_: bytes) -> None:
    return None


def read(text: bytes) -> Snapshot:
    (found,) = read_text_capture(text, "demo.capture", lambda start: start.hex())
    return found


def test_a_process_has_its_mappings_counters_status_and_files() -> None:
    result = read(TEXT)
    assert (result.pid, result.page_bytes, result.host) == (4711, 4096, {"kernel": "6.1.0", "machine": "x86_64"})
    assert [mapping.name for mapping in result.memory.mappings] == ["/usr/bin/demo"]
    assert result.memory.mappings[0].counters.get("Private_Dirty") == 12 * KIB
    assert result.rollup is not None
    assert result.rollup.get("Anonymous") == 12 * KIB
    assert result.status is not None
    assert (result.status.thread_count, result.status.page_table_bytes) == (2, 44 * KIB)
    assert result.files == {("fe:00", 77, "/usr/bin/demo"): FileFacts(5120, "7f454c460201")}


def test_shared_memory_has_what_is_allocated_in_blocks() -> None:
    told = TEXT.replace(b"\n0b12-77 end", b"\n0b12-77 4711 allocated 00:01 2048 16384\n\n0b12-77 end")
    assert read(told).allocated_bytes == {("00:01", 2048): 8 << 20}
    assert read(told)._replace(allocated_bytes={}) == read(TEXT)._replace(allocated_bytes={})


def test_that_nothing_is_known_of_its_allocator_is_a_note_of_its_audit(tmp_path: Path) -> None:
    (tmp_path / "demo.capture").write_bytes(TEXT)
    audit = footprint.audit(str(tmp_path / "demo.capture"))
    (note,) = [note for note in audit.notes if note.slug == "allocator-unread"]
    assert note.detail == "a capture as text has no account of the allocator: how much of its heap is free is unknown"
    assert audit.allocator is None


@pytest.mark.parametrize("left", [b"stat\n4712 (demo) S\n", b"absent\n", b"smaps\n"])
def test_a_process_that_ended_while_it_was_captured_is_a_note_and_the_others_are_read(left: bytes) -> None:
    found = read(TEXT.replace(b"\n0b12-77 end", b"\n0b12-77 4712 " + left + b"\n0b12-77 end"))
    assert found.pid == 4711
    assert [note.subject for note in found.notes if note.slug == "process-not-read"] == ["pid 4712"]


def test_the_stack_pointer_of_a_thread_is_the_last_but_one_word_and_a_running_thread_has_none() -> None:
    assert read(TEXT).thread_stacks.pointers == (0x7F00DEADB000,)


def test_each_open_description_is_there_once_with_its_kind_and_what_it_holds() -> None:
    tcp, unix, pipe, epoll = read(TEXT).open_files or ()
    assert (tcp.kind, tcp.descriptor, tcp.content_bytes, tcp.is_unread) == (OpenFileKind.TCP, 3, 0x110, False)
    assert (unix.kind, unix.inode, unix.is_unread) == (OpenFileKind.UNIX, 98, True)
    assert (pipe.kind, pipe.is_write_only) == (OpenFileKind.PIPE, True)
    assert (epoll.kind, epoll.inode, epoll.watch_count) == (OpenFileKind.EPOLL, 5, 2)


def test_what_a_file_in_memory_holds_is_told_in_blocks_of_512_bytes() -> None:
    held = b"\n0b12-77 4711 held 8 16\n\n0b12-77 4711 fd 8\n/memfd:cache (deleted)\nino:\t7\n"
    *_, memory = read(TEXT.replace(b"\n0b12-77 end", held + b"\n0b12-77 end")).open_files or ()
    assert (memory.kind, memory.inode, memory.content_bytes) == (OpenFileKind.MEMORY, 7, 8 * KIB)


@pytest.mark.parametrize("line", [b"kernel 6.1.0\n", b"machine x86_64\n"])
def test_a_capture_that_does_not_tell_its_kernel_or_machine_is_damaged(line: bytes) -> None:
    with pytest.raises(InputError, match=f"its first lines have no {line.split()[0].decode()}"):
        read(TEXT.replace(line, b""))


def test_what_a_command_line_holds_begins_no_text() -> None:
    assert read(TEXT).command == "demo --file \n0b12-7 4712 smaps\n".rstrip("\n")


def test_lines_of_a_terminal_are_read_as_those_of_a_pipe(tmp_path: Path) -> None:
    path, result = tmp_path / "demo.capture", []
    for text in (TEXT, TEXT.replace(b"\n", b"\r\n")):
        path.write_bytes(text)
        target = resolve(path)
        assert isinstance(target, Capture)
        result.append(target.snapshots)
    assert len(result[0]) == 1
    assert result[1] == result[0]


@pytest.mark.parametrize("kept_bytes", [30, 200, 500, len(TEXT) - 6])
def test_a_capture_that_was_cut_is_refused(kept_bytes: int) -> None:
    with pytest.raises(InputError, match=r"cut|first line is damaged"):
        read(TEXT[:kept_bytes])


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        (b"4711 smaps\n", b"4711 other\n", "neither smaps nor maps"),
        (b"4711 status\n", b"4711 smaps\n", "is there twice"),
        (b"4711 status\n", b"status\n", "without the number of its process"),
        (b"00400000-00404000 rw-p", b"zz rw-p", "pid 4711, smaps: "),
        (b"/1 0b12-77\nkernel", b"/1 \nkernel", "first line is damaged"),
    ],
)
def test_a_damaged_text_is_one_error_with_its_cause(old: bytes, new: bytes, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        read(TEXT.replace(old, new, 1))


def test_a_later_format_is_not_supported() -> None:
    with pytest.raises(UnsupportedError, match="format 2: this version reads 1"):
        read(TEXT.replace(b"capture/1", b"capture/2"))


def test_its_first_bytes_tell_a_capture_from_other_texts() -> None:
    assert looks_like_capture(TEXT)
    assert not looks_like_capture(SMAPS)


def test_the_build_id_of_a_file_is_in_its_first_4096_bytes() -> None:
    data = Path(sys.executable).resolve().read_bytes()
    assert build_id_of_start(data[:4096]) == build_id(read_image(data, "python"))
    assert build_id_of_start(data[:40]) is None
    assert build_id_of_start(b"") is None


# --- the script itself ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def family() -> Iterator[subprocess.Popen[bytes]]:
    """Start a shell with a child that sleeps."""
    with subprocess.Popen(["sh", "-c", "sleep 1000 & echo; wait"], stdout=subprocess.PIPE, process_group=0) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started
        os.killpg(started.pid, 9)


def run_script(*words: str, shell: tuple[str, ...] = ("sh",)) -> subprocess.CompletedProcess[bytes]:
    command = [*shell, "-s", "--", *words]
    return subprocess.run(command, input=capture_script().encode(), capture_output=True, check=False)


def test_what_the_script_reads_is_audited_as_the_live_process_is(
    family: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    done = run_script(str(family.pid))
    assert (done.returncode, done.stderr) == (0, b"")
    path = tmp_path / "shell.capture"
    path.write_bytes(done.stdout)
    captured, live = footprint.audit(path), footprint.audit(family.pid)
    assert captured.totals.private.bytes == live.totals.private.bytes
    assert {row.owner for row in captured.ledger} == {row.owner for row in live.ledger}


@pytest.mark.parametrize("tools", [("cat", "readlink"), ("cat", "readlink", "stat")], ids=["none", "without od"])
def test_without_tools_that_identify_files_each_file_is_there_once(
    tools: tuple[str, ...], family: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    for name in tools:
        (tmp_path / name).symlink_to(shutil.which(name) or "/")
    command = [shutil.which("sh") or "sh", "-s", "--", str(family.pid)]
    script = capture_script().encode()
    done = subprocess.run(command, input=script, capture_output=True, check=False, env={"PATH": str(tmp_path)})
    (snapshot,) = read_text_capture(done.stdout, "x", no_build_id)
    (expected,) = read_text_capture(run_script(str(family.pid)).stdout, "x", no_build_id)
    assert snapshot.files.keys() == expected.files.keys()


ALLOCATED = """
import mmap, os, time
file = os.memfd_create("x")
os.write(file, bytes(1 << 20))
memory = mmap.mmap(file, 1 << 20)
print("ready", flush=True)
time.sleep(1000)
"""


def test_the_script_reads_what_shared_memory_holds_that_nobody_has_touched() -> None:
    with subprocess.Popen([sys.executable, "-ISc", ALLOCATED], stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        live = read_process(started.pid)
        (captured,) = read_text_capture(run_script(str(started.pid)).stdout, "demo.capture", no_build_id)
        started.kill()
    if not live.allocated_bytes:
        pytest.skip("the kernel or its sandbox shows no map_files")
    assert list(live.allocated_bytes.values()) == [1 << 20]
    assert captured.allocated_bytes == live.allocated_bytes


def test_a_tree_has_the_processes_that_descend_from_it_and_not_the_script(
    family: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    path = tmp_path / "tree.capture"
    path.write_bytes(run_script("-t", str(family.pid)).stdout)
    target = resolve(path)
    snapshots = target.snapshots  # type: ignore[union-attr]
    assert [snapshot.command for snapshot in snapshots] == ["sh -c sleep 1000 & echo; wait", "sleep 1000"]


@pytest.mark.parametrize("shell", [("dash",), ("bash", "--posix"), ("busybox", "sh"), ("zsh", "--emulate", "sh")])
def test_shells_of_all_kinds_print_the_same_texts(family: subprocess.Popen[bytes], shell: tuple[str, ...]) -> None:
    if shutil.which(shell[0]) is None:
        shell = ("sh",)
    done = run_script(str(family.pid), shell=shell)
    (snapshot,) = read_text_capture(done.stdout, "x", no_build_id)
    (expected,) = read_text_capture(run_script(str(family.pid)).stdout, "x", no_build_id)
    mappings = snapshot.memory.mappings, expected.memory.mappings
    assert done.stderr == b""
    # What is shared depends on how many processes run the shell just then.
    facts = [[(one.start_addr, one.name, one.counters.get("Anonymous")) for one in mapping] for mapping in mappings]
    assert facts[0] == facts[1]
    assert snapshot.status == expected.status


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "usage: sh capture.sh"),
        (("12x",), 2, "12x is no process ID"),
        (("99999999999",), 2, "99999999999 is no process ID"),
        (("2147483647",), 4, "process 2147483647: it does not exist"),
    ],
)
def test_wrong_use_of_the_script_is_told(words: tuple[str, ...], code: int, message: str) -> None:
    done = run_script(*words)
    assert done.returncode == code
    assert message in done.stderr.decode()


def test_a_process_that_is_named_twice_is_read_once(family: subprocess.Popen[bytes]) -> None:
    done = run_script(str(family.pid), str(family.pid))
    (snapshot,) = read_text_capture(done.stdout, "x", no_build_id)
    assert (done.returncode, snapshot.pid) == (0, family.pid)


ODD = r"""
import ctypes, mmap, os, shutil, sys, time
kept = []
for name in sys.argv[1:]:
    shutil.copy("/proc/self/exe", name)
    with open(name, "rb") as file:
        kept.append(mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ))
if os.fork() == 0:
    ctypes.CDLL(None).prctl(15, b"a) S 1\nb", 0, 0, 0)
    print("ready", flush=True)
time.sleep(1000)
"""


def test_odd_names_of_processes_and_files_are_read_as_they_are(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in (r"a\012b", r"c\cut", "(deleted)")]
    words = [sys.executable, "-ISc", ODD, *names]
    with subprocess.Popen(words, stdout=subprocess.PIPE, process_group=0) as started:
        assert started.stdout is not None
        started.stdout.readline()
        captured = read_text_capture(run_script("-t", str(started.pid)).stdout, "x", lambda start: start[:4].hex())
        os.killpg(started.pid, 9)
    assert len(captured) == 2
    for snapshot in captured:
        ids = {path: facts.build_id for (_, _, path), facts in snapshot.files.items()}
        assert [ids.get(name) for name in names] == ["7f454c46"] * 3


PLANTED = """
import mmap, os, sys, time
kept = []
for kind in ("link", "pipe", "other"):
    name = f"{sys.argv[1]}/{kind}"
    with open(name, "w+b") as file:
        file.write(b"mapped".ljust(4096))
        file.flush()
        kept.append(mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ))
    os.unlink(name)
    planted = f"{name} (deleted)"
    if kind == "link":
        os.symlink("/etc/passwd", planted)
    elif kind == "pipe":
        os.mkfifo(planted)
    else:
        with open(planted, "wb") as file:
            file.write(b"other".ljust(4096))
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("by_path", [False, True], ids=["as allowed here", "where the kernel shows no map_files"])
def test_nothing_is_read_that_a_process_has_put_in_the_place_of_a_mapped_file(tmp_path: Path, *, by_path: bool) -> None:
    script = capture_script().replace("/map_files/", "/nothing/") if by_path else capture_script()
    with subprocess.Popen([sys.executable, "-ISc", PLANTED, str(tmp_path)], stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        try:
            words = ["sh", "-s", "--", str(started.pid)]
            done = subprocess.run(words, input=script.encode(), capture_output=True, timeout=60, check=False)
        finally:
            started.kill()
    (snapshot,) = read_text_capture(done.stdout, "x", lambda start: start.decode("latin-1").rstrip())
    starts = {
        path.rpartition("/")[2]: facts.build_id
        for (_, _, path), facts in snapshot.files.items()
        if str(tmp_path) in path
    }
    assert sorted(starts) == ["link (deleted)", "other (deleted)", "pipe (deleted)"]
    assert set(starts.values()) <= {"mapped", "", None}  # all of it, or nothing
    # The program itself is what its path leads to.
    program = os.path.realpath(sys.executable)
    assert any(facts.build_id and path == program for (_, _, path), facts in snapshot.files.items())


def test_a_process_that_is_gone_leaves_the_others_readable(family: subprocess.Popen[bytes]) -> None:
    done = run_script(str(family.pid), "2147483647")
    (snapshot,) = read_text_capture(done.stdout, "x", no_build_id)
    assert (done.returncode, snapshot.pid) == (4, family.pid)


def test_a_capture_of_no_process_is_none_to_audit(tmp_path: Path) -> None:
    path = tmp_path / "empty.capture"
    path.write_bytes(run_script("2147483647").stdout)
    with pytest.raises((InputError, UsageError), match=r"no mapping"):
        footprint.audit(path)
