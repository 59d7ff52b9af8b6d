"""Variables that only one of two measured audits has touched: they are neither new nor gone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from footprint.attribution.symbol_ranges import NOT_PRIVATE
from footprint.model.row import OF_OBJECTS, Row
from footprint.release.matching import comparable_name

if TYPE_CHECKING:
    from footprint.model.audit import Audit


def evenly_touched(
    old: "Audit", new: "Audit", before: list[Row], now: list[Row], owner_names: Mapping[str, str]
) -> tuple[list[Row], list[Row]]:
    """Add to the rows that differ those of variables that only one side has touched.

    A ledger that was measured has no row for a variable without a private page: its bytes are in the row of what is not
    private. They are taken from there, where the file proves that the variable is there: it has the same build-id on
    both sides, or its section did not grow by as much.
    """
    if "prediction" in {old.source, new.source}:
        return before, now
    names_before = {name: owner for owner, name in owner_names.items()}
    old_builds = _build_ids(old)
    same_builds = {path for path, build_id in _build_ids(new) if (names_before.get(path, ""), build_id) in old_builds}
    before_places, now_places = _by_section(before, owner_names), _by_section(now, {})
    for place in before_places.keys() | now_places.keys():
        if place[0] not in names_before:
            continue
        sides = before_places.get(place, []), now_places.get(place, [])
        growth_bytes = None
        if place[0] not in same_builds:
            growth_bytes = sum(row.mapped_bytes for row in sides[1]) - sum(row.mapped_bytes for row in sides[0])
        before += _untouched_rows(before, *sides, names_before[place[0]], growth_bytes)
        now += _untouched_rows(now, *sides[::-1], place[0], None if growth_bytes is None else -growth_bytes)
    return before, now


def _build_ids(audit: "Audit") -> set[tuple[str, str]]:
    return {(linked.path, linked.build_id) for linked in audit.objects if linked.build_id}


def _by_section(rows: Iterable[Row], names: Mapping[str, str]) -> dict[tuple[str, str | None], list[Row]]:
    places: dict[tuple[str, str | None], list[Row]] = {}
    for row in rows:
        if row.kind in OF_OBJECTS and row.section is not None:
            places.setdefault((names.get(row.owner, row.owner), row.section), []).append(row)
    return places


def _untouched_rows(
    rows: list[Row], rows_before: Sequence[Row], others: Sequence[Row], owner: str, growth_bytes: int | None
) -> list[Row]:
    """Return the rows of variables of a section that only the other side has touched, and take them from the rest.

    `growth_bytes` is by how much the other side is larger; None where both are one build.
    """
    rest = next((row for row in rows_before if row.name == NOT_PRIVATE), None)
    if rest is None:
        return []
    name_of = _symbol_name if growth_bytes is None else _comparable
    rows_by_name = {name_of(row): row for row in rows_before if row.symbol is not None}
    left_bytes, untouched = rest.mapped_bytes, []
    for row in sorted(others, key=lambda row: (-row.mapped_bytes, row.symbol or "")):
        if row.symbol is None:
            continue
        there = rows_by_name.get(name_of(row))
        missing_bytes = row.mapped_bytes - (0 if there is None else there.mapped_bytes)
        if growth_bytes is not None and (there is not None or growth_bytes >= missing_bytes):
            # Of another build, a variable may have grown, and what is missing may be new.
            growth_bytes -= missing_bytes
        elif 0 < missing_bytes <= left_bytes:
            left_bytes -= missing_bytes
            if there is None:
                untouched.append(row._replace(owner=owner, bytes=0, pages=0, sole_pages=0, relocated_bytes=0))
            else:
                # Variables of one name are one row: some of them were touched.
                rows[rows.index(there)] = there._replace(mapped_bytes=row.mapped_bytes)
    rows[rows.index(rest)] = rest._replace(mapped_bytes=left_bytes)
    return untouched


def _symbol_name(row: Row) -> str:
    return row.symbol or ""


def _comparable(row: Row) -> str:
    return comparable_name(row.symbol or "")
