"""Fuzz all targets, or those that are named: `python -m fuzz [--seconds N] [TARGET...]`, one on each processor.

A finding is an input that raises an error which its target may not raise, takes more than 5 seconds, or 500 MB. It is
written to `fuzz/findings/TARGET`, and the exit code is 1.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fuzz.seeds import LARGEST_BYTES, write_seeds
from fuzz.targets import TARGETS

_LONGEST_SECONDS: Final = 5
_MOST_MEMORY_MB: Final = 500
_FINDINGS: Final = Path(__file__).resolve().parent / "findings"
_COUNT: Final = re.compile(r"stat::number_of_executed_units: *(\d+)|^#(\d+)", re.MULTILINE)


def main(arguments: list[str] | None = None) -> int:
    """Run the targets, and say how many inputs each has read."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz the readers of footprint.")
    parser.add_argument("target", nargs="*", choices=[[], *TARGETS], help="the targets; all if none is named")
    parser.add_argument("--seconds", type=float, default=60, help="how long in all (default: 60)")
    asked = parser.parse_args(arguments)
    names = asked.target or list(TARGETS)
    before = sum(1 for _ in _findings())
    at_once = os.cpu_count() or 1
    seconds = max(1, round(asked.seconds * at_once / len(names)))
    with ThreadPoolExecutor(at_once) as pool:
        for name, count in zip(names, pool.map(lambda name: _fuzz(name, seconds), names), strict=True):
            print(f"{name}: {count:,} inputs", flush=True)  # noqa: T201 # the answer
    found = sorted(map(str, _findings()))
    for one in found:
        print(f"finding: {one}")  # noqa: T201 # the same
    return int(len(found) > before)


def _findings() -> Iterator[Path]:
    return (path for path in _FINDINGS.glob("*/*") if path.suffix != ".txt")


def _fuzz(name: str, seconds: int) -> int:
    """Fuzz one target; return how many inputs it has read."""
    folder = _FINDINGS / name
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as corpus:
        write_seeds(name, Path(corpus))
        options = {
            "max_total_time": seconds,
            "timeout": _LONGEST_SECONDS,
            "rss_limit_mb": _MOST_MEMORY_MB,
            "max_len": LARGEST_BYTES,
            "print_final_stats": 1,
            "artifact_prefix": f"{folder}/",
        }
        shown = [f"-{option}={value}" for option, value in options.items()]
        command = [sys.executable, "-m", "fuzz.run", name, "--keep", str(folder), *shown, corpus]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)  # noqa: S603
    if done.returncode:
        print(done.stderr[-4000:], file=sys.stderr)  # noqa: T201 # what ended it
    counts = [int(one[1] or one[2]) for one in _COUNT.finditer(done.stderr)]
    return max(counts, default=0)


if __name__ == "__main__":
    sys.exit(main())
