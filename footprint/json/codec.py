# ruff: noqa: D102 # `Shape` says what its methods do
"""Values of typed Python to plain JSON data and back, from the annotations of their types alone.

The shape of a type is found from its annotations once; `footprint.members` has the marks for what these cannot say.
The JSON schema, the tables of docs/json.md and the TypeScript types of the report are made from the same shapes
(shell/describe.py).

A shape converts a column, which is a list of values of one type, and never a single value: the 14 members of 25,000
rows are 14 columns, each converted and checked in one pass. That is several times faster than row by row.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import chain, groupby, repeat
from json import JSONEncoder
from json.encoder import encode_basestring_ascii
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from footprint.errors import InputError
from footprint.members import NOT_EMPTY, Absent, Bounds, Later, NamedTuple, Pattern, dataclass, field_names, records
from footprint.text.escape import well_formed

_T = TypeVar("_T")
_Column = Sequence[Any]
_CELLS: Final = {str, int, float, bool, type(None)}
_TO_JSON: Final = JSONEncoder(separators=(", ", ": ")).encode
# An unknown word may have any length: this much of it is shown.
_SHOWN_CHARS: Final = 80
_REQUIRED: Final = object()
# How often each value of a member must stand in a table on average, before its texts are remembered.
_REPEATED_COUNT: Final = 4
_SAMPLED_COUNT: Final = 1024
_TEXTS_AT_ONCE: Final = 4096
_NEVER_ESCAPED: Final = bytes(sorted({*range(ord(" "), 127)} - {*b'"\\'}))
_INTEGERS: Final = {Bounds(): "not a size or count", Bounds(1 - (1 << 63)): "not a difference of sizes"}


def encode(value: object) -> dict[str, Any]:
    """Return a NamedTuple or dataclass as the data of a JSON object, with every text well-formed."""
    encoded: dict[str, Any] = shape_of(type(value)).write([value])[0]
    return encoded


class Columns(NamedTuple):
    """A table of rows that all have the same members.

    Attributes:
        keys: The members.
        cells: The values of each member, of all rows.
    """

    keys: tuple[str, ...]
    cells: tuple[_Column, ...]


def encode_columns(value: object) -> dict[str, Any]:
    """Return a NamedTuple or dataclass like `encode`, its tables by columns: rows are not made."""
    encoded: dict[str, Any] = {}
    for member in shape_of(type(value)).members:  # type: ignore[attr-defined] # of a record
        cell = getattr(value, member.attribute)
        if cell is Absent.ABSENT:
            continue
        inner = member.shape.inner if isinstance(member.shape, ListOf) else None
        cells = inner.cells(cell) if isinstance(inner, Record) and cell else None
        is_table = isinstance(inner, Record) and cells is not None and not inner.has_gaps(cells)
        encoded[member.key] = (
            Columns(tuple(cells), tuple(cells.values())) if cells and is_table else member.shape.write([cell])[0]
        )
    return encoded


def decode(cls: type[_T], data: object, file: str, before: str = "it is damaged: ") -> _T:
    """Read a value of a type from plain JSON data. Members that the type does not have are ignored.

    A list may stand as the tuple that `decode_rows` has made of it. `before` begins the messages of errors.

    Raises:
        InputError: The data lacks a member, or a member is not what the type says; the message names it.
    """
    try:
        return cast("_T", shape_of(cls).read([data], "")[0])
    except _DamageError as error:
        raise InputError(file, f"{before}{error}") from None
    except ValueError as error:
        raise InputError(file, f"it was changed since it was written: {error}") from error


def decode_rows(cls: type[_T], rows: _Column, path: str, file: str, first: int = 0) -> Sequence[_T]:
    """Read a part of a list of values of a type like `decode`.

    Args:
        cls: The type.
        rows: The plain JSON data of each.
        path: The name of the list, for errors.
        file: The file that it is from, for errors.
        first: The place of the first of them in the list.
    """
    try:
        return _read_list(shape_of(cls), rows, path, first)
    except _DamageError as error:
        raise InputError(file, f"it is damaged: {error}") from None


def _read_list(shape: "Shape", values: _Column, path: str, first: int = 0) -> _Column:
    """Read values; an error names the first that is wrong by its place in the list, which bisection finds."""
    try:
        return shape.read(values, path)
    except _DamageError:
        while len(values) > 1:
            half = len(values) // 2
            try:
                shape.read(values[:half], path)
            except _DamageError:
                values = values[:half]
            else:
                values, first = values[half:], first + half
        shape.read(values, f"{path}[{first}]")
        raise


def like(cls: Callable[..., _T], source: object, **others: Any) -> _T:  # noqa: ANN401 # values of any type
    """Return a value of a type that has the attributes of another value by their names, and some others."""
    return cls(**{name: others[name] if name in others else getattr(source, name) for name in field_names(cls)})


class _DamageError(ValueError):
    """A member is not what its type says."""


def _wrong(path: str, what: str) -> _DamageError:
    return _DamageError(f"`{path}` is {what}" if path else f"the whole is {what}")


class Shape:
    """How the values of one type stand in JSON.

    Attributes:
        is_plain: JSON has the values as they are.
        has_equal_texts: Values that are equal have the same text, unlike 1 and 1.0.
    """

    is_plain = False
    has_equal_texts = False

    def write(self, column: _Column) -> _Column:
        """Return the values as plain JSON data."""
        return column

    def texts(self, column: _Column) -> Iterable[str]:
        """Return the values as JSON texts, in less time than by their plain data."""
        return map(_TO_JSON, self.write(column))

    def read(self, column: _Column, path: str) -> _Column:
        """Return the values that plain JSON data stands for; `path` names the member in errors."""
        raise NotImplementedError


class Flag(Shape):
    """True or false."""

    is_plain = has_equal_texts = True

    def texts(self, column: _Column) -> Iterable[str]:
        return map(("false", "true").__getitem__, column)

    def read(self, column: _Column, path: str) -> _Column:
        if set(map(type, column)) - {bool}:
            raise _wrong(path, "neither true nor false")
        return column


class Number(Shape):
    """An integer or a fraction."""

    is_plain = True

    def read(self, column: _Column, path: str) -> _Column:
        if set(map(type, column)) - {int, float}:
            raise _wrong(path, "not a number")
        return column


@dataclass(frozen=True, eq=False)
class Integer(Shape):
    """An integer within bounds."""

    is_plain = has_equal_texts = True
    bounds: Bounds

    def texts(self, column: _Column) -> Iterable[str]:
        return map(str, column)

    def read(self, column: _Column, path: str) -> _Column:
        least, past = self.bounds
        if set(map(type, column)) - {int} or (column and not least <= min(column) <= max(column) < past):
            raise _wrong(path, _INTEGERS.get(self.bounds, f"not an integer from {least} to {past - 1}"))
        return column


@dataclass(frozen=True, eq=False)
class TextShape(Shape):
    """A text; the bytes in it that are not UTF-8 are written as escapes."""

    has_equal_texts = True
    pattern: str | None = None
    is_never_empty: bool = False

    def write(self, column: _Column) -> _Column:
        return column if all(map(str.isascii, column)) else list(map(well_formed, column))

    def texts(self, column: _Column) -> Iterable[str]:
        for at in range(0, len(column), _TEXTS_AT_ONCE):
            yield from _text_literals(column[at : at + _TEXTS_AT_ONCE])

    def read(self, column: _Column, path: str) -> _Column:
        if set(map(type, column)) - {str}:
            raise _wrong(path, "not a text")
        if self.pattern is not None and not all(map(re.compile(self.pattern).fullmatch, column)):
            raise _wrong(path, f"not a text of the form {self.pattern}")
        return column


def _text_literals(texts: Sequence[str | None]) -> list[str]:
    """Return texts as JSON has them: where none has a character to escape, each takes a quarter of the time."""
    whole = "".join(filter(None, texts))
    if whole.isascii() and not whole.encode().translate(None, _NEVER_ESCAPED):
        return ["null" if text is None else f'"{text}"' for text in texts]
    return ["null" if text is None else encode_basestring_ascii(well_formed(text)) for text in texts]


@dataclass(frozen=True, eq=False)
class Words(Shape):
    """One of some texts, each of which stands for a value: a member of an enumeration, or itself."""

    has_equal_texts = True
    values: Mapping[str, Any]

    def write(self, column: _Column) -> _Column:
        return list(map(str.__str__, column))

    def texts(self, column: _Column) -> Iterable[str]:
        return map({value: f'"{text}"' for text, value in self.values.items()}.__getitem__, column)

    def read(self, column: _Column, path: str) -> _Column:
        if set(map(type, column)) - {str}:
            raise _wrong(path, "not a text")
        try:
            return list(map(self.values.__getitem__, column))
        except KeyError as error:
            raise _wrong(path, f"{error.args[0][:_SHOWN_CHARS]!r}, which this footprint does not know") from None


class AnyCell(Shape):
    """A text, a number, true, false, or null."""

    def write(self, column: _Column) -> _Column:
        return [well_formed(text) if isinstance(text, str) else text for text in column]

    def read(self, column: _Column, path: str) -> _Column:
        if set(map(type, column)) - _CELLS:
            raise _wrong(path, "neither a text nor a number")
        return column


@dataclass(frozen=True, eq=False)
class Optional(Shape):
    """A value, or null."""

    inner: Shape

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_plain", self.inner.is_plain)
        object.__setattr__(self, "has_equal_texts", self.inner.has_equal_texts)

    def write(self, column: _Column) -> _Column:
        return column if self.is_plain else self._of_known(column, self.inner.write)

    def texts(self, column: _Column) -> Iterable[str]:
        if None not in column or isinstance(self.inner, TextShape):
            return self.inner.texts(column)
        shown = iter(self.inner.texts([value for value in column if value is not None]))
        return ["null" if value is None else next(shown) for value in column]

    def read(self, column: _Column, path: str) -> _Column:
        return self._of_known(column, lambda values: self.inner.read(values, path))

    def _of_known(self, column: _Column, convert: Callable[[_Column], _Column]) -> _Column:
        if None not in column:
            return convert(column)
        values = [value for value in column if value is not None]
        converted = convert(values)
        if converted is values:
            return column
        read_values = iter(converted)
        return [None if value is None else next(read_values) for value in column]


@dataclass(frozen=True, eq=False)
class ListOf(Shape):
    """A list of values of one shape."""

    inner: Shape
    is_never_empty: bool

    def write(self, column: _Column) -> _Column:
        return _regrouped(self.inner.write(list(chain.from_iterable(column))), column, list)

    def texts(self, column: _Column) -> Iterable[str]:
        return super().texts(column) if any(column) else repeat("[]", len(column))

    def read(self, column: _Column, path: str) -> _Column:
        if column and set(map(type, column)) == {tuple}:
            return column  # JSON has no tuples: `decode_rows` has made them.
        if set(map(type, column)) - {list}:
            raise _wrong(path, "not a list")
        if self.is_never_empty and not all(column):
            raise _wrong(path, "empty")
        if len(column) == 1:
            return [tuple(_read_list(self.inner, column[0], path))]
        return _regrouped(self.inner.read(list(chain.from_iterable(column)), path), column, tuple)


def _regrouped(flat: _Column, groups: _Column, make: Callable[[Any], Any]) -> _Column:
    """Cut a column into groups that are as long as some others."""
    parts, past = [], 0
    for count in map(len, groups):
        first, past = past, past + count
        parts.append(make(flat[first:past]))
    return parts


@dataclass(frozen=True, eq=False)
class MapOf(Shape):
    """An object whose member names are no part of the type."""

    keys: Shape
    inner: Shape

    def write(self, column: _Column) -> _Column:
        # Thousands of objects have the same few names, in the same order.
        names = list(set(chain.from_iterable(set(map(tuple, column)))))
        written = self.keys.write(names)
        if self.inner.is_plain and written is names:
            return column if set(map(type, column)) <= {dict} else list(map(dict, column))
        key_by_name = dict(zip(names, written, strict=True))
        cells = self.inner.write([cell for mapping in column for cell in mapping.values()])
        keys = [key_by_name[name] for mapping in column for name in mapping]
        return _regrouped(list(zip(keys, cells, strict=True)), column, dict)

    def read(self, column: _Column, path: str) -> _Column:
        if set(map(type, column)) - {dict}:
            raise _wrong(path, "not an object")
        names = self.keys.read(list(chain.from_iterable(column)), path)
        cells = self.inner.read([cell for mapping in column for cell in mapping.values()], path)
        return _regrouped(list(zip(names, cells, strict=True)), column, dict)


class Member(NamedTuple):
    """A member of a JSON object.

    Attributes:
        key: Its name in JSON.
        attribute: The attribute or property whose value it has.
        field: The field that gets the value when it is read; None for a computed member, which is not read.
        shape: The shape of the value.
        default: The value where a saved file lacks the member; `_REQUIRED` where none may lack it.
        is_later: Earlier versions did not write it.
        may_be_absent: It is left out where its value is ABSENT.
    """

    key: str
    attribute: str
    field: str | None
    shape: Shape
    default: Any
    is_later: bool
    may_be_absent: bool


@dataclass(frozen=True, eq=False)
class Record(Shape):
    """An object with the members of a NamedTuple or dataclass."""

    type: type

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """The members; an answer that has no value of a type asks for none of its annotations."""
        return _members(self.type)

    @cached_property
    def _read(self) -> dict[str, Member]:
        return {member.field: member for member in self.members if member.field is not None}

    @cached_property
    def _order(self) -> list[int]:
        """The places of the fields of a NamedTuple among the members that are read."""
        names = getattr(self.type, "_fields", ())
        places = {name: place for place, name in enumerate(self._read)}
        return [places[name] for name in names] if places.keys() == set(names) else []

    def write(self, column: _Column) -> _Column:
        if not column:
            return []
        cells = self.cells(column)
        # Without a step in Python for each row.
        rows = list(map(dict, map(zip, repeat(cells), zip(*cells.values(), strict=True))))
        if self.has_gaps(cells):
            return [{key: cell for key, cell in row.items() if cell is not Absent.ABSENT} for row in rows]
        return rows

    def cells(self, column: _Column) -> dict[str, _Column]:
        """Return the values of each member that any of the objects has; some may be ABSENT."""
        cells: dict[str, _Column] = {}
        for member, values in zip(self.members, self._columns(column), strict=True):
            present = [value for value in values if value is not Absent.ABSENT] if member.may_be_absent else values
            if present:
                written = member.shape.write(present)
                if len(present) < len(column):
                    written_texts = iter(written)
                    written = [value if value is Absent.ABSENT else next(written_texts) for value in values]
                cells[member.key] = written
        return cells

    def _columns(self, column: _Column) -> Iterable[_Column]:
        """Return the values of each member, of all objects; some may be ABSENT."""
        names = tuple(member.attribute for member in self.members)
        if column and names == getattr(self.type, "_fields", ()):
            return zip(*column, strict=True)
        return [list(map(attrgetter(name), column)) for name in names]

    def has_gaps(self, cells: Mapping[str, _Column]) -> bool:
        """Return whether a member is absent from some of the objects only."""
        return any(member.may_be_absent and Absent.ABSENT in cells.get(member.key, ()) for member in self.members)

    def texts(self, column: _Column) -> Iterable[str]:
        present: list[Member] = []
        cells: list[_Column] = []
        for member, values in zip(self.members, self._columns(column), strict=True):
            absent_count = values.count(Absent.ABSENT) if member.may_be_absent else 0
            if 0 < absent_count < len(values):
                return super().texts(column)
            if not absent_count:
                present.append(member)
                cells.append(values)
        return self.texts_of_columns(present, cells) if present else super().texts(column)

    @staticmethod
    def texts_of_columns(present: Sequence[Member], cells: Sequence[_Column]) -> Iterable[str]:
        """Return the objects that have some members, as JSON texts, given the values of each."""
        # To join the parts of an object takes a third of the time of a template.
        before, parts = "{", list[Iterable[str]]()
        # Rows repeat most of their members: the text of neighbouring ones is made once for each combination of values.
        for is_repeated, some in groupby(zip(present, cells, strict=True), key=_is_repeated):
            members, columns = zip(*some, strict=True)
            names = [f"{encode_basestring_ascii(key)}: " for key, *_ in members]
            if is_repeated:
                template = ", ".join([name.replace("%", "%%") + "%s" for name in names])
                distinct = dict.fromkeys(zip(*columns, strict=True))
                made = map(template.__mod__, zip(*_texts(members, zip(*distinct, strict=True)), strict=True))
                texts = map(dict(zip(distinct, made, strict=True)).__getitem__, zip(*columns, strict=True))
                parts += [repeat(before), texts]
            else:
                leads = [before + names[0], *[f", {name}" for name in names[1:]]]
                parts += chain.from_iterable(zip(map(repeat, leads), _texts(members, columns), strict=True))
            before = ", "
        return map("".join, zip(*parts, repeat("}"), strict=False))

    def read(self, column: _Column, path: str) -> _Column:
        if set(map(type, column)) - {dict}:
            raise _wrong(path, "not an object")
        if not column:
            return []
        inside = f"{path}." if path else ""
        cells = [self._cells(member, column, f"{inside}{member.key}") for member in self._read.values()]
        if self._order:
            return records(self.type, zip(*map(cells.__getitem__, self._order), strict=True))
        return [self.type(**dict(zip(self._read, row, strict=True))) for row in zip(*cells, strict=True)]

    def _cells(self, member: Member, column: _Column, path: str) -> _Column:
        key, default = member.key, member.default
        try:
            return member.shape.read(list(map(itemgetter(key), column)), path)
        except KeyError:
            if default is _REQUIRED:
                raise _wrong(path, "missing") from None
        present = iter(member.shape.read([row[key] for row in column if key in row], path))
        return [next(present) if key in row else default for row in column]


def _is_repeated(cell: tuple[Member, _Column]) -> bool:
    """Return whether a few texts are those of all values of a member, as far as a part of these shows it."""
    member, values = cell
    some = values[:: max(len(values) // _SAMPLED_COUNT, 1)]
    return member.shape.has_equal_texts and 0 < len(set(some)) * _REPEATED_COUNT <= len(some)


def _texts(members: Iterable[Member], cells: Iterable[_Column]) -> list[Iterable[str]]:
    return [member.shape.texts(values) for member, values in zip(members, cells, strict=True)]


_SHAPES: Final[dict[Any, Shape]] = {}


def texts_of_columns(cls: type, columns: Sequence[_Column]) -> Iterable[str]:
    """Return the values of a NamedTuple as JSON texts, given the values of each of its fields, none of them ABSENT."""
    shape = cast("Record", shape_of(cls))
    return shape.texts_of_columns(shape.members, columns)


def shape_of(annotation: Any) -> Shape:  # noqa: ANN401 # any annotation
    """Return the shape of a type, as its annotation says it.

    Raises:
        TypeError: JSON has nothing for such a type.
    """
    if annotation not in _SHAPES:
        _SHAPES[annotation] = _shape(annotation, ())
    return _SHAPES[annotation]


def _shape(annotation: Any, marks: Sequence[object]) -> Shape:  # noqa: ANN401 # any annotation
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _shape(inner[0], (*inner[1:], *marks))
    if isinstance(annotation, type) and origin is None:
        return _shape_of_class(annotation, marks)
    if origin is Literal:
        return Words({word: word for word in inner})
    if origin in {tuple, Sequence}:
        return ListOf(shape_of(inner[0]), NOT_EMPTY in marks)
    if origin in {dict, Mapping}:
        return MapOf(*map(shape_of, inner))
    if set(inner) == _CELLS:
        return AnyCell()
    others = [hint for hint in inner if hint not in {type(None), Absent}]
    if len(others) != 1:
        raise TypeError(f"JSON has nothing for {annotation}")
    inner_shape = _shape(others[0], marks)
    return Optional(inner_shape) if type(None) in inner else inner_shape


def _shape_of_class(cls: type, marks: Sequence[object]) -> Shape:
    if field_names(cls):
        return Record(cls)
    if issubclass(cls, Enum):
        return Words({hint.value: hint for hint in cls})
    if cls is int:
        return Integer(next((mark for mark in marks if isinstance(mark, Bounds)), Bounds()))
    if cls is str:
        return TextShape(next((mark.text for mark in marks if isinstance(mark, Pattern)), None), NOT_EMPTY in marks)
    if cls is bool:
        return Flag()
    if cls is float:
        return Number()
    raise TypeError(f"JSON has nothing for {cls}")


def _members(cls: Any) -> tuple[Member, ...]:  # noqa: ANN401 # a NamedTuple or dataclass
    hints = get_type_hints(cls, include_extras=True)
    attributes = field_names(cls)
    chosen: Mapping[str, str] = getattr(cls, "__json_members__", None) or dict(zip(attributes, attributes, strict=True))
    members = []
    for key, attribute in chosen.items():
        if attribute not in attributes:
            computed = getattr(cls, attribute)
            hints[attribute] = get_type_hints(getattr(computed, "fget", computed), include_extras=True)["return"]
        hint = hints[attribute]
        later = next((mark for mark in get_args(hint) if isinstance(mark, Later)), None)
        may_be_absent = Absent in get_args(hint)
        members.append(
            Member(
                key=key,
                attribute=attribute,
                field=next((name for name in (attribute, key) if name in attributes), None),
                shape=shape_of(hint),
                default=Absent.ABSENT if may_be_absent else later.default if later else _REQUIRED,
                is_later=later is not None,
                may_be_absent=may_be_absent,
            )
        )
    return tuple(members)
