"""What a user sees of two variants is compared: what one of them does not always show says nothing of the other."""

import hashlib
from types import SimpleNamespace
from typing import cast

import pytest

from footprint.model.audit import Audit
from footprint.process.launch.moment import When
from footprint.verbs.run.result import Start
from footprint.verbs.whatif.result import Agreement, Compared, Output, Trial, WhatIf, compare
from footprint.verbs.whatif.text import dropped_names

SAME, OTHER, THIRD = b"one\ntwo\n", b"one\nTWO\n", b"three\n"


def output(text: bytes, head_bytes: int = 1000) -> Output:
    return Output(text[:head_bytes], len(text), hashlib.sha256(text).digest())


def trial(printed: bytes = SAME, *, code: int | None = 0, signal: str | None = None, head_bytes: int = 1000) -> Trial:
    audit = cast("Audit", None)
    start = Start(audit=audit, children=(), snapshots=(), moment=When.EXIT, exit_code=code, signal=signal, notes=())
    return Trial(start, output(printed, head_bytes), output(b""))


def printed(original: bytes, before: list[bytes], after: list[bytes], head_bytes: int = 1000) -> Compared:
    trials = [[trial(text, head_bytes=head_bytes) for text in texts] for texts in ([original], before, after)]
    return compare(trials[0][0], trials[1], trials[2])[0]


@pytest.mark.parametrize(
    ("original", "before", "after", "verdict"),
    [
        (SAME, [SAME, SAME], [SAME, SAME], Agreement.EQUAL),
        (SAME, [SAME, SAME], [OTHER, OTHER], Agreement.DIFFERENT),
        (SAME, [SAME, SAME], [SAME, OTHER], Agreement.DIFFERENT),
        # The program shows one thing now and another then, or shows where it lies.
        (SAME, [SAME, OTHER], [THIRD, SAME], Agreement.VARYING),
        (SAME, [OTHER, OTHER], [THIRD, THIRD], Agreement.VARYING),
        (SAME, [OTHER, OTHER], [OTHER, OTHER], Agreement.EQUAL),
    ],
)
def test_only_what_is_steady_can_differ(
    original: bytes, before: list[bytes], after: list[bytes], verdict: Agreement
) -> None:
    found = printed(original, before, after)
    assert (found.verdict, found.is_as_original) == (verdict, original == before[0])


@pytest.mark.parametrize(
    ("after", "line", "shown"),
    [
        (b"one\nTWO\n", 2, ("two", "TWO")),
        (b"", 1, ("one", None)),
        (b"one\ntwo\nthree", 3, (None, "three")),
        (b"one\n\xff" + b"x" * 300, 2, ("two", "\udcff" + "x" * 199 + "...")),
    ],
)
def test_the_first_line_that_differs_is_shown(after: bytes, line: int, shown: tuple[str | None, str | None]) -> None:
    found = printed(SAME, [SAME], [after])
    assert (found.line, (found.before, found.after)) == (line, shown)


def test_what_differs_behind_the_part_that_is_kept_is_told_without_a_line() -> None:
    found = printed(SAME, [SAME], [OTHER], head_bytes=4)
    assert (found.verdict, found.line, found.before, found.after) == (Agreement.DIFFERENT, None, None, None)


def test_endings_are_compared_in_words() -> None:
    ended = compare(trial(), [trial()], [trial(code=None, signal="SIGSEGV")])[2]
    assert ended == ("ending", Agreement.DIFFERENT, True, None, None, "exit code 0", "SIGSEGV")
    assert compare(trial(code=None), [trial(code=None)], [trial(code=None)])[2].before == "ended by footprint"


@pytest.mark.parametrize(
    ("dropped", "text"), [("liba.so", "liba.so"), ("liba.so libb.so libc.so", "liba.so, libb.so and libc.so")]
)
def test_libraries_are_listed_as_in_a_sentence(dropped: str, text: str) -> None:
    assert dropped_names(cast("WhatIf", SimpleNamespace(dropped=tuple(dropped.split())))) == text
