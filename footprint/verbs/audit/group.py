"""`footprint.audit_group`: several processes as one, with what they share counted once."""

import os
from collections.abc import Sequence
from dataclasses import replace

from footprint.attribution.cgroup_comparison import compare_with_cgroup
from footprint.attribution.families import Channel
from footprint.attribution.group import group_up
from footprint.attribution.kernel import open_file_bytes
from footprint.errors import AccessError, FootprintError, Note
from footprint.model.group import AS_IT_IS, Group, GroupQuestion
from footprint.model.projection import Question
from footprint.process import Snapshot, read_process
from footprint.process.descriptions import read_own_open_files
from footprint.sources.calibration import load_constants
from footprint.sources.debug_files import STANDARD_PLACES, DebugSearch
from footprint.sources.files import ElfFiles
from footprint.sources.target import NO_CHOICE, ProcessChoice, Processes, resolve_processes
from footprint.verbs.audit.process import audit_of

__all__ = ("audit_group", "audit_processes", "group_of")


def audit_group(  # all but the first are named
    pids: Sequence[int] = (),
    *,
    tree: int | None = None,
    name: str | None = None,
    cgroup: str | None = None,
    unit: str | None = None,
    container: str | None = None,
    count: int = 1,
    debug: DebugSearch | None = STANDARD_PLACES,
) -> Group:
    """Audit several processes: what each holds alone, and once what they share.

    Args:
        pids: The processes.
        tree: A process that is added with all its descendants.
        name: A name; all processes that have it are added.
        cgroup: The path of a control group; all processes in it and below it are added.
        unit: A unit of systemd; all its processes are added.
        container: The ID of a container; all its processes are added.
        count: How many such groups to project to.
        debug: Where to look for the symbols of stripped files; None for nowhere.

    Raises:
        AccessError: If none of them can be read.
        UsageError: If no process is named.
    """
    target = resolve_processes(pids, ProcessChoice(tree, name, cgroup, unit, container))
    return audit_processes(target, GroupQuestion(count), debug=debug)


def audit_processes(
    target: Processes, question: GroupQuestion = AS_IT_IS, *, debug: DebugSearch | None = STANDARD_PLACES
) -> Group:
    """Audit several live processes as one.

    All are read before any is worked on, so that the picture is of one moment as far as that goes. Those that end
    meanwhile, may not be read, or come meanwhile, become notes.

    Raises:
        AccessError: If none of them can be read.
        UsageError: If the question cannot be answered.
    """
    charges = target.control_group.charges() if target.control_group else None
    notes: list[Note] = []
    causes: dict[str, str] = {}
    snapshots = []
    for pid in target.pids:
        try:
            snapshots.append(read_process(pid))
        except FootprintError as error:
            causes[str(pid)] = error.detail
            notes.append(Note("process-not-read", f"pid {pid}", f"{error.detail}; it is left out"))
    if not snapshots:
        raise AccessError(", ".join(causes), "; ".join(dict.fromkeys(causes.values())))
    notes.extend(_changes(target))
    group = group_of(snapshots, notes=notes, debug=debug, question=question)
    if target.control_group is None:
        return group
    path, version = target.control_group.path, target.control_group.version
    if charges is None:
        absent = Note("cgroup-not-counted", path, "the memory controller is not enabled for it: there are no counters")
        return replace(group, notes=(*group.notes, absent))
    return replace(group, cgroup=compare_with_cgroup(group, charges, path, version))


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
    return [Note("members-changed", target.name, f"{detail}, with their share of the memory that others share")]


def group_of(
    snapshots: Sequence[Snapshot],
    *,
    root: str | None = None,
    notes: Sequence[Note] = (),
    debug: DebugSearch | None = STANDARD_PLACES,
    question: GroupQuestion = AS_IT_IS,
) -> Group:
    """Audit several processes that were read already, such as those of a capture.

    An open file description that several of them have is charged to the first one.
    """
    files = ElfFiles(debug, root)
    open_files = read_own_open_files([one.pid for one in snapshots if one.is_live and one.pid is not None])
    open_files |= {one.pid: one.open_files for one in snapshots if not one.is_live and one.pid is not None}
    host = snapshots[0].host if snapshots else {}
    constants = load_constants(host.get("kernel", ""), host.get("machine", ""))
    channels = {
        pid: [Channel(one.holder_count, open_file_bytes(one, constants)) for one in own if one.holder_count > 1]
        for pid, own in open_files.items()
    }
    return group_up(
        [
            (
                snapshot,
                audit_of(
                    snapshot,
                    str(snapshot.pid),
                    Question(),
                    root=root,
                    files=files,
                    open_files=open_files.get(snapshot.pid or 0, ()),
                    constants=constants if snapshot.host == host else None,
                ),
            )
            for snapshot in snapshots
        ],
        notes,
        question,
        channels,
    )
