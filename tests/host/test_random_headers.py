"""What `duplicates` is sure of in programs of random headers: with each remedy they print what they printed.

`benchmarks/remedies.py` tries any number of such programs; these are a few of all compilers, languages and ways.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.host.random_headers import built, program_of, sure_of

# In each of these a remedy changed what is printed while addresses in memory, alignments, or texts were trusted.
SEEDS = [2003, 2017, 2044, 2045, 2050, 3030]
# The seeds were chosen among what these releases make of them.
RELEASES = {"gcc": 12, "g++": 12, "clang": 14, "clang++": 14}


def release(compiler: str) -> int:
    done = subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True, check=True)
    return int(done.stdout.partition(".")[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_sure_prints_the_same_after_all_remedies(seed: int, tmp_path: Path) -> None:
    program = program_of(seed)
    if shutil.which(program.compiler) is None:
        pytest.skip(f"{program.compiler} is not installed")
    before = built(program, tmp_path / "before")
    remedies = sure_of(program, tmp_path / "before" / "program")
    if not remedies and release(program.compiler) > RELEASES[program.compiler]:
        pytest.skip(f"of what this release of {program.compiler} makes of it, nothing is sure")
    assert remedies
    assert built(program, tmp_path / "after", remedies) == before, [program.items[number] for number, _ in remedies]
