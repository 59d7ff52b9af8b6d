"""Processes that are hard to read: gone, forbidden, forked, merged, deleted, hidden in a namespace, or badly named.

Whatever the process, there is one clear error, or an answer that adds up and notes what it could not see.
"""

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from fcntl import ioctl
from functools import partial
from pathlib import Path

import pytest

import footprint
from footprint.attribution.owned_range import OwnedRange
from footprint.errors import AccessError, UnsupportedError
from footprint.model.audit import Audit
from footprint.model.row import Attribution, Row
from footprint.process.counters import CounterReader
from footprint.verbs.audit.mappings import OwnedMap
from tests.liveprocesses import PATIENCE_SECONDS, DyingOS, private_bytes_between, status_of, wait_until

KIB = 1024
MIB = 1024 * KIB
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
ROOT = Path(__file__).resolve().parents[2]
CONDOR_SHADOW = ROOT / "sample_binaries" / "condor_shadow"
NOBODY = 65534
# Before which of them a process may end.
SYSTEM_CALLS = frozenset({"open", "read", "pread", "listdir", "stat", "fstat"})

# A call that no audit gets to.
NEVER = 1 << 30

is_root = os.geteuid() == 0


def may_follow_map_files() -> bool:
    """Return whether files that have no path any more can be had: with CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN."""
    folder = "/proc/self/map_files"
    try:
        return os.path.isfile(os.path.join(folder, os.listdir(folder)[0]))
    except OSError:
        return False


needs_map_files = pytest.mark.skipif(not may_follow_map_files(), reason="/proc/PID/map_files may not be followed")


# --- starting ---------------------------------------------------------------------------------------------------------

Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program in a session of its own, wait for its first line, and kill the whole session in the end."""
    children: list[subprocess.Popen[bytes]] = []

    def start_one(
        command: Sequence[str | bytes | Path],
        *,
        says: str = "ready",
        pids: list[int] | None = None,
        executable: str | None = None,
    ) -> int:
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            executable=executable,
        )
        children.append(child)
        assert child.stdout is not None
        if says:
            said = child.stdout.readline().decode()
            assert said.startswith(says), (said, child.stderr and child.stderr.read())
            if pids is not None:
                pids += map(int, said.split()[1:])
        return child.pid

    yield start_one
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def start_python(start: Start, code: str, *words: str | bytes) -> int:
    """Start a Python that runs some code, then says `ready` and sleeps."""
    return start([sys.executable, "-c", f"{code}\nprint('ready', flush=True)\nimport time\ntime.sleep(3600)", *words])


def start_sample(start: Start, folder: Path) -> int:
    """Start a copy of the sample program with its libraries, and wait until it has written its memory."""
    if not runs_samples():
        pytest.skip("the prebuilt sample runs on x86-64 with glibc only")
    for name in ("base", "libunused.so", "libunused_dep.so"):
        shutil.copy(CONDOR_SHADOW / name, folder)
    return start([folder / "base", "--wait"])


def runs_samples() -> bool:
    return platform.machine() == "x86_64" and os.path.exists("/lib64/ld-linux-x86-64.so.2")


def run_footprint(*words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "footprint", *words]
    utf8 = {**os.environ, "PYTHONUTF8": "1"}
    return subprocess.run(command, cwd=ROOT, env=utf8, capture_output=True, timeout=PATIENCE_SECONDS, check=False)


def stop(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        wait_until(partial(is_stopped, pid), f"process {pid} to stop")


def is_stopped(pid: int) -> bool:
    return all(status_of(f"{pid}/task/{thread}")["State"][0] in "Tt" for thread in os.listdir(f"/proc/{pid}/task"))


def rollup_of(pid: int) -> dict[str, int]:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as text:
            rows = re.findall(r"^(\w+): +(\d+) kB$", text.read(), re.MULTILINE)
    except FileNotFoundError:
        pytest.skip("Linux before 4.14 has no smaps_rollup")
    return {key: int(value) * KIB for key, value in rows}


def mapping_of(pid: int, addr: int) -> tuple[int, int, str]:
    """Return the range and the name of the mapping that holds an address."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as text:
        for line in text:
            start, end = (int(bound, 16) for bound in line.split(" ", 1)[0].split("-"))
            if start <= addr < end:
                return start, end, line[:-1].split(maxsplit=5)[5] if len(line.split()) > 5 else ""
    raise AssertionError(f"nothing is mapped at {addr:#x}")


def part_at(owned: OwnedMap, addr: int) -> OwnedRange:
    return next(part for part in owned.parts if part.start_addr <= addr < part.end_addr)


def own(audit: Audit, name: str) -> list[Row]:
    """Return the rows of the owner whose path ends in a name."""
    return [row for row in audit.ledger if row.owner.rsplit("/", 1)[-1] == name]


def symbols_of(audit: Audit, name: str) -> set[str]:
    return {row.symbol for row in own(audit, name) if row.symbol is not None}


def slugs(audit: Audit) -> set[str]:
    return {note.slug for note in audit.notes}


# --- what has no memory, or does not let us see it --------------------------------------------------------------------


def assert_one_line_and_exit_3(done: subprocess.CompletedProcess[bytes], cause: str) -> None:
    assert done.returncode == 3, done
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"footprint: ")
    assert cause.encode() in done.stderr


@pytest.fixture
def kernel_thread() -> int:
    if not os.path.exists("/proc/2/status") or status_of(2)["Name"] != "kthreadd":
        pytest.skip("no kernel thread can be seen from here: this is a PID namespace of its own")
    return 2


@pytest.fixture
def zombie(start: Start) -> int:
    pid = start(["true"], says="")
    wait_until(lambda: status_of(pid)["State"].startswith("Z"), "true to end")
    return pid


def test_a_kernel_thread_has_no_memory(kernel_thread: int) -> None:
    with pytest.raises(UnsupportedError, match="kthreadd is a kernel thread"):
        footprint.audit(kernel_thread)
    assert_one_line_and_exit_3(run_footprint("audit", str(kernel_thread)), "kernel thread")
    assert_one_line_and_exit_3(run_footprint("audit", "--by", "mapping", str(kernel_thread)), "kernel thread")


def test_a_zombie_has_no_memory_any_more(zombie: int) -> None:
    with pytest.raises(UnsupportedError, match="is a zombie"):
        footprint.audit(zombie)
    assert_one_line_and_exit_3(run_footprint("audit", str(zombie)), "zombie")
    assert_one_line_and_exit_3(run_footprint("audit", str(zombie), "-n", "10"), "zombie")


def test_a_process_that_does_not_exist_is_said_not_to() -> None:
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as text:
        never = int(text.read())  # the first number that no process is given
    with pytest.raises(AccessError, match=f"pid {never}: no such process"):
        footprint.audit(never)
    assert_one_line_and_exit_3(run_footprint("audit", str(never)), f"pid {never}: no such process")


def test_a_process_of_another_user_is_not_readable_and_the_error_says_who_may() -> None:
    # Everything is imported before the change of user, who may not be able to read the interpreter's own files.
    code = (
        "import os, sys, footprint.text.escape; from footprint.cli import main\n"
        "main(['audit', str(os.getpid()), '-o', os.devnull])\n"
        "try:\n"
        f"    if os.geteuid() == 0: os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "except PermissionError:\n"
        "    sys.exit(77)\n"
        "sys.exit(main(['audit', sys.argv[1]]))"
    )
    other = os.getpid() if is_root else 1
    if os.stat(f"/proc/{other}").st_uid == os.geteuid() != 0:
        pytest.skip("this user owns process 1, too")
    done = subprocess.run([sys.executable, "-c", code, str(other)], cwd=ROOT, capture_output=True, check=False)
    if done.returncode == 77:
        pytest.skip("root may not become another user here")
    assert_one_line_and_exit_3(
        done, f"pid {other}: permission denied: only its own user or root (CAP_SYS_PTRACE) may read its memory"
    )


@pytest.mark.parametrize("is_reaped", [True, False], ids=["gone", "zombie"])
def test_a_process_that_is_killed_before_any_call_is_an_error_or_an_answer(
    start: Start, monkeypatch: pytest.MonkeyPatch, *, is_reaped: bool
) -> None:
    threads = "import threading, time\nfor _ in range(2): threading.Thread(target=time.sleep, args=(3600,)).start()"
    causes: set[str] = set()

    def audited(calls: int) -> tuple[type, DyingOS]:
        """Audit a process that is killed before a call, and return what comes of it."""
        pid = start_python(start, threads)

        def kill() -> None:
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | (0 if is_reaped else os.WNOWAIT))

        dying = DyingOS(calls, SYSTEM_CALLS, kill)
        with monkeypatch.context() as patch:
            for module in ("snapshot", "mappings", "pages"):
                patch.setattr(f"footprint.process.{module}.os", dying)
            patch.setattr("footprint.process.pages.ioctl", dying.before(ioctl))
            try:
                audit = footprint.audit(pid)
            except (AccessError, UnsupportedError) as error:
                causes.add(str(error).partition(": ")[2])
                return type(error), dying
        assert audit.totals.private.bytes == sum(row.bytes or 0 for row in audit.ledger if row.kind != "kernel")
        return Audit, dying

    result, undisturbed = audited(NEVER)
    assert result is Audit
    assert len(undisturbed.sites) > 500
    for calls in undisturbed.first_and_last_calls():
        audited(calls)
    name = os.path.basename(sys.executable)[:15]
    at_first = "no such process" if is_reaped else f"{name} is a zombie: it has no memory of its own"
    assert causes == {"the process ended while it was read", at_first}


# --- files that are gone, replaced, or elsewhere ----------------------------------------------------------------------


def test_the_symbols_of_a_deleted_program_are_read_from_the_program_that_runs(start: Start, tmp_path: Path) -> None:
    pid = start_sample(start, tmp_path)
    stop(pid)
    before = footprint.audit(pid)
    assert {"answer.0", "answer.1", "ConfigTab"} <= symbols_of(before, "base")
    for path in tmp_path.iterdir():
        path.unlink()
    after = footprint.audit(pid)
    assert symbols_of(after, "base (deleted)") == symbols_of(before, "base")
    for library in ("libunused.so", "libunused_dep.so"):
        # Their bytes can be had by root only, through map_files.
        is_noted = any(note.slug == "file-not-found" and library in note.subject for note in after.notes)
        has_sections = any(row.section == ".dynamic" for row in own(after, f"{library} (deleted)"))
        assert is_noted is not has_sections
    assert after.totals.private == before.totals.private


@needs_map_files
def test_root_reads_the_symbols_of_deleted_libraries_too(start: Start, tmp_path: Path) -> None:
    pid = start_sample(start, tmp_path)
    stop(pid)
    for path in tmp_path.iterdir():
        path.unlink()
    audit = footprint.audit(pid)
    assert "unused_ciphers" in symbols_of(audit, "libunused.so (deleted)")
    assert audit.notes == ()


def test_a_new_file_in_the_place_of_the_running_one_is_not_believed(start: Start, tmp_path: Path) -> None:
    pid = start_sample(start, tmp_path)
    stop(pid)
    smaps = tmp_path / "smaps.txt"
    smaps.write_bytes(Path(f"/proc/{pid}/smaps").read_bytes())
    shutil.copy(CONDOR_SHADOW / "sans_crypt", tmp_path / "new")  # it has other variables, and no answer.0
    saved_before = footprint.audit(str(smaps))
    os.replace(tmp_path / "new", tmp_path / "base")
    live, saved = footprint.audit(pid), footprint.audit(str(smaps))
    # The process is still the old program, which the kernel calls deleted.
    assert "answer.0" in symbols_of(live, "base (deleted)")
    # The text names a file, by path and inode: believed while it is that file, and no longer.
    assert "answer.0" in symbols_of(saved_before, "base")
    assert symbols_of(saved, "base") == set()
    replaced = [note for note in saved.notes if note.slug == "file-not-found"]
    assert [note.subject for note in replaced] == [str(tmp_path / "base")]
    assert "another file has its path now" in replaced[0].detail


@pytest.mark.skipif(not is_root, reason="only root may make a mount namespace")
def test_a_program_in_another_mount_namespace_is_read_there(start: Start, tmp_path: Path) -> None:
    if shutil.which("unshare") is None or not runs_samples():
        pytest.skip("unshare is missing, or the sample does not run here")
    # Here its path leads to another program; there, to a file system that only the process sees.
    shutil.copy(CONDOR_SHADOW / "sans_crypt", tmp_path / "base")
    inner = 'mount -t tmpfs none "$1" && cp "$2"/* "$1" && exec "$1"/base --wait'
    try:
        pid = start(
            ["unshare", "-m", "sh", "-c", f"({inner}) 2>/dev/null || echo refused", "sh", tmp_path, CONDOR_SHADOW]
        )
    except AssertionError:
        pytest.skip("namespaces or mounting are forbidden here")
    child = [int(name) for name in os.listdir("/proc") if name.isdigit() and is_child(int(name), pid)]
    audit = footprint.audit(child[0] if child else pid)
    assert "answer.0" in symbols_of(audit, "base")
    assert {path.name for path in tmp_path.iterdir()} == {"base"}
    assert "file-not-found" not in slugs(audit)


def is_child(pid: int, parent: int) -> bool:
    try:
        return status_of(pid).get("PPid") == str(parent)
    except (FileNotFoundError, ProcessLookupError):
        return False


# --- names ------------------------------------------------------------------------------------------------------------

GLIBC_VERSION = tuple(int(part) for part in platform.libc_ver()[1].split(".") if part.isdigit())
NAMES = {
    "newline": b"new\nline.so",
    "escape codes": b"\x1b[31mred\x1b[0m\x07.so",
    "not UTF-8": b"\xff\xfe.so",
    "right to left": "rtl\u202egnp.so".encode(),
    "no width": "zero\u200bwidth\ufeff.so".encode(),
    "C1 control": "\u009b31m.so".encode(),
    "255 bytes": b"n" * 252 + b".so",
    "spaces": b" two  spaces   three .so",
    "deleted, it says": b"tail.so (deleted)",
    "brackets": b"[heap]",
    "beyond PATH_MAX": b"/".join([b"d" * 250] * 17) + b"/deep.so",
}
LOADER = """
import ctypes, os, signal, sys
folder, kept = os.fsencode(sys.argv[1]), []
def is_loaded(path):
    # glibc 2.43 waits for ever where getcwd fails: a child tries it.
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        ctypes.CDLL(path)
        os._exit(0)
    return os.waitpid(child, 0)[1] != signal.SIGALRM
with open(sys.argv[2], 'rb') as file:
    library = file.read()
for name in map(bytes.fromhex, sys.argv[3:]):
    os.chdir(folder)
    *parts, last = name.split(b'/')
    for part in parts:
        os.mkdir(part)
        os.chdir(part)
    with open(last, 'wb') as file:
        file.write(library)
    # dlopen reads a name with a slash as a path: relative, so that it may be longer than any path can be.
    path = os.fsdecode(b'./' + last)
    if not parts or is_loaded(path):
        kept.append(ctypes.CDLL(path))
    else:
        os.unlink(last)
"""


@pytest.fixture
def badly_named(start: Start, tmp_path: Path) -> Iterator[int]:
    """A Python that has loaded one small library under many names."""
    if not runs_samples():
        pytest.skip("the prebuilt library is one for x86-64 with glibc")
    names = [name.hex() for name in NAMES.values()]
    pid = start_python(start, LOADER, str(tmp_path), str(CONDOR_SHADOW / "libunused_dep.so"), *names)
    stop(pid)
    left_out = NAMES.keys() - dict(loaded_names(tmp_path))
    assert left_out <= ({"beyond PATH_MAX"} if GLIBC_VERSION >= (2, 43) else set())
    yield pid
    shutil.rmtree(tmp_path)


def loaded_names(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names under which the library was loaded: the others were deleted."""
    for title, name in NAMES.items():
        *parts, last = name.split(b"/")
        opened = os.open(folder, os.O_RDONLY)
        for part in parts:
            inner = os.open(part, os.O_RDONLY, dir_fd=opened)
            os.close(opened)
            opened = inner
        if os.fsencode(last) in map(os.fsencode, os.listdir(opened)):
            yield title, name
        os.close(opened)


def test_badly_named_files_are_owners_under_the_name_that_the_kernel_gives(badly_named: int, tmp_path: Path) -> None:
    audit = footprint.audit(badly_named)
    owners = {row.owner for row in audit.ledger}
    for _, name in loaded_names(tmp_path):
        # The kernel writes a newline as \012, and everything else as it is.
        assert f"{tmp_path}/{os.fsdecode(name)}".replace("\n", "\\012") in owners
    rollup = rollup_of(badly_named)
    assert audit.totals.private.bytes == rollup["Anonymous"] + rollup["Swap"]


def test_badly_named_files_are_read_or_noted(badly_named: int, tmp_path: Path) -> None:
    audit = footprint.audit(badly_named)
    for _, name in loaded_names(tmp_path):
        owner = f"{tmp_path}/{os.fsdecode(name)}".replace("\n", "\\012")
        sections = {row.section for row in audit.ledger if row.owner == owner and row.section is not None}
        is_noted = any(
            note.slug == "file-not-found"
            for note in audit.notes
            if note.subject in {owner, ""} or "files" in note.subject
        )
        assert ".dynamic" in sections or is_noted, name
        if may_follow_map_files():
            assert ".dynamic" in sections, name


@pytest.mark.parametrize(
    "words", [["audit", "--top", "0"], ["audit", "-v", "--top", "0", "--by", "symbol"], ["audit", "--by", "mapping"]]
)
def test_badly_named_files_do_nothing_to_a_terminal(badly_named: int, words: list[str]) -> None:
    done = run_footprint(*words, str(badly_named))
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()  # it is UTF-8
    assert re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", text) == []
    for shown in (
        r"\x1b[31mred\x1b[0m\x07.so",
        r"\xff\xfe.so",
        r"rtl\u202egnp.so",
        r"zero\u200bwidth\ufeff.so",
        r"\x9b31m.so",
    ):
        assert shown in text


@pytest.mark.parametrize("verb", ["audit", "audit --by mapping"])
def test_badly_named_files_are_valid_in_json(badly_named: int, verb: str) -> None:
    done = run_footprint(*verb.split(), "--json", str(badly_named))
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    found = json.dumps(json.loads(done.stdout), ensure_ascii=False)
    found.encode("utf-8")  # no half of a surrogate pair, which stands for a byte that is not UTF-8
    assert r"\\xff\\xfe.so" in found


def test_a_command_line_of_escape_codes_is_shown_escaped(start: Start) -> None:
    pid = start([b"\x1b]0;title\x07\nsleep\xff", b"3600"], says="", executable=shutil.which("sleep"))
    # Popen returns when exec(2) has closed its files: the command line is there a moment later.
    wait_until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"\x1b"), "sleep to be executed")
    done = run_footprint("audit", str(pid))
    assert done.returncode == 0, done.stderr
    title = done.stdout.splitlines()[0]
    assert title == rf"footprint audit: process {pid}  \x1b]0;title\x07\x0asleep\xff 3600".encode()


# --- memory that is shared, merged, or of an odd shape ----------------------------------------------------------------

FORKS = """
import ctypes, mmap, os, time
blocks = [mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(2)]
for block in blocks:
    block[:] = b'x' * len(block)
child = os.fork()
blocks[0][: 1 << 20] = b'y' * (1 << 20)  # this quarter is each process's own
if child == 0:
    time.sleep(3600)
print('child', child, flush=True)
time.sleep(3600)
"""


def all_private_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as maps:
        ranges = [line.split(" ", 1)[0].split("-") for line in maps if "[vsyscall]" not in line]
    return sum(private_bytes_between(pid, int(start, 16), int(end, 16)) for start, end in ranges)


@pytest.fixture
def relatives(start: Start) -> tuple[int, int]:
    """A process and its child, which share 7 MiB of two blocks of 4 MiB; 1 MiB each has of its own."""
    parent = start([sys.executable, "-c", FORKS], says="child")
    child = next(int(name) for name in os.listdir("/proc") if name.isdigit() and is_child(int(name), parent))
    wait_until(lambda: all_private_bytes(parent) >= MIB and all_private_bytes(child) >= MIB, "writes")
    stop(parent, child)
    return parent, child


@pytest.mark.parametrize("which", [0, 1], ids=["parent", "child"])
def test_memory_shared_with_a_fork_relative_is_not_private(relatives: tuple[int, int], which: int) -> None:
    pid = relatives[which]
    audit, rollup = footprint.audit(pid), rollup_of(pid)
    private_bytes, shared_bytes = audit.totals.private.bytes, audit.totals.cow_shared.bytes
    assert private_bytes is not None
    assert shared_bytes is not None
    assert shared_bytes >= 7 * MIB
    assert private_bytes < rollup["Anonymous"]
    assert private_bytes + shared_bytes == rollup["Anonymous"] + rollup["Swap"]


@pytest.mark.parametrize("which", [0, 1], ids=["parent", "child"])
def test_what_is_private_beside_a_fork_relative_is_what_the_page_bits_say_or_noted(
    relatives: tuple[int, int], which: int
) -> None:
    pid = relatives[which]
    audit = footprint.audit(pid)
    exact_bytes = all_private_bytes(pid)
    assert exact_bytes >= MIB
    assert audit.totals.private.bytes is not None
    if "sharing-uncertain" in slugs(audit):
        assert audit.totals.private.bytes >= exact_bytes
    else:
        assert audit.totals.private.bytes == exact_bytes


ZEROS = """
import ctypes, mmap, time
device = open('/dev/zero', 'r+b')
blocks = [mmap.mmap(-1, 4 << 20), mmap.mmap(device.fileno(), 4 << 20, flags=mmap.MAP_PRIVATE)]
for block in blocks:
    block[: 1 << 20] = b'x' * (1 << 20)
print('ready', *(ctypes.addressof(ctypes.c_char.from_buffer(block)) for block in blocks), flush=True)
time.sleep(3600)
"""


def test_anonymous_memory_that_is_shared_is_not_the_device_that_the_kernel_names(start: Start) -> None:
    told: list[int] = []
    pid = start([sys.executable, "-c", ZEROS], pids=told)
    assert [mapping_of(pid, addr)[2] for addr in told] == ["/dev/zero (deleted)", "/dev/zero"]
    parts = [part_at(footprint.maps(pid), addr) for addr in told]
    assert [(part.owner, part.kind.value) for part in parts] == [
        ("[shared anonymous]", "shared"),
        ("/dev/zero", "file"),
    ]
    (row,) = own(footprint.audit(pid), "[shared anonymous]")
    assert (row.bytes, row.mapped_bytes, row.shared_bytes) == (0, 4 * MIB, MIB)


def segments_of(path: Path) -> list[tuple[int, int, int, int]]:
    """Return offset, vaddr, file bytes and memory bytes of each PT_LOAD, by readelf."""
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    listing = subprocess.run(["readelf", "-lW", path], capture_output=True, check=True).stdout.decode()
    rows = re.findall(r"^ +LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x(\w+) ", listing, re.MULTILINE)
    return [(int(a, 16), int(b, 16), int(c, 16), int(d, 16)) for a, b, c, d in rows]


def loaded_at(pid: int, path: Path) -> int:
    with open(f"/proc/{pid}/maps", encoding="utf-8") as text:
        return next(int(line.split("-")[0], 16) for line in text if line.rstrip().endswith(str(path)))


def test_a_bss_that_the_kernel_merged_with_its_neighbour_ends_where_the_program_header_says(
    start: Start, tmp_path: Path
) -> None:
    pid = start_sample(start, tmp_path)
    stop(pid)
    library = tmp_path / "libunused.so"
    _, vaddr, file_bytes, memory_bytes = segments_of(library)[-1]
    bss_addr = loaded_at(pid, library) + vaddr + file_bytes
    mapping_start, mapping_end, name = mapping_of(pid, bss_addr)
    bss_bytes = memory_bytes - file_bytes
    assert bss_bytes == 159_744  # unused_state, 39 pages
    if (mapping_start, name) != (bss_addr, "") or mapping_end == bss_addr + bss_bytes:
        pytest.skip("the kernel merged its .bss with nothing here")
    parts = [part for part in footprint.maps(pid).parts if mapping_start <= part.start_addr < mapping_end]
    assert [(part.owner, part.kind.value, part.size_bytes) for part in parts] == [
        (str(library), "bss", bss_bytes),
        ("[anonymous]", "anonymous", mapping_end - bss_addr - bss_bytes),
    ]
    # Only some of its pages are private. The page bits tell whose; without them they stay in one row that names both.
    audit = footprint.audit(pid)
    merged = [row for row in audit.ledger if row.owner == "[merged: libunused.so + [anonymous]]"]
    if merged:
        assert [row.mapped_bytes for row in merged] == [mapping_end - mapping_start]
    else:
        bss = [row for row in own(audit, "libunused.so") if row.kind.value == "bss"]
        assert sum(row.mapped_bytes for row in bss) == bss_bytes
        assert sum(row.bytes or 0 for row in bss) == private_bytes_between(pid, bss_addr, bss_addr + bss_bytes)


def test_pages_that_the_loader_wrote_and_locked_are_private(start: Start, tmp_path: Path) -> None:
    pid = start_sample(start, tmp_path)
    stop(pid)
    audit = footprint.audit(pid)
    for library in ("libunused.so", "libunused_dep.so"):
        rows = [row for row in own(audit, library) if row.kind.value == "relro"]
        assert sum(row.bytes or 0 for row in rows) == 4 * KIB  # one page each, by the README of the sample
        assert not any(row.is_writable for row in rows)
    assert {row.symbol for row in own(audit, "libunused.so") if row.kind.value == "relro"} >= {"unused_ciphers"}


STACKS = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
threading.stack_size(1 << 20)
found, ready = [], threading.Barrier(4)
def work():
    pointer = libc.malloc(100_000)
    ctypes.memset(pointer, 1, 100_000)
    found.append(pointer)
    ready.wait()
    time.sleep(3600)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
ready.wait()
print('ready', *found, flush=True)
time.sleep(3600)
"""


@pytest.fixture
def threaded(start: Start) -> tuple[int, list[int]]:
    """Return a stopped process of four threads, and where malloc gave three of them memory."""
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the C library is not glibc, which has the arenas and stacks meant here")
    told: list[int] = []
    pid = start([sys.executable, "-c", STACKS], pids=told)
    wait_until(lambda: all(len(words) == 9 for words in syscalls_of(pid)), "three threads to wait")
    stop(pid)
    return pid, told


def syscalls_of(pid: int) -> list[list[str]]:
    """Return what the threads beside the main one wait in: a number, six arguments, stack pointer, program counter."""
    threads = [name for name in os.listdir(f"/proc/{pid}/task") if name != str(pid)]
    if not os.access(f"/proc/{pid}/task/{pid}/syscall", os.R_OK):
        pytest.skip("/proc/PID/syscall may not be read here")
    return [Path(f"/proc/{pid}/task/{name}/syscall").read_text(encoding="ascii").split() for name in threads]


def test_a_thread_has_the_stack_that_its_stack_pointer_is_in(threaded: tuple[int, list[int]]) -> None:
    pid, _ = threaded
    pointers = [int(words[-2], 16) for words in syscalls_of(pid)]
    owned = footprint.maps(pid)
    for pointer in pointers:
        part = part_at(owned, pointer)
        assert (part.owner, part.kind.value) == ("[thread stacks]", "stack")
        assert part.attribution.value == "stack pointer"
    # Neighbours may be one mapping from glibc 2.42 on, which gives them no guards that are mappings.
    mapped = {mapping_of(pid, pointer) for pointer in pointers}
    assert len({part_at(owned, pointer).start_addr for pointer in pointers}) == 3
    ledger = footprint.audit(pid).ledger
    stacks_bytes = sum(row.mapped_bytes for row in ledger if row.owner == "[thread stacks]")
    # The libraries own their thread-local variables: those of three threads lie in these stacks, the first's does not.
    blocks_bytes = sum(row.mapped_bytes for row in ledger if row.attribution is Attribution.THREAD_VECTOR)
    whole_bytes = stacks_bytes + blocks_bytes * 3 // 4
    assert whole_bytes == sum(end - start for start, end, _ in mapped)
    # Asked for 1 MiB each, guards included up to glibc 2.41, which may add one since.
    guard_bytes = os.sysconf("SC_PAGE_SIZE") if len(mapped) < 3 else 0
    assert 3 * 9 * MIB // 10 < whole_bytes <= 3 * (MIB + guard_bytes)


def test_what_malloc_gave_to_a_thread_lies_in_an_arena(threaded: tuple[int, list[int]]) -> None:
    pid, pointers = threaded
    owned = footprint.maps(pid)
    assert len(pointers) == 3
    for pointer in pointers:
        part = part_at(owned, pointer)
        assert (part.owner, part.kind.value, part.attribution.value) == ("[malloc arenas]", "heap", "shape")
        assert part.mapping.is_mapped_writable
        # What the arena has reserved and does not use is part of it.
        reserved = part_at(owned, part.end_addr)
        assert (reserved.owner, reserved.mapping.permissions) == ("[malloc arenas]", "---p")
        assert reserved.end_addr - part.start_addr == 64 * MIB


MANY = """
import ctypes, mmap
count = 30_000
block = mmap.mmap(-1, count * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for page in range(0, count, 16):
    block[page * mmap.PAGESIZE] = 1
libc = ctypes.CDLL(None, use_errno=True)
start = ctypes.addressof(ctypes.c_char.from_buffer(block))
for page in range(1, count, 2):
    if libc.mprotect(ctypes.c_void_p(start + page * mmap.PAGESIZE), mmap.PAGESIZE, mmap.PROT_READ):
        raise OSError(ctypes.get_errno(), 'mprotect')
"""


def test_a_process_of_30_000_mappings_adds_up_too(start: Start) -> None:
    most = int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii"))
    if most < 31_000:
        pytest.skip(f"a process may have {most} mappings here")
    pid = start_python(start, MANY)
    stop(pid)
    with open(f"/proc/{pid}/maps", "rb") as text:
        count = text.read().count(b"\n")
    assert count > 30_000
    audit, rollup = footprint.audit(pid), rollup_of(pid)
    assert audit.mapping_count == count
    private_bytes = sum(row.bytes or 0 for row in audit.ledger if row.kind.value != "kernel")
    assert private_bytes == rollup["Anonymous"] + rollup["Swap"]
    assert "changed-while-read" not in slugs(audit)
    done = run_footprint("audit", "--by", "mapping", "--json", str(pid))
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["mappings"]) == count


ENDED_MAIN_THREAD = """
import ctypes, threading, time
kept = bytearray(3 << 20)
threading.Thread(target=time.sleep, args=(600,)).start()
print("ready", flush=True)
ctypes.CDLL(None).syscall(ctypes.c_long(60 if __import__("platform").machine() == "x86_64" else 93), 0)
"""


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="exit(2) has another number here")
def test_the_counters_of_a_process_are_read_on_where_the_thread_that_has_shown_them_ends() -> None:
    waits = "threading.Thread(target=__import__('os').read, args=(0, 1)).start()\nkept ="
    program = ENDED_MAIN_THREAD.replace("kept =", waits)
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            state, threads = Path(f"/proc/{child.pid}/stat"), Path(f"/proc/{child.pid}/task")
            wait_until(lambda: state.read_bytes().split()[2] == b"Z", "its main thread to end")
            reader = CounterReader(child.pid)
            assert reader.read(0) is not None
            child.stdin.close()
            wait_until(lambda: len(list(threads.iterdir())) == 2, "the first of its other threads to end")
            counters = reader.read(1)
            assert counters is not None
            assert counters.private_bytes > 3 << 20
            child.kill()
            wait_until(lambda: len(list(threads.iterdir())) == 1, "all other threads to end")
            assert [reader.read(2), reader.read(3)] == [None, None]
            reader.close()
        finally:
            child.kill()


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="exit(2) has another number here")
def test_a_process_whose_main_thread_has_ended_is_read_through_another_one(tmp_path: Path) -> None:
    # exit(2) ends one thread, as pthread_exit does.
    with subprocess.Popen([sys.executable, "-c", ENDED_MAIN_THREAD], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            state = Path(f"/proc/{child.pid}/stat")
            wait_until(lambda: state.read_bytes().split()[2] == b"Z", "its main thread to end")
            result = footprint.audit(child.pid)
            assert (result.totals.private.bytes or 0) > 3 << 20
            assert [note.slug for note in result.notes if note.subject == f"pid {child.pid}"] == ["main-thread-ended"]
            assert len(footprint.maps(child.pid).parts) > 20
            assert footprint.libraries(child.pid).graph.objects
            assert result.pid == child.pid
            assert footprint.maps(child.pid).pid == child.pid
            done = footprint.capture(child.pid, output=tmp_path / "file.capture", freeze=True)
            assert [note.slug for note in done.notes] == ["main-thread-ended"]
            watched = [sys.executable, "-m", "footprint", "watch", str(child.pid), "--for", "300ms", "--every", "100ms"]
            watched += ["--accept", "too-short"]
            answer = json.loads(subprocess.run([*watched, "--json"], stdout=subprocess.PIPE, check=True).stdout)
            assert min(sample["cost_bytes"] for sample in answer["samples"]) > 3 << 20
            saved = footprint.audit(tmp_path / "file.capture")
            assert saved.pid == child.pid
            assert saved.totals.private.bytes == result.totals.private.bytes
            assert b"tracing stop" in zipfile.ZipFile(tmp_path / "file.capture").read(f"{child.pid}/status")
        finally:
            child.kill()
