"""Apply each remedy that `duplicates` is sure of to programs of random headers, and compare what they print.

    python -m benchmarks.remedies 100 400

tries the programs of the seeds 100 to 399, and keeps the folder of each whose remedies change what it prints.
"""

import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.host.random_headers import built, program_of, sure_of


def main(first: int, past: int) -> None:
    """Try the programs of some seeds, and print what the remedies change."""
    counts: Counter[str] = Counter()
    for seed in range(first, past):
        program = program_of(seed)
        folder = Path(tempfile.mkdtemp(prefix=f"headers_{seed}_"))
        before = built(program, folder / "before")
        remedies = sure_of(program, folder / "before" / "program")
        counts.update([one.confidence.value for _, one in remedies])
        wrong = []
        if remedies and built(program, folder / "after", remedies) != before:
            wrong = [one for one in remedies if built(program, folder / f"only_{one[0]}", [one]) != before] or remedies
            items = [program.items[number] for number, _ in wrong]
            language = "C++" if program.is_cxx else "C"
            print(seed, folder, program.compiler, program.options, language, [(one.line, one.use) for one in items])
        counts["wrong"] += len(wrong)
        if not wrong:
            shutil.rmtree(folder)
    print(past - first, "programs:", dict(counts))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
