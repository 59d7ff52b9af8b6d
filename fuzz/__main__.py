"""Fuzz all targets, or those that are named: `python -m fuzz [--seconds N] [TARGET...]`, one on each processor.

`python -m fuzz --blind --inputs N [--seed S] [TARGET...]` reads N damaged inputs in each family, without Atheris, one
after the other; one seed gives the same inputs, so that a check ends alike wherever it runs. A finding is an input that
raises an error which its target may not raise, takes more than 5 seconds, or 500 MB. It is written to
`fuzz/findings/TARGET`, and the exit code is 1.
"""

import argparse
import lzma
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fuzz.blind import fuzz_blindly
from fuzz.findings import FOLDER, LONGEST_SECONDS, MOST_MEMORY_MB
from fuzz.seeds import LARGEST_BYTES, write_seeds
from fuzz.targets import TARGETS

_PROCESSOR_COUNT: Final = os.cpu_count() or 1
_COUNT: Final = re.compile(r"stat::number_of_executed_units: *(\d+)|^#(\d+)", re.MULTILINE)


def main(arguments: list[str] | None = None) -> int:
    """Run the targets, and say how many inputs each has read."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz the readers of footprint.")
    parser.add_argument("target", nargs="*", choices=[[], *TARGETS], help="the targets; all if none is named")
    parser.add_argument("--seconds", type=float, default=60, help="how long in all (default: 60)")
    parser.add_argument("--blind", action="store_true", help="without Atheris, each family of readers in its turn")
    parser.add_argument("--inputs", type=int, help="how many for a target, whatever time it takes (--blind: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="the chance of --blind; one seed gives the same inputs")
    args = parser.parse_args(arguments)
    names = args.target or list(TARGETS)
    before = set(_findings())
    has_ended = True
    if args.blind:
        fuzz_blindly(names, args.inputs or 10_000, args.seed)
    else:
        has_ended = _fuzz_all(names, _end(args.inputs, args.seconds, len(names)))
    new = sorted(set(_findings()) - before)
    for path, _ in new:
        print(_shown(path))  # noqa: T201 # the same
    return int(bool(new) or not has_ended)


def _end(input_count: int | None, seconds: float, target_count: int) -> str:
    """Return the option of libFuzzer that ends the run of a target: after so many inputs, or its share of the time."""
    if input_count is not None:
        return f"-runs={input_count}"
    return f"-max_total_time={max(1, round(seconds * _PROCESSOR_COUNT / target_count))}"


def _fuzz_all(names: Sequence[str], end: str) -> bool:
    """Fuzz targets with Atheris, as many at once as there are processors; return whether all came to their end."""
    counts = []
    with ThreadPoolExecutor(_PROCESSOR_COUNT) as pool:
        for name, count in zip(names, pool.map(lambda name: _fuzz(name, end), names), strict=True):
            print(f"{name}: {count:,} inputs", flush=True)  # noqa: T201 # the answer
            counts.append(count)
    return all(counts)


def _shown(path: Path) -> str:
    """Return what reproduces a finding where only the output is left, as of a machine that tests and is gone."""
    cause = path.with_name(f"{path.name}.txt")
    packed = b64encode(lzma.compress(path.read_bytes())).decode()
    return f"finding: {path}\n{cause.read_text() if cause.exists() else ''}base64 -d | xz -d: {packed}"


def _findings() -> Iterator[tuple[Path, int]]:
    """Yield each finding, and when it was written: one that comes again has the name that it had."""
    return ((path, path.stat().st_mtime_ns) for path in FOLDER.glob("*/*") if path.suffix != ".txt")


def _fuzz(name: str, end: str) -> int:
    """Fuzz one target; return how many inputs it has read, 0 if it did not come to its end."""
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as corpus:
        write_seeds(name, Path(corpus))
        options = {
            "timeout": LONGEST_SECONDS,
            "rss_limit_mb": MOST_MEMORY_MB,
            "max_len": LARGEST_BYTES,
            "print_final_stats": 1,
            "artifact_prefix": f"{folder}/",
        }
        shown = [f"-{option}={value}" for option, value in options.items()]
        command = [sys.executable, "-m", "fuzz.run", name, "--keep", str(folder), end, *shown, corpus]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)  # noqa: S603
    if done.returncode:
        print(done.stderr[-4000:], file=sys.stderr)  # noqa: T201 # what ended it
        return 0
    counts = [int(match[1] or match[2]) for match in _COUNT.finditer(done.stderr)]
    return max(counts, default=0)


if __name__ == "__main__":
    sys.exit(main())
