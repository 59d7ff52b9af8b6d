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

from tests.elfwriter import At, ElfFile, Section, Sym, write

KEPT: Final = Path(__file__).with_name("instructions.json")
CHECKOUT: Final = Path(__file__).parent.parent
MOST_INSTRUCTIONS: Final = 1.03
MOST_MEMORY: Final = 1.05
_COUNTED: Final = re.compile(r"I\s+refs:\s+([\d,]+)")
_CACHEGRIND: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
_MAIN: Final = ("-P", "-c", "import sys; from footprint.cli import main; sys.exit(main())")
# Prints the peak of a command.
_PEAK: Final = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
_SYMBOL_COUNT: Final = 20_000
_MEMORY_RUNS: Final = 3


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
                kept[_interpreter()] = new
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
    """Make the inputs, and return the commands by their names; that without words imports footprint."""
    if words:
        yield {" ".join(words): list(words)}
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        # In one language: each maps other files.
        subprocess.Popen(["sleep", "3600"], env=os.environ | {"LC_ALL": "C.UTF-8"}) as process,
    ):
        variables = Path(folder, "variables")
        variables.write_bytes(write(_variables()))
        places = {
            "PID": str(process.pid),
            "VARIABLES": str(variables),
            "SAMPLES": "sample_binaries",
            "CORPUS": "tests/corpus",
        }
        try:
            yield {line: [places.get(word, word) for word in _placed(line, places)] for line in _LINES}
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
    if done.returncode not in {0, 1} or not counted:
        return Cost(0, 0)
    return Cost(int(counted[1].replace(",", "")), min(peaks))


if __name__ == "__main__":
    sys.exit(main())
