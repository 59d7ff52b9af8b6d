"""`footprint.diff`: what changed between two processes, programs, captures or saved audits."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from footprint.errors import InputError, UsageError
from footprint.files import StrPath
from footprint.release.compare import Comparison, compare
from footprint.sources.debug_files import STANDARD_PLACES, DebugSearch
from footprint.sources.target import AuditFile, Named, SingleTarget, Text, resolve
from footprint.verbs.audit.call import AuditedTarget, audit_target, with_objects_if_new
from footprint.verbs.audit.request import AuditRequest

if TYPE_CHECKING:
    from footprint.verbs.heap.call import HeapProfiles

__all__ = ("diff", "diff_profiles")


def diff(
    old: Named | SingleTarget,
    new: Named | SingleTarget,
    *,
    count: int | None = None,
    root: StrPath | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
    has_page_maps: bool = False,
) -> Comparison:
    """Compare two targets of one kind: saved audits, live processes, captures, texts, or programs.

    Args:
        old: The one before, named as for `audit`.
        new: The one now.
        count: At how many processes; where it is not given, at the larger number that a saved one was made for.
        root: A folder in which the files of captures and texts are, or what programs take for `/`.
        debug: Where to look for the symbols of stripped files; None for nowhere.
        has_page_maps: Tell the pages of their objects one by one, for a picture; of saved audits, as they were saved.

    Raises:
        AccessError: If one is gone or may not be read.
        InputError: If one is damaged.
        UsageError: If one is predicted from its files and the other was measured.
    """
    targets = [resolve(one, root=root) for one in (old, new)]
    (before, old_spreads, _), (now, new_spreads, _) = (
        _audit(one, root, debug, has_page_maps=has_page_maps) for one in targets
    )
    if (before.source == "prediction") is not (now.source == "prediction"):
        predicted, measured = targets if before.source == "prediction" else targets[::-1]
        raise UsageError(
            f"{predicted.name} is predicted from its files, {measured.name} was measured: compare two programs, or "
            "two processes"
        )
    number = count or max(before.projection.count, now.projection.count)
    is_same = None
    if before.saved_in is None and now.saved_in is None:
        from footprint.release.renames import likeness_of  # noqa: PLC0415 # debug information, which nothing saved needs

        is_same = likeness_of(before, now, None if root is None else os.fspath(root), debug)
    before, now = with_objects_if_new(before, now, targets[0]), with_objects_if_new(now, before, targets[1])
    return compare(before, now, number, old_spreads, new_spreads, is_same)


def _audit(
    target: SingleTarget, root: StrPath | None, debug: DebugSearch | None, *, has_page_maps: bool
) -> AuditedTarget:
    root = None if root is None or isinstance(target, AuditFile) else os.fspath(root)
    return audit_target(target, AuditRequest(root=root, debug=debug, has_page_maps=has_page_maps))


def diff_profiles(
    old: Named | SingleTarget,
    new: Named | SingleTarget,
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
    targets = [resolve(one, root=root) for one in (old, new)]
    profiles = [one for one in targets if isinstance(one, Text) and _is_profile(one)]
    if not profiles:
        if binaries:
            raise UsageError("--binary goes with allocator profiles: neither is one")
        return None
    if len(profiles) < len(targets):
        profile, other = targets if targets[0] is profiles[0] else targets[::-1]
        raise UsageError(
            f"{profile.name} is an allocator profile, {other.name} is none: compare two profiles, or two processes"
        )
    from footprint.verbs.heap.call import heap_profile  # noqa: PLC0415 # profiles, which few comparisons are of

    found = heap_profile(*profiles, binaries=binaries, root=root, debug=debug, has_all_trees=has_all_trees)
    if len(found.files) < 2:
        unread = next(note for note in found.notes if note.slug == "file-unreadable")
        raise InputError(unread.subject, unread.detail)
    return found


def _is_profile(target: Text) -> bool:
    from footprint.heap import looks_like_profile  # noqa: PLC0415 # only of what is nothing else

    return looks_like_profile(target.data, target.name)
