"""`footprint.diff`: what changed between two processes, programs, captures or saved audits."""

from footprint.audit.audit import Audit
from footprint.audit.compare import ONE_START, Comparison, Spreads, compare
from footprint.audit.ledger import Row
from footprint.errors import UsageError
from footprint.verbs.debug_files import STANDARD_PLACES, DebugSearch
from footprint.verbs.processes import audit, saved_audit

__all__ = ("diff",)


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
        has_page_maps: Tell the pages of their objects one by one, for a picture; saved audits do not have them.

    Raises:
        AccessError: Where one is gone or may not be read.
        InputError: Where one is damaged.
        UsageError: Where one is predicted from its files and the other was measured.
    """
    rows: dict[bytes, Row] = {}
    (before, old_spreads), (now, new_spreads) = (
        _audit(one, root, debug, rows, has_page_maps=has_page_maps) for one in (old, new)
    )
    if (before.source == "prediction") is not (now.source == "prediction"):
        predicted, measured = (old, new) if before.source == "prediction" else (new, old)
        raise UsageError(
            f"{predicted} is predicted from its files, {measured} was measured: compare two programs, or two processes"
        )
    number = count or max(before.projection.count, now.projection.count)
    return compare(before, now, number, old_spreads, new_spreads)


def _audit(
    target: int | str, root: str | None, debug: DebugSearch | None, rows: dict[bytes, Row], *, has_page_maps: bool
) -> tuple[Audit, Spreads]:
    saved = saved_audit(target, known_rows=rows)
    if saved is not None:
        return saved.audit, Spreads(saved.private, saved.per_process)
    return audit(target, root=root, debug=debug, has_page_maps=has_page_maps), ONE_START
