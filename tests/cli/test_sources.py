"""`footprint symbols --source` as a user runs it: lines, types and functions, and debug information that is hostile."""

import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from footprint.cli import main
from footprint.formats.words import SCHEMA_PATH
from tests.dwarfwriter import (
    AT_BYTE_SIZE,
    AT_COMP_DIR,
    AT_COUNT,
    AT_DECL_FILE,
    AT_DECL_LINE,
    AT_INLINE,
    AT_LANGUAGE,
    AT_LOCATION,
    AT_NAME,
    AT_SPECIFICATION,
    AT_STMT_LIST,
    AT_TYPE,
    DATA1,
    EXPRLOC,
    REF4,
    SEC_OFFSET,
    STRING,
    STRP,
    TAG_ARRAY,
    TAG_BASE_TYPE,
    TAG_COMPILE_UNIT,
    TAG_SUBPROGRAM,
    TAG_SUBRANGE,
    TAG_VARIABLE,
    Addr,
    Attribute,
    Die,
    Ref,
    Unit,
    sections,
)
from tests.elfwriter import (
    ET_REL,
    RO,
    RW,
    SHF_COMPRESSED,
    SHN_ABS,
    SHT_NOBITS,
    SHT_NOTE,
    STB_LOCAL,
    STT_FILE,
    At,
    ElfFile,
    Note,
    Section,
    Sym,
    archive,
    patch,
    peek,
    write,
)

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "/a/folder/of/sources"
DATA = [Section(".data", flags=RW, data=bytes(64)), Section(".bss", SHT_NOBITS, RW, size=64)]
SYMBOLS = [
    Sym("table", At(".data"), 40),
    Sym("calls.0", At(".bss"), 4, binding=STB_LOCAL),
    Sym("untold", At(".bss", 16), 8, binding=STB_LOCAL),
]
# Where the writer puts them.
TABLE, CALLS = (peek(write(ElfFile(sections=DATA, symbols=SYMBOLS)), "sh_addr", name) for name in (".data", ".bss"))
SLUG = "debug-info-damaged"

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "no-cache"))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)


# --- files ------------------------------------------------------------------------------------------------------------


def variable(name: str, vaddr: int, line: int, type_: str = "int", file: int = 1) -> Die:
    place: list[Attribute] = [(AT_DECL_FILE, DATA1, file), (AT_DECL_LINE, DATA1, line), (AT_TYPE, REF4, Ref(type_))]
    return Die(TAG_VARIABLE, [(AT_NAME, STRP, name), *place, (AT_LOCATION, EXPRLOC, Addr(vaddr))])


def unit(*entries: Die) -> Unit:
    """Return a unit of main.c in FOLDER, which includes inc/deeper/header.h; they are its files 1 and 2."""
    root: list[Attribute] = [(AT_NAME, STRP, "main.c"), (AT_COMP_DIR, STRING, FOLDER), (AT_LANGUAGE, DATA1, 0x0C)]
    size = Die(TAG_SUBRANGE, [(AT_COUNT, DATA1, 10)])
    types = [
        Die(TAG_BASE_TYPE, [(AT_NAME, STRING, "int"), (AT_BYTE_SIZE, DATA1, 4)], label="int"),
        Die(TAG_ARRAY, [(AT_TYPE, REF4, Ref("int"))], [size], label="ints"),
    ]
    entry = Die(TAG_COMPILE_UNIT, [*root, (AT_STMT_LIST, SEC_OFFSET, 0)], [*types, *entries])
    return Unit(entry, 5, 1, [FOLDER, "inc/deeper"], [("main.c", 0), ("main.c", 0), ("header.h", 1)])


def told() -> list[Section]:
    """Return the debug sections of a program whose `calls` is a static of the inline function `count`."""
    inside = Die(
        TAG_SUBPROGRAM, [(AT_NAME, STRP, "count"), (AT_INLINE, DATA1, 3)], [variable("calls", CALLS, 7, "int", 2)]
    )
    return sections([unit(variable("table", TABLE, 3, "ints"), inside)])


def program(folder: Path, debug: Sequence[Section], symbols: Sequence[Sym] = SYMBOLS, **kind: Any) -> str:  # noqa: ANN401 # of ElfFile
    path = folder / "program"
    path.write_bytes(write(ElfFile(sections=[*DATA, *debug], symbols=symbols, **kind)))
    return str(path)


def swapped(debug: Sequence[Section], name: str, data: bytes, flags: int = 0) -> list[Section]:
    return [Section(name, flags=flags, data=data) if one.name == name else one for one in debug]


def data_of(debug: Sequence[Section], name: str) -> bytes:
    (data,) = (one.data for one in debug if one.name == name)
    assert isinstance(data, bytes)
    return data


# --- asking -----------------------------------------------------------------------------------------------------------


def text(captured: Captured, *words: str, code: int = 0) -> str:
    assert main(["symbols", "--source", *words]) == code
    return captured.readouterr().out


def asked(captured: Captured, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text(captured, *words, "--json"))
    Draft202012Validator(json.loads(SCHEMA_PATH.read_text())).validate(found)
    return found


def lines(result: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    members = ("declared_file", "declared_line", "type", "function")
    return {row["symbol"]: tuple(row[member] for member in members) for row in result["symbols"]}


NOTHING = (None,) * 4


# --- what it tells ----------------------------------------------------------------------------------------------------


def test_file_line_type_and_function_of_each_variable_are_told(capfd: Captured, tmp_path: Path) -> None:
    result = asked(capfd, program(tmp_path, told()))
    assert lines(result) == {
        "table": (f"{FOLDER}/main.c", 3, "int[10]", None),
        "calls.0": (f"{FOLDER}/inc/deeper/header.h", 7, "int", "count"),
        "untold": NOTHING,
    }
    assert {row["named_by"] for row in result["symbols"]} == {"symbol"}
    assert result["notes"] == []


def test_the_table_has_the_end_of_a_long_path_and_the_type_behind_the_name(
    capfd: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path, told())
    shown = text(capfd, path)
    rows = shown.partition("\nVariables\n")[2].splitlines()
    assert rows[0].split() == ["bytes", "section", "declared", "variable"]
    assert rows[1].split(maxsplit=3) == ["40", ".data", ".../of/sources/main.c:3", "table: int[10]"]
    assert rows[2].split(maxsplit=3) == ["8", ".bss", "-", "untold"]
    assert rows[3].split(maxsplit=3) == ["4", ".bss", ".../inc/deeper/header.h:7", "calls.0 in count: int"]
    assert "Debug information tells the lines of 2 of 3 variables, 44 of 52 bytes (84.6%)." in " ".join(shown.split())
    monkeypatch.setenv("COLUMNS", "120")
    assert f"  {FOLDER}/inc/deeper/header.h:7  calls.0 in count: int\n" in text(capfd, path, "-v")


@pytest.mark.parametrize("columns", ["80", "120"])
def test_a_terminal_of_any_width_shows_whole_lines(columns: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "footprint", "symbols", "--source", program(tmp_path, told()), "--color", "always"]
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {"PYTHONPATH": str(ROOT), "COLUMNS": columns}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert ".../of/sources/main.c:3" in done.stdout
    assert ".../inc/deeper/header.h:7" in done.stdout
    assert "calls.0 in count: int" in done.stdout


def test_without_the_option_nothing_is_looked_up(capfd: Captured, tmp_path: Path) -> None:
    path = program(tmp_path, told())
    assert main(["symbols", path, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert {"declared_file", "type", "named_by"}.isdisjoint(found["symbols"][0])
    words = "import sys, footprint.cli; footprint.cli.main(sys.argv[1:]); print([*sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", words, "symbols", path], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "footprint.dwarf" not in done.stdout
    assert "footprint.elf.contents" in done.stdout


def test_what_no_symbol_names_is_named_by_debug_information(capfd: Captured, tmp_path: Path) -> None:
    result = asked(capfd, program(tmp_path, told(), SYMBOLS[:1]))
    rows = {row["symbol"]: row for row in result["symbols"]}
    assert lines(result)["calls"] == (f"{FOLDER}/inc/deeper/header.h", 7, "int", "count")
    assert (rows["calls"]["named_by"], rows["calls"]["binding"], rows["table"]["named_by"]) == (
        "debug information",
        "local",
        "symbol",
    )
    (bss,) = (row for row in result["sections"] if row["section"] == ".bss")
    assert (bss["named_bytes"], sum(bss["residue"].values())) == (4, 60)
    shown = text(capfd, str(tmp_path / "program"))
    assert "calls in count: int  (no symbol)\n" in shown
    assert "\nSymbols and debug information name 44 of " in shown


def test_what_debug_information_names_does_not_reach_into_a_variable(capfd: Captured, tmp_path: Path) -> None:
    # An array of 40 bytes at 4 bytes before `calls`: whatever it is, it is not this.
    debug = sections([unit(variable("other", CALLS - 4, 3, "ints"), variable("nothing", CALLS + 8, 3, "ints"))])
    assert set(lines(asked(capfd, program(tmp_path, debug)))) == {"table", "calls.0", "untold"}


def test_a_declaration_of_another_name_at_the_same_place_is_not_believed(capfd: Captured, tmp_path: Path) -> None:
    # As linkers leave it that fold what has the same contents: the source file of `table` has no debug information.
    found = asked(capfd, program(tmp_path, sections([unit(variable("folded", TABLE, 3, "ints"))])))
    assert lines(found)["table"] == NOTHING


def test_filters_choose_what_is_listed(capfd: Captured, tmp_path: Path) -> None:
    found = asked(capfd, program(tmp_path, told()), "--kind", "data")
    assert [*lines(found)] == ["table"]


# --- what it cannot tell ----------------------------------------------------------------------------------------------


def notes_of(result: dict[str, Any]) -> list[str]:
    return [note["slug"] for note in result["notes"]]


def test_a_file_without_debug_information_says_so(capfd: Captured, tmp_path: Path) -> None:
    path = program(tmp_path, [])
    found = asked(capfd, path)
    assert notes_of(found) == ["debug-info-absent"]
    assert set(lines(found).values()) == {NOTHING}
    shown = " ".join(text(capfd, path, "--strict", code=4).split())
    assert f"debug-info-absent: {path}: it has no .debug_info, and no debug file with one" in shown


def test_of_objects_lines_are_told_as_of_the_library_that_is_linked_of_them(capfd: Captured) -> None:
    folder = ROOT / "sample_binaries" / "declared_in_header"
    told = [lines(asked(capfd, str(folder / name))) for name in ("gcc_objects.o", "gcc_dwarf_5.so")]
    assert told[0] == told[1]
    assert NOTHING not in told[0].values()


def test_members_of_an_archive_have_lines_too_and_those_without_are_counted(capfd: Captured, tmp_path: Path) -> None:
    with_lines = (ROOT / "sample_binaries" / "declared_in_header" / "gcc_objects.o").read_bytes()
    without = write(ElfFile(sections=DATA, symbols=SYMBOLS, type=ET_REL))
    path = tmp_path / "lib.a"
    path.write_bytes(archive([("a.o", with_lines), ("b.o", without), ("c.o", without)]))
    found = asked(capfd, str(path))
    assert [note["detail"] for note in found["notes"]] == ["2 of its 3 objects have no .debug_info"]
    told = {(one["member"], one["declared_line"] is not None) for one in found["symbols"]}
    assert told == {("a.o", True), ("b.o", False), ("c.o", False)}


# --- debug files ------------------------------------------------------------------------------------------------------


def parted(folder: Path, debug_id: bytes, **fields: int) -> tuple[str, str]:
    """Return a program without symbols, and a folder with a debug file for it that has some build-id and fields."""
    path, place = folder / "program", folder / "debug" / ".build-id" / "aa" / f"{'aa' * 7}.debug"
    place.parent.mkdir(parents=True, exist_ok=True)
    note = Section(".note.gnu.build-id", SHT_NOTE, RO, [Note(3, "GNU", b"\xaa" * 8)])
    path.write_bytes(write(ElfFile(sections=[note, *DATA])))
    vaddrs = [peek(path.read_bytes(), "sh_addr", name) for name in (".data", ".bss")]
    debug = sections([unit(variable("table", vaddrs[0], 3, "ints"), variable("calls", vaddrs[1], 7))])
    other = Section(".note.gnu.build-id", SHT_NOTE, RO, [Note(3, "GNU", debug_id)])
    image = patch(write(ElfFile(sections=[other, *DATA, *debug], symbols=SYMBOLS)), "sh_type", SHT_NOBITS, ".data")
    for section, vaddr in fields.items():
        image = patch(image, "sh_addr", vaddr, f".{section}")
    place.write_bytes(image)
    return str(path), str(folder / "debug")


def test_lines_of_a_stripped_file_are_those_of_its_debug_file(capfd: Captured, tmp_path: Path) -> None:
    path, folder = parted(tmp_path, b"\xaa" * 8)
    found = asked(capfd, path, "--debug-dir", folder)
    assert lines(found)["table"] == (f"{FOLDER}/main.c", 3, "int[10]", None)
    assert found["notes"] == []
    assert notes_of(asked(capfd, path, "--no-debug-files")) == ["debug-info-absent"]


def test_a_debug_file_of_another_build_gives_a_note_and_no_line(capfd: Captured, tmp_path: Path) -> None:
    path, folder = parted(tmp_path, b"\xbb" * 8)
    found = asked(capfd, path, "--debug-dir", folder)
    assert notes_of(found) == ["debug-file-differs", "debug-info-absent"]
    assert found["symbols"] == []


def test_of_a_section_that_the_debug_file_has_elsewhere_no_line_is_told(capfd: Captured, tmp_path: Path) -> None:
    path, folder = parted(tmp_path, b"\xaa" * 8, bss=0x123000)
    found = asked(capfd, path, "--debug-dir", folder)
    assert notes_of(found) == ["debug-file-differs"]
    assert [*lines(found)] == ["table"]


def test_a_file_of_dwz_of_another_build_gives_a_note_and_the_rest_is_told(capfd: Captured, tmp_path: Path) -> None:
    link = Section(".gnu_debugaltlink", data=b"common\0" + b"\xcc" * 8)
    note = Section(".note.gnu.build-id", SHT_NOTE, RO, [Note(3, "GNU", b"\xdd" * 8)])
    (tmp_path / "common").write_bytes(write(ElfFile(sections=[note, *DATA])))
    found = asked(capfd, program(tmp_path, [*told(), link]))
    assert lines(found)["table"] == (f"{FOLDER}/main.c", 3, "int[10]", None)
    (noted,) = found["notes"]
    assert noted["slug"] == "debug-file-differs"
    assert f"{tmp_path}/common has the build-id {'dd' * 8}, {'cc' * 8} is asked for" in noted["detail"]
    assert asked(capfd, program(tmp_path, [*told(), link]), "--no-debug-files")["notes"] == []


def test_a_damaged_package_of_split_units_is_noted_and_the_rest_is_told(capfd: Captured, tmp_path: Path) -> None:
    path = program(tmp_path, told())
    Path(f"{path}.dwp").write_bytes(Path(path).read_bytes()[:70])
    found = asked(capfd, path)
    assert notes_of(found) == ["debug-file-unreadable"]
    assert lines(found)["table"][:2] == (f"{FOLDER}/main.c", 3)


# --- bad input --------------------------------------------------------------------------------------------------------


def looped() -> list[Section]:
    """Refer from one entry to another and back, where the name and the line should be."""
    first = Die(TAG_VARIABLE, [(AT_SPECIFICATION, REF4, Ref("second"))], label="first")
    second = Die(TAG_VARIABLE, [(AT_SPECIFICATION, REF4, Ref("first"))], label="second")
    start = Die(TAG_VARIABLE, [(AT_SPECIFICATION, REF4, Ref("first")), (AT_LOCATION, EXPRLOC, Addr(TABLE))])
    return sections([unit(first, second, start)])


def endless() -> list[Section]:
    """Return abbreviations of which the first has no end."""
    debug = told()
    return swapped(debug, ".debug_abbrev", b"\1\x11\1" + b"\x03\x08" * 1000)


def beyond() -> list[Section]:
    """Make the unit longer than its section."""
    debug = told()
    data = data_of(debug, ".debug_info")
    return swapped(debug, ".debug_info", struct.pack("<I", len(data) + 100) + data[4:])


def inflating() -> list[Section]:
    """Claim 100 GB for what is compressed."""
    debug = told()
    data = struct.pack("<IIQQ", 1, 0, 100 << 30, 1) + zlib.compress(data_of(debug, ".debug_info"))
    return swapped(debug, ".debug_info", data, SHF_COMPRESSED)


@pytest.mark.parametrize("debug", [looped, endless, beyond, inflating])
def test_of_hostile_debug_information_the_symbols_are_told_without_lines(
    debug: Any,  # noqa: ANN401 # one of the above
    capfd: Captured,
    tmp_path: Path,
) -> None:
    path = program(tmp_path, debug())
    found = asked(capfd, path)
    assert lines(found) == dict.fromkeys(["table", "calls.0", "untold"], NOTHING)
    assert notes_of(found) == [SLUG]
    assert f"{SLUG}: {path}: " in " ".join(text(capfd, path, "--strict", code=4).split())


def test_debug_information_that_lies_beyond_the_file_is_noted(capfd: Captured, tmp_path: Path) -> None:
    path = program(tmp_path, told())
    Path(path).write_bytes(patch(Path(path).read_bytes(), "sh_size", 1 << 40, ".debug_info"))
    found = asked(capfd, path)
    assert set(lines(found).values()) == {NOTHING}
    assert notes_of(found) == [SLUG]


def test_names_of_sources_and_types_are_escaped(capfd: Captured, tmp_path: Path) -> None:
    debug = told()
    hostile = data_of(debug, ".debug_str").replace(b"header.h", b"\x1b]0;me\xff")
    shown = text(capfd, program(tmp_path, swapped(debug, ".debug_str", hostile)))
    assert "\x1b" not in shown
    assert "]0;me" in shown


# --- duplicates -------------------------------------------------------------------------------------------------------


def copied(folder: Path, debug_id: bytes) -> tuple[str, str]:
    """Return a stripped program with two copies of a table of a header, and a folder with a debug file of a build-id.

    They are zeros, so that nothing but the line speaks for it that they are copies.
    """
    data = [Section(".data", flags=RW, data=bytes(64))]
    note = [Section(".note.gnu.build-id", SHT_NOTE, RO, [Note(3, "GNU", b"\xaa" * 8)])]
    path, place = folder / "program", folder / "debug" / ".build-id" / "aa" / f"{'aa' * 7}.debug"
    place.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(write(ElfFile(sections=[*note, *data])))
    vaddr = peek(path.read_bytes(), "sh_addr", ".data")
    debug = sections([unit(variable("table", vaddr, 7, "int", 2)), unit(variable("table", vaddr + 32, 7, "int", 2))])
    other = Section(".note.gnu.build-id", SHT_NOTE, RO, [Note(3, "GNU", debug_id)])
    sources = [Sym(name, type=STT_FILE, binding=STB_LOCAL, section=SHN_ABS) for name in ("a.c", "b.c")]
    copies = [Sym("table", At(".data", 32 * number), 4, binding=STB_LOCAL) for number in range(2)]
    symbols = [sources[0], copies[0], sources[1], copies[1]]
    image = write(ElfFile(sections=[other, *data, *debug], symbols=symbols))
    place.write_bytes(patch(image, "sh_type", SHT_NOBITS, ".data"))
    return str(path), str(folder / "debug")


def copies_of(captured: Captured, *words: str) -> dict[str, Any]:
    assert main(["duplicates", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(captured.readouterr().out)
    Draft202012Validator(json.loads(SCHEMA_PATH.read_text())).validate(found)
    return found


def test_copies_in_a_stripped_file_are_found_and_proved_by_its_debug_file(capfd: Captured, tmp_path: Path) -> None:
    path, folder = copied(tmp_path, b"\xaa" * 8)
    found = copies_of(capfd, path, "--debug-dir", folder)
    (one,) = found["duplicates"]
    assert (one["confidence"], one["copy_count"], one["units"]) == ("proof", 2, ["a.c", "b.c"])
    assert one["location"] == {"file": f"{FOLDER}/inc/deeper/header.h", "line": 7}
    assert found["files"][0]["debug_file"].startswith(folder)
    assert found["notes"] == []
    assert main(["duplicates", path, "--debug-dir", folder]) == 0
    assert "which is stripped, are from" in " ".join(capfd.readouterr().out.split())


def test_a_debug_file_that_does_not_fit_gives_a_note_and_no_copies(capfd: Captured, tmp_path: Path) -> None:
    path, folder = copied(tmp_path, b"\xbb" * 8)
    found = copies_of(capfd, path, "--debug-dir", folder)
    assert found["duplicates"] == []
    assert notes_of(found) == ["debug-file-differs", "no-source-files"]
    assert (found["files"][0]["debug_file"], found["files"][0]["variable_count"]) == (None, 0)
    assert notes_of(copies_of(capfd, path, "--no-debug-files")) == ["no-source-files"]


def test_duplicates_refuses_options_of_debug_files_that_contradict_each_other(capfd: Captured, tmp_path: Path) -> None:
    assert main(["duplicates", str(tmp_path), "--no-debug-files", "--debug-dir", str(tmp_path)]) == 2
    assert "--no-debug-files goes with neither" in capfd.readouterr().err


def test_hostile_debug_information_leaves_the_copies_to_their_contents(capfd: Captured, tmp_path: Path) -> None:
    # Without lines, it takes two constants that the source files have in common.
    sources = [Sym(name, type=STT_FILE, binding=STB_LOCAL, section=SHN_ABS) for name in ("a.c", "b.c")]
    tables = [Sym("_ZN2nsL5tableE", At(".rodata", 64 * number), 32, binding=STB_LOCAL) for number in range(2)]
    limits = [Sym("_ZN2nsL6limitsE", At(".rodata", 64 * number + 32), 32, binding=STB_LOCAL) for number in range(2)]
    data = Section(".rodata", flags=RO, data=bytes(range(64)) * 2)
    path = tmp_path / "program"
    symbols = [sources[0], tables[0], limits[0], sources[1], tables[1], limits[1]]
    path.write_bytes(write(ElfFile(sections=[data, *inflating()], symbols=symbols)))
    found = copies_of(capfd, str(path))
    assert [one["confidence"] for one in found["duplicates"]] == ["high", "high"]
    assert notes_of(found) == [SLUG]
