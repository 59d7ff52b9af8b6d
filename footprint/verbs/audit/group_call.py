"""`footprint.audit_group`: several processes as one, with what they share counted once."""

from collections.abc import Sequence

from footprint.attribution.group import group_up
from footprint.errors import AccessError, FootprintError, Note, UsageError
from footprint.model.group import Group
from footprint.model.projection import Question
from footprint.process import Snapshot, read_process
from footprint.process.family import descendants, named
from footprint.sources.debug_files import STANDARD_PLACES, DebugFiles, DebugSearch
from footprint.sources.object_files import ObjectFiles
from footprint.verbs.audit.call import audit_of

__all__ = ("audit_group", "group_of")


def audit_group(
    pids: Sequence[int] = (),
    *,
    tree: int | None = None,
    name: str | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
) -> Group:
    """Audit several processes: what each holds alone, and once what they share.

    All are read before any is worked on, so that the picture is of one moment as far as that goes. Those that end
    meanwhile, or may not be read, become notes.

    Args:
        pids: The processes.
        tree: A process with all its descendants, besides.
        name: All processes of this name, besides.
        debug: Where to look for the symbols of stripped files; None for nowhere.

    Raises:
        AccessError: Where none of them can be read.
        UsageError: Where no process is named.
    """
    members = dict.fromkeys(pids)
    if tree is not None:
        members |= dict.fromkeys(descendants(tree))
    if name is not None:
        members |= dict.fromkeys(named(name))
    if not members:
        raise UsageError("name the processes: PIDs, --tree PID, or --name NAME")
    notes: list[Note] = []
    causes: dict[str, str] = {}
    snapshots = []
    for pid in members:
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
    """Audit several processes that were read already, such as those of a capture."""
    files = ObjectFiles(DebugFiles(debug, root))
    return group_up(
        [
            (snapshot, audit_of(snapshot, str(snapshot.pid), Question(), root=root, files=files))
            for snapshot in snapshots
        ],
        notes,
    )
