"""`footprint.diff`: what changed between two processes, programs, captures or saved audits."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from footprint.elf.notes import STANDARD_PLACES, DebugSearch
from footprint.errors import InputError, UsageError
from footprint.model.audit import Audit, AuditRecord, is_audited, is_reproducible
from footprint.release.compare import Comparison, compare
from footprint.sources.target import AnyTarget, AuditFile, Capture, Named, Processes, Program, Text, resolve
from footprint.system.files import StrPath
from footprint.verbs.audit.call import audit_target, with_objects_if_new
from footprint.verbs.audit.request import AuditRequest

if TYPE_CHECKING:
    from footprint.verbs.heap.call import HeapProfiles


def diff(
    old: Named | AnyTarget | Audit,
    new: Named | AnyTarget | Audit,
    *,
    count: int | None = None,
    pids: Sequence[int] = (),
    root: StrPath | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
    has_page_maps: bool = False,
    map: StrPath | None = None,  # noqa: A002 # as the option is called
) -> Comparison:
    """Compare two targets of one kind: saved audits, live processes, captures, texts, or programs; or two groups.

    Args:
        old: The one before, named as for `audit`; or an audit or group that was made already.
        new: The one now.
        count: At how many processes or groups; where it is not given, at the larger number that a saved one was made
            for.
        pids: Which process of captures and texts that hold several: one for both sides, or one for each.
        root: A folder in which the files of captures and texts are, or what programs take for `/`.
        debug: Where to look for the symbols of stripped files; None for nowhere.
        has_page_maps: Tell the pages of their objects one by one, for a picture; of saved audits, as they were saved.
        map: The map that GNU ld wrote of the program now: it has the lines that link its libraries.

    Raises:
        AccessError: If one is gone or may not be read.
        InputError: If one is damaged, or if another linker wrote the map.
        UsageError: If one is predicted from its files and the other was measured, or one is a group and the other is
            not.
    """
    targets = [side if is_audited(side) else _resolved(side, root) for side in (old, new)]
    (before, old_spreads, _), (now, new_spreads, _) = (
        AuditRecord(target) if is_audited(target) else _audit(target, pid, root, debug, has_page_maps=has_page_maps)
        for target, pid in zip(targets, _pid_of_each(pids, targets), strict=True)
    )
    before, now = (
        _audit(target, None, root, debug, has_page_maps=has_page_maps, is_reproducible=True).audit
        if isinstance(target, Program) and audit.host and is_reproducible(other)
        else audit
        for target, audit, other in zip(targets, (before, now), (now, before), strict=True)
    )
    if before.noun != now.noun:
        group, process = targets if before.noun == "group" else targets[::-1]
        raise UsageError(
            f"{_called(group)} is a group of processes, {_called(process)} is one: compare two groups, or two processes"
        )
    if (before.source == "prediction") is not (now.source == "prediction"):
        predicted, measured = targets if before.source == "prediction" else targets[::-1]
        raise UsageError(
            f"{_called(predicted)} is predicted from its files, {_called(measured)} was measured: compare two "
            "programs, or two processes"
        )
    number = count or max(before.count, now.count)
    top, linker_map = (None if path is None else os.fspath(path) for path in (root, map))
    is_same = None
    if before.saved_in is None and now.saved_in is None:
        from footprint.release.renames import likeness_of  # noqa: PLC0415 # debug information, which nothing saved needs

        is_same = likeness_of(before, now, top, debug)
    before, now = with_objects_if_new(before, now, targets[0]), with_objects_if_new(now, before, targets[1])
    comparison = compare(before, now, number, old_spreads, new_spreads, is_same)
    from footprint.release.link_lines import with_places  # noqa: PLC0415 # the readers of build files

    return with_places(comparison, top, debug, linker_map)


def _resolved(named: Named | AnyTarget, root: StrPath | None) -> AnyTarget:
    return named if isinstance(named, Processes) else resolve(named, root=root)


def _called(side: AnyTarget | Audit) -> str:
    return side.target if is_audited(side) else side.name


def _pid_of_each(pids: Sequence[int], sides: Sequence[AnyTarget | Audit]) -> tuple[int | None, int | None]:
    """Return which process is chosen of each side.

    Raises:
        UsageError: If more are chosen than there are sides, or if no side holds several.
    """
    if len(pids) > len(sides):
        raise UsageError(f"--pid chooses one process of each side: {len(pids)} are named")
    if pids and not any(isinstance(side, Capture | Text) for side in sides):
        raise UsageError("--pid is for captures and saved texts, and neither side is one")
    chosen = (pids[0], pids[-1]) if pids else (None, None)
    before, now = (pid if isinstance(side, Capture | Text) else None for side, pid in zip(sides, chosen, strict=True))
    return before, now


def _audit(
    target: AnyTarget,
    pid: int | None,
    root: StrPath | None,
    debug: DebugSearch | None,
    *,
    has_page_maps: bool,
    is_reproducible: bool = False,
) -> AuditRecord:
    root = None if root is None or isinstance(target, AuditFile | Processes) else os.fspath(root)
    query = AuditRequest(pid=pid, root=root, debug=debug, has_page_maps=has_page_maps, is_reproducible=is_reproducible)
    return audit_target(target, query)


def diff_profiles(
    old: Named | AnyTarget,
    new: Named | AnyTarget,
    *,
    binaries: Sequence[str] = (),
    root: StrPath | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
    has_all_trees: bool = False,
) -> "HeapProfiles | None":
    """Compare two allocator profiles; None if neither target is one. The options are those of `heap_profile`.

    Raises:
        AccessError: If one of them is a profile and the other cannot be opened.
        InputError: If one is damaged.
        UsageError: If only one of them is a profile, if they count different things, or if binaries are given and none
            is a profile.
    """
    targets = [_resolved(side, root) for side in (old, new)]
    profiles = [target for target in targets if isinstance(target, Text) and _is_profile(target)]
    if not profiles:
        if binaries:
            raise UsageError("--binary is for allocator profiles, and neither side is one")
        return None
    if len(profiles) < len(targets):
        profile, other = targets if targets[0] is profiles[0] else targets[::-1]
        raise UsageError(
            f"{profile.name} is an allocator profile, {other.name} is none: compare two profiles, or two processes"
        )
    from footprint.verbs.heap.call import heap_profile  # noqa: PLC0415 # profiles, which few comparisons are of

    profiles_read = heap_profile(*profiles, binaries=binaries, root=root, debug=debug, has_all_trees=has_all_trees)
    if len(profiles_read.files) < 2:
        unread = next(note for note in profiles_read.notes if note.slug == "file-unreadable")
        raise InputError(unread.subject, unread.detail)
    return profiles_read


def _is_profile(target: Text) -> bool:
    from footprint.heap.formats import looks_like_profile  # noqa: PLC0415 # only of what is nothing else

    return looks_like_profile(target.data, target.name)
