"""Where issues stand for reviewers: at files of the repository, as forges want it.

A forge shows an issue at a file that it has, named from the root of the repository. What has no such place stands at
the line that links its program: there a reviewer finds what to change.
"""

import os
from functools import cache
from pathlib import Path

from footprint.formats.issues import BUDGET, RUN_FAILED, Issue, Issues
from footprint.model.finding import SourceLocation, listed_places
from footprint.model.row import file_name
from footprint.release.link_lines import link_lines, program_line, project_files, repository_root


def placed_issues(issues: Issues, folder: str) -> Issues:
    """Return issues with their places in the repository of a folder, from which relative paths count."""
    places = _Places(folder)
    return issues._replace(
        issues=tuple([_placed(issue, issues.binary, places) for issue in issues.issues]),
        binary=places.below(issues.binary) or issues.binary,
    )


def _placed(issue: Issue, program: str, places: "_Places") -> Issue:
    message, given = issue.message, issue.location
    file = None if given is None else places.source(given.file)
    if given is not None and file is not None:
        location: SourceLocation | None = SourceLocation(file, given.line)
    else:
        location = places.of_library(issue.subject, issue.binary or program) or places.of_program(issue.binary, program)
        if location is not None and given is not None and issue.rule not in {BUDGET, RUN_FAILED}:
            message += f" Declared at {listed_places((given,), '')}."
    binary = issue.binary or program
    return issue._replace(location=location or given, message=message, binary=places.below(binary) or binary)


class _Places:
    """The files of a repository."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.realpath(folder)
        self._root = repository_root(folder)
        self._lines_of = cache(lambda soname, user: link_lines(soname, self._root, (user,)))
        self._program_line = cache(lambda program: program_line(program, self._root))
        self._files = cache(lambda: [f"/{path.relative_to(self._root)}" for path in project_files(self._root)])

    def below(self, file: str) -> str | None:
        """Return the path of a file from the root, whether it is there or not; None where it is not below the root."""
        path = Path(os.path.normpath(os.path.join(self._folder, file)))
        return str(path.relative_to(self._root)) if file and self._root in path.parents else None

    def source(self, file: str) -> str | None:
        """Return a file of the repository: the one at a path, else the only one that ends with a relative path."""
        path = self.below(file)
        if path is not None and (self._root / path).is_file():
            return path
        ending = f"/{os.path.normpath(file)}"
        ends = [] if file.startswith(("/", "..")) else [f for f in self._files() if f.endswith(ending)]
        return ends[0].removeprefix("/") if len(ends) == 1 else None

    def of_library(self, name: str, user: str) -> SourceLocation | None:
        """Return the only line of the build files that links a library."""
        lines = self._lines_of(file_name(name), file_name(user)) if ".so" in name else ()
        return lines[0] if len(lines) == 1 else None

    def of_program(self, binary: str, program: str) -> SourceLocation | None:
        """Return the line that links a binary, else its program; None for those that the project does not build."""
        paths = [path for file in (binary, program) if (path := self.below(file)) is not None]
        if not binary and not program:
            paths.append(os.path.relpath(os.path.join(self._folder, "*"), self._root))
        lines = [line for path in paths if (line := self._program_line(path)) is not None]
        return next((line for line in lines if line.line != 1), next(iter(lines), None))
