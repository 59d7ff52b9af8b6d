"""Who binds to whom, and which needs are for nothing, is what the loader of this machine says itself.

No program is run: the loader is asked to list what it would do (LD_TRACE_LOADED_OBJECTS, given to ld.so alone).
"""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf.abi import ET_EXEC
from footprint.findings.graph_rules.unused_library import unused_needs
from footprint.loader.target import Environment
from footprint.sources.programs import Programs

GLIBC = "/lib64/ld-linux-x86-64.so.2"
BOUND_COUNT = 250
NEEDS_COUNT = 400
# Of each kind some: programs without PIC, which copy data; of C++; those whose libraries bind to each other; old ones.
KNOWN = ("apt", "as", "bash", "cmake", "curl", "gdb", "git", "gpg", "ls", "node", "perl", "python3", "sqlite3", "ssh")
BINDING = re.compile(
    r"\tbinding file (\S+) \[0\] to (\S+) \[0\]: (?:normal|protected) symbol `([^']*)'(?: \[(.*)\])?$", re.MULTILINE
)

pytestmark = pytest.mark.skipif(not Path(GLIBC).exists(), reason=f"no {GLIBC}")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is missing")


# A reference of one file that is answered by another, both by their real paths: its name and its version.
Bound = tuple[str, str, str, str | None]


@cache
def programs() -> tuple[str, ...]:
    """Name the 64-bit programs of this machine that can be looked at, each once; not those of set IDs."""

    def is_one(path: str) -> bool:
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode) or facts.st_mode & (stat.S_ISUID | stat.S_ISGID):
            return False
        with open(path, "rb") as file:
            return file.read(20)[:6] == b"\x7fELF\x02\x01" and os.access(path, os.X_OK)

    found = {os.path.realpath(path) for folder in ("/usr/bin", "/usr/sbin") for path in _paths(folder)}
    return tuple(path for path in sorted(found) if os.path.exists(path) and is_one(path))


def _paths(folder: str) -> Iterator[str]:
    for name in os.listdir(folder) if Path(folder).is_dir() else ():
        yield os.path.join(folder, name)


def some(count: int) -> list[str]:
    """Return well-known programs, and so many of the whole alphabet; those of LLVM are all alike, and large."""
    known = [os.path.realpath(path) for name in KNOWN if (path := shutil.which(name))]
    found = [path for path in known if path in programs()]
    others = [path for path in programs() if "/llvm" not in path]
    return list(dict.fromkeys([*found, *others[:: max(1, len(others) // count)]]))


def trace(path: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_BIND_NOW": "1", **variables}
    return subprocess.run(
        [GLIBC, path], env=environment, capture_output=True, text=True, errors="surrogateescape", check=False
    )


@cache
def real_path(path: str) -> str:
    return os.path.realpath(path)


def is_loader(path: str) -> bool:
    return path == real_path(GLIBC)


def said(path: str) -> tuple[set[Bound], bool]:
    """Return what the loader binds, without what it binds to the vDSO, and whether it loads the program at all.

    What the loader asks for itself is not among it: it relocated itself before, and in this mode never again.
    """
    done = trace(path, LD_WARN="1", LD_DEBUG="bindings")
    found = {
        (real_path(user), real_path(provider), symbol, version or None)
        for user, provider, symbol, version in BINDING.findall(done.stderr)
        if "linux-vdso" not in provider and not is_loader(real_path(user))
    }
    return found, "=>" in done.stdout


def ours(graph: DependencyGraph) -> set[Bound]:
    bindings = graph.bindings
    files = [real_path(one.path) for one in graph.objects]
    return {
        (files[user], files[provider], reference.name, reference.version.name if reference.version else None)
        for user, providers in enumerate(bindings.providers)
        for provider in providers
        for reference in bindings.references(user, provider)
        if not is_loader(files[user])
    }


def is_glibc(graph: DependencyGraph) -> bool:
    return graph.link_map.interpreter_object is not None and graph.link_map.libc == "glibc"


def test_every_reference_of_a_program_and_its_libraries_is_bound_as_the_loader_binds_it() -> None:
    reader = Programs(environment=Environment())
    chosen = some(BOUND_COUNT)
    compared, bound_count, kinds = 0, 0, set()
    with ThreadPoolExecutor(2) as pool:
        for path, (expected, is_dynamic) in zip(chosen, pool.map(said, chosen), strict=True):
            graph = reader.graph(path)
            if not is_dynamic or not is_glibc(graph):
                continue
            found = ours(graph)
            assert found - expected == set(), path
            assert expected - found == set(), path
            compared += 1
            bound_count += len(found)
            kinds.add((graph.objects[0].library.type == ET_EXEC, len(graph.objects) > 20))
    if len(programs()) < BOUND_COUNT:
        pytest.skip(f"only {compared} programs to compare, and all are right")
    assert compared >= 200
    assert bound_count > 1000 * compared
    assert (False, True) in kinds


def unused_of_program(graph: DependencyGraph) -> list[str]:
    return sorted(graph.objects[need.provider].path for need in unused_needs(graph) if need.user == 0)


def listed_unused(path: str) -> tuple[list[str], int]:
    """Ask as `ldd -u` does, which is a script around this; it exits with 1 where it found any."""
    done = trace(path, LD_WARN="", LD_DEBUG="unused")
    return sorted(line.strip() for line in done.stdout.splitlines() if line.startswith("\t")), done.returncode


def test_the_needs_of_a_program_that_are_for_nothing_are_those_that_ldd_lists() -> None:
    # The loader relocates the program alone, and pairs its needs with the objects by their number. So it goes wrong
    # where two needs are one file, or where something is preloaded (both below). And it never lists what a library
    # needs for nothing, nor what weak references alone are bound to.
    reader = Programs(environment=Environment())
    chosen = some(NEEDS_COUNT)
    compared = unused_count = 0
    with ThreadPoolExecutor(2) as pool:
        for path, (expected, code) in zip(chosen, pool.map(listed_unused, chosen), strict=True):
            graph = reader.graph(path)
            if not is_glibc(graph):
                continue
            assert unused_of_program(graph) == expected, path
            assert code == bool(expected), path
            compared += 1
            unused_count += bool(expected)
    if len(programs()) < NEEDS_COUNT:
        pytest.skip(f"only {compared} programs to compare, and all are right")
    assert compared >= 300
    assert unused_count


@pytest.mark.skipif(shutil.which("ldd") is None, reason="ldd is missing")
def test_what_ldd_prints_is_what_the_loader_was_asked_for() -> None:
    for path in some(4):
        done = subprocess.run(["ldd", "-u", path], capture_output=True, text=True, check=False)
        if "not a dynamic executable" not in done.stdout + done.stderr:
            listed = sorted(line.strip() for line in done.stdout.splitlines()[1:])
            assert (listed, done.returncode) == listed_unused(path)


# --- cases that the programs of a machine do not have, built by a real linker -----------------------------------------


def build(folder: Path, output: str, source: str, *options: str, has_soname: bool = True) -> str:
    path = folder / output
    code = folder / f"{output}.c"
    code.write_text(source)
    kind = [] if output == "program" else ["-shared", "-fPIC", *([f"-Wl,-soname,{output}"] if has_soname else [])]
    command = ["gcc", "-o", str(path), *kind, "-Wl,--no-as-needed", f"-Wl,-rpath,{folder}", str(code), *options]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return str(path)


def compare(path: str) -> DependencyGraph:
    graph = Programs(environment=Environment()).graph(path)
    expected, _ = said(path)
    assert ours(graph) == expected
    return graph


@needs_gcc
@pytest.mark.skipif(shutil.which("ld.gold") is None, reason="gold is missing; ld refuses this")
def test_the_address_of_a_protected_function_is_where_the_program_stands_in_for_it(tmp_path: Path) -> None:
    protected = '__attribute__((visibility("protected")))'
    source = f"{protected} int f(void) {{ return 1; }} int (*table)(void) = f; {protected} int v; int *address = &v;"
    build(tmp_path, "liba.so", source)
    source = "int f(void); int (*volatile taken)(void); int main(void) { taken = f; return 0; }"
    path = build(tmp_path, "program", source, "liba.so", "-fno-pic", "-no-pie", "-fuse-ld=gold")
    bindings = compare(path).bindings
    assert [reference.name for reference in bindings.references(1, 0)] == ["f"]
    assert [reference.name for reference in bindings.references(1, 1)] == ["v"]


@needs_gcc
def test_a_symbolic_library_copies_versions_and_unique_symbols_are_bound_as_the_loader_does(tmp_path: Path) -> None:
    (tmp_path / "v1").write_text("V1 { old; };")
    (tmp_path / "v2").write_text("V1 { old; }; V2 { two; } V1; V3 { two3; } V2;")
    old = '__asm__(".symver a1,two@V1"); int a1(void) { return 1; }'
    new = '__asm__(".symver a2,two@@V2"); int a2(void) { return 2; }'
    build(tmp_path, "libold.so", "int old(void) { return 1; } int data = 3;")
    build(tmp_path, "libv.so", f"{old} {new} int old(void) {{ return 1; }}", f"-Wl,--version-script={tmp_path}/v2")
    source = "extern int data; int old(void); int own(void) { return old(); } int get(void) { return own() + data; }"
    build(tmp_path, "libs.so", source, "-Wl,-Bsymbolic", "libold.so", "libv.so")
    # Linked with the newest, run with it: no version, and a version.
    source = "extern int data; int two(void); int get(void); int own(void) { return 9; }"
    source += " int main(void) { return two() + get() + data; }"
    path = build(tmp_path, "program", source, "libs.so", "libold.so", "libv.so", "-fno-pic", "-no-pie")
    graph = compare(path)
    names = [graph.name(number) for number in range(4)]
    assert names == ["program", "libs.so", "libold.so", "libv.so"]
    assert [reference.name for reference in graph.bindings.references(1, 0)] == ["data"]
    assert [reference.name for reference in graph.bindings.references(0, 3)] == ["two"]


CXX = shutil.which("g++")


@needs_gcc
@pytest.mark.skipif(CXX is None, reason="g++ is missing")
def test_a_unique_symbol_of_two_versions_is_one_in_the_process(tmp_path: Path) -> None:
    source = "inline int &count() { static int number; return number; } int get_NAME() { return ++count(); }\n"
    for name in ("a", "b"):
        (tmp_path / f"{name}.cpp").write_text(source.replace("NAME", name))
        (tmp_path / f"{name}.map").write_text(f"V_{name} {{ *; }};")
        options = ["-shared", "-fPIC", f"-Wl,-soname,lib{name}.so", f"-Wl,--version-script={tmp_path}/{name}.map"]
        command = ["g++", *options, "-o", f"lib{name}.so", f"{name}.cpp"]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    source = "int main(void) { return 0; }"
    graph = compare(build(tmp_path, "program", source, "liba.so", "libb.so"))
    assert [graph.name(number) for number in (1, 2)] == ["liba.so", "libb.so"]
    unique = "_ZZ5countvE6number"
    assert [unique in symbols.unique for symbols in graph.bindings.symbols[1:3]] == [True, True]
    # The last is relocated first.
    assert unique in {reference.name for reference in graph.bindings.references(1, 2)}
    assert unique in {reference.name for reference in graph.bindings.references(2, 2)}


@needs_gcc
def test_where_two_needs_are_one_file_ldd_lists_what_stands_behind_and_we_list_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, "liba.so", "int a(void) { return 1; }")
    (tmp_path / "folder").mkdir()
    # Without a soname a library is needed by the path that was given to the linker.
    plain = build(tmp_path, "libplain.so", "int b(void) { return 2; }", has_soname=False)
    shutil.copy(plain, tmp_path / "folder")
    source = "int a(void); int b(void); int main(void) { return a() + b(); }"
    path = build(tmp_path, "program", source, "./libplain.so", "folder/libplain.so", "liba.so")
    (tmp_path / "folder" / "libplain.so").unlink()
    (tmp_path / "folder" / "libplain.so").symlink_to(plain)
    graph = Programs(environment=Environment(cwd=str(tmp_path))).graph(path)
    assert unused_of_program(graph) == []
    assert [dependency.place for dependency in graph.objects[0].dependencies] == [1, 1, 2, 3]
    monkeypatch.chdir(tmp_path)
    # The loader stands behind the C library.
    assert listed_unused(path)[0] == [GLIBC]


@needs_gcc
def test_what_is_preloaded_is_no_need_though_ldd_lists_it(tmp_path: Path) -> None:
    build(tmp_path, "liba.so", "int a(void) { return 1; }")
    preloaded = build(tmp_path, "libp.so", "int p(void) { return 1; }")
    path = build(tmp_path, "program", "int a(void); int main(void) { return a(); }", "liba.so")
    graph = Programs(environment=Environment(preload=preloaded)).graph(path)
    assert unused_of_program(graph) == []
    assert preloaded in trace(path, LD_DEBUG="unused", LD_WARN="", LD_PRELOAD=preloaded).stdout


@needs_gcc
def test_a_need_of_the_loader_is_listed_where_nothing_of_it_is_used(tmp_path: Path) -> None:
    path = build(tmp_path, "program", "int main(void) { return 0; }", GLIBC)
    graph = compare(path)
    assert graph.objects[0].dependencies[0].name == "ld-linux-x86-64.so.2"
    assert unused_of_program(graph) == listed_unused(path)[0] == [GLIBC]


SAME_FUNCTIONS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static unsigned long state = 88172645463325252ul;
static unsigned long random_bits(void) { state ^= state << 13; state ^= state >> 7; return state ^= state << 17; }
static void *in_libc, *in_libm;
static int differ;
#define BYTES(type) (sizeof(type) == 16 ? 10 : sizeof(type))
#define FILL(x) do { unsigned long bits[2] = {random_bits(), random_bits()}; \
    if (sizeof x == 16) bits[0] |= 1ul << 63; memcpy(&x, bits, sizeof x); } while (0)
#define BOTH(name) fc = (void *)dlvsym(in_libc, name, VERSION), fm = (void *)dlvsym(in_libm, name, VERSION); \
    if (!fc || !fm || (void *)fc == (void *)fm) { printf("%s is not in both\\n", name); differ = 1; } \
    else for (int n = 0; n < 100000; n++)
#define COMPARE(type, name, equal) do { if (memcmp(&c, &m, BYTES(type)) || !(equal)) { \
    printf("%s differs\\n", name); differ = 1; break; } } while (0)
#define OF_TYPE(type, s) { \\
    { int (*fc)(type), (*fm)(type); type x, c = 0, m = 0; \\
      BOTH("finite" s) { FILL(x); COMPARE(type, "finite" s, fc(x) == fm(x)); } \\
      BOTH("__signbit" s) { FILL(x); COMPARE(type, "__signbit" s, fc(x) == fm(x)); } } \\
    { type (*fc)(type, type), (*fm)(type, type), x, y, c, m; \\
      BOTH("copysign" s) { FILL(x); FILL(y); c = fc(x, y); m = fm(x, y); COMPARE(type, "copysign" s, 1); } } \\
    { type (*fc)(type, int *), (*fm)(type, int *), x, c, m; int a, b; \\
      BOTH("frexp" s) { a = b = 0; FILL(x); c = fc(x, &a); m = fm(x, &b); COMPARE(type, "frexp" s, a == b); } } \\
    { type (*fc)(type, int), (*fm)(type, int), x, c, m; int e; \\
      BOTH("ldexp" s) { e = random_bits() % 40000 - 20000; FILL(x); c = fc(x, e); m = fm(x, e); \\
        COMPARE(type, "ldexp" s, 1); } \\
      BOTH("scalbn" s) { e = random_bits() % 4000 - 2000; FILL(x); c = fc(x, e); m = fm(x, e); \\
        COMPARE(type, "scalbn" s, 1); } } \\
    { type (*fc)(type, type *), (*fm)(type, type *), x, c, m, i, j; \\
      BOTH("modf" s) { FILL(x); c = fc(x, &i); m = fm(x, &j); \\
        COMPARE(type, "modf" s, !memcmp(&i, &j, BYTES(type))); } } }
int main(void) {
    in_libc = dlopen("libc.so.6", RTLD_NOW); in_libm = dlopen("libm.so.6", RTLD_NOW);
    OF_TYPE(double, "") OF_TYPE(float, "f") OF_TYPE(long double, "l")
    return differ;
}
"""


@needs_gcc
def test_what_libc_and_libm_both_define_returns_the_same(tmp_path: Path) -> None:
    """So it is no difference for a program which of them comes first."""
    (tmp_path / "same.c").write_text(SAME_FUNCTIONS)
    line = ["gcc", "-O1", "-w", '-DVERSION="GLIBC_2.2.5"', "-o", "same", "same.c"]
    subprocess.run(line, check=True, cwd=tmp_path)
    done = subprocess.run([tmp_path / "same"], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
