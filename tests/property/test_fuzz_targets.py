"""The targets of `make fuzz`: what fuzzing found is read again, and some fresh damage, without the fuzzer itself."""

from contextlib import suppress
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from footprint.errors import InputError
from footprint.heap.formats import FORMATS
from fuzz.blind import fuzz_blindly
from fuzz.mutators import MUTATORS, mutated
from fuzz.seeds import LARGEST_BYTES, seeds
from fuzz.targets import TARGETS, Target
from tests.workcount import warm_up, work_of

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
FINDINGS = sorted((FUZZ / "regressions").glob("*/*"))
MOST_WORK = 1_000_000
MOST_WORK_PER_BYTE = 100
"""Lines of Python, or steps of patterns: four times those of any seed. What grows with the square takes more."""
INPUT_COUNT = 20
each_target = pytest.mark.parametrize("name", TARGETS)


def attempt(target: Target, data: bytes) -> bool:
    """Read an input, and return whether it was not refused; any error but those of the target fails the test."""
    with suppress(target.errors):
        target.read(data)
        return True
    return False


def read(target: Target, data: bytes) -> bool:
    """Read an input with little work, and return whether it was not refused."""
    answers: list[bool] = []
    work = work_of(lambda: answers.append(attempt(target, data)))
    assert max(work) <= MOST_WORK + MOST_WORK_PER_BYTE * len(data)
    return answers == [True]


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_fuzzing_found_is_read_or_refused(path: Path) -> None:
    target, data = TARGETS[path.parent.name], path.read_bytes()
    warm_up(lambda: attempt(target, data))
    read(target, data)


@each_target
def test_each_target_reads_a_seed_and_what_becomes_of_it(name: str) -> None:
    target, random = TARGETS[name], Random(name)  # noqa: S311 # the same damage each time
    found = list(islice(seeds(name), 20))
    warm_up(lambda: attempt(target, found[0]))
    assert any(read(target, data) for data in found)
    for number in range(INPUT_COUNT):
        sound = found[number % len(found)]
        read(target, mutated(sound, LARGEST_BYTES, random, MUTATORS[target.mutator]))


def test_each_format_of_heap_profiles_has_a_target() -> None:
    assert {f"heap_{one.name.lower()}" for one in FORMATS} <= TARGETS.keys()


def test_a_kept_finding_belongs_to_a_target() -> None:
    assert {path.parent.name for path in FINDINGS} <= TARGETS.keys()


def test_without_atheris_each_new_defect_is_kept_once_and_each_family_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs: list[bytes] = []

    def refuses(data: bytes) -> None:
        inputs.append(data)
        raise InputError("the input", "refused")

    def fails(_data: bytes) -> None:
        raise KeyError

    def waits(_data: bytes) -> None:
        while True:  # until the limit of processor time ends it
            pass

    families = {"A": (Target("names", refuses), Target("maps", fails)), "B": (Target("smaps", waits),)}
    monkeypatch.setattr("fuzz.blind.FAMILIES", families)
    monkeypatch.setattr("fuzz.blind.FOLDER", tmp_path)
    monkeypatch.setattr("fuzz.blind.LONGEST_SECONDS", 0.01)
    for _ in range(2):
        fuzz_blindly(["names", "maps", "smaps"], 5, seed=7)
    assert len(inputs) == 4
    assert inputs[:2] == inputs[2:]
    assert [path.parent.name for path in sorted(tmp_path.glob("*/*.txt"))] == ["maps", "smaps"]
    assert [line.partition(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        "A: 5 inputs",
        "B: 5 inputs",
    ] * 2


def test_memory_that_the_process_took_before_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.blind.FAMILIES", {"A": (Target("names", len), Target("maps", lambda _: b"x" * 10**8))})
    monkeypatch.setattr("fuzz.blind.FOLDER", tmp_path)
    monkeypatch.setattr("fuzz.blind.MOST_MEMORY_MB", 50)
    before = b"x" * 2 * 10**8
    fuzz_blindly(["names", "maps"], 4, seed=7)
    del before
    fuzz_blindly(["names", "maps"], 4, seed=7)
    assert [path.parent.name for path in tmp_path.glob("*/*.txt")] == ["maps"]


@pytest.mark.parametrize("mutator", MUTATORS)
def test_the_same_chance_gives_the_same_input_within_its_bounds(mutator: str) -> None:
    sound = next(seeds("elf" if mutator == "elf" else "capture"))
    for chance in range(50):
        randoms = [Random(chance) for _ in range(2)]  # noqa: S311 # the same damage each time
        first, second = (mutated(sound, len(sound) + 100, random, MUTATORS[mutator]) for random in randoms)
        assert first == second
        assert len(first) <= len(sound) + 100
