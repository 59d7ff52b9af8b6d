"""The audit of several processes as one, with what they share counted once."""

import os
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from footprint.attribution.address_spaces import count_address_spaces_once
from footprint.attribution.families import Channel
from footprint.attribution.group import compare_with_cgroup, group_up, most_ahead_bytes
from footprint.attribution.kernel import KernelConstants, open_file_bytes
from footprint.elf.notes import STANDARD_PLACES, DebugSearch
from footprint.errors import AccessError, FootprintError, Note
from footprint.members import replace
from footprint.model.audit import Audit
from footprint.model.projection import ONE, Question
from footprint.process.descriptions import OpenFile
from footprint.process.maps_text import BlockCache
from footprint.process.snapshot import Snapshot, read_process, with_address_spaces, with_held_files
from footprint.process.status import read_stat
from footprint.process.two_processors import in_halves
from footprint.sources.calibration import load_constants
from footprint.sources.demanglers import learn_foreign_names
from footprint.sources.files import ElfFiles
from footprint.sources.process_files import ImageSets
from footprint.sources.target import (
    NO_CHOICE,
    Processes,
    resolve_processes,
)
from footprint.text.units import first_of, format_bytes
from footprint.verbs.audit.process import audit_of
from footprint.verbs.audit.request import AuditRequest

if TYPE_CHECKING:
    from footprint.sources.programs import KeptPrograms

# Members are started copies or forks, as each shows; the group has the projection.
_EACH: Final = Question()
_MOST_NAMED: Final = 5
_ZOMBIE: Final = " is a zombie: "


def audit_processes(
    target: Processes,
    question: Question = ONE,
    *,
    debug: DebugSearch | None = STANDARD_PLACES,
    search: AuditRequest | None = None,
    has_objects: bool = False,
    has_quick_findings: bool = False,
) -> Audit:
    """Audit several live processes as one; `search` is what is asked of a search for findings, None for no search.

    With `has_objects`, what the objects of each bring in is told without a search, too.

    All are read before any is worked on, so that the picture is of one moment as far as that goes. Those that end
    meanwhile, may not be read, or come meanwhile, become notes.

    Raises:
        AccessError: If none of them can be read.
        UsageError: If the question cannot be answered.
    """
    charges = target.control_group.charges() if target.control_group else None
    # What footprint itself holds is no longer the same in a copy of it.
    halves = [_read(target.pids)] if os.getpid() in target.pids else in_halves(_read, target.pids)
    snapshots = [snapshot for some, _ in halves for snapshot in some]
    causes = {pid: cause for _, some in halves for pid, cause in some.items()}
    # Of those that were named one by one, each that is missing is told.
    is_chosen = bool(snapshots) and target.choice != NO_CHOICE
    zombies = [int(pid) for pid, cause in causes.items() if is_chosen and _ZOMBIE in cause]
    notes = [
        Note("process-not-read", f"pid {pid}", f"{cause}; it is left out")
        for pid, cause in causes.items()
        if int(pid) not in zombies
    ]
    if not snapshots:
        raise AccessError(
            first_of(list(causes), _MOST_NAMED), first_of(list(dict.fromkeys(causes.values())), _MOST_NAMED)
        )
    notes.extend(_changes(target))
    group = group_of(
        snapshots,
        notes=notes,
        debug=debug,
        question=question,
        target=target.name,
        search=search,
        has_objects=has_objects,
        has_quick_findings=has_quick_findings,
        zombies=zombies,
    )
    if target.control_group is None:
        return group
    path, version = target.control_group.path, target.control_group.version
    if charges is None:
        absent = Note("cgroup-not-counted", path, "the memory controller is not enabled for it: there are no counters")
        return replace(group, notes=(*group.notes, absent))
    ahead_most_bytes = most_ahead_bytes(os.cpu_count() or 1, snapshots[0].page_bytes)
    cgroup = compare_with_cgroup(group, charges, path, version, ahead_most_bytes=ahead_most_bytes)
    monitors = [] if target.choice.container is None else _monitors(target.pids)
    return replace(group, group=group.group._replace(cgroup=cgroup), notes=(*group.notes, *monitors))


def _monitors(pids: Sequence[int]) -> list[Note]:
    """Return a note on each conmon: podman and CRI-O keep it beside a container, as parent of its first process."""
    parents = {stat.parent_pid for pid in pids if (stat := read_stat(pid)) is not None} - set(pids)
    notes: list[Note] = []
    for pid in sorted(parents):
        with suppress(FootprintError):
            if (stat := read_stat(pid)) is not None and stat.name == b"conmon":
                size_bytes = audit_of(read_process(pid), str(pid), _EACH).totals.per_process.bytes or 0
                detail = f"it watches the container, costs {format_bytes(size_bytes)}, and is not in the figures"
                notes.append(Note("container-monitor", f"conmon (process {pid})", detail))
    return notes


def _read(pids: Sequence[int]) -> tuple[list[Snapshot], dict[str, str]]:
    """Read processes; return with them why others could not be read."""
    snapshots, causes, cache = [], {}, BlockCache()
    for pid in pids:
        try:
            snapshots.append(read_process(pid, cache=cache))
        except FootprintError as error:
            causes[str(pid)] = error.detail
    return snapshots, causes


def _changes(target: Processes) -> list[Note]:
    """Return a note if processes came or went while the group was read: what they share is then counted in part."""
    if target.choice == NO_CHOICE:
        return []
    try:
        now = set(resolve_processes(choice=target.choice).pids)
    except AccessError:
        now = set()
    came, gone = now - set(target.pids), set(target.pids) - now
    # Those that were named by their PIDs are not chosen again.
    gone = {pid for pid in gone if not os.path.exists(f"/proc/{pid}")}
    if not came and not gone:
        return []
    detail = f"while they were read, {len(came):,} processes came and {len(gone):,} ended: those that came are left out"
    return [Note("members-changed", target.name, f"{detail}, and what all share is estimated")]


def group_of(  # noqa: PLR0913 # keyword-only
    snapshots: Sequence[Snapshot],
    *,
    root: str | None = None,
    notes: Sequence[Note] = (),
    debug: DebugSearch | None = STANDARD_PLACES,
    question: Question = ONE,
    target: str = "",
    search: AuditRequest | None = None,
    has_objects: bool = False,
    has_quick_findings: bool = False,
    files: ElfFiles | None = None,
    zombies: Sequence[int] = (),
) -> Audit:
    """Audit several processes that were read already, such as those of a capture.

    An open file description that several of them have is charged to the first one. Only live processes are searched
    for findings. `files` is what has opened the files for an earlier group, `zombies` are processes that have ended.
    """
    is_first = files is None
    files = files or ElfFiles(debug, root)
    if any(snapshot.open_files is None for snapshot in snapshots):
        snapshots = with_address_spaces(with_held_files(snapshots))
    snapshots, not_compared = count_address_spaces_once(snapshots)
    host, page_bytes = (snapshots[0].host, snapshots[0].page_bytes) if snapshots else ({}, 4096)
    constants = load_constants(host.get("kernel", ""), host.get("machine", ""), page_bytes)
    channels = {s.pid: _channels(s.open_files or (), constants) for s in snapshots if s.pid is not None}
    programs: KeptPrograms = {}
    image_sets: ImageSets = {}

    def audit_one(snapshot: Snapshot) -> tuple[Audit, list[Note]]:
        beside: list[Note] = []
        if search is not None and snapshot.memory.mappings:
            audit, beside = _searched(snapshot, files, search)
            if audit is not None:
                return audit, beside
        audit = audit_of(
            snapshot,
            str(snapshot.process_id),
            _EACH,
            root=root,
            files=files,
            constants=constants if snapshot.host == host else None,
            has_quick_findings=has_quick_findings,
            image_sets=image_sets,
        )
        if has_objects and snapshot.is_live and snapshot.memory.mappings:
            from footprint.verbs.audit.findings import with_objects  # noqa: PLC0415 # the loader

            audit = with_objects(audit, snapshot, files, programs)
        return audit, beside

    # What a copy of this process reads of files is lost for the next group, and findings are much to send.
    is_divided = is_first and search is None and not has_objects and os.getpid() not in {s.pid for s in snapshots}
    audited = _audit_each(audit_one, snapshots, files, is_divided=is_divided)
    members = list(zip(snapshots, [audit for audit, _ in audited], strict=True))
    all_notes = [*notes, *not_compared, *(note for _, beside in audited for note in beside)]
    group = group_up(members, all_notes, question, channels, target, zombies, constants)
    learn_foreign_names([row.symbol for row in group.ledger if row.symbol is not None])
    return group


def _channels(open_files: Sequence[OpenFile], constants: KernelConstants) -> list[Channel]:
    """Return the sockets and pipes of a process that others have, too."""
    return [Channel(f.holder_count, open_file_bytes(f, constants)) for f in open_files if f.holder_count > 1]


_Audited = tuple[Audit, list[Note]]


def _audit_each(
    audit_one: Callable[[Snapshot], _Audited], snapshots: Sequence[Snapshot], files: ElfFiles, *, is_divided: bool
) -> list[_Audited]:
    """Audit processes, where it is worth it in two processes; a note on a file stands where the file was read first."""

    def work(some: Sequence[Snapshot]) -> tuple[list[_Audited], list[Note]]:
        return list(map(audit_one, some)), files.notes

    (audited, noted), *others = in_halves(work, snapshots) if is_divided else [work(snapshots)]
    again = frozenset(noted)
    for more, _ in others:
        audited += [(_without_notes(audit, again), beside) for audit, beside in more]
    return audited


def _without_notes(audit: Audit, left_out: AbstractSet[Note]) -> Audit:
    if left_out.isdisjoint(audit.notes):
        return audit
    return replace(audit, notes=tuple([note for note in audit.notes if note not in left_out]))


def _searched(snapshot: Snapshot, files: ElfFiles, search: AuditRequest) -> tuple[Audit | None, list[Note]]:
    """Audit a live process with its findings; None and a note where its files cannot be read."""
    from footprint.verbs.audit.findings import audit_with_findings  # noqa: PLC0415 # the loader

    try:
        return audit_with_findings(
            snapshot, search._replace(question=_EACH, has_page_maps=False), files, has_heap=False
        ), []
    except FootprintError as error:
        detail = f"{error.detail}: it was not searched for findings"
        return None, [Note("process-not-searched", f"pid {snapshot.process_id}", detail)]
