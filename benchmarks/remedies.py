"""Apply each remedy that `duplicates` is sure of to programs of random headers, and compare what they print.

    python -m benchmarks.remedies 100 400 [80]

tries the programs of the seeds 100 to 399 (each with 80 variables), and keeps the folder of each whose remedies change
what it prints.

    python -m benchmarks.remedies uses

tries all uses of addresses (`tests/host/address_uses.txt`) with all compilers and options. With `arm64` behind either,
the programs are built for arm64 and run by qemu.
"""

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

from tests.host.address_uses import WAYS, kinds_for, program_of_uses
from tests.host.random_headers import Program, built, program_of, sure_of

_PROGRAM_KINDS = 24


def main(programs: Iterable[tuple[str, Program]]) -> None:
    """Try some programs, each with a name, and print what the remedies change."""
    counts: Counter[str] = Counter()
    for name, program in programs:
        folder = Path(tempfile.mkdtemp(prefix=f"headers_{name}_"))
        before = built(program, folder / "before")
        remedies = sure_of(program, folder / "before" / "program")
        counts.update([one.confidence.value for _, one in remedies])
        wrong = []
        if remedies and built(program, folder / "after", remedies) != before:
            wrong = [one for one in remedies if built(program, folder / f"only_{one[0]}", [one]) != before] or remedies
            items = [program.items[number] for number, _ in wrong]
            language = "C++" if program.is_cxx else "C"
            print(name, folder, program.compiler, program.options, language, [(item.line, item.use) for item in items])
        counts[f"sure with {program.compiler} {program.options}"] += len(remedies)
        counts.update(programs=1, groups=len(program.items), wrong=len(wrong))
        if not wrong:
            shutil.rmtree(folder)
    print(dict(counts))


def programs_of_uses(machine: str) -> Iterable[tuple[str, Program]]:
    """Return the programs of all uses of addresses for a machine."""
    for compiler, options, is_cxx in product((f"gcc{machine}", f"clang{machine}"), WAYS, (False, True)):
        for first in range(0, len(kinds_for(compiler, is_cxx=is_cxx)), _PROGRAM_KINDS):
            program = program_of_uses(compiler, options, first, _PROGRAM_KINDS, is_cxx=is_cxx)
            yield f"uses_{first}", program


if __name__ == "__main__":
    is_arm64 = sys.argv[-1] == "arm64"
    machine = " arm64" if is_arm64 else ""
    words = sys.argv[1 : len(sys.argv) - is_arm64]
    if words == ["uses"]:
        main(programs_of_uses(machine))
    else:
        first, past, count = (int(word) for word in [*words, "0"][:3])
        programs = ((str(seed), program_of(seed, count)) for seed in range(first, past))
        main((name, replace(program, compiler=program.compiler + machine)) for name, program in programs)
