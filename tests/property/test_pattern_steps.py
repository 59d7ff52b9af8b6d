"""The matcher that counts steps matches as that of Python does, and sees which patterns grow with the square."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.patternsteps import StepCounter
from tests.workcount import assert_linear, work_of

PATTERNS = [
    *(r"a*b", r"(a|ab)*c", r"a{2,3}?b", r"(?:ab?)+$", r"\s*x|y+", r"(a+)\1", r"(?<=a)b(?!c)", r"(?>a*)b|a", r"a*+b"),
    *(r"\bab\b", r"^b", r"(?:a|b){0,3}c", r"(?:a*)*b", r"(?:a?b?)*c", r"[^a]+?c", r"(?i)AB[c-d]", r"(?:ab)*+c"),
    *(r"a??b", r"(?:a|b|cx)*?c", r"\Aa|b\Z", r"\Ba\w", r"\d\D\S\W"),
]
FLAGS = [re.NOFLAG, re.MULTILINE, re.DOTALL, re.ASCII]


def steps(pattern: str, text: str) -> int:
    counter = StepCounter()
    counter.search(re.compile(pattern), text, 0, len(text))
    return counter.count


@examples(300)
@given(st.sampled_from(PATTERNS), st.sampled_from(FLAGS), st.text("abcx 1\n", max_size=10))
def test_a_match_is_that_of_python(source: str, flag: re.RegexFlag, text: str) -> None:
    pattern, counter = re.compile(source, flag), StepCounter()
    found, whole = pattern.search(text), pattern.fullmatch(text)
    assert counter.search(pattern, text, 0, len(text)) == (found and found.span())
    assert counter.match(pattern, text, 0, len(text), is_full=True) == (whole and whole.end())


def test_a_repeat_that_begins_anywhere_grows_with_the_square_and_a_linear_one_does_not() -> None:
    assert steps(r" +x", " " * 400) > 15 * steps(r" +x", " " * 100)
    assert steps(r"[^x]", "x" * 400) == 4 * steps(r"[^x]", "x" * 100) - 3


def test_alternatives_in_a_repeat_double_the_steps_with_each_character() -> None:
    assert steps(r"(?:a|a)*b", "a" * 12) > 3.9 * steps(r"(?:a|a)*b", "a" * 10)


def test_work_that_grows_with_the_square_fails() -> None:
    with pytest.raises(AssertionError, match="line_count"):
        assert_linear(range, lambda numbers: [[number for number in numbers] for _ in numbers], 50)  # noqa: C416


def test_a_loop_on_one_line_counts_each_time() -> None:
    assert work_of(lambda: [number for number in range(1000)]).line_count >= 1000  # noqa: C416
    assert work_of(lambda: sum(number for number in range(1000))).line_count >= 1000
