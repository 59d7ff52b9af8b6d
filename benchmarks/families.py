"""Families of processes: what footprint says of a master with its workers, and what a memory cgroup is charged.

    python benchmarks/families.py [--only NAME ...]

Each server is started in a fresh memory cgroup, once with few workers and once with many; its programs and libraries
were charged elsewhere before. When nothing changes any more, the charge is read (anonymous memory, shared memory and
kernel memory) and the tree is audited. `whole` is the cost of one such group, `worker` the growth from the smaller to
the larger group, divided by the workers in between. Servers that are not installed are left out. Run it as root.
"""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import footprint
from footprint.process.cgroup import MemoryGroup, make_group

KIB = 1024
PATIENCE_SECONDS = 60
TOLERANCE = 1 / 2000

Make = Callable[[Path, int], list[str]]

APPLICATION = """
import decimal, email, http.client, json, urllib.request
DATA = {str(number): [number] * 10 for number in range(20000)}
def app(environment, start):
    start("200 OK", [])
    return [b"ok"]
"""
# Each body runs in `{count}` children of one parent.
FORKING = """
import mmap, os, resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
{before}
for _ in range({count}):
    if os.fork() == 0:
        {body}
        time.sleep(600)
time.sleep(600)
"""


class Family(NamedTuple):
    """A kind of server, how to start it, and with how many workers."""

    name: str
    program: str
    make: Make
    few: int = 4
    many: int = 12


class Measured(NamedTuple):
    """What a group of one size costs, in bytes."""

    truth: int
    ours: int


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def written(folder: Path, name: str, text: str) -> str:
    """Write a file, and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def nginx(folder: Path, count: int) -> list[str]:
    """Write the configuration of nginx, and return its command."""
    server = f"server {{ listen 127.0.0.1:{free_port()}; location / {{ return 200 ok; }} }}"
    text = (
        f"user nobody nogroup;\nworker_processes {count};\ndaemon off;\npid {folder}/pid;\nerror_log {folder}/errors;\n"
        f"events {{ worker_connections 256; }}\nhttp {{ access_log off; {server} }}\n"
    )
    return ["nginx", "-c", written(folder, "nginx.conf", text), "-p", str(folder)]


def apache(folder: Path, count: int) -> list[str]:
    """Write the configuration of Apache with its prefork module, and return its command."""
    modules = "/usr/lib/apache2/modules"
    numbers = "".join(
        f"{word} {count}\n"
        for word in ("ServerLimit", "StartServers", "MinSpareServers", "MaxSpareServers", "MaxRequestWorkers")
    )
    text = (
        f"ServerRoot {folder}\nServerName localhost\nListen 127.0.0.1:{free_port()}\nPidFile {folder}/pid\n"
        f"ErrorLog {folder}/errors\nUser nobody\nGroup nogroup\nMutex file:{folder}\nDefaultRuntimeDir {folder}\n"
        f"LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so\n"
        f"LoadModule authz_core_module {modules}/mod_authz_core.so\n{numbers}"
    )
    return ["apache2", "-f", written(folder, "apache.conf", text), "-DFOREGROUND"]


def php(folder: Path, count: int) -> list[str]:
    """Write the configuration of php-fpm, and return its command."""
    text = (
        f"[global]\npid={folder}/pid\nerror_log={folder}/errors\ndaemonize=no\n[www]\nuser=nobody\ngroup=nogroup\n"
        f"listen=127.0.0.1:{free_port()}\npm=static\npm.max_children={count}\n"
    )
    return ["php-fpm8.2", "-y", written(folder, "fpm.conf", text), "-F"]


def gunicorn(folder: Path, count: int, *options: str) -> list[str]:
    """Write an application, and return the command of gunicorn."""
    written(folder, "app.py", APPLICATION)
    words = ["-w", str(count), "-b", f"127.0.0.1:{free_port()}", *options, "app:app"]
    return ["/usr/bin/python3", "-m", "gunicorn", "--chdir", str(folder), *words]


def gunicorn_preload(folder: Path, count: int) -> list[str]:
    """Return the command of gunicorn with the application loaded before it forks."""
    return gunicorn(folder, count, "--preload")


def uwsgi(folder: Path, count: int) -> list[str]:
    """Write an application, and return the command of uWSGI."""
    written(folder, "app.py", APPLICATION)
    words = ["--chdir", str(folder), "--module", "app:app", "--master", "--processes", str(count)]
    return ["uwsgi", "--plugin", "python3", "--http-socket", f"127.0.0.1:{free_port()}", *words]


def puma(folder: Path, count: int) -> list[str]:
    """Write an application, and return the command of puma in cluster mode."""
    application = written(folder, "config.ru", "run lambda { |env| [200, {}, ['ok']] }\n")
    words = ["-t", "2:2", "-b", f"tcp://127.0.0.1:{free_port()}", "--dir", str(folder), application]
    return ["puma", "-w", str(count), *words]


def forking(before: str, body: str) -> Make:
    """Return what makes a program whose children run a body."""

    def make(_folder: Path, count: int) -> list[str]:
        return [sys.executable, "-ISc", FORKING.format(before=before, body=body, count=count)]

    return make


SEGMENT = (
    "name = '/dev/shm/footprint-%d' % os.getpid(); file = os.open(name, os.O_RDWR | os.O_CREAT); os.unlink(name); "
    "os.ftruncate(file, 4 << 20); memory = mmap.mmap(file, 4 << 20); memory[:] = b'x' * (4 << 20)"
)
HUGE = (
    "memory = mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); memory.madvise(14); "
    "memory[:] = b'x' * (16 << 20)"
)
FAMILIES = (
    Family("nginx", "nginx", nginx, 34, 128),
    Family("Apache, prefork", "apache2", apache),
    Family("php-fpm", "php-fpm8.2", php),
    Family("gunicorn", "gunicorn", gunicorn),
    Family("gunicorn, preloaded", "gunicorn", gunicorn_preload),
    Family("uWSGI", "uwsgi", uwsgi),
    Family("puma", "puma", puma),
    Family(
        "500 inherited socket pairs",
        "python3",
        forking("kept = [socket.socketpair() for _ in range(500)]", "pass"),
        4,
        20,
    ),
    Family("4 MiB of shared memory each", "python3", forking("", SEGMENT)),
    Family("huge pages split by fork", "python3", forking(HUGE, "memory[0] = memory[5 << 20] = 1")),
)


def run(family: Family, count: int) -> Measured:
    """Start a family, and measure it."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        with make_group() as group:
            return measure(group, family.make(folder, count), folder, count + 1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(group: MemoryGroup, command: list[str], folder: Path, process_count: int) -> Measured:
    """Run a command in a group until it has its processes, and read what they cost."""
    master = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: group.enter(os.getpid()),  # noqa: PLW1509 # one thread
    )
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        while len(group.pids()) < process_count:
            if time.monotonic() > end or master.poll() is not None:
                raise RuntimeError(f"{command[0]} has {len(group.pids())} processes, not {process_count}")
            time.sleep(0.1)
        time.sleep(2)
        truth = group.settled(20, tolerance=TOLERANCE).used_bytes
        found = footprint.audit_group(tree=master.pid)
        return Measured(truth, found.per_group.bytes or 0)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(master.pid, signal.SIGKILL)
        master.wait()


def percent(ours: float, truth: float) -> str:
    """Return the error of a figure."""
    return f"{100 * (ours - truth) / truth:+.1f} %"


def main() -> None:
    """Measure the families that are installed, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[family.name for family in FAMILIES])
    wanted = parser.parse_args().only
    print(
        f"{'family':28} {'workers':>7} {'whole':>9} {'truth':>9} {'error':>8} {'worker':>8} {'truth':>8} {'error':>8}"
    )
    for family in FAMILIES:
        if family.name not in wanted or shutil.which(family.program) is None:
            continue
        try:
            run(family, family.few)  # what comes first is charged with the files, too
            few, many = run(family, family.few), run(family, family.many)
        except RuntimeError as error:
            print(f"{family.name:28} {error}")
            continue
        more = family.many - family.few
        ours, truth = (many.ours - few.ours) / more, (many.truth - few.truth) / more
        print(
            f"{family.name:28} {family.many:7} {many.ours / KIB:9,.0f} {many.truth / KIB:9,.0f} "
            f"{percent(many.ours, many.truth):>8} {ours / KIB:8,.1f} {truth / KIB:8,.1f} {percent(ours, truth):>8}",
            flush=True,
        )


if __name__ == "__main__":
    main()
