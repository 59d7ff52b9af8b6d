"""The HTML report beside the text: `python benchmarks/report.py`, processor time and size of a report of 100,000 rows.

Makes a C++ program with so many variables, and audits it with each; the two take turns.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

_WORDS = ("cache", "table", "buffer", "parser", "engine", "node", "state", "index", "options", "handler", "context")


def main() -> int:
    """Time both, and print the table."""
    parser = argparse.ArgumentParser(description="Time the HTML report and the text of one audit.")
    parser.add_argument("--variables", type=int, default=100_000, help="how many variables the program has")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is written; the best counts")
    options = parser.parse_args()
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        parser.error("no C++ compiler is installed")
    with tempfile.TemporaryDirectory() as folder:
        program, report = os.path.join(folder, "program"), os.path.join(folder, "report.html")
        source = Path(folder, "program.cc")
        source.write_text(_source(options.variables))
        subprocess.run([compiler, "-O0", "-w", "-o", program, source], check=True)
        commands = {"text": ["audit", program, "-o", os.devnull], "report": ["audit", program, "--html", "-"]}
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, words in commands.items():
                seconds[name].append(_processor_time(words, report))
        best = {name: min(second) for name, second in seconds.items()}
        for name, value in best.items():
            print(f"{name:8}{value:8.2f} s of processor time{value / best['text']:8.2f} of the text")
        print(f"{os.path.getsize(report):,} bytes of report for {options.variables:,} variables")
    return 0


def _source(count: int) -> str:
    random = Random(1)  # noqa: S311 # names, no secrets
    lines = []
    for number in range(count):
        outer, inner, name = random.choices(_WORDS, k=3)
        value = f" = {{{number + 1}}}" if number % 2 else ""
        lines.append(
            f"namespace n{outer} {{ namespace n{inner} {{ int {name}_{number}[{random.randrange(1, 40)}]{value}; }} }}"
        )
    return "\n".join([*lines, "int main() {}", ""])


def _processor_time(words: list[str], output: str) -> float:
    """Run a command of footprint, and return its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(output, "wb") as file:
        subprocess.run([sys.executable, "-m", "footprint", *words], stdout=file, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
