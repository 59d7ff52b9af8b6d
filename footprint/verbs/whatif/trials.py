"""The file that the name of a program stands for, and one start of it with what it prints."""

import hashlib
import os
import shutil
import stat
from typing import Final

from footprint.errors import AccessError, UsageError
from footprint.model.projection import Question
from footprint.process.launch import Moment, Streams
from footprint.verbs.run.call import start
from footprint.verbs.whatif.result import Output, Trial

__all__ = ("program_file", "try_start")

_MOST_HEAD_BYTES: Final = 1 << 20


def program_file(name: str) -> str:
    """Return the absolute path of a program; a name without a slash is searched in PATH.

    Raises:
        AccessError: If there is none, or if it may not be executed.
        UsageError: If it is a script, or if the name is empty.
    """
    if not name:
        raise UsageError("say which program to run")
    found = shutil.which(name)
    if found is None:
        raise AccessError(name, _cause(name))
    path = os.path.abspath(found)
    try:
        with open(path, "rb") as file:
            head = file.read(2)
    except OSError as error:
        raise AccessError(path, error.strerror or str(error)) from error
    if head == b"#!":
        raise UsageError(f"{path} is a script: run the program in its first line, with the script as its argument")
    return path


def _cause(name: str) -> str:
    """Return why a name is no program."""
    if not os.path.exists(name):
        return "there is no such program"
    if not os.path.isfile(name):
        return "it is not a file"
    return "it is not executable" if "/" in name else f"it is not in PATH: write ./{name}"


def try_start(
    words: tuple[str, ...],
    moment: Moment,
    question: Question,
    executable: str | None,
    *,
    has_objects: bool = False,
) -> Trial:
    """Start a program once and record what it prints; the arguments are those of `footprint.verbs.run.call.start`."""
    output, errors = _Recorder(), _Recorder()
    streams = Streams(_input_path(), output.record, errors.record)
    done = start(words, moment, question, executable=executable, streams=streams, has_objects=has_objects)
    return Trial(done, output.recorded(), errors.recorded())


def _input_path() -> str:
    """Return the standard input of all starts: a file, which each start can read again, else /dev/null."""
    try:
        is_file = stat.S_ISREG(os.fstat(0).st_mode)
    except OSError:
        is_file = False
    return "/proc/self/fd/0" if is_file else os.devnull


class _Recorder:
    """Records what a program prints: the beginning, and a hash of all of it."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._hash = hashlib.sha256()
        self._size_bytes = 0

    def record(self, piece: bytes) -> None:
        self._head += piece[: _MOST_HEAD_BYTES - len(self._head)]
        self._hash.update(piece)
        self._size_bytes += len(piece)

    def recorded(self) -> Output:
        return Output(bytes(self._head), self._size_bytes, self._hash.digest())
