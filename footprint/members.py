"""The types of plain data, and how their attributes stand in JSON: `footprint.json.codec` reads what is said there.

To make a `typing.NamedTuple` compiles its constructor: 650,000 instructions. An audit makes 140 types, and most of them
have few values, so modules that every command imports take the `NamedTuple` of this one: it compiles a constructor for
the 17th value, for 170,000, as much as 30 values cost without one. Type checkers see that of `typing`. A frozen
dataclass costs 3,000,000 instructions, and the import of `dataclasses` 26,000,000: `dataclass` of this module makes
types without either. An audit of gdb does not need 68 of the patterns in its modules, which cost 44,000,000:
`lazy_pattern` compiles one when it is first used.

A type whose values are written as JSON is a NamedTuple or a frozen dataclass. Each of its fields is a member of the
JSON object, and the text under "Attributes:" describes it. What the annotation cannot say is one of these marks in
`typing.Annotated`.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any, AnyStr, Final, Self, TypeVar, cast

if TYPE_CHECKING or sys.implementation.name != "cpython" or sys.version_info >= (3, 14):
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 # the same
    from dataclasses import field as field  # noqa: PLC0414 # the same
    from dataclasses import replace as replace  # noqa: PLC0414 # the same
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 # others import it from here
else:
    from _collections import _tuplegetter

    _FEW_VALUES: Final = 16
    _value_counts: dict[type, int] = {}

    class _Tuple(tuple):
        """What all types have in common; their fields stand in `_fields`, the first of which have no default."""

        __slots__ = ()

        def __new__(cls, /, *values: object, **named: object) -> Self:
            fields, defaults, count = cls._fields, cls._field_defaults, _value_counts.get(cls, 0)
            if count < _FEW_VALUES:
                _value_counts[cls] = count + 1
                if not named and len(values) == len(fields):
                    return tuple.__new__(cls, values)
                every, unknown_count = list(values), len(named)
                for field in fields[len(values) :]:
                    if field in named:
                        every.append(named[field])
                        unknown_count -= 1
                    elif field in defaults:
                        every.append(defaults[field])
                if len(every) == len(fields) and not unknown_count:
                    return tuple.__new__(cls, every)
            # Also for wrong values, which it refuses.
            names = ", ".join(fields)
            make = eval(f"lambda _cls, {names}: _new(_cls, ({names},))", {"_new": tuple.__new__})  # noqa: S307 # names
            make.__defaults__ = tuple(defaults.values())
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

    _REQUIRED = object()

    class _Field(NamedTuple):
        """What `field` says of a field."""

        default: object = _REQUIRED
        default_factory: Callable[[], object] | None = None
        repr: bool = True
        compare: bool = True

    field = _Field

    def _settings(of: _Field) -> dict[str, object]:
        """Return the keywords of `dataclasses.field` for a field."""
        unset = {"default": _REQUIRED, "default_factory": None}
        return {name: value for name, value in of._asdict().items() if unset.get(name, of) is not value}

    class _OfDataclass:
        """An attribute of a true dataclass, which is made for the first that asks: `dataclasses` or `inspect`."""

        def __init__(self, cls: type, name: str) -> None:
            self._cls = cls
            self._name = name

        def __get__(self, _: object, cls: type) -> object:
            if cls is not self._cls and self._name == "__signature__":
                raise AttributeError(self._name)
            import dataclasses  # noqa: PLC0415 # few ask
            import inspect  # noqa: PLC0415 # the same

            fields = [
                (name, annotation, dataclasses.field(**_settings(of)))
                for name, (annotation, of) in self._cls.__frozen_fields__.items()
            ]
            made = dataclasses.make_dataclass(self._cls.__name__, fields, frozen=True)
            made.__signature__ = inspect.signature(made)
            setattr(self._cls, self._name, getattr(made, self._name))
            return getattr(made, self._name)

    class _Frozen:
        """The methods of all frozen dataclasses: they do in loops what others compile for each."""

        def __init__(self, *values: object, **named: object) -> None:
            fields = self.__frozen_fields__
            given = dict(zip(fields, values, strict=False)) | named
            if len(given) < len(values) + len(named) or not given.keys() <= fields.keys():
                raise TypeError(f"{type(self).__name__}() takes each of {', '.join(fields)} once")
            for name, (_, of) in fields.items():
                if name not in given:
                    given[name] = of.default_factory() if of.default_factory else of.default
                    if given[name] is _REQUIRED:
                        raise TypeError(f"{type(self).__name__}() needs {name}")
            self.__dict__.update(given)
            if hasattr(self, "__post_init__"):
                self.__post_init__()

        def __replace__(self, /, **changes: object) -> Self:
            return type(self)(**{name: self.__dict__[name] for name in self.__frozen_fields__} | changes)

        def __setattr__(self, name: str, value: object) -> None:
            from dataclasses import FrozenInstanceError  # noqa: PLC0415 # a defect

            raise FrozenInstanceError(f"cannot assign to field {name!r}")

        def __delattr__(self, name: str) -> None:
            self.__setattr__(name, None)

        def __repr__(self) -> str:
            shown = [f"{name}={self.__dict__[name]!r}" for name, (_, of) in self.__frozen_fields__.items() if of.repr]
            return f"{type(self).__qualname__}({', '.join(shown)})"

    class _Compared:
        """The methods of those that are equal where their fields are."""

        def __eq__(self, other: object) -> bool:
            return _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented

        def __hash__(self) -> int:
            return hash(_compared(self))

    def _compared(record: Any) -> tuple[object, ...]:  # noqa: ANN401 # any of them
        return tuple([record.__dict__[name] for name, (_, of) in record.__frozen_fields__.items() if of.compare])

    def dataclass(
        *,
        frozen: bool,  # noqa: ARG001 # type checkers read it
        eq: bool = True,
        kw_only: bool = False,  # noqa: ARG001 # the same
    ) -> Callable[[type], type]:
        """Make a type a frozen dataclass."""

        def made(cls: type) -> type:
            fields = dict(getattr(cls, "__frozen_fields__", {}))
            for name, annotation in vars(cls).get("__annotations__", {}).items():
                default = vars(cls).get(name, _REQUIRED)
                of = default if isinstance(default, _Field) else _Field(default)
                fields[name] = annotation, of
                if of is default:
                    delattr(cls, name)
            for methods in (_Frozen, _Compared) if eq else (_Frozen,):
                for name, method in vars(methods).items():
                    if callable(method) and name not in vars(cls):
                        setattr(cls, name, method)
            cls.__frozen_fields__, cls.__match_args__ = fields, tuple(fields)
            for name in ("__dataclass_fields__", "__dataclass_params__", "__signature__"):
                setattr(cls, name, _OfDataclass(cls, name))
            return cls

        return made

    def replace(record: Any, /, **changes: object) -> Any:  # noqa: ANN401 # the same
        """Return a record with other values in some fields."""
        return record.__replace__(**changes)


def field_names(cls: object) -> tuple[str, ...]:
    """Return the names of the fields of a NamedTuple or dataclass; none of any other type."""
    for names in ("_fields", "__frozen_fields__", "__dataclass_fields__"):
        if hasattr(cls, names):
            return tuple(getattr(cls, names))
    return ()


_Row = TypeVar("_Row")


def records(cls: Callable[..., _Row], rows: Iterable[tuple[Any, ...]]) -> list[_Row]:
    """Return a NamedTuple for each row, which has a value for each field.

    Python runs no step for a row: to call the type takes more than twice as long (benchmarks/records.py).
    """
    return list(each_record(cls, rows))


def each_record(cls: Callable[..., _Row], rows: Iterable[tuple[Any, ...]]) -> Iterator[_Row]:
    """Yield the rows of `records` one by one."""
    return map(tuple.__new__, repeat(cls), rows)  # type: ignore[arg-type] # `cls` is a type


class LazyPattern:
    """A regular expression that is compiled when one of its methods is first used."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 # as the attribute
        attribute = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, attribute)
        return attribute


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled when one of its methods is first used.

    Type checkers see what it compiles, but the functions of `re` do not take it: call its methods. A wrong text is
    refused at the first call; tests/unit/test_patterns.py compiles each pattern of a module. One that every answer
    needs is an ordinary `re.compile`: each of its calls takes less time.
    """
    return cast("re.Pattern[AnyStr]", LazyPattern(text, flags))


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
