"""The rate and the memory of `footprint scan` over synthetic captures: `python benchmarks/scan.py --captures 1000`.

It captures up to 50 processes of this machine with the script of `capture --script`, makes captures of many hosts of
them (another process ID and host each), scans them, and compares the totals of the dataset with a plain loop of audits.
"""

import argparse
import gzip
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import footprint
from footprint.store.parquet import open_dataset

_MOST_REAL = 50


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--hosts", type=int, default=50, help="hosts for 1,000 captures: 20 captures a host")
    parser.add_argument("--folder", type=Path, help="where the captures and the dataset are; a temporary folder")
    parser.add_argument("--looped", type=int, default=1000, help="how many of them a plain loop audits")
    parser.add_argument("--with-files", action="store_true", help="let the files of the processes be found here")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        real = _real_captures()
        if not asked.with_files:
            real = [one.replace(b"/usr/", b"/far/") for one in real]
        print(f"{len(real)} processes, {sum(map(len, real)) // len(real) >> 10} KiB of text each")
        print("captures   hosts   wall s    cpu s   captures/cpu s    rows   parquet MiB   peak MiB (scan, worker)")
        for count in asked.captures:
            captures, dataset = Path(folder, f"captures-{count}"), Path(folder, f"fleet-{count}")
            host_count = max(1, count * asked.hosts // 1000)
            _write(captures, real, count, host_count)
            print(f"{count:8,} {host_count:7,} {_measured(captures, dataset)}", flush=True)
            _compare(captures, dataset, asked.looped)
    return 0


def _real_captures() -> list[bytes]:
    script = _script()
    found = []
    for pid in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        done = subprocess.run(["sh", "-s", "--", pid], input=script.encode(), capture_output=True, check=False)
        if b" smaps\n" in done.stdout and len(done.stdout) > 10_000:
            found.append(
                done.stdout.replace(f" {pid} ".encode(), b" 4711 ").replace(f"\t{pid}\n".encode(), b"\t4711\n")
            )
        if len(found) == _MOST_REAL:
            break
    return found


def _script() -> str:
    from footprint.verbs.capture.call import capture_script  # noqa: PLC0415 # a module of a verb

    return capture_script()


def _write(folder: Path, real: list[bytes], count: int, host_count: int) -> None:
    each = count // host_count
    for number in range(count):
        host = folder / f"host-{number // each:05}"
        host.mkdir(parents=True, exist_ok=True)
        text, pid = real[number % len(real)], str(10_000 + number)
        text = text.replace(b" 4711 ", f" {pid} ".encode()).replace(b"\t4711\n", f"\t{pid}\n".encode())
        (host / f"{pid}.capture.gz").write_bytes(gzip.compress(text, 1, mtime=0))


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
    size = sum(one.stat().st_size for one in dataset.rglob("*.parquet")) / (1 << 20)
    if unreadable:
        print(f"{unreadable} could not be read", file=sys.stderr)
    return f"{wall:8.1f} {cpu:8.1f} {count / cpu:16.1f} {rows:7,} {size:13.1f} {own:10} {worker:6}"


def _compare(captures: Path, dataset: Path, looped: int) -> None:
    """Compare the totals of the dataset with those of a plain loop over some captures."""
    paths = sorted(captures.rglob("*.gz"))[:looped]
    began = time.process_time()
    audits = [footprint.audit(one) for one in paths]
    seconds = time.process_time() - began
    loop = [
        sum(getattr(one.totals, name).bytes or 0 for one in audits) for name in ("private", "kernel", "per_process")
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
