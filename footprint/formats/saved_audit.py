r"""Saved audits, read back: what `audit --json` wrote, without the process or the binaries that it was about.

Names were made printable when they were written (a byte that is not UTF-8 stands as `\xNN`), and stay so.
"""

from collections.abc import Iterator, Mapping
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from footprint.attribution.cost_models import project
from footprint.errors import InputError, Note, UnbalancedError, UnsupportedError, UsageError
from footprint.formats.audit_json import AuditJson, page_maps_of
from footprint.formats.audit_rows import ProcessTotals
from footprint.json.codec import decode, decode_rows, like
from footprint.json.stream import JsonStream
from footprint.members import Absent, replace
from footprint.model.audit import (
    ONE_START,
    Audit,
    AuditRecord,
    GroupFacts,
    GroupMember,
    Spreads,
    WorkerProjection,
    start_spread,
)
from footprint.model.costs import Spread
from footprint.model.projection import UNKNOWN, Basis, Projection, Question
from footprint.model.row import FIGURE_NAMES, Evidence, Row, Total, Totals
from footprint.sources.demanglers import learn_saved_names
from footprint.sources.target import AuditFile
from footprint.system.decompression import pieces_of
from footprint.text.command_line import shown_command, shown_words

if TYPE_CHECKING:
    from footprint.formats.group_json import GroupJson, GroupTotals
    from footprint.formats.run_json import RunMembers
    from footprint.model.over_time import RunFailure


# The members that hold command lines.
_WITH_COMMANDS: Final = ("target", "processes", "classes", "run", "heap_account")
PLACES: Final = ("page_maps", "mappings")
"""The members that say where memory is, which differs from start to start: few readers of an audit need them."""
_SCHEMA: Final = "footprint/1"
# The audit of a process with a million variables takes 400 MB.
_MOST_BYTES: Final = 512 << 20
# Its lists that may be long. They are read a part at a time, and the rows of the ledger at once become what they are:
# as JSON data they take three times as much memory.
_LEDGER: Final = "ledger"
_LISTS: Final = (_LEDGER, "objects", "page_maps", "findings", "notes", "processes", "sources")
# All other members: those of the largest page maps take half of this.
_MOST_HELD_BYTES: Final = 128 << 20


def read_saved(target: AuditFile, *, has_page_maps: bool = False) -> AuditRecord:
    """Read a target that is a saved audit, and learn the names to show for its symbols; for the rest as `read_audit`.

    Raises:
        InputError: If it is damaged.
    """
    saved = read_audit(target.data, target.name, has_page_maps=has_page_maps)
    named = ((row.symbol, row.name) for row in saved.audit.ledger)
    learn_saved_names({symbol: name for symbol, name in named if symbol and name and symbol != name})
    if target.over_time is None:
        return saved
    peak_bytes = target.over_time.peak_bytes
    return saved._replace(audit=replace(saved.audit, peak_bytes=peak_bytes, over_time=target.over_time))


def read_audit(data: bytes | memoryview, file: str, *, has_page_maps: bool = False) -> AuditRecord:
    """Read a saved audit, of one process or program or of several processes.

    Args:
        data: The whole file.
        file: The name of the file, for errors.
        has_page_maps: Whether to read the pages of its objects and its mappings, where it was saved with them.

    Raises:
        InputError: It is cut or damaged, is the answer of another verb, or its rows do not add up.
        UnsupportedError: A newer footprint wrote it.
    """
    return saved_audit(parsed_answer(data, file), file, has_page_maps=has_page_maps)


def parsed_answer(data: bytes | memoryview, file: str) -> dict[str, Any]:
    """Return the members of a saved audit, of one process or of several.

    Raises:
        InputError: It is cut, or no audit.
        UnsupportedError: A newer footprint wrote it.
    """
    if len(data) > _MOST_BYTES:
        raise InputError(file, "longer than any audit that footprint reads", _MOST_BYTES)
    whole = _parsed(data, file)
    schema = whole.get("schema")
    if schema != _SCHEMA:
        name, _, number = str(schema).partition("/")
        if name == "footprint" and number.isdigit() and len(number) < 10:
            raise UnsupportedError(file, f"it has the schema {schema}; this footprint reads {_SCHEMA}")
        raise InputError(file, "it is not JSON that footprint writes")
    if "ledger" not in whole or not ("totals" in whole or "group" in whole):
        raise InputError(file, "it is the answer of another verb: `footprint audit -o FILE --json` saves an audit")
    for name in _WITH_COMMANDS:
        _show_commands(whole.get(name))
    target = whole.get("target")
    if whole.get("run") is not None and isinstance(target, dict) and isinstance(target.get("name"), str):
        target["name"] = shown_command(target["name"])
    return whole


def _show_commands(value: Any) -> None:  # noqa: ANN401 # JSON
    """Replace the command lines in a part of an answer, as they are shown."""
    if isinstance(value, list):
        for element in value:
            _show_commands(element)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name != "command":
                _show_commands(member)
            elif isinstance(member, str):
                value[name] = shown_command(member)
            elif isinstance(member, list) and member and all(isinstance(word, str) for word in member):
                value[name] = list(shown_words(member))


def saved_audit(whole: dict[str, Any], file: str, *, has_page_maps: bool = False) -> AuditRecord:
    """Return the audit that an answer is; the arguments and errors are those of `read_audit`."""
    if "group" in whole:
        return _read_group(whole, file)
    if not has_page_maps:
        for name in PLACES:
            whole.pop(name, None)
    if whole.get("run") is not None:
        return _read_run(whole, file)
    answer = decode(AuditJson, whole, file)
    failures = () if answer.run_failures is Absent.ABSENT else answer.run_failures
    return AuditRecord(_with_failures(_audit(answer, file), failures), ONE_START, answer.tool.version)


def _read_run(whole: dict[str, Any], file: str) -> AuditRecord:
    from footprint.formats.run_json import RunJson  # noqa: PLC0415 # types that other audits do not need

    answer = decode(RunJson, whole, file)
    audit, run = _audit(answer, file), answer.run
    peak_bytes = None if run.peak is None else run.peak.peak_bytes
    is_missed = any(note.slug == "moment-not-reached" for note in audit.notes)
    start_cpu_us = None if run.start_cost is None else run.start_cost.processor_us.median
    audit = replace(audit, peak_bytes=peak_bytes, start_cpu_us=start_cpu_us)
    audit = _with_failures(audit, _failures(run, is_missed=is_missed))
    return AuditRecord(audit, _spreads(run), answer.tool.version)


def _read_group(whole: dict[str, Any], file: str) -> AuditRecord:
    from footprint.formats.group_json import GroupJson  # noqa: PLC0415 # few audits are of groups
    from footprint.model.audit import GroupSums, audit_of_group  # noqa: PLC0415 # the same

    answer = decode(GroupJson, whole, file)
    if not answer.processes:
        raise InputError(file, "it is damaged: `processes` is empty")
    sums = GroupSums(*(_total(answer.group, f"{name}_bytes", "group", file) for name in GroupSums._fields))
    members = [like(GroupMember, process, totals=_totals_of(process.totals, file)) for process in answer.processes]
    projection, workers = UNKNOWN, WorkerProjection()
    if (saved := answer.projection) is not None:
        projection = like(
            Projection, saved, per_process_bytes=saved.per_group_bytes, basis=Basis.PER_PROCESS, points=(), reasons=()
        )
        workers = WorkerProjection(saved.worker_count, saved.per_worker_bytes, saved.worker_limits)
    group = GroupFacts(
        tuple(members), sums.own_shared, answer.classes, answer.target.thread_count, workers, answer.cgroup
    )
    common = _common_fields(answer, file)
    try:
        audit = audit_of_group(answer.target.name, sums, group, projection=projection, **common)
    except UnbalancedError as error:
        raise InputError(file, f"it was changed since it was written: {error.detail}") from error
    return AuditRecord(audit, ONE_START, answer.tool.version)


def _with_failures(audit: Audit, failures: "tuple[RunFailure, ...]") -> Audit:
    """Add to an audit how its run failed, and the note that says so wherever the audit is shown or compared."""
    if not failures:
        return audit
    causes = "; ".join(dict.fromkeys(failure.detail for failure in failures))
    note = Note("run-failed", audit.target, f"the figures are those of a run that failed: {causes}")
    return replace(audit, run_failures=failures, notes=tuple(dict.fromkeys((*audit.notes, note))))


def reprojected(audit: Audit, question: Question) -> Audit:
    """Return a saved audit with another projection: its own terms, as many times as is asked.

    Raises:
        UsageError: Another model is asked for: its terms were not saved.
    """
    saved = audit.projection
    if question.model not in {None, saved.model}:
        raise UsageError(f"the saved audit has the terms of the model {saved.model}, not of {question.model}")
    question = question._replace(model=saved.model)
    moments = [(point.name, point.each_bytes, point.evidence) for point in saved.points]
    return replace(audit, projection=project(saved.terms, saved.basis, question, moments))


def _parsed(data: bytes | memoryview, file: str) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    held_bytes = 0
    try:
        for key, value in JsonStream(pieces_of(data, file), "valid JSON", file).members(_LISTS):
            is_list = isinstance(value, Iterator)
            if is_list and key == _LEDGER:
                rows: list[Row] = []
                for part in value:
                    rows += decode_rows(Row, part, key, file, len(rows))
                whole[key] = tuple(rows)
                continue
            whole[key] = [] if is_list else value
            for part in value if is_list else ([value],):
                held_bytes += len(key) + _held_bytes(part)
                if held_bytes > _MOST_HELD_BYTES:
                    raise InputError(file, f"`{key[:80]}` is longer than in any audit that footprint writes")
                if is_list:
                    whole[key] += part
    except ValueError as error:
        raise InputError(file, "it is not JSON that footprint writes") from error
    return whole


def _held_bytes(value: object) -> int:
    """Return the memory that JSON data takes."""
    total_bytes, rest = 0, [value]
    while rest:
        item = rest.pop()
        total_bytes += getsizeof(item)
        if isinstance(item, dict):
            rest += item
            rest += item.values()
        elif isinstance(item, list):
            rest += item
    return total_bytes


def _audit(answer: AuditJson, file: str) -> Audit:
    common = _common_fields(answer, file)
    page_maps = () if answer.page_maps is Absent.ABSENT else answer.page_maps
    if page_maps and answer.target.page_bytes == 0:
        raise InputError(file, "it is damaged: `target.page_bytes` is not a page size")
    if answer.allocator is not None and not answer.allocator.adds_up:
        raise InputError(file, "it is damaged: the parts of `allocator` are not those of its sums")
    try:
        return Audit(
            target=answer.target.name,
            pid=answer.target.pid,
            command=answer.target.command,
            source=answer.target.source,
            is_live=answer.target.is_live,
            mapping_count=answer.target.mapping_count,
            page_bytes=answer.target.page_bytes,
            totals=_totals_of(answer.totals, file),
            projection=answer.projection,
            page_maps=tuple(page_maps_of(page_maps, file)),
            mappings=() if answer.mappings is Absent.ABSENT else answer.mappings,
            heap=answer.heap_account,
            allocator=answer.allocator,
            **common,
        )
    except ValueError as error:
        cause = error.detail if isinstance(error, InputError) else error
        raise InputError(file, f"it was changed since it was written: {cause}") from error


def _common_fields(answer: "AuditJson | GroupJson", file: str) -> dict[str, Any]:
    """Return the fields that an audit has from the same members, whether it is of one process or of several."""
    for key in ("kernel", "machine"):
        if answer.host and key not in answer.host:
            raise InputError(file, f"it is damaged: `host.{key}` is missing")
    return {
        "host": dict(answer.host),
        "ledger": answer.ledger,
        "notes": answer.notes,
        "findings": answer.findings,
        "debug_files": dict(answer.debug_files),
        "objects": answer.objects,
        "memory_files": () if answer.memory_files is Absent.ABSENT else answer.memory_files,
        "searched_rules": answer.searched_rules,
        "saved_in": file,
    }


def _totals_of(saved_totals: ProcessTotals, file: str) -> Totals:
    totals = {field: _total(saved_totals, name, "totals", file) for field, name in FIGURE_NAMES.items()}
    return Totals(**totals, of_which=saved_totals.of_which)


def _total(saved_totals: "ProcessTotals | GroupTotals", name: str, place: str, file: str) -> Total:
    """Return a figure of a saved answer.

    Raises:
        InputError: If it does not say how it is known.
    """
    size_bytes: int | None = getattr(saved_totals, name)
    if size_bytes is None:
        return Total(None, Evidence.PREDICTED)
    evidence = cast("Mapping[str, Evidence]", saved_totals.evidence).get(name)
    if evidence is None:
        raise InputError(file, f"it is damaged: `{place}.evidence.{name}` is missing")
    return Total(size_bytes, evidence)


def _failures(run: "RunMembers", *, is_missed: bool) -> "tuple[RunFailure, ...]":
    """Return how its starts failed; in files of earlier versions how the median start ended."""
    from footprint.formats.run_json import MomentWord  # noqa: PLC0415 # as above
    from footprint.model.over_time import failures_of_start  # noqa: PLC0415 # the same

    if run.failures is not None:
        return run.failures
    moment = run.when if run.when in get_args(MomentWord) else "time"
    return tuple(
        failures_of_start(
            1, exit_code=run.exit_code, signal=run.signal, wanted_moment=moment, moment=run.moment, is_missed=is_missed
        )
    )


def _spreads(run: "RunMembers") -> Spreads:
    figures = run.figures
    owners, retained = (
        {row.owner: Spread(row.min, row.median, row.max) for row in rows} for rows in (run.owners, run.retained)
    )
    kinds = {kind.kind.value: Spread(kind.min, kind.median, kind.max) for kind in run.kinds}
    sums = figures.private_bytes, figures.per_process_bytes
    return Spreads(*sums, owners, run.starts, figures.peak_bytes, kinds, retained, *start_spread(run.start_cost))
