"""The JSON and the metrics of `run`: the audit of the median start, and how the program was run."""

from footprint import __version__
from footprint.formats.audit_json import audit_answer, written_members
from footprint.formats.metrics import MetricFamily, audit_metrics, target_labels, total_family
from footprint.formats.run_json import KindSpread, OwnerSpread, RunChild, RunFigures, RunJson, RunMembers
from footprint.json.answer import Json, write
from footprint.json.codec import encode, like
from footprint.members import ABSENT
from footprint.model.audit import Audit, program_name
from footprint.model.figures import FIGURES
from footprint.model.row import MemoryKind, Total
from footprint.system.files import StrPath
from footprint.system.whole_file import write_file
from footprint.verbs.run.result import RunResult


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
        peak=None
        if ran.peak is None
        else ran.peak._replace(audited_bytes=ran.start.explained_bytes, read_at_bytes=ran.start.read_at_bytes),
        failures=ran.audit.run_failures,
        start_cost=ran.start_cost,
        daily=ran.daily,
    )


def _child(child: Audit) -> RunChild:
    return RunChild(child.pid, child.command, child.totals.private.bytes, child.totals.per_process.bytes)


def run_metrics(ran: RunResult) -> list[MetricFamily]:
    """Return the figures of the median start, and the peak."""
    families, peak = audit_metrics(ran.audit), ran.peak
    if peak is None:
        return families
    labels = target_labels(ran.audit.target, program_name(ran.audit)) | {"source": peak.source}
    return [*families, total_family(FIGURES["peak_bytes"], Total(peak.peak_bytes, peak.evidence), labels)]


def save(answer: Audit | RunResult, path: StrPath) -> None:
    """Save an audit, a group, or a run with what its starts differ by, as the JSON that `-o` of the commands writes.

    Args:
        answer: What `audit`, `audit_group` or `run` returned.
        path: Where to write. An existing file is replaced; a new one with command lines is for its owner only.

    Raises:
        AccessError: If the file cannot be written.
    """
    members = (
        run_members(answer, __version__) if isinstance(answer, RunResult) else written_members(answer, __version__)
    )
    mode = 0o666 if isinstance(answer, Audit) and answer.source == "prediction" else 0o600
    write_file(path, write(members).encode("utf-8", "backslashreplace"), mode=mode)
