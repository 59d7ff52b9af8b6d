"""The time that footprint and its peers need for the same inputs: `python benchmarks/run.py`. See README.md here.

It prints tables; its exit code does not depend on any time.
"""

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from resource import RUSAGE_SELF, getrusage
from time import perf_counter
from typing import NamedTuple

_HERE = os.path.dirname(os.path.abspath(__file__))
_MAPPINGS = 30_000
_ROUNDS = 7


class Contender(NamedTuple):
    """One program in a table.

    Attributes:
        label: Its name in the table.
        words: The command.
        column: The heading of the column that compares the others with it; empty without such a column.
        inside: The rows from its own JSON output: the label, and the figures that add up to it.
    """

    label: str
    words: tuple[str, ...]
    column: str = ""
    inside: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Sample(NamedTuple):
    """One run: the time until its output and the process ended, its peak memory, its exit code, its output."""

    seconds: float
    peak_bytes: int
    exit_code: int
    output: bytes


class Row(NamedTuple):
    """One line of a table. The peak is None for a part of a run."""

    label: str
    seconds: list[float]
    peak_bytes: int | None
    column: str


class Group(NamedTuple):
    """Contenders that answer the same question about the same input."""

    title: str
    contenders: list[Contender]
    missing: list[str]


def main() -> int:
    """Measure the requested tables, one after the other."""
    parser = argparse.ArgumentParser(description="Time footprint and its peers on the same inputs.")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N", help=f"how many are counted ({_ROUNDS})")
    parser.add_argument("--only", action="append", choices=("symbols", "libraries", "mappings", "start"))
    parser.add_argument("--slow", action="store_true", help="pyelftools and LIEF too: seconds a round")
    parser.add_argument("--binary", metavar="FILE", help="the file of `symbols` (node, or the largest unstripped one)")
    parser.add_argument("--mappings", type=int, default=_MAPPINGS, metavar="N", help=f"of the process ({_MAPPINGS})")
    options = parser.parse_args()
    if options.rounds < 1 or options.mappings < 1:
        parser.error("there is nothing to count below 1")
    if options.binary and not os.path.isfile(options.binary):
        parser.error(f"{options.binary} is not a file")
    if importlib.util.find_spec("footprint") is None:
        parser.error(f"{sys.executable} has no footprint: install it (pip install -e .), or use `make bench`")
    for line in _header(options.rounds):
        print(line)
    only = options.only or ("symbols", "libraries", "mappings", "start")
    if "symbols" in only:
        _show(_symbols(options.binary or _binary(), is_slow=options.slow), options.rounds)
    if "libraries" in only:
        _show(_libraries(), options.rounds)
    if "mappings" in only:
        with _many_mappings(options.mappings) as pid:
            if pid is None:
                print("\nmappings: no process with so many can be made here: see vm.max_map_count, and --mappings")
            else:
                _show(_process(pid), options.rounds)
    if "start" in only:
        _show(_start(), options.rounds)
    return 0


def _symbols(path: str, *, is_slow: bool) -> Group:
    size_bytes = os.path.getsize(path)
    pipeline = f'objdump -t {shlex.quote(path)} | grep -e "\\.bss" -e "\\.data" | sort -k5 | c++filt'
    contenders = [
        Contender("footprint symbols F", (*_footprint(), "symbols", path), "symbols"),
        _call("footprint", (path,), "footprint.symbols(F)"),
        Contender("nm -S --size-sort -C F", ("nm", "-S", "--size-sort", "-C", path)),
        Contender("objdump -t F | grep | sort | c++filt", ("sh", "-c", pipeline)),
        Contender("size -A F", ("size", "-A", path)),
        Contender("bloaty -d symbols F", ("bloaty", "-d", "symbols", path)),
    ]
    present, missing = _present(contenders, ("objdump", "c++filt"))
    for name, module in (("pyelftools", "elftools"), ("LIEF", "lief")):
        if not is_slow:
            missing.append(f"{name} (--slow)")
        elif importlib.util.find_spec(module) is None:
            missing.append(name)
        else:
            present.append(_call(name, (path,), f"{name}, F"))
    return Group(f"symbols: F is {path}, {_mib(size_bytes)}", present, missing)


def _libraries() -> Group:
    folder, paths = _shared_libraries()
    size_bytes = sum(map(os.path.getsize, paths))
    contenders = [
        Contender("size -A", ("size", "-A", *paths)),
        Contender("nm -D -S", ("nm", "-D", "-S", *paths)),
    ]
    present, missing = _present(contenders)
    ours = _call("footprint", paths, "footprint.symbols(*paths)", "symbols")
    title = f"libraries: {len(paths)} shared libraries below {folder}, {_mib(size_bytes)}, all in one process"
    return Group(title, [ours, *present], missing)


def _process(pid: int) -> Group:
    with open(f"/proc/{pid}/maps", "rb") as maps:
        count = sum(1 for _ in maps)
    contenders = [
        Contender("footprint audit --by mapping PID", (*_footprint(), "audit", "--by", "mapping", str(pid)), "maps"),
        Contender("footprint audit PID", (*_footprint(), "audit", str(pid)), "audit"),
        Contender("pmap -x PID", ("pmap", "-x", str(pid))),
        Contender("pmap -XX PID", ("pmap", "-XX", str(pid))),
        Contender("cat /proc/PID/smaps", ("cat", f"/proc/{pid}/smaps")),
    ]
    return Group(f"mappings: a process with {count:,} mappings", *_present(contenders))


def _start() -> Group:
    contenders = [
        Contender("footprint --version", (*_footprint(), "--version"), "version"),
        Contender("footprint --help", (*_footprint(), "--help"), "help"),
        Contender("python3 -c pass", (sys.executable, "-c", "pass")),
    ]
    return Group("start", *_present(contenders))


def _footprint() -> tuple[str, ...]:
    """Return our command: the one installed beside this interpreter, else the module."""
    script = os.path.join(os.path.dirname(sys.executable), "footprint")
    return (script,) if os.access(script, os.X_OK) else (sys.executable, "-P", "-m", "footprint")


def _call(reader: str, paths: Sequence[str], label: str, column: str = "") -> Contender:
    inside = ((f"{label}, the call", ("call",)), (f"{label}, and import", ("import", "call")))
    words = (sys.executable, "-P", os.path.join(_HERE, "calls.py"), reader, *paths)
    return Contender(f"{label}, whole process", words, column, inside)


def _present(contenders: list[Contender], also: Sequence[str] = ()) -> tuple[list[Contender], list[str]]:
    """Separate installed from missing contenders; `also` lists programs that a shell will run."""
    absent = {name for name in (*(contender.words[0] for contender in contenders), *also) if shutil.which(name) is None}
    present = [
        contender
        for contender in contenders
        if contender.words[0] not in absent and not (contender.words[0] == "sh" and absent.intersection(also))
    ]
    return present, sorted(absent)


def _binary() -> str:
    """Find node, else the largest program with a symbol table."""
    node = shutil.which("node")
    folders = os.get_exec_path()
    programs = {entry for folder in folders if os.path.isdir(folder) for entry in _regular_files(folder)}
    largest_first = sorted(programs, key=lambda path: (-os.path.getsize(path), path))
    words = (sys.executable, "-P", os.path.join(_HERE, "calls.py"), "unstripped")
    found = _run((*words, *([node] if node else []), *largest_first[:500])).output.decode().strip()
    return found or sys.executable


def _regular_files(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.path for entry in entries if entry.is_file(follow_symlinks=False)]


def _shared_libraries() -> tuple[str, list[str]]:
    """Find the ELF files below the folder of the system's libraries that are named `.so`, once each."""
    multiarch = getattr(sys.implementation, "_multiarch", "") or f"{os.uname().machine}-linux-gnu"
    folder = next(one for one in (f"/usr/lib/{multiarch}", "/usr/lib64", "/usr/lib") if os.path.isdir(one))
    paths = [
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(".so") or ".so." in name
    ]
    return folder, sorted(filter(_is_elf, paths))


def _is_elf(path: str) -> bool:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


@contextmanager
def _many_mappings(count: int) -> Iterator[int | None]:
    """Keep a process with many mappings alive; yield None where the kernel refuses."""
    words = [sys.executable, "-P", os.path.join(_HERE, "many_mappings.py"), str(count)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        is_ready = process.stdout is not None and process.stdout.readline()
        yield process.pid if is_ready else None


def _show(group: Group, rounds: int) -> None:
    """Measure a group and print its table."""
    print(f"\n{group.title}")
    samples = _measure(group.contenders, rounds)
    rows = [row for contender in group.contenders for row in _rows(contender, samples[contender.label])]
    columns = [row for row in rows if row.column]
    table = [("", "best", "median", "peak memory", *(f"{row.column}/it" for row in columns))]
    table.extend(_cells(row, columns) for row in rows)
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for label, *figures in table:
        cells = [f"{figure:>{width}}" for figure, width in zip(figures, widths[1:], strict=True)]
        print("   ".join([f"  {label:<{widths[0]}}", *cells]).rstrip())
    for contender in group.contenders:
        if codes := sorted({sample.exit_code for sample in samples[contender.label]} - {0}):
            print(f"  {contender.label}: exit code {', '.join(map(str, codes))}")
    if group.missing:
        print(f"  missing: {', '.join(group.missing)}")


def _measure(contenders: Sequence[Contender], rounds: int) -> dict[str, list[Sample]]:
    """Run all in turn, several times. The first round fills the caches, and is not counted."""
    samples: dict[str, list[Sample]] = {contender.label: [] for contender in contenders}
    for number in range(rounds + 1):
        for contender in contenders:
            sample = _run(contender.words)
            if number:
                samples[contender.label].append(sample)
    return samples


def _rows(contender: Contender, samples: list[Sample]) -> list[Row]:
    peak_bytes = max(sample.peak_bytes for sample in samples)
    rows = [Row(contender.label, [sample.seconds for sample in samples], peak_bytes, contender.column)]
    if contender.inside and not any(sample.exit_code for sample in samples):
        told = [json.loads(sample.output) for sample in samples]
        rows.extend(
            Row(label, [sum(one[figure] for figure in figures) for one in told], None, "")
            for label, figures in contender.inside
        )
    return rows


def _cells(row: Row, columns: Sequence[Row]) -> tuple[str, ...]:
    best = min(row.seconds)
    ratios = ["" if row is column else f"{min(column.seconds) / best:.2f}" for column in columns]
    return row.label, _ms(best), _ms(_median(row.seconds)), _peak(row.peak_bytes), *ratios


def _run(words: Sequence[str]) -> Sample:
    """Run a command with its output in a pipe, and read the pipe to its end."""
    # Python writes its bytecode, as an installed program's would be; the rest of its switches stay out of it.
    environment = {
        name: value for name, value in os.environ.items() if name == "PYTHONPATH" or not name.startswith("PYTHON")
    }
    reading, writing = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, writing, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    chunks: list[bytes] = []
    kept_bytes = 0
    start = perf_counter()
    pid = os.posix_spawnp(words[0], list(words), environment | {"LC_ALL": "C"}, file_actions=actions)
    os.close(writing)
    while chunk := os.read(reading, 1 << 16):
        if kept_bytes < 1 << 16:
            # What says something of itself is short; what is long is only read.
            chunks.append(chunk)
            kept_bytes += len(chunk)
    os.close(reading)
    _, status, usage = os.wait4(pid, 0)
    seconds = perf_counter() - start
    return Sample(seconds, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status), b"".join(chunks))


def _median(figures: Sequence[float]) -> float:
    ordered, middle = sorted(figures), len(figures) // 2
    return ordered[middle] if len(figures) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _peak(peak_bytes: int | None) -> str:
    """Write a peak. The kernel counts into it what this process holds when it starts another: less cannot be told."""
    if peak_bytes is None:
        return ""
    own_bytes = getrusage(RUSAGE_SELF).ru_maxrss * 1024
    return _mib(peak_bytes) if peak_bytes > own_bytes else f"< {_mib(own_bytes)}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):,.1f} MiB"


def _header(rounds: int) -> list[str]:
    load = ", ".join(f"{figure:.2f}" for figure in os.getloadavg())
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    system, _, kernel, _, machine = os.uname()
    version = _run((*_footprint(), "--version")).output.decode().strip()
    return [
        f"{version or 'footprint'} beside its peers",
        f"  machine   {machine}, {_processor()}, {os.cpu_count()} CPUs, {_mib(memory_bytes)}",
        f"  kernel    {system} {kernel}",
        f"  Python    {sys.implementation.name} {sys.version.split()[0]}",
        f"  load      {load} (1, 5, 15 minutes)",
        f"  rounds    {rounds}",
        "",
        "Each command writes into a pipe; those of a table take turns, round by round, after one round that is not",
        "counted. X/it is the best time of X by the best time of the line: below 1.00, X is the quicker one. The peak",
        "is that of the largest process of a command; `<` where it is below that of this one, and cannot be told.",
    ]


def _processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith(("model name", "Model"))]
    return names[0] if names else "processor unknown"


if __name__ == "__main__":
    sys.exit(main())
