"""The pages that a program has written before it runs: our prediction from its files, and its page bits.

    python benchmarks/prediction.py [--only NAME ...] [--rows N]

Every ELF program of the directories on `PATH` is held where its constructors are about to run, and where its own code
begins, and ended: it never runs any of it. `predicted` are the pages of all its objects that surely are written at
start, `private` those that are, `over` those predicted that are not, `entry` those that are when constructors have run.
`other` is what is private beside all objects, in KiB: stack, thread block, the loader's lists; `estimate` what we take
it for. The last lines add up all programs, and tell how long the predictions alone take, each object once.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from footprint.attribution.object_prediction import ObjectPrediction, predict
from footprint.attribution.start_memory import start_memory
from footprint.errors import FootprintError
from footprint.sources.programs import Programs
from footprint.sources.startup_write_calibration import calibrate_libc
from tests.atstart import PAGE, Seen, at_start, image_of, is_elf, numbers


class Row(NamedTuple):
    """One program: the pages of its objects, and the bytes outside of all objects."""

    name: str
    objects: int
    predicted: int
    private: int
    over: int
    entry: int
    other_bytes: int
    estimate_bytes: int


def programs(names: Sequence[str]) -> Iterator[str]:
    """List the programs on PATH, once each."""
    seen: set[str] = set()
    for folder in os.get_exec_path():
        for path in sorted(Path(folder).glob("*")):
            resolved = str(path.resolve())
            if resolved not in seen and os.access(resolved, os.X_OK) and is_elf(Path(resolved)):
                seen.add(resolved)
                if not names or path.name in names:
                    yield resolved


@cache
def predicted(path: str, *, is_program: bool) -> ObjectPrediction:
    """Predict an object, once for all programs."""
    start = calibrate_libc() if path.endswith("/libc.so.6") else None
    return predict(image_of(path), PAGE, is_program=is_program, libc_start=start)


def row(path: str, objects: set[str]) -> Row:
    """Stop a program at its start, compare, and record its objects."""
    linked, entered = at_start(path)
    result = {name: predicted(name, is_program=name == path) for name in linked.objects()}
    objects.update(result)
    written = {name: linked.written(name, one) for name, one in result.items()}
    startup_mins = {name: numbers(one.startup_min) for name, one in result.items()}
    private = sum(map(len, written.values()))
    texts = [mapping for mapping in linked.mappings if mapping.permissions[2] == "x" and mapping.name.startswith("/")]
    of_texts = {page for text in texts for page in range(text.start_addr // PAGE, text.end_addr // PAGE)}
    return Row(
        os.path.basename(path),
        len(result),
        sum(map(len, startup_mins.values())),
        private,
        sum(len(startup_mins[name] - written[name]) for name in result),
        _count(entered, result),
        (len(linked.private - of_texts) - private) * PAGE,
        sum(start_memory(Programs().graph(path))),
    )


def _count(seen: Seen, result: dict[str, ObjectPrediction]) -> int:
    return sum(len(seen.written(name, one)) for name, one in result.items() if name in seen.objects())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="programs to look at")
    parser.add_argument("--rows", type=int, default=20, help="how many to show, those with most objects first")
    options = parser.parse_args()
    rows: list[Row] = []
    objects: set[str] = set()
    left_out: list[str] = []
    for path in programs(options.only):
        try:
            rows.append(row(path, objects))
        except (FootprintError, LookupError, OSError) as error:
            left_out.append(f"{os.path.basename(path)} ({error})")
    print(
        f"{'program':24}{'objects':>8}{'predicted':>10}{'private':>8}{'over':>6}{'entry':>7}{'other':>7}{'estimate':>9}"
    )
    for one in sorted(rows, key=lambda row: -row.objects)[: options.rows]:
        sizes = f"{one.other_bytes >> 10:7}{one.estimate_bytes >> 10:9}"
        print(f"{one.name:24}{one.objects:8}{one.predicted:10}{one.private:8}{one.over:6}{one.entry:7}{sizes}")
    total, private, over = (sum(column) for column in list(zip(*rows, strict=True))[2:5])
    print(f"\n{len(rows)} programs: {total} pages predicted, {private} private, {over} over-predicted")
    print(f"covered: {(total - over) / private:.2%}")
    print(f"left out: {len(left_out)}: {', '.join(left_out)}")
    off = sorted(abs(one.other_bytes - one.estimate_bytes) >> 10 for one in rows)
    print(f"the estimate of the rest is off by {off[len(off) // 2]} KiB (median), {off[-1]} KiB at most")
    begin = time.perf_counter()
    for path in objects:
        predict(image_of(path), PAGE, is_program=False)
    print(f"{len(objects)} objects are predicted in {time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    main()
