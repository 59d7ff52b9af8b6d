"""How the attributes of a type stand in JSON, said at the attribute: `footprint.json.codec` reads it.

A type whose values are written as JSON is a NamedTuple or a frozen dataclass. Each of its fields is a member of the
JSON object, and the text under "Attributes:" describes it. What the annotation cannot say is one of these marks in
`typing.Annotated`.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import repeat
from typing import Annotated, Any, Final, NamedTuple, TypeVar

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
