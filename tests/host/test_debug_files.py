"""Files of this machine's compiler, stripped as distributions do: with their debug files they say what they said."""

import lzma
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import footprint
from footprint.elf.contents import Contents
from footprint.elf.image import read_image
from footprint.elf.notes import candidates
from footprint.system.files import open_input
from tests.liveprocesses import resting

SOURCE = """
#include <string.h>
static int hidden[100] = {1};
static char zeros[5000];
static __thread long of_thread = 7;
static __thread char zeros_of_thread[300];
int shown = 1;
const char *const relocated[] = {"a", "b"};
static const char *const sealed[] = {"c", "d", "e"};
int use(int i) { static int calls; zeros[i]++; zeros_of_thread[i]++; of_thread++;
  return hidden[i] + ++calls + (int)strlen(sealed[i]); }
"""
VARIABLE = re.compile(r"^[0-9a-f]+ ([0-9a-f]+) [bBdDgGsSuVv] (\S+)$", re.MULTILINE)


def run(*command: str | Path) -> str:
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run([str(each) for each in command], capture_output=True, text=True, check=True).stdout


@pytest.fixture(params=["sha1", "none"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Compile a library, with a build-id and without."""
    source, library = tmp_path / "demo.c", tmp_path / "libdemo.so"
    source.write_text(SOURCE)
    run("gcc", "-g", "-O1", "-fPIC", "-shared", f"-Wl,--build-id={request.param}", source, "-o", library)
    return library


def result(path: Path | str, *, debug_dir: Path | None = None) -> Contents:
    search = footprint.DebugSearch((str(debug_dir),) if debug_dir else ())
    answer = footprint.symbols(str(path), debug=search)
    assert answer.notes == ()
    return answer.files[0]


def named(contents: Contents) -> dict[str, int]:
    return {
        name: variable.size_bytes
        for section in contents.sections
        for variable in section.variables
        if variable.size_bytes
        for name in (variable.name, *variable.aliases)
    }


def by_nm(path: Path | str) -> dict[str, int]:
    """Return the size of each variable of writable and thread-local memory that nm prints."""
    return {name: int(size, 16) for size, name in VARIABLE.findall(run("nm", "--print-size", path))}


def same(first: Contents, other: Contents) -> bool:
    """Return whether two files hold the same variables at the same places, with the same bytes unexplained."""
    return [(section.variables, section.ranges, section.kind) for section in first.sections] == [
        (section.variables, section.ranges, section.kind) for section in other.sections
    ]


def strip_to(library: Path, debug_file: Path) -> None:
    """Part a library from its symbols as dpkg and rpm do."""
    debug_file.parent.mkdir(parents=True, exist_ok=True)
    run("objcopy", "--only-keep-debug", library, debug_file)
    run("objcopy", "--strip-all", f"--add-gnu-debuglink={debug_file}", library)


@pytest.mark.parametrize("place", ["libdemo.debug", ".debug/libdemo.debug"])
def test_a_library_parted_from_its_symbols_says_what_it_said_before(library: Path, place: str) -> None:
    before, printed = result(library), by_nm(library)
    assert named(before) == printed
    strip_to(library, library.parent / place)
    after = result(library)
    assert after.debug_file == str(library.parent / place)
    assert named(after) == printed
    assert same(before, after)


def test_a_debug_file_is_found_in_a_folder_of_the_user(library: Path, tmp_path: Path) -> None:
    before = result(library)
    strip_to(library, tmp_path / "away" / "libdemo.debug")
    assert result(library).debug_file is None
    after = result(library, debug_dir=tmp_path / "away")
    assert after.debug_file == str(tmp_path / "away" / "libdemo.debug")
    assert same(before, after)


def test_a_library_that_was_built_anew_does_not_fit_its_old_debug_file(library: Path, tmp_path: Path) -> None:
    strip_to(library, tmp_path / "libdemo.debug")
    (tmp_path / "demo.c").write_text(SOURCE.replace("hidden[100]", "hidden[101]"))
    newer = tmp_path / "newer.so"
    build_id = "sha1" if "Build ID" in run("readelf", "-n", library) else "none"
    run("gcc", "-g", "-fPIC", "-shared", f"-Wl,--build-id={build_id}", tmp_path / "demo.c", "-o", newer)
    run("objcopy", "--only-keep-debug", newer, tmp_path / "libdemo.debug")
    answer = footprint.symbols(str(library))
    assert [note.slug for note in answer.notes] == ["debug-file-differs"]
    assert answer.files[0].debug_file is None


def test_mini_debug_info_made_as_the_manual_of_gdb_says_adds_its_names(library: Path, tmp_path: Path) -> None:
    before = result(library)
    keep, small, packed = tmp_path / "keep", tmp_path / "mini", tmp_path / "mini.xz"
    keep.write_text("\n".join(set(by_nm(library)) - {"shown", "relocated"}))
    run("objcopy", "--only-keep-debug", library, tmp_path / "debug")
    run("objcopy", "-S", "--remove-section=.comment", f"--keep-symbols={keep}", tmp_path / "debug", small)
    packed.write_bytes(lzma.compress(small.read_bytes()))
    run("objcopy", "--strip-all", library)
    run("objcopy", f"--add-section=.gnu_debugdata={packed}", library)
    after = result(library)
    assert (after.symbols_from, after.debug_file) == (".gnu_debugdata", None)
    assert named(after) == named(before)


def test_a_library_stripped_by_elfutils_says_what_it_said_before(library: Path, tmp_path: Path) -> None:
    before = result(library)
    run("eu-strip", "-f", tmp_path / "libdemo.debug", library)
    after = result(library)
    assert after.debug_file == str(tmp_path / "libdemo.debug")
    assert same(before, after)


# --- the C library of this machine ------------------------------------------------------------------------------------


@pytest.fixture
def libc() -> str:
    """Return the path of the C library, where it is stripped and its debug file is installed."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        # Others may be mapped, to be read: its code tells which one this process uses.
        code = [line for line in maps if " r-xp " in line and ("/libc.so" in line or "/libc-" in line)]
    paths = {line.split(maxsplit=5)[5].strip() for line in code}
    for path in paths:
        image = read_image(open_input(path), path)
        if any(os.path.exists(candidate) for candidate in candidates(image, path, ["/usr/lib/debug"])):
            return path
    pytest.skip("the debug file of the C library is not installed")


def test_the_hidden_variables_of_the_c_library_are_named_without_being_told_where(libc: str) -> None:
    alone, contents = footprint.symbols(libc, debug=None).files[0], result(libc)
    assert named(contents)["__GI___pthread_keys"] >= 8192
    assert len(named(contents)) > 4 * len(named(alone))
    total_bytes = sum(section.size_bytes for section in contents.sections)
    assert sum(section.named_bytes for section in contents.sections) > 0.9 * total_bytes
    assert contents.debug_file is not None
    # Of a debug file, nm takes constants for zeroed variables: they have no bytes in it either.
    assert named(contents).keys() <= by_nm(contents.debug_file).keys()


def test_an_audit_names_them_too_and_says_from_where(libc: str) -> None:
    child = subprocess.Popen(["sleep", "3600"])
    try:
        resting(child.pid)
        with_names, without = footprint.audit(child.pid), footprint.audit(child.pid, debug=None)
    finally:
        child.kill()
        child.wait()
    assert "main_arena" in {row.symbol for row in with_names.ledger}
    assert "main_arena" not in {row.symbol for row in without.ledger}
    assert with_names.debug_files[libc].endswith(".debug")
    assert without.debug_files == {}
    assert with_names.totals.private == without.totals.private
