"""All JSON is what the schema says, and its tables add up to its totals: every verb, over every text and sample."""

import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from footprint.cli import main
from footprint.json.codec import shape_of
from tests.jsonschemas import READ, WRITTEN

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus"
SAMPLES = ROOT / "sample_binaries"
SCHEMA = json.loads((ROOT / "footprint" / "json" / "footprint-1.schema.json").read_text(encoding="utf-8"))

TEXTS = sorted(path.name for kind in ("maps", "smaps", "pmap") for path in CORPUS.glob(f"{kind}-*"))
PROFILES = sorted(
    str(path.relative_to(ROOT))
    for folder in (CORPUS / "heap", SAMPLES / "heap_by_function")
    for path in folder.iterdir()
    if path.name.startswith(("massif", "dhat", "heap")) and path.suffix in {".out", ".gz", ".json", ".txt", ".ms"}
)
# The texts of processes without memory.
EMPTY = [name for name in TEXTS if re.search(r"-(kthread|zombie)\.", name)]
FILLED = [name for name in TEXTS if name not in EMPTY]
BINARIES = sorted(
    str(path.relative_to(SAMPLES))
    for path in SAMPLES.glob("*/*")
    if path.suffix in {".so", ".o", ".a"} or (path.is_file() and path.read_bytes()[:4] == b"\x7fELF")
)

Json = dict[str, Any]
Ask = Callable[..., Json]


@pytest.fixture
def ask(capfdbinary: pytest.CaptureFixture[bytes]) -> Ask:
    """Ask the command for JSON; what it answers is validated."""

    def asked(*words: str) -> Json:
        code = main([*words, "--json"])
        out, error = capfdbinary.readouterr()
        assert (code, error) == (0, b""), (words, error)
        assert out.isascii()
        found: Json = json.loads(out)
        validate(found)
        return found

    return asked


def validate(result: Json) -> None:
    assert [f"{error.instance_path}: {error.message}" for error in WRITTEN.iter_errors(result)] == []


def text_at(folder: Path, name: str, *, is_whole: bool = True) -> str:
    """Return the path of a text, unpacked where it is packed; what is packed is large, and its beginning may do."""
    path = CORPUS / name
    if path.suffix == ".gz":
        text = gzip.decompress(path.read_bytes())
        path = folder / path.stem
        path.write_bytes(text if is_whole else text[: text.index(b"\n", 200_000) + 1])
    return str(path)


def choices(name: str) -> list[list[str]]:
    """Return the options that choose each process of a text."""
    return [["--pid", "11837"], ["--pid", "11842"]] if "multi-pid" in name else [[]]


# --- processes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILLED)
def test_audit_of_a_text_is_valid_and_its_ledger_adds_up(ask: Ask, tmp_path: Path, name: str) -> None:
    # Of the texts with 30,000 mappings one of smaps and one of pmap come whole: the others have the same rows.
    path = text_at(tmp_path, name, is_whole="manyvma" not in name or name.startswith(("smaps", "pmap-4.0.2-XX")))
    for choice in choices(name):
        assert_adds_up(ask("audit", path, *choice))


def assert_adds_up(result: Json) -> None:
    totals = result["totals"]
    kernel = [row for row in result["ledger"] if row["kind"] == "kernel"]
    rows = [row for row in result["ledger"] if row["kind"] != "kernel"]
    assert rows
    if totals["private_bytes"] is None:
        assert any(row["bytes"] is None for row in rows)
    else:
        assert sum(row["bytes"] for row in rows) == totals["private_bytes"]
        assert sum(row["shared_bytes"] for row in rows) == totals["shared_once_bytes"]
    assert sum(row["mapped_bytes"] for row in rows if row["is_writable"]) == totals["mapped_writable_bytes"]
    assert sum(row["mapped_bytes"] for row in rows) == totals["mapped_bytes"]
    assert sum(row["bytes"] for row in kernel) == (totals["kernel_bytes"] or 0)
    if totals["per_process_bytes"] is not None:
        assert totals["per_process_bytes"] == totals["private_bytes"] + totals["kernel_bytes"]
    known = {key for key, value in totals.items() if key.endswith("_bytes") and value is not None}
    assert set(totals["evidence"]) == known


@pytest.mark.parametrize("name", FILLED)
def test_maps_of_a_text_is_valid_and_every_byte_has_an_owner(ask: Ask, tmp_path: Path, name: str) -> None:
    path = text_at(tmp_path, name, is_whole=False)
    for choice in choices(name):
        mappings = ask("audit", "--by", "mapping", path, *choice)["mappings"]
        assert mappings
        for mapping in mappings:
            ranges = [(owner["start_addr"], owner["end_addr"]) for owner in mapping["owners"]]
            assert ranges[0][0] == mapping["start_addr"]
            assert ranges[-1][1] == mapping["end_addr"]
            assert all(before[1] == after[0] for before, after in pairwise(ranges))


@pytest.mark.parametrize("name", FILLED)
def test_project_of_a_text_is_valid_and_is_the_sum_of_its_terms(ask: Ask, tmp_path: Path, name: str) -> None:
    path = text_at(tmp_path, name, is_whole=False)
    for choice in choices(name):
        cost = ask("audit", path, "-n", "10000", *choice)["projection"]
        each_bytes = sum(term["size_bytes"] for term in cost["terms"] if not term["is_once"])
        once_bytes = sum(term["size_bytes"] for term in cost["terms"] if term["is_once"])
        assert cost["per_process_bytes"] == each_bytes > 0
        assert (cost["shared_once_bytes"] or 0) == once_bytes
        assert cost["total_bytes"] == once_bytes + 10_000 * each_bytes


@pytest.mark.parametrize("name", EMPTY)
def test_a_text_without_mappings_gives_no_json(capfdbinary: pytest.CaptureFixture[bytes], name: str) -> None:
    assert main(["audit", str(CORPUS / name), "--json"]) == 3
    assert capfdbinary.readouterr().out == b""


@pytest.fixture
def sleeping_pid() -> Iterator[int]:
    code = "import time; print('ready', flush=True); time.sleep(3600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child.pid
        child.kill()


def test_a_live_process_is_valid_in_every_verb_and_adds_up(ask: Ask, sleeping_pid: int) -> None:
    audited = ask("audit", str(sleeping_pid), "-n", "10000")
    assert_adds_up(audited)
    assert audited["target"]["is_live"]
    assert audited["target"]["pid"] == sleeping_pid
    assert audited["totals"]["kernel_bytes"] > 0
    assert audited["host"]["kernel"] == os.uname().release
    assert Counter(row["kind"] for row in audited["ledger"])["kernel"] == 3
    assert ask("audit", "--by", "mapping", str(sleeping_pid))["target"]["pid"] == sleeping_pid
    assert ask("audit", str(sleeping_pid), "--memory", "32GiB")["projection"]["memory_bytes"] == 32 * 2**30


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BINARIES)
def test_symbols_of_a_sample_is_valid_and_each_section_adds_up(ask: Ask, name: str) -> None:
    found = ask("symbols", str(SAMPLES / name))
    for section in found["sections"]:
        assert section["named_bytes"] + sum(section["residue"].values()) == section["size_bytes"]
    placed = {(section["file"], section["section"]) for section in found["sections"]}
    assert {(symbol["file"], symbol["section"]) for symbol in found["symbols"]} <= placed
    sizes = [symbol["size_bytes"] for symbol in found["symbols"]]
    assert sizes == sorted(sizes, reverse=True)


def test_symbols_of_all_samples_at_once_is_the_sum_of_each(ask: Ask) -> None:
    names = [str(SAMPLES / name) for name in BINARIES]
    together = ask("symbols", *names)
    apart = [ask("symbols", name) for name in names]
    assert together["sections"] == [section for one in apart for section in one["sections"]]
    assert len(together["symbols"]) == sum(len(one["symbols"]) for one in apart)


@pytest.mark.parametrize("name", [name for name in BINARIES if name.endswith(".so") or "." not in name])
def test_duplicates_of_a_sample_is_valid_and_its_waste_adds_up(ask: Ask, name: str) -> None:
    result = ask("duplicates", str(SAMPLES / name), "-n", "10")
    (file,) = result["files"]
    counted = [row for row in result["duplicates"] if row["confidence"] in {"proof", "high"}]
    assert file["waste_bytes"] == sum(row["waste_bytes"] for row in counted)
    for row in result["duplicates"]:
        assert row["waste_bytes"] == (row["copy_count"] - 1) * row["size_bytes"]
        assert len(set(row["vaddrs"])) == row["copy_count"]
    assert all(one["saving_at_count_bytes"] == 10 * one["saving_bytes"] for one in result["findings"])


@pytest.mark.parametrize("by", ["function", "tree", "callers"])
@pytest.mark.parametrize("name", PROFILES)
def test_heap_of_a_profile_is_valid_and_its_tables_add_up(ask: Ask, name: str, by: str) -> None:
    result = ask("heap", str(ROOT / name), "--by", by)
    (profile,) = result["profiles"]
    assert (profile["tree_bytes"] is None) == (result["owners"] == result["heap"] == []) or profile["tree_bytes"] == 0
    for table in ("owners", "heap"):
        assert sum(row["bytes"] for row in result[table]) == (profile["tree_bytes"] or 0)
    known = sum(row["bytes"] for row in result["owners"] if not row["owner"].startswith("["))
    assert known == (profile["attributed_bytes"] or 0)
    if profile["snapshot"] is not None:
        (one,) = [row for row in result["snapshots"] if row["number"] == profile["snapshot"]]
        assert one["live_bytes"] == profile["live_bytes"]
    nodes = {row["node"]: row for row in result["calls"]}
    for row in result["calls"]:
        assert row["parent"] == 0 or row["parent"] < row["node"]
        assert row["parent"] == 0 or row["bytes"] <= nodes[row["parent"]]["bytes"] or "heaptrack" in profile["format"]
    assert bool(nodes) <= (by != "function")


# --- the schema itself ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def describe() -> ModuleType:
    spec = importlib.util.spec_from_file_location("describe", ROOT / "shell" / "describe.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_schema_its_page_and_the_types_of_the_report_are_what_make_schema_writes(describe: ModuleType) -> None:
    for path, text in describe.texts().items():
        assert path.read_text(encoding="utf-8") == text, path


def test_every_property_of_the_schema_has_a_description_and_every_object_too() -> None:
    for name, one in SCHEMA["$defs"].items():
        assert one["description"], name
        for key, member in one["properties"].items():
            assert member["description"].endswith((".", ".)")), (name, key)


def test_a_type_that_json_has_nothing_for_is_an_error() -> None:
    with pytest.raises(TypeError, match="JSON has nothing for"):
        shape_of(complex)


def test_the_schema_is_one_and_is_for_the_version_that_it_names() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["title"] == "footprint/1"
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["schema"], "footprint/2"),
        (["tool", "name"], "another"),
        (["totals", "private_bytes"], -1),
        (["totals", "private_bytes"], 1.5),
        (["totals", "private_bytes"], "4 KiB"),
        (["totals", "evidence", "private_bytes"], "guessed"),
        (["totals", "evidence", "private"], "measured"),
        (["ledger", 0, "kind"], "misc"),
        (["ledger", 0, "bytes"], -4096),
        (["ledger", 0, "shared_bytes"], -4096),
        (["ledger", 0, "mapped_bytes"], None),
        (["ledger", 0, "attribution"], "feeling"),
        (["projection", "basis"], "rss"),
        (["notes", 0, "slug"], "Not A Slug"),
        (["findings"], None),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, list) else None,
)
def test_the_schema_refuses_what_no_audit_may_say(ask: Ask, place: list[str | int], value: object) -> None:
    result = ask("audit", str(CORPUS / "smaps-sleep.txt"))
    *way, last = place
    inner: Any = result
    for step in way:
        inner = inner[step]
    inner[last] = value
    assert not WRITTEN.is_valid(result)


def test_audits_that_earlier_versions_saved_are_valid_without_what_was_added_since(ask: Ask) -> None:
    found = ask("audit", str(SAMPLES / "condor_shadow" / "base"))
    del found["verb"], found["objects"], found["heap_account"]
    for finding in found["findings"]:
        del finding["saving_per"], finding["private_bytes"], finding["object"]
    assert READ.is_valid(found)
    assert not WRITTEN.is_valid(found)
    assert READ.is_valid(json.loads((ROOT / "docs/examples/server/footprint-baseline.json").read_text()))


@pytest.mark.parametrize("verb", ["audit", "audit --by mapping", "symbols", "duplicates"])
def test_the_schema_misses_every_member_that_is_left_out(ask: Ask, verb: str) -> None:
    target = SAMPLES / "condor_shadow" / "base" if verb in {"symbols", "duplicates"} else CORPUS / "smaps-sleep.txt"
    result = ask(*verb.split(), str(target))
    members: list[tuple[str, str | None]] = [(key, None) for key in result]
    members += [
        (table, key)
        for table in result
        if isinstance(result[table], list) and result[table]
        for key in result[table][0]
    ]
    accepted = []
    for table, key in members:
        less = {**result}
        if key is None:
            del less[table]
        else:
            first, *rows = result[table]
            less[table] = [{name: value for name, value in first.items() if name != key}, *rows]
        if WRITTEN.is_valid(less):
            accepted.append((table, key))
    # An audit without page maps had no file of an object to read; one without mappings or parts knows no private bytes.
    absent = ("parts", "page_maps", "mappings")
    assert accepted == [(table, None) for table in absent if verb == "audit" and table in result]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["parts", 0, "states", 0], "lost"),
        (["parts", 0, "page_counts", 0], 0),
        (["parts", 0, "permissions"], "rw-p "),
        (["parts", 0, "runs"], []),
        (["sections", "addrs", 0], -1),
        (["sections", "names", 0], None),
        (["variables"], []),
        (["omitted_pages"], None),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, list) else None,
)
def test_the_schema_refuses_what_no_page_map_may_say(ask: Ask, place: list[str | int], value: object) -> None:
    result = ask("audit", str(SAMPLES / "condor_shadow" / "base"))
    assert {one["owner"] for one in result["page_maps"]} <= {row["owner"] for row in result["ledger"]}
    *way, last = place
    inner: Any = result["page_maps"][0]
    for step in way:
        inner = inner[step]
    inner[last] = value
    assert not WRITTEN.is_valid(result)
