"""The types of plain data, and how their attributes stand in JSON: `footprint.json.codec` reads what is said there.

To make a `typing.NamedTuple` compiles its constructor: 650,000 instructions. An audit makes 140 types, and many of them
have no value, so modules that every command imports take the `NamedTuple` of this one: it compiles a constructor for
the first value. Type checkers see that of `typing`.

A type whose values are written as JSON is a NamedTuple or a frozen dataclass. Each of its fields is a member of the
JSON object, and the text under "Attributes:" describes it. What the annotation cannot say is one of these marks in
`typing.Annotated`.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeVar

if TYPE_CHECKING or sys.implementation.name != "cpython" or sys.version_info >= (3, 14):
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 # others import it from here
else:
    from _collections import _tuplegetter

    class _Tuple(tuple):
        """What all types have in common; their fields stand in `_fields`, the first of which have no default."""

        __slots__ = ()

        def __new__(cls, /, *values: object, **named: object) -> Self:
            names = ", ".join(cls._fields)
            make = eval(f"lambda _cls, {names}: _new(_cls, ({names},))", {"_new": tuple.__new__})  # noqa: S307 # names
            make.__defaults__ = tuple(cls._field_defaults.values())
            make.__qualname__ = f"{cls.__name__}.__new__"
            cls.__new__ = make
            return make(cls, *values, **named)

        @classmethod
        def _make(cls, values: Iterable[object]) -> Self:
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"expected {len(cls._fields)} values, got {len(made)}")
            return made

        def _replace(self, /, **changes: object) -> Self:
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise ValueError(f"unexpected names of fields: {list(changes)}")
            return made

        __replace__ = _replace

        def _asdict(self) -> dict[str, object]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            values = ", ".join([f"{name}={value!r}" for name, value in self._asdict().items()])
            return f"{type(self).__name__}({values})"

        def __getnewargs__(self) -> tuple[object, ...]:
            return tuple(self)

    class _MakeTuple(type):
        """Makes the types: what is derived from `NamedTuple` is an ordinary type, derived from `_Tuple`."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, object]) -> type:
            fields = tuple(members.get("__annotations__", ()))
            members["_field_defaults"] = {field: members[field] for field in fields if field in members}
            members |= {field: _tuplegetter(place, "") for place, field in enumerate(fields)}
            members |= {"_fields": fields, "__match_args__": fields, "__slots__": ()}
            return type(name, (*bases[1:], _Tuple), members)

    NamedTuple = type.__new__(_MakeTuple, "NamedTuple", (), {})

_Row = TypeVar("_Row")


def records(cls: Callable[..., _Row], rows: Iterable[tuple[Any, ...]]) -> list[_Row]:
    """Return a NamedTuple for each row, which has a value for each field.

    Python runs no step for a row: to call the type takes more than twice as long (benchmarks/records.py).
    """
    return list(each_record(cls, rows))


def each_record(cls: Callable[..., _Row], rows: Iterable[tuple[Any, ...]]) -> Iterator[_Row]:
    """Yield the rows of `records` one by one."""
    return map(tuple.__new__, repeat(cls), rows)  # type: ignore[arg-type] # `cls` is a type


_T = TypeVar("_T", bound=type[Any])


class Bounds(NamedTuple):
    """The integers that a member may be; the default is a size or a count.

    Attributes:
        least: The smallest.
        past: The first that is too large.
    """

    least: int = 0
    past: int = 1 << 63


class Pattern(NamedTuple):
    """The regular expression that a text matches."""

    text: str


class Later(NamedTuple):
    """Earlier versions did not write the member, so that a file that they saved may lack it.

    Attributes:
        default: The value of the member then.
    """

    default: Any = None


class NotEmpty(Enum):
    """The list or text is never empty."""

    NOT_EMPTY = "not empty"


class Absent(Enum):
    """The value of a member that is left out."""

    ABSENT = "absent"


LATER: Final = Later()
NOT_EMPTY: Final = NotEmpty.NOT_EMPTY
ABSENT: Final = Absent.ABSENT

Signed = Annotated[int, Bounds(1 - (1 << 63))]
"""A difference."""
Positive = Annotated[int, Bounds(1)]
"""A size or count that is never 0."""
Address = Annotated[int, Bounds(0, 1 << 64)]
"""An address, an offset in a file, or another number of 64 bits."""
KernelCount = Annotated[int, Bounds(0, 1 << 31)]
"""A PID, or a count that the kernel keeps in 31 bits."""
ContentBytes = Annotated[int, Bounds(0, (1 << 48) + 1)]
"""The memory of one object of the kernel; no machine has more."""


def json_members(names: str) -> Callable[[_T], _T]:
    """Choose the members of a type's JSON object, and their order, where they are not its fields in their order.

    Args:
        names: Attributes, properties included, with spaces between; `key=attribute` where the JSON has another name.
    """

    def mark(cls: _T) -> _T:
        pairs = [name.rpartition("=") for name in names.split()]
        cls.__json_members__ = {key or attribute: attribute for key, _, attribute in pairs}
        return cls

    return mark
