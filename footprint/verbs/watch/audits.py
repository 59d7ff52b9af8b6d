"""The whole audits of a watch: what is read in a moment, and joined with files later."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from footprint.errors import AccessError, FootprintError, Note, UnsupportedError
from footprint.limits import STANDARD, limited, time_limit
from footprint.model.audited import Audited
from footprint.model.projection import Question
from footprint.process import Snapshot, read_process
from footprint.process.descriptions import read_own_open_files
from footprint.process.freezer import held
from footprint.series.grown_mappings import KeptMapping, largest_mappings
from footprint.sources.debug_files import STANDARD_PLACES
from footprint.sources.files import ElfFiles
from footprint.verbs.audit.process import audit_of, files_of

__all__ = ("Audits", "Reading", "is_there")

# Stopping more takes longer than their peak lasts.
_MOST_STOPPED: Final = 16
_LONGEST_STOP_SECONDS: Final = 5.0


class Reading(NamedTuple):
    """What was read of processes: they may have gone on, or have ended, since.

    Attributes:
        join: Makes the audit of it.
        mappings: The private memory of the largest mappings, by their keys.
    """

    join: Callable[[], Audited]
    mappings: Mapping[str, int]


def is_there(pid: int) -> bool:
    """Return whether a process is there."""
    return os.path.exists(f"/proc/{pid}/maps")


class Audits:
    """Makes the audits of one watch; a file that was read for one of them is known to the next.

    Args:
        target: What is watched.
        is_one: Whether it is one process; else they are audited as a group.
        stops_at_peak: Whether the processes are stopped while they are read at a peak.
    """

    def __init__(self, target: str, *, is_one: bool, stops_at_peak: bool = False) -> None:
        self._target = target
        self._is_one = is_one
        self._stops_at_peak = stops_at_peak
        self._files: ElfFiles | None = None

    def read(self, pids: Sequence[int], is_peak: bool) -> Reading:  # noqa: FBT001 # as the engine calls it
        """Read processes as they are now.

        Raises:
            AccessError: If none of them can be read.
        """
        snapshots: list[Snapshot] = []
        notes: list[Note] = []
        stopped = [pid for pid in pids if pid != os.getpid()] if is_peak and self._stops_at_peak else []
        with limited(), held(stopped[:_MOST_STOPPED], _LONGEST_STOP_SECONDS):
            for pid in pids:
                try:
                    snapshots.append(read_process(pid))
                except UnsupportedError:
                    # It has just ended, and is a zombie.
                    continue
                except FootprintError as error:
                    if not is_there(pid):
                        # Its end is told as such.
                        continue
                    notes.append(Note("process-not-read", f"pid {pid}", f"{error.detail}; it is left out"))
        if not snapshots:
            raise AccessError(self._target, notes[0].detail if notes else "no process of it is there")
        open_files = read_own_open_files([one.pid for one in snapshots if one.pid is not None])
        kept = [one._replace(open_files=open_files.get(one.pid or 0, ())) for one in snapshots]
        return Reading(lambda: self._limited(kept, notes), largest_mappings(_private_bytes(kept)))

    def _limited(self, snapshots: Sequence[Snapshot], notes: Sequence[Note]) -> Audited:
        """Make an audit within the limits of one answer."""
        with limited(), time_limit(STANDARD.seconds):
            return self._joined(snapshots, notes)

    def _joined(self, snapshots: Sequence[Snapshot], notes: Sequence[Note]) -> Audited:
        """Join what was read with the files; of a process that has ended since, the files at its paths."""
        snapshots = [one._replace(is_live=one.pid is not None and is_there(one.pid)) for one in snapshots]
        if self._files is None:
            self._files = files_of(snapshots[0], STANDARD_PLACES) if self._is_one else ElfFiles(STANDARD_PLACES)
        if self._is_one:
            (one,) = snapshots
            return audit_of(one, self._target, Question(), files=self._files, open_files=one.open_files)
        from footprint.verbs.audit.group import group_of  # noqa: PLC0415 # few watches are of groups

        return group_of(snapshots, notes=notes, target=self._target, files=self._files)


def _private_bytes(snapshots: Sequence[Snapshot]) -> Iterator[tuple[KeptMapping, int]]:
    """Return the anonymous memory of each mapping that only its process holds, swapped memory included."""
    for snapshot in snapshots:
        for one in snapshot.memory.mappings:
            swapped_bytes = one.counters.get("SwapPss") or 0
            kept = KeptMapping(snapshot.process_id or 0, one.start_addr, one.end_addr, one.name)
            yield kept, one.counters.private_bounds()[0] + swapped_bytes
