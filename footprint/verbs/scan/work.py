"""What the workers of a scan do: identify candidates, and write the rows of a shard of inputs as one part."""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from footprint.attribution.start_memory import start_memory
from footprint.elf.abi import DF_1_PIE, ET_EXEC
from footprint.elf.contents import SectionKind, read_contents
from footprint.elf.dynamic import Linkage, read_linkage
from footprint.elf.image import Image, read_image, starts_like_elf
from footprint.elf.notes import build_id
from footprint.errors import AccessError, FootprintError, InputError, Note, UnsupportedError
from footprint.findings.registry import Fact, find_all
from footprint.formats.saved_audit import read_saved
from footprint.model.audit import Audit, program_name, program_path
from footprint.model.finding import Confidence, Finding, SearchedRule
from footprint.model.projection import Question
from footprint.process.capture import read_findings_of_capture, read_host_of_capture
from footprint.process.mappings import open_regular
from footprint.process.origin import CaptureHost, Placement, read_placement
from footprint.process.snapshot import (
    TEXT_CAPTURE_START,
    Snapshot,
    looks_like_capture,
    looks_like_memory_text,
    read_process,
    read_texts,
)
from footprint.process.text_capture import host_of_text
from footprint.series import looks_like_series
from footprint.series.file import read_series
from footprint.series.timeline import Timeline
from footprint.sources.calibration import load_constants
from footprint.sources.files import ElfFiles
from footprint.sources.image_tree import RootTree
from footprint.sources.process_files import images_of
from footprint.sources.programs import Programs, missing_notes
from footprint.sources.target import AuditFile, Capture, SingleTarget, Text, resolve
from footprint.store.audits import (
    AuditSums,
    Provenance,
    Tables,
    add_audited,
    add_file_findings,
    add_program,
    add_variables,
    digest,
    sums_of,
)
from footprint.store.parquet import write_part
from footprint.store.tables import TABLES, FleetFile, FleetHost, FleetInput, FleetNote
from footprint.system.decompression import pieces_of
from footprint.system.files import open_input, text_of
from footprint.system.limits import limited
from footprint.system.roots import enter_root, leave_tree
from footprint.text.command_line import command_lines
from footprint.verbs.audit.process import audit_of
from footprint.verbs.duplicates.call import variables_in
from footprint.verbs.scan.inputs import Candidate, ScanPlace, file_state, moment_of, trees_in, utc, with_addresses
from footprint.verbs.scan.tasks import Identity, Item, PartDone, Settings, Task

_ALONE: Final = Question()
_ALONE_DETAIL: Final = "libraries of other packages are not in what its programs cost: an image has all of them"
_OF_CAPTURE: Final = (SearchedRule("unused-library"),)
"""What says that a process was searched when it was captured."""
_PAST_FIGURES: Final = 1 << 50
"""No process has a PiB; of larger claims, few would be a sum that no answer of the fleet can have."""
_HEAD_BYTES: Final = 1024
# A capture may have one process or thousands: a part ends with the input that fills it, so that memory has a bound.
_ROWS_OF_PART: Final = 1 << 16
_TEXT_HEAD_BYTES: Final = 1 << 16
# The search of the loader reads them, beside the files that it finds.
_OF_LOADER: Final = ("/etc/ld.so.cache", "/etc/ld.so.preload")


# --- identification ---------------------------------------------------------------------------------------------------


def identify(task: Task[Candidate]) -> tuple[str, list[tuple[Identity, ...]]]:
    """Find out what candidates are: of programs and libraries by their headers. A series is several inputs.

    Returns:
        The name of the task, and what each candidate is.
    """
    identities: list[tuple[Identity, ...]] = []
    for item in task.items:
        try:
            _check_safe(item, is_deadly=task.is_deadly)
            with _inside(task.settings, item.place), limited():
                identities.append((_elf_identity(item),) if item.is_elf else _record_identities(item))
        except FootprintError as error:
            # What is damaged becomes a note when it is read.
            kind = "file" if item.is_elf else "record"
            identities.append((Identity(kind, digest(item.input, item.state, error.detail)),))
    return task.name, identities


def _check_safe(candidate: Candidate, *, is_deadly: bool) -> None:
    if is_deadly:
        raise InputError(candidate.opened, "each worker that reads it is killed, perhaps for want of memory")


def _check_unchanged(candidate: Candidate) -> None:
    is_file = candidate.place.image is None and candidate.state != ""
    if is_file and file_state(candidate.opened) != candidate.state:
        raise InputError(candidate.opened, "it was changed while the scan ran: the next scan reads it")


def _elf_identity(candidate: Candidate) -> Identity:
    data = open_regular(candidate.opened, None)
    if isinstance(data, str):
        raise AccessError(candidate.path, data)
    if not starts_like_elf(data[:4]):
        return Identity("other", "")
    image = read_image(data, candidate.opened, with_sections=False)
    linkage = read_linkage(image)
    key = build_id(image) or f"blake2b:{blake2b(data, digest_size=16).hexdigest()}"
    is_program = candidate.is_executable and _can_be_run(image, linkage)
    return Identity("program" if is_program else "file", key, linkage.soname or "")


def _can_be_run(image: Image, linkage: Linkage) -> bool:
    return image.type == ET_EXEC or linkage.interpreter is not None or bool(linkage.flags_1 & DF_1_PIE)


def _record_identities(candidate: Candidate) -> tuple[Identity, ...]:
    data = open_input(candidate.path)
    if looks_like_series(bytes(data[:_HEAD_BYTES])):
        taken = Timeline.of(read_series(data, candidate.path), candidate.path).taken
        return tuple([Identity("series", digest(entry.packed)) for entry in taken])
    host = _capture_host(data, candidate.path)
    day = (moment_of(host) or candidate.moment).date()  # an idle process has the same text each day
    return (Identity("record", digest(blake2b(data, digest_size=16).hexdigest(), day), host=host),)


def _capture_host(data: bytes | memoryview, path: str) -> CaptureHost:
    head = next(pieces_of(data, path), b"")[:_HEAD_BYTES]
    if head.startswith(TEXT_CAPTURE_START):
        return host_of_text(head.partition(b"\n\n")[0])
    return read_host_of_capture(data, path) if looks_like_capture(head) else CaptureHost()


# --- what is kept between shards --------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _programs(_scan: str, root: str | None, _thread: int) -> Programs:
    return Programs(root)


@lru_cache(maxsize=4)
def _files(_scan: str, root: str | None, _thread: int) -> ElfFiles:
    return ElfFiles(None, root)


@lru_cache(maxsize=2)
def _images(_scan: str, path: str, _thread: int) -> list[RootTree]:
    return list(trees_in(path, []))


@contextmanager
def _inside(settings: Settings, place: ScanPlace) -> Iterator[None]:
    """Follow paths in the root of a place; that of an image is not there before its layers were read."""
    if place.image is not None:
        for image in _images(settings.scan, place.image, threading.get_ident()):
            enter_root(image.root, image.tree)
    elif place.root:
        enter_root(place.root)
    try:
        yield
    finally:
        if place.package is not None and place.root:
            leave_tree(place.root)


# --- a shard ----------------------------------------------------------------------------------------------------------


def run_shard(shard: Task[Item]) -> list[PartDone]:
    """Read the inputs of a shard, and write their rows as parts, which do not belong to the dataset yet.

    Raises:
        AccessError: If a part cannot be written.
    """
    done: list[PartDone] = []
    first = 0
    with command_lines(is_hidden=not shard.settings.has_commands):
        while first < len(shard.items):
            name = f"{shard.name}-{len(done)}" if done else shard.name
            work = _Work(shard._replace(name=name))
            last = first
            while last < len(shard.items) and len(work.tables["rows"]) < _ROWS_OF_PART:
                work.read(shard.items[last])
                last += 1
            done.append(_write(work, name, shard.settings, last - first))
            first = last
    return done


def _write(work: "_Work", name: str, settings: Settings, input_count: int) -> PartDone:
    work.add_hosts()
    write_part(os.path.join(settings.folder, name), name, work.tables)
    tables = work.tables
    notes = [Note(slug, subject, detail) for *_, slug, subject, detail in tables["notes"]]
    return PartDone(
        name,
        input_count,
        sum(row[-3] for row in tables["processes"]),
        len(tables["programs"]),
        len(tables["files"]),
        len(tables["rows"]),
        tuple(dict.fromkeys(notes))[:10],  # many hosts have the same, as about a library that is nowhere at hand
        len(notes),
        work.unreadable_count,
        work.mapped,
        tuple(work.unread_files),
    )


class _Audited(NamedTuple):
    """An audit of an input, with the build-ids of its files by path."""

    moment: datetime
    audit: Audit
    program: str
    build_ids: dict[str, str | None]
    placement: Placement = Placement()


class _Work:
    """The rows of a shard."""

    def __init__(self, shard: Task[Item]) -> None:
        self.tables = Tables(list)
        self.mapped: dict[str, tuple[ScanPlace, str]] = {}
        self.unread_files: list[str] = []
        self.unreadable_count = 0
        self._shard = shard
        self._notes: dict[tuple[str, Note], None] = {}
        self._hosts: dict[ScanPlace, tuple[datetime, dict[str, str]]] = {}

    def read(self, item: Item) -> None:
        """Add the rows of an input; one that cannot be read is a note."""
        candidate = item.candidate
        taken = Provenance(candidate.place.host, candidate.moment, candidate.input, item.identity.key)
        before = {name: len(rows) for name, rows in self.tables.items()}
        known_count = len(self._notes)
        sums, depends_on, identity = AuditSums(), list[str](), item.identity.key
        try:
            _check_safe(candidate, is_deadly=self._shard.is_deadly)
            with _inside(self._shard.settings, candidate.place), limited():
                if candidate.is_elf:
                    depends_on, identity = self._read_elf(item, taken)
                else:
                    sums = self._read_record(item, taken)
            new_rows = ((name, rows[before.get(name, 0) :]) for name, rows in self.tables.items())
            _check_figures(candidate, sums, new_rows)
            _check_unchanged(candidate)
        except Exception as error:  # noqa: BLE001 # no input may stop the scan of all others
            for name, rows in self.tables.items():
                del rows[before.get(name, 0) :]
            sums, depends_on, identity = AuditSums(), [], item.identity.key
            self.unreadable_count += 1
            if item.has_new_file:
                self.unread_files.append(item.identity.key)
            detail = error.detail if isinstance(error, FootprintError) else f"{type(error).__name__}: {error}"
            note = Note("input-unreadable", candidate.opened, detail)
            if item.pid is not None:
                note = Note("process-not-read", candidate.input, f"{detail}; it is left out")
            self._note(candidate, [note])
        if candidate.place.image is None:  # all files of an image are inputs
            libraries: list[Any] = self.tables["libraries"][before.get("libraries", 0) :]
            for library in libraries:
                if library.build_id:
                    self.mapped.setdefault(library.build_id, (candidate.place, library.path))
        self.tables["inputs"].append(
            FleetInput(
                host=taken.host,
                day=taken.day,
                moment=taken.moment,
                input=taken.input,
                kind=item.identity.kind,
                identity=identity,
                state=candidate.state,
                part=self._shard.name,
                depends_on=tuple(depends_on),
                **sums._asdict(),
                note_count=len(self._notes) - known_count,
            )
        )

    def _note(self, candidate: Candidate, notes: Iterable[Note]) -> None:
        host, day = candidate.place.host, self._shard.settings.moment.date()
        for note in notes:
            shown = note
            if candidate.opened not in {"", candidate.input}:
                shown = Note(*(text.replace(candidate.opened, candidate.input) for text in note))
            shown = Note(*(with_addresses(text, self._shard.settings.copies) for text in shown))
            if (host, shown) not in self._notes:
                self._notes[host, shown] = None
                self.tables["notes"].append(FleetNote(host, day, candidate.input, *shown))

    def add_hosts(self) -> None:
        """Add a row for each host."""
        for place, (moment, system) in self._hosts.items():
            self.tables["hosts"].append(
                FleetHost(
                    host=place.host,
                    day=moment.date(),
                    moment=moment,
                    kind=place.kind,
                    kernel=system.get("kernel"),
                    machine=system.get("machine"),
                    processor_count=place.processor_count,
                    memory_bytes=place.memory_bytes,
                    available_bytes=place.available_bytes,
                )
            )

    def _see(self, candidate: Candidate, moment: datetime, system: dict[str, str]) -> None:
        last, facts = self._hosts.get(candidate.place, (moment, {}))
        self._hosts[candidate.place] = max(moment, last), {**facts, **system}

    # Programs and libraries

    def _read_elf(self, item: Item, taken: Provenance) -> tuple[list[str], str]:
        candidate, identity = item.candidate, item.identity
        if item.has_new_file:
            self._add_file(item, taken)
        self._see(candidate, candidate.moment, {})
        if identity.kind != "program":
            return [], identity.key
        root, settings = candidate.place.root, self._shard.settings
        graph = _programs(settings.scan, root, threading.get_ident()).graph(candidate.path)
        depends_on = [o.library.real_path for o in graph.objects[1:]]  # the state of the first is in the input
        state = "" if candidate.place.image else digest(*(file_state(path) for path in depends_on))
        findings = find_all({Fact.GRAPH: graph})
        add_program(
            self.tables,
            taken._replace(identity=digest(identity.key, state)),
            graph,
            path=candidate.path,
            file=identity.key,
            start_bytes=sum(start_memory(graph)),
            findings=findings,
            build_id_of=lambda number: build_id(graph.objects[number].library.image),
        )
        if candidate.place.package is None:
            self._note(candidate, (*missing_notes(graph), *graph.start_failures))
        elif graph.link_map.missing:
            self._note(candidate, (Note("package-alone", candidate.place.package[0], _ALONE_DETAIL),))
        if candidate.place.image:
            return [], identity.key
        # Without the root, whose name is that of a host.
        depended = [*(path.removeprefix(root or "") for path in depends_on), *_OF_LOADER]
        return depended, digest(*(file_state(f"{root or ''}{path}") for path in depended))

    def _add_file(self, item: Item, taken: Provenance) -> None:
        candidate, identity = item.candidate, item.identity
        data = open_regular(candidate.opened, None)
        if isinstance(data, str):
            raise AccessError(candidate.path, data)
        image = read_image(data, candidate.opened)
        contents = read_contents(image)
        sizes = dict.fromkeys(SectionKind, 0)
        for section in contents.sections:
            sizes[section.kind] += section.size_bytes
        read_only = [s for s in image.sections if s.is_in_memory and not s.is_writable and not s.is_tls]
        package, version = item.package or (None, None)
        self.tables["files"].append(
            FleetFile(
                file=identity.key,
                path=candidate.path,
                name=identity.name or candidate.path.rsplit("/", 1)[-1],
                is_program=candidate.is_executable and _can_be_run(image, read_linkage(image)),
                machine=image.machine,
                size_bytes=len(data),
                text_bytes=sum(s.size_bytes for s in read_only),
                data_bytes=sizes[SectionKind.DATA],
                relro_bytes=sizes[SectionKind.RELRO],
                bss_bytes=sizes[SectionKind.BSS],
                tls_bytes=sizes[SectionKind.TLS],
                package=package,
                package_version=version,
                day=self._shard.settings.moment.date(),
            )
        )
        add_variables(self.tables, identity.key, contents)
        files = _files(self._shard.settings.scan, candidate.place.root, threading.get_ident())
        variables = variables_in(image, None, files.opened)
        findings = find_all({Fact.VARIABLES: variables}) if variables else ()
        sure = [finding for finding in findings if finding.confidence is not Confidence.LOW]
        add_file_findings(self.tables, taken, candidate.path, identity.key, sure)

    # Processes

    def _read_record(self, item: Item, taken: Provenance) -> AuditSums:
        audits = []
        row_count = len(self.tables["rows"])
        for number, (moment, audited, program, build_ids, placement) in enumerate(self._audits(item)):
            audits.append(audited)
            add_audited(
                self.tables,
                taken._replace(moment=moment),
                audited,
                number=number,
                program=program,
                build_ids=build_ids,
                has_command=self._shard.settings.has_commands,
                placement=placement,
            )
            self._note(item.candidate, audited.notes)
            self._see(item.candidate, moment, audited.host)
        return sums_of(audits, len(self.tables["rows"]) - row_count)

    def _audits(self, item: Item) -> Iterator[_Audited]:
        """Yield the audits of an input, with their moments, programs and the build-ids of their files."""
        candidate = item.candidate
        if item.pid is not None:
            live = read_process(item.pid)._replace(
                open_files=item.open_files, keepers=item.keepers, placement=read_placement(item.pid)
            )
            yield self._of_snapshot(candidate.moment, live, None)
            return
        data = open_input(candidate.path)
        if looks_like_series(bytes(data[:_HEAD_BYTES])):
            yield from _of_series(data, candidate, item.identity.key)
            return
        target = resolve(candidate.path)
        if isinstance(target, AuditFile):
            audit = read_saved(target).audit
            if audit.source == "prediction":
                raise UnsupportedError(
                    candidate.path, "it is what a program may cost, and no process: scan the program"
                )
            yield _Audited(candidate.moment, audit, _program_of(audit), {})
            return
        findings = self._findings_in(data, candidate) if bytes(data[:2]) == b"PK" else {}
        for snapshot in _snapshots(target):
            audited = self._of_snapshot(candidate.moment, snapshot, candidate.place.root)
            if (of_process := findings.get(snapshot.process_id or 0)) is not None:
                audit = replace(audited.audit, findings=of_process, searched_rules=_OF_CAPTURE)
                audited = audited._replace(audit=audit)
            yield audited

    def _findings_in(self, data: bytes | memoryview, candidate: Candidate) -> dict[int, tuple[Finding, ...]]:
        """Return the findings of a capture by process; those that cannot be read are a note, and no loss of it."""
        try:
            return dict(read_findings_of_capture(data, candidate.path))
        except InputError as error:
            detail = f"{error.detail}: its processes are read without findings"
            self._note(candidate, [Note("process-not-searched", candidate.opened, detail)])
            return {}

    def _of_snapshot(self, moment: datetime, snapshot: Snapshot, root: str | None) -> _Audited:
        files = _files(self._shard.settings.scan, root, threading.get_ident())
        host = snapshot.host
        audited = audit_of(
            snapshot,
            str(snapshot.process_id),
            _ALONE,
            root=root,
            files=files,
            constants=load_constants(host.get("kernel", ""), host.get("machine", ""), snapshot.page_bytes),
        )
        build_ids = {name: facts.build_id for (_, _, name), facts in snapshot.files.items()}
        if snapshot.is_live:
            images, _ = images_of(snapshot, root, files.opened, files.images)
            build_ids = {key.name: files.build_id_of(image) for key, image in images.items()}
        program, placement = _program_in(snapshot) or program_name(audited), snapshot.placement or Placement()
        return _Audited(moment, audited, program, build_ids, placement)


def _check_figures(candidate: Candidate, sums: AuditSums, tables: Iterable[tuple[str, list[tuple[Any, ...]]]]) -> None:
    """Refuse what a table cannot have: the rows of all other inputs of the part would be lost with it."""
    columns: list[tuple[int | None, ...]] = [sums]
    for name, rows in tables:
        pairs = zip(TABLES[name].columns, zip(*rows, strict=True), strict=False)  # without rows there are no cells
        columns += [cells for column, cells in pairs if column.sql_type == "BIGINT" and column.name != "audit"]
    for figures in [[*filter(None, cells)] for cells in columns]:
        if figures and not -_PAST_FIGURES < min(figures) <= max(figures) < _PAST_FIGURES:
            raise InputError(candidate.opened, "a size or count in it has more than 50 bits")


def _of_series(data: bytes | memoryview, candidate: Candidate, key: str) -> Iterator[_Audited]:
    timeline = Timeline.of(read_series(data, candidate.path), candidate.path)
    entry = next(kept for kept in timeline.taken if digest(kept.packed) == key)
    audit = read_saved(AuditFile(candidate.path, entry.answer(candidate.path))).audit
    yield _Audited(utc(timeline.began.time + entry.ms / 1000), audit, _program_of(audit), {})


def _snapshots(target: SingleTarget) -> tuple[Snapshot, ...]:
    """Return the processes of a capture or a text that have mappings."""
    snapshots: tuple[Snapshot, ...] = ()
    if isinstance(target, Capture):
        snapshots = target.snapshots
    elif isinstance(target, Text):
        if not looks_like_memory_text(bytes(target.data[:_TEXT_HEAD_BYTES])):
            raise InputError(target.name, "it is no capture, saved audit or series, and no text of smaps or pmap")
        snapshots = read_texts(text_of(target.data, target.name), target.name)
    filled = tuple([snapshot for snapshot in snapshots if snapshot.memory.mappings])
    if not filled:
        raise InputError(target.name, "no mapping in it")
    return filled


def _program_of(audit: Audit) -> str:
    return program_path(audit) or program_name(audit)


def _program_in(snapshot: Snapshot) -> str | None:
    """Return the program of a process: the file with code at the lowest address, without the loader."""
    for m in snapshot.memory.mappings:
        if m.permissions[2] == "x" and m.name.startswith("/") and not m.name.rsplit("/", 1)[-1].startswith("ld-"):
            return m.name
    return None
