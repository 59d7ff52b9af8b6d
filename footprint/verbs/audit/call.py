"""`footprint.audit`, `footprint.project` and `footprint.maps`: what a process holds, live or from a saved text."""

import os
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from footprint.attribution.counters import held_by_each
from footprint.attribution.layout import lay_out
from footprint.attribution.process_audit import audit_snapshot, mapped_files
from footprint.elf import (
    Buffer,
    Image,
    read_image,
    starts_like_archive,
    starts_like_elf,
)
from footprint.errors import AccessError, InputError, Note, UsageError
from footprint.files import open_input, text_of
from footprint.model.audit import Audit
from footprint.model.projection import ONE, Model, Question
from footprint.process import (
    Mapping,
    PageRange,
    Snapshot,
    looks_like_memory_text,
    open_mapped_file,
    read_process,
    read_texts,
)
from footprint.process.descriptors import NO_DESCRIPTORS, read_descriptors
from footprint.process.mapped_files import FileKey
from footprint.process.snapshot import looks_like_capture
from footprint.sources.calibration import load_constants
from footprint.sources.debug_files import STANDARD_PLACES, DebugFiles, DebugSearch
from footprint.sources.demanglers import learn_foreign_names, learn_told_names
from footprint.sources.object_files import ObjectFiles
from footprint.sources.saved_files import BY_PATH, check_root, open_saved_file, unverified_note

if TYPE_CHECKING:
    from footprint.attribution.page_maps import Presence
    from footprint.formats.saved_audit import SavedAudit
    from footprint.model.row import Row
    from footprint.verbs.maps.answer import OwnedMap

__all__ = (
    "audit",
    "audit_of",
    "captured",
    "head_of",
    "maps",
    "process_number",
    "project",
    "read_saved",
    "saved_audit",
    "with_files_told",
)

# A report of a hundred files that are not there helps nobody: the first ones are named, the rest counted.
_MOST_FILE_NOTES = 3


def audit(  # noqa: PLR0913 # all but the target have their name
    target: int | str,
    *,
    count: int = 1,
    memory_bytes: int | None = None,
    model: str = "exec",
    pid: int | None = None,
    root: str | None = None,
    page_bytes: int | None = None,
    has_findings: bool = False,
    has_page_maps: bool = False,
    heap: str | None = None,
    heap_at: str | None = None,
    allocators: Sequence[str] = (),
    binaries: Sequence[str] = (),
    debug: DebugSearch | None = STANDARD_PLACES,
    is_reproducible: bool = False,
) -> Audit:
    """Audit a process: where its memory goes, and what `count` of it cost.

    Args:
        target: A PID; the path of a program or library, which is not run; or that of a saved audit, a capture, or a
            saved `maps`, `smaps` or `pmap` text (`-` is standard input).
        count: How many processes to project to.
        memory_bytes: Project to how many fit into this instead.
        model: How they come about: `exec` (started copies), `fork` (workers of one parent), `threads`.
        pid: Which process of a text or capture that holds several.
        root: A folder in which the files of the other machine are, for captures and texts; for a program, what it
            takes for `/`.
        page_bytes: The size of a page, for a program and another machine than this.
        has_findings: Of a live process, tell what it could do without as well, which takes some time; a program is
            always told.
        has_page_maps: Tell the pages of its objects one by one, for a picture; of a saved audit, as it was saved.
        heap: An allocator profile of another run of the same program, by which the heap is split.
        heap_at: Which moment of it: the number of a snapshot, a time with its unit, `peak` or `end`; None for its end.
        allocators: More functions that only hand memory on, for `heap`.
        binaries: Programs and libraries of the process, for `heap`, where its own files cannot be had.
        debug: Where to look for the symbols of stripped files; None for nowhere.
        is_reproducible: Of a program, whether the same files give the same answer on any machine.

    Raises:
        AccessError: Where the process is gone or may not be read, or the file cannot be opened.
        InputError: Where the text is none of these, or holds no mapping.
        UsageError: Where the question does not fit the target.
    """
    if heap is not None or heap_at is not None or allocators or binaries:
        _check_heap(target, heap)
        found = audit(
            target,
            count=count,
            memory_bytes=memory_bytes,
            model=model,
            pid=pid,
            root=root,
            page_bytes=page_bytes,
            has_findings=has_findings,
            has_page_maps=has_page_maps,
            debug=debug,
            is_reproducible=is_reproducible,
        )
        from footprint.verbs.audit.heap_call import HeapQuestion, with_heap  # noqa: PLC0415 # profiles, which few audits have

        asked = HeapQuestion(heap or "", heap_at, tuple(allocators), tuple(binaries))
        return with_heap(found, asked, snapshot=_again(found, target, pid), root=root, debug=debug)
    question = Question(count, memory_bytes, _model(model))
    if isinstance(target, str) and _is_program(target, root):
        from footprint.verbs.libraries.call import audit_program  # noqa: PLC0415 # the loader, which no process needs

        if pid is not None:
            raise UsageError("--pid chooses among the processes of a text or capture; this is a program")
        return audit_program(
            target,
            question,
            root=root,
            page_bytes=page_bytes,
            debug=debug,
            has_page_maps=has_page_maps,
            is_reproducible=is_reproducible,
        )
    if page_bytes is not None:
        raise UsageError("--page-size goes with a program, not with a process")
    if is_reproducible and process_number(target) is not None:
        raise UsageError("--reproducible goes with files: no process is twice the same")
    if has_findings:
        from footprint.verbs.libraries.call import audit_process  # noqa: PLC0415 # the same

        number = process_number(target)
        if number is None or pid is not None:
            raise UsageError("--findings goes with a live process: a text does not tell what its files hold")
        return audit_process(number, question, debug=debug, has_page_maps=has_page_maps)
    saved = saved_audit(target, question, has_page_maps=has_page_maps)
    if saved is not None:
        if pid is not None or root is not None:
            raise UsageError("--pid and --root go with captures and texts; a saved audit is what it is")
        return saved.audit
    return audit_of(
        _snapshot(target, pid), _shown(target), question, root=root, debug=debug, has_page_maps=has_page_maps
    )


def _check_heap(target: int | str, heap: str | None) -> None:
    if heap is None:
        raise UsageError("its moment, allocators and binaries go with an allocator profile of the heap (--heap)")
    if heap == target == "-":
        raise UsageError("standard input is one of them: the process, or the profile of its heap")


def _again(found: Audit, target: int | str, pid: int | None) -> Callable[[], Snapshot | None]:
    """Give what reads a process once more: what was read of a pipe is gone, and a saved audit knows its ledger only."""
    if target == "-" or found.saved_in is not None:
        return lambda: None
    return lambda: _snapshot(target, pid)


def audit_of(
    snapshot: Snapshot,
    target: str,
    question: Question,
    *,
    root: str | None = None,
    files: ObjectFiles | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
    has_page_maps: bool = False,
) -> Audit:
    """Audit a process that was read already; its files are opened now, so a live one must still be there.

    Args:
        snapshot: The process.
        target: What the user called it.
        question: How many of it, in which model.
        root: A folder in which its files are, where it is not live.
        files: What was read of files for other processes before; read anew without it.
        debug: Where to look for the symbols of stripped files, read anew.
        has_page_maps: Whether the pages of its objects are told one by one.
    """
    images, file_notes = _images(snapshot, root)
    files = files or ObjectFiles(DebugFiles(debug, root or _other_root(snapshot)))
    known = len(files.notes)
    is_here = snapshot.is_live and snapshot.pid is not None
    with _presence(snapshot, is_wanted=has_page_maps) as presence:
        found = audit_snapshot(
            snapshot,
            images,
            files,
            target=target,
            question=question,
            constants=load_constants(snapshot.host.get("kernel", ""), snapshot.host.get("machine", "")),
            descriptors=read_descriptors(snapshot.pid or 0) if is_here else NO_DESCRIPTORS,
            notes=file_notes,
            presence=presence,
        )
    return with_files_told(found, files, known)


@contextmanager
def _presence(snapshot: Snapshot, *, is_wanted: bool) -> "Iterator[Presence | None]":
    """Give what looks up which pages a process has, where page maps are wanted; only of a live one it finds any."""
    if not is_wanted:
        yield None
        return
    from footprint.attribution.page_maps import not_looked_at  # noqa: PLC0415 # for a picture only
    from footprint.process.pages import PageReader  # noqa: PLC0415 # the same
    from footprint.process.snapshot import process_folder  # noqa: PLC0415 # the same

    if not snapshot.is_live or snapshot.pid is None or snapshot.pages is None:
        yield not_looked_at
        return
    with ExitStack() as opened:
        try:
            reader = opened.enter_context(
                PageReader(opened.enter_context(process_folder(snapshot.pid)), snapshot.page_bytes)
            )
        except (AccessError, OSError):
            # It has ended: its figures were read before, and stand.
            yield not_looked_at
            return

        def presence(mapping: Mapping) -> Sequence[PageRange] | None:
            try:
                return reader.read_present(mapping)
            except OSError:
                return None

        yield presence


def with_files_told(found: Audit, files: ObjectFiles, known: int = 0) -> Audit:
    """Say in an audit what was odd about files, but for the first notes, and where their symbols stood."""
    learn_foreign_names([row.symbol for row in found.ledger if row.symbol is not None])
    notes, debug_files = files.notes[known:], files.debug_files_of(row.owner for row in found.ledger)
    if not notes and not debug_files:
        return found
    return replace(found, notes=(*found.notes, *notes), debug_files=debug_files)


def _other_root(snapshot: Snapshot) -> str | None:
    """Give the folder that a live process takes for `/`, where that is not ours."""
    folder = f"/proc/{snapshot.pid}/root"
    try:
        return folder if snapshot.is_live and not os.path.samefile(folder, "/") else None
    except OSError:
        return None


def project(
    target: int | str,
    *,
    count: int | None = None,
    memory_bytes: int | None = None,
    model: str = "exec",
    pid: int | None = None,
    root: str | None = None,
) -> Audit:
    """Audit a process for its projection: the cost at `count`, or how many fit into `memory_bytes`.

    Raises:
        UsageError: Where neither or both are given, besides what `audit` raises.
    """
    if (count is None) == (memory_bytes is None):
        raise UsageError("say how many processes (-n), or how much memory they may take (--memory)")
    return audit(target, count=count or 1, memory_bytes=memory_bytes, model=model, pid=pid, root=root)


def saved_audit(
    target: int | str,
    question: Question = ONE,
    known_rows: "MutableMapping[str, Row] | None" = None,
    *,
    has_page_maps: bool = False,
) -> "SavedAudit | None":
    """Read a saved audit; None where the target is something else, or a pipe, of which what is read is gone.

    Args:
        target: The path of a file.
        question: How many to project it to; one leaves the number that it was saved with.
        known_rows: As for `read_audit`.
        has_page_maps: The same.

    Raises:
        InputError: Where it is damaged.
        UsageError: Where it cannot be projected so.
    """
    if isinstance(target, int):
        return None
    head = head_of(target)
    if not head.lstrip().startswith(b"{"):
        return None
    from footprint.formats.saved_audit import looks_like_audit, read_audit, reprojected  # noqa: PLC0415 # json

    if not looks_like_audit(head):
        raise InputError(target, "it is JSON, but none that footprint has written")
    found = read_audit(open_input(target), target, known_rows, has_page_maps=has_page_maps)
    named = map(attrgetter("symbol", "name"), found.audit.ledger)
    learn_told_names({symbol: name for symbol, name in named if symbol and name and symbol != name})
    return found if question == ONE else found._replace(audit=reprojected(found.audit, question))


def head_of(target: int | str) -> bytes:
    """Give how a file begins; nothing of what is none, or cannot be read, which is said where it is read.

    A pipe is not asked: what is read of it is gone. A number is a process, and `-` standard input, also where a file
    has that name.
    """
    if target == "-" or process_number(target) is not None or not os.path.isfile(target):
        return b""
    try:
        with open(target, "rb") as file:
            return file.read(1024)
    except OSError:
        return b""


def _is_program(target: str, root: str | None) -> bool:
    """Tell whether a target is an ELF file; a pipe is not asked, for what is read of it is gone.

    A capture or text is a file of this machine; what is none is a program, as seen from a root.
    """
    if target == "-" or process_number(target) is not None:
        return False
    try:
        # Asked before it is opened, which waits where it is a pipe that nobody writes to.
        if not os.path.isfile(target):
            is_other = os.path.exists(target) and not os.path.isdir(target)
            return root is not None and "\0" not in target and not is_other
        with open(target, "rb") as file:
            return starts_like_elf(file.read(4))
    except (OSError, ValueError):
        return root is not None and "\0" not in target


def _model(name: str) -> Model:
    try:
        return Model(name)
    except ValueError:
        raise UsageError(f"{name!r} is no model: exec, fork or threads") from None


def maps(target: int | str, *, pid: int | None = None, root: str | None = None) -> "OwnedMap":
    """Give the mappings of a process, each with its owner. The arguments and errors are those of `audit`."""
    from footprint.verbs.maps.answer import OwnedMap  # noqa: PLC0415 # an audit has a ledger instead

    snapshot = _snapshot(target, pid)
    images, notes = _images(snapshot, root)
    parts = lay_out(snapshot.memory, images, snapshot.page_bytes, snapshot.thread_stack_addrs)
    return OwnedMap(
        target=_shown(target),
        memory=snapshot.memory,
        held=tuple(held_by_each(snapshot.memory.mappings, snapshot.pages)),
        parts=parts,
        pid=snapshot.pid,
        command=snapshot.command,
        host=snapshot.host,
        notes=(*snapshot.notes, *notes),
    )


def _shown(target: int | str) -> str:
    return "standard input" if target == "-" else str(target)


def process_number(target: int | str) -> int | None:
    """Give the live process that a target names, or None where it names a file.

    Raises:
        UsageError: Where it is a number that no process has.
    """
    digits = str(target)
    if not (digits.isascii() and digits.isdigit()):
        return None
    if len(digits) > 10 or not 0 < int(digits) < 1 << 31:
        raise UsageError(f"{digits[:20]} is no process ID")
    return int(digits)


def _snapshot(target: int | str, pid: int | None) -> Snapshot:
    """Read the process that the target names."""
    number = process_number(target)
    if number is not None:
        if pid is not None:
            raise UsageError("--pid chooses among the processes of a text or capture; this is one live process")
        return read_process(number)
    target = str(target)
    return _choose(read_saved(target), _shown(target), pid)


def read_saved(target: str) -> tuple[Snapshot, ...]:
    """Read the processes of a capture or a saved text; those without mappings too.

    Raises:
        AccessError: Where the file cannot be opened.
        InputError: Where it is neither.
        UsageError: Where it is a program.
    """
    data = open_input(target)
    if looks_like_capture(data):
        from footprint.process.capture import read_capture  # noqa: PLC0415 # zipfile and json, which nothing else needs

        return read_capture(data, target)
    return read_texts(_text(data, _shown(target)), _shown(target))


def captured(target: str) -> tuple[Snapshot, ...]:
    """Give the processes of a capture that holds several; nothing for any other target."""
    # A pipe is not asked: what is read of it is gone.
    if not os.path.isfile(target):
        return ()
    try:
        with open(target, "rb") as file:
            if not looks_like_capture(file.read(4)):
                return ()
    except OSError:
        return ()
    several = tuple(one for one in read_saved(target) if one.memory.mappings)
    return several if len(several) > 1 else ()


def _choose(snapshots: Sequence[Snapshot], target: str, pid: int | None) -> Snapshot:
    """Take the one process that is meant."""
    filled = [one for one in snapshots if one.memory.mappings and pid in {None, one.pid}]
    if len(filled) == 1:
        return filled[0]
    if not filled:
        wanted = "no mapping" if pid is None else f"no mapping of process {pid}"
        raise InputError(target, f"{wanted} in it: kernel threads, zombies and processes that ended have none")
    if any(one.pid is None for one in filled):
        raise UsageError(f"{target} holds {len(filled)} processes, not all with a number: save one text a process")
    numbers = list(dict.fromkeys(str(one.pid) for one in filled))
    if len(numbers) == 1:
        raise UsageError(f"{target} holds process {numbers[0]} more than once: save one text a moment")
    pids = ", ".join(numbers)
    raise UsageError(f"{target} holds {len(numbers)} processes: choose one with --pid ({pids})")


def _text(data: Buffer, path: str) -> bytes:
    """Give the text of a saved memory map.

    Raises:
        InputError: Where the file is something else.
        UsageError: Where it is a program, which is no process.
    """
    if not data:
        raise InputError(path, "the file is empty: kernel threads and zombies have no mappings")
    if starts_like_elf(data) or starts_like_archive(data):
        raise UsageError(f"{path} is an ELF file, not a process: `audit`, `libraries` and `symbols` take it")
    head = bytes(data[:65536])
    if not looks_like_memory_text(head):
        raise InputError(path, "neither maps, smaps nor pmap output: no line of its beginning is a mapping", 0)
    return text_of(data, path)


def _images(snapshot: Snapshot, root: str | None = None) -> tuple[dict[FileKey, Image], tuple[Note, ...]]:
    """Read the headers of the ELF files of a process, below `root` where given; those not to be had become notes."""
    check_root(root, snapshot)
    images: dict[FileKey, Image] = {}
    missing: list[Note] = []
    unverified: list[str] = []
    mappings = snapshot.memory.mappings
    executable = {(m.device, m.inode, m.name) for m in mappings if m.permissions[2] == "x"}
    for key, index in mapped_files(snapshot).items():
        if key.inode is None:
            # pmap does not say which file it was: another one may have this name here.
            continue
        if snapshot.is_live:
            found = open_mapped_file(mappings[index], snapshot.pid)
        else:
            found = open_saved_file(mappings[index], snapshot.files.get(key), root)
        if isinstance(found, Note):
            if key in executable or ".so" in key.name:
                missing.append(found)
            continue
        if not starts_like_elf(found.data):
            continue
        try:
            images[key] = read_image(found.data, key.name)
        except InputError as error:
            missing.append(
                Note("file-unreadable", key.name, f"{error.detail}, its sections and symbols are not told apart")
            )
            continue
        if found.found_by == BY_PATH:
            unverified.append(key.name)
    return images, (*_file_notes(missing), *unverified_note(unverified), *_adjacency_note(snapshot, images))


def _file_notes(missing: Sequence[Note]) -> list[Note]:
    if len(missing) <= _MOST_FILE_NOTES:
        return list(missing)
    rest = len(missing) - _MOST_FILE_NOTES
    detail = f"{rest} more files cannot be had either: their .bss is told by adjacency, nothing by symbol"
    return [*missing[:_MOST_FILE_NOTES], Note("file-not-found", f"{rest} files", detail)]


def _adjacency_note(snapshot: Snapshot, images: dict[FileKey, Image]) -> list[Note]:
    if images or snapshot.is_live or not mapped_files(snapshot):
        return []
    detail = "no ELF file was read: nameless memory right behind a file's writable data is taken for its .bss"
    return [Note("owners-by-adjacency", snapshot.source, detail)]
