"""`footprint.audit_group`: several processes as one, with what they share counted once."""

from collections.abc import Sequence

from footprint.attribution.group import group_up
from footprint.errors import AccessError, FootprintError, Note
from footprint.model.group import Group
from footprint.model.projection import Question
from footprint.process import Snapshot, read_process
from footprint.process.descriptions import read_own_open_files
from footprint.sources.debug_files import STANDARD_PLACES, DebugSearch
from footprint.sources.files import ElfFiles
from footprint.sources.target import Processes, resolve_processes
from footprint.verbs.audit.process import audit_of

__all__ = ("audit_group", "audit_processes", "group_of")


def audit_group(
    pids: Sequence[int] = (),
    *,
    tree: int | None = None,
    name: str | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
) -> Group:
    """Audit several processes: what each holds alone, and once what they share.

    Args:
        pids: The processes.
        tree: A process that is added with all its descendants.
        name: A name; all processes that have it are added.
        debug: Where to look for the symbols of stripped files; None for nowhere.

    Raises:
        AccessError: If none of them can be read.
        UsageError: If no process is named.
    """
    return audit_processes(resolve_processes(pids, tree=tree, name=name), debug=debug)


def audit_processes(target: Processes, *, debug: DebugSearch | None = STANDARD_PLACES) -> Group:
    """Audit several live processes as one.

    All are read before any is worked on, so that the picture is of one moment as far as that goes. Those that end
    meanwhile, or may not be read, become notes.

    Raises:
        AccessError: If none of them can be read.
    """
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
    return group_of(snapshots, notes=notes, debug=debug)


def group_of(
    snapshots: Sequence[Snapshot],
    *,
    root: str | None = None,
    notes: Sequence[Note] = (),
    debug: DebugSearch | None = STANDARD_PLACES,
) -> Group:
    """Audit several processes that were read already, such as those of a capture.

    An open file description that several of them have is charged to the first one.
    """
    files = ElfFiles(debug, root)
    open_files = read_own_open_files([one.pid for one in snapshots if one.is_live and one.pid is not None])
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
                ),
            )
            for snapshot in snapshots
        ],
        notes,
    )
