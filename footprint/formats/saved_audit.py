r"""Saved audits, read back: what `audit --json` wrote, without the process or the binaries that it was about.

Names were made printable when they were written (a byte that is not UTF-8 stands as `\xNN`), and stay so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast, get_args

from footprint.attribution.projection import project
from footprint.command_line import shown_command, shown_words
from footprint.decompression import pieces_of
from footprint.errors import InputError, Note, UnsupportedError, UsageError
from footprint.formats.audit_json import AuditJson, ProcessTotals
from footprint.formats.codec import decode, decode_rows
from footprint.formats.finding_rows import finding_of
from footprint.formats.heap_account_json import heap_account_of
from footprint.formats.page_maps_json import page_maps_of
from footprint.json_stream import JsonStream
from footprint.members import Absent
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence
from footprint.model.projection import Question
from footprint.model.row import Row
from footprint.model.spread import ONE_START, Spread, Spreads
from footprint.model.totals import FIGURE_NAMES, Total, Totals

if TYPE_CHECKING:
    from footprint.formats.run_json import RunMembers
    from footprint.model.run_failure import RunFailure

__all__ = (
    "PLACES",
    "SavedAudit",
    "check_host",
    "looks_like_audit",
    "parsed_answer",
    "read_audit",
    "reprojected",
    "saved_audit",
    "totals_of",
)

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


class SavedAudit(NamedTuple):
    """An audit as it was saved.

    Attributes:
        audit: The audit; for a `run` the audit of the median start.
        spreads: How far the starts of a `run` differ.
        start_count: The number of starts; 1 where it was no `run`.
        tool_version: The version of footprint that wrote it.
    """

    audit: Audit
    spreads: Spreads
    start_count: int
    tool_version: str


def looks_like_audit(head: bytes | memoryview) -> bool:
    """Return whether a file claims, in its first kilobyte, to be JSON that footprint has written."""
    start = bytes(head[:1024]).lstrip()
    return start.startswith(b"{") and b'"schema"' in start and b'"footprint/' in start


def read_audit(data: bytes | memoryview, file: str, *, has_page_maps: bool = False) -> SavedAudit:
    """Read a saved audit of one process or program.

    Args:
        data: The whole file.
        file: The name of the file, for errors.
        has_page_maps: Whether to read the pages of its objects and its mappings, where it was saved with them.

    Raises:
        InputError: It is cut or damaged, is the answer of another verb, or its rows do not add up.
        UnsupportedError: A newer footprint wrote it, or it is about several processes.
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
        for one in value:
            _show_commands(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name != "command":
                _show_commands(one)
            elif isinstance(one, str):
                value[name] = shown_command(one)
            elif isinstance(one, list) and one and all(isinstance(word, str) for word in one):
                value[name] = list(shown_words(one))


def saved_audit(whole: dict[str, Any], file: str, *, has_page_maps: bool = False) -> SavedAudit:
    """Return the audit that an answer is; the arguments and errors are those of `read_audit`."""
    if "group" in whole:
        raise UnsupportedError(file, "it is about several processes: name the saved audit of one")
    if not has_page_maps:
        for name in PLACES:
            whole.pop(name, None)
    if whole.get("run") is not None:
        return _read_run(whole, file)
    answer = decode(AuditJson, whole, file)
    failures = () if answer.run_failures is Absent.ABSENT else answer.run_failures
    return SavedAudit(_with_failures(_audit(answer, file), failures), ONE_START, 1, answer.tool.version)


def _read_run(whole: dict[str, Any], file: str) -> SavedAudit:
    from footprint.formats.run_json import RunJson  # noqa: PLC0415 # types that other audits do not need

    answer = decode(RunJson, whole, file)
    audit, run = _audit(answer, file), answer.run
    peak_bytes = None if run.peak is None else run.peak.peak_bytes
    is_missed = any(note.slug == "moment-not-reached" for note in audit.notes)
    audit = _with_failures(replace(audit, peak_bytes=peak_bytes), _failures(run, is_missed=is_missed))
    return SavedAudit(audit, _spreads(run), run.starts, answer.tool.version)


def _with_failures(audit: Audit, failures: "tuple[RunFailure, ...]") -> Audit:
    """Add to an audit how its run failed, and the note that says so wherever the audit is shown or compared."""
    if not failures:
        return audit
    causes = "; ".join(dict.fromkeys(one.detail for one in failures))
    note = Note("run-failed", audit.target, f"the figures are those of a run that failed: {causes}")
    return replace(audit, run_failures=failures, notes=tuple(dict.fromkeys((*audit.notes, note))))


def reprojected(audit: Audit, question: Question) -> Audit:
    """Return a saved audit with another projection: its own terms, as many times as is asked.

    Raises:
        UsageError: Another model is asked for: its terms were not saved.
    """
    own = audit.projection
    if question.model not in {None, own.model}:
        raise UsageError(f"the saved audit has the terms of the model {own.model}, not of {question.model}")
    question = question._replace(model=own.model)
    moments = [(point.name, point.each_bytes, point.evidence) for point in own.points]
    return replace(audit, projection=project(own.terms, own.basis, question, moments))


def _parsed(data: bytes | memoryview, file: str) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    held_bytes = 0
    try:
        for key, value in JsonStream(pieces_of(data, file), "valid JSON", file).members(_LISTS):
            is_list = isinstance(value, Iterator)
            if is_list and key == _LEDGER:
                whole[key] = tuple([row for part in value for row in decode_rows(Row, part, key, file)])
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
        one = rest.pop()
        total_bytes += getsizeof(one)
        if isinstance(one, dict):
            rest += one
            rest += one.values()
        elif isinstance(one, list):
            rest += one
    return total_bytes


def _audit(answer: AuditJson, file: str) -> Audit:
    check_host(answer.host, file)
    page_maps = () if answer.page_maps is Absent.ABSENT else answer.page_maps
    if page_maps and answer.target.page_bytes == 0:
        raise InputError(file, "it is damaged: `target.page_bytes` is not a page size")
    try:
        return Audit(
            target=answer.target.name,
            pid=answer.target.pid,
            command=answer.target.command,
            source=answer.target.source,
            is_live=answer.target.is_live,
            mapping_count=answer.target.mapping_count,
            page_bytes=answer.target.page_bytes,
            host=dict(answer.host),
            totals=totals_of(answer.totals, file),
            ledger=answer.ledger,
            projection=answer.projection,
            notes=answer.notes,
            findings=tuple(map(finding_of, answer.findings)),
            debug_files=dict(answer.debug_files),
            objects=answer.objects,
            page_maps=tuple(page_maps_of(page_maps, file)),
            mappings=() if answer.mappings is Absent.ABSENT else answer.mappings,
            searched_rules=answer.searched_rules,
            saved_in=file,
            heap=None if answer.heap_account is None else heap_account_of(answer.heap_account),
            allocator=answer.allocator,
        )
    except ValueError as error:
        cause = error.detail if isinstance(error, InputError) else error
        raise InputError(file, f"it was changed since it was written: {cause}") from error


def check_host(host: Mapping[str, str], file: str) -> None:
    """Check that a host has its members.

    Raises:
        InputError: If one is missing.
    """
    for key in ("kernel", "machine"):
        if host and key not in host:
            raise InputError(file, f"it is damaged: `host.{key}` is missing")


def totals_of(told: ProcessTotals, file: str) -> Totals:
    """Return the figures of a process that a saved answer has.

    Raises:
        InputError: If it does not say how one is known.
    """
    known = cast("Mapping[str, Evidence]", told.evidence)

    def total(field: str) -> Total:
        name = FIGURE_NAMES[field]
        size_bytes: int | None = getattr(told, name)
        if size_bytes is None:
            return Total(None, Evidence.PREDICTED)
        if name not in known:
            raise InputError(file, f"it is damaged: `totals.evidence.{name}` is missing")
        return Total(size_bytes, known[name])

    return Totals(**{field: total(field) for field in FIGURE_NAMES}, of_which=told.of_which)


def _failures(run: "RunMembers", *, is_missed: bool) -> "tuple[RunFailure, ...]":
    """Return how its starts failed; in files of earlier versions how the median start ended."""
    from footprint.formats.run_json import MomentWord  # noqa: PLC0415 # as above
    from footprint.model.run_failure import failures_of_start  # noqa: PLC0415 # the same

    if run.failures is not None:
        return run.failures
    asked = run.when if run.when in get_args(MomentWord) else "time"
    return tuple(
        failures_of_start(
            1, exit_code=run.exit_code, signal=run.signal, asked=asked, moment=run.moment, is_missed=is_missed
        )
    )


def _spreads(run: "RunMembers") -> Spreads:
    figures = run.figures
    owners, retained = (
        {one.owner: Spread(one.min, one.median, one.max) for one in rows} for rows in (run.owners, run.retained)
    )
    kinds = {one.kind.value: Spread(one.min, one.median, one.max) for one in run.kinds}
    return Spreads(
        figures.private_bytes, figures.per_process_bytes, owners, run.starts, figures.peak_bytes, kinds, retained
    )
