"""What compilers make of a header, in many ways to compile and link it: the copies we find are those that nm has."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import footprint
from footprint.findings.copies import CopiedVariable, CopyOrigin, Cost
from footprint.model.finding import Confidence
from footprint.verbs.duplicates.call import Duplicates

IN_C = """
static int data_of_header[64] = {1, 2, 3};
static int zeros_of_header[64];
static const int constants_of_header[64] = {4, 5, 6};
static const char *const strings_of_header[8] = {"red", "green", "blue"};
static __thread int thread_of_header[16] = {7};
static inline int *function_of_header(void) { static int static_of_function[64] = {8, 9}; return static_of_function; }
"""
IN_CXX = """
struct text { char own[32], *at; text(const char *from) : at(new char[64]) { __builtin_strcpy(at, from); } ~text(); };
inline text::~text() { delete[] at; }
namespace ns { static int data_of_header[64] = {1, 2, 3}; static int zeros_of_header[64]; }
namespace ns { const int constants_of_header[64] = {4, 5, 6}; constexpr int constexpr_of_header[64] = {10, 11}; }
static const char *const strings_of_header[8] = {"red", "green", "blue"};
namespace { int unnamed_of_header[64] = {12, 13}; }
static thread_local int thread_of_header[16] = {7};
static text string_of_header("made at start");
static inline int *function_of_header() { static int static_of_function[64] = {8, 9}; return static_of_function; }
inline int *inline_of_header() { static int static_of_inline[64] = {14, 15}; return static_of_inline; }
inline int inline_variable[64] = {16, 17};
template <class T> struct Of { static int member_of_template[64]; };
template <class T> int Of<T>::member_of_template[64] = {18, 19};
using namespace ns;
"""
USES = {
    "data_of_header": "data_of_header[i]++;",
    "zeros_of_header": "zeros_of_header[i]++;",
    "constants_of_header": "i += constants_of_header[i];",
    "strings_of_header": "i += *strings_of_header[i];",
    "thread_of_header": "thread_of_header[i]++;",
    "static_of_function": "function_of_header()[i]++;",
    "constexpr_of_header": "i += constexpr_of_header[i];",
    "unnamed_of_header": "unnamed_of_header[i]++;",
    "string_of_header": "string_of_header.at[i]++;",
    "static_of_inline": "inline_of_header()[i]++;",
    "inline_variable": "inline_variable[i]++;",
    "member_of_template": "Of<int>::member_of_template[i]++;",
}
ONCE = {"static_of_inline", "inline_variable", "member_of_template"}
CONSTANTS = {"constants_of_header", "constexpr_of_header"}
# One in place of these changes what the program does.
WRITTEN = {
    *("data_of_header", "zeros_of_header", "thread_of_header"),
    *("static_of_function", "unnamed_of_header", "string_of_header"),
}
UNIT_COUNT = 3
LINE = {"c": {name: at for at, text in enumerate(IN_C.splitlines(), 1) for name in USES if name in text}}
LINE["c++"] = {
    name: at for at, text in reversed(list(enumerate(IN_CXX.splitlines(), 1))) for name in USES if name in text
}


@dataclass(frozen=True)
class Way:
    """One way to compile and link."""

    name: str
    compile: str = "-O2"
    link: str = ""
    compilers: tuple[str, ...] = ("gcc", "clang")
    tools: tuple[str, ...] = ()
    has_lines: bool = False
    has_units: bool = True
    is_stripped: bool = False
    is_relocated: bool = False
    is_parted: bool = False


WAYS = [
    Way("O0", "-O0"),
    Way("O2"),
    Way("not-at-a-fixed-address", "-O2 -fno-pie", "-no-pie"),
    Way("dwarf-4", "-O2 -gdwarf-4", has_lines=True),
    Way("dwarf-2", "-O2 -gdwarf-2", has_lines=True),
    Way("dwarf-3-O0", "-O0 -gdwarf-3", has_lines=True),
    Way("dwarf-4-type-units", "-O2 -gdwarf-4 -fdebug-types-section", has_lines=True),
    Way("dwarf-5-type-units", "-O0 -gdwarf-5 -fdebug-types-section", has_lines=True),
    Way("dwarf-64-bit", "-O2 -gdwarf-5 -gdwarf64", has_lines=True),
    Way("dwarf-5-compressed", "-O2 -gdwarf-5 -gz", "-gz", has_lines=True),
    Way("split-dwarf", "-O2 -g -gsplit-dwarf", has_lines=True),
    Way("debug-file", "-O2 -g", has_lines=True, is_parted=True),
    Way("lto", "-O2 -flto", "-O2 -flto", ("gcc",), has_units=False),
    Way("lto-with-lines", "-O2 -flto -g", "-O2 -flto -g", ("gcc",), has_lines=True, has_units=False),
    Way("lto", "-O2 -flto", "-O2 -flto -fuse-ld=lld", ("clang",), ("ld.lld",), has_units=False),
    Way("thin-lto", "-O2 -flto=thin", "-O2 -flto=thin -fuse-ld=lld", ("clang",), ("ld.lld",)),
    Way(
        "thin-lto-with-lines",
        "-O2 -flto=thin -g",
        "-O2 -flto=thin -fuse-ld=lld -g",
        ("clang",),
        ("ld.lld",),
        has_lines=True,
    ),
    Way("relocatable-first", is_relocated=True),
    Way("relocatable-first-with-lines", "-O2 -g", is_relocated=True, has_lines=True),
    Way(
        "lld-icf-with-lines",
        "-O2 -fdata-sections -g",
        "-fuse-ld=lld -Wl,--icf=all",
        tools=("ld.lld",),
        has_lines=True,
    ),
    Way("lld-icf", "-O2 -fdata-sections", "-fuse-ld=lld -Wl,--icf=all", tools=("ld.lld",)),
    Way("gold-icf", "-O2 -fdata-sections", "-fuse-ld=gold -Wl,--icf=all", tools=("ld.gold",)),
    Way("mold", "-O2 -g", "-fuse-ld=mold", ("gcc",), ("mold",), has_lines=True),
    Way("collected", "-O2 -ffunction-sections -fdata-sections", "-Wl,--gc-sections"),
    Way("stripped", "-O2 -g", "-s", is_stripped=True),
]
CASES = [(way, language, compiler) for way in WAYS for language in ("c", "c++") for compiler in way.compilers]
IDS = [f"{way.name}-{language}-{compiler}" for way, language, compiler in CASES]
Case = tuple[Way, str, str]


def ways(is_meant: Callable[[Way], bool]) -> pytest.MarkDecorator:
    """Run a test for all ways that are meant, in both languages, with each compiler."""
    meant = [(case, name) for case, name in zip(CASES, IDS, strict=True) if is_meant(case[0])]
    return pytest.mark.parametrize("case", [case for case, _ in meant], ids=[name for _, name in meant])


# --- compiling --------------------------------------------------------------------------------------------------------


def used(language: str) -> list[str]:
    header = IN_C if language == "c" else IN_CXX
    return [name for name in USES if name in header]


def write_sources(folder: Path, language: str) -> None:
    suffix = "c" if language == "c" else "cc"
    (folder / "things.h").write_text(IN_C if language == "c" else IN_CXX)
    text = " ".join(USES[name] for name in used(language))
    for number in range(UNIT_COUNT):
        (folder / f"unit_{number}.{suffix}").write_text(
            f'#include "things.h"\nint use_{number}(int i) {{ {text} return i; }}\n'
        )
    declared = "".join(f"int use_{number}(int);\n" for number in range(UNIT_COUNT))
    calls = " + ".join(f"use_{number}(argc)" for number in range(UNIT_COUNT))
    (folder / f"main.{suffix}").write_text(f"{declared}int main(int argc, char **argv) {{ return {calls}; }}\n")


def build(folder: Path, case: Case) -> str | Path:
    """Compile and link in one way; give the program, or why there is none."""
    way, language, compiler = case
    command = {"gcc": {"c": "gcc", "c++": "g++"}, "clang": {"c": "clang", "c++": "clang++"}}[compiler][language]
    for tool in (command, "nm", *way.tools):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    write_sources(folder, language)
    standard = ["-std=gnu11"] if language == "c" else ["-std=gnu++17"]
    sources = sorted(path.name for path in folder.glob("*.c*"))
    objects = [f"unit_{number}.o" for number in range(UNIT_COUNT)]
    steps = [[command, *standard, *way.compile.split(), "-c", *sources]]
    if way.is_relocated:
        steps.append(["ld", "-r", "-o", "all.ro", *objects])
        objects = ["all.ro"]
    steps.append([command, *way.link.split(), "-o", "program", "main.o", *objects])
    for words in steps:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            return f"{' '.join(words)} fails: {done.stderr[:300]}"
    if way.is_parted:
        shutil.copy(folder / "program", folder / "whole")
        run = partial(subprocess.run, cwd=folder, check=True, timeout=120)
        run(["objcopy", "--only-keep-debug", "program", "program.debug"])
        run(["objcopy", "--strip-all", "--add-gnu-debuglink=program.debug", "program"])
    return folder / "program"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str | Path]]:
    folders = [tmp_path_factory.mktemp(name.replace("+", "x")) for name in IDS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield dict(zip(IDS, pool.map(build, folders, CASES), strict=True))


@pytest.fixture
def program(case: Case, programs: dict[str, str | Path]) -> str:
    built = programs[IDS[CASES.index(case)]]
    if isinstance(built, str):
        pytest.skip(built)
    return str(built)


# --- the oracle -------------------------------------------------------------------------------------------------------


def thing_of(symbol: str) -> str | None:
    """Return which thing of the header a linker name is of; guards and the like are of none."""
    if symbol.startswith(("_ZGV", "_ZTH", "_ZTW")):
        return None
    found = [name for name in USES if re.search(rf"(?:^|[.\d]){name}(?:E?[._]|E?v?$|E?B)", symbol)]
    return max(found, key=len, default=None)


def addresses(program: str) -> dict[str, set[str]]:
    """Count with nm at how many addresses each thing of the header is."""
    if (whole := Path(program).parent / "whole").exists():
        program = str(whole)
    lines = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[str, set[str]] = {}
    for line in lines:
        vaddr, kind, symbol = line.rsplit(maxsplit=2) if line[0] != " " else ("", "U", "")
        if kind in "bBdDrRuVvsSgG" and (thing := thing_of(symbol)):
            found.setdefault(thing, set()).add(vaddr)
    return found


def found_by_us(program: str) -> tuple[Duplicates, dict[str, CopiedVariable]]:
    result = footprint.duplicates(program)
    copies = [copy for copy in result.files[0].copies if copy.origin not in {CopyOrigin.GUARD, CopyOrigin.STREAM_INIT}]
    strange = [copy.name for copy in copies if thing_of(copy.name) is None]
    assert strange == []
    things = {str(thing_of(copy.name)): copy for copy in copies}
    assert len(things) == len(copies)
    return result, things


@ways(lambda way: not way.is_stripped)
def test_each_copy_that_nm_has_is_found_and_no_other(case: Case, program: str) -> None:
    way, language, _ = case
    expected = {thing: len(vaddrs) for thing, vaddrs in addresses(program).items() if len(vaddrs) > 1}
    assert ONCE.isdisjoint(expected)
    if not way.has_units and not way.has_lines and language == "c":
        # Zeros of which not even the source files are known may be anything.
        expected.pop("zeros_of_header", None)
    _, found = found_by_us(program)
    assert {thing: len(one.copies) for thing, one in found.items()} == expected


@ways(lambda way: way.has_units and not way.is_stripped)
def test_what_is_written_to_has_a_copy_for_each_source_file(case: Case, program: str) -> None:
    _, language, _ = case
    _, result = found_by_us(program)
    written = {"data_of_header", "zeros_of_header", "thread_of_header", "static_of_function"}
    if language == "c++":
        written |= {"unnamed_of_header", "string_of_header"}
    for thing in written:
        assert len(result[thing].copies) == UNIT_COUNT, thing
        assert {name.partition(".")[0] for name in result[thing].units} == {f"unit_{at}" for at in range(UNIT_COUNT)}


@ways(lambda way: way.has_lines)
def test_debug_information_proves_copies_by_the_line_of_the_header(case: Case, program: str) -> None:
    way, language, compiler = case
    _, found = found_by_us(program)
    assert found
    for thing, variable in found.items():
        if thing in CONSTANTS and variable.location is None:
            # To these gcc gives their value in place of an address, so that their source files must be known.
            assert (language, compiler) == ("c++", "gcc"), thing
            assert not way.has_units or way.name == "split-dwarf"
            continue
        assert variable.confidence is (Confidence.MEDIUM if thing in WRITTEN else Confidence.PROOF), thing
        assert variable.location is not None
        assert variable.location.file.endswith("/things.h")
        assert variable.location.line == LINE[language][thing]
        if compiler == "gcc":
            # clang puts the static of a function that it inlined into one without a name.
            assert (variable.function is not None) == (thing == "static_of_function"), thing


@ways(lambda way: not way.has_lines and not way.is_stripped)
def test_without_lines_only_constants_with_others_beside_them_are_sure(case: Case, program: str) -> None:
    """The strings are in no namespace: three constants in one order in three source files speak for their header.

    They are alike and only read, and with lines they are proven. The header in C has but two constants: too few.
    """
    way, language, _ = case
    _, found = found_by_us(program)
    assert found
    for thing, one in found.items():
        is_constant = thing in CONSTANTS or thing == "strings_of_header"
        is_sure = language == "c++" and way.has_units and found.keys() >= CONSTANTS and is_constant
        assert one.confidence is (Confidence.HIGH if is_sure else Confidence.LOW), thing


@ways(lambda _: True)
def test_stripped_files_say_that_they_are(case: Case, program: str) -> None:
    way, _, _ = case
    found = footprint.duplicates(program)
    notes = {note.slug for note in found.notes}
    assert ("no-source-files" in notes) == way.is_stripped
    if way.is_stripped:
        assert found.files[0].copies == ()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler is installed")
@pytest.mark.parametrize("options", ["-g -O2", "-O2", "-g -O0"])
def test_tables_of_labels_that_one_header_makes_in_three_functions_are_no_copies(options: str, tmp_path: Path) -> None:
    """Python includes `sre_lib.h` three times in one source file: each function has a table of its own labels."""
    (tmp_path / "lib.h").write_text(
        "static int NAME(const unsigned char *code) {\n"
        "    static const void *const targets[] = {&&end, &&add, &&twice, &&end};\n"
        "    int sum = 0;\n"
        "next: goto *targets[*code++ & 3];\n"
        "add: sum += SIZE; goto next;\n"
        "twice: sum *= 2; goto next;\n"
        "end: return sum;\n"
        "}\n"
    )
    kinds = "".join(
        f'#define NAME match_{size}\n#define SIZE {size}\n#include "lib.h"\n#undef NAME\n#undef SIZE\n'
        for size in (1, 2, 4)
    )
    calls = " + ".join(f"match_{size}((const unsigned char *)v[0])" for size in (1, 2, 4))
    (tmp_path / "sre.c").write_text(f"{kinds}int main(int n, char **v) {{ return {calls} + n; }}\n")
    subprocess.run(["gcc", *options.split(), "sre.c", "-o", "program"], cwd=tmp_path, check=True)
    names = subprocess.run(["nm", "program"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert names.count(" targets.") == 3
    assert footprint.duplicates(str(tmp_path / "program")).files[0].copies == ()


# --- a large program --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def node() -> Duplicates:
    path = shutil.which("node")
    if path is None or Path(path).stat().st_size < 1 << 20:
        pytest.skip("node is not installed")
    found = footprint.duplicates(path)
    if not found.files[0].unit_count:
        pytest.skip("this node is stripped")
    return found


def of_node(duplicates: Duplicates, name: str) -> list[CopiedVariable]:
    return [copy for copy in duplicates.files[0].copies if copy.name == name]


def test_node_has_a_table_of_v8_once_for_each_source_file_that_uses_it(node: Duplicates) -> None:
    name = "_ZN2v88internal8compiler10turboshaftL19kOperationSizeTableE"
    symbols = nm_sizes(name)
    (one,) = of_node(node, name)
    assert len(one.copies) == len(set(symbols)) > 1
    # Its code stores the address of most such tables, and is too large to be followed.
    assert {(one.size_bytes, one.confidence)} == {(size, Confidence.MEDIUM) for _, size in symbols}


def test_node_holds_zlib_twice(node: Duplicates) -> None:
    (zlib,) = [one for one in node.linked_twice if one.library == "zlib"]
    assert zlib.copy_count == 2
    assert {"crc_braid_table", "crc_table", "static_ltree"} <= set(zlib.names)


@pytest.mark.parametrize("name", ["_ZL7_module", "local_it", "lookup_table"])
def test_what_only_has_one_name_in_node_is_no_copy(node: Duplicates, name: str) -> None:
    """Many things have these names: a macro makes each of them for another module or type."""
    if len(nm_sizes(name)) < 2:
        pytest.skip(f"this node has no {name}")
    assert of_node(node, name) == []


def nm_sizes(name: str) -> Sequence[tuple[str, int]]:
    """Return address and size of the symbols of a name, without the number that compilers put behind it."""
    done = subprocess.run(["nm", "-S", str(shutil.which("node"))], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines() if name in line]
    return [(row[0], int(row[1], 16)) for row in rows if len(row) == 4 and row[3].partition(".")[0] == name]


@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler is installed")
def test_zeros_of_a_header_that_two_libraries_include_are_there_twice(tmp_path: Path) -> None:
    """Zeros prove nothing by themselves; the line that declares them does."""
    header = "static char scratch[8192];\nnamespace ns { static long counters[512]; }\n"
    (tmp_path / "shared.hpp").write_text(header)
    for name in ("first", "second"):
        own = f"static char own_{name}[4096]; static char other[2048];\n"
        uses = f"char *use_{name}(int i) {{ ns::counters[i]++; own_{name}[i]++; other[i]++; return scratch + i; }}\n"
        (tmp_path / f"{name}.cpp").write_text(f'#include "shared.hpp"\n{own}{uses}')
        words = ["g++", "-g", "-shared", "-fPIC", f"{name}.cpp", "-o", f"lib{name}.so"]
        subprocess.run(words, cwd=tmp_path, check=True)
    paths = [str(tmp_path / "libfirst.so"), str(tmp_path / "libsecond.so")]
    (found,) = footprint.duplicates(*paths).linked_twice
    # `other` has the same name and size, but two lines.
    assert (found.files, found.names) == (tuple(paths), ("_ZL7scratch", "_ZN2nsL8countersE"))
    assert (found.size_bytes, found.waste_bytes) == (8192 + 4096, 8192 + 4096)
    assert found.waste == {Cost.WHEN_TOUCHED: 12288}
    for path in paths:
        subprocess.run(["strip", "--strip-debug", path], check=True)
    assert footprint.duplicates(*paths).linked_twice == ()


@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler is installed")
@pytest.mark.parametrize(("option", "confidence"), [("default", Confidence.MEDIUM), ("hidden", Confidence.PROOF)])
def test_constants_of_a_template_are_only_sure_where_no_other_file_can_find_them(
    option: str, confidence: Confidence, tmp_path: Path
) -> None:
    template = (
        "template <class T> int at(int i) { static const int table[8] = {1, 2, 3, 4, 5, 6, 7, 8}; return table[i]; }\n"
    )
    (tmp_path / "a.hpp").write_text(template)
    (tmp_path / "a.cpp").write_text('#include "a.hpp"\nint use(int i) { return at<int>(i) + at<long>(i + 1); }\n')
    words = ["g++", "-g", "-O2", "-shared", "-fPIC", f"-fvisibility={option}", "a.cpp", "-o", "liba.so"]
    subprocess.run(words, cwd=tmp_path, check=True)
    (found,) = footprint.duplicates(str(tmp_path / "liba.so")).files[0].copies
    assert (found.copy_count, found.size_bytes, found.confidence) == (2, 32, confidence)
