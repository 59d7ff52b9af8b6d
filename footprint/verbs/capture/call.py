"""`footprint.capture`: what the kernel says of processes, in one file, to be audited elsewhere."""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import IO, TYPE_CHECKING, Final

import footprint.process
from footprint import __version__
from footprint.errors import AccessError, UsageError, cause_of
from footprint.process.capture import Captured, Freeze, capture_processes
from footprint.sources.process_files import build_id_of
from footprint.store.remote import is_store, put
from footprint.system.files import StrPath
from footprint.system.whole_file import whole_file
from footprint.text.command_line import hides_command_lines
from footprint.verbs.audit.process import captured_heap_of
from footprint.verbs.capture import LONGEST_STOP_SECONDS

if TYPE_CHECKING:
    from footprint.model.finding import Finding
    from footprint.process.snapshot import Snapshot

_MOST_STOP_SECONDS: Final = 3600
_NAMES_HOST: Final = 'echo "name $(uname -n 2>/dev/null)"\n'
_OF_COMMANDS: Final = re.compile(r"^.*[ /]cmdline\".*\n", re.MULTILINE)


def capture(
    *pids: int,
    output: StrPath,
    freeze: bool = False,
    together: bool = False,
    longest_stop_seconds: float = LONGEST_STOP_SECONDS,
    anonymous: bool = False,
    findings: bool = False,
) -> Captured:
    """Write what the kernel says of processes into one file, which every verb takes as its target.

    Of several processes those that cannot be read become notes. Only its owner may read the file, since it may hold
    command lines.

    Args:
        pids: Their numbers.
        output: Where to write, whole or not at all; `-` is standard output.
        freeze: Stop each of them while it is read (ptrace). They run on however footprint ends.
        together: With `freeze`: stop all of them at one moment, until the last one has been read.
        longest_stop_seconds: How long they may be stopped; what is read later gets a note.
        anonymous: Leave out the name of this host.
        findings: Search their programs and libraries, so that a fleet of captures answers what can be saved.

    Raises:
        AccessError: If none of them exists or may be read, or the file cannot be written.
        UnsupportedError: If the only one is a kernel thread or a zombie, which have no memory.
        UsageError: If no process is named, footprint would stop itself, or options contradict each other.
    """
    if together and not freeze:
        raise UsageError("stop them together only with freeze")
    if not 0 < longest_stop_seconds <= _MOST_STOP_SECONDS:
        raise UsageError(f"the longest stop must be above 0 and at most {_MOST_STOP_SECONDS} seconds")
    if not pids:
        raise UsageError("name at least one process")
    for pid in pids:
        if not 0 < pid < 1 << 31:
            raise UsageError(f"{pid} is not a process ID")
    stop = Freeze(together, longest_stop_seconds) if freeze else None
    try:
        with _opened(os.fspath(output)) as file:
            return capture_processes(
                pids,
                file,
                freeze=stop,
                version=__version__,
                build_id_of=build_id_of,
                heap_of=captured_heap_of,
                is_anonymous=anonymous,
                find=_search() if findings else None,
            )
    except BrokenPipeError:
        raise
    except OSError as error:
        raise AccessError(os.fspath(output), cause_of(error)) from error


def _search() -> "Callable[[Snapshot], tuple[Finding, ...]]":
    from footprint.verbs.audit.findings import file_findings  # noqa: PLC0415 # few captures have findings

    return file_findings


def capture_script(*, is_anonymous: bool = False) -> str:
    """Return a POSIX shell script that prints a capture as text on a machine where footprint is not installed."""
    script = (files(footprint.process) / "capture.sh").read_text("utf-8")
    if is_anonymous:
        script = script.replace(_NAMES_HOST, "")
    return _OF_COMMANDS.sub("", script) if hides_command_lines() else script


@contextmanager
def _opened(output: str) -> Iterator[IO[bytes]]:
    """Open a file to write to; it becomes the output if all goes well."""
    if is_store(output):
        written = io.BytesIO()
        yield written
        put(output, written.getvalue())
        return
    if output != "-":
        with whole_file(output, mode=0o600, keeps_mode=False) as file:
            yield file
        return
    if sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("a capture cannot be printed on a terminal: name a file with -o")
    from footprint.verbs.output import emit  # noqa: PLC0415 # a file needs none of it

    contents = io.BytesIO()
    yield contents
    emit(contents.getvalue(), "-")
