"""Lines of `symbols --source` against gdb, and debug information that tools have put elsewhere."""

import os
import posixpath
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import footprint
from footprint.dwarf.declared_variables import DeclaredVariables
from footprint.elf.contents import Contents
from footprint.elf.image import read_image
from footprint.elf.notes import candidates
from footprint.elf.symbols import Symbol
from footprint.system.files import open_input
from footprint.verbs.symbols.call import FileSymbols

HEADER = """
static int of_header[4];
static inline int *count(void) { static int calls[3]; return calls; }
struct pair { int x; struct pair *next; };
"""
ONE = """
#include "things.h"
struct pair pairs[2];
static const char *names[] = {"a", "b"};
int first(int n) {
    static int buffer[9];
    return ++buffer[n] + ++of_header[n] + ++count()[n] + *names[n] + pairs[n].x++;
}
int second(int n) { static int buffer[9]; return ++buffer[n]; }
"""
TWO = """
#include "things.h"
int first(int n);
int second(int n);
double ratio = 1;
int main(int n, char **words) { return first(n) + second(n) + ++of_header[n] + ++count()[n] + (int)ratio++; }
"""


def run(*command: str | Path, folder: Path) -> str:
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{command[0]} does not end")
    if done.returncode:
        pytest.skip(f"{command[0]}: {done.stderr[-200:]}")
    return done.stdout


@pytest.fixture(params=["gcc", "g++", "clang"])
def compiler(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def build(folder: Path, compiler: str, *options: str) -> Path:
    suffix = "cc" if compiler.endswith("++") else "c"
    (folder / "things.h").write_text(HEADER)
    (folder / f"one.{suffix}").write_text(ONE)
    (folder / f"two.{suffix}").write_text(TWO)
    run(compiler, "-w", "-O1", *(options or ("-g",)), f"one.{suffix}", f"two.{suffix}", "-o", "program", folder=folder)
    return folder / "program"


def told(symbols: FileSymbols) -> dict[tuple[str, int], tuple[str | None, int | None, str | None]]:
    """Return file, line and type of each variable of which something is told, by its name and place."""
    assert symbols.sources is not None
    answers = {}
    for contents, sources in zip(symbols.files, symbols.sources, strict=True):
        for section in contents.sections:
            for variable in section.variables:
                if (said := sources.of(section, variable)) is not None:
                    place = variable.name, section.section.vaddr + variable.offset
                    answers[place] = said.defined_in, said.defined_at_line, said.type_name
    return answers


def places_of_gdb(path: Path | str) -> set[tuple[str, int]]:
    """Return the file and line of each variable that gdb lists, those without a symbol too."""
    command = ["gdb", "-nx", "-batch", "-ex", "set width 0", "-ex", "info variables -n", str(path)]
    result, file = set(), ""
    for line in run(*command, folder=Path("/")).splitlines():
        if line.startswith("File "):
            file = posixpath.normpath(line[5:-1])
        elif match := re.match(r"(\d+):", line):
            result.add((file, int(match[1])))
    return result


# --- lines ------------------------------------------------------------------------------------------------------------


def test_gdb_lists_the_same_lines(compiler: str, tmp_path: Path) -> None:
    found = footprint.symbols(str(build(tmp_path, compiler)), source=True)
    names = {name: told_ for (name, _), told_ in told(found).items()}
    # gdb does not list the statics of functions.
    ours = {(file, line) for name, (file, line, _) in names.items() if not re.search("buffer|calls", name)}
    expected = {(posixpath.join(tmp_path, file), line) for file, line in places_of_gdb(tmp_path / "program")}
    if any("names" in name for name in names):
        assert ours == expected
    else:
        # clang made two texts of the array, and gdb lists it all the same.
        assert ours == expected - {(str(tmp_path / "one.c"), 4)}
    assert len(ours) >= 3


def test_a_static_of_a_function_is_told_with_its_function(tmp_path: Path) -> None:
    found = footprint.symbols(str(build(tmp_path, "gcc")), source=True)
    assert found.sources is not None
    functions: dict[str | None, set[str]] = {}
    for section in found.files[0].sections:
        for variable in section.variables:
            said = found.sources[0].of(section, variable)
            if said and said.function:
                functions.setdefault(said.source_name, set()).add(said.function)
    assert functions == {"buffer": {"first", "second"}, "calls": {"count"}}


def test_what_ld_drops_from_the_symbols_is_named_by_its_address(compiler: str, tmp_path: Path) -> None:
    whole = told(footprint.symbols(str(build(tmp_path, compiler)), source=True))
    found = footprint.symbols(str(build(tmp_path, compiler, "-g", "-Wl,-x")), source=True)
    assert sorted(map(str, told(found).values())) == sorted(map(str, whole.values()))
    assert found.sources is not None
    assert found.sources[0].named


# --- elsewhere --------------------------------------------------------------------------------------------------------


def test_lines_in_a_debug_file_are_those_that_were_in_the_file(compiler: str, tmp_path: Path) -> None:
    path = build(tmp_path, compiler)
    before = told(footprint.symbols(str(path), source=True))
    run("objcopy", "--only-keep-debug", "program", "program.debug", folder=tmp_path)
    run("objcopy", "--strip-debug", "--add-gnu-debuglink=program.debug", "program", folder=tmp_path)
    # Its symbols are its own, and only the lines elsewhere.
    parted = footprint.symbols(str(path), source=True)
    assert (parted.files[0].debug_file, parted.notes) == (None, ())
    assert told(parted) == before
    run("objcopy", "--strip-all", "program", folder=tmp_path)
    run("objcopy", "--add-gnu-debuglink=program.debug", "program", folder=tmp_path)
    assert told(footprint.symbols(str(path), source=True)) == before
    without = footprint.symbols(str(path), source=True, debug=None)
    assert [note.slug for note in without.notes] == ["debug-info-absent"]


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_split_units_are_followed_where_they_are_and_said_to_be_absent(
    compiler: str, version: str, tmp_path: Path
) -> None:
    whole = told(footprint.symbols(str(build(tmp_path, compiler, version)), source=True))
    path = build(tmp_path, compiler, version, "-gsplit-dwarf")
    result = footprint.symbols(str(path), source=True)
    assert sorted(told(result).values(), key=str) == sorted(whole.values(), key=str)
    assert result.notes == ()
    # Beside the program in another folder.
    (other := tmp_path / "other").mkdir()
    for each in [path, *tmp_path.glob("*.dwo")]:
        shutil.move(each, other)
    assert told(footprint.symbols(str(other / "program"), source=True)) == told(result)
    for each in other.glob("*.dwo"):
        each.unlink()
    lost = footprint.symbols(str(other / "program"), source=True)
    assert ([note.slug for note in lost.notes], told(lost)) == (["debug-info-split"], {})
    assert [variable.name for variable in variables(lost.files[0])] == [
        variable.name for variable in variables(result.files[0])
    ]


def test_split_units_of_another_build_are_not_believed(tmp_path: Path) -> None:
    build(tmp_path, "gcc", "-g", "-gsplit-dwarf")
    shutil.copy(tmp_path / "program", tmp_path / "before")
    (tmp_path / "one.c").write_text(ONE.replace("#include", "\n\n#include"))
    run("gcc", "-w", "-O1", "-g", "-gsplit-dwarf", "one.c", "two.c", "-o", "program", folder=tmp_path)
    found = footprint.symbols(str(tmp_path / "before"), source=True)
    assert [note.slug for note in found.notes] == ["debug-info-split"]
    assert not any(file and file.endswith("/one.c") for file, _, _ in told(found).values())


def test_a_package_of_split_units_stands_beside_the_program(tmp_path: Path) -> None:
    path = build(tmp_path, "gcc", "-gdwarf-4", "-gsplit-dwarf")
    before = told(footprint.symbols(str(path), source=True))
    run("dwp", "-e", "program", "-o", "program.dwp", folder=tmp_path)
    for each in tmp_path.glob("*.dwo"):
        each.unlink()
    found = footprint.symbols(str(path), source=True)
    assert (told(found), found.notes) == (before, ())
    (tmp_path / "program.dwp").write_bytes((tmp_path / "program.dwp").read_bytes()[:100])
    assert "debug-file-unreadable" in {note.slug for note in footprint.symbols(str(path), source=True).notes}


def test_what_dwz_shares_is_followed_by_build_id(tmp_path: Path) -> None:
    path = build(tmp_path, "g++")
    before = told(footprint.symbols(str(path), source=True))
    copies = footprint.duplicates(str(path)).files[0].copies
    shutil.copy(path, tmp_path / "second")
    run("dwz", "-m", "common", "-M", str(tmp_path / "common"), "program", "second", folder=tmp_path)
    if not (tmp_path / "common").exists():
        pytest.skip("dwz found nothing to share")
    found = footprint.symbols(str(path), source=True)
    assert (told(found), found.notes) == (before, ())
    assert footprint.duplicates(str(path)).files[0].copies == copies
    # Another file at its place.
    shutil.copy(path, tmp_path / "common")
    other = footprint.symbols(str(path), source=True)
    assert {note.slug for note in other.notes} >= {"debug-file-differs", "debug-info-alternate"}
    assert {line for _, line, _ in told(other).values()} <= {line for _, line, _ in before.values()}


# --- the C library of this machine ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def libc() -> FileSymbols:
    """Read the C library with its lines, where it is stripped and its debug file is installed."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        code = [line for line in maps if " r-xp " in line and ("/libc.so" in line or "/libc-" in line)]
    for path in {line.split(maxsplit=5)[5].strip() for line in code}:
        image = read_image(open_input(path), path)
        if any(os.path.exists(candidate) for candidate in candidates(image, path, ["/usr/lib/debug"])):
            return footprint.symbols(path, source=True)
    pytest.skip("the debug file of the C library is not installed")


def variables(contents: Contents) -> list[Symbol]:
    return [variable for section in contents.sections for variable in section.variables]


def share_with_lines(contents: Contents, sources: DeclaredVariables, name: str) -> float:
    """Return how much of a section, without padding, variables own whose line is told."""
    (section,) = (one for one in contents.sections if one.section.name == name)
    told_bytes = 0
    for start, end, owner in section.ranges.pieces:
        if isinstance(owner, Symbol) and (said := sources.of(section, owner)) and said.defined_at_line:
            told_bytes += end - start
    return told_bytes / (section.size_bytes - sum(section.residue_bytes.values()))


@pytest.mark.parametrize("section", [".data", ".bss"])
def test_99_percent_of_the_data_of_the_c_library_have_a_name_a_file_and_a_line(libc: FileSymbols, section: str) -> None:
    assert libc.sources is not None
    assert share_with_lines(libc.files[0], libc.sources[0], section) >= 0.99


def test_what_has_no_name_in_the_data_of_the_c_library_is_padding(libc: FileSymbols) -> None:
    for section in libc.files[0].sections:
        if section.section.name in {".data", ".bss"}:
            assert {cause.value for cause in section.residue_bytes} <= {"padding"}


def test_gdb_lists_the_same_lines_of_the_c_library(libc: FileSymbols) -> None:
    debug_file = libc.files[0].debug_file
    assert debug_file is not None
    assert libc.notes == ()
    by_line = {(posixpath.basename(file), line) for file, line in places_of_gdb(debug_file)}
    assert libc.sources is not None
    lines_known: list[tuple[str, str, int | None]] = []
    for section in libc.files[0].sections:
        for variable in section.variables:
            said = libc.sources[0].of(section, variable)
            if said and said.function is None and said.defined_in:
                lines_known.append((str(said.source_name), posixpath.basename(said.defined_in), said.defined_at_line))
    assert len(lines_known) > 500
    # Of several of one name in one file gdb lists one.
    counts = Counter((name, file) for name, file, _ in lines_known)
    assert [each for each in lines_known if each[1:] not in by_line and counts[each[:2]] == 1] == []
