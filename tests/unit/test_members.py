"""The records of `footprint.members` are those of `typing`, by all that they are asked."""

import copy
import pickle
import sys
import typing
from typing import Generic, TypeVar, get_type_hints

import pytest

from footprint import members

T = TypeVar("T")


class Place(members.NamedTuple):
    """A place."""

    file: str
    line: "int | None" = None

    @property
    def text(self) -> str:
        return f"{self.file}:{self.line}"


class Held(members.NamedTuple, Generic[T]):
    owner: T
    size: int = 0


class TypingPlace(typing.NamedTuple):
    file: str
    line: "int | None" = None


def test_a_record_is_made_by_place_by_name_and_with_defaults() -> None:
    assert Place("a.c", 1) == Place(file="a.c", line=1) == ("a.c", 1)
    assert Place("a.c").text == "a.c:None"
    assert Place("a.c").file == "a.c"
    assert Held[int](1, 2).owner == Held(1, size=2).owner


@pytest.mark.parametrize("wrong", [(), ("a", 1, 2)])
def test_wrong_values_are_refused(wrong: tuple[object, ...]) -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match=r"^Place\.__new__\(\) .*argument"):
            Place(*wrong)  # type: ignore[arg-type] # the point
        with pytest.raises(TypeError, match="expected 2"):
            Place._make(["a"])
    with pytest.raises(ValueError, match="row"):
        Place("a")._replace(row=1)  # type: ignore[call-arg] # the point
    with pytest.raises(AttributeError):
        Place("a").line = 2  # type: ignore[misc] # the point


def test_a_record_is_asked_as_one_of_typing() -> None:
    ours, theirs = Place("a.c", 1), TypingPlace("a.c", 1)
    assert repr(ours) == repr(theirs).replace("TypingPlace", "Place")
    assert ours._asdict() == theirs._asdict()
    assert tuple(ours._replace(line=2)) == tuple(theirs._replace(line=2))
    assert hash(ours) == hash(theirs)
    assert (ours._fields, ours._field_defaults) == (theirs._fields, theirs._field_defaults)
    assert Place.__match_args__ == TypingPlace.__match_args__
    assert get_type_hints(Place) == get_type_hints(TypingPlace)
    assert not hasattr(ours, "__dict__")
    assert (Place.__doc__, Place.__module__) == ("A place.", __name__)


def test_a_record_is_copied_and_pickled() -> None:
    place = Place("a.c", 1)
    loaded = pickle.loads(pickle.dumps(place))  # noqa: S301 # our own
    assert [copy.copy(place), loaded] == [place, place]
    assert type(loaded) is Place
    if sys.version_info >= (3, 13):
        assert copy.replace(place, line=2) == Place("a.c", 2)
