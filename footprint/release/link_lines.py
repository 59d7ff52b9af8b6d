"""Where a reviewer looks for what grew: the lines that declare variables, and those that link new libraries.

Those of a library are lines of a build file of the project, else of the map of the linker. A line counts only if it is
the only one that links the library, or the only one of those that names its user. Of several lines none is chosen: all
are listed. Build files are not run, and variables in them are not resolved.
"""

import os
import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from footprint.elf.linker_map import LinkedLibrary, linked_libraries
from footprint.elf.notes import DebugSearch
from footprint.errors import FootprintError
from footprint.model.finding import SourceLocation
from footprint.model.row import file_name
from footprint.release.compare import Comparison
from footprint.release.new_libraries import NewRoot
from footprint.system.files import open_input

# Folders that hold nothing of the project itself.
_FOREIGN: Final = frozenset({"node_modules", "vendor", "third_party", "CMakeFiles", "__pycache__"})
# The first of these is in each folder where CMake builds; it may be that of the sources.
_OF_CMAKE: Final = ("cmake_install.cmake", "CTestTestfile.cmake", "Makefile")
_MOST_FILES: Final = 100_000


def repository_root(folder: str | Path) -> Path:
    """Return the root of the repository of a folder; the folder itself if it is in none."""
    whole = Path(folder).resolve()
    return next((parent for parent in (whole, *whole.parents) if (parent / ".git").exists()), whole)


def project_files(folder: Path) -> Iterator[Path]:
    """Return the files below a folder, without hidden folders, those of other projects, and what CMake wrote."""
    count = 0
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _FOREIGN)
        generated = _OF_CMAKE if _OF_CMAKE[0] in files else ()
        for name in sorted(set(files).difference(generated)):
            count += 1
            if count > _MOST_FILES:
                return
            yield Path(top, name)


_MOST_BYTES: Final = 1 << 20  # of one build file
_MOST_LINE_CHARS: Final = 8192


class _BuildFile(NamedTuple):
    """A kind of build file.

    Attributes:
        names: Patterns of its file names.
        comment: What begins a comment.
        links: What links libraries there; the first group holds their names. Without it, each option `-l` and each
            file name of a library links one.
    """

    names: str
    comment: str
    links: str = ""


_MAKE: Final = "Makefile makefile GNUmakefile Makefile.* *.mk *.make"
_AUTOCONF: Final = "configure.ac configure.in *.m4"
_QMAKE: Final = "*.pro *.pri"
_BUILD_FILES: Final = (
    _BuildFile(f"{_MAKE} {_AUTOCONF} {_QMAKE} BUILD BUILD.bazel *.bzl *.gyp *.gypi *.cmake CMakeLists.txt", "#"),
    _BuildFile(f"{_MAKE} {_AUTOCONF} {_QMAKE}", "#", r"(?:pkg-config|PKGCONFIG *\+?=)([^\n)`]{0,4096})"),
    _BuildFile(_AUTOCONF, "#", r"\b(?:AC_CHECK_LIB|AC_SEARCH_LIBS|PKG_CHECK_MODULES)\s*\(([^)]{0,4096})\)"),
    _BuildFile("CMakeLists.txt *.cmake", "#", r"\b(?:target_)?link_libraries\s*\(([^)]{0,4096})\)"),
    _BuildFile("meson.build", "#", r"\b(?:dependency|find_library)\s*\(\s*('[^'\n]{0,255}')"),
    _BuildFile("Cargo.toml", "#", r"(?m)^[ \t]*([\w-]{1,255}-sys)[ \t]*="),
    _BuildFile("build.rs", "//", r"rustc-link-lib=(?:[a-z][\w:+,-]{0,255}=)?([\w.+-]{1,255})"),
    _BuildFile("*.rs", "//", r"#\[link\(\s*name\s*=\s*(\"[^\"\n]{1,255}\")"),
    _BuildFile("*.go", "", r"#cgo[^\n:]{0,255}:([^\n]{0,4096})"),
    _BuildFile("*.cabal", "--", r"(?m)^[ \t]*(?:extra-libraries|pkgconfig-depends)[ \t]*:([^\n]{0,4096})"),
    _BuildFile("setup.py", "#", r"\blibraries\s*=\s*\[([^\]]{0,4096})\]"),
)
_TOKEN: Final = re.compile(r"[^\s,;'\"\[\]<>=]+")
_WORD: Final = re.compile(r"[\w.+-]+")
_FLAG_OR_FILE: Final = re.compile(r"-l.+|(?:.*/)?lib[^/]+\.(?:so|a)[.0-9]*")
# A rule with what it is made of, unless it sets a variable; and commands that only move files.
_NO_LINK: Final = re.compile(
    r"[\w.$(){}/%-][^=:\"']*:[^=]*$|\t[ @-]*(?:rm|cp|mv|ln|install|strip|\$[({](?:RM|INSTALL)\b)"
)
_OUTPUT: Final = re.compile(r"(?:-o|-soname|-install_name)[ ,=]+[^\s,]+")
_NAME_OF_FILE: Final = re.compile(r"lib(.+?)\.(?:so|a)(?:\.[0-9]+)*")
# What links a program or library in a build file; else what names it as a target. A recipe comes after its rule.
_LINKED: Final = r"^\s*target_link_libraries\s*\(\s*{name}[\s)]|\s-o\s*\S*(?<![\w.-]){name}(?![\w.-])"
_TARGET: Final = (
    r"^\s*(?:add_executable|add_library|executable|(?:shared_|both_)?library)\s*\(\s*['\"]?{name}['\",\s)]"
    r"|^\s*name\s*=\s*['\"]{name}['\"]|^(?P<rule>(?:[^:=#\s]*/)?{name}\s*:(?!=))|^\s*TARGET\s*=\s*{name}\s*$"
)
_VARIABLE: Final = re.compile(r"\$[({](\w+?)_(?:LIBRARY|LIBRARIES|LIBS|LDLIBS|LINK_LIBRARIES)[)}]")


def with_places(
    comparison: Comparison, root: str | None, debug: DebugSearch | None, linker_map: str | None
) -> Comparison:
    """Add to what grew its lines in the sources; the project is that of the working directory.

    Args:
        comparison: The comparison.
        root: The folder that the files of the audit take for `/`.
        debug: Where to look for debug files.
        linker_map: The map that GNU ld wrote of the program now.

    Raises:
        AccessError: If the map cannot be opened.
        UnsupportedError: If another linker wrote it.
    """
    if comparison.grown_variables:
        from footprint.release.declared_changes import with_locations  # noqa: PLC0415 # debug information

        comparison = with_locations(comparison, root, debug)
    if comparison.roots or linker_map is not None:
        return with_link_lines(comparison, ".", linker_map)
    return comparison


def with_link_lines(comparison: Comparison, folder: str, linker_map: str | None) -> Comparison:
    """Add to the roots of the new libraries where they are linked.

    Args:
        comparison: The comparison.
        folder: The folder of the project. Its build files count for the objects below it.
        linker_map: The map that GNU ld wrote of the program.

    Raises:
        AccessError: If the map cannot be opened.
        UnsupportedError: If another linker wrote it.
    """
    mapped = {} if linker_map is None else linked_libraries(open_input(linker_map), linker_map)
    return comparison._replace(roots=tuple([_placed(r, Path(folder), mapped, linker_map) for r in comparison.roots]))


def _placed(root: NewRoot, folder: Path, mapped: dict[str, LinkedLibrary], linker_map: str | None) -> NewRoot:
    within = folder.resolve()
    users = [file_name(user) for user in root.needed_by if within in (within / user).parents]
    lines = link_lines(root.name, folder, users) if users and _is_project(folder) else ()
    names = (root.name, file_name(root.owner), root.name.partition(".so")[0] + ".so")
    linked_names = [mapped[name] for name in dict.fromkeys(names) if name in mapped]
    map_line = next((linked_name.line for linked_name in linked_names if linked_name.line), None)
    location = lines[0] if len(lines) == 1 else None
    if not lines and linker_map is not None and map_line is not None:
        location = SourceLocation(linker_map, map_line)
    return root._replace(
        location=location,
        possible_locations=() if location else lines,
        needed_for=next((linked_name.needed_for for linked_name in linked_names if linked_name.needed_for), None),
    )


def _is_project(folder: Path) -> bool:
    """Return whether a folder is that of a project: builds start there, or it is a repository."""
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return ".git" in names or any(_kinds_of(name) for name in names if not name.endswith((".rs", ".go")))


def link_lines(soname: str, folder: Path, users: Collection[str] = ()) -> tuple[SourceLocation, ...]:
    """Find the lines of build files that link a library, in the order of their files; paths are below the folder.

    Args:
        soname: The library.
        folder: The folder of the project.
        users: The file names of the objects that need it. If some lines name them, the others are left out.
    """
    library = _NAME_OF_FILE.fullmatch(soname)
    if library is None:
        return ()
    name, lines, of_users = library[1].casefold(), set(), set()
    for path in project_files(folder):
        kinds = _kinds_of(path.name)
        text = _text_of(path) if kinds else ""
        for kind in kinds:
            for line, statement in _statements(_without_comments(text, kind.comment), kind, name):
                at = SourceLocation(str(path.relative_to(folder)), line)
                lines.add(at)
                if not set(users).isdisjoint(_WORD.findall(statement)):
                    of_users.add(at)
    return tuple(sorted(of_users or lines))


def program_line(program: str, folder: Path) -> SourceLocation | None:
    """Find the line that links a program or library of a project, else that of its target.

    The nearest build file counts. Where none names it, the first line of the nearest one above it stands for that file.

    Args:
        program: Its path below the folder; the file need not be there, as `src/*` where only its folder is known.
        folder: The folder of the project.
    """
    place = Path(program)
    library = _NAME_OF_FILE.fullmatch(place.name)
    name = "(?:" + "|".join(map(re.escape, filter(None, (place.name, library and library[1])))) + ")"
    linked, target = (re.compile(pattern.replace("{name}", name)) for pattern in (_LINKED, _TARGET))
    files = [path.relative_to(folder) for path in project_files(folder) if _kinds_of(path.name)]
    files.sort(key=lambda path: (path.parent not in place.parents, *_nearness(path, place)))
    for pattern in (linked, target):
        for path in files:
            lines = _text_of(folder / path).split("\n")
            for number, line in enumerate(lines, 1):
                if len(line) > _MOST_LINE_CHARS:
                    continue
                if pattern is linked and (rule := target.match(line)) and rule["rule"]:
                    recipe = takewhile(lambda text: text.startswith("\t"), lines[number:])
                    commands = [(at, text) for at, text in enumerate(recipe, number + 1) if "-o" in text.split()]
                    if commands:
                        return SourceLocation(
                            str(path), next((at for at, text in commands if "$@" in text), commands[0][0])
                        )
                if pattern.search(line):
                    return SourceLocation(str(path), number)
    nearest = next((path for path in files if path.parent in place.parents), None)
    return None if nearest is None else SourceLocation(str(nearest), 1)


def _nearness(path: Path, place: Path) -> tuple[int, str]:
    """Return what sorts build files: above a program the nearest first, elsewhere the outermost."""
    depth = len(path.parts)
    return (-depth if path.parent in place.parents else depth, str(path))


# For each library all files of the repository are looked at.
@lru_cache(_MOST_FILES)
def _kinds_of(name: str) -> tuple[_BuildFile, ...]:
    return tuple([kind for kind in _BUILD_FILES if any(fnmatchcase(name, pattern) for pattern in kind.names.split())])


def _text_of(path: Path) -> str:
    """Return the text of a build file; nothing of one that is generated, unreadable, or longer than any."""
    sources = (path.with_name(f"{path.name}.in"), path.with_name(f"{path.name}.am"), path.with_suffix(".am"))
    if any(source != path and source.exists() for source in sources):
        return ""
    try:
        data = open_input(str(path))
    except FootprintError:
        return ""
    return bytes(data).decode("utf-8", "replace") if len(data) <= _MOST_BYTES else ""


def _without_comments(text: str, mark: str) -> str:
    return re.sub(rf"(?m)(?:^|(?<=\s)){mark}.*$", "", text) if mark else text


def _statements(text: str, kind: _BuildFile, name: str) -> Iterator[tuple[int, str]]:
    """Return what links a library: the number of the line, and the text of the statement."""
    if kind.links:
        for statement in re.finditer(kind.links, text):
            for token in _TOKEN.finditer(statement[1]):
                if _is_library(token[0], name):
                    yield text.count("\n", 0, statement.start(1) + token.start()) + 1, statement[0]
        return
    rule = ""
    for number, line in enumerate(text.split("\n"), 1):
        rule = rule if line.startswith("\t") else line
        if len(line) > _MOST_LINE_CHARS or _NO_LINK.match(line):
            continue
        tokens = [token.rstrip(")}") for token in _TOKEN.findall(_OUTPUT.sub(" ", line))]
        if any(_FLAG_OR_FILE.fullmatch(token) and _is_library(token, name) for token in tokens):
            # A recipe links for the target of its rule.
            yield number, line if rule is line else f"{rule[:_MOST_LINE_CHARS]} {line}"


def _is_library(token: str, name: str) -> bool:
    """Return whether a word of a build file names a library: `-lz`, `libz.so`, `zlib`, `ZLIB::ZLIB`, `${ZLIB_LIBS}`."""
    variable = _VARIABLE.fullmatch(token)
    word = variable[1] if variable else token.removeprefix("-l").removeprefix(":").rsplit("/", 1)[-1]
    file = _NAME_OF_FILE.fullmatch(word)
    word = (file[1] if file else word).casefold().removesuffix("-sys")
    package, _, part = word.rpartition("::")
    return any(name in {p, p.removeprefix("lib"), p.removesuffix("lib")} for p in (part, f"{package}_{part}"))
