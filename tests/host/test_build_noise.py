"""What a build changes by itself is no change: compared with what was really changed in the source."""

import shutil
import subprocess
from pathlib import Path

import pytest

import footprint
from footprint.release.compare import Comparison, RowStatus

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is missing")

# Lambdas, statics of one name, a type without a name, an anonymous namespace: all that compilers number.
SOURCE = """
#include <string>
namespace { int counters[300]; char scratch[4096]; struct { int used; int free[40]; } pool; }
static std::string names[10];
template <class F> int run(F f) { static int calls[64]; calls[0] += f(); return calls[0]; }
int first() { static char seen[2048]; return seen[0]++; }
int second() { static char seen[SECOND]; return seen[0]++; }
int third() { static char seen[512]; return seen[0]++; }
int main(int count, char **words) {
#ifdef MORE
    auto new_one = [count] { static int extra[50]; return extra[0] += count; };
    counters[1] = run(new_one);
#endif
    auto one = [count] { static int mine[100]; return mine[0] += count; };
    auto other = [count] { static int mine[100]; return mine[1] += count; };
    counters[0] = run(one) + run(other) + first() + second() + third();
    scratch[count] = 1; pool.used = count; pool.free[count] = 1; names[0] = words[0];
    return counters[0] + scratch[1] + pool.free[0];
}
"""


def built(folder: Path, *options: str, source: str = SOURCE) -> str:
    folder.mkdir(parents=True)
    (folder / "server.cpp").write_text(source)
    command = ["g++", "-O1", "-DSECOND=1024", *options, str(folder / "server.cpp"), "-o", str(folder / "server")]
    subprocess.run(command, check=True, capture_output=True)
    return str(folder / "server")


def told(comparison: Comparison) -> list[tuple[RowStatus, str | None, int]]:
    return sorted(
        (change.status, change.symbol, change.mapped_delta_bytes)
        for change in comparison.changes
        if change.symbol is not None and change.status is not RowStatus.SHIFTED
    )


@pytest.mark.parametrize("options", [[], ["-g"], ["-flto"], ["-O0"], ["-ffunction-sections", "-fdata-sections"]])
def test_another_seed_and_folder_change_no_symbol(tmp_path: Path, options: list[str]) -> None:
    old = built(tmp_path / "a", "-frandom-seed=1", *options)
    new = built(tmp_path / "folder" / "of" / "another" / "length", "-frandom-seed=2", *options)
    found = footprint.diff(old, new)
    assert told(found) == []
    private = found.total("private")
    assert private is not None
    assert private.delta_bytes == 0


def test_a_lambda_before_the_others_adds_its_own_statics_and_renames_none(tmp_path: Path) -> None:
    found = told(footprint.diff(built(tmp_path / "a"), built(tmp_path / "b", "-DMORE")))
    # Its own static, and that of the function that is made for it.
    assert [(status, size) for status, _, size in found] == [(RowStatus.ADDED, 256), (RowStatus.ADDED, 200)]


def test_of_three_statics_of_one_name_the_one_that_grew_is_one_row(tmp_path: Path) -> None:
    found = told(footprint.diff(built(tmp_path / "a"), built(tmp_path / "b", "-DSECOND=1536")))
    assert found == [(RowStatus.CHANGED, "_ZZ6secondvE4seen", 512)]


def test_three_statics_of_one_name_in_c_are_one_row_too(tmp_path: Path) -> None:
    source = SOURCE.replace("int first()", 'extern "C" int first()').replace("int second()", 'extern "C" int second()')
    source = source.replace("int third()", 'extern "C" int third()')
    old, new = (built(tmp_path / name, f"-DSECOND={size}", source=source) for name, size in (("a", 1024), ("b", 1536)))
    ((status, _, size_bytes),) = told(footprint.diff(old, new))
    assert (status, size_bytes) == (RowStatus.CHANGED, 512)


def test_a_buffer_of_another_name_is_renamed(tmp_path: Path) -> None:
    old = built(tmp_path / "a")
    new = built(tmp_path / "b", source=SOURCE.replace("scratch", "workspace"))
    found = footprint.diff(old, new)
    ((status, name, size_bytes),) = told(found)
    assert (status, size_bytes) == (RowStatus.RENAMED, 0)
    # Later releases of gcc write that its linkage is internal.
    assert name in {"_ZN12_GLOBAL__N_19workspaceE", "_ZN12_GLOBAL__N_1L9workspaceE"}


# Two files, so that a buffer can be declared in another; `NAME` is in one of them.
OTHER = "char FIRST[4096]; int use_first(int i) { return FIRST[i]++; }"
LAST = """
char SECOND_BUFFER[4096]; TABLE
int use_first(int); int main(int count, char **) { return SECOND_BUFFER[count]++ + use_first(count) + USED; }
"""


def of_two_files(folder: Path, first: str, second: str, table: str = "", used: str = "0", option: str = "-g") -> str:
    folder.mkdir(parents=True)
    (folder / "first.cpp").write_text(OTHER.replace("FIRST", first))
    (folder / "last.cpp").write_text(
        LAST.replace("SECOND_BUFFER", second).replace("TABLE", table).replace("USED", used)
    )
    sources = [str(folder / name) for name in ("first.cpp", "last.cpp")]
    command = ["g++", "-O1", "-x", "c++", option, *sources, "-o", str(folder / "server")]
    subprocess.run(command, check=True, capture_output=True)
    return str(folder / "server")


def test_a_buffer_of_another_source_file_is_no_other_name_of_one_that_is_gone(tmp_path: Path) -> None:
    old = of_two_files(tmp_path / "a", "kept", "gone")
    # `gone` of last.cpp is `kept` now, and first.cpp has a new one of its size.
    new = of_two_files(tmp_path / "b", "fresh", "kept")
    assert told(footprint.diff(old, new)) == [
        (RowStatus.ADDED, "fresh", 4096),
        (RowStatus.REMOVED, "gone", -4096),
    ]


@pytest.mark.parametrize("option", ["-g", "-g0"])
def test_a_table_of_the_same_contents_is_renamed_and_one_of_others_is_not_without_a_declaration(
    tmp_path: Path, option: str
) -> None:
    def built_with(folder: str, name: str, begin: int) -> str:
        table = f"int {name}[100] = {{ {begin}, 2, 3 }};"
        return of_two_files(tmp_path / folder, "first", "second", table, f"({name}[count] = 1)", option)

    old = built_with("a", "prices", 1)
    assert told(footprint.diff(old, built_with("b", "costs", 1))) == [(RowStatus.RENAMED, "costs", 0)]
    found = told(footprint.diff(old, built_with("c", "costs", 7)))
    if option == "-g":
        # Of one type in one file.
        assert found == [(RowStatus.RENAMED, "costs", 0)]
    else:
        assert found == [(RowStatus.ADDED, "costs", 400), (RowStatus.REMOVED, "prices", -400)]
