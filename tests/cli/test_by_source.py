"""`symbols` and `audit` by source file, folder and component: what they add up to, and what they refuse."""

import json
import re
from pathlib import Path

import pytest

from footprint.cli import main

BASE = "sample_binaries/condor_shadow/base_debug"
Captured = pytest.CaptureFixture[str]
RULES = '[components]\n"condor_shadow" = "shadow"\n'


def ask(capsys: Captured, *words: str, code: int = 0) -> str:
    assert main(list(words)) == code
    out, err = capsys.readouterr()
    return out if code == 0 else err


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "components.toml"
    path.write_text(RULES, encoding="ascii")
    return str(path)


@pytest.mark.parametrize("by", ["file", "dir", "component"])
def test_the_groups_of_all_bytes_add_up_to_the_sections(capsys: Captured, by: str, rules: str) -> None:
    more = ["--components", rules] if by == "component" else []
    found = json.loads(ask(capsys, "symbols", BASE, "--by", by, *more, "--json"))
    total_bytes = sum(one["size_bytes"] for one in found["sections"])
    assert sum(one["size_bytes"] for one in found["origins"]) == total_bytes
    assert all((one["group"] is None) == (one["unit"] is None and one["object"] is None) for one in found["origins"])
    text = ask(capsys, "symbols", BASE, "--by", by, *more, "--top", "0")
    table = text.partition(f"By {by}")[2]
    sizes = [int(found.replace(",", "")) for found in re.findall(r"^ +([\d,]+) ", table, re.MULTILINE)]
    assert sum(sizes) == total_bytes


def test_a_header_and_a_source_file_are_told_apart(capsys: Captured) -> None:
    found = json.loads(ask(capsys, "symbols", BASE, "--by", "file", "--json"))
    names = {one["group"].rsplit("/", 1)[-1] for one in found["origins"] if one["group"]}
    assert {"classad.h", "shadow.c"} <= names


def test_an_audit_by_source_has_the_same_total_as_by_owner(capsys: Captured, rules: str) -> None:
    def total(*words: str) -> list[str]:
        text = ask(capsys, "audit", BASE, "--reproducible", "--top", "0", *words)
        return next(line.split() for line in text.splitlines() if line.endswith("[total]"))

    of_component = total("--by", "component", "--components", rules)
    assert total("--by", "file") == total("--by", "dir") == of_component == total("--by", "owner")


def test_without_a_kind_of_groups_an_audit_has_no_sources(capsys: Captured) -> None:
    assert "sources" not in json.loads(ask(capsys, "audit", BASE, "--json"))


@pytest.mark.parametrize("by", ["file", "dir", "component"])
def test_the_sources_of_an_audit_add_up_to_its_rows(capsys: Captured, by: str, rules: str) -> None:
    more = ["--components", rules] if by == "component" else []
    result = json.loads(ask(capsys, "audit", BASE, "--by", by, *more, "--json"))
    rows = [row for row in result["ledger"] if row["kind"] != "kernel"]
    for figure in ("bytes", "mapped_bytes"):
        assert sum(one[figure] for one in result["sources"]) == sum(row[figure] for row in rows)
    assert all((one["source"] is None) == (one["owner"] is not None) for one in result["sources"])
    assert any(one["source"] is not None for one in result["sources"])
    lines = ask(capsys, "audit", BASE, "--by", by, *more, "--format", "csv").splitlines()
    assert lines[0] == "source,owner,name,bytes,mapped_bytes,shared_bytes"
    assert len(lines) == 1 + len(result["sources"])


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["--by", "component"], 'below the line [components]: "src/net" = "network"'),
        (["--by", "dir", "--components", "README.md"], "--by component and --components FILE go together"),
        (["--prefix-map", "a=b"], "--prefix-map and --components go with --by file, dir or component"),
        (["--by", "dir", "--prefix-map", "a"], "'a' is not OLD=NEW"),
    ],
)
@pytest.mark.parametrize("verb", ["symbols", "audit"])
def test_options_that_mean_nothing_are_refused(capsys: Captured, verb: str, words: list[str], cause: str) -> None:
    assert cause in ask(capsys, verb, BASE, *words, code=2)


def test_a_file_of_rules_that_is_no_toml_is_unreadable(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[", encoding="ascii")
    error = ask(capsys, "symbols", BASE, "--by", "component", "--components", str(path), code=3)
    assert "it is not TOML" in error
