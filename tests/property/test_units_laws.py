"""What `format_bytes` writes, `parse_bytes` reads back, within the rounding that the text shows."""

from fractions import Fraction

from hypothesis import assume, example, given
from hypothesis import strategies as st

from footprint.text.units import format_bytes, parse_bytes

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50, "EiB": 1 << 60}
# Every power of two is as likely as another, so that each unit and each edge of one comes up.
SIZES = st.integers(0, 63).flatmap(lambda bits: st.integers(0, 1 << bits))


@given(SIZES)
@example(1_023_959)
@example(1_048_566)
def test_the_text_of_a_size_is_read_as_that_size_but_for_half_of_its_last_digit(size_bytes: int) -> None:
    text = format_bytes(size_bytes)
    number, unit = text.split(" ")
    decimals = len(number.partition(".")[2])
    half_digit_bytes = Fraction(UNITS[unit], 2 * 10**decimals)
    # The reader rounds to whole bytes once more.
    assert abs(parse_bytes(text) - size_bytes) <= half_digit_bytes + Fraction(1, 2)


@given(st.integers(1, 1023), st.sampled_from(sorted(UNITS)))
def test_whole_units_come_back_exactly(count: int, unit: str) -> None:
    size_bytes = count * UNITS[unit]
    assert format_bytes(size_bytes) == f"{count} {unit}"
    assert parse_bytes(format_bytes(size_bytes)) == size_bytes


@given(SIZES)
@example(1_023_959)
def test_a_size_that_is_no_whole_number_of_units_has_three_or_four_digits(size_bytes: int) -> None:
    number, unit = format_bytes(size_bytes).split(" ")
    assume(size_bytes % UNITS[unit] or "." in number)
    assert sum(character.isdigit() for character in number) in {3, 4}


@given(SIZES, SIZES)
def test_a_larger_size_is_never_written_as_a_smaller_one(size: int, other: int) -> None:
    smaller, larger = sorted((size, other))
    assert parse_bytes(format_bytes(smaller)) <= parse_bytes(format_bytes(larger))


@given(st.integers(0, 999_999), st.integers(0, 999), st.sampled_from([*sorted(UNITS), "kB", "MB", "GB"]))
def test_a_number_with_a_fraction_is_exact_to_the_byte(whole: int, thousandths: int, unit: str) -> None:
    factor = UNITS.get(unit) or {"kB": 10**3, "MB": 10**6, "GB": 10**9}[unit]
    exact = (whole + Fraction(thousandths, 1000)) * factor
    assume(exact < 1 << 50)
    assert abs(parse_bytes(f"{whole}.{thousandths:03}{unit}") - exact) <= Fraction(501, 1000)
