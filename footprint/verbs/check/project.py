"""What a project consists of, as far as a gate needs it: its programs, how it is built, where its CI runs."""

import stat
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from footprint.elf.abi import ET_EXEC, PT_INTERP
from footprint.elf.image import read_image
from footprint.errors import FootprintError
from footprint.release.link_lines import project_files
from footprint.system.files import open_input

_MOST_CONFIG_BYTES: Final = 1 << 16
# By the file that a build starts from: the commands. The first that is there counts.
_BUILDS: Final = {
    "CMakeLists.txt": "cmake -B build && cmake --build build",
    "meson.build": "meson setup build && meson compile -C build",
    "Cargo.toml": "cargo build --release",
    "go.mod": "go build ./...",
    "configure": "./configure && make",
    "Makefile": "make",
    "makefile": "make",
    "GNUmakefile": "make",
}


class Forge(StrEnum):
    """Where the project is hosted, and its CI runs."""

    GITHUB = "github"
    GITLAB = "gitlab"


class Project(NamedTuple):
    """What was found in the folder of a project.

    Attributes:
        programs: The ELF programs that were built in it, the newest first; paths below the folder.
        build: The commands that build it; None if no known build file is there.
        forge: Where it is hosted; None if nothing says so.
        root: The root of its repository, which is the folder itself if it is in none.
        inside: The folder below the root; empty if it is the root.
    """

    programs: tuple[str, ...]
    build: str | None
    forge: Forge | None
    root: Path
    inside: str


def read_project(folder: Path) -> Project:
    """Find the programs, the build and the forge of a project. Nothing is run."""
    programs_found = [path for path in _executables(folder) if _is_program(path)]
    programs_found.sort(key=lambda path: (-path.stat().st_mtime, path))
    programs = tuple(str(path.relative_to(folder)) for path in programs_found)
    build = next((command for name, command in _BUILDS.items() if (folder / name).is_file()), None)
    whole = folder.resolve()
    root = next((parent for parent in (whole, *whole.parents) if (parent / ".git").exists()), whole)
    inside = "" if root == whole else str(whole.relative_to(root))
    return Project(programs, build, _forge(folder) or _forge(root), root, inside)


def _executables(folder: Path) -> Iterator[Path]:
    for path in project_files(folder):
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode) and mode & 0o111:
            yield path


def _is_program(path: Path) -> bool:
    """Return whether a file is an ELF program: no library, no object file."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return False
        image = read_image(open_input(str(path)), str(path))
        return image.type == ET_EXEC or image.segment(PT_INTERP) is not None
    except (OSError, FootprintError):
        return False


def _forge(folder: Path) -> Forge | None:
    if (folder / ".gitlab-ci.yml").is_file():
        return Forge.GITLAB
    if (folder / ".github").is_dir():
        return Forge.GITHUB
    try:
        with (folder / ".git" / "config").open("rb") as file:
            remotes = file.read(_MOST_CONFIG_BYTES)
    except OSError:
        return None
    return next((forge for forge in Forge if forge.encode() in remotes), None)
