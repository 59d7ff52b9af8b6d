"""Where issues stand for reviewers: each at a file of the repository, as far as one is known."""

from pathlib import Path

import pytest

from footprint.formats.issues import Issues, issues_of_findings
from footprint.model.finding import SourceLocation
from footprint.verbs.issue_places import placed_issues
from tests.hostile import finding

MAKEFILE = "LDLIBS = -lm\nserver: server.c\n\t$(CC) -o $@ server.c $(LDLIBS)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the folder of a program in a repository that has another folder beside it."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "daemon"
    folder.mkdir()
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "server.c").write_text("static int table[1000];\n")
    (folder / "server").write_bytes(b"\x7fELF")
    return folder


def placed(folder: Path, location: SourceLocation | None, binary: str = "", program: str = "server") -> SourceLocation:
    given = issues_of_findings([finding("table", location=location)], "server", binary=program)
    given = given._replace(issues=tuple(one._replace(binary=binary or one.binary) for one in given.issues))
    (issue,) = placed_issues(given, str(folder)).issues
    assert issue.location is not None
    return issue.location


@pytest.mark.parametrize("name", ["server.c", "./server.c", "DIR/server.c"])
def test_a_source_line_is_named_from_the_root_of_the_repository(project: Path, name: str) -> None:
    found = placed(project, SourceLocation(name.replace("DIR", str(project)), 1))
    assert found == SourceLocation("daemon/server.c", 1)


def test_a_source_that_was_named_from_another_folder_is_the_file_with_that_ending(project: Path) -> None:
    assert placed(project.parent, SourceLocation("daemon/server.c", 1)) == SourceLocation("daemon/server.c", 1)
    (project / "src").mkdir()
    (project / "src" / "table.h").write_text("")
    assert placed(project, SourceLocation("src/table.h", 1), "server").file == "daemon/src/table.h"
    assert placed(project.parent, SourceLocation("src/table.h", 1), "daemon/server").file == "daemon/src/table.h"


@pytest.mark.parametrize("file", ["nss/nss_module.c", "/usr/include/stdio.h", "../../elsewhere.c"])
def test_a_source_outside_the_repository_is_named_in_words_at_the_line_that_links_the_program(
    project: Path, file: str
) -> None:
    given = issues_of_findings([finding("table", location=SourceLocation(file, 377))], "server", binary="server")
    (issue,) = placed_issues(given, str(project)).issues
    assert issue.location == SourceLocation("daemon/Makefile", 3)
    assert issue.message.endswith(f" Declared at {file}:377.")


@pytest.mark.parametrize("binary", ["server", "/usr/lib/x86_64-linux-gnu/libc.so.6", ""])
def test_what_has_no_source_line_is_at_the_line_that_links_the_program(project: Path, binary: str) -> None:
    assert placed(project, None, binary) == SourceLocation("daemon/Makefile", 3)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("Makefile", "all: server\n\nserver: a.o b.o\n\t@echo it\n\tcc -o server a.o b.o\n", 5),
        ("Makefile", "build/server: a.o\n\tcc -o $@ a.o\n", 2),
        ("CMakeLists.txt", "project(server)\nadd_executable(server a.c)\ntarget_link_libraries(server m)\n", 3),
        ("CMakeLists.txt", "project(server)\nadd_executable(server a.c)\n", 2),
        ("meson.build", "project('server', 'c')\nexecutable('server', 'a.c')\n", 2),
        ("Cargo.toml", '[package]\nname = "server"\n', 2),
        ("Makefile", "include rules.mk\n", 1),
    ],
)
def test_the_line_that_links_a_program_is_found_in_each_kind_of_build_file(
    tmp_path: Path, name: str, text: str, line: int
) -> None:
    (tmp_path / name).write_text(text)
    assert placed(tmp_path, None, "build/server") == SourceLocation(name, line)


def test_the_nearest_build_file_counts(project: Path) -> None:
    (project.parent / "Makefile").write_text("server:\n\tcc -o server\n")
    assert placed(project.parent, None, "daemon/server").file == "daemon/Makefile"


def test_an_unused_library_is_at_the_line_that_links_it(project: Path) -> None:
    unused = finding("libm.so.6", rule="unused-library")
    (issue,) = placed_issues(issues_of_findings([unused], "server", binary="server"), str(project)).issues
    assert issue.location == SourceLocation("daemon/Makefile", 1)


def test_a_program_that_the_project_does_not_build_has_no_place_in_it(project: Path) -> None:
    given = issues_of_findings([finding("table")], "node", binary="/usr/bin/node")
    (issue,) = placed_issues(given, str(project)).issues
    assert (issue.location, issue.binary) == (None, "/usr/bin/node")


def test_no_issue_is_without_a_place_where_any_file_is_known(project: Path) -> None:
    issues: Issues = issues_of_findings([finding("table")], "group", binary="")
    (issue,) = placed_issues(issues, str(project)).issues
    assert issue.location == SourceLocation("daemon/Makefile", 1)
