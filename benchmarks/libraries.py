"""The objects of every program of a machine: the time for link maps, bindings and the whole analysis, beside peers.

    python benchmarks/libraries.py [--folder DIR ...] [--most N]

All dynamic programs of the folders (`/usr/bin`, `/usr/sbin`) are read by one process, which runs none of them; what it
learned of a library is kept for the programs that come after. Three steps, each in a process of its own, so that each
has its own peak of memory: the objects of each program (`closures`), who binds to whom (`bindings`), and the cost of
each object with all findings (`analysis`). The peers answer less, a program at a time: `ld.so --list` the objects,
`ldd -u -r` what is unused and what is undefined; lddtree and libtree where they are installed.
"""

import argparse
import os
import resource
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from footprint.errors import FootprintError
from footprint.findings.registry import Fact, find_all
from footprint.loader.bindings import Binder
from footprint.loader.link_map import link
from footprint.loader.system import System
from footprint.loader.target import Environment
from footprint.sources.programs import Programs

LOADER = "/lib64/ld-linux-x86-64.so.2"
FOLDERS = ("/usr/bin", "/usr/sbin")
MIB = 1 << 20


class Row(NamedTuple):
    """One line of the table: the tool, the number of programs, the time and the memory."""

    name: str
    answer: str
    seconds: float
    peak_bytes: int | None


def programs(folders: Sequence[str]) -> Iterator[str]:
    """List the dynamic programs of some directories, once each, without set-ID programs, which `ldd` could start."""
    system = System()
    result = dict.fromkeys(
        os.path.realpath(entry.path)
        for folder in folders
        if Path(folder).is_dir()
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
        if entry.is_file()
    )
    for path in result:
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF" or os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
                continue
        try:
            if link(system, path).interpreter_object is not None:
                yield path
        except FootprintError:
            continue


def closures(paths: Sequence[str]) -> str:
    """Find the objects of all programs."""
    system = System()
    return f"{sum(len(link(system, path, Environment()).objects) for path in paths):,} objects"


def bindings(paths: Sequence[str]) -> str:
    """Find the objects and their symbol bindings."""
    system, binder, count = System(), Binder(), 0
    for path in paths:
        found = binder.bind(link(system, path, Environment()))
        count += sum(len(places) for providers in found.providers for places in providers.values())
    return f"{count:,} bindings"


def analysis(paths: Sequence[str]) -> str:
    """Run the whole analysis of `footprint libraries`."""
    reader, count, saving_bytes = Programs(environment=Environment()), 0, 0
    for path in paths:
        findings = find_all({Fact.GRAPH: reader.graph(path)})
        count += len(findings)
        saving_bytes += sum(finding.saving_bytes for finding in findings if finding.rule == "unused-library")
    return f"{count:,} findings, {saving_bytes >> 10:,} KiB"


STEPS: dict[str, Callable[[Sequence[str]], str]] = {"closures": closures, "bindings": bindings, "analysis": analysis}


def in_a_process(step: str, paths: Sequence[str]) -> Row:
    """Run a step in a fresh interpreter, which prints its time without its start, and its peak memory."""
    command = [sys.executable, __file__, "--step", step]
    done = subprocess.run(command, input="\n".join(paths), capture_output=True, text=True, check=True)
    seconds, peak_bytes, answer = done.stdout.split(maxsplit=2)
    return Row(f"footprint: {step}", answer.strip(), float(seconds), int(peak_bytes))


def step_of(name: str) -> None:
    """Run the step of such an interpreter."""
    paths = sys.stdin.read().splitlines()
    begin = time.perf_counter()
    answer = STEPS[name](paths)
    print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, answer)


def peers() -> Iterator[tuple[str, list[str]]]:
    """Return the commands of the installed peers."""
    if Path(LOADER).exists():
        yield "ld.so --list", [LOADER, "--list"]
    for command in (["ldd", "-u", "-r"], ["lddtree", "-l"], ["libtree", "-vvv"]):
        if shutil.which(command[0]):
            yield " ".join(command), command


def of_peer(name: str, command: Sequence[str], paths: Sequence[str]) -> Row:
    """Run a peer on each program, one after the other."""
    begin = time.perf_counter()
    count = 0
    for path in paths:
        done = subprocess.run([*command, path], capture_output=True, check=False)
        count += done.stdout.count(b"\n")
    return Row(name, f"{count:,} lines", time.perf_counter() - begin, None)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", nargs="+", default=list(FOLDERS), metavar="DIR", help="where the programs are")
    parser.add_argument("--most", type=int, default=0, metavar="N", help="how many programs to look at; 0 is all")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step_of(options.step)
        return
    paths = list(programs(options.folder))
    paths = paths[: options.most] if options.most else paths
    # The first read fills the page cache for all.
    closures(paths)
    rows = [in_a_process(step, paths) for step in STEPS]
    rows += [of_peer(name, command, paths) for name, command in peers()]
    print(f"{len(paths)} programs; load {os.getloadavg()[0]:.1f}")
    print(f"{'':24}{'seconds':>9}{'ms each':>9}{'peak MiB':>10}  answer")
    for row in rows:
        peak = "-" if row.peak_bytes is None else f"{row.peak_bytes / MIB:.0f}"
        print(f"{row.name:24}{row.seconds:9.2f}{1000 * row.seconds / len(paths):9.2f}{peak:>10}  {row.answer}")
    missing = [name for name in ("lddtree", "libtree") if not shutil.which(name)]
    if missing:
        print(f"not installed: {', '.join(missing)}")


if __name__ == "__main__":
    main()
