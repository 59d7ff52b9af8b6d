"""Tables as plain text: what gives way where a row is wider than a page."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.formats.document import Facts, Fold, Table
from footprint.formats.text import plain, wrapped_words

WIDE = "x" * 50
"""A column that leaves 80 - 2 - 50 - 2 = 26 for the last one."""


def last_column(text: str, fold: Fold, footer: str = "") -> list[str]:
    """Return the lines of the last column of a table of one row, or of its footer."""
    table = Table(("a", "b"), ((WIDE, text),), frozenset({0}), (("", footer),) if footer else (), fold)
    lines = plain((table,)).splitlines()[1:]
    assert all(len(line) <= 80 for line in lines)
    return [line[54:] for line in lines]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("main_arena", ["main_arena"]),
        ("table  x.h:7", ["table  x.h:7"]),
        ("a_table_of_a_library  header.h:7", ["a_table_of_a_library", "header.h:7"]),
        # The first namespace and the end of a name tell more than the namespaces between them.
        ("a::b::c::d::e::f::g::h::name_in_them", ["a::...::g::h::name_in_them"]),
        ("a::b<c::d>::e::f(g::h)::name_in_them", ["a::...::name_in_them"]),
        ("a::b::a_name_without_room__", ["...::a_name_without_room__"]),
        ("a::a_name_with_too_little_room", ["...me_with_too_little_room"]),
        # The name stays, and the type behind it gets a line of its own.
        ("main_arena: struct malloc_state_of_thread", ["main_arena:", "struct malloc_state_of_..."]),
        ("calls in bump: int[10]", ["calls in bump: int[10]"]),
        ("calls in another_function: int[10]", ["calls in another_function:", "int[10]"]),
    ],
)
def test_names_that_are_too_long_get_lines_of_their_own(text: str, lines: list[str]) -> None:
    assert last_column(text, Fold.NAMES) == lines


@pytest.mark.parametrize("fold", [Fold.NAMES, Fold.TEXT])
def test_how_many_rows_are_left_out_is_never_cut(fold: Fold) -> None:
    found = last_column("name", fold, "[12,757 more: --top 0 shows all]")
    assert " ".join(found) == "name [12,757 more: --top 0 shows all]"


def test_no_text_is_lost_or_longer_than_a_line_and_names_are_not_split() -> None:
    name = "_ZN" + "a" * 60
    table = Table(("a", "b"), ((WIDE, f"{name}  [and some others, which are many]"),), frozenset({0}))
    lines = plain((table, Facts((("label", "12 KiB", "measured " * 12),)))).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert any(line.strip() == name for line in lines)
    assert " ".join(" ".join(lines).split()).count("measured") == 12
    assert "[and some others, which are many]" in " ".join(" ".join(lines).split())


def test_a_wider_page_needs_fewer_lines() -> None:
    table = Table(("a", "b"), ((WIDE, "word " * 12),), frozenset({0}))
    assert len(plain((table,)).splitlines()) > len(plain((table,), 120).splitlines()) == 2


@given(
    st.text("ab  -/\xa0", max_size=40),
    st.integers(1, 20),
    st.sampled_from(["", " ", "x "]),
    st.sampled_from(["", "   "]),
)
def test_words_are_wrapped_as_the_standard_library_does(text: str, width: int, first: str, others: str) -> None:
    expected = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False, break_long_words=False
    )
    assert wrapped_words(text, width, first, others) == expected
