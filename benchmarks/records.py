"""The cost of many NamedTuples by `footprint.members`, beside calls of their type: `python benchmarks/records.py`.

Prints the best time of each, for the rows of a ledger. It judges nothing.
"""

import sys
from timeit import repeat

from footprint.members import records
from footprint.model.row import Attribution, Evidence, MemoryKind, Row

_COUNT = 25_000
_ROUNDS = 7
_SUMS = (4096, 8192, 0, 1, 1, None, True)
_ROW = ("/usr/bin/node", MemoryKind.BSS, ".bss", "name", "name", *_SUMS, Evidence.MEASURED, Attribution.NAME)


def main() -> int:
    """Measure both, and print the times."""
    rows = [_ROW] * _COUNT
    called = min(repeat(lambda: [Row(*row) for row in rows], number=1, repeat=_ROUNDS))
    at_once = min(repeat(lambda: records(Row, rows), number=1, repeat=_ROUNDS))
    print(f"{_COUNT:,} rows of a ledger; best of {_ROUNDS}")
    print(f"  records(Row, rows)            {at_once * 1000:7.1f} ms")
    print(f"  [Row(*row) for row in rows]   {called * 1000:7.1f} ms   {called / at_once:.1f} times as long")
    return 0


if __name__ == "__main__":
    sys.exit(main())
