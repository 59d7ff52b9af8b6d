"""`footprint.diff`: what changed between two processes, programs, captures or saved audits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from footprint.elf import starts_like_elf
from footprint.errors import InputError, UsageError
from footprint.files import open_input
from footprint.model.audit import Audit
from footprint.model.row import Row
from footprint.model.spread import ONE_START, Spreads
from footprint.process.snapshot import looks_like_capture
from footprint.release.compare import Comparison, compare
from footprint.sources.debug_files import STANDARD_PLACES, DebugSearch
from footprint.verbs.audit.call import audit, head_of, process_number, saved_audit

if TYPE_CHECKING:
    from footprint.verbs.heap.call import HeapProfiles

__all__ = ("diff", "diff_profiles")


def diff(
    old: int | str,
    new: int | str,
    *,
    count: int | None = None,
    root: str | None = None,
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
        AccessError: Where one is gone or may not be read.
        InputError: Where one is damaged.
        UsageError: Where one is predicted from its files and the other was measured.
    """
    rows: dict[str, Row] = {}
    (before, old_spreads), (now, new_spreads) = (
        _audit(one, root, debug, rows, has_page_maps=has_page_maps) for one in (old, new)
    )
    if (before.source == "prediction") is not (now.source == "prediction"):
        predicted, measured = (old, new) if before.source == "prediction" else (new, old)
        raise UsageError(
            f"{predicted} is predicted from its files, {measured} was measured: compare two programs, or two processes"
        )
    number = count or max(before.projection.count, now.projection.count)
    is_same = None
    if before.saved_in is None and now.saved_in is None:
        from footprint.release.renames import likeness_of  # noqa: PLC0415 # debug information, which nothing saved needs

        is_same = likeness_of(before, now, root, debug)
    return compare(before, now, number, old_spreads, new_spreads, is_same)


def _audit(
    target: int | str, root: str | None, debug: DebugSearch | None, rows: dict[str, Row], *, has_page_maps: bool
) -> tuple[Audit, Spreads]:
    saved = saved_audit(target, known_rows=rows, has_page_maps=has_page_maps)
    if saved is not None:
        return saved.audit, saved.spreads
    return audit(target, root=root, debug=debug, has_page_maps=has_page_maps), ONE_START


def diff_profiles(
    old: int | str,
    new: int | str,
    *,
    binaries: Sequence[str] = (),
    root: str | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
    has_all_trees: bool = False,
) -> "HeapProfiles | None":
    """Compare two allocator profiles; None where they are none. The options are those of `heap_profile`.

    Raises:
        AccessError: Where one of them is a profile and the other cannot be opened.
        InputError: Where one is damaged.
        UsageError: Where only one of them is a profile, they do not count the same, or binaries go with none.
    """
    are_profiles = [_is_profile(one) for one in (old, new)]
    if binaries and not any(are_profiles):
        raise UsageError("--binary goes with allocator profiles: neither is one")
    if not any(are_profiles):
        return None
    if not all(are_profiles):
        profile, other = (old, new) if are_profiles[0] else (new, old)
        if other != "-" and process_number(other) is None:
            open_input(str(other))
        raise UsageError(f"{profile} is an allocator profile, {other} is none: compare two profiles, or two processes")
    from footprint.verbs.heap.call import heap_profile  # noqa: PLC0415 # profiles, which few comparisons are of

    found = heap_profile(str(old), str(new), binaries=binaries, root=root, debug=debug, has_all_trees=has_all_trees)
    if len(found.files) < 2:
        unread = next(note for note in found.notes if note.slug == "file-unreadable")
        raise InputError(unread.subject, unread.detail)
    return found


def _is_profile(target: int | str) -> bool:
    """Tell whether a target is an allocator profile."""
    head = head_of(target)
    if not head or starts_like_elf(head) or looks_like_capture(head) or b'"footprint/' in head:
        return False
    from footprint.heap import looks_like_profile  # noqa: PLC0415 # only of what is nothing else

    return looks_like_profile(open_input(str(target)), str(target))
