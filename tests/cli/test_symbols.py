"""`footprint symbols` with linker maps, filters and sums, as a user runs it."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from footprint.cli import main
from footprint.formats.words import SCHEMA_PATH
from footprint.verbs.symbols import call as verb
from tests.elfwriter import (
    ET_DYN,
    ET_REL,
    RW,
    SHT_REL,
    SHT_RELA,
    At,
    ElfFile,
    Rel,
    Section,
    Sym,
    archive,
    write,
)

ROOT = Path(__file__).resolve().parents[2]
MAPS = ROOT / "tests" / "corpus" / "linker_maps"
BASE = str(ROOT / "sample_binaries" / "condor_shadow" / "base")
BFD, BFD_MAP = str(MAPS / "bfd-64.so"), str(MAPS / "bfd-64.map")
LLD, LLD_MAP = str(MAPS / "lld-64.so"), str(MAPS / "lld-64.map")

R_X86_64_64 = 1
Captured = pytest.CaptureFixture[bytes]


def call(captured: Captured, *words: str) -> tuple[int, str, str]:
    code = main(["symbols", *words])
    out, error = captured.readouterr()
    return code, out.decode(), error.decode()


def answer(captured: Captured, *words: str) -> str:
    code, out, error = call(captured, *words)
    assert (code, error) == (0, ""), (words, error)
    return out


def asked(captured: Captured, *words: str) -> dict[str, Any]:
    """Ask for JSON, checked against the schema, its origins checked to add up to the sections."""
    result: dict[str, Any] = json.loads(answer(captured, *words, "--json"))
    Draft202012Validator(json.loads(SCHEMA_PATH.read_text())).validate(result)
    sums: Counter[tuple[str, str]] = Counter()
    for row in result["origins"]:
        sums[row["file"], row["section"]] += row["size_bytes"]
    sizes: Counter[tuple[str, str]] = Counter()
    for row in result["sections"]:
        sizes[row["file"], row["section"]] += row["size_bytes"]
    assert sums == sizes
    return result


def rows(text: str, title: str) -> list[list[str]]:
    """Return the rows of a table below its title and headings."""
    _, _, below = text.partition(f"\n{title}\n")
    return [line.split() for line in below.partition("\n\n")[0].splitlines()[1:]]


# --- by a map ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("linker", ["bfd", "gold", "lld", "mold"])
def test_a_map_tells_the_object_of_each_variable(capfdbinary: Captured, linker: str) -> None:
    file, map_ = str(MAPS / f"{linker}-64.so"), str(MAPS / f"{linker}-64.map")
    found = asked(capfdbinary, file, "--map", map_)
    assert found["target"] == {"files": [file], "map": map_}
    objects = {row["symbol"]: (row["object"], row["member"]) for row in found["symbols"]}
    assert objects["first_bss"] == ("first.o", None)
    assert objects["second_common"] == ("libsecond.a", "second.o")
    table = {row[3]: row[2] for row in rows(answer(capfdbinary, file, "--map", map_), "Variables") if len(row) == 4}
    assert table["first_bss"] == "first.o"
    assert table["second_common"] == "libsecond.a(second.o)"


def test_what_variables_are_added_up_by(capfdbinary: Captured) -> None:
    files = rows(answer(capfdbinary, LLD, "--map", LLD_MAP, "--by", "file"), "By file")
    assert files[0] == ["435", "435", "5", "35", "400", "-", "-", "libsecond.a(second.o)"]
    assert ["192", "192", "6", "40", "108", "16", "28", "first.o"] in files
    sections = rows(answer(capfdbinary, LLD, "--by", "section"), "By section")
    assert ["28", "28", "1", "-", "-", "-", "20", ".tbss"] not in sections
    assert ["20", "20", "1", "-", "-", "-", "20", ".tbss"] in sections


def test_without_a_map_source_files_are_told_of_local_variables(capfdbinary: Captured) -> None:
    files = rows(answer(capfdbinary, BASE, "--by", "file", "--top", "1"), "By file")
    assert files[0][-1] == "shadow.c"
    assert "more:" in files[1]
    units = {row["unit"] for row in asked(capfdbinary, BASE)["symbols"]}
    assert {"shadow.c", "uids.cpp", "unit_001.cpp"} <= units


def test_causes_of_several_files_stand_apart(capfdbinary: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    text = answer(capfdbinary, BFD, LLD, "--by", "file", "--top", "0")
    assert f"[no source file: not local]  ({BFD})" in text
    assert f"[no source file: not local]  ({LLD})" in text


def test_the_map_of_another_file_is_noted(capfdbinary: Captured) -> None:
    code, out, _ = call(capfdbinary, BFD, "--map", LLD_MAP, "--strict")
    assert code == 4
    assert "linker-map-differs:" in out.split()


# --- filters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--kind", "tls"], {"first_tls", "first_tbss"}),
        (["--kind", "tls", "--kind", "relro", "--global"], {"first_tls", "first_tbss", "first_relro"}),
        (["--local", "--name", "first"], {"first_static"}),
        (["--min-size", "80"], {"first_bss", "second_common"}),
        (["--min-size", "0.1KiB", "--name", "^second"], {"second_common"}),
    ],
)
def test_filters_leave_what_was_asked_for(capfdbinary: Captured, words: list[str], expected: set[str]) -> None:
    assert {row["symbol"] for row in asked(capfdbinary, LLD, *words)["symbols"]} == expected
    listed = {row[-1] for row in rows(answer(capfdbinary, LLD, *words), "Variables")}
    assert listed == expected


def test_what_is_left_out_has_a_row_of_its_own(capfdbinary: Captured) -> None:
    files = rows(answer(capfdbinary, LLD, "--map", LLD_MAP, "--by", "file", "--name", "first_bss"), "By file")
    assert [row[0] for row in files if row[-1] == "first.o"] == ["80"]
    assert [row[-2:] for row in files if row[-1] != "first.o"] == [["[not", "selected]"]]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("size", ["second_common", "first_bss", "first_data"]),
        ("name", ["first_bss", "first_data", "first_relro"]),
        ("address", ["first_tls", "first_tbss", "first_relro"]),
    ],
)
def test_variables_are_sorted_as_told(capfdbinary: Captured, order: str, expected: list[str]) -> None:
    listed = rows(answer(capfdbinary, LLD, "--sort", order, "--top", "3"), "Variables")
    assert [row[-1] for row in listed[:3]] == expected


def test_a_file_without_what_was_asked_for_says_so(capfdbinary: Captured) -> None:
    assert answer(capfdbinary, BASE, "--kind", "tls").startswith(f"{BASE}: nothing of the kind tls\n")


# --- wrong use, and damage --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "cause"),
    [
        ([BFD, LLD, "--map", BFD_MAP], 2, "a linker map belongs to one linked file: name only this file"),
        ([BFD, "--map", BFD], 3, f"{BFD}: offset 0x0: not a map of GNU ld, gold, lld or mold"),
        ([BFD, "--map", "/no/such/file"], 3, "/no/such/file: No such file or directory"),
        ([BFD, "--name", "("], 2, "'(' is not a regular expression: "),
        ([BFD, "--min-size", "4K"], 2, "'4K' is ambiguous"),
    ],
)
def test_what_cannot_be_answered_is_one_line(capfdbinary: Captured, words: list[str], code: int, cause: str) -> None:
    done = call(capfdbinary, *words)
    assert done[:2] == (code, "")
    assert done[2].count("\n") == 1
    assert cause in done[2]


def test_an_archive_has_no_map(capfdbinary: Captured, tmp_path: Path) -> None:
    archive = tmp_path / "a.a"
    archive.write_bytes(b"!<arch>\n")
    code, _, error = call(capfdbinary, str(archive), "--map", BFD_MAP)
    assert code == 2
    assert "is an archive, which is not linked" in error


def test_hostile_names_of_objects_come_out_escaped(capfdbinary: Captured, tmp_path: Path) -> None:
    map_ = tmp_path / "hostile.map"
    map_.write_bytes(Path(LLD_MAP).read_bytes().replace(b"first.o", b"\x1b[31m\xff.o"))
    for by in ("symbol", "file"):
        text = answer(capfdbinary, LLD, "--map", str(map_), "--by", by)
        assert "\x1b" not in text
        assert "\\xff.o" in text
    assert "\\xff.o" in str(asked(capfdbinary, LLD, "--map", str(map_))["symbols"])


# --- wrong use, and nothing found -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["--by", "file", "--sort", "name"], "--sort orders variables: the sums of --by file are always by size"),
        (["--by", "section", "--sort", "size"], "--sort orders variables"),
        (["--local", "--global"], "choose one of --local and --global"),
    ],
)
def test_options_that_cannot_both_be_meant_are_refused(capfdbinary: Captured, words: list[str], cause: str) -> None:
    code, out, error = call(capfdbinary, LLD, *words)
    assert (code, out) == (2, "")
    assert cause in error


@pytest.mark.parametrize("words", [["--name", "absent"], ["--min-size", "1GiB"], ["--kind", "bss", "--name", "tls"]])
@pytest.mark.parametrize("files", [[LLD], [LLD, BFD]], ids=["one", "two"])
def test_filters_that_leave_nothing_say_so(capfdbinary: Captured, files: list[str], words: list[str]) -> None:
    text = answer(capfdbinary, *files, *words)
    assert "no variable passes the filters" in text
    assert "\nVariables\n" not in text


def test_a_kind_that_no_file_has_is_said(capfdbinary: Captured) -> None:
    assert "nothing of the kind tls" in answer(capfdbinary, BASE, "--kind", "tls")
    base_debug = f"{BASE}_debug"
    assert "2 files, 0 of them with memory of the kind tls" in answer(capfdbinary, BASE, base_debug, "--kind", "tls")


def test_a_file_that_is_named_twice_is_counted_once(capfdbinary: Captured) -> None:
    text = answer(capfdbinary, BASE, BASE)
    assert text.count(".bss") == answer(capfdbinary, BASE).count(".bss")
    assert "it is named several times, and counted once" in " ".join(text.split())


def test_a_member_of_a_thin_archive_is_a_regular_file_that_is_read_once(
    capfdbinary: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Section(".data", flags=RW, data=bytes(8))
    member = write(ElfFile(sections=[data], symbols=[Sym("variable", At(".data"), 8)]))
    (tmp_path / "build").mkdir()
    (tmp_path / "one.o").write_bytes(member)
    (tmp_path / "build/two.o").write_bytes(member)
    os.mkfifo(tmp_path / "build/pipe.o")
    whole = str(tmp_path / "build/two.o")
    names = ["../one.o", "-", "pipe.o", str(tmp_path / "one.o"), "/dev/zero", whole, *["../one.o"] * 2000]
    (tmp_path / "build/libx.a").write_bytes(archive([(name, member) for name in names], thin=True))
    monkeypatch.chdir(tmp_path / "build")
    # Whoever reads standard input waits for ever.
    reading, writing = os.pipe()
    with os.fdopen(reading) as waiting, os.fdopen(writing, "w"):
        monkeypatch.setattr("sys.stdin", waiting)
        found = asked(capfdbinary, "libx.a")
    assert [row["file"] for row in found["symbols"]] == ["libx.a(../one.o)", f"libx.a({whole})"]
    elsewhere = "a thin archive names it outside of its own folder: name the file itself"
    assert [(note["slug"], note["subject"], note["detail"]) for note in found["notes"]] == [
        ("file-unreadable", "libx.a(-)", "No such file or directory"),
        ("file-unreadable", "libx.a(pipe.o)", "it is not a regular file"),
        ("file-unreadable", f"libx.a({tmp_path}/one.o)", elsewhere),
        ("file-unreadable", "libx.a(/dev/zero)", elsewhere),
        ("file-repeated", "libx.a", "it names files again (2,000 times): each is counted once"),
    ]


def test_an_archive_of_very_many_members_is_refused(capfdbinary: Captured, tmp_path: Path) -> None:
    path = tmp_path / "libx.a"
    path.write_bytes(archive([("x.o", b"")] * 300))
    code, _, error = call(capfdbinary, str(path), "--limits", "entries=200")
    assert (code, error) == (
        3,
        f"footprint: {path}: spent 201 of 200 entries; raise it with --limits entries=400\n",
    )


def test_a_pattern_that_takes_for_ever_is_given_up(
    capfdbinary: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verb, "MOST_MATCHING_SECONDS", 0.2)
    path = tmp_path / "program"
    data = Section(".data", flags=RW, data=bytes(8))
    path.write_bytes(write(ElfFile(sections=[data], symbols=[Sym("a" * 50, At(".data"), 8)])))
    # Each letter more doubles the ways to split the name.
    code, out, error = call(capfdbinary, str(path), "--name", "(a+)+$b|(a|a)*!")
    assert (code, out) == (2, "")
    assert "--name: the pattern takes more than 0.2 seconds on these names" in error
    assert "a" * 50 in answer(capfdbinary, str(path), "--name", "^a+$")


def test_a_table_of_long_names_stays_within_80_columns_and_is_whole_with_v(
    capfdbinary: Captured, tmp_path: Path
) -> None:
    path = tmp_path / "program"
    name = "_ZN4name" + "5space" * 12 + "5tableE"
    data = Section(".data", flags=RW, data=bytes(16))
    aliased = [Sym("a" * 50, At(".data"), 8), Sym("a" * 50 + "_alias", At(".data"), 8)]
    path.write_bytes(write(ElfFile(sections=[data], symbols=[*aliased, Sym(name, At(".data", 8), 8)])))
    text = answer(capfdbinary, str(path))
    table = text.partition("\nVariables\n")[2].partition("\n\n")[0].splitlines()
    assert max(map(len, table)) == 80
    assert any(line.endswith("::space::table") and "  name::...::space" in line for line in table)
    assert any(line.endswith("a_alias)") for line in table)
    assert name in answer(capfdbinary, str(path), "-v")


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SHT_REL, SHT_RELA], ids=["REL", "RELA"])
@pytest.mark.parametrize("type_", [ET_DYN, ET_REL], ids=["library", "object"])
@pytest.mark.parametrize("verb_", ["symbols", "audit"])
def test_a_relocation_at_an_address_beyond_all_numbers_with_a_sign_writes_nothing(
    verb_: str, type_: int, kind: int, capfdbinary: Captured, tmp_path: Path
) -> None:
    def result(offset: int) -> Any:  # noqa: ANN401 # JSON
        data = Section(".data", flags=RW, data=[bytes(64)])
        table = Section(".rela.data", kind, data=[Rel(offset, R_X86_64_64, "a", None if kind == SHT_REL else 0)])
        name = Sym("a", At(".data"), 64)
        path.write_bytes(write(ElfFile(type=type_, sections=[data, table], symbols=[name])))
        code = main([verb_, str(path), "--json"])
        out, error = capfdbinary.readouterr()
        return (code, json.loads(out)["symbols"], error) if verb_ == "symbols" else (code, error)

    path = tmp_path / "file"
    assert result(1 << 63) == result((1 << 64) - 1) == result(1 << 62)
    assert result(1 << 63)[0] == (3 if (verb_, type_) == ("audit", ET_REL) else 0)
