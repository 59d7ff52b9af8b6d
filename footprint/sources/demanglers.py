"""The tools that read names of D and Swift: run where such names are to be shown and the tool is there, never else."""

import os
import signal
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Final

from footprint.elf.names import Language, foreign_names, learn_names


def find_tool(name: str) -> str | None:
    """Return the path of a program in PATH, or None.

    Folders of PATH that depend on where we are (`.`, an empty entry) are left out, and so is what anybody may replace:
    a program, or a folder above it, that all users may write. A folder such as /tmp, in which nobody may replace what
    belongs to others, may lie above what belongs to us or to root.
    """
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        is_program = os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK)
        # The links on the way count, and what they lead to.
        if is_program and all(map(_is_ours, (os.path.normpath(path), os.path.realpath(path)))):
            return path
    return None


def _is_ours(path: str) -> bool:
    """Return whether nobody but its owners may replace a file, or a folder above it."""
    owner = None
    while True:
        facts = os.lstat(path)
        is_replaceable = facts.st_mode & stat.S_IWOTH and not stat.S_ISLNK(facts.st_mode)
        is_kept = facts.st_mode & stat.S_ISVTX and owner in {0, os.geteuid()}
        if is_replaceable and not is_kept:
            return False
        owner, above = facts.st_uid, os.path.dirname(path)
        if above == path:
            return True
        path = above


TOOLS: Final = {Language.D: ("c++filt", "-s", "dlang"), Language.SWIFT: ("swift-demangle", "--compact")}

_MOST_SECONDS: Final = 5
_MOST_NAMES_BYTES: Final = 4 << 20
_MOST_SHOWN_BYTES: Final = 32 << 20
_MOST_MEMORY_BYTES: Final = 1 << 30
# Limits hold from the start on: what a tool starts before it is limited would be without. Units of ulimit, POSIX.
_BOUNDED: Final = 'ulimit -f "$1" && ulimit -v "$2" && shift 2 && exec "$@"'


def learn_foreign_names(names: Iterable[str]) -> None:
    """Demangle the names that only a tool can read; without the tool they are shown as they are."""
    found_names = foreign_names(names)
    if not found_names:
        return
    for language, found_name in found_names.items():
        program = find_tool(TOOLS[language][0])
        if program is not None:
            learn_names(_read_by([program, *TOOLS[language][1:]], _first_of(found_name)))


def learn_saved_names(saved: Mapping[str, str]) -> None:
    """Show the names that only a tool can read as a saved audit has them: the tool need not be installed."""
    for names in foreign_names(saved).values():
        learn_names({name: saved[name] for name in names})


def _first_of(names: Sequence[str]) -> list[str]:
    """Return as many of the names as a tool reads at once: a hostile file can have any number."""
    kept, left_bytes = [], _MOST_NAMES_BYTES
    for name in names:
        left_bytes -= len(name) + 1
        if left_bytes < 0:
            break
        kept.append(name)
    return kept


def _read_by(command: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Run a tool on names, one a line; return nothing if it fails, or takes too much time or memory."""
    import subprocess  # noqa: PLC0415 # few programs are written in these languages
    import tempfile  # noqa: PLC0415 # the same

    bounded = [
        "/bin/sh",
        "-c",
        _BOUNDED,
        "sh",
        str(_MOST_SHOWN_BYTES // 512),
        str(_MOST_MEMORY_BYTES // 1024),
        *command,
    ]
    with tempfile.TemporaryFile() as shown:
        try:
            tool = subprocess.Popen(  # noqa: S603 # found by find_tool
                bounded, stdin=subprocess.PIPE, stdout=shown, stderr=subprocess.DEVNULL, process_group=0
            )
        except OSError:
            return {}
        with tool:
            try:
                with suppress(OSError, subprocess.TimeoutExpired):
                    tool.communicate("".join([f"{name}\n" for name in names]).encode(), timeout=_MOST_SECONDS)
            finally:
                # With what it started, which would write on.
                with suppress(ProcessLookupError):
                    os.killpg(tool.pid, signal.SIGKILL)
        lines = _lines(shown)
        return dict(zip(names, lines, strict=True)) if tool.returncode == 0 and len(lines) == len(names) else {}


def _lines(file: IO[bytes]) -> list[str]:
    file.seek(0)
    return file.read(_MOST_SHOWN_BYTES).decode("utf-8", "replace").removesuffix("\n").split("\n")
