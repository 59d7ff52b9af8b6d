"""What the loader does at the start of every program of a machine: our prediction, and what LD_DEBUG says.

    python benchmarks/loader_debug.py [--folder DIR ...] [--only NAME ...] [--faults]

Each program is held at its entry point under LD_DEBUG=statistics,symbols,libs,files,bindings, and ended: it never runs
any code of its own but its constructors. A line tells each program that differs; the last lines add up all. With
`--faults` the page faults up to there are compared, too, with those that the kernel counts for the process that is
waited for (getrusage): there the program is started once more, without LD_DEBUG.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.libraries import FOLDERS, LOADER, programs
from footprint.errors import FootprintError
from footprint.loader.target import Environment
from footprint.sources.programs import Programs
from tests.loader_counts import counted_by_loader, fault_count, predicted


def main(arguments: Sequence[str]) -> None:
    """Compare all programs, and print what differs and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", action="append", help="look there (default: the folders of programs)")
    parser.add_argument("--only", nargs="*", default=[], help="these programs alone")
    parser.add_argument("--faults", action="store_true", help="compare page faults, too")
    options = parser.parse_args(arguments)
    everything = Programs(environment=Environment())
    sums: Counter[str] = Counter()
    program_count = different_count = 0
    errors: list[float] = []
    for path in programs(options.folder or FOLDERS):
        if (options.only and os.path.basename(path) not in options.only) or path == os.path.realpath(LOADER):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                graph = everything.graph(path)
                expected, counted = predicted(graph), counted_by_loader(path, Path(folder))
            except (FootprintError, ValueError, OSError) as error:
                print(f"{path}: {error}", flush=True)
                continue
        program_count += 1
        sums.update({name: count for name, count in counted._asdict().items() if isinstance(count, int)})
        sums["asked_count"] += counted.asked_count
        if expected != counted:
            different_count += 1
            print(f"{path}: predicted {expected}, {counted}", flush=True)
        if options.faults:
            faults, estimate = fault_count(path), sum(graph.start_page_faults)
            errors.append(abs(estimate - faults) / faults)
    print(f"{program_count} programs, {different_count} differ; in all {dict(sums)}")
    if errors:
        mean, half = sum(errors) / len(errors), median(errors)
        print(f"page faults: mean error {mean:.1%}, half within {half:.1%}, largest {max(errors):.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
