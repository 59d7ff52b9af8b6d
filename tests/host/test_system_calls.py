"""What each verb asks of the kernel: which system calls it makes, which files it opens, and which of them it writes.

`docs/security.md` promises it; strace tells it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_binaries" / "unused_library"
PROFILE = ROOT / "tests" / "corpus" / "heap" / "massif-3.19-default.out"
SMAPS = ROOT / "tests" / "corpus" / "smaps-sleep.txt"

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def names_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What the interpreter and the C library do in any program, by their versions.
RUNTIME: Final = names_in(
    """access arch_prctl brk clock_gettime clock_nanosleep close dup epoll_create1 execve exit exit_group faccessat
    faccessat2 fcntl fstat fstatfs futex getcwd getdents64 getegid geteuid getgid getpid getppid getrandom
    gettid getuid ioctl lseek lstat madvise mmap mprotect mremap munmap newfstatat open openat openat2 poll
    pread64 prlimit64 read readlink readlinkat restart_syscall rseq rt_sigaction rt_sigprocmask rt_sigreturn
    sched_getaffinity select set_robust_list set_tid_address setitimer sigaltstack stat statfs statx
    sysinfo uname write"""
)
# Of these nothing is asked, and strace need not stop at them: most calls of an interpreter are among them.
UNTRACED: Final = names_in(
    """brk close fcntl fstat futex getdents64 ioctl lseek lstat mprotect munmap newfstatat pread64 read rt_sigaction
    stat"""
)
# A file is written beside the old one, with its mode, owner and attributes, and takes its name as a whole.
WRITING: Final = names_in(
    """fchmod fchown fdatasync fgetxattr flistxattr fsetxattr fsync ftruncate getxattr link linkat pwrite64 rename
    renameat renameat2 unlink unlinkat"""
)
# The descriptors and address spaces of processes are compared, sockets are asked how much unread data they hold, and
# threads where their stacks are. An empty memfd tells the device of all files in memory that have no name.
OF_PROCESSES: Final = names_in("get_robust_list getsockopt kcmp memfd_create pidfd_getfd pidfd_open process_madvise")
# A child of footprint holds processes by ptrace, so that they run on however footprint ends.
HOLDING: Final = names_in("clone clone3 fork kill pipe2 pselect6 ptrace wait4 waitid")
CGROUPS: Final = names_in("mkdir rmdir")
# The program of a run is started, and stopped at its exit; its rewritten copies are in a folder for temporary files.
LAUNCHING: Final = HOLDING | CGROUPS | names_in("chmod getrusage prctl signalfd4")
NETWORK: Final = names_in("accept accept4 bind connect listen recvfrom recvmsg sendmmsg sendmsg sendto socket")
# The kernel tells by netlink which processes start and end: a socket to the kernel, and no network.
NETLINK: Final = names_in("bind recvfrom recvmsg sendto setsockopt socket")
STARTING: Final = names_in("clone clone3 execveat fork vfork")


class Verb(NamedTuple):
    """A command, and the calls that it may make besides those of the runtime."""

    words: str
    more: frozenset[str] = WRITING


VERBS: Final = {
    "symbols": Verb("symbols --source PROGRAM -o OUT"),
    "libraries of a program": Verb("libraries PROGRAM -o OUT"),
    "libraries of a process": Verb("libraries PID -o OUT", WRITING | OF_PROCESSES),
    "duplicates": Verb("duplicates PROGRAM -o OUT"),
    "audit of a program": Verb("audit PROGRAM --findings -o OUT"),
    "audit of a text": Verb("audit SMAPS -o OUT"),
    "audit of a process": Verb("audit PID -o OUT", WRITING | OF_PROCESSES),
    "audit --html": Verb("audit PID -q --html OUT", WRITING | OF_PROCESSES),
    "audit --by mapping": Verb("audit --by mapping PID -o OUT", WRITING | OF_PROCESSES),
    "audit -n": Verb("audit PID -n 3 -o OUT", WRITING | OF_PROCESSES),
    "heap": Verb("heap PROFILE -o OUT"),
    "capture": Verb("capture PID -o OUT", WRITING | OF_PROCESSES),
    "capture --freeze": Verb("capture PID --freeze -o OUT", WRITING | OF_PROCESSES | HOLDING),
    "watch": Verb("watch PID --for 1s --every 200ms -o OUT", WRITING | OF_PROCESSES | HOLDING | NETLINK),
    "check": Verb("check PROGRAM --propose -o OUT"),
    "trend --add": Verb("trend --add PROGRAM --version 1 --history OUT"),
    "explain": Verb("explain unused-library", frozenset()),
    "doctor": Verb("doctor -o OUT", WRITING | OF_PROCESSES | CGROUPS),
    "run": Verb("run -o OUT -- PROGRAM", WRITING | OF_PROCESSES | LAUNCHING),
    "whatif": Verb("whatif --drop libcrypt_like.so --starts 1 -o OUT -- PROGRAM", WRITING | OF_PROCESSES | LAUNCHING),
}
each_verb = pytest.mark.parametrize("name", VERBS)

_CALL: Final = re.compile(r"^(?:\d+ +)?([a-z_0-9]+)\((.*)$", re.MULTILINE)
_OPENED: Final = re.compile(r'^(?:[^,"]*, )?"((?:[^"\\]|\\.)*)", ([^)]*)\) = \d+<(.*)>$')
_MAPPED: Final = re.compile(r"PROT_EXEC[^<]*<([^>]*)>")
_WRITES: Final = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TMPFILE|O_TRUNC|O_APPEND")

# Where the interpreter, its packages and the C library are, and what these read at their start.
OF_RUNTIME: Final = (
    *{sys.prefix, sys.base_prefix, os.path.realpath(sys.prefix), f"{ROOT}/footprint", f"{ROOT}/docs"},
    *("/usr/lib", "/lib", "/usr/local/lib", "/usr/share/locale", "/usr/share/zoneinfo", "/usr/lib64", "/lib64"),
    *("/etc/ld.so.cache", "/etc/locale.alias", "/etc/localtime", "/etc/ssl", "/dev/null", "/dev/urandom", "pipe:"),
    *("/usr/share/python", "/usr/bin/python"),
)
OF_MACHINE: Final = (
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/kernel/mm",
    "/sys/kernel/slab",
    "/sys/fs/cgroup",
    "/etc/ld.so",
)


class Trace(NamedTuple):
    """What strace has seen: calls, opened files with their flags, files mapped as code, kinds of sockets, programs."""

    calls: frozenset[str]
    opened: tuple[tuple[str, str], ...]
    code: frozenset[str]
    families: frozenset[str]
    program_count: int


@pytest.fixture(scope="module")
def sleeping() -> Iterator[int]:
    with subprocess.Popen(["sleep", "3600"]) as process:
        yield process.pid
        process.kill()


def trace_of(words: str, folder: Path, pid: int) -> Trace:
    given = {
        "PID": str(pid),
        "OUT": str(folder / "out"),
        "PROGRAM": str(SAMPLES / "shadow"),
        "PROFILE": str(PROFILE),
        "SMAPS": str(SMAPS),
    }
    path = folder / "trace"
    asked = [given.get(word, word) for word in words.split()]
    # Where footprint traces the program that it starts, strace cannot: it follows footprint alone.
    traced = [] if "--" in asked else ["-f", "--seccomp-bpf", "-e", f"trace=!{','.join(sorted(UNTRACED))}"]
    command = ["strace", *traced, "-qq", "-y", "-s", "4096", "-o", str(path), sys.executable, "-m", "footprint", *asked]
    environment = os.environ | {"TMPDIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120, env=environment)
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("ptrace is not allowed here")
    assert done.returncode == 0, done.stderr
    calls = _CALL.findall(path.read_text(errors="replace"))
    opened = [_OPENED.match(told) for name, told in calls if name in {"open", "openat", "openat2"}]
    return Trace(
        frozenset(name for name, _ in calls),
        tuple((one[3], one[2]) for one in opened if one is not None),
        frozenset(match[1] for name, told in calls if name == "mmap" and (match := _MAPPED.search(told))),
        frozenset(told.partition(",")[0] for name, told in calls if name == "socket"),
        sum(name in {"execve", "execveat"} for name, _ in calls),
    )


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory, sleeping: int) -> dict[str, tuple[Path, Trace]]:
    found = {}
    for name, verb in VERBS.items():
        folder = tmp_path_factory.mktemp("traced")
        found[name] = folder, trace_of(verb.words, folder, sleeping)
    return found


@each_verb
def test_a_verb_makes_only_the_system_calls_that_it_needs(traces: dict[str, tuple[Path, Trace]], name: str) -> None:
    _, trace = traces[name]
    assert trace.calls - RUNTIME - UNTRACED - VERBS[name].more == set()


@each_verb
def test_a_verb_that_reads_starts_nothing_and_opens_no_network(
    traces: dict[str, tuple[Path, Trace]], name: str
) -> None:
    _, trace = traces[name]
    assert trace.program_count == 1
    if VERBS[name].more >= HOLDING:
        assert "ptrace" in trace.calls or name == "watch"
    else:
        assert trace.calls & (STARTING | HOLDING) == set()
    assert trace.calls & NETWORK == set() or (name == "watch" and trace.families == {"AF_NETLINK"})


@each_verb
def test_a_verb_writes_only_what_it_was_asked_to_write(traces: dict[str, tuple[Path, Trace]], name: str) -> None:
    folder, trace = traces[name]
    written = {path for path, flags in trace.opened if _WRITES.search(flags)}
    # The groups that a program runs in, and that doctor makes to see whether it may; the input of a program.
    others = {"doctor": ("/sys/fs/cgroup/",), "run": ("/sys/fs/cgroup/", "/dev/null"), "whatif": ("/dev/null",)}
    assert [path for path in written if not path.startswith((str(folder), *others.get(name, ())))] == []


@each_verb
def test_a_verb_opens_only_its_input_and_what_belongs_to_it(
    traces: dict[str, tuple[Path, Trace]], name: str, sleeping: int
) -> None:
    folder, trace = traces[name]
    of_input = [str(folder), str(SAMPLES), str(PROFILE), str(SMAPS), os.path.realpath(f"/proc/{sleeping}/exe")]
    allowed = (*OF_RUNTIME, *OF_MACHINE, *of_input)
    # The interpreter looks for modules in the folder that it was started in; files of a process are opened in its root.
    folders = {str(ROOT), "/"}
    # The folders on the way to an output are entered one by one, so that no link of a stranger leads elsewhere.
    folders |= {str(parent) for parent in folder.parents}
    strange = {path for path, _ in trace.opened if not path.startswith(allowed)} - folders
    assert strange == set()
    if "PID" not in VERBS[name].words and name not in {"doctor", "run", "whatif"}:
        others = {path for path, _ in trace.opened if re.match(r"/proc/\d+(/|$)", path)}
        assert not any(path.startswith(f"/proc/{sleeping}/") for path in others)


@each_verb
def test_no_verb_that_reads_maps_its_input_as_code(traces: dict[str, tuple[Path, Trace]], name: str) -> None:
    _, trace = traces[name]
    assert not any(path.startswith(str(SAMPLES)) for path in trace.code)
