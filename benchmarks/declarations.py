"""The time to find the declarations of variables, compared with a DWARF walk: `python benchmarks/declarations.py`.

A large C++ program is compiled for it, which takes some minutes of both CPUs; `--folder` keeps it for the next time,
and a file of one's own may be given in its place. Prints tables, and judges nothing.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

_MEGABYTES = 100
_ROUNDS = 3
_WALKED_MEGABYTES = 4
_MANY = (25_000, 50_000, 100_000)
_CLASSES = 60
_OPTIONS = ("-std=c++17", "-g", "-O0", "-w")
# Templates of the standard library are instantiated for each type: this produces much debug information quickly.
_HEADER = """
#pragma once
#include <algorithm>
#include <deque>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>
static const char *const header_names[] = {"red", "green", "blue"};
static int header_counters[16];
inline thread_local long per_thread;
template <int N> struct Key {
  int value[N + 1];
  bool operator<(const Key &other) const { return value[0] < other.value[0]; }
  static long made;
};
template <int N> long Key<N>::made = N;
template <int N> struct Only {
  std::map<Key<N>, std::vector<Key<N>>> map; std::set<Key<N>> set; std::deque<Key<N>> deque; std::list<Key<N>> list;
  std::unordered_map<int, Key<N>> unordered; std::shared_ptr<Key<N>> shared; std::unique_ptr<Key<N>> unique;
  std::variant<Key<N>, int, std::string> either; std::function<Key<N>(Key<N>)> function;
  std::pair<Key<N>, std::string> pair; std::tuple<Key<N>, int, Key<N>> tuple; std::optional<Key<N>> maybe;
};
template <int N> struct Shop {
  std::map<Key<N>, std::vector<std::string>> map; std::deque<Key<N>> deque; std::unordered_map<int, Key<N>> unordered;
  std::vector<std::shared_ptr<Key<N>>> shared;
  long use(int n) {
    static int calls[4];
    calls[n & 3]++; Key<N>::made++; header_counters[n & 15]++; per_thread++;
    map[Key<N>{}].push_back("x"); deque.push_back(Key<N>{}); unordered[n] = Key<N>{};
    shared.push_back(std::make_shared<Key<N>>()); std::sort(deque.begin(), deque.end());
    return calls[0] + map.size() + *header_names[n % 3];
  }
};
"""
# The call, in a fresh interpreter, for all writable variables or for all variables: its time, its results, and its
# peak memory without the mapped file.
_CALL = """
import json, mmap, sys, time
from footprint.elf.image import read_image
from footprint.dwarf.declarations import read_declarations
from footprint.dwarf.places import VariablePlaces
from footprint.dwarf.units import DebugInfo
from footprint.elf.abi import STT_FUNC
from footprint.elf.symbols import read_symbol_table, section_bases
file = open(sys.argv[1], "rb")
data = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
image = read_image(data, sys.argv[1])
is_meant = (lambda one: one.is_writable) if sys.argv[2] == "written" else (lambda one: True)
bases = section_bases(image, [(one.index, one) for one in image.sections if one.is_in_memory and is_meant(one)])
symbols = read_symbol_table(image).variables(bases)
symbols = [one for one in symbols if one.type != STT_FUNC and one.size_bytes]
places = set(map(VariablePlaces(image).of, symbols))
def kib(field, path="/proc/self/status"):
    return next((int(line.split()[1]) for line in open(path) if line.startswith(field + ":")), 0)
info = next((one for one in image.sections if one.name == ".debug_info"), None)
times = []
before = kib("RssAnon")
for _ in range(int(sys.argv[3])):
    found = None
    start = time.perf_counter()
    found = read_declarations(image, places)
    times.append(time.perf_counter() - start)
print(json.dumps({
    "seconds": min(times), "first": times[0], "debug_bytes": info.size_bytes if info else 0,
    "wanted": len(places), "found": len(found.by_place),
    "declarations": sum(map(len, found.by_place.values())),
    "notes": [one.slug for one in found.notes],
    "before_kib": before, "peak_kib": kib("VmHWM"), "file_kib": kib("RssFile"),
}))
"""
# A walk through the first units of the file, as in the documentation of pyelftools.
_WALK = """
import json, sys, time
from elftools.elf.elffile import ELFFile
most_bytes, count, passed, variables = int(sys.argv[2]), 0, 0, 0
with open(sys.argv[1], "rb") as file:
    start = time.perf_counter()
    debug = ELFFile(file).get_dwarf_info()
    opened = time.perf_counter() - start
    start = time.perf_counter()
    for unit in debug.iter_CUs():
        if passed >= most_bytes:
            break
        for entry in unit.iter_DIEs():
            count += 1
            variables += entry.tag == "DW_TAG_variable" and "DW_AT_location" in entry.attributes
        passed += unit["unit_length"] + 4
    print(json.dumps({"opened": opened, "seconds": time.perf_counter() - start, "bytes": passed, "entries": count}))
"""


def main() -> int:
    """Compile the program unless it is given, and measure."""
    parser = argparse.ArgumentParser(description="Time the search for declarations beside a walk with pyelftools.")
    parser.add_argument("--binary", metavar="FILE", help="a program with debug information, in place of one made here")
    parser.add_argument(
        "--commands", nargs="+", metavar="FILE", help="print only the times of whole commands, for these files"
    )
    parser.add_argument("--megabytes", type=int, default=_MEGABYTES, metavar="N", help="of .debug_info to make (100)")
    parser.add_argument("--compiler", default="g++", metavar="C++", help="what makes them (g++; clang++)")
    parser.add_argument("--options", default="", metavar="OPTIONS", help="more options of the compiler")
    parser.add_argument("--folder", metavar="DIR", help="where the program is kept, and is found again")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N", help=f"of the search ({_ROUNDS})")
    parser.add_argument(
        "--walk", type=int, default=_WALKED_MEGABYTES, metavar="N", help="megabytes that are walked (4)"
    )
    options = parser.parse_args()
    if min(options.megabytes, options.rounds, options.walk) < 1:
        parser.error("there is nothing to measure below 1")
    for path in options.commands or ():
        _commands(path, options.rounds)
    if options.commands:
        return 0
    if not options.binary and shutil.which(options.compiler) is None:
        parser.error(f"{options.compiler} is not installed: give a program with --binary")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or temporary
        os.makedirs(folder, exist_ok=True)
        more = options.options.split()
        path = options.binary or _program(folder, options.megabytes * 10**6, options.compiler, more)
        _large(path, options.rounds, options.walk * 10**6)
        _commands(path, 1)
        if not options.binary:
            _many(folder, options.compiler, more, options.rounds)
    return 0


def _large(path: str, rounds: int, walked_bytes: int) -> None:
    print(f"{os.path.basename(path)}, {os.path.getsize(path) / 1e6:,.0f} MB")
    written, everything = _asked(path, "written", rounds), _asked(path, "all", rounds)
    debug_bytes = written["debug_bytes"]
    print(f"  .debug_info of {debug_bytes / 1e6:,.1f} MB; best of {rounds}, `first` with cold caches")
    for label, row in (("written variables", written), ("all variables", everything)):
        print(f"  {label:18}  {_line(row)}")
    if importlib.util.find_spec("elftools") is None:
        print("  pyelftools is not installed")
        return
    words = [sys.executable, "-c", _WALK, path, str(walked_bytes)]
    walk = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    seconds = walk["seconds"] * debug_bytes / walk["bytes"]
    print(
        f"  pyelftools walks {walk['bytes'] / 1e6:.1f} MB, {walk['entries']:,} entries, in {walk['seconds']:.1f} s: "
        f"{seconds:,.0f} s for all (extrapolated)"
    )
    for label, row in (("written variables", written), ("all variables", everything)):
        print(f"  {label:18}  {seconds / row['seconds']:8,.0f} times as fast as that walk")


# Each finds where one variable is declared, or all variables; gdb reads the index of names for it.
_COMMANDS = {
    "footprint symbols --source": (sys.executable, "-m", "footprint", "symbols", "--source"),
    "footprint duplicates": (sys.executable, "-m", "footprint", "duplicates"),
    "nm --size-sort": ("nm", "-S", "--size-sort"),
    "llvm-dwarfdump --name": ("llvm-dwarfdump", "--name=header_counters"),
    "gdb info line": ("gdb", "-batch", "-nx", "-ex", "info line header_counters"),
}
_CHILD = """
import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""


def _commands(path: str, rounds: int) -> None:
    """Print the best processor time and the peak memory, mapped files included, of commands on the same file."""
    print(
        f"{os.path.basename(path)}, {os.path.getsize(path) / 1e6:,.0f} MB: processor time and peak memory of commands"
    )
    result: dict[str, list[tuple[float, int]]] = {}
    for _ in range(rounds):
        # They take turns, so that a machine that slows down slows down all of them.
        for label, words in _COMMANDS.items():
            if shutil.which(words[0]) is not None:
                child = subprocess.run([sys.executable, "-c", _CHILD, *words, path], capture_output=True, check=True)
                seconds, peak_kib = json.loads(child.stdout)
                result.setdefault(label, []).append((seconds, peak_kib))
    for label in _COMMANDS:
        if label not in result:
            print(f"  {label:26}  not installed")
            continue
        seconds, peak_kib = min(one[0] for one in result[label]), max(one[1] for one in result[label])
        print(f"  {label:26}  {seconds:7.2f} s  {peak_kib / 1024:8,.0f} MiB")


def _many(folder: str, compiler: str, options: list[str], rounds: int) -> None:
    print("one unit of many variables, all asked for")
    for count in _MANY:
        source, path = os.path.join(folder, f"many_{count}.cpp"), os.path.join(folder, f"many_{count}")
        if not os.path.exists(path):
            with open(source, "w") as file:
                file.writelines(f"static int of_{n}[{n % 7 + 1}] = {{{n}}};\n" for n in range(count))
                file.writelines(f"int use_{n}(int i) {{ return of_{n}[i]++; }}\n" for n in range(count))
                file.write("int main() { return 0; }\n")
            subprocess.run([compiler, *_OPTIONS, *options, source, "-o", path], check=True)
        one = _asked(path, "all", rounds)
        print(f"  {count:9,} variables  {_line(one)}  {one['seconds'] / max(one['found'], 1) * 1e6:5.1f} us each")


def _asked(path: str, which: str, rounds: int) -> dict[str, float]:
    words = [sys.executable, "-c", _CALL, path, which, str(rounds)]
    told: dict[str, float] = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    return told


def _line(row: dict[str, float]) -> str:
    held_mib = (row["peak_kib"] - row["file_kib"]) / 1024
    return (
        f"{row['seconds']:7.3f} s ({row['first']:.3f} first)  {row['debug_bytes'] / row['seconds'] / 1e6:8,.0f} MB/s  "
        f"{row['found']:7,} of {row['wanted']:,} found, {row['declarations']:,} declarations, "
        f"peak {held_mib:.0f} MiB beside the file, {row['before_kib'] / 1024:.0f} of them before"
    )


def _program(folder: str, debug_bytes: int, compiler: str, options: list[str]) -> str:
    """Compile units until their debug information has the requested size, and link them."""
    path = os.path.join(folder, "program")
    if os.path.exists(path):
        return path
    with open(os.path.join(folder, "header.h"), "w") as file:
        file.write(_HEADER)
    first = _object(folder, 0, compiler, options)
    count = max(2, -(-debug_bytes * 105 // 100 // _debug_bytes(first)))
    print(f"compiling {count} units with {compiler}", file=sys.stderr)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = [first, *pool.map(lambda number: _object(folder, number, compiler, options), range(1, count))]
    main_path = os.path.join(folder, "main.cpp")
    with open(main_path, "w") as file:
        file.writelines(f"long use_{number}(int);\n" for number in range(count))
        file.write("int main(int n, char **) { return " + " + ".join(f"use_{n}(n)" for n in range(count)) + "; }\n")
    subprocess.run([compiler, *_OPTIONS, *options, main_path, *objects, "-o", path], check=True)
    return path


def _object(folder: str, number: int, compiler: str, options: list[str]) -> str:
    source, path = (os.path.join(folder, f"unit_{number}.{suffix}") for suffix in ("cpp", "o"))
    classes = range(number * _CLASSES, (number + 1) * _CLASSES)
    with open(source, "w") as file:
        file.write('#include "header.h"\n')
        file.writelines(f"static long own_{k}[8] = {{{k + 1}}}; long of_{number}_{k};\n" for k in range(12))
        file.writelines(f"static Only<{n}> *only_{n}; long size_{n} = sizeof(Only<{n}>);\n" for n in classes)
        file.write(f"long use_{number}(int n) {{ long sum = 0;\n")
        file.writelines(
            f"{{ static Shop<{n}> shop; sum += shop.use(n) + own_{k}[n & 7] + (only_{n} != nullptr); }}\n"
            for k, n in enumerate(classes[:2])
        )
        file.write("return sum; }\n")
    subprocess.run([compiler, *_OPTIONS, *options, "-c", source, "-o", path], check=True)
    return path


def _debug_bytes(path: str) -> int:
    """Return the size of .debug_info of an object, by size(1)."""
    text = subprocess.run(["size", "-A", path], capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(".debug_info "))


if __name__ == "__main__":
    sys.exit(main())
