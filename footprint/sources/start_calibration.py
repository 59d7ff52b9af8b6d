"""What the loader's work takes at start on this machine: fitted once to programs of it, and kept in a file."""

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import compress, islice, product
from operator import mul
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from footprint.attribution.start_time import (
    PRICE_COUNT,
    StartPrices,
    built_in_prices,
    calibrated_prices,
    start_system,
    start_us,
)
from footprint.elf.image import starts_like_elf
from footprint.errors import AccessError, FootprintError
from footprint.loader.target import Environment, Libc
from footprint.sources.programs import Programs, keep_start_prices

_FOLDERS: Final = ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin")
# Predicting takes some 20 to 100 ms each, a start some 5 to 40.
_MOST_PROGRAMS: Final = 48
_CANDIDATES_EACH: Final = 3
_STRIDE: Final = 7
_LEAST_PROGRAMS: Final = 12
_PREDICTION_SECONDS: Final = 15.0
_START_SECONDS: Final = 35.0
# Where more cannot be started, tracing fails, and not a program.
_MOST_LEFT_OUT: Final = 8
_MOST_TURNS: Final = 21
_LEAST_TURNS: Final = 3
# The programs with the most libraries are started once more where each of these folders is tried first.
_EMPTY_FOLDERS: Final = 20
_MOST_EMPTIED: Final = 4
# The programs that the built-in prices count for. Measured: fits to 50 of 289 programs explain as much of the others.
_USUAL_WEIGHT: Final = 3
# Of the built-in price, at the speed of this machine: what the times hardly say, noise can make 0.
_LEAST_SHARE: Final = 0.25
# A fit that explains less was made of something else than the work of the loader.
_LEAST_EXPLAINED: Final = 0.8


class StartFit(NamedTuple):
    """How well prices say what starts take.

    Attributes:
        prices: The prices.
        program_count: The number of programs that they were fitted to.
        explained_share: The part of the variance of the measured times that they explain (R²).
        left_out: Why some programs were left out: they could not be started or traced.
    """

    prices: StartPrices
    program_count: int
    explained_share: float
    left_out: tuple[AccessError, ...] = ()


class StartSample(NamedTuple):
    """A program to be started: what has a price, and what is measured.

    Attributes:
        path: The program.
        variables: Its environment.
        work: What has a price, in the order of `StartPrices`.
    """

    path: str
    variables: Mapping[str, str]
    work: tuple[int, ...]


def calibrate_starts() -> StartFit | None:
    """Start programs of this machine in turns up to their entry points, fit the prices of a start, and keep them.

    It takes less than a minute. Of each program a low quartile counts: what else the machine does only adds to times.
    Return None where there are too few programs.

    Raises:
        AccessError: Where programs cannot be traced, the prices do not say what was measured, or they cannot be kept.
    """
    with TemporaryDirectory(prefix="footprint-") as folder:
        system, samples = choose_samples(programs_of_machine(), folder)
        if len(samples) < _LEAST_PROGRAMS:
            return None
        times_us, left_out = measure_samples(samples, _MOST_TURNS, _START_SECONDS)
    works = [sample.work for sample, time_us in zip(samples, times_us, strict=True) if time_us is not None]
    if len(works) < _LEAST_PROGRAMS:
        raise left_out[0]
    fit = fit_prices(system, works, [time_us for time_us in times_us if time_us is not None])
    if fit.explained_share < _LEAST_EXPLAINED:
        cause = f"they explain {100 * fit.explained_share:.0f} % of what was measured: nothing is kept"
        raise AccessError("prices of a start", f"{cause}; try again when less runs")
    keep_start_prices(fit.prices)
    return fit._replace(left_out=tuple(left_out))


def programs_of_machine() -> Iterator[str]:
    """Yield the programs of this machine that others cannot write, first some from all parts of the alphabet."""
    paths: dict[str, None] = {}
    for folder in _FOLDERS:
        with suppress(OSError):
            paths |= dict.fromkeys(os.path.realpath(os.path.join(folder, name)) for name in sorted(os.listdir(folder)))
    programs = []
    for path in paths:
        with suppress(OSError), open(path, "rb") as file:
            if starts_like_elf(file.read(4)) and os.access(path, os.X_OK) and _is_safe(path):
                programs.append(path)
    for first in range(_STRIDE):
        yield from programs[first::_STRIDE]


def _is_safe(path: str) -> bool:
    """Return whether nobody but root and us may write a file: what is started runs its constructors as us."""
    facts = os.stat(path)
    return facts.st_uid in {0, os.geteuid()} and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def choose_samples(
    paths: Iterator[str],
    folder: str,
    most_programs: int = _MOST_PROGRAMS,
    most_seconds: float = _PREDICTION_SECONDS,
) -> tuple[str, list[StartSample]]:
    """Choose programs of one system that differ in what their start takes, and return the system and the programs.

    `folder` is an empty folder: below it empty ones are made, in which the loader searches libraries in vain.
    """
    systems: dict[str, list[StartSample]] = {}
    programs, end = Programs(environment=Environment()), time.monotonic() + most_seconds
    for path in islice(paths, _CANDIDATES_EACH * most_programs):
        if time.monotonic() > end:
            break
        with suppress(FootprintError, OSError):
            graph = programs.graph(path)
            link_map = graph.link_map
            is_startable = link_map.interpreter_object and not graph.start_failures
            if link_map.libc is Libc.GLIBC and is_startable and all(_is_safe(needed.path) for needed in graph.objects):
                sample = StartSample(path, {}, tuple(map(sum, zip(*graph.start_work, strict=True))))
                systems.setdefault(start_system(link_map), []).append(sample)
    if not systems:
        return "", []
    system, samples = max(systems.items(), key=lambda item: len(item[1]))
    prices = built_in_prices(system)
    samples.sort(key=lambda sample: start_us(sample.work, prices))
    last, most = len(samples) - 1, min(most_programs, len(samples))
    chosen = [samples[last - last * number // max(1, most - 1)] for number in range(most)]
    folders = [os.path.join(folder, str(number)) for number in range(_EMPTY_FOLDERS)]
    for path in folders:
        os.mkdir(path)
    searched = ":".join(folders)
    programs = Programs(environment=Environment(library_path=searched))
    for sample in chosen[:_MOST_EMPTIED]:
        work = tuple(map(sum, zip(*programs.graph(sample.path).start_work, strict=True)))
        chosen.append(StartSample(sample.path, {"LD_LIBRARY_PATH": searched}, work))
    return system, chosen


def measure_samples(
    samples: Sequence[StartSample], most_turns: int, most_seconds: float
) -> tuple[list[int | None], list[AccessError]]:
    """Start programs in turns, and return the low quartile of the processor time of each, in microseconds.

    It is None for one that could not be started or traced once; the second list says why, for each of these.

    Raises:
        AccessError: Where that fails for many.
    """
    from footprint.process.held_program import start_once  # noqa: PLC0415 # an answer only loads

    end, turn_count = time.monotonic() + most_seconds, 0
    turns: list[list[int]] = [[] for _ in samples]
    errors: dict[int, AccessError] = {}
    while turn_count < most_turns and (turn_count < _LEAST_TURNS or time.monotonic() < end):
        for number, sample in enumerate(samples):
            try:
                if number not in errors:
                    turns[number].append(start_once(sample.path, sample.variables).processor_us)
            except AccessError as error:
                errors[number] = error
                if len(errors) > _MOST_LEFT_OUT:
                    raise
        turn_count += 1
    low = (turn_count - 1) // 4
    times_us = [None if number in errors else sorted(times)[low] for number, times in enumerate(turns)]
    return times_us, list(errors.values())


def fit_prices(system: str, works: Sequence[tuple[int, ...]], times_us: Sequence[int]) -> StartFit:
    """Find the prices, none of them negative, with the least sum of squared differences to measured times.

    Programs with many pages have many relocations, too: which of both takes the time, the times hardly say. So each
    price also weighs as some programs that have the average of it, at the built-in price of a machine of this speed.
    No price is less than a fourth of that one, which noise could make 0. Each set of prices that are more is tried:
    there are 127 of them.
    """
    columns, usual = list(zip(*works, strict=True)), built_in_prices(system)
    products = [[sum(map(mul, left, right)) for right in columns] for left in columns]
    sums = [sum(map(mul, column, times_us)) for column in columns]
    speed = sum(times_us) / (sum(start_us(work, usual) for work in works) or 1)
    for at, (column, price_ns) in enumerate(zip(columns, usual.each_ns, strict=True)):
        weight = _USUAL_WEIGHT * max(1.0, sum(column) / len(works)) ** 2
        products[at][at] += weight
        sums[at] += weight * speed * price_ns / 1000
    least = [_LEAST_SHARE * speed * price_ns / 1000 for price_ns in usual.each_ns]
    sums = [total - sum(map(mul, row, least)) for row, total in zip(products, sums, strict=True)]
    best_gain, best = 0.0, [0.0] * PRICE_COUNT
    for uses in product((False, True), repeat=PRICE_COUNT):
        rows = [[*compress(row, uses), total] for row, total in compress(zip(products, sums, strict=True), uses)]
        solved = iter(_solve(rows))
        prices = [next(solved, -1.0) if is_used else 0.0 for is_used in uses]
        gain = sum(map(mul, prices, sums))
        if min(prices) >= 0 and gain > best_gain:
            best_gain, best = gain, prices
    kept = calibrated_prices([round(1000 * sum(parts)) for parts in zip(least, best, strict=True)], system)
    return StartFit(kept, len(works), explained_share(kept, works, times_us))


def explained_share(prices: StartPrices, works: Sequence[tuple[int, ...]], times_us: Sequence[int]) -> float:
    """Return the part of the variance of measured times that prices explain (R²)."""
    mean_us = sum(times_us) / len(times_us)
    left = sum((time_us - start_us(work, prices)) ** 2 for work, time_us in zip(works, times_us, strict=True))
    return 1 - left / (sum((time_us - mean_us) ** 2 for time_us in times_us) or 1)


def _solve(rows: list[list[float]]) -> list[float]:
    """Solve linear equations, each with its sum at the end (Gauss); nothing where they do not determine all."""
    for at in range(len(rows)):
        pivot = max(range(at, len(rows)), key=lambda place: abs(rows[place][at]))
        if not rows[pivot][at]:
            return []
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for place, row in enumerate(rows):
            if place != at:
                factor = row[at] / rows[at][at]
                rows[place] = [value - factor * other for value, other in zip(row, rows[at], strict=True)]
    return [row[-1] / row[at] for at, row in enumerate(rows)]
