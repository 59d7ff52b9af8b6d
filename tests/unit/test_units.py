"""Bytes as text: binary units out, any clear unit in."""

import pytest

from footprint.errors import UsageError
from footprint.text.units import format_bytes, format_hours, parse_bytes


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (4096, "4 KiB"),
        (995_328, "972 KiB"),
        (1 << 20, "1 MiB"),
        (1023 << 10, "1023 KiB"),
        (3 << 30, "3 GiB"),
        (1 << 40, "1 TiB"),
        (1 << 50, "1 PiB"),
        (1 << 60, "1 EiB"),
    ],
)
def test_a_whole_number_of_units_is_written_without_a_fraction(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (1025, "1.00 KiB"),  # 1.00098
        (1536, "1.50 KiB"),
        (10_086, "9.85 KiB"),  # 9.8496
        (10_237, "10.0 KiB"),  # 9.99707
        (10_291, "10.0 KiB"),  # 10.0498
        (102_297, "99.9 KiB"),  # 99.899
        (102_349, "100.0 KiB"),  # 99.9502
        (1_023_488, "999.5 KiB"),
        (1_024_512, "1000 KiB"),  # 1000.5 to the even neighbour
        (1_047_000, "1022 KiB"),  # 1022.46
        (9_953_280_000, "9.27 GiB"),  # 9.2697
        (1_300_234_240, "1.21 GiB"),  # 1.21094
    ],
)
def test_other_sizes_have_three_or_four_significant_digits(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text


def test_a_size_just_below_a_thousand_units_has_no_fifth_digit() -> None:
    # 1,023,959 bytes are 999.960 KiB.
    assert format_bytes(1_023_959) == "1000 KiB"


def test_a_size_that_rounds_to_1024_units_is_written_in_the_next_unit() -> None:
    # 1,048,566 bytes are 1023.99 KiB.
    assert format_bytes(1_048_566) == "1.00 MiB"
    assert format_bytes((1 << 30) - 1) == "1.00 GiB"


def test_the_last_size_that_rounds_to_1023_units_stays_in_its_unit() -> None:
    # 1,048,063 bytes are 1023.499 KiB.
    assert format_bytes(1_048_063) == "1023 KiB"


def test_the_largest_unit_takes_any_number() -> None:
    assert format_bytes(5000 << 60) == "5000 EiB"
    assert format_bytes((1 << 70) - (1 << 50)) == "1024 EiB"


@pytest.mark.parametrize("size_bytes", [1, 1536, 995_328, 1_048_566, 9_953_280_000])
def test_a_negative_size_is_the_positive_one_behind_a_minus(size_bytes: int) -> None:
    assert format_bytes(-size_bytes) == f"-{format_bytes(size_bytes)}"


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("4096", 4096),
        ("0", 0),
        ("512B", 512),
        ("972KiB", 995_328),
        ("972 kB", 972_000),
        ("1MB", 1_000_000),
        ("1MiB", 1_048_576),
        ("2GB", 2_000_000_000),
        ("32GiB", 34_359_738_368),
        ("1TB", 1_000_000_000_000),
        ("1TiB", 1_099_511_627_776),
        ("1PB", 10**15),
        ("1PiB", 2**50),
        ("1EB", 10**18),
        ("1EiB", 2**60),
    ],
)
def test_units_with_i_are_powers_of_1024_and_those_without_powers_of_1000(text: str, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["1.5GiB", "1.5 GiB", " 1.5  gib ", "1.5GIB", "1.50000gIb", "\t1.5GiB\n"])
def test_case_and_blanks_around_number_and_unit_do_not_matter(text: str) -> None:
    assert parse_bytes(text) == 1_610_612_736


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("0.1KiB", 102), ("4.35GB", 4_350_000_000), ("0.5 MB", 500_000), ("1e6", 1_000_000), ("1.5e3 kB", 1_500_000)],
)
def test_a_fraction_is_rounded_to_whole_bytes(text: str, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize("letter", ["k", "K", "m", "M", "g", "G", "t", "T", "p", "P", "e", "E"])
def test_a_bare_letter_is_refused_and_both_readings_named(letter: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_bytes(f"500{letter}")
    prefix = letter.upper()
    remedy = f"write {prefix}iB for powers of 1024 or {prefix}B for powers of 1000"
    assert str(caught.value) == f"'500{letter}' is ambiguous: {remedy}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "M",
        "MiB",
        "-4KiB",
        "+4KiB",
        "1,5GiB",
        "1.GiB",
        ".5GiB",
        "1_000",
        "nan",
        "inf",
        "0x10",
        "1 2 KiB",
        "٣KiB",
    ],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["4 bytes", "4KiBs", "4XB", "4ZiB", "4iB"])
def test_an_unknown_unit_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="has no unit that footprint knows"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (0.0, "0.00"),
        (1.25e-7, "0.000000125"),
        (0.000124, "0.000124"),
        (-0.0123, "-0.0123"),
        (9.996, "10.0"),
        (12.345, "12.3"),
        (1234.5, "1,234"),
    ],
)
def test_hours_have_three_digits_and_no_exponent(hours: float, text: str) -> None:
    assert format_hours(hours) == text
