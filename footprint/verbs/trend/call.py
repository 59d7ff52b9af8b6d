"""`footprint.trend`: how the figures of the releases in a history went."""

import os
from collections.abc import Sequence

from footprint.errors import UsageError
from footprint.files import StrPath
from footprint.release.history import History, history_of

__all__ = ("trend",)


def trend(
    history: StrPath,
    *,
    programs: Sequence[str] = (),
    figures: Sequence[str] = (),
    owner: str | None = None,
    last: int | None = None,
) -> History:
    """Read how the figures changed over the releases in a history.

    Args:
        history: The file.
        programs: Which programs; all if none is named.
        figures: Which figures, such as `per_process_bytes`; all if none is named.
        owner: Whose part of them: a file name, or a name in brackets such as `[heap]`.
        last: How many releases of each program, the newest ones.

    Raises:
        AccessError: If it cannot be opened.
        InputError: If it is damaged, or not a history.
        UsageError: If it has no such program, figure or owner.
    """
    from footprint.release.history_file import read_recordings  # noqa: PLC0415 # sqlite3

    history = os.fspath(history)
    if last is not None and last < 1:
        raise UsageError(f"{last} is not a number of releases: the least is 1")
    found = read_recordings(history)
    known = {one.release.program for one in found}
    for program in programs:
        if program not in known:
            raise UsageError(f"{history} has no program {program!r}: it has {', '.join(sorted(known)) or 'none'}")
    chosen = [one for one in found if not programs or one.release.program in programs]
    return history_of(chosen, history, figures=figures, owner=owner, last=last)
