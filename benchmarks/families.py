"""Families of processes: what footprint says of a master with its workers, and what a memory cgroup is charged.

    python benchmarks/families.py [--only NAME ...]

Each server is started in a fresh memory cgroup, once with few workers and once with many; its programs and libraries
were charged elsewhere before. Clients of postgres and sshd are outside of it. When nothing changes any more, the charge
is read (anonymous memory, shared memory and kernel memory) and the tree is audited. Then a second group of the same
kind is started beside it.

`whole` is the cost of one group. `worker` is what the audit of the large group says of one more worker, against the
growth from the smaller to the larger group, divided by the workers in between. `group` is what it says of one more
group, against the growth by the second one. Servers that are not installed are left out. Run it as root.
"""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import footprint
from footprint.process.cgroup import MemoryGroup, make_group

KIB = 1024
PATIENCE_SECONDS = 60
TOLERANCE = 1 / 2000

Make = Callable[[Path, int], list[str]]
# Makes clients outside of the group: the folder, how many.
Visit = Callable[[Path, int], contextlib.AbstractContextManager[object]]

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
    """A kind of server, how to start it, and with how many workers.

    Attributes:
        name: What it is called.
        program: What must be installed.
        make: Returns its command.
        few: The workers of the smaller group.
        many: The workers of the larger group.
        others: The processes beside the workers.
        each: The processes of a worker.
        visit: Connects clients once it runs.
    """

    name: str
    program: str
    make: Make
    few: int = 4
    many: int = 12
    others: int = 1
    count_at_once: int = 1
    visit: Visit = lambda _folder, _count: contextlib.nullcontext()


class Measured(NamedTuple):
    """What a group of one size costs, in bytes: the charge, our figures, and the growth by a second group."""

    truth: int
    ours: int
    worker: int
    group: int
    growth: int


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


POSTGRES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))), Path("postgres"))
QUERIES = (
    "create temp table t as select i, repeat('x', 100) as v from generate_series(1, 5000) i",
    "select count(*), max(a.v) from t a join t b using (i)",
    "select relname, attname from pg_class c join pg_attribute a on a.attrelid = c.oid order by 1, 2",
)


def postgres(folder: Path, _count: int) -> list[str]:
    """Make a cluster, and return the command of its master."""
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    shutil.chown(folder, "postgres")
    initdb = [*user, str(POSTGRES.with_name("initdb")), "-D", f"{folder}/data", "-A", "trust", "--no-sync"]
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=folder)
    words = ["-k", str(folder), "-c", "listen_addresses=", "-c", "autovacuum=off", "-c", "max_connections=50"]
    return [*user, str(POSTGRES), "-D", f"{folder}/data", *words]


@contextlib.contextmanager
def postgres_clients(folder: Path, count: int, queries: tuple[str, ...] = ()) -> Iterator[None]:
    """Connect clients, and let each run queries."""
    with contextlib.ExitStack() as opened:
        for _ in range(count):
            client = opened.enter_context(postgres_client(f"{folder}/.s.PGSQL.5432"))
            for query in queries:
                text = query.encode() + b"\0"
                client.sendall(b"Q" + struct.pack("!i", 4 + len(text)) + text)
                until_ready(client)
        yield


def postgres_client(path: str) -> socket.socket:
    """Connect to a server that may be about to start."""
    words = b"user\0postgres\0database\0postgres\0\0"
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(path)
            client.sendall(struct.pack("!ii", 8 + len(words), 3 << 16) + words)
            until_ready(client)
        except (OSError, RuntimeError):
            client.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return client


def until_ready(client: socket.socket) -> None:
    """Read messages of the server until it waits for the next query."""
    kind = b""
    while kind != b"Z":
        kind, size = client.recv(1, socket.MSG_WAITALL), client.recv(4, socket.MSG_WAITALL)
        rest = struct.unpack("!i", size)[0] - 4
        text = client.recv(rest, socket.MSG_WAITALL) if rest else b""
        if kind == b"E":
            raise RuntimeError(text.decode(errors="replace"))


def postgres_after_queries(folder: Path, count: int) -> contextlib.AbstractContextManager[None]:
    """Connect clients, each of which runs the queries."""
    return postgres_clients(folder, count, QUERIES)


def sshd(folder: Path, _count: int) -> list[str]:
    """Write keys and the configuration of sshd, and return its command."""
    for name in ("host", "user"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{name}"]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    written(folder, "port", str(free_port()))
    os.makedirs("/run/sshd", exist_ok=True)
    text = (
        f"Port {(folder / 'port').read_text()}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile {folder}/pid\n"
        f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nMaxStartups 100\n"
    )
    return ["/usr/sbin/sshd", "-D", "-f", written(folder, "sshd.conf", text)]


@contextlib.contextmanager
def ssh_clients(folder: Path, count: int) -> Iterator[None]:
    """Open sessions, each of which runs a program that waits."""
    options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
    words = ["ssh", "-p", (folder / "port").read_text(), "-i", f"{folder}/user", *(f"-o{option}" for option in options)]
    with socket.socket() as client:
        while client.connect_ex(("127.0.0.1", int((folder / "port").read_text()))):
            time.sleep(0.1)
    clients = []
    for _ in range(count):
        ssh = subprocess.Popen([*words, "root@127.0.0.1", "exec sleep 600"], stdin=subprocess.DEVNULL)
        clients.append(ssh)
        time.sleep(0.3)
    try:
        yield
    finally:
        for ssh in clients:
            ssh.kill()
            ssh.wait()


JAVA = """
import com.sun.net.httpserver.HttpServer;
public class Server {
    public static void main(String[] words) throws Exception {
        HttpServer server = HttpServer.create(new java.net.InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> exchange.close());
        server.start();
    }
}
"""
GO = """
package main

import (
	"net"
	"net/http"
)

func main() {
	one, _ := net.Listen("tcp", "127.0.0.1:0")
	http.Serve(one, nil)
}
"""


def copies(words: list[str], count: int) -> list[str]:
    """Return a shell that starts so many copies of a program."""
    return ["sh", "-c", f"for i in $(seq {count}); do {' '.join(words)} & done; wait"]


def java(folder: Path, count: int) -> list[str]:
    """Compile a server, and return a command that starts copies of it."""
    subprocess.run(["javac", "-d", str(folder), written(folder, "Server.java", JAVA)], check=True)
    return copies(["java", "-Xmx64m", "-Xshare:auto", "-cp", str(folder), "Server"], count)


def go(folder: Path, count: int) -> list[str]:
    """Build a server, and return a command that starts copies of it."""
    written(folder, "go.mod", "module server\n\ngo 1.20\n")
    written(folder, "main.go", GO)
    subprocess.run(["go", "build", "-o", "server", "."], check=True, cwd=folder)
    return copies([f"{folder}/server"], count)


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
SIZE = "size = 4 << 20; "
# Each child makes 4 MiB of its own; what has a name is removed with the program (see `run`).
SHARED = {
    "shm_open": "file = os.open('/dev/shm/footprint-families-%d' % os.getpid(), os.O_RDWR | os.O_CREAT); "
    "os.ftruncate(file, size); memory = mmap.mmap(file, size); os.close(file); memory[:] = b'x' * size",
    "a tmpfs file": "path = '/dev/shm/footprint-families-%d' % os.getpid(); open(path, 'wb').write(b'x' * size); "
    "file = os.open(path, os.O_RDWR); memory = mmap.mmap(file, size); os.close(file); memory[:] = b'y' * size",
    "SysV": "import ctypes; libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p; "
    "number = libc.shmget(0, ctypes.c_size_t(size), 0o1600); place = libc.shmat(number, None, 0); "
    "libc.shmctl(number, 0, None); ctypes.memset(ctypes.c_void_p(place), 1, size)",
    "a memfd, mapped": "file = os.memfd_create('x'); os.ftruncate(file, size); memory = mmap.mmap(file, size); "
    "memory[:] = b'x' * size",
    "a memfd, not mapped": "file = os.memfd_create('x'); os.write(file, b'x' * size)",
    "anonymous": "memory = mmap.mmap(-1, size); memory[:] = b'x' * size",
}
DESCRIPTORS = (
    "import ctypes, select; libc = ctypes.CDLL(None); sockets = [socket.socketpair() for _ in range(50)]; "
    "pipes = [os.pipe() for _ in range(50)]; tcp = [socket.socket() for _ in range(50)]; "
    "udp = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(50)]; "
    "events = [os.eventfd(0) for _ in range(200)]; terminals = [os.openpty() for _ in range(20)]; "
    "files = [os.open('/dev/null', os.O_RDONLY) for _ in range(50)]; polls = [select.epoll() for _ in range(20)]; "
    "[polls[0].register(one) for one in events]; rings = [libc.syscall(425, 64, bytes(120)) for _ in range(5)]; "
    "watching = libc.inotify_init1(0); names = sorted(os.listdir('/usr/bin'))[:200]; "
    "[libc.inotify_add_watch(watching, b'/usr/bin/' + name.encode(), 2) for name in names]; "
    "texts = [open('/proc/self/stat').read(1) and open('/proc/self/stat') for _ in range(20)]; "
    "memory = [os.memfd_create('x') for _ in range(20)]; "
    "[os.write(end, bytes(30000)) for _, end in pipes[:20]]; [one.send(bytes(5000)) for one, _ in sockets[:20]]"
)
POSTGRES_OTHERS = 5  # the master, checkpointer, background writer, WAL writer, launcher of logical replication
FAMILIES = (
    Family("nginx, 34", "nginx", nginx, 8, 34),
    Family("nginx, 128", "nginx", nginx, 34, 128),
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
    *(Family(f"4 MiB each: {name}", "python3", forking("", SIZE + body)) for name, body in SHARED.items()),
    Family("each kind of descriptor", "python3", forking("", DESCRIPTORS)),
    Family("postgres, idle", str(POSTGRES), postgres, others=POSTGRES_OTHERS, visit=postgres_clients),
    Family("postgres, after queries", str(POSTGRES), postgres, others=POSTGRES_OTHERS, visit=postgres_after_queries),
    Family("sshd sessions", "/usr/sbin/sshd", sshd, count_at_once=2, visit=ssh_clients),
    Family("JVM, started copies", "javac", java, 2, 6),
    Family("Go server, started copies", "go", go),
)


def run(family: Family, count: int) -> Measured:
    """Start a family, measure it, and start it again beside itself."""
    with contextlib.ExitStack() as ended:
        group = ended.enter_context(make_group())
        first = started(ended, group, family, count, 1)
        truth = charged(group)
        result = footprint.audit_group(tree=first)
        started(ended, group, family, count, 2)
        projection = result.projection
        if not projection.terms:
            raise RuntimeError("what a process costs is unknown")
        ours, growth = result.totals.per_process.bytes or 0, charged(group) - truth
        return Measured(truth, ours, result.group.workers.each_bytes, projection.per_process_bytes, growth)


def charged(group: MemoryGroup) -> int:
    """Read what a group is charged when nothing changes any more, without page cache.

    Page cache is the machine's: what a server reads and writes is charged to the group, and costs no process.
    """
    return group.settled(20, tolerance=TOLERANCE).used_bytes - group.read_peak().page_cache_bytes


def started(ended: contextlib.ExitStack, group: MemoryGroup, family: Family, count: int, number: int) -> int:
    """Run a family in a group, wait until the group has its processes, and return the PID of the master.

    Args:
        ended: Ends it.
        group: The group.
        family: The family.
        count: How many workers.
        number: How many such families the group has then.
    """
    folder = Path(tempfile.mkdtemp())
    ended.callback(shutil.rmtree, folder, ignore_errors=True)
    ended.callback(remove_segments)
    folder.chmod(0o755)
    command, process_count = family.make(folder, count), number * (family.others + family.count_at_once * count)
    master = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: group.enter(os.getpid()),  # noqa: PLW1509 # one thread
    )
    ended.callback(end, master)
    ended.enter_context(family.visit(folder, count))
    last = time.monotonic() + PATIENCE_SECONDS
    while len(group.pids()) < process_count:
        if time.monotonic() > last or master.poll() is not None:
            raise RuntimeError(f"{command[0]} has {len(group.pids())} processes, not {process_count}")
        time.sleep(0.1)
    time.sleep(2)
    return master.pid


def end(master: "subprocess.Popen[bytes]") -> None:
    """End a family; many servers remove what they have in /dev/shm when they are asked to end."""
    master.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        master.wait(5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(master.pid, signal.SIGKILL)
    master.wait()


def remove_segments() -> None:
    """Remove the segments of shared memory that programs have left."""
    for path in Path("/dev/shm").glob("footprint-families-*"):  # noqa: S108 # where shm_open puts segments
        path.unlink()


def percent(ours: float, truth: float) -> str:
    """Return the error of a figure."""
    return f"{100 * (ours - truth) / truth:+.1f} %"


def main() -> None:
    """Measure the families that are installed, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[family.name for family in FAMILIES])
    wanted = parser.parse_args().only
    heads = "".join(f" {what:>9} {'truth':>9} {'error':>7}" for what in ("whole", "worker", "group"))
    print(f"{'family':28} {'workers':>7}{heads}")
    for family in FAMILIES:
        if family.name not in wanted or shutil.which(family.program) is None:
            continue
        try:
            run(family, family.few)  # what comes first is charged with the files, too
            few, many = run(family, family.few), run(family, family.many)
        except RuntimeError as error:
            print(f"{family.name:28} {error}")
            continue
        growth = (many.truth - few.truth) / (family.many - family.few)
        pairs = ((many.ours, many.truth), (many.worker, growth), (many.group, many.growth))
        figures = "".join(f" {ours / KIB:9,.1f} {truth / KIB:9,.1f} {percent(ours, truth):>7}" for ours, truth in pairs)
        print(f"{family.name:28} {family.many:7}{figures}", flush=True)


if __name__ == "__main__":
    main()
