"""The audit of one process that was read already: its files are opened, and joined with what the kernel says."""

import os
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Mapping as Dict
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from footprint.attribution.cost_models import ForkParent
from footprint.attribution.kernel import KernelConstants
from footprint.attribution.process_audit import audit_snapshot, captured_heap
from footprint.elf.image import Image
from footprint.elf.names import foreign_names
from footprint.elf.notes import STANDARD_PLACES, DebugSearch
from footprint.elf.relocations import ordered_vaddrs, pages_relocated_alone
from footprint.errors import AccessError, FootprintError, Note
from footprint.members import replace
from footprint.model.audit import Audit
from footprint.model.heap_account import AllocatorAccount
from footprint.model.projection import Model, Question
from footprint.model.row import Row
from footprint.process.mappings import Mapping
from footprint.process.pages import PageRange
from footprint.process.snapshot import CapturedHeap, Snapshot, read_process, with_held_files
from footprint.process.status import processes
from footprint.sources.calibration import load_constants
from footprint.sources.files import ElfFiles
from footprint.sources.process_files import ImageSets, images_of, images_of_many

if TYPE_CHECKING:
    from footprint.attribution.live_ranges import HeapRanges
    from footprint.attribution.page_maps import Presence
    from footprint.process.live_memory import LiveThreads

_SYMBOL: Final = attrgetter("symbol")


def audit_of(  # noqa: PLR0913 # keyword-only
    snapshot: Snapshot,
    target: str,
    question: Question,
    *,
    root: str | None = None,
    files: ElfFiles | None = None,
    has_page_maps: bool = False,
    constants: KernelConstants | None = None,
    has_heap: bool = False,
    has_whole_heap: bool = False,
    has_quick_findings: bool = False,
    image_sets: ImageSets | None = None,
) -> Audit:
    """Audit a process that was read already; its files are opened now, so a live one must still be there.

    Args:
        snapshot: The process.
        target: What the user called it.
        question: How many of it, in which model.
        root: A folder in which its files are, where it is not live.
        files: What opens the files, and has read some for other processes; None to open all anew.
        has_page_maps: Whether the pages of its objects are told one by one.
        constants: What its kernel spends on each thing; those that are known of its host without it.
        has_heap: Whether the structures of its allocator and of its threads are read, if it is live.
        has_whole_heap: Whether those of the allocator are read however many they are.
        has_quick_findings: Whether to search a live process for what the ledger shows by itself.
        image_sets: The files of processes that were read together.
    """
    if snapshot.open_files is None:
        (snapshot,) = with_held_files([snapshot])
    files = files or files_of(snapshot, STANDARD_PLACES, root)
    files.drop_if_many()
    images, file_notes = images_of_many(snapshot, image_sets, root, files.opened, files.images)
    note_count, host = len(files.notes), snapshot.host
    constants = constants or load_constants(host.get("kernel", ""), host.get("machine", ""), snapshot.page_bytes)
    parent, parent_notes = (
        _fork_parent(snapshot, constants) if snapshot.is_live and question.model in {None, Model.FORK} else (None, [])
    )
    heap, heap_notes = (None, snapshot.captured_heap.notes) if has_heap else (None, ())
    if has_heap and snapshot.is_live:
        from footprint.process import live_memory  # noqa: PLC0415 # only a single live process needs it

        most_chunks = live_memory.MOST_CHUNKS_OF_A_SEARCH if has_whole_heap else live_memory.MOST_CHUNKS
        heap, heap_notes = _heap_of(snapshot, most_chunks)
    with _presence(snapshot, is_wanted=has_page_maps) as presence:
        audited = audit_snapshot(
            snapshot,
            images,
            files,
            target=target,
            question=question,
            constants=constants,
            notes=(*file_notes, *parent_notes, *heap_notes, *_own_notes(snapshot)),
            presence=presence,
            parent=parent,
            known_rows=files.known_rows,
            heap=heap,
            threads=_threads_of(snapshot) if has_heap else None,
        )
    if has_heap and snapshot.is_live:
        owners = {row.owner for row in audited.ledger}
        notes = _with_linked_allocator(audited.notes, owners, snapshot, images.values(), audited.allocator)
        # Each audit that is made adds up its ledger.
        audited = audited if notes == audited.notes else replace(audited, notes=notes)
    if has_quick_findings and snapshot.is_live:
        audited = with_quick_findings(audited, files, {key.name: image for key, image in images.items()})
    return with_files_told(audited, files, note_count)


def captured_heap_of(snapshot: Snapshot, process_count: int) -> CapturedHeap:
    """Read the heap of a live process as its allocator has it, to be saved with the process.

    Processes that are stopped together share the number of chunks that are read.
    """
    from footprint.process.live_memory import MOST_CHUNKS  # noqa: PLC0415 # only a live process needs it

    heap, notes = _heap_of(snapshot, MOST_CHUNKS // process_count)
    images, _ = images_of(snapshot, _other_root(snapshot))
    account, owners = captured_heap(snapshot, images, heap)
    return CapturedHeap(account, _with_linked_allocator(notes, owners, snapshot, images.values(), account))


def _with_linked_allocator(
    notes: Sequence[Note],
    owners: Collection[str],
    snapshot: Snapshot,
    images: Iterable[Image],
    account: AllocatorAccount | None,
) -> tuple[Note, ...]:
    """Name an allocator in a note that is linked into the program, so that no library names it."""
    from footprint.attribution.runtimes import ALLOCATOR_HEAPS, has_tcmalloc  # noqa: PLC0415 # only a live process
    from footprint.process.live_memory import has_unread_break, other_allocator, other_allocator_note  # noqa: PLC0415 # the same

    names = [name for owner, name in ALLOCATOR_HEAPS.items() if owner in owners]
    read_bytes = account.held_bytes if account else 0
    if (
        other_allocator(notes) is None
        and has_unread_break(snapshot.memory.mappings, read_bytes)
        and has_tcmalloc(images)
    ):
        names.append("tcmalloc")
    named = [other_allocator_note(name, snapshot.source) for name in names]
    # Where nothing was read, the note on it knows less.
    has_less = bool(named) and account is None
    return (*[note for note in notes if not has_less or note.slug != "allocator-unread"], *named)


def _heap_of(snapshot: Snapshot, most_chunks: int) -> "tuple[HeapRanges | None, tuple[Note, ...]]":
    """Read the heap of a live process, as its allocator has it."""
    from footprint.attribution.live_ranges import HeapRanges  # noqa: PLC0415 # only a single live process needs it
    from footprint.process.live_memory import read_live_heap  # noqa: PLC0415 # the same

    heap, notes = read_live_heap(snapshot, most_chunks)
    return None if heap is None else HeapRanges(heap, snapshot.page_bytes), notes


def _threads_of(snapshot: Snapshot) -> "LiveThreads | None":
    """Read where the threads of a process have their variables."""
    from footprint.process.live_memory import read_live_threads  # noqa: PLC0415 # only a single live process needs it

    return read_live_threads(snapshot)


def _fork_parent(snapshot: Snapshot, constants: KernelConstants) -> tuple[ForkParent | None, list[Note]]:
    """Read the parent of a live process, if the process is a fork of it."""
    from footprint.attribution.families import fork_parent  # noqa: PLC0415 # for a projection only

    pid, status = snapshot.pid or 0, snapshot.status
    above = (status.parent_pid if status else None) or 0
    above_cost = None
    notes = []
    try:
        if _is_same_program(pid, above):
            (parent,) = with_held_files([read_process(above)])
            above_cost = fork_parent(snapshot, parent, constants)
    except FootprintError as error:
        detail = f"its parent {above} cannot be read ({error.detail}): what the parent costs is not in the answer"
        notes.append(Note("parent-not-read", snapshot.source, detail))
    workers = [] if above_cost else [number for number, stat in processes().items() if stat.parent_pid == pid]
    workers = [worker for worker in workers if _is_same_program(worker, pid)]
    if workers:
        many = "a child" if len(workers) == 1 else f"{len(workers):,} children"
        detail = f"it has {many} of the same program: `--tree {pid}` projects it with its workers"
        notes.append(Note("has-workers", snapshot.source, detail))
    return above_cost, notes


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


def with_files_told(audit: Audit, files: ElfFiles, note_count: int = 0) -> Audit:
    """Add to an audit the notes on its files, without those `note_count` before, and the files with their symbols."""
    # A group has hundreds of thousands of rows: no step of Python for each.
    if not files.searched_symbols.issuperset(map(_SYMBOL, audit.ledger)):
        files.searched_symbols.update(map(_SYMBOL, audit.ledger))
        if foreign := foreign_names(filter(None, map(_SYMBOL, audit.ledger))):
            from footprint.sources.demanglers import learn_foreign_names  # noqa: PLC0415 # few programs have such names

            learn_foreign_names(chain(*foreign.values()))
    notes, debug_files = files.notes[note_count:], files.debug_paths_of(map(attrgetter("owner"), audit.ledger))
    if not notes and not debug_files:
        return audit
    return replace(audit, notes=(*audit.notes, *notes), debug_files=debug_files)


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


_Places = Dict[tuple[str | None, str | None], tuple[int, int]]


class RelocatedVariables:
    """Counts the pages that only the relocations of a variable write; a file is read when it is first asked about.

    Args:
        files: Reads the symbols of files.
        image_of: Returns the file of an owner, or None.
        page_bytes: The size of a page.
    """

    def __init__(self, files: ElfFiles, image_of: Callable[[str], Image | None], page_bytes: int) -> None:
        self._files = files
        self._image_of = image_of
        self._page_bytes = page_bytes
        self._relocated: dict[str, tuple[array[int], _Places]] = {}

    def page_count(self, row: Row) -> int | None:
        """Count the pages for the variable of a row; None where it cannot be read."""
        if row.owner not in self._relocated:
            self._relocated[row.owner] = array("Q"), {}
            with suppress(FootprintError):
                self._relocated[row.owner] = self._read(row.owner)
        vaddrs, places = self._relocated[row.owner]
        place = places.get((row.section, row.symbol))
        return None if place is None else pages_relocated_alone(vaddrs, *place, self._page_bytes)

    def _read(self, owner: str) -> tuple["array[int]", _Places]:
        image = self._image_of(owner)
        if image is None:
            return array("Q"), {}
        contents, _ = self._files.debug_files.contents_of(image, owner)
        places: _Places = {
            (section.section.name, variable.name): (
                section.section.vaddr + variable.offset,
                section.section.vaddr + variable.offset + variable.size_bytes,
            )
            for section in contents.sections
            for variable in section.variables
        }
        return ordered_vaddrs(image), places


def with_quick_findings(audit: Audit, files: ElfFiles, images: Dict[str, Image]) -> Audit:
    """Add what the rules find that read nothing but the ledger; `images` has the files of its owners."""
    from footprint.findings.registry import Fact, LedgerFacts, find_all, rules_reading  # noqa: PLC0415 # few audits
    from footprint.model.finding import SearchedRule  # noqa: PLC0415 # the same

    variables = RelocatedVariables(files, images.get, audit.page_bytes)
    facts = {Fact.LEDGER: LedgerFacts(audit.ledger, audit.page_bytes, audit.allocator, variables.page_count)}
    return replace(
        audit,
        findings=tuple(sorted(find_all(facts), key=lambda finding: -finding.saving_bytes)),
        searched_rules=tuple(SearchedRule(rule.name) for rule in rules_reading(facts)),
    )
