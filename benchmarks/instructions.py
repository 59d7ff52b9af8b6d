"""What a change costs: `python benchmarks/instructions.py OLD NEW`, each the Python of an environment with footprint.

Prints the instructions that the processor executes for some commands of the two footprints, and their ratio. Valgrind
counts them, so other load on the machine does not matter. Further arguments name one command instead.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

_COUNTED = re.compile(r"I\s+refs:\s+([\d,]+)")
_CACHEGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
_MAIN = ("-P", "-c", "import sys; from footprint.cli import main; sys.exit(main())")


def main() -> int:
    """Count the instructions of each command, and print the table."""
    parser = argparse.ArgumentParser(description="Compare the instructions of two footprints.")
    parser.add_argument("old", help="the Python that has the one footprint")
    parser.add_argument("new", help="the Python that has the other one")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="one command of footprint, instead of the usual ones")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed")
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(["sleep", "3600"]) as process:
        try:
            print(f"{'':44}{'old':>10}{'new':>10}   new/old   (millions of instructions)")
            for words in [options.words] if options.words else _commands(process.pid, options.new):
                old, new = (_count(python, words, folder) for python in (options.old, options.new))
                ratio = f"{new / old:9.3f}" if old and new else "    fails"
                print(
                    f"{' '.join(words) or 'import footprint':44}{old / 1e6:10.1f}{new / 1e6:10.1f} {ratio}", flush=True
                )
        finally:
            process.kill()
    return 0


def _commands(pid: int, binary: str) -> list[list[str]]:
    """Return the usual commands; the first one only imports footprint."""
    binary = os.path.realpath(binary)
    verbs = ("audit", "symbols", "libraries", "duplicates")
    of_binary = [[verb, binary, *form] for verb in verbs for form in ((), ("--json",))]
    of_process = [[verb, str(pid), *form] for verb in ("audit", "maps") for form in ((), ("--json",))]
    return [[], ["--version"], ["--help"], *of_binary, *of_process, ["project", str(pid), "-n", "1000"]]


def _count(python: str, words: list[str], folder: str) -> int:
    """Return the instructions of a command, with its bytecode compiled before; 0 where it fails."""
    bytecode = os.path.join(folder, python.replace("/", "_"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = kept | {"PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": bytecode, "LC_ALL": "C.UTF-8"}
    command = [python, *_MAIN, *words] if words else [python, "-P", "-c", "import footprint"]
    subprocess.run(command, env=environment, capture_output=True, check=False)
    done = subprocess.run([*_CACHEGRIND, *command], env=environment, capture_output=True, text=True, check=False)
    counted = _COUNTED.search(done.stderr)
    return int(counted[1].replace(",", "")) if counted and done.returncode in {0, 1} else 0


if __name__ == "__main__":
    sys.exit(main())
