"""Compare the estimated time of a start with the measured one, over programs of this machine.

    python benchmarks/starts.py [--programs 200] [--fitted 48] [--turns 21] [--paths FILE]

Prices are fitted to some programs, as `doctor --calibrate` fits them, and tried on all and on the others; the built-in
prices beside them. Measured is the processor time from execve(2) to the entry point: the programs are started in turns,
and of each the low quartile counts. R² is the part of the variance of the measured times that the estimate explains.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from footprint.attribution.start_time import StartPrices, built_in_prices, start_us
from footprint.sources.start_calibration import (
    StartSample,
    choose_samples,
    explained_share,
    fit_prices,
    measure_samples,
    programs_of_machine,
)


def report(name: str, prices: StartPrices, samples: Sequence[StartSample], times_us: Sequence[int]) -> None:
    """Print how well prices say what starts took."""
    works = [sample.work for sample in samples]
    share = explained_share(prices, works, times_us)
    errors = sorted(
        abs(start_us(work, prices) - time_us) / time_us for work, time_us in zip(works, times_us, strict=True)
    )
    ratio = sum(start_us(work, prices) for work in works) / sum(times_us)
    print(
        f"{name:42} {len(samples):4} programs  R² {share:.3f}  error median {errors[len(errors) // 2]:.1%}"
        f"  at most {errors[-1]:.0%}  estimated/measured {ratio:.2f}"
    )


def main() -> None:
    """Choose programs, measure them, and print what the prices explain."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--programs", type=int, default=200)
    options.add_argument("--fitted", type=int, default=48)
    options.add_argument("--turns", type=int, default=21)
    options.add_argument("--paths", type=Path, help="a file with the paths of the programs, one a line")
    chosen = options.parse_args()
    paths: Iterator[str] = iter(chosen.paths.read_text().split()) if chosen.paths else programs_of_machine()
    with TemporaryDirectory() as folder:
        system, samples = choose_samples(paths, folder, chosen.programs, 3600.0)
        measured, left_out = measure_samples(samples, chosen.turns, 3600.0)
    pairs = [(sample, time_us) for sample, time_us in zip(samples, measured, strict=True) if time_us is not None]
    samples, times_us = [sample for sample, _ in pairs], [time_us for _, time_us in pairs]
    print(*left_out, sep="\n", end="\n" * bool(left_out))
    machine = f"{system}, Linux {os.uname().release}, load {os.getloadavg()[0]:.1f}"
    print(f"{machine}: {min(times_us):,} to {max(times_us):,} us")
    stride = max(1, len(samples) // chosen.fitted)
    fitted, others = pairs[::stride], [pair for place, pair in enumerate(pairs) if place % stride]
    fit = fit_prices(system, [sample.work for sample, _ in fitted], [time_us for _, time_us in fitted])
    whole = fit_prices(system, [sample.work for sample in samples], times_us)
    report("calibrated: those of the fit", fit.prices, *zip(*fitted, strict=True))
    report("calibrated: all others", fit.prices, *zip(*others, strict=True))
    report("calibrated: all", fit.prices, samples, times_us)
    report("fitted to all", whole.prices, samples, times_us)
    report("built in", built_in_prices(system), samples, times_us)
    print(fit.prices)
    print(whole.prices)


if __name__ == "__main__":
    main()
