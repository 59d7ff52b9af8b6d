"""A text of strangers as a number: digits of ASCII, and no more than a number below 2^63 has."""

import pytest

from footprint.text.units import decimal


@pytest.mark.parametrize("text", ["0", "007", "9223372036854775807"])
def test_digits_are_a_number(text: str) -> None:
    assert decimal(text) == decimal(text.encode()) == int(text)


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "1\n", "²", "٣", "1" * 20, "1" * 5000, "max"])
def test_any_other_text_is_none(text: str) -> None:
    assert decimal(text) is None
    assert decimal(text.encode()) is None
