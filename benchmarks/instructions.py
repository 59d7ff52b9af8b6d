"""What the commands cost in instructions and memory: `python -m benchmarks.instructions` compares with what is kept.

Runs fixed commands on inputs of this repository and on a `sleep`, and exits with 1 where one executes 3 % more
instructions, or takes 5 % more memory, than `instructions.json` says for the interpreter. Valgrind counts the
instructions, so other load on the machine does not matter.

`--write` keeps the figures: a change that lowers one commits the lower figure. `--compare OLD NEW` compares the
footprints of two environments, each named by its Python.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.elfwriter import (
    DT_FLAGS_1,
    DT_JMPREL,
    DT_NEEDED,
    DT_PLTREL,
    DT_PLTRELSZ,
    DT_RELA,
    DT_SONAME,
    RO,
    RW,
    SHT_RELA,
    STT_FUNC,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Size,
    Sym,
    write,
)
from tests.sysroot import GLIBC, Sysroot

KEPT: Final = Path(__file__).with_name("instructions.json")
CHECKOUT: Final = Path(__file__).parent.parent
MOST_INSTRUCTIONS: Final = 1.03
MOST_MEMORY: Final = 1.05
_COUNTED: Final = re.compile(r"I\s+refs:\s+([\d,]+)")
_CACHEGRIND: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
_MAIN: Final = ("-P", "-c", "from footprint.__main__ import run_process; run_process()")
# Prints the peak of a command.
_PEAK: Final = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
_SYMBOL_COUNT: Final = 20_000
_MEMORY_RUNS: Final = 3
_LIBRARY_COUNT: Final = 40
_FUNCTION_COUNT: Final = 400
_USED_COUNT: Final = 50
_PROGRAM_RELATIVE_COUNT: Final = 40_000
_LIBRARY_RELATIVE_COUNT: Final = 1_000
_TEXT_COUNT: Final = 1_000
# DF_1_NOW
_BINDS_NOW: Final = 1


class Cost(NamedTuple):
    """What a command costs: the instructions that it executes, and the most memory that is resident."""

    instructions: int
    peak_kib: int


def main() -> int:
    """Measure each command, and compare."""
    parser = argparse.ArgumentParser(description="Count the instructions and the memory of commands of footprint.")
    parser.add_argument("--write", action="store_true", help="keep the figures in instructions.json")
    parser.add_argument("--compare", nargs=2, metavar=("OLD", "NEW"), help="compare the footprints of two Pythons")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="one command of footprint, instead of the fixed ones")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed")
    with _commands(options.words) as commands, tempfile.TemporaryDirectory() as bytecode:
        if options.compare:
            old, new = (
                {name: _cost(python, commands[name], bytecode) for name in commands} for python in options.compare
            )
        else:
            kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
            old = {name: Cost(*figures) for name, figures in kept.get(_interpreter(), {}).items()}
            new = {name: _cost(sys.executable, commands[name], bytecode) for name in commands}
            if options.write:
                kept[_interpreter()] = {name: cost for name, cost in (old | new).items() if name in _LINES}
                KEPT.write_text(_text_of(kept))
    return _report(old, new)


def _interpreter() -> str:
    """Return what instructions depend on beside the code of footprint."""
    return f"{platform.python_implementation()} {platform.python_version()}, {platform.python_compiler()}"


def _text_of(kept: dict[str, dict[str, Cost]]) -> str:
    """Return the figures as JSON, one command a line."""
    parts = [
        f"  {json.dumps(name)}: {{\n"
        + ",\n".join(f"    {json.dumps(key)}: {json.dumps(cost)}" for key, cost in costs.items())
        for name, costs in sorted(kept.items())
    ]
    return "{\n" + "\n  },\n".join(parts) + "\n  }\n}\n"


def _report(old: dict[str, Cost], new: dict[str, Cost]) -> int:
    """Print the table; return 1 where a command costs too much, fails, or was never measured."""
    is_fine = True
    print(f"{'':42}{'million instructions':>26}{'peak, MiB':>24}")
    for name, cost in new.items():
        before = old.get(name)
        line = f"{name:42}{before.instructions / 1e6 if before else 0:9.1f}{cost.instructions / 1e6:9.1f}"
        if not before or not cost.instructions:
            is_fine = False
            print(line, "  it fails" if before else "  no figure is kept for this interpreter: --write")
            continue
        work, memory = cost.instructions / before.instructions, cost.peak_kib / before.peak_kib
        verdict = "" if work <= MOST_INSTRUCTIONS and memory <= MOST_MEMORY else "  too much"
        is_fine &= not verdict
        print(f"{line}{work:8.3f}{before.peak_kib / 1024:8.1f}{cost.peak_kib / 1024:8.1f}{memory:8.3f}{verdict}")
    print(_interpreter())
    return 0 if is_fine else 1


@contextmanager
def _commands(words: Sequence[str]) -> Iterator[dict[str, list[str]]]:
    """Make the inputs, and return the commands by their names; that without words imports footprint.

    Of words that are a fixed command, `PID` and other names of inputs are replaced, too.
    """
    named = " ".join(words)
    if words and named not in _LINES:
        yield {named: list(words)}
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        # In one language: each maps other files.
        subprocess.Popen(["sleep", "3600"], env=os.environ | {"LC_ALL": "C.UTF-8"}) as process,
    ):
        variables = Path(folder, "variables")
        variables.write_bytes(write(_variables()))
        sysroot = Path(folder, "sysroot")
        _write_program(Sysroot(sysroot))
        places = {
            "PID": str(process.pid),
            "VARIABLES": str(variables),
            "SYSROOT": str(sysroot),
            "SAMPLES": "sample_binaries",
            "CORPUS": "tests/corpus",
        }
        try:
            yield {
                line: [places.get(word, word) for word in _placed(line, places)]
                for line in ([named] if words else _LINES)
            }
        finally:
            process.kill()


def _placed(line: str, places: dict[str, str]) -> list[str]:
    return [
        re.sub(r"^(SAMPLES|CORPUS)(?=/)", lambda match: str(CHECKOUT / places[match[1]]), word) for word in line.split()
    ]


_LINES: Final = (
    "",
    "--version",
    "--help",
    "audit --help",
    "audit PID",
    "audit PID --json",
    "audit PID --by mapping",
    "libraries PID",
    "libraries /bin/program --root SYSROOT",
    "libraries /bin/program --root SYSROOT --sort start",
    "audit VARIABLES",
    "audit VARIABLES --json",
    "symbols VARIABLES",
    "duplicates SAMPLES/declared_in_header/gcc_dwarf_5.so",
    "audit CORPUS/smaps-node.txt -n 1000",
    "audit CORPUS/smaps-manyvma30k.txt.gz",
    "heap SAMPLES/heap_by_function/massif.out",
)


def _variables() -> ElfFile:
    """Return a program of many variables."""
    symbols = [Sym(f"variable_{number}", At(".data", 16 * number), 16) for number in range(_SYMBOL_COUNT)]
    return ElfFile(sections=[Section(".data", flags=3, data=bytes(16 * _SYMBOL_COUNT))], symbols=symbols)


def _write_program(sysroot: Sysroot) -> None:
    """Write a program with 40 libraries: each rule about its start has something to read.

    It calls one function of the first library, which brings five more, packs no relocations, looks up functions by name
    and binds at start. The other libraries look up their own functions.
    """
    sysroot.loader()
    sysroot.file("/lib/libc.so.6", _object("libc.so.6", (), ["dlsym"], (), b"stable release version 2.36.\n"))
    names = [f"lib{number}.so" for number in range(_LIBRARY_COUNT)]
    functions = {name: [f"{name[:-3]}_{number}" for number in range(_FUNCTION_COUNT)] for name in names}
    used = ["lib0_0", "dlsym", *[function for name in names[1:] for function in functions[name][:_USED_COUNT]]]
    sysroot.file("/bin/program", _object("", ["libc.so.6", *names], (), used))
    brought = [f"brought{number}.so" for number in range(5)]
    for name in [*names, *brought]:
        needed, others = (["libc.so.6"], functions.get(name, [])) if name != names[0] else (brought, [])
        sysroot.file(f"/lib/{name}", _object(name, needed, functions.get(name, []), others))


def _object(
    soname: str, needed: Sequence[str], defined: Sequence[str], used: Sequence[str], text: bytes = b""
) -> bytes:
    """Return a library, or a program without a soname, that defines some functions and calls some."""
    relative_count = _LIBRARY_RELATIVE_COUNT if soname else _PROGRAM_RELATIVE_COUNT
    sections = [
        Section(".rela.dyn", SHT_RELA, RO, [Rel(At(".data", 8 * at), 8, addend=0) for at in range(relative_count)]),
        Section(".rela.plt", SHT_RELA, RO, [Rel(At(".data", 8 * at), 7, name, 0) for at, name in enumerate(used)]),
        Section(".rodata", flags=RO, data=text + b"".join([b"text %d\0" % number for number in range(_TEXT_COUNT)])),
        Section(".data", flags=RW, data=bytes(8 * max(relative_count, len(used)))),
        Section(".interp", flags=RO, data=GLIBC.encode() + b"\0"),
    ]
    dynamic = [Dyn(DT_NEEDED, name) for name in needed]
    dynamic += [Dyn(DT_JMPREL, At(".rela.plt")), Dyn(DT_PLTRELSZ, Size(".rela.plt")), Dyn(DT_PLTREL, DT_RELA)]
    dynamic += [Dyn(DT_FLAGS_1, _BINDS_NOW), *([Dyn(DT_SONAME, soname)] if soname else [])]
    symbols = [Sym(name, At(".data", 8), 8, STT_FUNC) for name in defined]
    symbols += [Sym(name) for name in used if name not in {*defined}]
    return write(ElfFile(sections=sections, dynamic=dynamic, dynamic_symbols=symbols))


def _cost(python: str, words: Sequence[str], bytecode: str) -> Cost:
    """Return what a command costs, with its bytecode compiled before; zeros where it fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FOOTPRINT"))}
    cache = os.path.join(bytecode, python.replace("/", "_"))
    environment = kept | {"PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": cache, "LC_ALL": "C.UTF-8", "COLUMNS": "80"}
    command = [python, *_MAIN, *words] if words else [python, "-P", "-c", "import footprint"]
    peaks = []
    for _ in range(_MEMORY_RUNS):
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, *command], env=environment, capture_output=True, text=True, check=False
        )
        peaks.append(int(done.stdout))
    done = subprocess.run([*_CACHEGRIND, *command], env=environment, capture_output=True, text=True, check=False)
    counted = _COUNTED.search(done.stderr)
    # Python itself ends with 1 where it cannot import footprint.
    if done.returncode not in {0, 1} or "Traceback" in done.stderr or not counted:
        return Cost(0, 0)
    return Cost(int(counted[1].replace(",", "")), min(peaks))


if __name__ == "__main__":
    sys.exit(main())
