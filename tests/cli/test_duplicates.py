"""`footprint duplicates` as a user runs it: what it prints at which width, its options, and what it refuses."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from footprint.cli import main
from tests.elfwriter import ET_REL, RO, RW, RX, SHN_ABS, STB_LOCAL, STT_FILE, At, ElfFile, Section, Sym, write
from tests.jsonschemas import WRITTEN

ROOT = Path(__file__).resolve().parents[2]
CONDOR = "sample_binaries/condor_shadow"
OF_HEADER = "sample_binaries/declared_in_header/gcc_dwarf_5.so"
GOLDEN = Path(__file__).resolve().parent / "golden"

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def ask(captured: Captured, *words: str, code: int = 0) -> str:
    assert main(["duplicates", *words]) == code
    out, error = captured.readouterr()
    assert code or not error
    return out or error


def ask_json(captured: Captured, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ask(captured, *words, "--json"))
    assert [error.message for error in WRITTEN.iter_errors(found)] == []
    return found


def source(name: str) -> Sym:
    return Sym(name, type=STT_FILE, binding=STB_LOCAL, section=SHN_ABS)


def several(folder: Path, name: str, symbol: str, *sources: str, section: str = ".data") -> str:
    """Write a file that has a variable of 32 bytes for each source file."""
    symbols = []
    for at, one in enumerate(sources):
        symbols += [source(one), Sym(symbol, At(section, 32 * at), 32, binding=STB_LOCAL)]
    data = bytes(range(1, 33)) * max(1, len(sources))
    sections = [Section(section, flags=RO if section == ".rodata" else RW, data=data)]
    path = folder / name
    path.write_bytes(write(ElfFile(sections=sections, symbols=symbols)))
    return str(path)


# --- what it prints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("duplicates-base", [f"{CONDOR}/base"]),
        ("duplicates-base_debug", [f"{CONDOR}/base_debug", "-n", "10000"]),
        ("duplicates-sans_crypt", [f"{CONDOR}/sans_crypt"]),
    ],
)
def test_the_text_is_the_one_that_was_agreed_on(capsys: Captured, name: str, words: list[str]) -> None:
    assert ask(capsys, *words) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("columns", ["80", "120"])
def test_a_pipe_gets_lines_as_long_as_columns_says(columns: str) -> None:
    words = [sys.executable, "-m", "footprint", "duplicates", f"{CONDOR}/base"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": columns}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert int(columns) - 20 < max(map(len, done.stdout.splitlines())) <= int(columns)


def test_a_long_name_is_cut_at_its_beginning_and_whole_with_v(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"_ZN{90}{'a' * 90}L5tableE"
    path = several(tmp_path, "program", name, "a.cc", "b.cc", "c.cc")
    rows = ask(capsys, path).splitlines()
    assert re.fullmatch(r"   64 B .*  \.\.\.a{10,}::table", rows[2])
    assert rows[3].strip() == "a.cc and 2 more"
    assert max(map(len, rows[1:4])) == 80
    assert f"    {name}\n" in ask(capsys, path, "-v")
    monkeypatch.setenv("COLUMNS", "200")
    assert ask(capsys, path, "-v").splitlines()[2].endswith(f"  {name}  a.cc, b.cc, c.cc")


def test_top_cuts_the_table_and_says_what_is_left_out(capsys: Captured, tmp_path: Path) -> None:
    symbols = []
    for unit in ("a.c", "b.c"):
        symbols.append(source(unit))
        symbols += [
            Sym(f"table_{at}", At(".data", 32 * (2 * at + (unit == "b.c"))), 32, binding=STB_LOCAL) for at in range(3)
        ]
    path = tmp_path / "program"
    data = Section(".data", flags=RW, data=bytes(range(1, 33)) * 6)
    path.write_bytes(write(ElfFile(sections=[data], symbols=symbols)))
    rows = ask(capsys, str(path), "--top", "1").splitlines()
    assert rows[2].endswith("  table_0  a.c and 1 more")
    # They are copies only by name: the row that stands for them has no sum.
    assert rows[3].split() == ["[2", "more:", "--top", "0", "shows", "all]"]
    assert "more:" not in ask(capsys, str(path), "--top", "0")
    rows = ask(capsys, OF_HEADER, "--top", "0").splitlines()
    assert [row.split()[-3] for row in rows[2:6]] == ["proof", "medium", "medium", "medium"]


def test_a_count_multiplies_what_is_private(capsys: Captured, tmp_path: Path) -> None:
    # 106 of 107 copies of 4 bytes.
    private = ask(capsys, f"{CONDOR}/base", "-n", "2000").replace("\n", " ")
    assert "; up to 828.1 KiB in 2,000 processes." in private
    # Two source files have two constants in common.
    symbols = []
    for unit, at in (("a.cc", 0), ("b.cc", 64)):
        names = ("_ZN2nsL5tableE", "_ZN2nsL5namesE")
        symbols += [
            source(unit),
            *(Sym(name, At(".rodata", at + 32 * n), 32, 1, STB_LOCAL) for n, name in enumerate(names)),
        ]
    path = tmp_path / "shared"
    path.write_bytes(
        write(ElfFile(sections=[Section(".rodata", flags=RO, data=bytes(range(1, 33)) * 4)], symbols=symbols))
    )
    shared = ask(capsys, str(path), "-n", "2000")
    assert shared.splitlines()[-1] == "One of each instead of all copies saves 64 B shared only."


def test_what_is_a_copy_only_by_name_is_not_summed_up(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "program"
    symbols = [Sym("table", At(".data", 32 * at), 32, binding=STB_LOCAL) for at in range(2)]
    data = Section(".data", flags=RW, data=bytes(range(1, 33)) * 2)
    path.write_bytes(write(ElfFile(sections=[data], symbols=symbols)))
    text = " ".join(ask(capsys, str(path)).split())
    assert text.endswith(
        "There is nothing to save for sure by having one of each; 32 B more would be copies only by name."
    )


def test_what_needs_a_check_first_is_in_no_sum(capsys: Captured) -> None:
    text = " ".join(ask(capsys, OF_HEADER).split())
    assert text.endswith("saves 32 B private at start (proof and high); 160 B more need a check first.")
    found = ask_json(capsys, OF_HEADER)
    rows = [(one["waste_bytes"], one["confidence"]) for one in found["duplicates"]]
    assert sorted(rows) == [(32, "medium"), (32, "proof"), (64, "medium"), (64, "medium")]
    assert [one["waste_bytes"] for one in found["files"]] == [32]
    figures = ask(capsys, OF_HEADER, "--format", "openmetrics").splitlines()
    assert [one.rsplit(" ", 1)[1] for one in figures if one.startswith("footprint_duplicate_waste_bytes{")] == ["32"]


def test_only_the_last_line_is_left_with_q(capsys: Captured) -> None:
    assert (
        ask(capsys, f"{CONDOR}/base", "-q") == "One of each instead of all copies saves 424 B private when touched.\n"
    )


# --- several files, and processes -------------------------------------------------------------------------------------


def test_of_several_files_each_row_names_its_own_and_what_they_share_is_told(capsys: Captured, tmp_path: Path) -> None:
    first = several(tmp_path, "first", "s_box", "crypt.c", *["other.c"] * 8)
    second = several(tmp_path, "second", "s_box", "crypt.c", "hash.c")
    found = ask_json(capsys, first, second)
    assert [file["file"] for file in found["files"]] == [first, second]
    assert {row["file"] for row in found["duplicates"]} == {first, second}
    row = ask(capsys, first, second).splitlines()[2:4]
    assert (row[0].split()[-5:], row[1].strip()) == (["s_box", "crypt.c", "and", "1", "more"], "(first)")
    assert f"  ({first})\n" in ask(capsys, first, second, "-v")


def test_what_is_linked_in_twice_is_told_by_cost(capsys: Captured, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("program", "library.so")]
    symbols = [
        source("crypt.c"),
        *(Sym(name, At(".data", at), 256, 1, STB_LOCAL) for at, name in ((0, "a"), (256, "b"))),
    ]
    data = Section(".data", flags=RW, data=bytes(range(1, 129)) * 4)
    for path in paths:
        Path(path).write_bytes(write(ElfFile(sections=[data], symbols=symbols)))
    text = " ".join(ask(capsys, *paths, paths[0]).split())
    assert text.startswith(f"{paths[0]}, {paths[1]}: 4 variables from 2 source files")
    assert "2 copies of crypt.c, in program, library.so: 2 variables of 512 B each time; all but one take 512 B" in text
    # Each program may have its own contents of what it writes.
    last = "512 B private when touched; make sure first that one does for all."
    assert text.endswith(f"What is linked in several times takes more than it would once: {last}")
    (row,) = ask_json(capsys, *paths)["linked_twice"]
    assert (row["waste_bytes"], row["waste_by_cost"]) == (512, {"private when touched": 512})


def test_what_the_notes_say_of_many_files_is_said_once(capsys: Captured, tmp_path: Path) -> None:
    files = [several(tmp_path, f"library_{at}.so", f"x_{at}", "a.c", "b.c") for at in range(3)]
    text = " ".join(ask(capsys, *files).split())
    assert text.count("debug-info-absent") == 1
    assert f"debug-info-absent: 3 files, such as {files[0]}: it has no .debug_info" in text
    assert len(ask_json(capsys, *files)["notes"]) == 3


def test_a_file_that_is_named_twice_is_read_once(capsys: Captured) -> None:
    found = ask_json(capsys, f"{CONDOR}/base", f"{CONDOR}/base")
    assert (len(found["files"]), found["linked_twice"]) == (1, [])
    assert [(one["slug"], one["detail"]) for one in found["notes"] if one["slug"] == "file-repeated"] == [
        ("file-repeated", "it is named several times, and counted once")
    ]


def test_two_links_to_a_file_are_one_file(capsys: Captured, tmp_path: Path) -> None:
    path = several(tmp_path, "program", "s_box", "a.c", "b.c")
    os.link(path, tmp_path / "hard")
    os.symlink("program", tmp_path / "soft")
    found = ask_json(capsys, path, str(tmp_path / "hard"), str(tmp_path / "soft"))
    assert [file["file"] for file in found["files"]] == [path]
    repeated = [(one["subject"], one["detail"]) for one in found["notes"] if one["slug"] == "file-repeated"]
    told = f"it is {path} by another name, and counted once"
    assert repeated == [(str(tmp_path / "hard"), told), (str(tmp_path / "soft"), told)]


def test_one_file_of_several_that_cannot_be_read_is_a_note(capsys: Captured, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no ELF file")
    found = ask_json(capsys, f"{CONDOR}/sans_crypt", str(text))
    assert [(note["slug"], note["subject"]) for note in found["notes"] if note["subject"] == str(text)] == [
        ("file-unreadable", str(text))
    ]
    assert ask(capsys, str(text), str(tmp_path / "absent"), code=3).startswith("footprint: ")


# --- what it refuses, and what it warns of ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "code", "cause"),
    [
        ("README.md", 3, "not an ELF file"),
        ("absent", 3, "No such file"),
    ],
)
def test_what_is_no_linked_file_is_refused_in_one_line(capsys: Captured, path: str, code: int, cause: str) -> None:
    error = ask(capsys, path, code=code)
    assert error.startswith(f"footprint: {path}")
    assert cause in error
    assert error.count("\n") == 1


def test_of_a_stripped_file_the_notes_say_what_cannot_be_told(capsys: Captured) -> None:
    path = "sample_binaries/stripped_shared_object/variables.so"
    text = " ".join(ask(capsys, path).split())
    assert f"no-source-files: {path}: it is stripped: only exported variables are known" in text
    assert "no variable is there more than once, as far as its symbols show" in text
    assert main(["duplicates", path, "--strict"]) == 4


def test_of_a_file_without_variables_it_is_said_that_nothing_can_be_told(capsys: Captured) -> None:
    text = " ".join(ask(capsys, "sample_binaries/no_section_headers/no_section_headers.so").split())
    assert "no symbol names a variable: copies of variables are not known" in text
    assert text.endswith("No variable has a name: there is nothing to compare.")


def test_hostile_names_come_out_escaped(capsys: Captured, tmp_path: Path) -> None:
    path = several(tmp_path, "program", "x\x1b[31m\u202e", "a\x1b.c", "b\udcff.c")
    text = ask(capsys, path, "-v")
    assert text.replace("\n", "").isprintable()
    assert "x\\x1b[31m" in text
    assert ask_json(capsys, path)["duplicates"][0]["symbol"] == "x\x1b[31m\u202e"


def test_objects_and_archives_are_looked_at_before_they_are_linked(capsys: Captured) -> None:
    found = ask_json(capsys, "sample_binaries/common_symbols/common_symbols.o")
    assert [one["file"] for one in found["files"]] == ["sample_binaries/common_symbols/common_symbols.o"]
    archive = "sample_binaries/archive_of_objects/libmembers.a"
    found = ask_json(capsys, archive)
    assert [one["file"] for one in found["files"]] == [archive]
    assert found["files"][0]["unit_count"] == 2


def test_an_object_of_an_empty_source_file_has_no_symbols_and_the_others_are_looked_at(
    capsys: Captured, tmp_path: Path
) -> None:
    symbols = [source("a.c"), Sym("x", At(".data", 0), 32, binding=STB_LOCAL)]
    parts = {
        "a.o": ElfFile(type=ET_REL, sections=[Section(".data", flags=RW, data=bytes(32))], symbols=symbols),
        "empty.o": ElfFile(type=ET_REL, sections=[Section(".text", flags=RX, data=b"")]),
        "stripped.o": ElfFile(type=ET_REL, sections=[Section(".data", flags=RW, data=bytes(32))]),
    }
    for name, file in parts.items():
        (tmp_path / name).write_bytes(write(file))
    found = ask_json(capsys, *(str(tmp_path / name) for name in parts))
    assert [(one["variable_count"], one["unit_count"]) for one in found["files"]] == [(1, 1)]
    lacking = [Path(note["subject"]).name for note in found["notes"] if "symbol table" in note["detail"]]
    assert lacking == ["stripped.o"]
