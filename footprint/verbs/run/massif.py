"""A program run under Valgrind's massif, for the profile of its heap."""

import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

from footprint.errors import AccessError, InputError, Note, cause_of
from footprint.process.launch import launch
from footprint.process.launch.moment import Moment, Streams, When, rereadable_input
from footprint.sources.demanglers import find_tool
from footprint.system.files import open_input
from footprint.system.whole_file import open_kept, whole_file

_TOOL: Final = "valgrind"
# Valgrind runs a program some 20 times slower than it runs by itself.
_SLOWER: Final = 20
_WRITING_SECONDS: Final = 30.0  # how long Valgrind may take to write the profiles, of which one may have 100 MB
_OPTIONS: Final = (
    "-q",
    "--tool=massif",
    "--trace-children=yes",  # what the process becomes by exec is still it
    "--threshold=0",
    "--detailed-freq=1",
    "--max-snapshots=40",
    "--peak-inaccuracy=0",
    "--time-unit=B",  # by instructions, what the last of them frees may be in no snapshot
    "--xtree-memory=allocs",  # what is live at the end, of which massif writes no snapshot
    "--num-callers=30",  # in that tree as many as in those of massif
    # What the C and C++ libraries hold is live: by itself the program does not free it either.
    "--run-libc-freeres=no",
    "--run-cxx-freeres=no",
)
_MOST_LOG_BYTES: Final = 1 << 16
_SNAPSHOT: Final = b"#-----------\nsnapshot="
_HEAD: Final = re.compile(rb"^snapshot=([0-9]{1,9})\n(#-+\n)time=([0-9]{1,18})$", re.MULTILINE)


class Profiled(NamedTuple):
    """What came of it.

    Attributes:
        path: The profile of the program itself; of its children there are none.
        at: The moment of it that fits the one asked for: its end; or its peak, where the program ended before that
            moment, and so had given back its memory.
        notes: What was odd.
    """

    path: str
    at: str
    notes: tuple[Note, ...]


def valgrind() -> str:
    """Return the path of Valgrind.

    Raises:
        AccessError: Where it is not installed.
    """
    tool = find_tool(_TOOL)
    if tool is None:
        raise AccessError(_TOOL, "it is not installed, or anybody may replace it; massif is a part of it")
    return tool


@contextmanager
def profiled_by_massif(
    command: Sequence[str], moment: Moment, limit_seconds: float, kept_as: str | None
) -> Iterator[Profiled]:
    """Run a program under massif to a moment, and give its profile; it is gone afterwards where it is not kept.

    What the program prints then is dropped: it was seen when it ran by itself. What was a file as our standard input is
    read anew; anything else can be read once, so it has none.

    Args:
        command: The program and its arguments.
        moment: When to end it.
        limit_seconds: After how long it is ended anyway.
        kept_as: Where to keep the profile; None for nowhere.

    Raises:
        AccessError: Where there is no Valgrind, it cannot run the program, or the profile cannot be kept.
    """
    tool = valgrind()
    import tempfile  # noqa: PLC0415 # only here something is put aside

    with tempfile.TemporaryDirectory(prefix="footprint-") as folder:
        # A percent sign begins a word that Valgrind replaces.
        plain = folder.replace("%", "%%")
        files = (
            f"--{of}-file={plain}/%p.{end}"
            for of, end in (("massif-out", "out"), ("xtree-memory", "ms"), ("log", "log"))
        )
        words = (tool, *_OPTIONS, *files, "--", *command)
        streams = Streams(rereadable_input(), lambda _: None, lambda _: None)
        taken = launch(words, _under_valgrind(moment, limit_seconds), lambda tasks: tasks[0], streams=streams)
        profile = f"{folder}/{taken.pid}.out"
        if not os.path.isfile(profile):
            raise AccessError(_TOOL, f"it wrote no profile of {command[0]}{_cause(f'{folder}/{taken.pid}.log')}")
        # That an exit came before the limit is as it should be, and what Valgrind itself gives back is of no interest.
        slugs = {"left-behind", "not-stopped", *(() if moment.when is When.EXIT else ("moment-not-reached",))}
        notes = [*(note for note in taken.notes if note.slug in slugs), *_notes(moment, taken.when)]
        if moment.when is When.EXIT and taken.when is not When.EXIT:
            detail = f"under Valgrind it did not end within {limit_seconds:g} s, and was ended"
            notes.append(Note("massif-cut-off", command[0], detail))
        _append_end(profile, f"{folder}/{taken.pid}.ms")
        if kept_as is not None:
            _keep(profile, kept_as)
        has_ended_before = moment.when is not When.EXIT and taken.when is When.EXIT
        yield Profiled(kept_as or profile, "peak" if has_ended_before else "end", tuple(notes))


def _under_valgrind(moment: Moment, limit_seconds: float) -> Moment:
    """Return a moment that comes in any case."""
    if moment.when is When.EXIT:
        # One that ends before is taken at its exit.
        return Moment(When.TIME, limit_seconds, end_seconds=_WRITING_SECONDS)
    seconds = moment.seconds * _SLOWER if moment.when is When.TIME else limit_seconds
    return replace(moment, seconds=min(limit_seconds, seconds), end_seconds=_WRITING_SECONDS)


def _notes(moment: Moment, when: When) -> Iterator[Note]:
    if moment.when is When.TIME and when is When.TIME:
        detail = f"Valgrind makes a program about {_SLOWER} times slower: the profile was taken {_SLOWER} times as late"
        yield Note("massif-slower", _TOOL, detail)
    mode = os.fstat(0).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        detail = "a pipe can be read once: under Valgrind the program had no input"
        yield Note("massif-no-input", _TOOL, detail)


def _cause(log: str) -> str:
    """Return what Valgrind says about it."""
    try:
        text = bytes(open_input(log)[:_MOST_LOG_BYTES]).decode("utf-8", "replace").strip()
    except (AccessError, InputError):
        return ""
    last = text.splitlines()[-1] if text else ""
    return f": {last.rpartition('== ')[2] or last}" if last else ""


def _append_end(profile: str, xtree: str) -> None:
    """Append the columns of an XTree to the profile of massif, as the snapshots that follow its last one."""
    if not os.path.isfile(xtree):
        return
    text, columns = bytes(open_input(profile)), bytes(open_input(xtree))
    last = _HEAD.search(text, text.rfind(_SNAPSHOT))
    if last is None or _SNAPSHOT not in columns or not text.endswith(b"\n"):
        return

    def following(head: re.Match[bytes]) -> bytes:
        return b"snapshot=%d\n%btime=%b" % (int(last[1]) + 1 + int(head[1]), head[2], last[3])

    with open(open_kept(profile), "ab") as file:
        file.write(_HEAD.sub(following, columns[columns.index(_SNAPSHOT) :]))


def _keep(profile: str, path: str) -> None:
    try:
        with open(profile, "rb") as source, whole_file(path, mode=0o600) as file:
            shutil.copyfileobj(source, file)
    except OSError as error:
        raise AccessError(path, cause_of(error)) from error
