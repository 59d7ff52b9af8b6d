"""The records of `footprint.members` are those of `typing`, by all that they are asked."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

import pytest

import footprint
from footprint import members

PROGRAM = str(Path(__file__).parents[2] / "sample_binaries" / "condor_shadow" / "base")
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
        with pytest.raises(TypeError, match=r"(?i)expected 2"):
            Place._make(["a"])
    with pytest.raises((ValueError, TypeError), match="row"):
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


@members.dataclass(frozen=True)
class Sized:
    """A type with two fields."""

    name: str
    sizes: dict[str, int] = members.field(default_factory=dict)


@members.dataclass(frozen=True)
class Cut(Sized):
    """A type with two more fields, one of which is no part of its value."""

    end: int = 0
    checked: bool = members.field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.end < 0:
            raise ValueError(self.end)


@dataclasses.dataclass(frozen=True)
class TrueSized:
    """A type with two fields."""

    name: str
    sizes: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class TrueCut(TrueSized):
    """A type with two more fields, one of which is no part of its value."""

    end: int = 0
    checked: bool = dataclasses.field(default=False, repr=False, compare=False)


def test_a_frozen_dataclass_is_asked_as_one_of_the_standard_library() -> None:
    ours, theirs = Cut("a", {"b": 1}, end=2), TrueCut("a", {"b": 1}, end=2)
    assert repr(ours) == repr(theirs).replace("TrueCut", "Cut")
    assert dataclasses.is_dataclass(ours)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert [field.name for field in dataclasses.fields(Sized)] == ["name", "sizes"]
    assert inspect.signature(Cut) == inspect.signature(TrueCut)
    assert Cut.__match_args__ == TrueCut.__match_args__
    assert get_type_hints(Cut) == get_type_hints(TrueCut)
    assert pickle.loads(pickle.dumps(ours)) == copy.copy(ours) == ours  # noqa: S301 # made here
    with pytest.raises(dataclasses.FrozenInstanceError):
        ours.end = 3  # type: ignore[misc] # the point
    with pytest.raises(dataclasses.FrozenInstanceError):
        del ours.end


def test_a_frozen_dataclass_is_compared_by_its_fields_and_has_defaults_of_its_own() -> None:
    assert Cut("a", end=2, checked=True) == Cut("a", end=2)
    assert Cut("a") != Cut("b")
    assert Sized("a") != Cut("a")
    assert Sized("a").sizes is not Sized("a").sizes
    assert hash(Cut("a", ())) == hash(Cut("a", (), checked=True))  # type: ignore[arg-type] # a value with a hash


def test_a_changed_copy_of_a_frozen_dataclass_is_checked_again() -> None:
    assert members.replace(Cut("a", {"b": 1}), end=3) == dataclasses.replace(Cut("a", {"b": 1}), end=3)
    with pytest.raises(ValueError, match="-1"):
        members.replace(Cut("a"), end=-1)


@pytest.mark.parametrize(("values", "named"), [((), {}), (("a",), {"name": "b"}), (("a",), {"row": 1}), ((1,) * 5, {})])
def test_wrong_values_of_a_frozen_dataclass_are_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Cut(*values, **named)


ELSEWHERE = """
import pkgutil, sys
sys.implementation.name = "other"
import footprint
for module in pkgutil.walk_packages(footprint.__path__, "footprint."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
from footprint import members
assert members.NamedTuple is __import__("typing").NamedTuple
audit = footprint.audit(sys.argv[1])
print(len(audit.ledger), len(audit.objects))
"""


def test_all_types_can_be_made_by_the_standard_library_as_other_pythons_and_3_14_do() -> None:
    run = subprocess.run([sys.executable, "-c", ELSEWHERE, PROGRAM], capture_output=True, text=True, check=False)
    audit = footprint.audit(PROGRAM)
    assert (run.stderr, run.stdout) == ("", f"{len(audit.ledger)} {len(audit.objects)}\n")
