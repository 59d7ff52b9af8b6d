"""`footprint.record`: the figures of a release, kept in a history."""

import os
import time as clock
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from footprint.elf.notes import STANDARD_PLACES, DebugSearch
from footprint.errors import InputError, Note, UsageError
from footprint.model.audit import Audit, AuditRecord, is_audited
from footprint.release.history import History, Recording, Release, history_of, recording_of
from footprint.sources.target import AnyTarget, Named, Processes, resolve
from footprint.system.files import StrPath
from footprint.text.escape import well_formed
from footprint.verbs.audit.call import audit_target
from footprint.verbs.audit.request import AuditRequest


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
    recordings = read_recordings(history)
    names = {recording.release.program for recording in recordings}
    for program in programs:
        if program not in names:
            raise UsageError(f"{history} has no program {program!r}: it has {', '.join(sorted(names)) or 'none'}")
    chosen = [recording for recording in recordings if not programs or recording.release.program in programs]
    return history_of(chosen, history, figures=figures, owner=owner, last=last)


_LAST_SECOND: Final = 253_402_300_799  # of the year 9999


class Recorded(NamedTuple):
    """A recording that was added to a history.

    Attributes:
        recording: What was kept.
        replaced: The release of the same version that it took the place of, or None.
        release_count: How many releases of the program the history has now.
        notes: Those of the audit.
    """

    recording: Recording
    replaced: Release | None
    release_count: int
    notes: tuple[Note, ...]


def record(
    target: Named | AnyTarget | Audit,
    history: StrPath,
    *,
    version: str | None = None,
    commit: str | None = None,
    program: str | None = None,
    time: int | str | None = None,
    pid: int | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
) -> Recorded:
    """Keep the figures of a release in a history.

    Args:
        target: A saved audit, or what `audit` takes; or an audit or group that was made already.
        history: The file, which is made where there is none.
        version: The name of the release; either this or `commit`.
        commit: The commit that was built.
        program: What the program is called; else what the audit says.
        time: Its time, which orders releases: seconds since 1970, or a date, with the time of day or without, such as
            `2026-11-22T10:00:00+01:00`; where no zone is named it is UTC. Else the time of the file; of a live process
            the present.
        pid: Which process of a text or capture that holds several; without it, those of a capture are a group.
        debug: As for `audit`.

    Raises:
        AccessError: If the target cannot be read, or the history not be written.
        InputError: If the target is damaged or a run that failed, or if the file is not a history.
        UsageError: If a name or a time is not valid.
    """
    if (version is None) is (commit is None):
        raise UsageError("name the release with --version or with --commit, one of the two")
    from footprint.release.history_file import write_recording  # noqa: PLC0415 # sqlite3

    seconds = _file_time(target) if time is None else parse_time(time)
    audited = _audited(target, AuditRequest(pid=pid, debug=debug))
    if audited.audit.run_failures:
        cause = audited.audit.run_failures[0].detail
        raise InputError(_called(target), f"the run failed: {cause}; its figures are not those of a release")
    made = recording_of(
        audited.audit,
        version if version is not None else commit or "",
        is_commit=commit is not None,
        time=seconds,
        tool_version=audited.tool_version,
        program=program,
    )
    made = _written(made)
    replaced, release_count = write_recording(os.fspath(history), made)
    return Recorded(made, replaced, release_count, audited.audit.notes)


def _audited(target: Named | AnyTarget | Audit, request: AuditRequest) -> AuditRecord:
    if is_audited(target):
        return AuditRecord(target)
    return audit_target(target if isinstance(target, Processes) else resolve(target), request)


def _called(target: Named | AnyTarget | Audit) -> str:
    """Return the name of a target, which is its path if it is a file."""
    if is_audited(target):
        return target.saved_in or target.target
    return os.fspath(target) if isinstance(target, str | os.PathLike) else str(getattr(target, "name", target))


def _file_time(target: Named | AnyTarget | Audit) -> int:
    """Return the time of a file; the present time for processes or standard input."""
    path = _called(target)
    if not path.isdigit() and not isinstance(target, Processes) and os.path.isfile(path):
        return min(max(int(os.stat(path).st_mtime), 0), _LAST_SECOND)
    return int(clock.time())


def parse_time(value: int | str) -> int:
    """Read a time: seconds since 1970, or a date as ISO 8601 writes it.

    Raises:
        UsageError: For anything else, and for times before 1970.
    """
    text = str(value).strip()
    # Eight digits are a date as well.
    if isinstance(value, int) or (text.isascii() and text.isdigit() and len(text) > 8):
        seconds = int(text) if len(text) < 16 else -1
    else:
        try:
            moment = datetime.fromisoformat(text)
            seconds = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        except (ValueError, OverflowError):
            seconds = -1
    if not 0 <= seconds <= _LAST_SECOND:
        raise UsageError(f"{text[:40]!r} is not a time: write 2026-11-22, 2026-11-22T10:00:00Z, or seconds since 1970")
    return seconds


def _written(recording: Recording) -> Recording:
    r"""Return a recording whose names are text: a byte that is no UTF-8 becomes `\xNN`."""
    release = recording.release
    return recording._replace(
        release=release._replace(program=well_formed(release.program), version=well_formed(release.version)),
        parts={
            figure: {well_formed(owner): amount for owner, amount in owners.items()}
            for figure, owners in recording.parts.items()
        },
    )
