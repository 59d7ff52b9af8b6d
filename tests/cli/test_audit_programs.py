"""`footprint audit` of programs that were not started, as a user runs it: text and JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from footprint.cli import main
from tests.elfwriter import (
    DT_NEEDED,
    DT_SONAME,
    RO,
    RW,
    SHT_DYNAMIC,
    SHT_NOBITS,
    SHT_RELA,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Sym,
    write,
)
from tests.jsonschemas import WRITTEN
from tests.sysroot import GLIBC, Sysroot

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_binaries"
K = 1024

Captured = pytest.CaptureFixture[bytes]
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a system of a program, a library with two pages of pointers, and a loader."""
    root = Sysroot(tmp_path / "root")
    root.loader()
    dynamic = Section(".dynamic", SHT_DYNAMIC, RW, addr=0x3000)
    data = Section(".data", flags=RW, data=bytes(0x3800), addr=0x4000)
    bss = Section(".bss", SHT_NOBITS, RW, size=0x1000)
    table = Section(".rela.dyn", SHT_RELA, RO, [Rel(0x4000, 8, addend=0), Rel(0x5FF8, 8, addend=0)])
    interpreter = Section(".interp", flags=RO, data=GLIBC.encode() + b"\0")
    program = ElfFile(sections=[interpreter, dynamic, data, bss], dynamic=[Dyn(DT_NEEDED, "libone.so")])
    library = ElfFile(
        sections=[table, dynamic, data, bss],
        dynamic=[Dyn(DT_SONAME, "libone.so")],
        symbols=[Sym("table", At(".data"), 0x2000)],
    )
    root.file("/bin/program", write(program))
    root.file("/usr/lib/libone.so", write(library))
    return root.root


def answer(captured: Captured, *words: str, verb: str = "audit") -> str:
    code = main([verb, *words])
    out, error = captured.readouterr()
    assert (code, error) == (0, b"")
    return out.decode()


def of_root(captured: Captured, root: Path, *words: str) -> str:
    return answer(captured, "/bin/program", "--root", str(root), "--page-size", "4KiB", *words)


def part(text: str, heading: str) -> list[str]:
    """Return the lines below a heading."""
    blocks = [block.splitlines() for block in text.split("\n\n")]
    return next(lines[1:] for lines in blocks if lines[0].startswith(heading))


def test_the_text_says_that_nothing_was_run_and_what_the_objects_hold(capfdbinary: Captured, root: Path) -> None:
    text = of_root(capfdbinary, root)
    assert text.startswith("footprint audit: /bin/program\n  Predicted from its files, nothing was run: ")
    assert part(text, "Where the private memory is, by owner") == [
        "  private  of private   mapped  owner",
        "   16 KiB       30.8%   36 KiB  libone.so",
        "   12 KiB       23.1%  132 KiB  [stack]",
        "   12 KiB       23.1%   12 KiB  [loader and thread block]",
        "    8 KiB       15.4%   28 KiB  program",
        "    4 KiB        7.7%    8 KiB  ld-linux-x86-64.so.2",
        "   52 KiB      100.0%  216 KiB  [total]",
    ]


def test_the_pages_of_files_are_explained_without_a_process(capfdbinary: Captured, root: Path) -> None:
    text = of_root(capfdbinary, root, "--top", "20")
    # The two of the table, and of seven that are written five others.
    assert part(text, "Why pages of files will be private") == [
        "  pages with relocations   8 KiB  each holds addresses that depend on where it",
        "                                  is loaded",
        "  other pages             20 KiB  the loader's notes, the start of .bss, first",
        "                                  steps of the C library",
    ]
    for word in ("written by the program", "pmap", "smaps", "shared"):
        assert word not in text


def test_the_life_of_one_and_of_many_is_told(capfdbinary: Captured, root: Path) -> None:
    one = [line.split() for line in part(of_root(capfdbinary, root), "From its start to full use, heap apart")]
    assert [line[-1] for line in one] == ["estimated", "estimated"]
    many = part(of_root(capfdbinary, root, "-n", "1000"), "From its start to full use, heap apart")
    assert all(line.endswith(" for all") for line in many)


def test_the_last_line_says_when(capfdbinary: Captured, root: Path) -> None:
    assert of_root(capfdbinary, root, "-q").endswith(" at its start (estimated).\n")
    assert of_root(capfdbinary, root, "-q", "-n", "1000").endswith(" each at their start (estimated).\n")


def test_a_table_of_pointers_is_a_finding_with_its_remedy(capfdbinary: Captured, root: Path) -> None:
    found = " ".join(" ".join(part(of_root(capfdbinary, root, "-n", "1000", "-v"), "Findings")).split())
    assert "relocated-tables (medium): table (.data of libone.so, 8 KiB) is written at start." in found
    assert "It saves 8 KiB a process, 7.81 MiB in 1,000." in found
    assert "Remedy: hold offsets or indexes instead of pointers" in found


def test_a_program_can_be_projected(capfdbinary: Captured, root: Path) -> None:
    text = answer(capfdbinary, "/bin/program", "--root", str(root), "--memory", "1GiB")
    assert text.rstrip().endswith("at their start (estimated).")
    assert "processes fit into 1 GiB" in text


@pytest.mark.parametrize("model", ["fork", "threads"])
def test_other_models_are_refused_in_one_line(capfdbinary: Captured, root: Path, model: str) -> None:
    assert main(["audit", "/bin/program", "--root", str(root), "-n", "2", "--model", model]) == 2
    out, error = capfdbinary.readouterr()
    assert (out, error) == (b"", f"footprint: the {model} model needs a live process, not a file\n".encode())


PROGRAMS = sorted(
    str(path.relative_to(SAMPLES))
    for path in SAMPLES.glob("*/*")
    if path.is_file() and path.suffix in {"", ".so"} and path.read_bytes()[:4] == b"\x7fELF"
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_audit_of_each_sample_is_valid_and_adds_up(capfdbinary: Captured, name: str) -> None:
    result: Json = json.loads(answer(capfdbinary, str(SAMPLES / name), "-n", "7", "--json"))
    assert [error.message for error in WRITTEN.iter_errors(result)] == []
    totals = result["totals"]
    own = [row for row in result["ledger"] if row["kind"] != "kernel"]
    assert sum(row["bytes"] for row in own) == totals["private_bytes"]
    assert sum(row["mapped_bytes"] for row in own) == totals["mapped_bytes"]
    assert sum(row["mapped_bytes"] for row in own if row["is_writable"]) == totals["mapped_writable_bytes"]
    assert 0 < totals["floor_bytes"] <= totals["ceiling_bytes"]
    assert totals["private_bytes"] > totals["floor_bytes"]
    assert totals["shared_once_bytes"] is None
    assert result["target"] | {"source": "prediction", "pid": None, "is_live": False} == result["target"]
    assert result["projection"]["total_bytes"] == 7 * totals["per_process_bytes"]
    assert [point["name"] for point in result["projection"]["points"]] == ["just started", "every variable written"]
    savings = [one["saving_bytes"] for one in result["findings"]]
    assert savings == sorted(savings, reverse=True)
    assert all(one["saving_at_count_bytes"] == 7 * one["saving_bytes"] for one in result["findings"])
