"""The line of a build file that links a library, and what a linker map says of it."""

from pathlib import Path

import pytest

from footprint.elf.linker_map import linked_libraries
from footprint.errors import UnsupportedError
from footprint.formats.issues import Level, growth_issues, root_sentence
from footprint.model.finding import SourceLocation
from footprint.release.compare import Comparison, compare
from footprint.release.link_lines import link_lines, program_line, with_link_lines
from footprint.release.new_libraries import NewRoot
from tests.ledgers import audit_of

MAPS = Path(__file__).parents[1] / "corpus" / "linker_maps"

# By the name of a build file: its text, the soname, and the number of the line that links the library.
LINES = {
    "Makefile": ("CFLAGS = -O2\nLDLIBS += -lm -lcurl\n", "libcurl.so.4", 2),
    "GNUmakefile": ("all: app\n# was -lcurl\nLIBS=$(TOP)/lib/libcurl.so\n", "libcurl.so.4", 3),
    "rules.mk": ("LDLIBS := $(shell pkg-config --libs libcurl)\n", "libcurl.so.4", 1),
    "server/Makefile": ("server: LDLIBS += -lcurl\nserver: server.c libcurl.so\n", "libcurl.so.4", 1),
    "posix.mk": ("LDLIBS ::= -lcurl\n", "libcurl.so.4", 1),
    "win.pri": ("unix:LIBS += -lcurl\n", "libcurl.so.4", 1),
    "Makefile.am": ("app_LDADD = \\\n  -lz \\\n  -lcurl\n", "libcurl.so.4", 3),
    "configure.ac": ("AC_INIT\nAC_CHECK_LIB([curl], [curl_easy_init])\n", "libcurl.so.4", 2),
    "CMakeLists.txt": ("target_link_libraries(app\n  PRIVATE m\n  CURL::libcurl)\n", "libcurl.so.4", 3),
    "deps.cmake": ("link_libraries(${ZLIB_LIBRARIES}) # ZLIB::ZLIB\n", "libz.so.1", 1),
    "meson.build": ("curl = dependency('libcurl', version : '>=7')\n", "libcurl.so.4", 1),
    "sub/meson.build": ("c = cc.find_library('ssl')\nd = cc.find_library('z')\n", "libz.so.1", 2),
    "BUILD.bazel": ('cc_binary(\n  name = "app",\n  linkopts = ["-lcurl"],\n)\n', "libcurl.so.4", 3),
    "app.pro": ("QT += core\nLIBS += -lcurl\n", "libcurl.so.4", 2),
    "build.rs": ('fn main() {\n println!("cargo:rustc-link-lib=dylib=curl");\n}\n', "libcurl.so.4", 2),
    "Cargo.toml": ('[dependencies]\nlibz-sys = "1"\n', "libz.so.1", 2),
    "net.rs": ('#[link(name = "curl")]\nextern "C" {}\n', "libcurl.so.4", 1),
    "net.go": ("package net\n\n// #cgo LDFLAGS: -lm -lcurl\n", "libcurl.so.4", 3),
    "key.go": ("// #cgo linux pkg-config: openssl libcurl\n", "libcurl.so.4", 1),
    "app.cabal": ("executable app\n  extra-libraries: m, curl\n", "libcurl.so.4", 2),
    "setup.py": ('Extension("a", ["a.c"],\n libraries=["m", "curl"])\n', "libcurl.so.4", 2),
    "binding.gyp": ('{"libraries": ["-lcurl"]}\n', "libcurl.so.4", 1),
}
# What names a library and does not link it.
NO_LINES = {
    "Makefile": "libcurl.so: curl.c\n\tcc -shared -o libcurl.so curl.c -Wl,-soname,libcurl.so\n\trm -f libcurl.so\n",
    "CMakeLists.txt": "find_package(CURL REQUIRED)\n# target_link_libraries(app curl)\nadd_library(curl curl.c)\n",
    "meson.build": "executable('curl', 'curl.c')\n# dependency('libcurl')\n",
    "main.c": "/* link with -lcurl */\n",
    "other.mk": "LDLIBS += -lcurlpp -lnotcurl\n",
}


@pytest.mark.parametrize("name", LINES)
def test_each_kind_of_build_file_has_a_line_that_links_a_library(tmp_path: Path, name: str) -> None:
    text, soname, line = LINES[name]
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    assert link_lines(soname, tmp_path) == (SourceLocation(name, line),)


@pytest.mark.parametrize("name", NO_LINES)
def test_a_line_that_only_names_a_library_does_not_link_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(NO_LINES[name])
    assert link_lines("libcurl.so.4", tmp_path) == ()


def test_generated_and_foreign_build_files_link_nothing(tmp_path: Path) -> None:
    for name in ("Makefile.am", "Makefile.in", "Makefile", "vendor/Makefile"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("LIBS = -lcurl\n")
    assert link_lines("libcurl.so.4", tmp_path) == (SourceLocation("Makefile.am", 1),)


def test_of_several_lines_the_one_that_names_the_program_counts(tmp_path: Path) -> None:
    text = "target_link_libraries(tool curl)\ntarget_link_libraries(agentd curl)\n"
    (tmp_path / "CMakeLists.txt").write_text(text)
    file = "CMakeLists.txt"
    assert link_lines("libcurl.so.4", tmp_path) == (SourceLocation(file, 1), SourceLocation(file, 2))
    assert link_lines("libcurl.so.4", tmp_path, ("agentd",)) == (SourceLocation(file, 2),)


def root(user: Path) -> NewRoot:
    return NewRoot("/usr/lib/libcurl.so.4", "libcurl.so.4", (str(user),), 36, 940 << 10)


def placed(comparison: Comparison, root: NewRoot, folder: Path, linker_map: str | None = None) -> NewRoot:
    (found,) = with_link_lines(comparison._replace(roots=(root,)), str(folder), linker_map).roots
    return found


def test_a_library_is_reported_at_the_only_line_that_links_it(tmp_path: Path, unchanged: Comparison) -> None:
    (tmp_path / "Makefile").write_text("LDLIBS = -lcurl\n")
    found = placed(unchanged, root(tmp_path / "agentd"), tmp_path)
    at = SourceLocation("Makefile", 1)
    assert (found.location, found.possible_locations) == (at, ())
    assert root_sentence(found).endswith("It is linked at Makefile:1.")
    (issue,) = growth_issues(unchanged._replace(roots=(found,)), Level.NOTE)
    assert issue.location == at


def test_several_lines_are_listed_and_the_program_is_the_place(tmp_path: Path, unchanged: Comparison) -> None:
    for name in ("a.mk", "b.mk"):
        (tmp_path / name).write_text("LDLIBS = -lcurl\n")
    (tmp_path / "Makefile").write_text("include a.mk\n")
    found = placed(unchanged, root(tmp_path / "agentd"), tmp_path)
    assert found.location is None
    assert root_sentence(found).endswith("It may be linked at a.mk:1 or b.mk:1.")
    (issue,) = growth_issues(unchanged._replace(roots=(found,)), Level.NOTE)
    assert (issue.location, issue.binary) == (None, f"{tmp_path}/agentd")


def test_the_lines_of_a_project_say_nothing_of_a_program_elsewhere(tmp_path: Path, unchanged: Comparison) -> None:
    (tmp_path / "Makefile").write_text("LDLIBS = -lcurl\n")
    assert placed(unchanged, root(Path("/usr/bin/agentd")), tmp_path).location is None
    # A folder without a build file is no project.
    (tmp_path / "sub").mkdir()
    (tmp_path / "Makefile").rename(tmp_path / "sub" / "Makefile")
    assert placed(unchanged, root(tmp_path / "agentd"), tmp_path).location is None


GNU_MAP = b"""
As-needed library included to satisfy reference by file (symbol)

libz.so.1                     main.o (zlibVersion)
libcurl-with-a-very-long-name.so.4
                              net.o (curl_easy_init@@CURL_1)

Linker script and memory map

LOAD main.o
LOAD /usr/lib/x86_64-linux-gnu/libz.so
LOAD /opt/lib/libcurl-with-a-very-long-name.so.4

*default*        0x0000000000000000 0xffffffffffffffff
.data           0x0000000000004000       0x10
"""


def test_a_map_of_gnu_ld_has_the_line_of_a_library_and_who_needs_it(tmp_path: Path, unchanged: Comparison) -> None:
    assert linked_libraries(GNU_MAP, "a.map") == {
        "libz.so.1": (None, "main.o (zlibVersion)"),
        "libcurl-with-a-very-long-name.so.4": (12, "net.o (curl_easy_init@@CURL_1)"),
        "libz.so": (11, None),
    }
    (tmp_path / "a.map").write_bytes(GNU_MAP)
    named = root(tmp_path / "agentd")._replace(name="libz.so.1", owner="/usr/lib/libz.so.1.2.13")
    result = placed(unchanged, named, tmp_path, str(tmp_path / "a.map"))
    assert (result.location, result.needed_for) == (SourceLocation(f"{tmp_path}/a.map", 11), "main.o (zlibVersion)")
    assert root_sentence(result).endswith(f"It is linked at {tmp_path}/a.map:11, for main.o (zlibVersion).")
    # A line of a build file is the better place: a reviewer sees it.
    (tmp_path / "Makefile").write_text("LDLIBS = -lz\n")
    result = placed(unchanged, named, tmp_path, str(tmp_path / "a.map"))
    assert result.location == SourceLocation("Makefile", 1)
    assert result.needed_for == "main.o (zlibVersion)"


@pytest.mark.parametrize("linker", ["gold", "lld", "mold"])
def test_a_map_that_lists_no_libraries_is_refused(linker: str) -> None:
    data = (MAPS / f"{linker}-64.map").read_bytes()
    with pytest.raises(UnsupportedError, match="only GNU ld lists the shared libraries in its map"):
        linked_libraries(data, "a.map")


@pytest.fixture
def unchanged() -> Comparison:
    return compare(audit_of(), audit_of())


@pytest.mark.parametrize(
    ("generated", "place"),
    [(("cmake_install.cmake", "Makefile"), "CMakeLists.txt"), (("Makefile",), "build/Makefile")],
)
def test_what_cmake_wrote_is_no_build_file(tmp_path: Path, generated: tuple[str, ...], place: str) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "CMakeLists.txt").write_text("add_subdirectory(src)\n")
    for name in generated:
        (tmp_path / "build" / name).write_text("app:\n\tcc -o app main.c -lcurl\n")
    line = program_line("build/app", tmp_path)
    assert line is not None
    assert line.file == place
