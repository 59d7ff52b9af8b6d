"""Regular expressions keep to what every Python that footprint runs on matches rightly."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined] # what a pattern is made of is told nowhere else
from typing import Any

import pytest

import footprint
from footprint.members import LazyPattern, lazy_pattern


def patterns() -> Iterator[tuple[str, re.Pattern[Any] | LazyPattern]]:
    for module in pkgutil.walk_packages(footprint.__path__, "footprint."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern | LazyPattern):
                yield f"{module.name}.{name}", value


def has_possessive_group(parsed: object) -> bool:
    """Return whether something longer than a character is repeated and never given back."""
    if isinstance(parsed, tuple) and parsed and parsed[0] is _constants.POSSESSIVE_REPEAT:
        (repeated,) = parsed[1][2:]
        simple = {_constants.IN, _constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY}
        if len(repeated) != 1 or repeated[0][0] not in simple:
            return True
    if isinstance(parsed, tuple | list | _parser.SubPattern):
        return any(map(has_possessive_group, parsed))
    return False


def test_a_lazy_pattern_is_compiled_when_it_is_first_used() -> None:
    pattern = lazy_pattern("(A", re.IGNORECASE)
    with pytest.raises(re.error, match="unterminated subpattern"):
        pattern.match("a")


def test_a_lazy_pattern_matches_as_one_that_is_compiled() -> None:
    pattern = lazy_pattern(rb"(a)|b", re.IGNORECASE)
    assert [match[1] for match in pattern.finditer(b"xAb")] == [b"A", None]
    assert (pattern.pattern, pattern.flags, pattern.sub(b".", b"xAb")) == (rb"(a)|b", re.IGNORECASE, b"x..")


@pytest.mark.parametrize(("pattern", "is_one"), [("(?:ab)++c", True), ("[ab]{0,9}+c", False), ("x(?:a++|.)*", False)])
def test_possessive_groups_are_told_from_possessive_characters(pattern: str, *, is_one: bool) -> None:
    assert has_possessive_group(_parser.parse(pattern)) is is_one


def test_no_pattern_has_a_possessive_group_as_python_before_3_11_5_matches_them_wrongly() -> None:
    found = dict(patterns())
    assert "footprint.dwarf.encoding._ABBREVIATION" in found
    wrong = [
        name
        for name, value in found.items()
        if has_possessive_group(_parser.parse(value.pattern, value.flags & ~re.UNICODE))
    ]
    assert wrong == []
