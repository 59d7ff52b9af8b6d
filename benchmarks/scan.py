"""The rate and the memory of `footprint scan` over synthetic captures: `python benchmarks/scan.py --captures 1000`.

It captures 50 processes with the script of `capture --script`, makes captures of many hosts of them (another process
ID, host, day each), scans them, and compares the totals of the dataset with a plain loop of audits. With `--folder`
all of it stays there: the same 50 processes make the same captures again. Their files are those of this machine.
"""

import argparse
import gzip
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path

import footprint
from footprint.store.parquet import open_dataset

_MOST_REAL = 50
_LEAST_BYTES = 10_000
_SECONDS_A_DAY = 86_400
_FIRST_DAY = 1_790_000_000  # 2026-09-21
_WAITING = """
python3 -, gdb -nx -q, php, node -, sqlite3 -batch, perl, ruby, tclsh, bash, dash, git cat-file --batch, openssl base64,
redis-server --port 0, ssh-agent -D, less, ed -s, bc -q, m4, mawk 1, sed p, jq ., xz -c, zstd -c, gzip -c, bzip2 -c,
busybox cat, xargs echo, patch -p1, cat, tac, tail -f, tee, sort, uniq, wc, nl, tr a b, cut -c1, fold, expand, paste,
od -c, hexdump, base64, md5sum, sha256sum, cksum, sleep 60, head, shuf, fmt, ptx
"""
"""Programs that wait for their input."""


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--hosts", type=int, default=20, help="hosts for 1,000 captures: 50 captures a host")
    parser.add_argument("--days", type=int, default=2, help="the days of the captures of a host")
    parser.add_argument("--folder", type=Path, help="where the captures and datasets stay; else a temporary folder")
    parser.add_argument("--looped", type=int, default=1000, help="how many of them a plain loop audits")
    args = parser.parse_args()
    with ExitStack() as opened:
        folder = args.folder or Path(opened.enter_context(tempfile.TemporaryDirectory()))
        real = _real_captures(folder / "real")
        print(f"{len(real)} processes, {sum(map(len, real)) // len(real) >> 10} KiB of text each")
        print("captures   hosts   wall s    cpu s   captures/cpu s        rows   parquet MiB   peak MiB (scan, worker)")
        for count in args.captures:
            captures, dataset = folder / f"captures-{count}", folder / f"fleet-{count}"
            host_count = max(1, count * args.hosts // 1000)
            if not captures.is_dir():
                _write(captures, real, count, host_count, args.days)
            print(f"{count:8,} {host_count:7,} {_measured(captures, dataset)}", flush=True)
            _compare(captures, dataset, args.looped)
    return 0


def _real_captures(kept: Path) -> list[bytes]:
    """Return the captures that are kept, or those of programs that are started."""
    if not kept.is_dir():
        kept.mkdir(parents=True)
        with ExitStack() as running:
            pids = []
            for words in [one.split() for one in _WAITING.split(",")]:
                if shutil.which(words[0]):
                    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=-3, stderr=-3)
                    running.callback(child.wait)
                    running.callback(child.kill)
                    pids.append(child.pid)
            time.sleep(1)
            for number, text in enumerate(islice(filter(None, map(_captured, pids)), _MOST_REAL)):
                (kept / f"{number:02}.capture").write_bytes(text)
    return [path.read_bytes() for path in sorted(kept.iterdir())]


def _captured(pid: int) -> bytes | None:
    done = subprocess.run(["sh", "-s", "--", str(pid)], input=_script().encode(), capture_output=True, check=False)
    if b" smaps\n" not in done.stdout or len(done.stdout) < _LEAST_BYTES:
        return None
    # Without its host and moment, it is of the folder and time that the benchmark gives it.
    text = re.sub(rb"(?m)^(?:name|captured_at) .*\n", b"", done.stdout, count=2)
    return text.replace(f" {pid} ".encode(), b" 4711 ").replace(f"\t{pid}\n".encode(), b"\t4711\n")


def _script() -> str:
    from footprint.verbs.capture.call import capture_script  # noqa: PLC0415 # a module of a verb

    return capture_script()


def _write(folder: Path, real: list[bytes], count: int, host_count: int, day_count: int) -> None:
    with ProcessPoolExecutor(initializer=_REAL.extend, initargs=(real,)) as pool:
        written = partial(_write_host, folder, count // host_count, day_count)
        for _ in pool.map(written, range(host_count), chunksize=10):
            pass


_REAL: list[bytes] = []
"""The real captures, of a worker."""


def _write_host(folder: Path, process_count: int, day_count: int, number: int) -> None:
    host = folder / f"host-{number:05}"
    host.mkdir(parents=True)
    for of_host in range(process_count):
        process = number * process_count + of_host
        text, pid = _REAL[process % len(_REAL)], str(10_000 + process)
        text = text.replace(b" 4711 ", f" {pid} ".encode()).replace(b"\t4711\n", f"\t{pid}\n".encode())
        path = host / f"{pid}.capture.gz"
        path.write_bytes(gzip.compress(text, 1, mtime=0))
        moment = _FIRST_DAY + of_host * day_count // process_count * _SECONDS_A_DAY
        os.utime(path, (moment, moment))


def _measured(captures: Path, dataset: Path) -> str:
    code = (
        "import sys, resource, footprint\n"
        "if __name__ == '__main__':\n"
        "    done = footprint.scan(sys.argv[1], output=sys.argv[2])\n"
        "    # Its own ru_maxrss would include the memory of the process that started it.\n"
        "    lines = open('/proc/self/status').read().split('\\n')\n"
        "    own = next(int(one.split()[1]) >> 10 for one in lines if one.startswith('VmHWM'))\n"
        "    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10\n"
        "    print(done.input_count, done.row_count, done.unreadable_count, own, worker)\n"
    )
    script = dataset.with_suffix(".py")
    script.write_text(code)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([sys.executable, script, captures, dataset], capture_output=True, check=True, text=True)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    count, rows, unreadable, own, worker = map(int, done.stdout.split())
    size = sum(path.stat().st_size for path in dataset.rglob("*.parquet")) / (1 << 20)
    if unreadable:
        print(f"{unreadable} could not be read", file=sys.stderr)
    return f"{wall:8.1f} {cpu:8.1f} {count / cpu:16.1f} {rows:11,} {size:13.1f} {own:10} {worker:6}"


def _compare(captures: Path, dataset: Path, looped: int) -> None:
    """Compare the totals of the dataset with those of a plain loop over some captures."""
    paths = sorted(captures.rglob("*.gz"))[:looped]
    began = time.process_time()
    audits = [footprint.audit(path) for path in paths]
    seconds = time.process_time() - began
    loop = [
        sum(getattr(audit.totals, name).bytes or 0 for audit in audits) for name in ("private", "kernel", "per_process")
    ]
    with open_dataset(str(dataset)) as connection:
        columns = "sum(private_bytes), sum(kernel_bytes), sum(per_process_bytes)"
        found = connection.execute(
            f"SELECT {columns} FROM processes WHERE input IN (SELECT unnest(?))",  # noqa: S608 # of the line above
            [list(map(str, paths))],
        ).fetchall()
    is_equal = [int(one) for one in found[0]] == loop
    print(f"         a loop over {len(paths):,}: {seconds:.1f} cpu s, {'equal' if is_equal else 'DIFFERENT'}")


if __name__ == "__main__":
    sys.exit(main())
