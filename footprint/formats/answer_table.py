"""The table of an answer: each column is declared once, with what it means and how it is got.

A type with `answer_table` is a row of the JSON; the schema and docs/json.md come from its annotations and meanings. The
table of the text, the columns of the HTML report and the metrics come from the same columns.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar, cast

from footprint.formats.document import Table, cut_at, rest_rows
from footprint.formats.metrics import MetricFamily, MetricSample
from footprint.members import records
from footprint.text.units import format_bytes

_Row = TypeVar("_Row")
_COLUMNS: Final = "__answer_columns__"
_OF_KEY: Final = attrgetter("")


def size_text(size_bytes: int) -> str:
    """Return a size as the text has it; a sign for 0."""
    return format_bytes(size_bytes) if size_bytes else "-"


class Column(NamedTuple):
    """A column of an answer.

    Attributes:
        meaning: What it is, as a sentence.
        of: Returns the value, of what the rows are made of.
        title: The heading in the text; None for a column that the text does not have.
        views: Where else it is shown: `total` of the text, `report`, `main` column of the report, `metric`.
        heading: The heading in the report; None for the title.
        shown: Returns the cell of the text, where it is not the value with its unit.
        key: The member of the JSON row; `_bytes` at its end is its unit.
    """

    meaning: str
    of: Callable[[Any], Any]
    title: str | None = None
    views: str = ""
    heading: str | None = None
    shown: Callable[[Any], str] | None = None
    key: str = ""

    def cell(self, source: object) -> str:
        """Return the cell of the text."""
        return self.text_of(self.of(source)) if self.shown is None else self.shown(source)

    def text_of(self, value: object) -> str:
        """Return a value with its unit, of a list how long it is; a sign for nothing and for what is not known."""
        if value is None:
            return "?"
        if isinstance(value, tuple):
            value = len(value)
        if isinstance(value, int) and self.key.endswith("_us"):
            return f"{value:,}" if value else "-"
        return size_text(value) if self.key.endswith("_bytes") and isinstance(value, int) else str(value or "-")


def column(meaning: str, of: Callable[[Any], Any] | str = "", **views: Any) -> Any:  # noqa: ANN401 # for any type
    """Declare a column; `views` are other attributes of `Column`.

    `of` may be a path of attributes, of which one may be None; without it the attribute has the name of the column.
    """
    return Column(meaning, (_path(of) if of else _OF_KEY) if isinstance(of, str) else of, **views)


def _path(names: str) -> Callable[[Any], Any]:
    first, *others = map(attrgetter, names.split("."))
    if not others:
        return first

    def of(source: object) -> Any:  # noqa: ANN401 # of any type
        value = first(source)
        for getter in others:
            value = None if value is None else getter(value)
        return value

    return of


def answer_table(cls: type[_Row]) -> type[_Row]:
    """Make a class whose attributes are columns a NamedTuple of their values."""
    declared: dict[str, Column] = {key: cls.__dict__[key] for key in cls.__annotations__}
    columns = [
        col._replace(key=key, of=attrgetter(key) if col.of is _OF_KEY else col.of) for key, col in declared.items()
    ]
    made: Any = NamedTuple(cls.__name__, list(cls.__annotations__.items()))  # type: ignore[misc] # not constant
    made.__module__ = cls.__module__
    made.__doc__ = f"{cls.__doc__}\n\nAttributes:\n" + "".join([f"    {col.key}: {col.meaning}\n" for col in columns])
    setattr(made, _COLUMNS, tuple(columns))
    return cast("type[_Row]", made)


def _columns(cls: type[Any]) -> tuple[Column, ...]:
    columns: tuple[Column, ...] = getattr(cls, _COLUMNS)
    return columns


def rows_of(cls: type[_Row], sources: Iterable[object]) -> tuple[_Row, ...]:
    """Return the rows of the JSON."""
    listed = tuple(sources)
    return tuple(records(cls, zip(*[map(column.of, listed) for column in _columns(cls)], strict=True)))


def row_of(cls: type[_Row], source: object) -> _Row:
    """Return a single row."""
    return rows_of(cls, [source])[0]


def titled(cls: type[_Row], sources: Sequence[object]) -> list[Column]:
    """Return the columns of the text: those with a title, and with a value in any row."""
    columns = [column for column in _columns(cls) if column.title is not None]
    return [column for column in columns if any(column.of(source) is not None for source in sources)]


def table(
    cls: type[_Row],
    sources: Sequence[Any],
    *,
    heading: str,
    label: Callable[[Any], str],
    top: int = 0,
    order: Callable[[Any], Any] | None = None,
    totals: dict[str, int] | None = None,
) -> Table:
    """Return the table of the text.

    Args:
        cls: The type of the rows.
        sources: What the rows are made of, in their order.
        heading: The heading of the last column, which names a row.
        label: Returns the name of a row.
        top: How many rows there are; 0 for all.
        order: Returns what the rows are sorted by; None for the order of the sources.
        totals: The totals of columns whose values do not add up to them.
    """
    columns = titled(cls, sources)
    shown, rest = cut_at(sources if order is None else sorted(sources, key=order), top)
    rows = tuple([(*[column.cell(source) for column in columns], label(source)) for source in shown])
    footer = rest_rows(len(rest), len(columns) + 1)
    if any("total" in column.views for column in columns):
        sums = {
            col.key: sum([col.of(source) or 0 for source in sources]) for col in columns if "total" in col.views
        } | (totals or {})
        footer += ((*[col.text_of(sums[col.key]) if col.key in sums else "" for col in columns], "[total]"),)
    return Table((*[column.title or "" for column in columns], heading), rows, frozenset(), footer)


def page_columns(**tables: type[Any]) -> dict[str, dict[str, str]]:
    """Return the columns of tables in the HTML report, by their members, as `app/src/sections.ts` has them."""
    headings = {}
    for member, cls in tables.items():
        columns = [column for column in _columns(cls) if "report" in column.views]
        columns.sort(key=lambda column: "main" not in column.views)
        headings[member] = "|".join([f"{col.key} {col.heading or str(col.title).capitalize()}" for col in columns])
    return {"columns": headings}


def row_metrics(
    cls: type[Any], sources: Sequence[object], name: str, labels: Callable[[Any], dict[str, str]]
) -> list[MetricFamily]:
    """Return the series of metrics, whose names begin with `name`; what is not known has no value."""
    families = []
    for col in _columns(cls):
        if "metric" in col.views:
            values = [(source, col.of(source)) for source in sources]
            samples = [MetricSample(labels(source), value) for source, value in values if value is not None]
            series = f"{name}_{col.key.removesuffix('_bytes')}".removesuffix("_size")
            families.append(MetricFamily(series, col.meaning, samples, "bytes" if col.key.endswith("_bytes") else ""))
    return families
