"""Read damaged inputs without Atheris: no guidance by coverage, many times as many inputs.

The same seed gives the same inputs.
"""

import resource
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Final

from fuzz.findings import FOLDER, LONGEST_SECONDS, MOST_MEMORY_MB, Findings, read_checked
from fuzz.mutators import MUTATORS, mutated
from fuzz.seeds import LARGEST_BYTES, seeds
from fuzz.targets import FAMILIES, Target

__all__ = ("fuzz_blindly",)

_PROGRESS_SECONDS: Final = 30
_SMALL_BYTES: Final = 256
"""Inputs that are smaller are not read sooner."""


class _TakesTooMuch(BaseException):
    """A read took too much time or memory. No handler of errors in the reader catches it."""


def fuzz_blindly(names: Sequence[str], input_count: int, seed: int) -> None:
    """Read so many inputs in each family, shared evenly by those of its targets that are named; print the tally."""
    signal.signal(signal.SIGPROF, _stop)
    for family, targets in FAMILIES.items():
        chosen = [target for target in targets if target.name in names]
        started, done = time.monotonic(), 0
        for number, target in enumerate(chosen):
            share = input_count * (number + 1) // len(chosen) - input_count * number // len(chosen)
            _fuzz(target, share, Random(f"{seed} {target.name}"), f"{family}: {done:,} inputs, then {target.name}")
            done += share
        if chosen:
            rate = done / (time.monotonic() - started)
            print(f"{family}: {done:,} inputs, {rate:,.0f} a second", flush=True)  # noqa: T201 # the answer


def _fuzz(target: Target, input_count: int, random: Random, shown: str) -> None:
    findings = Findings(FOLDER / target.name)
    result = list(seeds(target.name))
    # Small inputs are chosen more often: they are read sooner.
    sums = list(accumulate(1 / max(len(data), _SMALL_BYTES) for data in result))
    peak_kb = _peak_from_now_kb()
    shown_at = time.monotonic()
    for number in range(input_count):
        (sound,) = random.choices(result, cum_weights=sums)
        data = mutated(sound, LARGEST_BYTES, random, MUTATORS[target.mutator])
        try:
            _read_in_bounds(target, data, peak_kb)
        except (Exception, _TakesTooMuch) as error:  # noqa: BLE001 # whatever it is, it is a finding
            findings.keep(data, error)
            peak_kb = _peak_from_now_kb()
        if number % 100 == 0 and time.monotonic() - shown_at > _PROGRESS_SECONDS:
            shown_at = time.monotonic()
            print(f"{shown} {number:,}", flush=True)  # noqa: T201 # the progress


def _read_in_bounds(target: Target, data: bytes, peak_kb: int) -> None:
    signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)
    try:
        read_checked(target, data)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if _peak_kb() - peak_kb > MOST_MEMORY_MB * 1000:
        raise _TakesTooMuch(f"more than {MOST_MEMORY_MB} MB")


def _peak_from_now_kb() -> int:
    """Begin the peak of this process again with what is in use; return it, or the peak so far where /proc refuses."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak_kb()


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _stop(_number: int, _frame: object) -> None:
    raise _TakesTooMuch(f"more than {LONGEST_SECONDS} seconds")
