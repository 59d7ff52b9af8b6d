"""`footprint heap` as a user runs it: text, JSON, comparisons, and profiles that are none."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from footprint.cli import main
from tests.massifwriter import ROOT as HEADING
from tests.massifwriter import Line, Moment, massif

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).resolve().parent / "golden"
CORPUS = ROOT / "tests" / "corpus" / "heap"
SAMPLE = "sample_binaries/heap_by_function"
MASSIF, DHAT = f"{SAMPLE}/massif.out", f"{SAMPLE}/dhat.json"
BINARY = ["--binary", f"{SAMPLE}/heap"]

Captured = pytest.CaptureFixture[bytes]


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def answer(captured: Captured, *words: str) -> str:
    code = main(["heap", *words])
    out, error = captured.readouterr()
    assert (code, error) == (0, b"")
    return out.decode()


def result(captured: Captured, *words: str) -> dict[str, Any]:
    answered: dict[str, Any] = json.loads(answer(captured, *words, "--json"))
    return answered


def refused(captured: Captured, *words: str) -> tuple[int, str]:
    code = main(["heap", *words])
    out, error = captured.readouterr()
    assert out == b""
    assert error.count(b"\n") == 1 or code == 2
    return code, error.decode()


def rows(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading."""
    table = re.split(r"\n\n", text[text.index(heading) :])[0]
    return [re.split(r" {2,}", line.strip()) for line in table.splitlines()[2:]]


# --- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("golden", "words"),
    [
        ("heap-massif.txt", [MASSIF, *BINARY]),
        ("heap-callers.txt", [DHAT, *BINARY, "--by", "callers"]),
        ("heap-tree.txt", [MASSIF, *BINARY, "--by", "tree", "--threshold", "20"]),
        ("heap-compared.txt", [MASSIF, DHAT, *BINARY]),
        # Without the files of this machine.
        ("heap-pages.txt", ["tests/corpus/heap/massif-3.19-pages-as-heap.out", "--top", "5", "--root", "/nowhere"]),
    ],
)
def test_the_text_is_what_it_was(capfdbinary: Captured, golden: str, words: list[str]) -> None:
    # The path of the checkout is that of the program.
    text = answer(capfdbinary, *words)
    assert text == (GOLDEN / golden).read_text(encoding="utf-8")


def test_rows_and_what_massif_adds_are_the_total(capfdbinary: Captured) -> None:
    table = rows(answer(capfdbinary, MASSIF, *BINARY), "By object")
    assert table == [
        ["130,000", "71.89%", "heap"],
        ["50,000", "27.65%", "libtable.so"],
        ["824", "0.46%", "[allocator overhead]"],
    ]
    assert sum(int(row[0].replace(",", "")) for row in table) == 180_824


def test_by_owner_there_are_no_functions(capfdbinary: Captured) -> None:
    assert "By function" not in answer(capfdbinary, MASSIF, "--by", "owner")


def test_a_function_that_hands_memory_on_can_be_named(capfdbinary: Captured) -> None:
    text = answer(capfdbinary, MASSIF, *BINARY, "--alloc-fn", "load_*", "--alloc-fn", "parse_file")
    assert rows(text, "By function")[0] == ["130,000", "71.89%", "heap", "main"]


def test_the_functions_that_hand_memory_on_can_be_listed_with_their_rules(capfdbinary: Captured) -> None:
    words = [MASSIF, *BINARY, "--alloc-fn", "load_*", "--allocators"]
    text = answer(capfdbinary, *words)
    assert rows(text, "Functions that only pass memory on")[0] == [
        "100,000",
        "55.30%",
        "--alloc-fn",
        "heap",
        "load_parameters",
    ]
    assert "These rules apply to no function here: C library; " in text
    assert "g_malloc*" not in text
    assert ["glib", "g_malloc*"] in rows(answer(capfdbinary, *words, "-v"), "The rules by which")
    assert [(row["rule"], row["symbol"], row["bytes"]) for row in result(capfdbinary, *words)["allocators"]] == [
        ("--alloc-fn", "load_parameters", 100_000),
        ("common names", "xmalloc", 50_000),
    ]
    assert result(capfdbinary, *words[:-1])["allocators"] == []


def test_the_moment_is_the_peak_unless_another_is_asked_for(capfdbinary: Captured) -> None:
    default = "tests/corpus/heap/massif-3.19-default.out"
    assert "measured by the profiler, at 3.71 Mi" in answer(capfdbinary, default)
    for at in ("23", "2377405i", "2.4Mi"):
        text = answer(capfdbinary, default, "--at", at)
        assert "at snapshot 23" in text
        assert "measured by the profiler, at 2.38 Mi" in text


def test_only_so_many_rows_are_shown_and_how_many_more_there_are(capfdbinary: Captured) -> None:
    text = answer(capfdbinary, "tests/corpus/heap/massif-3.19-default.out", "--top", "2")
    assert len(rows(text, "By function")) == 3
    assert "[3 more: --top 0 shows all]" in text
    assert "[64 more]" in text
    assert len(rows(answer(capfdbinary, "tests/corpus/heap/massif-3.19-default.out", "--top", "0"), "66 snap")) == 66


def test_address_space_is_called_so(capfdbinary: Captured) -> None:
    text = answer(capfdbinary, "tests/corpus/heap/massif-3.19-pages-as-heap.out")
    assert "virtual: address space only" in text
    assert "148.6 MiB of address space" in text.replace("\n", " ")
    assert (
        result(capfdbinary, "tests/corpus/heap/massif-3.19-pages-as-heap.out")["profiles"][0]["evidence"] == "virtual"
    )


def test_units_that_a_program_declared_are_not_called_bytes(capfdbinary: Captured) -> None:
    text = answer(capfdbinary, f"{CORPUS}/dhat-3.19-ad-hoc.json")
    assert text.splitlines()[1] == "  455 units occurred over the whole run; no moment of it is known"
    assert "  units    share  events  object\n" in text
    assert "bytes  " not in text


def test_a_profile_of_copies_is_of_bytes_and_of_who_copies(capfdbinary: Captured) -> None:
    # mempcpy is Valgrind's own here, and hands on what others want.
    text = answer(capfdbinary, f"{CORPUS}/dhat-3.19-copy-ten.json")
    assert text.splitlines()[-1] == "285 bytes copied over the whole run, which is no memory in use."
    assert [row[-1] for row in rows(text, "By function")] == ["open_path", "_dl_new_object", "_dl_allocate_tls_init"]
    assert "  bytes   share  copies  object" in text


def test_a_profile_without_allocations_has_no_empty_tables(capfdbinary: Captured) -> None:
    text = answer(capfdbinary, f"{CORPUS}/dhat-3.19-empty.json")
    assert "By object" not in text
    assert "By function" not in text


def test_callers_are_named_as_shortly_as_those_who_asked(capfdbinary: Captured) -> None:
    text = answer(capfdbinary, f"{CORPUS}/dhat-3.19-copy-ten.json", "--by", "callers", "--root", "/nowhere")
    assert "[no symbol]  (ld-linux-x86-64.so.2)\n" in text


def test_of_several_profiles_each_note_names_its_own(capfdbinary: Captured) -> None:
    other = "tests/corpus/heap/massif-3.19-default.out"
    words = answer(capfdbinary, MASSIF, other, "--root", "/nowhere").split("\nNotes\n")[1].split()
    # Where a line breaks depends on how long a path is, so the text is read by words.
    assert [words[at + 1] for at, word in enumerate(words) if word == "heap-objects-untold:"] == [
        f"{MASSIF}:",
        f"{other}:",
    ]


def test_several_profiles_stand_beside_the_first(capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = answer(capfdbinary, MASSIF, DHAT, f"{SAMPLE}/heaptrack.txt", *BINARY)
    table = rows(text, "By function")
    assert ["0", "0", "72,704", "+0", "+72,704", "libstdc++.so.6", "[no symbol]"] in table
    assert ["50,000", "50,000", "50,000", "+0", "+0", "libtable.so", "table_new"] in table


def test_a_profile_has_as_much_as_itself(capfdbinary: Captured) -> None:
    assert answer(capfdbinary, MASSIF, MASSIF, "-q").replace("\n", " ") == f"{MASSIF} has as much as {MASSIF}. "


def test_a_profile_that_is_compared_with_itself_is_counted_once(capfdbinary: Captured) -> None:
    tables = ("profiles", "snapshots", "owners", "heap")
    alone, twice = result(capfdbinary, MASSIF), result(capfdbinary, MASSIF, MASSIF)
    assert [twice[table] for table in tables] == [alone[table] for table in tables]
    assert f'footprint_heap_live_bytes{{file="{MASSIF}",evidence="measured"}} 180000\n' in answer(
        capfdbinary, MASSIF, MASSIF, "--format", "openmetrics"
    )


def test_quiet_is_one_sentence(capfdbinary: Captured) -> None:
    assert answer(capfdbinary, MASSIF, *BINARY, "-q").replace("\n", " ").strip() == (
        "175.8 KiB of heap at the peak (snapshot 13): heap asked for 72.2% of it, its load_parameters for 55.6%; "
        "the object is known of 100.0%."
    )


def drawn(width: int, *words: str, **environment: str) -> str:
    """Return what a terminal of a width gets."""
    code = "import sys; from footprint.cli import main; sys.exit(main())"
    environment_set = {
        "PYTHONPATH": str(ROOT),
        "COLUMNS": str(width),
        "TERM": "xterm",
        "FORCE_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        [sys.executable, "-c", code, "heap", *words],
        env=os.environ | environment_set | environment,
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout.decode())


def test_totals_over_the_run_are_whole_in_80_columns() -> None:
    lines = drawn(80, f"{CORPUS}/dhat-3.19-heap.json")
    (row,) = [line.split() for line in lines.splitlines() if "1,607,048" in line]
    assert row[:8] == ["1,816,776", "75", "650.23", "k", "328,960", "1,607,048", "123,456", "main"]


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_gets_blocks_as_wide_as_it_is(width: int) -> None:
    lines = drawn(width, MASSIF, *BINARY).splitlines()
    assert max(map(len, lines)) <= width
    assert any("█" in line for line in lines)
    axis = next(line for line in lines if "└" in line)
    assert len(axis) == width - 1


def test_a_terminal_without_blocks_gets_ascii() -> None:
    assert "█" not in drawn(80, MASSIF, TERM="linux")
    assert "#" in drawn(80, MASSIF, TERM="linux")


# --- moments of one profile -------------------------------------------------------------------------------------------

SERIES = "tests/corpus/heap/massif-3.19-default.out"


def test_moments_of_one_profile_are_compared(capfdbinary: Captured) -> None:
    text = answer(capfdbinary, f"{SERIES}@15", f"{SERIES}@peak")
    assert text.startswith("2 moments of one profile\n")
    assert rows(text, "By object")[0] == ["351,000", "2,028,956", "+1,677,956", "[no object: lines only]"]
    answered = result(capfdbinary, f"{SERIES}@15", f"{SERIES}@peak")
    assert [(row["file"], row["snapshot"]) for row in answered["profiles"]] == [
        (f"{SERIES}@15", 15),
        (f"{SERIES}@peak", 63),
    ]
    for name, at in ((f"{SERIES}@15", "15"), (f"{SERIES}@peak", "63")):
        alone = [row | {"file": name} for row in result(capfdbinary, SERIES, "--at", at)["heap"]]
        assert [row for row in answered["heap"] if row["file"] == name] == alone


def test_a_moment_of_one_profile_is_that_of_at(capfdbinary: Captured) -> None:
    named, chosen = result(capfdbinary, f"{SERIES}@23"), result(capfdbinary, SERIES, "--at", "23")
    assert [row | {"file": SERIES} for row in named["heap"]] == chosen["heap"]
    # --at is the moment of those that are named without one.
    (first, second) = result(capfdbinary, f"{SERIES}@23", SERIES, "--at", "15")["profiles"]
    assert (first["snapshot"], second["snapshot"]) == (23, 15)


def test_a_profile_with_an_at_sign_in_its_name_is_read(capfdbinary: Captured, tmp_path: Path) -> None:
    text = (ROOT / MASSIF).read_bytes()
    for name in ("massif.out@3", "user@host.out", "massif.out"):
        (tmp_path / name).write_bytes(text)
    assert result(capfdbinary, f"{tmp_path}/massif.out@3")["profiles"][0]["snapshot"] == 13
    assert result(capfdbinary, f"{tmp_path}/user@host.out")["profiles"][0]["snapshot"] == 13
    assert result(capfdbinary, f"{tmp_path}/user@host.out@13")["profiles"][0]["file"] == f"{tmp_path}/user@host.out@13"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([f"{MASSIF}@99"], 2, "has no snapshot 99: the last one is 13"),
        ([f"{MASSIF}@later"], 2, "'later' is not a moment of sample_binaries/heap_by_function/massif.out"),
        (["/nowhere@5"], 3, "/nowhere@5: No such file"),
        ([f"{MASSIF}@"], 3, "massif.out@: No such file"),
        ([DHAT, "--by", "growth"], 2, "has no call tree before this moment"),
        ([MASSIF, MASSIF, "--by", "growth"], 2, "--by growth shows one profile"),
    ],
)
def test_a_moment_that_is_none_is_told(capfdbinary: Captured, words: list[str], code: int, message: str) -> None:
    refusal = refused(capfdbinary, *words)
    assert refusal[0] == code
    assert message in refusal[1]


def test_diff_compares_moments_as_heap_does(capfdbinary: Captured) -> None:
    both = [f"{SERIES}@15", f"{SERIES}@peak"]
    assert main(["diff", *both]) == 0
    assert capfdbinary.readouterr().out.decode() == answer(capfdbinary, *both)
    # Only a heap profile has moments.
    assert main(["diff", "tests/corpus/smaps-sleep.txt@5", "tests/corpus/smaps-sleep.txt"]) == 3
    assert b"smaps-sleep.txt@5: No such file" in capfdbinary.readouterr().err


def test_growth_is_that_of_each_function_and_says_when_most_of_it_came(capfdbinary: Captured, tmp_path: Path) -> None:
    def tree(load: int, cache: int) -> Line:
        below = (Line(load, "0x1: load (in /app)"), Line(cache, "0x2: cache (in /app)"))
        return Line(load + cache, HEADING, below)

    sizes = [(100, 50), (100, 60), (400, 60), (450, 40)]
    moments = [Moment(n, sum(size), tree=tree(*size), is_peak=n == 3) for n, size in enumerate(sizes)]
    path = profile(tmp_path, massif(moments))
    assert rows(answer(capfdbinary, path, "--by", "growth"), "By growth, from snapshot 0 to snapshot 3") == [
        ["+350", "450", "1-2", "app", "load"],
        ["-10", "40", "0-1", "app", "cache"],
    ]
    (row, _) = result(capfdbinary, path, "--by", "growth")["growth"]
    assert (row["symbol"], row["growth_bytes"]) == ("load", 350)
    assert (row["step_first_snapshot"], row["step_last_snapshot"], row["step_bytes"]) == (1, 2, 300)
    assert result(capfdbinary, f"{path}@2", "--by", "growth")["growth"][0]["growth_bytes"] == 300


# --- JSON -------------------------------------------------------------------------------------------------------------


def test_the_json_has_the_bytes_by_object_and_function(capfdbinary: Captured) -> None:
    answered = result(capfdbinary, DHAT, *BINARY)
    program = os.path.realpath(f"{SAMPLE}/heap")
    assert [(row["owner"], row["symbol"], row["bytes"], row["block_count"]) for row in answered["heap"]] == [
        (program, "load_parameters", 100_000, 101),
        ("/srv/samples/heap_by_function/libtable.so", "table_new", 50_000, 1),
        (program, "parse_file", 30_000, 1),
    ]
    assert answered["calls"] == []


def test_what_was_counted_over_the_run_stands_beside_the_moment(capfdbinary: Captured) -> None:
    # As the README of the sample derives it: 103 blocks, and all that ever was is there at the peak.
    text = answer(capfdbinary, DHAT, *BINARY)
    assert re.search(r"\n  allocated over the run +175\.8 KiB  in 103 blocks\n", text)
    tallies = {row["name"]: row for row in result(capfdbinary, DHAT)["tallies"]}
    assert set(tallies) == {"allocated", "read", "written", "lived"}
    assert tallies["allocated"] == {
        "file": DHAT,
        "name": "allocated",
        "amount": 180_000,
        "unit": "bytes",
        "block_count": 103,
    }
    assert tallies["lived"]["unit"] == "instrs"
    columns = result(capfdbinary, f"{CORPUS}/massif-3.19-xtmemory-full.ms.gz")["tallies"]
    assert [(row["name"], row["amount"], row["block_count"]) for row in columns] == [
        ("allocated", 2_315_468, 876),
        ("freed", 2_192_012, 875),
    ]
    assert result(capfdbinary, MASSIF)["tallies"] == []


def test_the_totals_over_the_run_are_sorted_as_asked(capfdbinary: Captured) -> None:
    words = [DHAT, *BINARY, "--sort", "read"]
    text = answer(capfdbinary, *words, "--by", "callers")
    assert rows(text, "By function over the whole run (lives in instrs), the most bytes read first") == [
        ["100,000", "101", "25.08 k", "9", "100,000", "100,000", "load_parameters", "(heap)"],
        ["50,000", "1", "11.19 k", "1", "1", "50,000", "table_new", "(libtable.so)"],
        ["30,000", "1", "6.49 k", "1", "30,000", "0", "parse_file", "(heap)"],
    ]
    totals = result(capfdbinary, *words)["totals"]
    assert [(row["symbol"], row["read_bytes"], row["leaked_blocks"]) for row in totals] == [
        ("load_parameters", 9, 101),
        ("table_new", 1, 1),
        ("parse_file", 1, 0),
    ]
    assert totals[0]["temporary_blocks"] is None
    csv = answer(capfdbinary, *words, "--format", "csv").splitlines()
    assert csv[0].startswith("file,owner,symbol,name,allocated_bytes,allocated_blocks,temporary_blocks,lifetime,")
    assert "over the whole run (lives in instrs), the most bytes read first" in answer(
        capfdbinary, *words, "--format", "markdown"
    )


def test_totals_over_the_run_are_compared_where_an_order_is_asked_for(
    capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = answer(capfdbinary, DHAT, f"{SAMPLE}/heaptrack.txt", *BINARY, "--sort", "blocks")
    table = rows(text, "By function over the whole run: blocks")
    assert ["1", "1", "+0", "libtable.so", "table_new"] in table
    assert ["0", "1", "+1", "libstdc++.so.6", "[no symbol]"] in table


def test_the_json_has_trees_where_they_are_asked_for(capfdbinary: Captured) -> None:
    calls = result(capfdbinary, MASSIF, *BINARY, "--by", "tree")["calls"]
    assert [(row["node"], row["parent"], row["symbol"], row["bytes"]) for row in calls] == [
        (1, 0, "main", 180_000),
        (2, 1, "load_parameters", 100_000),
        (3, 1, "table_new", 50_000),
        (4, 1, "parse_file", 30_000),
    ]


# --- wrong use --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Missing argument"),
        ([MASSIF, "--at", "99"], "has no snapshot 99: the last one is 13"),
        ([MASSIF, "--at", "later"], "'later' is not a moment"),
        ([MASSIF, "--at", "4", "--at", "13"], "choose one moment of a profile: 4 or 13"),
        ([MASSIF, DHAT, "--by", "tree"], "--by tree shows one profile"),
        ([DHAT, MASSIF, "--sort", "read"], "massif.out does not count read"),
        ([MASSIF, "--sort", "read"], "does not count read: it counts nothing over the run"),
        ([DHAT, "--sort", "temporary"], "over the run it counts allocated, blocks, lifetime, read, written, leaked"),
        ([MASSIF, "--threshold", "101"], "101"),
        ([MASSIF, "--threshold", "nan"], "--threshold is a number of percent"),
        ([MASSIF, "--by", "line"], "'line'"),
    ],
)
def test_wrong_use_is_told(capfdbinary: Captured, words: list[str], message: str) -> None:
    code, error = refused(capfdbinary, *words)
    assert code == 2
    assert message in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([f"{SAMPLE}/heap"], "not a profile of massif, DHAT, heaptrack, Go, gperftools, jemalloc, pprof, V8, mtrace"),
        (["/nowhere"], "No such file"),
        ([SAMPLE], "it is a directory"),
        (["tests/corpus/heap/xtmemory-3.19-allocs.kcg"], "*.ms"),
        ([MASSIF, "--binary", "/nowhere"], "/nowhere: No such file"),
        ([MASSIF, "--binary", MASSIF], "massif.out"),
    ],
)
def test_what_cannot_be_read_is_one_error(capfdbinary: Captured, words: list[str], message: str) -> None:
    code, error = refused(capfdbinary, *words)
    assert code == 3
    assert message in error


# --- hostile profiles -------------------------------------------------------------------------------------------------


def profile(folder: Path, data: bytes) -> str:
    path = folder / "profile"
    path.write_bytes(data)
    return str(path)


def one_tree(*below: Line) -> bytes:
    size_bytes = sum(line.size_bytes for line in below)
    return massif([Moment(0, size_bytes, tree=Line(size_bytes, HEADING, below), is_peak=True)])


def test_more_children_than_there_are_is_a_note(capfdbinary: Captured, tmp_path: Path) -> None:
    text = (ROOT / MASSIF).read_bytes().replace(b"n4: 180000", b"n999999999: 180000")
    shown = answer(capfdbinary, profile(tmp_path, text))
    assert "heap-tree-unread" in shown
    assert "who asked for it is not known" in " ".join(shown.split())


def test_shares_of_a_profile_that_counts_bytes_twice_are_of_what_it_counts(
    capfdbinary: Captured, tmp_path: Path
) -> None:
    # Two callers of 150 and 30 bytes below 100.
    below = (Line(150, "0x1: f (in /lib/a.so)"), Line(30, "0x2: g (in /lib/b.so)"))
    shown = answer(capfdbinary, profile(tmp_path, massif([Moment(0, 100, tree=Line(100, HEADING, below))])))
    assert [line.split()[:3] for line in shown.splitlines() if line.startswith("    ") and "%" in line][:2] == [
        ["150", "83.33%", "a.so"],
        ["30", "16.67%", "b.so"],
    ]
    assert "a.so asked for 83.3% of the 180 B that its calls add up to" in " ".join(shown.split())


def test_numbers_of_forty_digits_are_a_note_or_an_error(capfdbinary: Captured, tmp_path: Path) -> None:
    text = (ROOT / MASSIF).read_bytes()
    shown = answer(capfdbinary, profile(tmp_path, text.replace(b"n1: 50000", b"n1: " + b"9" * 40)))
    assert "heap-tree-unread" in shown
    shown = answer(capfdbinary, profile(tmp_path, text.replace(b"mem_heap_B=150000", b"mem_heap_B=" + b"9" * 40)))
    assert "heap-lines-unread" in shown
    code, error = refused(capfdbinary, profile(tmp_path, b"heap profile: 1: " + b"9" * 40 + b" [1: 1] @ heapprofile\n"))
    assert (code, "the first line is not that of a heap profile" in error) == (3, True)


def test_a_label_of_a_megabyte_is_cut_where_it_is_shown(capfdbinary: Captured, tmp_path: Path) -> None:
    name = "f" * (1 << 20)
    text = one_tree(Line(5, f"0x1: {name} (in /{name}.so)"), Line(4, "0x2: g (in /b.so)"))
    path = profile(tmp_path, text)
    for by in ("function", "tree", "callers"):
        assert len(answer(capfdbinary, path, "--by", by, "-v")) < 20_000
    assert len(result(capfdbinary, path)["heap"][0]["symbol"]) == 1 << 20


def test_names_cannot_do_anything_to_a_terminal(capfdbinary: Captured, tmp_path: Path) -> None:
    tree = Line(5, HEADING, (Line(5, "0x1: \x1b[2Jf\u202e (in /lib/\x1b]0;x\x07.so)"),))
    moments = [Moment(time, 5, tree=tree, is_peak=time == 1) for time in range(4)]
    path = profile(tmp_path, massif(moments, command="a\x1b[31m", description="\x1b[1m", time_unit="\x1b[5m" * 9))
    for by in ("function", "tree", "callers"):
        shown = answer(capfdbinary, path, "--by", by)
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert r"\x1b[2Jf" in shown


def test_a_stack_of_a_hundred_thousand_calls_is_shown(capfdbinary: Captured, tmp_path: Path) -> None:
    addrs = b" ".join(b"0x%x" % (0x1000 + 16 * number) for number in range(100_000))
    text = b"heap profile: 1: 7 [1: 7] @ heapprofile\n 1: 7 [1: 7] @ " + addrs + b"\n\nMAPPED_LIBRARIES:\n"
    path = profile(tmp_path, text)
    for by in ("function", "tree", "callers"):
        assert "7 B of heap" in answer(capfdbinary, path, "--by", by)


def test_indentation_that_no_line_before_explains_is_a_note(capfdbinary: Captured, tmp_path: Path) -> None:
    text = one_tree(Line(5, "0x1: f")).replace(b" n0: 5", b" " * 100_000 + b"n0: 5")
    assert "heap-tree-unread" in answer(capfdbinary, profile(tmp_path, text))


def test_a_tree_of_two_thousand_levels_is_shown(capfdbinary: Captured, tmp_path: Path) -> None:
    levels = [
        b" " * depth + b"n%d: 5 0x%x: f%d (in /a.so)\n" % (depth < 2000, depth, depth) for depth in range(1, 2001)
    ]
    text = one_tree(Line(5, "0x1: f")).replace(b" n0: 5 0x1: f\n", b"".join(levels))
    assert b"n1: 5 0x1: f1" in text
    path = profile(tmp_path, text)
    for by in ("tree", "callers"):
        assert "f2000" in answer(capfdbinary, path, "--by", by, "--top", "0")


_BOUNDED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
from footprint.cli import main
sys.exit(main())
"""


def bounded(path: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command with 400 MiB of address space."""
    return subprocess.run(
        [sys.executable, "-c", _BOUNDED, "heap", path],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=120,
    )


def test_a_compressed_bomb_takes_no_memory(tmp_path: Path) -> None:
    head = (ROOT / MASSIF).read_bytes()
    bomb = gzip.compress(head + b" " * (256 << 20), compresslevel=1)
    done = bounded(profile(tmp_path, bomb))
    assert done.returncode in {0, 3}
    assert b"Traceback" not in done.stderr
    assert b"not enough memory" not in done.stderr
    assert done.stderr.count(b"\n") == (done.returncode == 3)


@pytest.mark.parametrize("end", [1, 20, 100, 200, 900, 2000, 3000])
def test_a_profile_that_is_cut_is_one_error_or_a_note(capfdbinary: Captured, tmp_path: Path, end: int) -> None:
    path = profile(tmp_path, (ROOT / MASSIF).read_bytes()[:end])
    code = main(["heap", path])
    out, error = capfdbinary.readouterr()
    if code == 3:
        assert error.count(b"\n") == 1
    else:
        assert (code, error) == (0, b"")
        assert b"Notes" in out
        assert main(["heap", path, "--strict", "-q"]) == 4


def test_a_profile_from_a_pipe_is_read(tmp_path: Path) -> None:
    code = "import sys; from footprint.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "heap", "-", "-q"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        input=(ROOT / MASSIF).read_bytes(),
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert b"175.8 KiB of heap" in done.stdout


def test_paths_that_a_profile_names_are_read_only_where_they_are_files(capfdbinary: Captured, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    text = (
        b"heap profile: 1: 7 [1: 7] @ heapprofile\n 1: 7 [1: 7] @ 0x1500\n\nMAPPED_LIBRARIES:\n"
        b"00001000-00002000 r-xp 00000000 00:00 1 " + os.fsencode(fifo) + b"\n"
    )
    shown = answer(capfdbinary, profile(tmp_path, text))
    assert "it is not a regular file, its functions are not named" in shown.replace("\n    ", " ")


@pytest.mark.parametrize("command", [b"./fifo", b"./folder", b"/bin/a\0b \xff", b"/" + b"a" * 70_000, b" ", b"./text"])
def test_a_command_without_a_program_names_no_objects(capfdbinary: Captured, tmp_path: Path, command: bytes) -> None:
    os.mkfifo(tmp_path / "fifo", 0o755)
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "text").chmod(0o755)
    text = (ROOT / MASSIF).read_bytes().replace(b"cmd: ./heap", b"cmd: " + command)
    answered = result(capfdbinary, profile(tmp_path, text))
    assert [row["slug"] for row in answered["notes"]] == ["heap-objects-untold"]


def test_what_one_profile_does_not_tell_is_no_difference(capfdbinary: Captured) -> None:
    # One run, in which 180,000 bytes were in use at the peak; massif tells the allocator's overhead, DHAT does not.
    for first, second in ((MASSIF, DHAT), (DHAT, MASSIF)):
        out = " ".join(answer(capfdbinary, first, second).split())
        assert out.endswith(f"{second} has as much as {first}.")
        assert f"Without [allocator overhead]: {DHAT} does not tell it." in out
        assert "824" not in out
    assert "[allocator overhead]" in answer(capfdbinary, MASSIF, MASSIF)


def test_profiles_that_count_different_things_are_not_compared(capfdbinary: Captured) -> None:
    folder = "tests/corpus/heap"
    copies, pages = (f"{folder}/{name}" for name in ("dhat-3.19-copy-ten.json", "massif-3.19-pages-as-heap.out"))
    told = f"{MASSIF} counts memory in use, {copies} bytes that are copied: compare profiles that count the same"
    assert refused(capfdbinary, MASSIF, copies) == (2, f"footprint: {told}\n")
    assert f"{pages} address space: " in refused(capfdbinary, MASSIF, pages)[1]
    assert f"{copies} has as much as {copies}." in " ".join(answer(capfdbinary, copies, copies).split())


@pytest.mark.parametrize(
    ("name", "last"),
    [
        (
            "pprof-go1.26-kept.pb.gz",
            "3.13 MiB of heap when it was saved: kept asked for 100.0% of it, its main.blocks for 93.7%; the object is",
        ),
        ("heapprofile-go1.26-kept-sampled.txt.gz", "3.30 MiB of heap when it was saved"),
        ("leaksanitizer-gcc12-leaks.txt", "330,000 bytes leaked over the whole run, nothing refers to them any more."),
        ("mtrace-glibc2.36-leaks.txt", "322.3 KiB of heap at the peak (snapshot 0): ./leaks asked for 100.0% of it"),
        ("malloc_info-glibc2.36-leaks.xml", "333.6 KiB of heap when it was saved"),
        ("nmt-openjdk17.txt", "9.90 MiB of heap when it was saved"),
        ("v8-node20-kept.heapprofile", "42.9 MiB of heap when it was saved"),
    ],
)
def test_the_profiles_of_other_tools_are_shown(name: str, last: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = f"tests/corpus/heap/{name}"
    text = answer(capfdbinary, path)
    assert last in " ".join(text.split())
    (profile,) = result(capfdbinary, path)["profiles"]
    assert profile["file"] == path
