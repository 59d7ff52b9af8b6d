r"""Saved audits, read back: what `audit --json` wrote, without the process or the binaries it was about.

Names in them were made printable when they were written (a byte that is no UTF-8 stands as `\xNN`), and stay so.
"""

import json
import re
from collections.abc import Callable, Container, Iterable, MutableMapping, Sequence
from collections.abc import Mapping as Dict
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from footprint.attribution.projection import project
from footprint.errors import InputError, Note, UnsupportedError, UsageError
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence
from footprint.model.finding import Confidence, Finding, SourceLocation
from footprint.model.heap_account import HeapAccount, Share
from footprint.model.object_cost import Need, ObjectCost
from footprint.model.projection import Basis, Model, Point, Projection, Question, Term
from footprint.model.row import Attribution, MemoryKind, Row
from footprint.model.spread import Spread, Spreads
from footprint.model.totals import FIGURE_NAMES, OfWhich, Total, Totals

if TYPE_CHECKING:
    from footprint.model.page_map import PageMap, PagePart, PageState

__all__ = ("SavedAudit", "looks_like_audit", "read_audit", "reprojected")

_SCHEMA: Final = "footprint/1"
# The audit of a process with a million variables takes 400 MB.
_MOST_BYTES: Final = 512 << 20
_MOST: Final = 1 << 63
_MOST_ADDR: Final = 1 << 64
# Of a word that means nothing here, which may be of any length.
_SHOWN_CHARS: Final = 80
_PERMISSIONS: Final = re.compile(r"[r-][w-][x-][ps]")
_T = TypeVar("_T")
_Json = Dict[str, Any]


class SavedAudit(NamedTuple):
    """An audit as it was saved.

    Attributes:
        audit: The audit; of a `run` that of the median start.
        spreads: How far the starts of a `run` differ, where it was one.
        start_count: How many starts there were; 1 for what was no `run`.
        tool_version: The footprint that wrote it.
    """

    audit: Audit
    spreads: Spreads
    start_count: int
    tool_version: str


def looks_like_audit(head: bytes | memoryview) -> bool:
    """Tell whether a file claims to be JSON that footprint has written, by its first kilobyte."""
    start = bytes(head[:1024]).lstrip()
    return start.startswith(b"{") and b'"schema"' in start and b'"footprint/' in start


def read_audit(
    data: bytes | memoryview,
    file: str,
    known_rows: MutableMapping[str, Row] | None = None,
    *,
    has_page_maps: bool = False,
) -> SavedAudit:
    """Read a saved audit of one process or program.

    Args:
        data: The whole file.
        file: What to call it.
        known_rows: The rows of audits that were read before, by their text, to which those of this one are added: most
            of the next one are the same, and need not be read again.
        has_page_maps: Whether the pages of its objects are read, where it was saved with them.

    Raises:
        InputError: Where it is cut or damaged, is the answer of another verb, or its rows do not add up.
        UnsupportedError: Where a newer footprint wrote it, or it is about several processes.
    """
    if len(data) > _MOST_BYTES:
        raise InputError(file, "longer than any audit that footprint reads", _MOST_BYTES)
    apart = _parsed_apart(data, known_rows)
    whole = _parsed(data, file) if apart is None else apart.rest
    at = _Reader(file)
    _check_kind(whole, file)
    with_run = whole.get("run")
    tool = at.object(whole, "tool")
    target = at.object(whole, "target")
    cells = map(_cells, at.rows(whole, "ledger")) if apart is None else apart.cells
    rows = tuple(_rows(cells, file))
    if apart is not None and known_rows is not None:
        known_rows.update(zip(apart.new_lines, rows, strict=True))
        rows = tuple(map(known_rows.__getitem__, apart.lines))
    try:
        audit = Audit(
            target=at.text(target, "name"),
            pid=at.optional(at.number, target, "pid"),
            command=at.text(target, "command"),
            source=at.text(target, "source"),
            is_live=at.truth(target, "is_live"),
            mapping_count=at.number(target, "mapping_count"),
            page_bytes=at.number(target, "page_bytes"),
            host=_host(at.object(whole, "host"), at),
            totals=_totals(at.object(whole, "totals"), at),
            ledger=rows,
            projection=_projection(at.object(whole, "projection"), at),
            notes=tuple(
                Note(at.text(one, "slug"), at.text(one, "subject"), at.text(one, "detail"))
                for one in at.rows(whole, "notes")
            ),
            findings=tuple(_finding(one, at) for one in at.rows(whole, "findings")),
            debug_files={at.text(one, "owner"): at.text(one, "file") for one in at.rows(whole, "debug_files", ())},
            objects=tuple(_object(one, at) for one in at.rows(whole, "objects", ())),
            page_maps=tuple(_page_maps(whole, at)) if has_page_maps else (),
            saved_in=file,
            heap=at.optional(partial(_heap, at), whole, "heap_account"),
        )
    except ValueError as error:
        raise InputError(file, f"it was changed since it was written: {error}") from error
    figures = at.object(with_run, "figures") if isinstance(with_run, dict) else {}
    return SavedAudit(
        audit,
        Spreads(
            _spread(figures.get("private_bytes"), at),
            _spread(figures.get("per_process_bytes"), at),
            _owner_spreads(with_run, at),
        ),
        at.number(with_run, "starts") if isinstance(with_run, dict) else 1,
        at.text(tool, "version"),
    )


def reprojected(audit: Audit, question: Question) -> Audit:
    """Give a saved audit with another projection: the terms of its own, as many times as is asked.

    Raises:
        UsageError: Where another model is asked for: its terms were not saved.
    """
    own = audit.projection
    if question.model is not own.model:
        raise UsageError(f"the saved audit has the terms of the model {own.model}, not of {question.model}")
    moments = [(point.name, point.each_bytes, point.evidence) for point in own.points]
    return replace(audit, projection=project(own.terms, own.basis, question, moments))


# How the ledger stands in what footprint writes: a row a line. No text of JSON has a line break in it.
_LEDGER: Final = re.compile(rb'\n"ledger": (?=\[\n  \{)')
_LEDGER_END: Final = re.compile(rb"\n\]")
_BEFORE_ROWS, _BETWEEN_ROWS, _AFTER_ROWS = "[\n  {", ",\n  {", "\n]"
# No number of JSON, but Python reads it; footprint writes none.
_IN_PLACE: Final = b"NaN"
_cells: Final = itemgetter(*Row._fields)
_decode: Final = json.JSONDecoder().raw_decode


class _Apart(NamedTuple):
    """What is saved without the ledger; the lines of that, which of them are not known, and the cells of these.

    Where none are known, all cells, and no lines.
    """

    rest: _Json
    lines: Sequence[str]
    new_lines: Sequence[str]
    cells: Sequence[tuple[Any, ...]]


def _parsed_apart(data: bytes | memoryview, known: Container[str] | None) -> _Apart | None:
    """Parse the ledger apart, without the rows that are known; None where it is laid out otherwise, or is damaged.

    Two audits of 25,000 rows that are compared differ in few: the second takes a third of the time.
    """
    start = _LEDGER.search(data)
    end = _LEDGER_END.search(data, start.end()) if start else None
    if start is None or end is None:
        return None
    ledger = slice(start.end(), end.end())
    placed: list[object] = []

    def place(_constant: str) -> object:
        placed.append(object())
        return placed[-1]

    try:
        rest = json.loads(b"".join((data[: ledger.start], _IN_PLACE, data[ledger.stop :])), parse_constant=place)
        # It was the member of the whole that counts, and neither one of something in there nor one of two.
        if not isinstance(rest, dict) or len(placed) != 1 or rest.get("ledger") is not placed[0]:
            return None
        text = str(data[ledger], "utf-8", "surrogatepass")
        lines = [] if known is None else text.removeprefix(_BEFORE_ROWS).removesuffix(_AFTER_ROWS).split(_BETWEEN_ROWS)
        new = [line for line in lines if line not in known] if known else lines
        if len(new) < len(lines):
            text = _BEFORE_ROWS + _BETWEEN_ROWS.join(new) + _AFTER_ROWS if new else "[]"
        # A row becomes its cells as soon as it is read: all of them as objects take three times the memory.
        cells = json.loads(text, object_hook=_cells)
        is_apart = all(isinstance(one, tuple) for one in cells)
        if known is not None:
            # Half a row beside a line of two would be taken for each other: only a list may hold what parts rows.
            is_apart = is_apart and len(cells) == len(new) and all(map(_is_row, (one for one in new if "[" in one)))
    except (ValueError, RecursionError, KeyError):
        return None
    return _Apart(rest, lines, new, cells) if is_apart else None


def _is_row(line: str) -> bool:
    """Tell whether a line without its first brace is a row and no more."""
    return _decode("{" + line)[1] == len(line) + 1


def _parsed(data: bytes | memoryview, file: str) -> _Json:
    try:
        whole = json.loads(bytes(data))
    except json.JSONDecodeError as error:
        raise InputError(file, f"it is no whole JSON: {error.msg}", error.pos) from error
    except (ValueError, RecursionError) as error:
        # Neither its text nor its numbers can be read: 4,300 digits are too many for Python.
        raise InputError(file, "it is no JSON that footprint writes") from error
    if not isinstance(whole, dict):
        raise InputError(file, "it is no JSON that footprint writes")
    return whole


def _check_kind(whole: _Json, file: str) -> None:
    """Refuse what is no audit of one process, and say what it is."""
    schema = whole.get("schema")
    if schema != _SCHEMA:
        name, _, number = str(schema).partition("/")
        if name == "footprint" and number.isdigit() and len(number) < 10:
            raise UnsupportedError(file, f"it has the schema {schema}; this footprint reads {_SCHEMA}")
        raise InputError(file, "it is no JSON that footprint writes")
    if "group" in whole:
        raise UnsupportedError(file, "it is about several processes: save an audit of one")
    if "ledger" not in whole or "totals" not in whole:
        raise InputError(file, "it is the answer of another verb: `footprint audit -o FILE --json` saves an audit")


class _Reader:
    """Gives members of JSON objects as what they must be, or an error that names them."""

    def __init__(self, file: str) -> None:
        self._file = file

    def wrong(self, key: str, what: str) -> InputError:
        return InputError(self._file, f"it is damaged: `{key}` is {what}")

    def _get(self, where: _Json, key: str) -> object:
        if key not in where:
            raise self.wrong(key, "missing")
        return where[key]

    def object(self, where: _Json, key: str) -> _Json:
        found = self._get(where, key)
        if not isinstance(found, dict):
            raise self.wrong(key, "no object")
        return found

    def rows(self, where: _Json, key: str, default: Sequence[_Json] | None = None) -> Sequence[_Json]:
        found = where.get(key, default) if default is not None else self._get(where, key)
        if not isinstance(found, list | tuple) or not all(isinstance(one, dict) for one in found):
            raise self.wrong(key, "no table")
        return found

    def text(self, where: _Json, key: str) -> str:
        found = self._get(where, key)
        if not isinstance(found, str):
            raise self.wrong(key, "no text")
        return found

    def texts(self, where: _Json, key: str) -> tuple[str, ...]:
        found = self._get(where, key)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self.wrong(key, "no list of texts")
        return tuple(found)

    def words(self, known: Dict[str, _T], where: _Json, key: str) -> Sequence[_T]:
        found = self.texts(where, key)
        try:
            return [known[one] for one in found]
        except KeyError as error:
            raise self.wrong(key, _unknown(error.args[0])) from None

    def numbers(self, where: _Json, key: str, least: int = 0) -> Sequence[int]:
        found = self._get(where, key)
        if not isinstance(found, list) or not all(type(one) is int and least <= one < _MOST_ADDR for one in found):
            raise self.wrong(key, "no list of sizes, counts or addresses")
        return found

    def number(self, where: _Json, key: str, past: int = _MOST) -> int:
        found = self._get(where, key)
        if type(found) is not int or not 0 <= found < past:
            raise self.wrong(key, "no size or count")
        return found

    def difference(self, where: _Json, key: str) -> int:
        found = self._get(where, key)
        if type(found) is not int or not -_MOST < found < _MOST:
            raise self.wrong(key, "no difference of sizes")
        return found

    def truth(self, where: _Json, key: str) -> bool:
        found = self._get(where, key)
        if not isinstance(found, bool):
            raise self.wrong(key, "neither true nor false")
        return found

    def word(self, words: type[_T], where: _Json, key: str) -> _T:
        """Give the member of an enumeration that a text names; a newer footprint may know others."""
        found = self.text(where, key)
        try:
            return words(found)  # type: ignore[call-arg]
        except ValueError:
            raise self.wrong(key, _unknown(found)) from None

    def optional(self, read: Callable[[_Json, str], _T], where: _Json, key: str) -> _T | None:
        return None if where.get(key) is None else read(where, key)


def _unknown(word: str) -> str:
    return f"{word[:_SHOWN_CHARS]!r}, which this footprint does not know"


_TEXTS: Final = ("owner", "kind", "section", "symbol", "name", "evidence", "attribution")
_SIZES: Final = ("bytes", "mapped_bytes", "shared_bytes", "pages", "sole_pages", "relocated_bytes")
_OPTIONAL: Final = frozenset({"section", "symbol", "name", "bytes", "shared_bytes", "pages", "relocated_bytes"})


def _rows(cells: Iterable[tuple[Any, ...]], file: str) -> Iterable[Row]:
    """Read the ledger column by column: a row at a time takes three times as long."""
    try:
        each = list(cells)
    except KeyError as error:
        raise InputError(file, f"it is damaged: a row of `ledger` has no `{error.args[0]}`") from None
    if not each:
        return ()
    columns: dict[str, Sequence[Any]] = dict(zip(Row._fields, zip(*each, strict=True), strict=True))
    for names, kind in ((_TEXTS, str), (_SIZES, int), (("is_writable",), bool)):
        for name in names:
            found = set(map(type, columns[name])) - ({type(None)} if name in _OPTIONAL else set())
            if found - {kind}:
                raise InputError(file, f"it is damaged: `{name}` of a row of `ledger` is no {kind.__name__}")
    for name in _SIZES:
        known = set(columns[name]) - {None}
        if known and not (min(known) >= 0 and max(known) < _MOST):
            raise InputError(file, f"it is damaged: `{name}` of a row of `ledger` is no size or count")
    for name, words in (("kind", MemoryKind), ("evidence", Evidence), ("attribution", Attribution)):
        known_words = {word.value: word for word in words}
        try:
            columns[name] = list(map(known_words.__getitem__, columns[name]))
        except KeyError as error:
            raise InputError(file, f"`{name}` of a row of `ledger` is {_unknown(error.args[0])}") from None
    # Makes a named tuple in half the time that its own constructor takes.
    return map(partial(tuple.__new__, Row), zip(*columns.values(), strict=True))


def _host(told: _Json, at: _Reader) -> dict[str, str]:
    """Read what it was made on: a text and a prediction may not say, and what says one of the two says both."""
    for key in ("kernel", "machine") if told else ():
        at.text(told, key)
    return {key: at.text(told, key) for key in told}


def _totals(told: _Json, at: _Reader) -> Totals:
    evidence = at.object(told, "evidence")

    def total(name: str) -> Total:
        size_bytes = at.optional(at.number, told, name)
        if size_bytes is None:
            return Total(None, Evidence.PREDICTED)
        return Total(size_bytes, at.word(Evidence, evidence, name))

    of_which = at.object(told, "of_which")
    return Totals(
        **{field: total(name) for field, name in FIGURE_NAMES.items()},
        of_which=OfWhich._make(at.number(of_which, name) for name in OfWhich._fields),
    )


def _projection(told: _Json, at: _Reader) -> Projection:
    return Projection(
        count=at.number(told, "count"),
        per_process_bytes=at.number(told, "per_process_bytes"),
        shared_once_bytes=at.optional(at.number, told, "shared_once_bytes"),
        total_bytes=at.number(told, "total_bytes"),
        basis=at.word(Basis, told, "basis"),
        evidence=at.word(Evidence, told, "evidence"),
        model=at.word(Model, told, "model"),
        terms=tuple(
            Term(
                at.text(one, "name"),
                at.number(one, "size_bytes"),
                at.truth(one, "is_once"),
                at.word(Evidence, one, "evidence"),
            )
            for one in at.rows(told, "terms")
        ),
        points=tuple(
            Point(
                at.text(one, "name"),
                at.number(one, "each_bytes"),
                at.number(one, "total_bytes"),
                at.word(Evidence, one, "evidence"),
            )
            for one in at.rows(told, "points")
        ),
        memory_bytes=at.optional(at.number, told, "memory_bytes"),
    )


def _finding(told: _Json, at: _Reader) -> Finding:
    place = at.optional(at.object, told, "location")
    return Finding(
        rule=at.text(told, "rule"),
        kind=at.text(told, "kind"),
        subject=at.text(told, "subject"),
        message=at.text(told, "message"),
        saving_bytes=at.number(told, "saving_bytes"),
        confidence=at.word(Confidence, told, "confidence"),
        reasons=at.texts(told, "reasons"),
        remedy=at.text(told, "remedy"),
        leaves=at.texts(told, "leaves"),
        location=None
        if place is None
        else SourceLocation(at.text(place, "file"), at.optional(at.number, place, "line")),
        is_per_thread=at.optional(at.text, told, "saving_per") == "thread",
        private_bytes=at.optional(at.number, told, "private_bytes"),
        object_path=at.optional(at.text, told, "object") or "",
    )


def _object(told: _Json, at: _Reader) -> ObjectCost:
    return ObjectCost(
        at.text(told, "path"),
        at.text(told, "name"),
        at.number(told, "own_bytes"),
        at.number(told, "retained_bytes"),
        at.optional(at.text, told, "held_by"),
        at.number(told, "tls_bytes"),
        at.optional(partial(_needs, at), told, "needs"),
    )


def _needs(at: _Reader, told: _Json, key: str) -> tuple[Need, ...]:
    return tuple(Need(at.text(one, "path"), at.optional(at.number, one, "symbol_count")) for one in at.rows(told, key))


def _heap(at: _Reader, whole: _Json, key: str) -> "HeapAccount":
    told = at.object(whole, key)
    return HeapAccount(
        file=at.text(told, "file"),
        format=at.text(told, "format"),
        command=at.optional(at.text, told, "command"),
        snapshot=at.number(told, "snapshot"),
        snapshot_count=at.number(told, "snapshot_count"),
        is_peak=at.truth(told, "is_peak"),
        shares=tuple(
            Share(
                at.text(one, "owner"),
                at.optional(at.text, one, "symbol") or at.text(one, "name"),
                at.number(one, "bytes"),
                at.optional(at.number, one, "block_count"),
            )
            for one in at.rows(told, "shares")
        ),
        live_bytes=at.number(told, "live_bytes"),
        extra_bytes=at.optional(at.number, told, "extra_bytes"),
        peak_bytes=at.number(told, "peak_bytes"),
        held_bytes=at.optional(at.number, told, "held_bytes"),
        apart_bytes=at.number(told, "apart_bytes"),
        free_bytes=at.number(told, "free_bytes"),
        difference_bytes=at.difference(told, "difference_bytes"),
        evidence=at.word(Evidence, told, "evidence"),
    )


def _page_maps(whole: _Json, at: _Reader) -> Iterable["PageMap"]:
    """Read page maps; together they claim no more than footprint writes, since each page becomes a cell."""
    from footprint.attribution.page_maps import MOST_PAGES, MOST_SECTIONS  # noqa: PLC0415 # pages
    from footprint.model.page_map import PageMap, PageState, Place  # noqa: PLC0415 # pages

    told = at.rows(whole, "page_maps", ())
    if told and at.number(at.object(whole, "target"), "page_bytes") == 0:
        raise at.wrong("page_bytes", "no size of a page")
    states = {state.word: state for state in PageState}
    page_count = section_count = 0
    for one in told:
        parts = tuple([_page_part(part, states, at) for part in at.rows(one, "parts")])
        sections = at.object(one, "sections")
        columns = (at.numbers(sections, "addrs"), at.numbers(sections, "size_bytes"), at.texts(sections, "names"))
        if len(set(map(len, columns))) > 1:
            raise at.wrong("sections", "of columns that differ in length")
        page_count += sum([count for part in parts for _, count in part.runs])
        section_count += len(columns[0])
        if page_count > MOST_PAGES or section_count > MOST_SECTIONS:
            raise at.wrong("page_maps", f"of more than {MOST_PAGES:,} pages, or {MOST_SECTIONS:,} sections")
        yield PageMap(
            owner=at.text(one, "owner"),
            parts=parts,
            sections=tuple([Place(*place, None) for place in zip(*columns, strict=True)]),
            variables=None,
            omitted_pages=at.number(one, "omitted_pages"),
            omitted_sections=at.number(one, "omitted_sections"),
        )


def _page_part(told: _Json, known: Dict[str, "PageState"], at: _Reader) -> "PagePart":
    from footprint.model.page_map import PagePart  # noqa: PLC0415 # pages

    permissions = at.text(told, "permissions")
    if not _PERMISSIONS.fullmatch(permissions):
        raise at.wrong("permissions", "none of a mapping")
    states, counts = at.words(known, told, "states"), at.numbers(told, "page_counts", least=1)
    if len(states) != len(counts) or not counts:
        raise at.wrong("page_counts", "not as many as `states`")
    start_addr = at.number(told, "start_addr", _MOST_ADDR)
    return PagePart(start_addr, at.word(MemoryKind, told, "kind"), permissions, tuple(zip(states, counts, strict=True)))


def _owner_spreads(told: object, at: _Reader) -> dict[str, Spread]:
    if not isinstance(told, dict):
        return {}
    spreads = ((at.text(one, "owner"), _spread(one, at)) for one in at.rows(told, "owners", ()))
    return {owner: spread for owner, spread in spreads if spread is not None}


def _spread(told: object, at: _Reader) -> Spread | None:
    if not isinstance(told, dict):
        return None
    return Spread(at.number(told, "min"), at.number(told, "median"), at.number(told, "max"))
