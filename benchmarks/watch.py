"""What a watch costs, beside its peers: `python benchmarks/watch.py`. It takes some minutes.

The first table has the processor time in a second that footprint and its peers take to watch processes that sleep, once
a second. It is the difference between a long and a short watch, so the start and the audits of both ends are not in it.
The second has the processor time of a program that allocates all the time, by itself and while it is watched.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median

_SHORT, _LONG = 10, 70
_ROUNDS = 5
_ALLOCATING = """
#include <stdlib.h>
#include <string.h>
int main(void) {
    static void *held[4096];
    for (long turn = 0; turn < 6000000; turn++) {
        long place = turn * 7919 % 4096;
        free(held[place]);
        held[place] = memset(malloc(64 + turn % 4000), 1, 64);
    }
    return 0;
}
"""
_MAPPINGS = """
import mmap, time
held = [mmap.mmap(-1, 8192) for _ in range(1000)]
for place, one in enumerate(held):
    one[0] = 1
    if place % 2: one.madvise(mmap.MADV_NOHUGEPAGE)
print('ready', flush=True)
time.sleep(10000)
"""


def cpu_seconds(words: Sequence[str]) -> float:
    """Run a command, and return its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def sleeping(count: int, code: str = "") -> Iterator[list[str]]:
    """Start processes that sleep, and return their PIDs."""
    words = [sys.executable, "-ISc", code] if code else ["sleep", "10000"]
    children = [subprocess.Popen(words, stdout=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield [str(child.pid) for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()


def footprint(pids: Sequence[str], seconds: int) -> list[str]:
    """Return the command that watches processes for some seconds."""
    return [sys.executable, "-m", "footprint", "watch", "--for", f"{seconds}s", "-q", *pids]


def psrecord(pids: Sequence[str], seconds: int) -> list[str]:
    """Return the same of psrecord."""
    words = ["psrecord", pids[0], "--interval", "1", "--duration", str(seconds), "--include-children"]
    return [*words, "--log", os.devnull]


def ps_loop(pids: Sequence[str], seconds: int) -> list[str]:
    """Return the same of a loop around ps."""
    asked = f"ps -o pid,rss,cmd -p {','.join(pids)}"
    return ["sh", "-c", f"for i in $(seq {seconds}); do {asked}; sleep 1; done"]


def print_watching() -> None:
    """Print what a second of watching costs."""
    cases: list[tuple[str, int, str]] = [
        ("1 process", 1, ""),
        ("1 process, 1,000 mappings", 1, _MAPPINGS),
        ("500 processes", 500, ""),
    ]
    contenders: list[tuple[str, Callable[[Sequence[str], int], list[str]]]] = [
        ("footprint watch", footprint),
        ("psrecord", psrecord),
        ("ps in a loop", ps_loop),
    ]
    print(f"{'watched once a second':<28}{'by':<18}{'% of a processor':>18}")
    for label, count, code in cases:
        with sleeping(count, code) as pids:
            for name, words in contenders:
                if shutil.which(words(pids, 1)[0]) is None or (name == "psrecord" and count > 1):
                    continue
                short, long = cpu_seconds(words(pids, _SHORT)), cpu_seconds(words(pids, _LONG))
                print(f"{label:<28}{name:<18}{100 * (long - short) / (_LONG - _SHORT):>18.2f}", flush=True)


def print_slowdown() -> None:
    """Print how much processor time a program takes while it is watched."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "allocating.c"), os.path.join(folder, "allocating")
        with open(source, "w", encoding="ascii") as file:
            file.write(_ALLOCATING)
        subprocess.run(["cc", "-O1", source, "-o", program], check=True)
        timed = os.path.join(folder, "timed.py")
        path_of_times = os.path.join(folder, "seconds")
        with open(timed, "w", encoding="ascii") as file:
            # The time of the program alone, whatever starts it.
            file.write(
                "import resource, subprocess, sys\nsubprocess.run(sys.argv[2:], stderr=subprocess.DEVNULL)\n"
                "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
                "open(sys.argv[1], 'a').write(f'{used.ru_utime + used.ru_stime}\\n')\n"
            )
        alone = [sys.executable, timed, path_of_times, program]
        ways = {
            "by itself": alone,
            "footprint watch": [sys.executable, "-m", "footprint", "watch", "-q", "--", *alone],
            "valgrind --tool=massif": [
                sys.executable,
                timed,
                path_of_times,
                "valgrind",
                "--tool=massif",
                f"--massif-out-file={folder}/massif.out",
                program,
            ],
            "heaptrack": [sys.executable, timed, path_of_times, "heaptrack", "-o", f"{folder}/heaptrack", program],
        }
        print(f"\n{'a program that allocates':<28}{'processor seconds':>18}{'ratio':>8}")
        base = 0.0
        for name, words in ways.items():
            if name.split()[0] in {"valgrind", "heaptrack"} and shutil.which(name.split()[0]) is None:
                continue
            open(path_of_times, "w", encoding="ascii").close()
            for _ in range(_ROUNDS if "footprint" in name or name == "by itself" else 1):
                subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            with open(path_of_times, encoding="ascii") as file:
                seconds = median(map(float, file))
            base = base or seconds
            print(f"{name:<28}{seconds:>18.2f}{seconds / base:>8.2f}", flush=True)


def main() -> None:
    """Print both tables, or the one that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", choices=["watching", "slowdown"])
    asked = parser.parse_args().table
    if asked != "slowdown":
        print_watching()
    if asked != "watching":
        print_slowdown()


if __name__ == "__main__":
    main()
