"""Audit processes that change all the time, and call the library very often.

`python benchmarks/churn.py [RUNS] [CALLS]` (600 and 2,000): prints the exit codes of the runs, how many ended with a
traceback, and the memory and descriptors before and after the calls. Each run has a process that executes itself again,
forks, maps and unmaps memory, or starts threads.
"""

import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import footprint

# Perl starts in two milliseconds, so that it changes more often than Python would.
_LOOPS = {
    "exec": "exec $^X, '-e', $ENV{LOOP}",
    "fork": "while (1) { fork or exit; wait }",
    "map": "while (1) { my @held = map { 'x' x (1 << 20) } 1 .. 50 }",
    "threads": "use threads; while (1) { $_->join for map { threads->create(sub {}) } 1 .. 20 }",
}


@contextmanager
def changing(kind: str) -> Iterator[int]:
    """Start a process that changes all the time, and return its PID."""
    loop = _LOOPS[kind]
    # Without this, glibc keeps what was freed for the next time.
    environment = {**os.environ, "LOOP": loop, "MALLOC_MMAP_THRESHOLD_": "65536"}
    with subprocess.Popen(["perl", "-e", loop], env=environment) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def runs(count: int) -> tuple[Counter[int], list[str]]:
    """Audit changing processes by the command; return the exit codes, and the errors that are tracebacks or defects."""
    codes: Counter[int] = Counter()
    defects = []
    for kind in _LOOPS:
        with changing(kind) as pid:
            for number in range(count // len(_LOOPS)):
                words = ["audit", str(pid), "--json"] if number % 2 else ["libraries", str(pid)]
                command = [sys.executable, "-m", "footprint", *words]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                codes[done.returncode] += 1
                if "Traceback" in done.stderr or "defect" in done.stderr or done.returncode not in {0, 3}:
                    defects.append(f"{kind}: {done.returncode}: {done.stderr[-2000:]}")
    return codes, defects


def soak(count: int) -> tuple[list[int], list[int]]:
    """Audit a changing process by the library; return resident bytes and descriptors, ten times in between."""
    memory_bytes, descriptors = [], []
    with changing("map") as pid:
        for number in range(count):
            with suppress(footprint.FootprintError):
                footprint.audit(pid)
            if (number + 1) % max(1, count // 10) == 0:
                gc.collect()
                with open("/proc/self/statm", encoding="ascii") as file:
                    memory_bytes.append(int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE"))
                descriptors.append(len(os.listdir("/proc/self/fd")))
    return memory_bytes, descriptors


if __name__ == "__main__":
    counts = [int(one) for one in sys.argv[1:]] + [600, 2000][len(sys.argv) - 1 :]
    found_codes, found_defects = runs(counts[0])
    print(f"{counts[0]} runs: exit codes {dict(found_codes)}, {len(found_defects)} defects")
    print("\n".join(found_defects))
    resident, opened = soak(counts[1])
    print(f"{counts[1]} calls: {[one >> 20 for one in resident]} MiB, {opened} descriptors")
