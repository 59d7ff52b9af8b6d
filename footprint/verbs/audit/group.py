"""`footprint.audit_group`: several processes as one, with what they share counted once."""

import os
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from footprint.attribution.cgroup_comparison import compare_with_cgroup
from footprint.attribution.families import Channel
from footprint.attribution.group import group_up
from footprint.attribution.kernel import open_file_bytes
from footprint.errors import AccessError, FootprintError, Note, UsageError
from footprint.files import StrPath
from footprint.model.audit import Audit
from footprint.model.group import AS_IT_IS, Group, GroupQuestion
from footprint.model.projection import Question
from footprint.process import Snapshot, read_process
from footprint.process.descriptions import OpenFile, read_own_open_files
from footprint.process.halves import in_halves
from footprint.sources.calibration import load_constants
from footprint.sources.debug_files import STANDARD_PLACES, DebugSearch
from footprint.sources.demanglers import learn_foreign_names
from footprint.sources.files import ElfFiles
from footprint.sources.target import (
    NO_CHOICE,
    AuditFile,
    Capture,
    ProcessChoice,
    Processes,
    check_options,
    filled_snapshots,
    resolve,
    resolve_processes,
)
from footprint.units import first_of
from footprint.verbs.audit.process import audit_of
from footprint.verbs.audit.request import AuditRequest, all_doubtful_rules, question_of
from footprint.verbs.audit.saved import read_saved

__all__ = ("audit_group", "audit_group_target", "audit_processes", "group_of")

# Members are started copies or forks, as each shows; the group has the projection.
_EACH: Final = Question()
_MOST_NAMED: Final = 5


def audit_group(  # noqa: PLR0913 # all but the first are named
    target: Sequence[int] | StrPath = (),
    *,
    tree: int | None = None,
    name: str | None = None,
    cgroup: str | None = None,
    unit: str | None = None,
    container: str | None = None,
    count: int | None = None,
    root: StrPath | None = None,
    has_findings: bool = False,
    debug: DebugSearch | None = STANDARD_PLACES,
) -> Group:
    """Audit several processes: what each holds alone, and once what they share.

    Args:
        target: The processes; or the path of a capture of several, or of a saved group.
        tree: A process that is added with all its descendants.
        name: A name; all processes that have it are added.
        cgroup: The path of a control group; all processes in it and below it are added.
        unit: A unit of systemd; all its processes are added.
        container: The ID of a container; all its processes are added.
        count: How many such groups to project to; None for one, and for what a saved group was saved with.
        root: The folder with the files of the other machine, for a capture.
        has_findings: Whether to search live processes for what they could do without, which takes some time.
        debug: Where to look for the symbols of stripped files; None for nowhere.

    Raises:
        AccessError: If none of them can be read, or the file cannot be opened.
        InputError: If the file is damaged.
        UsageError: If no process is named, or the file is about one process.
    """
    choice = ProcessChoice(tree, name, cgroup, unit, container)
    asked = AuditRequest(
        question_of(count, None, "exec"),
        root=None if root is None else os.fspath(root),
        has_findings=has_findings,
        debug=debug,
        doubtful_rules=all_doubtful_rules(is_wanted=has_findings),
        has_objects=True,
        has_question=count is not None,
    )
    if not isinstance(target, str | os.PathLike):
        return audit_group_target(resolve_processes(target, choice), asked)
    if choice != NO_CHOICE:
        raise UsageError(f"{os.fspath(target)} is a file; {choice.words[0]} chooses processes")
    found = resolve(target)
    if isinstance(found, Capture):
        return audit_group_target(found, asked)
    if isinstance(found, AuditFile):
        check_options(found, asked.options)
        saved = read_saved(found, asked).audit
        if isinstance(saved, Group):
            return saved
    raise UsageError(f"{found.name} is no group of processes: `audit` audits it")


def audit_group_target(target: Processes | Capture, asked: AuditRequest) -> Group:
    """Audit live processes, or all processes of a capture.

    Raises:
        AccessError: If none of them can be read.
        UsageError: If an option does not go with several processes.
    """
    question = GroupQuestion(asked.question.count)
    check_options(target, asked.options)
    if isinstance(target, Processes):
        search = asked if asked.has_findings else None
        return audit_processes(target, question, debug=asked.debug, search=search, has_objects=asked.has_objects)
    if asked.heap is not None:
        raise UsageError(f"{target.name} holds several processes: choose one with --pid for --heap")
    snapshots = filled_snapshots(target)
    return group_of(snapshots, root=asked.root, debug=asked.debug, question=question, target=target.name)


def audit_processes(
    target: Processes,
    question: GroupQuestion = AS_IT_IS,
    *,
    debug: DebugSearch | None = STANDARD_PLACES,
    search: AuditRequest | None = None,
    has_objects: bool = False,
) -> Group:
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
    notes = [Note("process-not-read", f"pid {pid}", f"{cause}; it is left out") for pid, cause in causes.items()]
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
    )
    if target.control_group is None:
        return group
    path, version = target.control_group.path, target.control_group.version
    if charges is None:
        absent = Note("cgroup-not-counted", path, "the memory controller is not enabled for it: there are no counters")
        return replace(group, notes=(*group.notes, absent))
    return replace(group, cgroup=compare_with_cgroup(group, charges, path, version))


def _read(pids: Sequence[int]) -> tuple[list[Snapshot], dict[str, str]]:
    """Read processes; return with them why others could not be read."""
    snapshots, causes = [], {}
    for pid in pids:
        try:
            snapshots.append(read_process(pid))
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


def group_of(  # noqa: PLR0913 # all but the first have their name
    snapshots: Sequence[Snapshot],
    *,
    root: str | None = None,
    notes: Sequence[Note] = (),
    debug: DebugSearch | None = STANDARD_PLACES,
    question: GroupQuestion = AS_IT_IS,
    target: str = "",
    search: AuditRequest | None = None,
    has_objects: bool = False,
    files: ElfFiles | None = None,
) -> Group:
    """Audit several processes that were read already, such as those of a capture.

    An open file description that several of them have is charged to the first one. Only live processes are searched
    for findings. `files` is what has opened the files for an earlier group.
    """
    is_first = files is None
    files = files or ElfFiles(debug, root)
    open_files = read_own_open_files([one.pid for one in snapshots if one.is_live and one.pid is not None])
    open_files |= {one.pid: one.open_files for one in snapshots if not one.is_live and one.pid is not None}
    host = snapshots[0].host if snapshots else {}
    constants = load_constants(host.get("kernel", ""), host.get("machine", ""))
    channels = {
        pid: [Channel(one.holder_count, open_file_bytes(one, constants)) for one in own if one.holder_count > 1]
        for pid, own in open_files.items()
    }

    def audit_one(snapshot: Snapshot) -> tuple[Audit, list[Note]]:
        own = open_files.get(snapshot.pid or 0, ())
        beside: list[Note] = []
        if search is not None:
            audit, beside = _searched(snapshot, files, search, own)
            if audit is not None:
                return audit, beside
        audit = audit_of(
            snapshot,
            str(snapshot.process_id),
            _EACH,
            root=root,
            files=files,
            open_files=own,
            constants=constants if snapshot.host == host else None,
        )
        if has_objects and snapshot.is_live:
            from footprint.verbs.audit.findings import with_objects  # noqa: PLC0415 # the loader

            audit = with_objects(audit, snapshot, files)
        return audit, beside

    # What a copy of this process reads of files is lost for the next group, and findings are much to send.
    is_divided = is_first and search is None and not has_objects and os.getpid() not in open_files
    found = _audit_each(audit_one, snapshots, files, is_divided=is_divided)
    members = [(snapshot, audit) for snapshot, (audit, _) in zip(snapshots, found, strict=True)]
    notes = [*notes, *(note for _, beside in found for note in beside)]
    group = group_up(members, notes, question, channels, target)
    learn_foreign_names([row.symbol for row in group.ledger if row.symbol is not None])
    return group


_Audited = tuple[Audit, list[Note]]


def _audit_each(
    audit_one: Callable[[Snapshot], _Audited], snapshots: Sequence[Snapshot], files: ElfFiles, *, is_divided: bool
) -> list[_Audited]:
    """Audit processes, where it is worth it in two processes; a note on a file stands where the file was read first."""

    def work(some: Sequence[Snapshot]) -> tuple[list[_Audited], list[Note]]:
        return list(map(audit_one, some)), files.notes

    (found, told), *others = in_halves(work, snapshots) if is_divided else [work(snapshots)]
    again = frozenset(told)
    for more, _ in others:
        found += [(_without_notes(audit, again), beside) for audit, beside in more]
    return found


def _without_notes(audit: Audit, left_out: AbstractSet[Note]) -> Audit:
    if left_out.isdisjoint(audit.notes):
        return audit
    return replace(audit, notes=tuple([note for note in audit.notes if note not in left_out]))


def _searched(
    snapshot: Snapshot, files: ElfFiles, search: AuditRequest, open_files: Sequence[OpenFile]
) -> tuple[Audit | None, list[Note]]:
    """Audit a live process with its findings; None and a note where its files cannot be read."""
    from footprint.verbs.audit.findings import audit_with_findings  # noqa: PLC0415 # the loader

    try:
        return audit_with_findings(
            snapshot, search._replace(question=_EACH, has_page_maps=False), files, open_files
        ), []
    except FootprintError as error:
        detail = f"{error.detail}: it was not searched for findings"
        return None, [Note("process-not-searched", f"pid {snapshot.process_id}", detail)]
