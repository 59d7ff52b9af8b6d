"""The processor time and memory for large recordings of heaptrack and files of DHAT, beside those of a peer.

`python benchmarks/heap_recordings.py --lines 12 --megabytes 159`. A program that is compiled for it, with three mixes
of allocations, is recorded by heaptrack, and read by `footprint heap` and heaptrack_print in turns. A file in the form
of DHAT is made, and read by `read_profile` and `json.load`. Prints a table, and judges nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

_ROUNDS = 3
# Blocks of `sizes` sizes by 8 functions, at six depths; so many percent are freed at once, others replace a kept one.
_PROGRAM = r"""
#include <stdint.h>
#include <stdlib.h>
#define KEPT 200000
static void *kept[KEPT];
static uint64_t state = 1;
static unsigned draw(void) { return (state = state * 6364136223846793005ull + 1442695040888963407ull) >> 33; }
__attribute__((noinline)) void *leaf(unsigned size, unsigned depth);
#define F(k) __attribute__((noinline)) void *f##k(unsigned size, unsigned depth) \
    { void *p = depth ? leaf(size, depth - 1) : malloc(size); __asm__ volatile("" : "+r"(p)); return p; }
F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
static void *(*const fs[])(unsigned, unsigned) = {f0, f1, f2, f3, f4, f5, f6, f7};
void *leaf(unsigned size, unsigned depth)
    { void *p = fs[(size / 16 + depth * 3) % 8](size, depth); __asm__ volatile("" : "+r"(p)); return p; }
int main(int argc, char **argv) {
    unsigned temporary_percent = atoi(argv[2]), sizes = atoi(argv[3]);
    for (long left = atol(argv[1]); left > 0 && argc > 3; left--) {
        void *p = leaf(16 + 16 * (draw() % sizes), draw() % 6);
        if (draw() % 100 < temporary_percent) { free(p); continue; }
        unsigned at = draw() % KEPT;
        free(kept[at]);
        kept[at] = p;
    }
}
"""
_MIXES = (("few classes, 90 % temporary", 90, 1), ("400 classes, 40 %", 40, 64), ("3,000 classes, none", 0, 500))
_READ = """
import mmap, sys
from footprint.heap.formats import read_profile
file = open(sys.argv[1], "rb")
read_profile(memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)), "dhat.out")
"""
_LOAD = "import json, sys; json.load(open(sys.argv[1]))"


def main() -> int:
    """Make the files, and measure."""
    parser = argparse.ArgumentParser(description="Time the readers of heaptrack and DHAT beside a peer.")
    parser.add_argument("--lines", type=int, default=12, metavar="N", help="millions of lines of a recording (12)")
    parser.add_argument("--megabytes", type=int, default=159, metavar="N", help="how long the file of DHAT is (159)")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N", help=f"of each, in turns ({_ROUNDS})")
    options = parser.parse_args()
    if min(options.lines, options.megabytes, options.rounds) < 1:
        parser.error("there is nothing to measure below 1")
    with tempfile.TemporaryDirectory() as folder:
        if all(map(shutil.which, ("heaptrack", "heaptrack_print", "gcc"))):
            for name, temporary_percent, sizes in _MIXES:
                path = _recorded(folder, options.lines * 10**6 // 2, temporary_percent, sizes)
                ours = [sys.executable, "-m", "footprint", "heap", path]
                _compare(f"heaptrack, {name}", ours, ["heaptrack_print", path], options.rounds)
        else:
            print("heaptrack or gcc is not installed")
        path = os.path.join(folder, "dhat.out")
        _make_dhat(path, options.megabytes * 10**6)
        python = [sys.executable, "-c"]
        name = f"DHAT, {options.megabytes} MB"
        _compare(name, [*python, _READ, path], [*python, _LOAD, path], options.rounds)
    return 0


def _compare(name: str, ours: Sequence[str], peer: Sequence[str], rounds: int) -> None:
    runs = [(_measured(ours), _measured(peer)) for _ in range(rounds)]
    (seconds, held_bytes), (peer_seconds, peer_bytes) = (min(some) for some in zip(*runs, strict=True))
    print(f"{name}; processor time, best of {rounds}")
    print(f"  footprint      {seconds:6.2f} s  {held_bytes >> 20:5} MiB  {seconds / peer_seconds:.2f} times the peer")
    peer_name = "json.load" if peer[0] == sys.executable else peer[0]
    print(f"  {peer_name:<15}{peer_seconds:6.2f} s  {peer_bytes >> 20:5} MiB")


def _measured(words: Sequence[str]) -> tuple[float, int]:
    """Return the processor time and the peak memory of a command."""
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, words)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def _recorded(folder: str, count: int, temporary_percent: int, sizes: int) -> str:
    source, program, path = (os.path.join(folder, name) for name in ("many.c", "many", f"recording-{sizes}"))
    with open(source, "w") as file:
        file.write(_PROGRAM)
    subprocess.run(["gcc", "-g", "-O1", "-fno-optimize-sibling-calls", source, "-o", program], check=True)
    words = ["heaptrack", "-o", path, program, str(count), str(temporary_percent), str(sizes)]
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return next(found for found in (f"{path}.zst", f"{path}.gz") if os.path.exists(found))


def _make_dhat(path: str, size_bytes: int) -> None:
    """Write points with 8 to 27 frames each, a quarter of them with counts of accesses, as Valgrind writes them."""
    state = 1

    def draw(most: int) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (state >> 33) % most

    frame_count = max(200, size_bytes // 1500)
    with open(path, "w") as file:
        file.write(
            '{"dhatFileVersion":2\n,"mode":"heap","verb":"Allocated"\n,"bklt":true,"bkacc":true\n,"tu":"instrs"\n'
        )
        file.write(',"cmd":"./program"\n,"pid":4711\n,"te":140000000\n,"tg":90000000\n,"pps":\n [')
        while file.tell() < size_bytes * 9 // 10:
            size, blocks = draw(10**6), draw(1000) + 1
            file.write(f'{{"tb":{size},"tbk":{blocks},"tl":{draw(10**9)}\n  ,"mb":{size // 2},"mbk":{blocks // 2}')
            file.write(f',"gb":{size // 3},"gbk":{blocks // 3},"eb":{size // 7},"ebk":{blocks // 7}\n')
            file.write(f'  ,"rb":{draw(10**6)},"wb":{draw(10**6)}\n')
            if draw(4) == 0:
                file.write(f'  ,"acc":[{",".join(str(draw(100)) for _ in range(draw(64) + 1))}]\n')
            places = (1 + draw(frame_count - 1 if depth > 6 else 199) for depth in range(8 + draw(20)))
            file.write(f'  ,"fs":[{",".join(map(str, places))}]\n  }}\n ,')
        file.write('{"tb":0,"tbk":0,"fs":[1]}\n ]\n,"ftbl":\n ["[root]"\n')
        for number in range(1, frame_count):
            place = f"function_{number} (file_{number % 997}.cpp:{number % 5000 + 1})"
            file.write(f' ,"0x{0x400000 + 7919 * number:X}: project::part_{number % 97}::{place}"\n')
        file.write(" ]\n}\n")


if __name__ == "__main__":
    sys.exit(main())
