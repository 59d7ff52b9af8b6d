"""The time to read a large massif file, compared with ms_print: `python benchmarks/heap.py --megabytes 100`.

The file is made for it, of detailed snapshots only, with 20,000 places in the program, as of C++; `--short` ones, as of
C, make twice as many lines of it, and `--deepest` larger trees. `--file` names one instead. Prints a table, and judges
nothing.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from time import perf_counter

_PLACES = 20_000
_DEEPEST = 30
_ROUNDS = 3
_ROOT = "(heap allocation functions) malloc/new/new[], --alloc-fns, etc."
_HEAD = """#-----------
snapshot={0}
#-----------
time={0}000
mem_heap_B={1}
mem_heap_extra_B=8
mem_stacks_B=0
heap_tree=detailed
"""
# The call, in an interpreter of its own: its time, and its memory afterwards without the mapped file.
_CALL = """
import json, mmap, sys, time
from footprint.heap.formats import read_profile
file = open(sys.argv[1], "rb")
data = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
start = time.perf_counter()
profile = read_profile(data, "massif.out")
seconds = time.perf_counter() - start
nodes = sum(len(snapshot.tree) for snapshot in profile.snapshots if snapshot.tree)
held = next(line for line in open("/proc/self/status") if line.startswith("RssAnon"))
print(json.dumps([seconds, nodes, int(held.split()[1]) * 1024]))
"""


def main() -> int:
    """Write the file, and measure."""
    parser = argparse.ArgumentParser(description="Time the reader of massif beside ms_print.")
    parser.add_argument("--megabytes", type=int, default=100, metavar="N", help="how long the file is (100)")
    parser.add_argument("--short", action="store_true", help="short names of functions")
    parser.add_argument("--deepest", type=int, default=_DEEPEST, metavar="N", help=f"calls in a stack ({_DEEPEST})")
    parser.add_argument("--file", metavar="FILE", help="a file of massif, instead of one that is made")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N", help=f"of each, in turns ({_ROUNDS})")
    options = parser.parse_args()
    if options.megabytes < 1 or options.rounds < 1:
        parser.error("there is nothing to measure below 1")
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or os.path.join(folder, "massif.out")
        if not options.file:
            _make(path, options.megabytes * 10**6, options.deepest, is_short=options.short)
        size_bytes = os.path.getsize(path)
        commands, ours, others = [], [], []
        for _ in range(options.rounds):
            commands.append(_command(path))
            done = subprocess.run([sys.executable, "-c", _CALL, path], capture_output=True, check=True)
            seconds, nodes, held_bytes = json.loads(done.stdout)
            ours.append(seconds)
            if shutil.which("ms_print"):
                start = perf_counter()
                subprocess.run(["ms_print", path], stdout=subprocess.DEVNULL, check=True)
                others.append(perf_counter() - start)
    print(f"massif, {size_bytes / 1e6:.0f} MB, {nodes:,} nodes; best of {options.rounds}")
    seconds, peak_bytes = min(commands)
    print(f"  footprint heap{seconds:6.2f} s  {size_bytes / seconds / 1e6:6.1f} MB/s  {peak_bytes >> 20} MiB at most")
    print(f"  read_profile  {min(ours):6.2f} s  {size_bytes / min(ours) / 1e6:6.1f} MB/s  {held_bytes >> 20} MiB held")
    if others:
        print(f"  ms_print      {min(others):6.2f} s  {size_bytes / min(others) / 1e6:6.1f} MB/s")
    else:
        print("  ms_print is not installed")
    return 0


def _command(path: str) -> tuple[float, int]:
    """Return the time and the peak memory of the whole command."""
    start = perf_counter()
    words = [sys.executable, "-m", "footprint", "heap", path]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, words)
    return perf_counter() - start, usage.ru_maxrss * 1024


def _make(path: str, size_bytes: int, deepest: int, *, is_short: bool) -> None:
    draws = _draws()
    short = [f"0x{0x400000 + 79 * n:X}: f{n} (f.c:{n % 5000 + 1})" for n in range(_PLACES)]
    places = [
        f"0x{0x400000 + 7919 * n:X}: project::part_{n % 97}::Class{n % 1013}::function_{n}"
        f"(int, std::vector<long> const&) (file_{n % 997}.cpp:{n % 5000 + 1})"
        for n in range(_PLACES)
    ]
    with open(path, "w") as file:
        file.write("desc: --detailed-freq=1\ncmd: ./program\ntime_unit: i\n")
        for number in count():
            total_bytes = 10**8 + next(draws) % 10**8
            file.write(_HEAD.format(number, total_bytes))
            file.writelines(_lines(total_bytes, _ROOT, 0, deepest, short if is_short else places, draws))
            if file.tell() >= size_bytes:
                return


def _lines(amount: int, label: str, depth: int, deepest: int, places: list[str], draws: Iterator[int]) -> Iterator[str]:
    """Write a node and those below it: most have one caller, some two or three, which share its bytes."""
    few = (1, 1, 1, 1, 2, 3)[next(draws) % 6] if depth < deepest and amount > 200 and next(draws) % 50 else 0
    yield f"{' ' * depth}n{few}: {amount} {label}\n"
    rest = amount
    for left in range(few, 0, -1):
        share = rest if left == 1 else rest - next(draws) % (rest // 2 + 1)
        rest -= share
        caller = places[next(draws) % len(places)]
        yield from _lines(share, caller, depth + 1, deepest, places, draws)


def _draws() -> Iterator[int]:
    """Yield pseudo-random numbers, equal in every run."""
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        yield state >> 33


if __name__ == "__main__":
    sys.exit(main())
