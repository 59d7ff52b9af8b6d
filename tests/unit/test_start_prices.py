"""The prices of a start: fitted to times, kept, and chosen by the system of a program; measuring is for host tests."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from footprint.attribution.start_time import CALIBRATED, StartPrices, built_in_prices, calibrated_prices, start_system
from footprint.errors import AccessError
from footprint.loader.target import Libc
from footprint.process import held_program
from footprint.process.start_counters import StartCounters
from footprint.sources import start_calibration
from footprint.sources.programs import keep_start_prices, load_start_prices
from footprint.sources.start_calibration import StartSample, calibrate_starts, fit_prices, programs_of_machine
from tests.elfwriter import RO, Section
from tests.loadable import link_map, made

HERE = "x86-64, glibc 2.36"
PRICES = StartPrices(300_000, 40_000, 2_000, 10, 100, 20, 1_000, CALIBRATED, HERE)
# The loader, other objects, pages, relocations, lookups, objects asked, failed opens.
WORKS = [(1, n % 7, 10 + n * n % 31, 500 * (n % 5), 40 * (n % 11), 90 * (n % 13), 25 * (n % 3)) for n in range(40)]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of calibrations, which is not there yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "footprint" / "start.json"


def times_us(prices: StartPrices, works: Sequence[tuple[int, ...]]) -> list[int]:
    return [sum(price * count for price, count in zip(prices.each_ns, work, strict=True)) // 1000 for work in works]


# --- fitting ----------------------------------------------------------------------------------------------------------


def test_prices_are_found_again_from_the_times_that_they_make() -> None:
    many = [tuple(1000 * count for count in work) for work in WORKS] * 1000
    fit = fit_prices(HERE, many, times_us(PRICES, many))
    assert all(
        abs(found - price) <= price / 100 for found, price in zip(fit.prices.each_ns, PRICES.each_ns, strict=True)
    )
    assert fit.program_count == 40_000
    assert fit.explained_share > 0.999


def test_no_price_is_negative() -> None:
    times = [10_000 - 100 * work[2] for work in WORKS]
    assert min(fit_prices(HERE, WORKS, times).prices.each_ns) >= 0


def test_what_the_times_do_not_say_is_as_usual_on_a_machine_of_this_speed() -> None:
    usual = built_in_prices(HERE)
    without = [(*work[:6], 0) for work in WORKS]
    slow = calibrated_prices([3 * price for price in usual.each_ns], HERE)
    fitted = fit_prices(HERE, without, times_us(slow, without)).prices
    assert abs(fitted.failed_open_ns - 3 * usual.failed_open_ns) <= 20


def test_noise_makes_no_price_zero() -> None:
    usual = built_in_prices(HERE)
    for seed in range(30):
        chance = random.Random(seed)  # noqa: S311 # noise
        # Programs with many objects have more of all else: the times hardly say which of these takes them.
        counts = [chance.randint(2, 50) for _ in range(48)]
        works = [
            (1, n, *[int(n * each * chance.uniform(0.7, 1.3)) for each in (12, 1500, 150, 300 * n // 20, 0.5)])
            for n in counts
        ]
        times = [int(time_us * chance.lognormvariate(0, 0.3)) for time_us in times_us(usual, works)]
        fitted = fit_prices(HERE, works, times).prices
        speed = sum(times) / sum(times_us(usual, works))
        assert all(
            price >= speed * usual_price / 4 - 1
            for price, usual_price in zip(fitted.each_ns, usual.each_ns, strict=True)
        ), (seed, fitted)


def test_prices_that_explain_little_are_not_kept(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    samples = [StartSample("/bin/true", {}, work) for work in WORKS]
    monkeypatch.setattr(start_calibration, "choose_samples", lambda *_: (HERE, samples))
    monkeypatch.setattr(start_calibration, "measure_samples", lambda *_: ([1 + 1000 * (n % 2) for n in range(40)], []))
    with pytest.raises(AccessError, match="nothing is kept; try again when less runs"):
        calibrate_starts()
    assert not state.exists()


def programs_that_start(monkeypatch: pytest.MonkeyPatch, count: int, *failing: int) -> None:
    """Have these programs take what PRICES say, and some of them not start from their second turn on."""
    works, counts = [(1, n, 10 * n, 500, 40 * n, 90, 25) for n in range(count)], Counter[str]()
    samples = [StartSample(f"/bin/{number}", {}, work) for number, work in enumerate(works)]
    times = {f"/bin/{number}": time_us for number, time_us in enumerate(times_us(PRICES, works))}

    def start_once(path: str, _: object) -> StartCounters:
        counts[path] += 1
        if counts[path] > 1 and path in {f"/bin/{number}" for number in failing}:
            raise AccessError(path, "it ended before its entry point")
        return StartCounters(times[path], 0, 0)

    monkeypatch.setattr(start_calibration, "choose_samples", lambda *_: (HERE, samples))
    monkeypatch.setattr(held_program, "start_once", start_once)


def test_a_program_that_does_not_start_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    programs_that_start(monkeypatch, 14, 3, 7)
    fit = calibrate_starts()
    assert fit is not None
    assert fit.program_count == 12
    assert sorted(map(str, fit.left_out)) == [
        "/bin/3: it ended before its entry point",
        "/bin/7: it ended before its entry point",
    ]
    assert state.exists()


@pytest.mark.parametrize(("count", "failing"), [(13, 2), (40, 9)])
def test_where_too_few_are_left_or_many_fail_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, state: Path, count: int, failing: int
) -> None:
    programs_that_start(monkeypatch, count, *range(failing))
    with pytest.raises(AccessError, match="it ended before its entry point"):
        calibrate_starts()
    assert not state.exists()


def test_of_too_few_programs_nothing_is_measured(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    samples = [StartSample("/bin/true", {}, work) for work in WORKS[:11]]
    monkeypatch.setattr(start_calibration, "choose_samples", lambda *_: (HERE, samples))
    assert calibrate_starts() is None
    assert not state.exists()


# --- keeping ----------------------------------------------------------------------------------------------------------


def test_what_was_kept_is_for_that_system_only(state: Path) -> None:
    keep_start_prices(PRICES)
    assert state.exists()
    assert load_start_prices(HERE) == PRICES
    other = load_start_prices("arm64, glibc 2.41")
    assert (other.origin, other.system, other.is_compared) == ("built in", HERE, False)


def test_without_a_calibration_the_prices_are_built_in(state: Path) -> None:
    assert not state.exists()
    assert load_start_prices(HERE) == built_in_prices(HERE)
    assert built_in_prices(HERE).is_compared


@pytest.mark.parametrize(
    "text",
    ["{", json.dumps({"systems": []}), json.dumps({"systems": {HERE: 7}}), json.dumps({"systems": {HERE: {}}})]
    + [
        json.dumps({"systems": {HERE: dict(zip(StartPrices._fields, (*PRICES[:6], value), strict=False))}})
        for value in (-1, True, "1", 10**12)
    ],
)
def test_a_damaged_file_is_as_none(state: Path, text: str) -> None:
    state.parent.mkdir()
    state.write_text(text)
    assert load_start_prices(HERE) == built_in_prices(HERE)


# --- the system of a program ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("banner", "system"),
    [
        (b"GNU C Library (Debian GLIBC 2.36-9+deb12u10) stable release version 2.36.\n", HERE),
        (b"stable release version unknown", "x86-64, glibc"),
        (b"", "x86-64, glibc"),
    ],
)
def test_the_release_of_glibc_is_what_it_prints_of_itself(banner: bytes, system: str) -> None:
    libc = made("libc.so.6", sections=[Section(".rodata", flags=RO, data=banner)])
    assert start_system(link_map(made("program"), libc)) == system


def test_another_c_library_has_no_release() -> None:
    assert start_system(link_map(made("program"), libc=Libc.MUSL)) == "x86-64, musl"


def test_programs_that_cannot_be_started_calibrate_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, mode in (("data", 0o644), ("of anybody", 0o777), ("of its group", 0o775), ("program", 0o755)):
        (tmp_path / name).write_bytes(b"\x7fELF")
        (tmp_path / name).chmod(mode)
    monkeypatch.setattr(start_calibration, "_FOLDERS", (str(tmp_path),))
    assert list(programs_of_machine()) == [str(tmp_path / "program")]
