"""`footprint audit --heap` and `run --massif` as a user asks for them: text, JSON, and questions that do not fit."""

import json
import re
import shutil
from pathlib import Path

import pytest

from footprint.cli import main
from footprint.findings.registry import rule_names
from tests.cli.test_schema import validate
from tests.heapjoins import moment
from tests.massifwriter import Moment, massif

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).resolve().parent / "golden"
SMAPS = "tests/corpus/smaps-sleep.txt"
MASSIF = "sample_binaries/heap_by_function/massif.out"
PMAP = "tests/cases/condor_shadow/pmap-d.base.txt"

Captured = pytest.CaptureFixture[bytes]


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def answer(captured: Captured, *words: str) -> str:
    code = main(list(words))
    out, error = captured.readouterr()
    assert (code, error) == (0, b"")
    return out.decode()


@pytest.fixture
def profile(tmp_path: Path) -> str:
    """Return a profile of the scheduler's process: 335.8 KB at its peak, as its maintainer found."""
    path = tmp_path / "massif.out"
    calls = (("/bin/condor_shadow-base", "param_table", 300_000), ("/bin/condor_shadow-base", "read_config", 41_000))
    moments = [moment(*calls, time=time * 10**7, extra_bytes=2_859, is_peak=time == 3) for time in range(8)]
    path.write_bytes(massif(moments))
    return str(path)


def test_the_heap_stands_behind_the_ledger_with_nothing_unexplained(
    capfdbinary: Captured, profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / PMAP, "pmap.txt")
    words = ["audit", "pmap.txt", "--heap", Path(profile).name, "--heap-at", "peak", "--top", "6"]
    assert answer(capfdbinary, *words) == (GOLDEN / "audit-heap.txt").read_text(encoding="utf-8")


def test_the_json_is_what_the_schema_says_and_is_shown_again(
    capfdbinary: Captured, profile: str, tmp_path: Path
) -> None:
    for at in ("peak", "0"):
        text = answer(capfdbinary, "audit", SMAPS, "--heap", profile, "--heap-at", at, "--json")
        found = json.loads(text)
        validate(found)
        account = found["heap_account"]
        assert account["snapshot"] == (3 if at == "peak" else 0)
        assert account["difference_bytes"] < 0  # `sleep` has less
        assert min(row["bytes"] for row in found["ledger"] if row["kind"] == "heap") >= 0
    saved = tmp_path / "saved.json"
    saved.write_text(text, encoding="utf-8")
    plain = answer(capfdbinary, "audit", SMAPS, "--heap", profile, "--heap-at", "0")
    heading = "The heap, by who asked for it"
    again = answer(capfdbinary, "audit", str(saved))
    assert again[again.index(heading) :] == plain[plain.index(heading) :]
    assert json.loads(answer(capfdbinary, "diff", str(saved), SMAPS, "--json"))["diff"]


def test_reviewers_are_told_of_the_rules_that_were_applied_and_no_others(capfdbinary: Captured, profile: str) -> None:
    def passed_or_found(*words: str) -> set[str]:
        return set(re.findall(r'classname="footprint\.([a-z-]+)"', answer(capfdbinary, *words, "--format", "junit")))

    program = "sample_binaries/condor_shadow/base"
    assert passed_or_found("audit", SMAPS, "--heap", profile) == {"heap-at-start", "heap-unused"}
    assert passed_or_found("audit", program) == set(rule_names()) - {"heap-at-start", "heap-unused"}
    assert passed_or_found("diff", program, program) == set(rule_names()) - {"heap-at-start", "heap-unused"}


def test_a_saved_audit_is_joined_too(capfdbinary: Captured, profile: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    answer(capfdbinary, "audit", SMAPS, "-o", str(saved))
    late = json.loads(answer(capfdbinary, "audit", str(saved), "--heap", profile, "--json"))
    at_once = json.loads(answer(capfdbinary, "audit", SMAPS, "--heap", profile, "--json"))
    assert late["ledger"] == at_once["ledger"]
    twice = tmp_path / "twice.json"
    twice.write_text(json.dumps(late), encoding="utf-8")
    assert main(["audit", str(twice), "--heap", profile]) == 2
    assert b"split already" in capfdbinary.readouterr().err


def test_an_object_is_known_by_whatever_path_leads_to_it(capfdbinary: Captured, tmp_path: Path) -> None:
    library = tmp_path / "usr" / "lib" / "libtable.so"
    library.parent.mkdir(parents=True)
    library.touch()
    (tmp_path / "lib").symlink_to("usr/lib")
    text = tmp_path / "smaps.txt"
    counters = "Size: 64 kB\nRss: 64 kB\nAnonymous: 64 kB\nPrivate_Dirty: 64 kB\n"
    text.write_text(
        f"7f0000000000-7f0000010000 r-xp 00000000 08:01 7 {library}\nSize: 64 kB\nRss: 0 kB\nAnonymous: 0 kB\n"
        f"7f1000000000-7f1000010000 rw-p 00000000 00:00 0 [heap]\n{counters}",
        encoding="utf-8",
    )
    asked = moment((f"{tmp_path}/lib/libtable.so", "table_new", 50_000))
    (tmp_path / "massif.out").write_bytes(massif([asked] * 5))
    found = json.loads(answer(capfdbinary, "audit", str(text), "--heap", str(tmp_path / "massif.out"), "--json"))
    assert [(one["owner"], one["symbol"]) for one in found["heap_account"]["shares"]] == [(str(library), "table_new")]
    assert [(one["object"], one["subject"]) for one in found["findings"]] == [(str(library), f"{library} table_new")]
    assert "heap-profile-misfit" not in {note["slug"] for note in found["notes"]}


@pytest.mark.parametrize("path", ["/a\0b.so", "/a\x1b[2Jb.so", "/" + "a/" * 100_000, "/\udcff.so"])
def test_what_a_profile_calls_a_path_may_be_anything(capfdbinary: Captured, tmp_path: Path, path: str) -> None:
    (tmp_path / "massif.out").write_bytes(massif([moment((path, "\x1b[31mred", 50_000))]))
    words = ["audit", SMAPS, "--heap", str(tmp_path / "massif.out")]
    text = answer(capfdbinary, *words)
    assert "\x1b" not in text
    assert "\0" not in text
    validate(json.loads(answer(capfdbinary, *words, "--json")))


def test_grouped_by_symbol_functions_are_told_from_variables(capfdbinary: Captured, profile: str) -> None:
    text = answer(capfdbinary, "audit", PMAP, "--heap", profile, "--by", "symbol", "--top", "3")
    assert "condor_shadow-base  [heap]  param_table" in text


@pytest.mark.parametrize(
    ("code", "words", "says"),
    [
        (2, ["audit", SMAPS, "--heap-at", "peak"], "need an allocator profile of the heap (--heap)"),
        (2, ["audit", SMAPS, "--binary", "f"], "need an allocator profile of the heap (--heap)"),
        (3, ["audit", SMAPS, "--heap", MASSIF, "--binary", "no-such-file"], "No such file"),
        (2, ["audit", SMAPS, "--alloc-fn", "f"], "need an allocator profile of the heap (--heap)"),
        (2, ["audit", "-", "--heap", "-"], "standard input can be the process or the profile of its heap, not both"),
        (2, ["audit", "1", "2", "--heap", MASSIF], "1 2 is a group of processes"),
        (2, ["audit", "--all", "sample_binaries", "--heap", MASSIF], "sample_binaries is a folder of programs"),
        (
            2,
            ["audit", "sample_binaries/heap_by_function/heap", "--heap", MASSIF],
            "--heap goes with a live process, a capture,",
        ),
        (2, ["audit", SMAPS, "--heap", MASSIF, "--heap-at", "999"], "has no snapshot 999"),
        (2, ["audit", SMAPS, "--heap", MASSIF, "--heap-at", "4", "--heap-at", "end"], "choose one moment"),
        (
            2,
            ["audit", SMAPS, "--heap", "tests/corpus/heap/dhat-3.19-copy-ten.json"],
            "has no memory in use at a moment",
        ),
        (3, ["audit", SMAPS, "--heap", "no-such-file"], "No such file"),
        (3, ["audit", SMAPS, "--heap", SMAPS], "not a profile of massif"),
        (2, ["run", "--massif", "--massif-timeout", "nan", "--", "true"], "not a number of seconds"),
        (3, ["run", "--massif-out", "/no/such/folder/massif.out", "--", "true"], ""),
    ],
)
def test_what_does_not_fit_is_refused(capfdbinary: Captured, code: int, words: list[str], says: str) -> None:
    assert main(words) == code
    out, error = capfdbinary.readouterr()
    assert out == b""
    assert says in error.decode()


def test_without_valgrind_nothing_is_run(
    capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    mark = tmp_path / "mark"
    assert main(["run", "--massif", "--", "/bin/touch", str(mark)]) == 3
    out, error = capfdbinary.readouterr()
    assert (out, error) == (
        b"",
        b"footprint: valgrind: it is not installed, or anybody may replace it; massif is a part of it\n",
    )
    assert not mark.exists()


def test_the_parts_of_private_memory_add_up_to_it(capfdbinary: Captured) -> None:
    document = json.loads(answer(capfdbinary, "audit", SMAPS, "--json"))
    lines = answer(capfdbinary, "audit", SMAPS, "--top", "20").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("  private memory"))
    parts = [re.split(r"  +", line.strip()) for line in lines[start : start + 5]]
    assert [part[0] for part in parts] == [
        "private memory",
        "heap",
        "program and libraries",
        "stacks",
        "anonymous and other",
    ]
    # Each is a whole number of KiB.
    whole, *sizes = (int(part[1].removesuffix(" KiB")) for part in parts)
    assert sum(sizes) == whole == document["totals"]["private_bytes"] // 1024


def test_the_last_line_says_how_much_is_heap_and_who_asked_for_the_most(capfdbinary: Captured, profile: str) -> None:
    text = " ".join(answer(capfdbinary, "audit", SMAPS, "--heap", profile).split())
    heap = re.search(r"heap of the process ([0-9.]+ [KM]iB)", text)
    assert heap is not None
    assert f"{heap[1]} of each is heap; param_table of condor_shadow-base asked for the most, 293.0 KiB." in text
    assert "In the ledger its functions have the heap's bytes" in text


def test_a_join_with_a_peak_that_has_no_call_tree_says_so(capfdbinary: Captured, tmp_path: Path) -> None:
    # As massif does for memory that grows until the end: its mark is at 60,000 bytes.
    path = tmp_path / "massif.out"
    marked = moment(("/usr/bin/sleep", "early", 60_000), time=1, is_peak=True)
    path.write_bytes(massif([marked, Moment(9, 4_890_000)]))
    text = " ".join(answer(capfdbinary, "audit", SMAPS, "--heap", str(path), "--heap-at", "peak").split())
    assert "snapshot 0 (58.6 KiB live) is used for the peak: it has the largest call tree" in text
    assert "snapshot 1 (4.66 MiB live) has none" in text


def test_what_is_asked_for_and_not_held_may_have_been_freed_after_the_last_snapshot(
    capfdbinary: Captured, profile: str
) -> None:
    text = " ".join(answer(capfdbinary, "audit", SMAPS, "--heap", profile).split())
    assert "[asked for, and not held]" in text
    assert "some of it was freed after this snapshot, or the runs differ" in text
