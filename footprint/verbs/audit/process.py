"""The audit of one process that was read already: its files are opened, and joined with what the kernel says."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from footprint.attribution.cost_models import ForkParent
from footprint.attribution.kernel import KernelConstants
from footprint.attribution.process_audit import audit_snapshot
from footprint.errors import AccessError, FootprintError, Note
from footprint.model.audit import Audit
from footprint.model.projection import Model, Question
from footprint.process import Mapping, PageRange, Snapshot, read_process
from footprint.process.descriptions import OpenFile, read_own_open_files
from footprint.process.stat import processes
from footprint.sources.calibration import load_constants
from footprint.sources.debug_files import STANDARD_PLACES, DebugSearch
from footprint.sources.demanglers import learn_foreign_names
from footprint.sources.files import ElfFiles
from footprint.sources.process_files import images_of

if TYPE_CHECKING:
    from footprint.attribution.heap_ranges import HeapRanges
    from footprint.attribution.page_maps import Presence
    from footprint.process.live_threads import LiveThreads

__all__ = ("audit_of", "files_of", "with_files_told")


def audit_of(  # noqa: PLR0913 # all but the first three have their name
    snapshot: Snapshot,
    target: str,
    question: Question,
    *,
    root: str | None = None,
    files: ElfFiles | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
    has_page_maps: bool = False,
    open_files: Sequence[OpenFile] | None = None,
    constants: KernelConstants | None = None,
    has_heap: bool = False,
    has_whole_heap: bool = False,
) -> Audit:
    """Audit a process that was read already; its files are opened now, so a live one must still be there.

    Args:
        snapshot: The process.
        target: What the user called it.
        question: How many of it, in which model.
        root: A folder in which its files are, where it is not live.
        files: What opens the files, and has read some for other processes; None to open all anew.
        debug: Where to look for the symbols of stripped files, read anew.
        has_page_maps: Whether the pages of its objects are told one by one.
        open_files: The open file descriptions that it pays for; read from a live process without it.
        constants: What its kernel spends on each thing; those that are known of its host without it.
        has_heap: Whether the structures of its allocator and of its threads are read, if it is live.
        has_whole_heap: Whether those of the allocator are read however many they are.
    """
    files = files or files_of(snapshot, debug, root)
    files.drop_if_many()
    images, file_notes = images_of(snapshot, root, files.opened, files.images)
    known = len(files.notes)
    constants = constants or load_constants(snapshot.host.get("kernel", ""), snapshot.host.get("machine", ""))
    parent: ForkParent | None = None
    parent_notes: Sequence[Note] = ()
    if snapshot.is_live and question.model in {None, Model.FORK}:
        parent, parent_notes = _fork_parent(snapshot, constants)
    heap, heap_notes = _heap_of(snapshot, is_whole=has_whole_heap) if has_heap else (None, ())
    with _presence(snapshot, is_wanted=has_page_maps) as presence:
        found = audit_snapshot(
            snapshot,
            images,
            files,
            target=target,
            question=question,
            constants=constants,
            open_files=_open_files(snapshot) if open_files is None else open_files,
            notes=(*file_notes, *parent_notes, *heap_notes, *_own_notes(snapshot)),
            presence=presence,
            parent=parent,
            known_rows=files.known_rows,
            heap=heap,
            threads=_threads_of(snapshot) if has_heap else None,
        )
    return with_files_told(found, files, known)


def _heap_of(snapshot: Snapshot, *, is_whole: bool) -> "tuple[HeapRanges | None, tuple[Note, ...]]":
    """Read the heap of a process, as its allocator has it."""
    from footprint.attribution.heap_ranges import HeapRanges  # noqa: PLC0415 # only a single live process needs it
    from footprint.process import live_heap  # noqa: PLC0415 # the same

    most_chunks = live_heap.MOST_CHUNKS_OF_A_SEARCH if is_whole else live_heap.MOST_CHUNKS
    heap, notes = live_heap.read_live_heap(snapshot, most_chunks)
    return None if heap is None else HeapRanges(heap, snapshot.page_bytes), notes


def _threads_of(snapshot: Snapshot) -> "LiveThreads | None":
    """Read where the threads of a process have their variables."""
    from footprint.process.live_threads import read_live_threads  # noqa: PLC0415 # only a single live process needs it

    return read_live_threads(snapshot)


def _open_files(snapshot: Snapshot) -> tuple[OpenFile, ...]:
    """Return the open files of a process: read from a live one, or as they were captured."""
    if not snapshot.is_live or snapshot.pid is None:
        return snapshot.open_files
    return read_own_open_files([snapshot.pid])[snapshot.pid]


def _fork_parent(snapshot: Snapshot, constants: KernelConstants) -> tuple[ForkParent | None, list[Note]]:
    """Read the parent of a live process, if the process is a fork of it."""
    from footprint.attribution.families import fork_parent  # noqa: PLC0415 # for a projection only

    pid, status = snapshot.pid or 0, snapshot.status
    above = (status.parent_pid if status else None) or 0
    found = None
    notes = []
    try:
        if _is_same_program(pid, above):
            found = fork_parent(snapshot, read_process(above), constants, read_own_open_files([above])[above])
    except FootprintError as error:
        detail = f"its parent {above} cannot be read ({error.detail}): what the parent costs is not in the answer"
        notes.append(Note("parent-not-read", snapshot.source, detail))
    workers = [] if found else [one for one, stat in processes().items() if stat.parent_pid == pid]
    workers = [one for one in workers if _is_same_program(one, pid)]
    if workers:
        many = "a child" if len(workers) == 1 else f"{len(workers):,} children"
        detail = f"it has {many} of the same program: `--tree {pid}` projects it with its workers"
        notes.append(Note("has-workers", snapshot.source, detail))
    return found, notes


def _is_same_program(pid: int, other: int) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/exe", f"/proc/{other}/exe")
    except OSError:
        return False


def _own_notes(snapshot: Snapshot) -> tuple[Note, ...]:
    """Return a note where a process audits itself."""
    if not snapshot.is_live or snapshot.pid != os.getpid():
        return ()
    detail = (
        "it audits itself, so the modules of footprint and what they read are part of the figures: start a process "
        "that audits it, as by subprocess.run([sys.executable, '-m', 'footprint', 'audit', str(os.getpid())])"
    )
    return (Note("own-process", snapshot.source, detail),)


@contextmanager
def _presence(snapshot: Snapshot, *, is_wanted: bool) -> "Iterator[Presence | None]":
    """Return a function that finds the pages of a mapping that are present; None if no page maps are wanted."""
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


def with_files_told(found: Audit, files: ElfFiles, known: int = 0) -> Audit:
    """Add to an audit the notes on its files, without those `known` before, and the files with their symbols."""
    # A group has hundreds of thousands of rows: by columns.
    owners, _, _, symbols, *_ = zip(*found.ledger, strict=True) if found.ledger else ((), (), (), ())
    learn_foreign_names([symbol for symbol in symbols if symbol is not None])
    notes, debug_files = files.notes[known:], files.debug_paths_of(owners)
    if not notes and not debug_files:
        return found
    return replace(found, notes=(*found.notes, *notes), debug_files=debug_files)


def files_of(snapshot: Snapshot, debug: DebugSearch | None, root: str | None = None) -> ElfFiles:
    """Return what opens the files of a process; `root` is the folder in which they are, if it is not live."""
    return ElfFiles(debug, root or _other_root(snapshot))


def _other_root(snapshot: Snapshot) -> str | None:
    """Return the root directory of a live process, if it is not ours."""
    folder = f"/proc/{snapshot.pid}/root"
    try:
        return folder if snapshot.is_live and not os.path.samefile(folder, "/") else None
    except OSError:
        return None
