"""CSV and TSV: any table of an answer, for spreadsheets and scripts."""

import csv as reader
import io
import json

import pytest

import footprint
from footprint.errors import UsageError
from footprint.formats.audit_json import audit_members
from footprint.formats.csv import csv, jsonl, table_names, tsv
from footprint.formats.document import About
from footprint.json.answer import Json, in_memory
from tests.hostile import HOSTILE

SLEEP = "tests/corpus/smaps-sleep.txt"


def about(table: str) -> About:
    return About("audit server", "1.2.3", "", table)


def read(text: str) -> list[list[str]]:
    return list(reader.reader(io.StringIO(text, newline=""), strict=True))


def test_the_ledger_as_csv_adds_up_to_the_total_in_bytes() -> None:
    header, *rows = read(csv(audit_members(footprint.audit(SLEEP), "1"), about("ledger")))
    assert header[:6] == ["owner", "kind", "section", "symbol", "name", "bytes"]
    # The `Anonymous:` of this text add up to 108 KiB.
    assert sum(int(row[5]) for row in rows) == 108 * 1024


def test_lines_end_as_the_rfc_has_them_and_quotes_are_doubled() -> None:
    members: Json = {"rows": [{"name": 'a "b", c', "size_bytes": 4096, "is_it": True, "none": None, "time": 1.5}]}
    assert csv(members, about("rows")) == 'name,size_bytes,is_it,none,time\r\n"a ""b"", c",4096,true,,1.5\r\n'
    assert tsv(members, about("rows")) == 'name\tsize_bytes\tis_it\tnone\ttime\na "b", c\t4096\ttrue\t\t1.5\n'
    assert (
        jsonl(members, about("rows"))
        == r'{"name": "a \"b\", c", "size_bytes": 4096, "is_it": true, "none": null, "time": 1.5}' + "\n"
    )


def test_an_object_is_a_table_of_one_row_and_objects_in_cells_are_columns() -> None:
    members: Json = {"totals": {"private_bytes": 1, "of_which": {"swapped_bytes": 2}, "names": ["a", "b"]}}
    assert read(csv(members, about("totals"))) == [
        ["private_bytes", "of_which.swapped_bytes", "names"],
        ["1", "2", '["a", "b"]'],
    ]


def test_rows_that_have_other_columns_have_empty_cells() -> None:
    members: Json = {"mappings": [{"a": 1, "counters": {"Rss": 4}}, {"a": 2, "counters": {"Pss": 5}}]}
    assert read(csv(members, about("mappings"))) == [
        ["a", "counters.Rss", "counters.Pss"],
        ["1", "4", ""],
        ["2", "", "5"],
    ]


def test_a_table_without_rows_has_its_header() -> None:
    members = audit_members(footprint.audit(SLEEP), "1")
    (header,) = read(csv(members, about("findings")))
    assert header[:4] == ["rule", "kind", "subject", "message"]


def test_tables_inside_of_tables_have_names_too() -> None:
    members = audit_members(footprint.audit(SLEEP, count=10), "1")
    header, *rows = read(csv(members, about("projection.terms")))
    assert header == ["name", "size_bytes", "is_once", "evidence", "is_page_cache"]
    assert ["private memory", str(108 * 1024), "false", "measured", "false"] in rows


def test_a_table_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"no table 'symbols' in this answer: it has host, target, totals, .*ledger"):
        csv(audit_members(footprint.audit(SLEEP), "1"), about("symbols"))


def test_every_table_of_an_answer_can_be_read_back() -> None:
    members = audit_members(footprint.audit("sample_binaries/condor_shadow/base", count=10), "1")
    for name in table_names(in_memory(members)):
        header, *rows = read(csv(members, about(name)))
        assert all(len(row) == len(header) for row in rows)
        lines = tsv(members, about(name)).removesuffix("\n").split("\n")
        assert {line.count("\t") for line in lines} == {max(0, len(header) - 1)}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_any_name_is_one_cell_that_is_no_formula(name: str) -> None:
    # As the JSON has names: what is no UTF-8 is escaped there already, or would be here.
    members: Json = {"rows": [{"symbol": name, "size_bytes": -4096, "units": [name]}]}
    text = csv(members, about("rows"))
    header, row = read(text)
    assert (header, row[1]) == (["symbol", "size_bytes", "units"], "-4096")
    assert row[0].isprintable()
    assert not row[0].lstrip().startswith(("=", "+", "-", "@", "\t", "\r", "::"))
    assert json.loads(row[2]) == [name]
    assert text.count("\r\n") == 2
    lines = tsv(members, about("rows")).split("\n")
    assert [line.count("\t") for line in lines] == [2, 2, 0]
    assert not lines[1].split("\t")[0].lstrip().startswith(("=", "+", "-", "@", "::"))
    text.encode()
