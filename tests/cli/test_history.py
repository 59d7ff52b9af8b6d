"""`footprint trend`, with and without `--add`: exit codes, texts, and JSON that fits the schema."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from footprint.cli import main

ROOT = Path(__file__).resolve().parents[2]
SHADOW = ROOT / "sample_binaries" / "condor_shadow"
SCHEMA = json.loads((ROOT / "footprint" / "json" / "footprint-1.schema.json").read_text(encoding="utf-8"))
STAGES = ("base", "sans_answers", "sans_null_xaction", "sans_crypt")
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def footprint(capsys: Captured, *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, error = capsys.readouterr()
    return code, " ".join(out.split()), error


def record(capsys: Captured, stage: str, version: str, day: str) -> tuple[int, str, str]:
    words = ("--history", "h.sqlite", "--program", "shadow", "--version", version, "--time", day)
    return footprint(capsys, "trend", "--add", str(SHADOW / stage), *words)


@pytest.fixture
def four_stages(capsys: Captured) -> None:
    for number, stage in enumerate(STAGES, 1):
        assert record(capsys, stage, f"1.{number}", f"2026-0{number}-15")[0] == 0


@pytest.mark.usefixtures("four_stages")
def test_the_stages_of_the_sample_show_the_step_that_the_library_made(capsys: Captured) -> None:
    code, out, _ = footprint(capsys, "trend", "--history", "h.sqlite")
    assert code == 0
    assert "shadow: 4 releases From 1.1 (2026-01-15) to 1.4 (2026-04-15)." in out
    # 8 KiB went in the first two stages, and 184 KiB with the libraries.
    assert re.search(r"-192 KiB -[0-9.]+% #\*\*_ mapped_writable_bytes", out)
    assert "-184 KiB 1.4 mapped_writable_bytes libunused.so -160 KiB" in out


@pytest.mark.usefixtures("four_stages")
def test_the_json_of_a_trend_fits_the_schema(capsys: Captured) -> None:
    assert main(["trend", "--history", "h.sqlite", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(result)] == []
    assert [one["version"] for one in result["releases"]] == ["1.1", "1.2", "1.3", "1.4"]
    (row,) = [one for one in result["trends"] if one["figure"] == "library_count"]
    assert (row["values"], row["unit"], row["largest_step"]["delta"]) == ([5, 5, 5, 3], "things", -2)
    for table in ("releases", "trends"):
        for key in result[table][0]:
            less = result | {table: [{name: value for name, value in result[table][0].items() if name != key}]}
            assert not Draft202012Validator(SCHEMA).is_valid(less)


@pytest.mark.usefixtures("four_stages")
def test_the_json_of_a_recording_fits_the_schema(capsys: Captured) -> None:
    words = (
        "trend",
        "--add",
        str(SHADOW / "base"),
        "--history",
        "h.sqlite",
        "--program",
        "shadow",
        "--version",
        "1.4",
        "--json",
    )
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(found)
    assert (found["releases"][0]["version"], found["replaced"]["version"], found["release_count"]) == ("1.4", "1.4", 4)
    kept = {one["figure"]: (one["value"], one["unit"]) for one in found["recorded"]}
    # base, the two libraries, libc and the loader.
    assert kept["library_count"] == (5, "things")
    assert kept["mapped_writable_bytes"] == (408 * 1024, "bytes")


def test_what_is_odd_about_an_audit_is_said_when_it_is_recorded(capsys: Captured) -> None:
    pmap = ROOT / "tests" / "cases" / "condor_shadow" / "pmap-d.base.txt"
    words = ("trend", "--add", str(pmap), "--history", "h.sqlite", "--program", "shadow", "--version", "1", "--strict")
    code, out, _ = footprint(capsys, *words)
    assert code == 4
    assert "virtual-only" in out


@pytest.mark.usefixtures("four_stages")
def test_a_version_that_is_recorded_twice_is_said_to_be_replaced(capsys: Captured) -> None:
    code, out, _ = record(capsys, "sans_crypt", "1.1", "2026-01-16")
    assert code == 0
    assert out.endswith("in place of what was recorded for it before, of 2026-01-15.")
    out = footprint(capsys, "trend", "--history", "h.sqlite", "--last", "2", "-q")[1]
    assert out.startswith("shadow: cost per process ")


@pytest.mark.usefixtures("four_stages")
def test_a_mistyped_name_is_wrong_use(capsys: Captured) -> None:
    assert footprint(capsys, "trend", "--history", "h.sqlite", "--figure", "private") == (
        2,
        "",
        "footprint: 'private' is not a recorded figure; did you mean 'private_bytes'?\n",
    )
    assert footprint(capsys, "trend", "--history", "h.sqlite", "--owner", "libunusd.so")[0] == 2
    assert footprint(capsys, "trend", "--history", "h.sqlite", "--program", "sha")[0] == 2
    assert record(capsys, "base", "2.0", "tomorrow")[0] == 2


@pytest.mark.usefixtures("four_stages")
def test_an_answer_does_not_replace_the_history(capsys: Captured) -> None:
    assert "made from" in footprint(capsys, "trend", "--history", "h.sqlite", "-o", "h.sqlite")[2]
    assert footprint(capsys, "trend", "--history", "h.sqlite")[0] == 0


def test_a_file_that_is_no_history_is_one_error(capsys: Captured, folder: Path) -> None:
    (folder / "h.sqlite").write_text("{}")
    code, out, error = footprint(capsys, "trend", "--history", "h.sqlite")
    assert (code, out) == (3, "")
    assert error == "footprint: h.sqlite: it is not a history, or it is damaged: file is not a database\n"
    assert record(capsys, "base", "1.0", "2026-01-01")[0] == 3
    assert (folder / "h.sqlite").read_text() == "{}"


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["a.json"], "a target goes with --add"),
        (["--version", "1"], "--version goes with --add"),
        (["--add", "a.json", "--version", "1", "--last", "3"], "--last does not go with --add"),
        (["--add", "--version", "1"], "name what is added"),
        (["--add", "a.json", "--version", "1", "--program", "a", "--program", "b"], "give --program once"),
    ],
)
def test_an_option_of_the_other_half_of_trend_is_refused(words: list[str], refused: str, capsys: Captured) -> None:
    code, _, error = footprint(capsys, "trend", "--history", "h.sqlite", *words)
    assert code == 2
    assert refused in error
