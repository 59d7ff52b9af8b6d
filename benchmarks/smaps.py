"""The gain of the quick path for smaps: `python benchmarks/smaps.py [TEXT]`.

It reads one text with and without `BlockCache` of footprint/process/maps_text.py. Without TEXT it reads smaps of a
process with 30,000 mappings.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from unittest.mock import patch

from footprint.process.maps_text import parse_maps

ROUNDS = 7
MAPPING_COUNT = 30000


def many_mappings() -> bytes:
    """Read smaps of a process with many mappings."""
    program = os.path.join(os.path.dirname(__file__), "many_mappings.py")
    with subprocess.Popen(
        [sys.executable, program, str(MAPPING_COUNT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        if process.stdout is not None:
            process.stdout.readline()
        with open(f"/proc/{process.pid}/smaps", "rb") as file:
            return file.read()


def best_seconds(call: Callable[[], object]) -> float:
    """Return the shortest time of several calls."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print the times and their ratio."""
    if len(sys.argv) > 1:
        with open(sys.argv[1], "rb") as file:
            text = file.read()
    else:
        text = many_mappings()
    with_it = best_seconds(lambda: parse_maps(text, "smaps"))
    with patch("footprint.process.maps_text.BlockCache.read", lambda _path, _text, position, _mappings: position):
        without_it = best_seconds(lambda: parse_maps(text, "smaps"))
    print(f"{len(text):,} bytes of smaps")
    print(f"with the quick path     {with_it:6.3f} s")
    print(f"without the quick path  {without_it:6.3f} s")
    print(f"ratio                   {without_it / with_it:6.1f}")


if __name__ == "__main__":
    main()
