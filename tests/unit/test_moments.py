"""The moments at which a started program is measured, as a user writes them."""

from collections.abc import Sequence

import pytest

from footprint.errors import UsageError
from footprint.process.launch.moment import Moment, When
from footprint.verbs.run.call import parse_moment


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("exit", Moment(When.EXIT, 60)),
        ("settled", Moment(When.SETTLED, 60)),
        ("2.5s", Moment(When.TIME, 2.5)),
        ("500ms", Moment(When.TIME, 0.5)),
        ("2min", Moment(When.TIME, 120)),
    ],
)
def test_moments_are_read(when: str, expected: Moment) -> None:
    assert parse_moment(when, None, 60) == expected


def test_an_expression_is_matched_against_bytes() -> None:
    moment = parse_moment("exit", "gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n|\udcff", 5)
    assert moment.pattern is not None
    assert (moment.when, moment.seconds) == (When.OUTPUT, 5)
    assert moment.pattern.search("gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n".encode())
    assert moment.pattern.search(b"\xff")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("2.5", None, 60), "is not a moment"),
        (("-1s", None, 60), "is not a moment"),
        (("1e9s", None, 60), "is not a moment"),
        (("", None, 60), "is not a moment"),
        (("time", None, 60), "is not a moment"),
        (("999999999min", None, 60), "too long"),
        (("exit", "(", 60), "not a regular expression"),
        (("settled", "x", 60), "choose one moment"),
        (("settled", None, 0), "not a number of seconds"),
        (("settled", None, float("nan")), "not a number of seconds"),
        (("settled", None, float("inf")), "not a number of seconds"),
    ],
)
def test_other_moments_are_wrong_use(words: Sequence[object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_moment(*words)  # type: ignore[arg-type]
