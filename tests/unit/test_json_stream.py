"""A large JSON object is read from pieces as `json.loads` reads the whole."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.errors import InputError
from footprint.json.stream import JsonStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def members(text: bytes, piece_bytes: int) -> dict[str, Any]:
    pieces = (text[at : at + piece_bytes] for at in range(0, len(text), piece_bytes))
    found = {}
    for key, value in JsonStream(pieces, "JSON", "a text", lambda part: part).members({"long"}):
        is_list = not isinstance(value, (str, int, float, list, dict)) and value is not None
        found[key] = [one for part in value for one in part] if is_list else value
    return found


@given(
    st.dictionaries(st.text(max_size=4) | st.just("long"), VALUES, max_size=3),
    st.lists(VALUES, max_size=6),
    st.sampled_from([None, 1, "\t"]),
    st.integers(1, 40),
)
def test_any_object_in_any_pieces_is_read(
    others: dict[str, Any], long: list[Any], indent: int | str | None, piece_bytes: int
) -> None:
    written = {**others, "long": long}
    assert members(json.dumps(written, indent=indent).encode(), piece_bytes) == written


@given(st.lists(VALUES, max_size=6), st.integers(1, 60))
def test_a_list_with_its_elements_on_lines_as_of_valgrind_is_read(long: list[Any], piece_bytes: int) -> None:
    text = '{"a":1\n,"long":\n [' + "\n ,".join(json.dumps(value) for value in long) + "\n ]\n}\n"
    assert members(text.encode(), piece_bytes) == {"a": 1, "long": long}


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize(
    "long",
    [
        [{"a": 1}, {"a": {"b": [1]}, "c": "},{"}, {"d": [{"e": 1}, {"e": 2}]}],
        ['","', '"', "},{", 'a", "b', "\n ,", "\\"],
        [{"a": '","'}, {}, [], ["x", "y"]],
    ],
)
def test_a_list_on_one_line_is_read_whatever_its_texts_contain(long: list[Any], separators: tuple[str, str]) -> None:
    text = json.dumps({"long": long * 3}, separators=separators)
    for piece_bytes in range(1, len(text) + 1):
        assert members(text.encode(), piece_bytes) == {"long": long * 3}


@pytest.mark.parametrize("piece_bytes", [1, 7, 1000])
@pytest.mark.parametrize(
    "text",
    ['{"a":1', '{"a" 1}', '{"a":1,}', "{a:1}", '{"a":}', '{"a":1}x', '{"a":[1,]}', '{"long":[1 2]}', '{"long":[1,"x]}'],
)
def test_damage_has_the_offset_that_the_library_has(text: str, piece_bytes: int) -> None:
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    with pytest.raises(InputError) as caught:
        members(text.encode(), piece_bytes)
    # Since 3.13 the library names the comma itself, where it named what follows it.
    at_comma = expected.value.msg.startswith("Illegal trailing comma")
    assert caught.value.offset == expected.value.pos + at_comma


@pytest.mark.parametrize(
    ("text", "offset", "cause"),
    [
        ('{"a":1 , }', 9, "Expecting property name enclosed in double quotes"),
        ('{"a":[1, \t]}', 10, "Expecting value"),
        ('{"a":{"b":1, }}', 13, "Expecting property name enclosed in double quotes"),
    ],
)
def test_a_trailing_comma_is_told_alike_by_every_python(text: str, offset: int, cause: str) -> None:
    with pytest.raises(InputError, match=cause) as caught:
        members(text.encode(), 1000)
    assert caught.value.offset == offset
