"""What the user named, resolved once into a typed target, and the options that fit each type.

A pipe can be read once. So whatever is not a live process, a program or a folder is read when it is resolved, and every
part of the answer works on these bytes.
"""

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from footprint.elf.image import Buffer, starts_like_archive, starts_like_elf
from footprint.errors import AccessError, InputError, UsageError
from footprint.members import NamedTuple
from footprint.process.snapshot import (
    TEXT_CAPTURE_START,
    Snapshot,
    looks_like_capture,
    looks_like_memory_text,
    read_process,
    read_texts,
)
from footprint.series import looks_like_series
from footprint.system.files import StrPath, is_compressed, open_input, text_of

if TYPE_CHECKING:
    from footprint.model.over_time import OverTime
    from footprint.process.control_groups import ControlGroup


Named = int | StrPath
"""How a user names a target: a PID, as a number or as digits; or a path, where `-` is standard input."""

_HEAD_BYTES: Final = 1024
_STANDARD_INPUT: Final = "standard input"
_LONGEST_INTERPRETER: Final = 256  # as far as the kernel reads


class Process(NamedTuple):
    """A live process."""

    pid: int

    @property
    def name(self) -> str:
        """The name of the target in reports."""
        return str(self.pid)


class ProcessChoice(NamedTuple):
    """Which live processes a group is made of, beside those that are named by their PIDs.

    Attributes:
        tree: A process, with all its descendants.
        name: The name of processes.
        cgroup: The path of a control group, with or without its mount point: all processes in it and below it.
        unit: A unit of systemd: all processes of its control group.
        container: The ID of a container, 12 digits at least: all processes of its control group.
    """

    tree: int | None = None
    name: str | None = None
    cgroup: str | None = None
    unit: str | None = None
    container: str | None = None

    @property
    def words(self) -> list[str]:
        """The options that choose them."""
        return [f"--{option} {value}" for option, value in self._asdict().items() if value is not None]

    def control_group(self) -> "ControlGroup | None":
        """Find the control group that is chosen; None where none is.

        Raises:
            AccessError: If there is no such group.
            UsageError: If several are chosen, or the ID is too short.
        """
        from footprint.process.control_groups import (  # noqa: PLC0415 # few targets are control groups
            find_container,
            find_control_group,
            find_unit,
        )

        finders = ((find_control_group, self.cgroup), (find_unit, self.unit), (find_container, self.container))
        chosen = [(find, value) for find, value in finders if value is not None]
        if len(chosen) > 1:
            raise UsageError("choose one of --cgroup, --unit and --container")
        return chosen[0][0](chosen[0][1]) if chosen else None


NO_CHOICE: Final = ProcessChoice()


class Processes(NamedTuple):
    """Several live processes that are audited as one.

    Attributes:
        name: What was named.
        pids: Their PIDs.
        choice: How those among them were chosen that were not named by their PIDs.
        control_group: The control group that they are, if one was chosen.
    """

    name: str
    pids: tuple[int, ...]
    choice: ProcessChoice = NO_CHOICE
    control_group: "ControlGroup | None" = None


class Program(NamedTuple):
    """An ELF file, which is not run."""

    name: str


class Folders(NamedTuple):
    """Folders of programs."""

    name: str
    paths: tuple[str, ...]


class Capture(NamedTuple):
    """A file of `footprint capture`, with one process or several.

    Attributes:
        name: The path, or `standard input`.
        snapshots: All processes, those without mappings too.
    """

    name: str
    snapshots: tuple[Snapshot, ...]


class Text(NamedTuple):
    """A saved `maps`, `smaps` or `pmap` text, or a file that is none of the other types.

    Attributes:
        name: The path, or `standard input`; of a heap profile with its moment, as the user named it.
        data: The whole file.
        moment: The moment that was named of a heap profile (`massif.out@peak`).
    """

    name: str
    data: Buffer
    moment: str | None = None


class AuditFile(NamedTuple):
    """A saved audit, or another JSON answer of footprint.

    Attributes:
        name: The path, or `standard input`.
        data: The whole file, or the audit of a series.
        over_time: The figures of the series that it is from; None where it is from none.
    """

    name: str
    data: Buffer
    over_time: "OverTime | None" = None


SingleTarget = Process | Program | Capture | Text | AuditFile
"""What one PID or path can name."""

AnyTarget = SingleTarget | Processes
"""What can be audited as one."""

Target = SingleTarget | Processes | Folders


class _Kind(StrEnum):
    """What a target is, as errors call it."""

    PROCESS = "a live process"
    PROCESSES = "a group of processes"
    PROGRAM = "a program"
    FOLDERS = "a folder of programs"
    CAPTURE = "a capture"
    CAPTURED_GROUP = "a capture of several processes"
    TEXT = "a saved text"
    AUDIT = "a saved audit"
    SAVED_GROUP = "a saved group"


_KINDS: Final[dict[type[Target], _Kind]] = {
    Process: _Kind.PROCESS,
    Processes: _Kind.PROCESSES,
    Program: _Kind.PROGRAM,
    Folders: _Kind.FOLDERS,
    Capture: _Kind.CAPTURE,
    Text: _Kind.TEXT,
    AuditFile: _Kind.AUDIT,
}
_OF_SEVERAL: Final = {_Kind.CAPTURE: _Kind.CAPTURED_GROUP, _Kind.AUDIT: _Kind.SAVED_GROUP}
_FITS: Final[dict[str, tuple[_Kind, ...]]] = {
    "-n": tuple(_Kind),
    "--pid": (_Kind.CAPTURE, _Kind.TEXT),
    "--root": (_Kind.PROGRAM, _Kind.FOLDERS, _Kind.CAPTURE, _Kind.CAPTURED_GROUP, _Kind.TEXT),
    "--page-size": (_Kind.PROGRAM, _Kind.FOLDERS),
    "--findings": (_Kind.PROCESS, _Kind.PROCESSES, _Kind.PROGRAM),
    "--heap": (_Kind.PROCESS, _Kind.CAPTURE, _Kind.TEXT, _Kind.AUDIT),
    "--reproducible": (_Kind.PROGRAM, _Kind.CAPTURE, _Kind.CAPTURED_GROUP, _Kind.TEXT, _Kind.AUDIT, _Kind.SAVED_GROUP),
    "--model": (_Kind.PROCESS, _Kind.PROGRAM, _Kind.CAPTURE, _Kind.TEXT, _Kind.AUDIT),
    "--workers": (_Kind.PROCESSES, _Kind.CAPTURED_GROUP, _Kind.SAVED_GROUP),
}
"""By option: the kinds of target that it goes with. An option that is not here goes with all of them."""


def check_options(target: Target, options: Iterable[str], *, is_group: bool = False) -> None:
    """Check that the options that are given go with a target.

    Args:
        target: The target.
        options: The options as the command names them.
        is_group: Whether the file that it is holds several processes, of which none is chosen.

    Raises:
        UsageError: If one of them does not.
    """
    kind = _KINDS[type(target)]
    kind = _OF_SEVERAL.get(kind, kind) if is_group else kind
    for option in options:
        if kind not in _FITS[option]:
            *others, last = _FITS[option]
            fitting = " or ".join(filter(None, (", ".join(others), last)))
            is_choice = kind is _Kind.CAPTURED_GROUP and _Kind.CAPTURE in _FITS[option]
            advice = ": choose one with --pid" if is_choice else ""
            raise UsageError(f"{option} goes with {fitting}; {target.name} is {kind}{advice}")


def resolve(
    target: Named | SingleTarget, *, root: StrPath | None = None, series_moment: str | None = None
) -> SingleTarget:
    """Find out what a user means by one PID or path.

    A number is a process, and `-` standard input, also if a file has that name.

    Args:
        target: What the user named; or a target, which is returned.
        root: The folder that programs take for `/`. With it, a path that no file of this machine has is a program.
        series_moment: The moment of a series of which none is named; None for the last one.

    Raises:
        AccessError: If a file cannot be opened.
        InputError: If it is not a file, or a damaged capture.
        UsageError: If it is a number that no process has.
    """
    if isinstance(target, SingleTarget):
        return target
    process = process_of(target)
    if process is not None:
        return process
    path = os.fspath(target)  # type: ignore[arg-type] # no number
    if path != "-" and _is_program(path, has_root=root is not None):
        return Program(path)
    file, moment = split_moment(path)
    if moment is not None:
        return _at_moment(path, file, moment)
    name = _STANDARD_INPUT if path == "-" else path
    if path != "-" and os.path.isdir(path):
        raise InputError(path, "it is a directory; `footprint audit --all` ranks the programs in one")
    data = _unpacked(open_input(path, lambda head: _check_head(head, name)), name)
    head = bytes(data[:_HEAD_BYTES])
    if looks_like_series(head):
        return _of_series(data, f"{name}@{series_moment}" if series_moment else name, series_moment)
    if looks_like_capture(head):
        return Capture(name, _captured(data, name))
    return AuditFile(name, data) if looks_like_audit(head) else Text(name, data)


def _check_head(head: bytes, name: str) -> None:
    """Check that the beginning of a pipe is something that footprint reads: a pipe may have no end.

    Raises:
        InputError: Where it is not.
    """
    start = head[:_HEAD_BYTES]
    is_known = is_compressed(start) or looks_like_capture(start) or start.lstrip().startswith(b"{")
    if not is_known and not starts_like_elf(start) and not starts_like_archive(start):
        from footprint.heap.formats import looks_like_profile  # noqa: PLC0415 # few pipes are that long

        if not looks_like_memory_text(head) and not looks_like_profile(head, name):
            raise _not_memory(name, start)


def _not_memory(name: str, head: bytes) -> InputError:
    if head.startswith(b"#!"):
        return script_error(name, head)
    return InputError(name, "neither maps, smaps nor pmap output: no line of its beginning is a mapping", 0)


def script_error(name: str, head: bytes) -> InputError:
    """Return the error on a script where a program is expected, given its beginning."""
    program = _interpreter(head)
    advice = f"audit the program that runs it (footprint {program}), or the PID of a process that does"
    return InputError(name, f"it is a script of {program}: {advice}")


def check_no_process(path: str, instead: str) -> None:
    """Check that a path is not the PID of a process, of which a verb that reads files knows nothing.

    Raises:
        UsageError: If it is all digits, and no file has this name; with what to do instead.
    """
    if path.isascii() and path.isdigit() and not os.path.lexists(path):
        raise UsageError(f"{path} is a PID, and no file has this name: {instead}")


def _interpreter(head: bytes) -> str:
    """Return the program that a script names in its first line, by `env` or by its path."""
    from shutil import which  # noqa: PLC0415 # few targets are scripts

    first, *rest = head[2:_LONGEST_INTERPRETER].partition(b"\n")[0].decode("utf-8", "replace").split() or ["/bin/sh"]
    named = (word for word in rest if not word.startswith("-") and "=" not in word)
    program = next(named, None) if os.path.basename(first) == "env" else None
    return first if program is None else which(program) or program


def split_moment(name: str) -> tuple[str, str | None]:
    """Split `FILE@MOMENT` into the file and the moment; the moment is None where a file has the whole name."""
    file, _, moment = name.rpartition("@")
    if not file or not moment or os.path.lexists(name) or (file != "-" and not os.path.exists(file)):
        return name, None
    return file, moment


def _at_moment(name: str, file: str, moment: str) -> Text | AuditFile:
    """Read a heap profile or a series of which a moment was named.

    Raises:
        AccessError: If it is neither: then no file has the name.
        InputError: If it is a damaged series, or one without that moment.
    """
    from footprint.heap.formats import looks_like_profile  # noqa: PLC0415 # few targets are moments

    data = open_input(file)
    if looks_like_series(bytes(data[:_HEAD_BYTES])):
        return _of_series(data, name, moment)
    if not looks_like_profile(data, file):
        raise AccessError(name, os.strerror(errno.ENOENT))
    return Text(name, data, moment)


def _of_series(data: Buffer, name: str, moment: str | None) -> AuditFile:
    """Return the audit at a moment of a series; the last one where no moment is named."""
    from footprint.series.moments import audit_at  # noqa: PLC0415 # few targets are series

    return AuditFile(name, *audit_at(data, name, moment))


def _captured(data: Buffer, name: str) -> tuple[Snapshot, ...]:
    """Read the processes of a capture, those without mappings too."""
    if bytes(data[: len(TEXT_CAPTURE_START)]) == TEXT_CAPTURE_START:
        from footprint.elf.notes import build_id_of_start  # noqa: PLC0415 # only captures need it
        from footprint.process.text_capture import read_text_capture  # noqa: PLC0415 # the same

        return read_text_capture(text_of(data, name), name, build_id_of_start)
    from footprint.process.capture import read_capture  # noqa: PLC0415 # zipfile and json, which nothing else needs

    return read_capture(data, name)


def _unpacked(data: Buffer, name: str) -> Buffer:
    """Decompress a text, and replace the ends of lines that a terminal wrote (`kubectl exec -t`).

    Raises:
        InputError: If it is damaged, or too long.
    """
    if is_compressed(data):
        from footprint.system.decompression import pieces_of  # noqa: PLC0415 # few files are compressed

        data = b"".join(pieces_of(data, name))
    first_line, _, _ = bytes(data[:_HEAD_BYTES]).partition(b"\n")
    is_from_terminal = first_line.endswith(b"\r") and b"\0" not in first_line
    return text_of(data, name).replace(b"\r\n", b"\n") if is_from_terminal else data


def process_of(target: Named) -> Process | None:
    """Return the live process that a number or digits name, or None for a path.

    Raises:
        UsageError: If no process can have this number.
    """
    if isinstance(target, os.PathLike):
        return None
    digits = str(target)
    if isinstance(target, str) and not (digits.isascii() and digits.isdigit()):
        return None
    if len(digits) > 10 or not 0 < int(digits) < 1 << 31:
        raise UsageError(f"{digits[:20]} is not a process ID")
    return Process(int(digits))


def resolve_processes(targets: Sequence[Named] = (), choice: ProcessChoice = NO_CHOICE) -> Processes:
    """Find several live processes.

    Args:
        targets: Their PIDs.
        choice: Which ones are added.

    Raises:
        AccessError: If one that is named is not there, or none is chosen.
        UsageError: If a target is no PID.
    """
    pids: dict[int, None] = {}
    for target in targets:
        text = str(target)
        if not (text.isascii() and text.isdigit() and len(text) < 11):
            raise UsageError(f"{text} is not a PID: several targets must be live processes")
        pids[int(text)] = None
    if choice.tree is not None or choice.name is not None:
        from footprint.process.status import descendants, named  # noqa: PLC0415 # most targets are one process
    if choice.tree is not None:
        pids |= dict.fromkeys(descendants(choice.tree))
    if choice.name is not None:
        pids |= dict.fromkeys(named(choice.name))
    control_group = choice.control_group() if choice[2:] != (None, None, None) else None
    if control_group is not None:
        from footprint.process.control_groups import pids_of  # noqa: PLC0415 # few targets are control groups

        pids |= dict.fromkeys(pids_of(control_group))
    if not pids:
        raise UsageError("name the processes: PIDs, --tree PID, --name NAME, --cgroup PATH, --unit or --container")
    return Processes(" ".join([*map(str, targets), *choice.words]), tuple(pids), choice, control_group)


def resolve_any(
    targets: Sequence[Named],
    choice: ProcessChoice = NO_CHOICE,
    *,
    root: StrPath | None = None,
    series_moment: str | None = None,
) -> AnyTarget:
    """Find out what a user means by PIDs, a path, or options that choose processes: several processes, or one target.

    Raises:
        AccessError: If a file cannot be opened, or no process is found.
        InputError: If a file is damaged.
        UsageError: If nothing is named, or several targets are not all processes.
    """
    if len(targets) == 1 and choice == NO_CHOICE:
        return resolve(targets[0], root=root, series_moment=series_moment)
    return resolve_processes(targets, choice)


def snapshot_of(target: SingleTarget, pid: int | None = None) -> Snapshot:
    """Read the one process of a target.

    Args:
        target: The target.
        pid: Which process of a capture or a text with several.

    Raises:
        AccessError: If a live process cannot be read.
        InputError: If a file is damaged, or has no mapping.
        UsageError: If the file holds several processes, and `pid` is None; or if the target is a program.
    """
    if isinstance(target, Process):
        return read_process(target.pid)
    if isinstance(target, Program):
        raise UsageError(f"{target.name} is a program, which has no mappings: name a process, a capture or a text")
    if isinstance(target, AuditFile):
        raise InputError(target.name, "it is a saved audit, which has a ledger and no mappings")
    snapshots = target.snapshots if isinstance(target, Capture) else _snapshots_of(target)
    filled = [snapshot for snapshot in snapshots if snapshot.memory.mappings and pid in {None, snapshot.pid}]
    if len(filled) == 1:
        return filled[0]
    if not filled:
        wanted = "no mapping" if pid is None else f"no mapping of process {pid}"
        raise InputError(target.name, f"{wanted} in it: kernel threads, zombies and processes that ended have none")
    if any(item.pid is None for item in filled):
        raise UsageError(
            f"{target.name} holds {len(filled)} processes, not all with a number: save one text for each process"
        )
    numbers = list(dict.fromkeys(str(item.pid) for item in filled))
    if len(numbers) == 1:
        raise UsageError(f"{target.name} holds process {numbers[0]} more than once: save one text for each moment")
    pids = ", ".join(numbers)
    raise UsageError(f"{target.name} holds {len(numbers)} processes: choose one with --pid ({pids})")


def filled_snapshots(capture: Capture) -> tuple[Snapshot, ...]:
    """Return the processes of a capture that have mappings."""
    return tuple([snapshot for snapshot in capture.snapshots if snapshot.memory.mappings])


def _snapshots_of(text: Text) -> tuple[Snapshot, ...]:
    """Read the processes of a text, those without mappings too."""
    if not text.data:
        raise InputError(text.name, "the file is empty: kernel threads and zombies have no mappings")
    head = bytes(text.data[:65536])
    if starts_like_elf(head) or starts_like_archive(head):
        raise UsageError(f"{text.name} is an ELF file, not a process: name a program by its path")
    if head.lstrip().startswith(b"{"):
        raise InputError(text.name, "it is JSON, but footprint did not write it")
    if not looks_like_memory_text(head):
        raise _not_memory(text.name, head)
    return read_texts(text_of(text.data, text.name), text.name)


def _is_program(path: str, *, has_root: bool) -> bool:
    """Return whether a path is that of an ELF file, or of no file of this machine while there is a root."""
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            # Opening a pipe that nobody writes to would block.
            return has_root and stat.S_ISDIR(mode)
        with open(path, "rb") as file:
            return starts_like_elf(file.read(4))
    except OSError:
        return has_root
    except ValueError:
        return False


def looks_like_audit(head: bytes | memoryview) -> bool:
    """Return whether a file claims, in its first kilobyte, to be JSON that footprint has written."""
    start = bytes(head[:_HEAD_BYTES]).lstrip()
    return start.startswith(b"{") and b'"schema"' in start and b'"footprint/' in start
