"""The file that the name of a program stands for, and one start of it with what it prints."""

import hashlib
import os
import stat
from typing import Final

from footprint.model.projection import Question
from footprint.process.launch.moment import Moment, Streams
from footprint.verbs.run.call import start
from footprint.verbs.whatif.result import Output, Trial

_MOST_HEAD_BYTES: Final = 1 << 20


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
