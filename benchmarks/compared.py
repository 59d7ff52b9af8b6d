"""Ask footprint and its peers the same five questions, and write the answers into docs/compared.md.

    python benchmarks/compared.py

A peer that is not installed is named as missing: procps (pmap), smem, bloaty, libc-bin (ldd), valgrind, heaptrack and,
from the package index, memray. It takes root, for the memory cgroup that the first question is judged by.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.projection import group_with_launcher, host, settled

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "compared.md"
KIB: Final = 1024
COPIES: Final = 100
SAMPLES: Final = ROOT / "sample_binaries"
BASE: Final = str(SAMPLES / "condor_shadow" / "base")
PYTHON: Final = """\
def load():
    return [bytes(1000) for _ in range(20000)]
kept = load()
"""


class Said(NamedTuple):
    """What one tool answers to a question.

    Attributes:
        tool: The tool, as it is called.
        answer: Its answer, or why there is none.
        remark: What the answer is worth.
    """

    tool: str
    answer: str
    remark: str


class MissingError(Exception):
    """A tool that is not installed here."""


def output(*command: str, folder: Path | None = None) -> str:
    """Return what a command prints.

    Raises:
        MissingError: Where its program is not installed.
    """
    if shutil.which(command[0]) is None:
        raise MissingError(command[0])
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, errors="replace").stdout


def footprint(*words: str) -> dict[str, Any]:
    """Return the JSON of an answer of footprint, with its built-in constants of the kernel."""
    found: dict[str, Any] = json.loads(output(sys.executable, "-m", "footprint", *words, "--json"))
    return found


def said(tool: str, find: Callable[[], str], remark: str) -> Said:
    """Return the answer of one tool, if it is installed."""
    try:
        return Said(tool, find(), remark)
    except MissingError:
        return Said(tool, "not installed here", f"by its manual: {remark}")


def found_in(pattern: str, text: str) -> str:
    """Return what a pattern finds, or that it finds nothing."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else "no answer"


# --- the questions ----------------------------------------------------------------------------------------------------


def cost() -> Iterator[Said]:
    """What does one more copy of perl cost?"""
    with group_with_launcher() as (group, launcher):
        launcher.start(["perl", "-e", "sleep 3600"], COPIES // 2)
        before = settled(group)
        pids = launcher.start(["perl", "-e", "sleep 3600"], COPIES // 2)
        after = settled(group)
        truth_bytes = (after.used_bytes - before.used_bytes) / (COPIES // 2)
        pid = str(pids[len(pids) // 2])
        yield Said("the memory cgroup", f"{truth_bytes / KIB:.0f} KiB", "the truth: what the kernel charges for a copy")
        totals = footprint("audit", pid)["totals"]
        ours_bytes = totals["per_process_bytes"]
        yield Said("footprint audit", f"{ours_bytes / KIB:.0f} KiB", "with page tables and kernel memory")
        writable = said("pmap -d", lambda: found_in(r"writeable/private: (\d+)K", output("pmap", "-d", pid)), "virtual")
        yield writable._replace(
            answer=f"{writable.answer} KiB",
            remark="virtual: near by chance, with pages that were never touched and without kernel memory",
        )
        columns = ("uss", "pss")
        smem = said("smem", lambda: _of_smem(pid, columns), "one row for each process of the machine, at once")
        yield smem


def _of_smem(pid: str, columns: Sequence[str]) -> str:
    rows = (line.split() for line in output("smem", "-H", "-c", f"pid {' '.join(columns)}").splitlines())
    figures = next((row[1:] for row in rows if row and row[0] == pid), [])
    return ", ".join(f"{name.upper()} {figure} KiB" for name, figure in zip(columns, figures, strict=True))


def unused() -> Iterator[Said]:
    """Which library is needed and not used?"""
    findings = footprint("libraries", BASE)["findings"]
    ours = [
        f"{Path(finding['subject']).name}, saves {finding['saving_bytes'] // KIB} KiB with what it brings"
        for finding in findings
        if finding["rule"] == "unused-library" and finding["saving_bytes"]
    ]
    yield Said("footprint libraries", ", ".join(ours), "`whatif --drop` measures it; runs nothing by itself")
    yield said(
        "ldd -u -r",
        lambda: ", ".join(Path(line.strip()).name for line in output("ldd", "-u", "-r", BASE).splitlines()[1:]),
        "at once, and everywhere; it runs the loader of the program, and tells no saving",
    )


def variables() -> Iterator[Said]:
    """What fills the writable memory of a program?"""
    (largest, *_) = footprint("symbols", BASE)["symbols"]
    yield Said(
        "footprint symbols",
        f"{largest['name']}, {largest['size_bytes']:,} bytes",
        "writable memory, with the remainder by cause",
    )
    yield said(
        "bloaty",
        lambda: found_in(r"^\s*\S+%\s+\S+\s+\S+%\s+(\S+ +\S.*)$", output("bloaty", "-d", "symbols", "-s", "vm", BASE)),
        "better for the size of files: code, debug information, compile units",
    )


def heap() -> Iterator[Said]:
    """Who asked for the heap?"""
    with tempfile.TemporaryDirectory() as folder:
        program = str(SAMPLES / "heap_by_function" / "heap")
        profile = f"{folder}/massif.out"
        yield said(
            "massif", lambda: _of_massif(program, profile), "the tree over time, as text; no objects, no process"
        )
        if Path(profile).exists():
            functions = footprint("heap", profile, "--at", "peak", "--binary", program, "--by", "function")["heap"]
            named = ", ".join(f"{one['name']} {one['bytes']:,}" for one in functions if one["symbol"])
            yield Said("footprint heap", named, "reads profiles and makes none; by object, joined with a live process")
        yield said(
            "heaptrack",
            lambda: _of_heaptrack(program, Path(folder)),
            "better: attaches, is quicker than massif, has a viewer; counts 72,704 bytes of its own libstdc++",
        )


def _of_massif(program: str, profile: str) -> str:
    output("valgrind", "--tool=massif", "--threshold=0", f"--massif-out-file={profile}", program)
    names = re.findall(r"->.*B\) 0x\w+: (\w+) ", output("ms_print", "--threshold=0", profile))
    return f"a tree of calls: {' < '.join(names[:3])}, and others"


def _of_heaptrack(program: str, folder: Path) -> str:
    output("heaptrack", "-o", str(folder / "recording"), program, folder=folder)
    (recording,) = folder.glob("recording*")
    text = output("heaptrack_print", "-f", str(recording), "-n", "3", "-s", "3", "-p", "1")
    return f"peak {found_in(r'^peak heap memory consumption: (.*)$', text)}"


def python_line() -> Iterator[Said]:
    """Which line of a Python program holds memory?"""
    yield Said("footprint", "no answer", "it sees the arenas of Python, not its objects")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "load.py"
        script.write_text(PYTHON)
        yield said("memray", lambda: _of_memray(str(script), folder), "better: use it for what Python code allocates")


def _of_memray(script: str, folder: str) -> str:
    output("memray", "run", "-f", "-q", "-o", f"{folder}/memray.bin", script)
    return found_in(r"- <?\w+>?:.*/(load\.py:\d+ -> \S+)", output("memray", "stats", f"{folder}/memray.bin"))


QUESTIONS: Final = (cost, unused, variables, heap, python_line)


# --- the page ---------------------------------------------------------------------------------------------------------

HEAD: Final = """\
# Beside its peers

`benchmarks/compared.py` asks footprint and its peers the same five questions and writes this page. It was written on:
{host}.
"""
TAIL: Final = """\

## Which one to take

| you want | take |
|---|---|
| one look at one process, on any machine | `pmap`: it is there already |
| a ranking of all processes of a machine | `smem` |
| the size of a file on disk, of code, of debug information | `bloaty` |
| a quick list of unused direct needs | `ldd -u` |
| each allocation of C or C++ over time, in a viewer | `heaptrack`, `massif` |
| what Python code allocates, line by line | `memray` |
| what one more process costs, by owner and variable; what it would cost without a library; a gate in CI | footprint |

footprint reads what massif, DHAT and heaptrack write, and joins it with a live process. It does not read recordings of
memray.
"""


def page() -> str:
    """Return the page, with the answers of this machine."""
    lines = [HEAD.format(host=host())]
    for question in QUESTIONS:
        lines += [f"## {question.__doc__}", "", "| tool | answer | worth |", "|---|---|---|"]
        lines += [f"| {one.tool} | {one.answer} | {one.remark} |" for one in question()]
        lines += [""]
    return "\n".join(lines).rstrip("\n") + "\n" + TAIL


if __name__ == "__main__":
    PAGE.write_text(page())
