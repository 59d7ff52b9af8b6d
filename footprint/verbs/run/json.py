"""The JSON of `run`: the audit of the median start, and how the program was run."""

from footprint.formats.audit_json import audit_answer
from footprint.formats.codec import encode, like
from footprint.formats.json import Json
from footprint.formats.run_json import KindSpread, OwnerSpread, RunChild, RunFigures, RunJson, RunMembers, RunPeak
from footprint.members import ABSENT
from footprint.model.audit import Audit
from footprint.model.peak import Peak
from footprint.model.row import MemoryKind
from footprint.verbs.run.result import RunResult

__all__ = ("run_members",)


def run_members(ran: RunResult, version: str) -> Json:
    """Return the members of the answer."""
    audit = audit_answer(ran.audit, version)
    return encode(like(RunJson, audit, verb="run", notes=ran.notes, run_failures=ABSENT, run=_run(ran)))


def _run(ran: RunResult) -> RunMembers:
    return RunMembers(
        command=ran.command,
        when=ran.when,
        moment=ran.start.moment.value,
        starts=ran.start_count,
        exit_code=ran.start.exit_code,
        signal=ran.start.signal,
        figures=RunFigures(ran.private, ran.per_process, ran.peaks),
        owners=tuple([OwnerSpread(owner, *spread) for owner, spread in ran.owners.items()]),
        kinds=tuple([KindSpread(MemoryKind(kind), *spread) for kind, spread in ran.kinds.items()]),
        retained=tuple([OwnerSpread(path, *spread) for path, spread in ran.retained.items()]),
        children=tuple([_child(child) for child in ran.start.children]),
        peak=None if ran.peak is None else _peak(ran, ran.peak),
        failures=ran.audit.run_failures,
    )


def _peak(ran: RunResult, peak: Peak) -> RunPeak:
    start = ran.start
    return like(RunPeak, peak, audited_bytes=start.audited_bytes, read_at_bytes=start.read_at_bytes)


def _child(child: Audit) -> RunChild:
    return RunChild(child.pid, child.command, child.totals.private.bytes, child.totals.per_process.bytes)
