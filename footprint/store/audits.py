"""Rows of the dataset from audits, dependency graphs and the contents of files."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from footprint.model.finding import Finding
from footprint.model.row import DELETED, OF_OBJECTS, MemoryKind, Row
from footprint.process.origin import Placement
from footprint.store.tables import (
    FleetFinding,
    FleetLibrary,
    FleetOwner,
    FleetProcess,
    FleetProgram,
    FleetRow,
    FleetVariable,
)

if TYPE_CHECKING:
    from footprint.attribution.dependency_graph import DependencyGraph
    from footprint.elf.contents import Contents, SectionContents
    from footprint.model.audit import Audit


Tables = defaultdict[str, list[tuple[Any, ...]]]
"""By table, its rows."""

_LEAST_SYMBOL_BYTES: Final = 64
_MOST_SYMBOLS: Final = 512
"""How many symbols of a process are rows of their own: of an unstripped program there are thousands."""
_LEAST_VARIABLE_BYTES: Final = 256


class Provenance(NamedTuple):
    """Where and when something was read, and from what.

    Attributes:
        host: The name of the host, image or root file system.
        moment: When, in UTC.
        input: The name of the input.
        identity: The digest of the input.
    """

    host: str
    moment: datetime
    input: str
    identity: str

    @property
    def day(self) -> date:
        """The day of the moment."""
        return self.moment.date()

    def key(self, *parts: object) -> int:
        """Return the key of something in the input: the same one each time that it is read."""
        return int(digest(self.host, self.identity, *parts)[:16], 16) >> 1


class AuditSums(NamedTuple):
    """What the audits of an input add up to.

    Attributes:
        process_count: The number of processes.
        row_count: The number of rows of their ledgers, as the dataset has them.
        private_bytes: Their private bytes.
        kernel_bytes: Their kernel memory.
        per_process_bytes: What they cost.
    """

    process_count: int = 0
    row_count: int = 0
    private_bytes: int = 0
    kernel_bytes: int = 0
    per_process_bytes: int = 0


def digest(*parts: object) -> str:
    """Return the digest of some texts, in hexadecimal digits."""
    text = "\0".join(map(str, parts))
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def sums_of(audits: Iterable["Audit"], row_count: int) -> AuditSums:
    """Add up the totals of audits."""
    read_audits = list(audits)
    figures = [audit.figures for audit in read_audits]

    def total(*names: str) -> int:
        return sum(next((figure[name].bytes for name in names if name in figure), 0) or 0 for figure in figures)

    return AuditSums(
        sum(len(audit.members) or 1 for audit in read_audits),
        row_count,
        total("private_bytes"),
        total("kernel_bytes"),
        total("per_process_bytes", "per_group_bytes"),
    )


def add_audited(
    tables: Tables,
    taken: Provenance,
    audited: "Audit",
    *,
    number: int,
    program: str,
    build_ids: Mapping[str, str | None],
    has_command: bool,
    placement: Placement,
) -> None:
    """Add the rows of the audit of a process, or of a saved group of processes.

    Args:
        tables: Where they are added.
        taken: Where and when the process was read.
        audited: The audit.
        number: Which audit of the input it is.
        program: The path of the program, or the name of the process.
        build_ids: The build-ids of its files, by path, as far as the audit does not have them.
        has_command: Whether the command line is kept.
        placement: Who runs it.
    """
    key = taken.key(audited.pid, number)
    # A file that an update replaced is the same file to those who compare hosts; its build-id tells which one it is.
    program = program.removesuffix(DELETED)
    build_ids = {path.removesuffix(DELETED): build_id for path, build_id in build_ids.items()}
    if any(row.owner.endswith(DELETED) for row in audited.ledger):
        audited = replace(audited, ledger=tuple(map(_of_file, audited.ledger)))
    build_ids = {cost.path: cost.build_id for cost in audited.objects} | {**build_ids}
    figures = {name: total.bytes for name, total in audited.figures.items()}
    of_which = audited.totals.of_which if hasattr(audited, "totals") else None
    tables["processes"].append(
        FleetProcess(
            host=taken.host,
            day=taken.day,
            moment=taken.moment,
            audit=key,
            input=taken.input,
            pid=audited.pid,
            program=program,
            build_id=build_ids.get(program),
            command=audited.command if has_command else None,
            private_bytes=figures["private_bytes"],
            kernel_bytes=figures["kernel_bytes"],
            per_process_bytes=figures.get("per_process_bytes", figures.get("per_group_bytes")),
            shared_once_bytes=figures["shared_once_bytes"],
            mapped_writable_bytes=figures.get("mapped_writable_bytes"),
            mapped_bytes=figures.get("mapped_bytes"),
            swapped_bytes=of_which.swapped_bytes if of_which else 0,
            own_shared_bytes=of_which.own_shared_bytes if of_which else figures.get("own_shared_bytes") or 0,
            mapping_count=audited.mapping_count,
            process_count=len(audited.members) or 1,
            evidence=audited.figures["private_bytes"].evidence.value,
            source=audited.source,
            **placement._asdict(),
            is_searched=audited.is_searched or bool(audited.findings),
        )
    )
    tables["rows"] += _ledger(taken, key, program, audited.ledger)
    tables["owners"] += _owners(taken, key, program, audited.ledger)
    tables["libraries"] += _mapped_libraries(taken, key, program, audited, build_ids)
    tables["findings"] += _findings(taken, key, program, audited.findings, is_process=True)


def _of_file(row: Row) -> Row:
    return row._replace(owner=row.owner.removesuffix(DELETED)) if row.kind in OF_OBJECTS else row


def _ledger(taken: Provenance, key: int, program: str, ledger: Iterable[Row]) -> Iterable[FleetRow]:
    host, day = taken.host, taken.day
    for row in _without_small_symbols(ledger):
        yield FleetRow(
            host,
            day,
            key,
            program,
            row.owner,
            row.kind,
            row.section,
            row.symbol,
            row.name,
            row.bytes,
            row.mapped_bytes,
            row.shared_bytes,
            row.pages,
            row.sole_pages,
            row.is_writable,
            row.evidence,
        )


def _without_small_symbols(ledger: Iterable[Row]) -> Iterable[Row]:
    """Return the rows of a ledger, those of small symbols of one section added up, so that few symbols are rows."""
    ledger, least_bytes = tuple(ledger), _LEAST_SYMBOL_BYTES
    sizes = [row.bytes for row in ledger if row.symbol is not None and row.bytes is not None]
    # Doubled, not cut at a rank: the same symbols of two processes are then rows in both, and can be compared.
    while len(sizes) > _MOST_SYMBOLS and sum(size_bytes >= least_bytes for size_bytes in sizes) > _MOST_SYMBOLS:
        least_bytes *= 2
    small = defaultdict[tuple[object, ...], list[Row]](list)
    for row in ledger:
        if row.symbol is not None and row.bytes is not None and row.bytes < least_bytes:
            small[row.owner, row.kind, row.section, row.is_writable, row.evidence].append(row)
        else:
            yield row
    for rows in small.values():
        yield rows[0]._replace(
            symbol=None,
            name=f"[{len(rows)} of less than {least_bytes} bytes]",
            bytes=sum(row.bytes or 0 for row in rows),
            mapped_bytes=sum(row.mapped_bytes for row in rows),
            shared_bytes=sum(row.shared_bytes or 0 for row in rows),
            pages=None,
            sole_pages=sum(row.sole_pages for row in rows),
        )


def _owners(taken: Provenance, key: int, program: str, ledger: Iterable[Row]) -> Iterable[FleetOwner]:
    private: dict[str, int | None] = {}
    kernel = dict[str, int]()
    for row in ledger:
        bytes_before = private.setdefault(row.owner, None)
        if row.kind is MemoryKind.KERNEL:
            kernel[row.owner] = kernel.get(row.owner, 0) + (row.bytes or 0)
        elif row.bytes is not None:
            private[row.owner] = (bytes_before or 0) + row.bytes
    for owner, private_bytes in private.items():
        yield FleetOwner(taken.host, taken.day, key, program, owner, private_bytes, kernel.get(owner, 0))


def _mapped_libraries(
    taken: Provenance, key: int, program: str, audited: "Audit", build_ids: Mapping[str, str | None]
) -> Iterable[FleetLibrary]:
    """Return the objects of a process, with what their rows add up to."""
    private: dict[str, int] = {}
    mapped: dict[str, int] = {}
    for row in audited.ledger:
        if row.kind in OF_OBJECTS and row.owner.startswith("/"):
            private[row.owner] = private.get(row.owner, 0) + (row.bytes or 0)
            mapped[row.owner] = mapped.get(row.owner, 0) + (0 if row.kind is MemoryKind.KERNEL else row.mapped_bytes)
    costs = {cost.path: cost for cost in audited.objects}
    needed_by = defaultdict[str, list[str]](list)
    for linked in audited.objects:
        for need in linked.needs or ():
            needed_by[need.path].append(linked.path)
    for path in dict.fromkeys((*costs, *private)):
        cost = costs.get(path)
        yield FleetLibrary(
            host=taken.host,
            day=taken.day,
            audit=key,
            is_process=True,
            program=program,
            path=path,
            name=cost.name if cost else path.rsplit("/", 1)[-1],
            build_id=build_ids.get(path),
            private_bytes=private.get(path, cost.own_bytes if cost else 0),
            mapped_bytes=mapped.get(path, 0),
            startup_min_bytes=None,
            startup_max_bytes=None,
            retained_bytes=cost.retained_bytes if cost else None,
            needed_by=tuple(needed_by[path]),
        )


def _findings(
    taken: Provenance,
    key: int,
    program: str,
    findings: Iterable[Finding],
    *,
    is_process: bool,
    file: str | None = None,
) -> Iterable[FleetFinding]:
    for finding in findings:
        yield FleetFinding(
            host=taken.host,
            day=taken.day,
            audit=key,
            is_process=is_process,
            program=program,
            rule=finding.rule,
            kind=finding.kind,
            subject=finding.subject,
            object_path=finding.object_path,
            saving_bytes=finding.saving_bytes,
            private_bytes=finding.private_bytes,
            size_bytes=finding.size_bytes,
            confidence=finding.confidence.value,
            is_counted=finding.is_counted,
            message=finding.message,
            remedy=finding.remedy,
            leaves=finding.leaves,
            file=file,
        )


def add_program(
    tables: Tables,
    taken: Provenance,
    graph: "DependencyGraph",
    *,
    path: str,
    file: str,
    start_bytes: int,
    findings: Sequence[Finding],
    build_id_of: Callable[[int], str | None],
) -> None:
    """Add the rows of a program that was not run.

    Args:
        tables: Where they are added.
        taken: Where and when the program was read.
        graph: Its objects.
        path: Its path, as its processes see it.
        file: Its key in the table of files.
        start_bytes: Stack, thread block and lists of the loader.
        findings: Its findings.
        build_id_of: Returns the build-id of an object, by its number.
    """
    key = taken.key(path)
    predictions = [predicted for predicted in graph.predictions if predicted]
    unused_bytes, doubtful_bytes = graph.spared_bytes(findings)
    tables["programs"].append(
        FleetProgram(
            host=taken.host,
            day=taken.day,
            moment=taken.moment,
            audit=key,
            path=path,
            file=file,
            object_count=len(graph.objects),
            startup_min_bytes=sum(predicted.startup_min_bytes for predicted in predictions),
            startup_max_bytes=sum(predicted.startup_max_bytes for predicted in predictions),
            start_bytes=start_bytes,
            unused_bytes=unused_bytes,
            doubtful_bytes=doubtful_bytes,
            is_complete=not graph.link_map.missing,
        )
    )
    for number, (linked, prediction) in enumerate(zip(graph.objects, graph.predictions, strict=True)):
        tables["libraries"].append(
            FleetLibrary(
                host=taken.host,
                day=taken.day,
                audit=key,
                is_process=False,
                program=path,
                path=linked.path,
                name=graph.name(number),
                build_id=build_id_of(number),
                private_bytes=None,
                mapped_bytes=None,
                startup_min_bytes=prediction.startup_min_bytes if prediction else None,
                startup_max_bytes=prediction.startup_max_bytes if prediction else None,
                retained_bytes=graph.retained_bytes[number],
                needed_by=tuple([graph.objects[user].path for user in graph.needing.get(number, ())]),
                start_us=graph.start_us[number] if graph.has_start_model else None,
            )
        )
    tables["findings"] += _findings(taken, key, path, findings, is_process=False)


def add_file_findings(tables: Tables, taken: Provenance, path: str, file: str, findings: Iterable[Finding]) -> None:
    """Add what was found in the variables of a file alone; `file` is its key in the table of files."""
    tables["findings"] += _findings(taken, taken.key(path, file), path, findings, is_process=False, file=file)


def add_variables(tables: Tables, file: str, contents: "Contents") -> None:
    """Add the variables of a file: each byte of its writable and thread-local sections once."""
    for section in contents.sections:
        tables["variables"] += _variables(file, section)


def _variables(file: str, section: "SectionContents") -> Iterable[FleetVariable]:
    owned: dict[object, int] = {}
    for piece in section.ranges.pieces:
        owned[piece.owner] = owned.get(piece.owner, 0) + piece.end - piece.start
    small_count = small_bytes = residue_bytes = 0
    variables = set(section.variables)
    name = section.section.name
    for owner, size_bytes in owned.items():
        if owner not in variables:
            residue_bytes += size_bytes
        elif size_bytes < _LEAST_VARIABLE_BYTES:
            small_count, small_bytes = small_count + 1, small_bytes + size_bytes
        else:
            symbol = owner.name
            yield FleetVariable(file, name, symbol, symbol, size_bytes, 1, is_writable=True)
    if small_count:
        called = f"[{small_count} of less than {_LEAST_VARIABLE_BYTES} bytes]"
        yield FleetVariable(file, name, None, called, small_bytes, small_count, is_writable=True)
    if residue_bytes:
        yield FleetVariable(file, name, None, "[no symbol]", residue_bytes, 0, is_writable=True)
