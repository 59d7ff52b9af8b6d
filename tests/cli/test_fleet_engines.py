"""The dataset in other engines: the queries of the documentation find what `footprint fleet` finds."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from footprint import fleet
from tests.fleets import DAY, Holding, Member, write_fleet

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(?:sql|py)\n(?:--|#) (\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
QUERIES: dict[str, str] = dict(BLOCK.findall((ROOT / "docs" / "fleet.md").read_text("utf-8")))


def by_duckdb(query: str) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        result = connection.execute(query)
        return [dict(zip(("owner", "private_bytes"), row, strict=True)) for row in result.fetchall()]


def by_polars(query: str) -> list[dict[str, Any]]:
    pytest.importorskip("polars")
    return list(ran(query).to_dicts())


def by_pyarrow(query: str) -> list[dict[str, Any]]:
    pytest.importorskip("pyarrow")
    found = [{"owner": row["owner"], "private_bytes": row["private_bytes_sum"]} for row in ran(query).to_pylist()]
    return sorted(found, key=lambda row: (-row["private_bytes"], row["owner"]))


def ran(query: str) -> Any:  # noqa: ANN401 # a table of the engine
    names: dict[str, Any] = {}
    exec(query, names)  # noqa: S102 # of the documentation
    return names["answer"]


@pytest.mark.parametrize(("engine", "ask"), [("DuckDB", by_duckdb), ("polars", by_polars), ("pyarrow", by_pyarrow)])
def test_the_query_of_the_documentation_finds_what_each_owner_holds(
    tmp_path: Path, engine: str, ask: Callable[[str], list[dict[str, Any]]]
) -> None:
    holdings = Holding("[heap]", 3000), Holding("/lib/a.so", 500), Holding("/lib/b.so", 500)
    members = [Member(host, "/bin/x", holdings[: 1 + pid], pid) for host in ("a", "b") for pid in (1, 2)]
    before = [Member("a", "/bin/x", holdings, 1, day=DAY.replace(day=1))]
    dataset = write_fleet(tmp_path / "it's a fleet", [*members, *before])
    assert f"{DAY}" == "2026-11-23"
    query = QUERIES[engine].replace(
        "/srv/fleet", str(dataset).replace("'", "''") if engine == "DuckDB" else str(dataset)
    )
    result = fleet(dataset, "owners").result
    place = [result.columns.index(name) for name in ("owner", "private_bytes")]
    expected = [{"owner": row[place[0]], "private_bytes": row[place[1]]} for row in result.rows]
    assert expected[0] == {"owner": "[heap]", "private_bytes": 12_000}
    assert ask(query) == expected


def test_each_engine_that_is_documented_has_one_query() -> None:
    assert list(QUERIES) == ["DuckDB", "polars", "pyarrow", "Spark", "Trino"]
