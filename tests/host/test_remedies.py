"""What a finding tells to do about an unused library is done, for each build system, and the library is gone.

Debian's gcc passes --as-needed by itself; the compiler here takes it back, as those of other systems never pass it.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from footprint.elf.dynamic import read_linkage
from footprint.elf.image import read_image
from footprint.findings.graph_rules.unused_library import unused_libraries
from footprint.loader.development_links import DevelopmentLinks
from footprint.loader.link_map import link
from footprint.loader.system import System
from footprint.loader.target import Environment
from footprint.sources.programs import Programs

ROOT = Path(__file__).resolve().parents[2]
FIVE = "int main(void) { return 5; }\n"


class Build(NamedTuple):
    """A build system: its files, how it builds, where the program is, and the change that the page names.

    Attributes:
        change: The file to change, the old text and the new one; the new one stands on the page as it is.
    """

    tools: str
    files: dict[str, str]
    command: str
    program: str
    change: tuple[str, str, str]


BUILDS = {
    "make": Build(
        "make",
        {
            "main.c": FIVE,
            "Makefile": "LDFLAGS =\nLDLIBS = -lz\nprog: main.o\n\t$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)\n",
        },
        "make -B",
        "prog",
        ("Makefile", "LDFLAGS =", "LDFLAGS = -Wl,--as-needed"),
    ),
    "CMake": Build(
        "cmake",
        {
            "main.c": FIVE,
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.13)\nproject(prog C)\nadd_executable(prog main.c)\n"
            "target_link_libraries(prog PRIVATE z)\n",
        },
        "cmake -S . -B build && cmake --build build",
        "build/prog",
        (
            "CMakeLists.txt",
            "target_link_libraries",
            "target_link_options(prog PRIVATE LINKER:--as-needed)\ntarget_link_libraries",
        ),
    ),
    "Meson": Build(
        "meson ninja",
        {
            "main.c": FIVE,
            "meson.build": "project('prog', 'c', default_options: ['b_asneeded=false'])\n"
            "z = meson.get_compiler('c').find_library('z')\nexecutable('prog', 'main.c', dependencies: z)\n",
        },
        "rm -rf build && meson setup build && ninja -C build",
        "build/prog",
        ("meson.build", "b_asneeded=false", "b_asneeded=true"),
    ),
    "libtool": Build(
        "autoreconf libtoolize automake make",
        {
            "main.c": "int five(void);\nint main(void) { return five(); }\n",
            "five.c": "int five(void) { return 5; }\n",
            "configure.ac": "AC_INIT([prog],[1])\nAM_INIT_AUTOMAKE([foreign])\nAC_PROG_CC\nAM_PROG_AR\n"
            "LT_INIT([disable-static])\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
            "Makefile.am": "lib_LTLIBRARIES = libfive.la\nlibfive_la_SOURCES = five.c\nlibfive_la_LIBADD = -lz\n"
            "bin_PROGRAMS = prog\nprog_SOURCES = main.c\nprog_LDADD = libfive.la\n",
            "build": './configure CC="$CC" --prefix="$PWD/there"\n',
        },
        "autoreconf -fi && sh -e build && make clean install",
        "there/bin/prog",
        ("build", 'CC="$CC"', 'CC="$CC -Wl,--as-needed"'),
    ),
    "cgo": Build(
        "go",
        {
            "go.mod": "module prog\ngo 1.19\n",
            "main.go": "package main\n\n// #cgo LDFLAGS: -lz\n// int five(void) { return 5; }\n"
            'import "C"\nimport "os"\n\n'
            "func main() { os.Exit(int(C.five())) }\n",
        },
        "go build -o prog .",
        "prog",
        ("main.go", "#cgo LDFLAGS: -lz", "#cgo LDFLAGS: -Wl,--as-needed -lz"),
    ),
    "rustc": Build(
        "rustc",
        {
            "main.rs": "fn main() { std::process::exit(5) }\n",
            "build": 'rustc -C linker="$CC" -C link-arg=-Wl,--no-as-needed -C link-arg=-lz main.rs -o prog\n',
        },
        "sh -e build",
        "prog",
        ("build", "-C link-arg=-Wl,--no-as-needed ", "-C link-arg=-Wl,--as-needed "),
    ),
}
ADVICE = {
    "cgo": "drop -lz from #cgo LDFLAGS of prog, or write -Wl,--as-needed before it there",
    "rustc": "find what links -lz into prog although rustc passes --as-needed: a link-arg -Wl,--no-as-needed, or a"
    " library named by its path",
    "libtool": "relink libfive.so.0, which needs libz.so.1 for nothing, with -Wl,--as-needed",
}


def unused(program: Path) -> dict[str, str]:
    """Return the unused libraries of a program, each with its remedy."""
    graph = Programs(environment=Environment(cwd=str(program.parent))).graph(str(program))
    return {one.subject: one.remedy for one in unused_libraries(graph) if one.saving_bytes}


@pytest.mark.parametrize("name", BUILDS)
def test_the_remedy_for_each_build_system_removes_the_unused_library(name: str, tmp_path: Path) -> None:
    build = BUILDS[name]
    for tool in (*build.tools.split(), "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing")
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\nexec gcc -Wl,--no-as-needed "$@"\n')
    compiler.chmod(0o755)
    folder = tmp_path / "source"
    folder.mkdir()
    for file, text in build.files.items():
        (folder / file).write_text(text)
    program = folder / build.program

    def make() -> None:
        made = subprocess.run(
            ["sh", "-c", build.command],
            cwd=folder,
            env=os.environ | {"CC": str(compiler), "GOFLAGS": "-buildvcs=false", "GOCACHE": str(tmp_path / "go")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stdout + made.stderr

    make()
    assert unused(program) == {
        "libz.so.1": ADVICE.get(name, "drop -lz from the link of prog, or write -Wl,--as-needed before it there")
    }
    assert subprocess.run([program], check=False).returncode == 5
    file, old, new = build.change
    text = (folder / file).read_text()
    assert text.count(old) == 1
    (folder / file).write_text(text.replace(old, new))
    make()
    assert unused(program) == {}
    assert subprocess.run([program], check=False).returncode == 5


@pytest.mark.parametrize("driver", ["g++ -Wl,--no-as-needed", "clang++"])
def test_what_the_driver_of_cxx_adds_to_c_code_goes_as_the_finding_says(tmp_path: Path, driver: str) -> None:
    for tool in ("gcc", "g++", "clang", "clang++"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing")
    program = tmp_path / "prog"
    (tmp_path / "main.c").write_text(FIVE)
    subprocess.run(["gcc", "-c", "main.c"], check=True, cwd=tmp_path)
    told = (
        "link prog with gcc or clang instead of g++ or clang++, which add -lstdc++ -lm -lgcc_s by themselves, or write"
    )
    for link_line, remedies in (
        (driver, [f"{told} -Wl,--as-needed there"]),
        ("gcc", []),
        ("clang", []),
        (f"{driver} -Wl,--as-needed", []),
    ):
        subprocess.run([*link_line.split(), "-o", "prog", "main.o"], check=True, cwd=tmp_path)
        assert list(unused(program).values()) == remedies, link_line
        assert subprocess.run([program], check=False).returncode == 5


@pytest.mark.parametrize("name", BUILDS)
def test_the_page_of_the_rule_has_a_row_for_each_build_system_that_was_tried(name: str) -> None:
    page = (ROOT / "docs/findings/unused-library.md").read_text()
    row = re.search(rf"^\| {re.escape(name)}\b.*", page, re.MULTILINE)
    assert row
    new = BUILDS[name].change[2].partition("\n")[0].replace("$CC", "gcc").strip()
    assert new in row[0]


def test_the_linker_finds_each_library_of_this_machine_by_the_name_that_is_advised(tmp_path: Path) -> None:
    system = System("/")
    links = DevelopmentLinks(system)
    home = Path("/usr/lib/x86_64-linux-gnu")
    tried: set[str] = set()
    for path in sorted({os.path.realpath(each) for each in home.glob("lib*.so.*")}):
        if Path(path).read_bytes()[:4] != b"\x7fELF":
            continue
        library = link(system, path, Environment()).objects[0]
        name = links.name_of(library)
        if name is None:
            continue
        made = tmp_path / "made.so"
        subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,--no-as-needed", "-o", made, f"-l{name}"], check=True)
        needed = read_linkage(read_image(made.read_bytes(), "made.so")).needed
        assert library.library.linkage.soname in needed, name
        tried.add(name)
    assert len(tried) >= 20
    # The links of the compiler's own libraries are in a folder of the compiler.
    assert tried >= {"stdc++", "gcc_s", "gomp", "quadmath"}
