"""`footprint.scan`: programs, processes, captures and saved audits of many hosts in one dataset."""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any, Final, TypeVar

from footprint import activity
from footprint.elf import starts_like_elf
from footprint.errors import AccessError, Note, UsageError
from footprint.files import StrPath
from footprint.process.descriptions import read_own_open_files
from footprint.process.processors import usable_processor_count
from footprint.process.stat import processes as live_processes
from footprint.sources.packages import Packages
from footprint.store.audits import AuditSums, digest
from footprint.store.parquet import Known, check_parts, commit_part, known_inputs, own_place, remove_halves, write_part
from footprint.store.tables import FleetInput, FleetNote
from footprint.verbs.scan.inputs import Candidate, Lister, ScanPlace, file_state, utc
from footprint.verbs.scan.runners import Runner, cluster_runner, local_runner
from footprint.verbs.scan.tasks import Identity, Item, PartDone, Settings, Task
from footprint.verbs.scan.work import identify, run_shard

__all__ = ("Scanned", "scan")

_BATCH: Final = 2048
_IDENTIFIED_AT_ONCE: Final = 256
_OF_ELF: Final = 200
_OF_RECORDS: Final = 200
_OF_PROCESSES: Final = 16
_MOST_NOTES: Final = 50
_STAGE: Final = ".scan-"

_Each = TypeVar("_Each")


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan added to a dataset.

    Attributes:
        folder: The dataset.
        input_count: The number of inputs that were read.
        known_count: The number of inputs that were in it already.
        process_count: The number of processes, at all their moments.
        program_count: The number of programs.
        file_count: The number of ELF files that no earlier input had.
        row_count: The number of rows of ledgers.
        unreadable_count: The number of inputs of which nothing could be read.
        note_count: The number of notes from this scan.
        notes: The first of them.
    """

    folder: str
    input_count: int = 0
    known_count: int = 0
    process_count: int = 0
    program_count: int = 0
    file_count: int = 0
    row_count: int = 0
    unreadable_count: int = 0
    note_count: int = 0
    notes: tuple[Note, ...] = ()

    def plus(self, done: PartDone) -> "Scanned":
        """Return it with a part more."""
        return replace(
            self,
            input_count=self.input_count + done.input_count,
            process_count=self.process_count + done.process_count,
            program_count=self.program_count + done.program_count,
            file_count=self.file_count + done.file_count,
            row_count=self.row_count + done.row_count,
            unreadable_count=self.unreadable_count + done.unreadable_count,
            note_count=self.note_count + done.note_count,
            notes=(*self.notes, *done.notes)[:_MOST_NOTES],
        )


def scan(  # noqa: PLR0913 # all but the sources are named
    *sources: StrPath,
    output: StrPath,
    processes: bool = False,
    root: StrPath | None = None,
    host: str | None = None,
    command_lines: bool = False,
    anonymous: bool = False,
    scheduler: str | None = None,
    worker_count: int | None = None,
    moment: datetime | None = None,
) -> Scanned:
    """Add programs, processes, captures, texts, saved audits and series to a dataset of a fleet.

    What is in it already, and did not change, is not read again. A scan that was interrupted goes on where it stopped.

    Args:
        sources: Folders of programs or of captures, root file systems, container images, and single files.
        output: The folder of the dataset; it is made if it does not exist.
        processes: Whether all processes of this machine are inputs, too, with their programs.
        root: The folder that programs take for `/`; that has the files of captures.
        host: The name of the host that all inputs are from; None where the sources tell.
        command_lines: Whether the command lines of processes are kept.
        anonymous: Whether digests take the place of the names of hosts.
        scheduler: The scheduler of a Dask cluster that does the work; None for this machine.
        worker_count: How many processes do the work; None for one a processor.
        moment: The time of the scan in UTC, without a zone; None for now.

    Raises:
        AccessError: If a source does not exist, the dataset cannot be written, or nobody answers as scheduler.
        InputError: If the dataset is damaged or of another version, its path would be read as columns or a pattern, or
            what was written does not add up to its audits.
        UsageError: If nothing is named, or DuckDB or Dask is not installed.
    """
    if not sources and not processes:
        raise UsageError("name a folder, an image, or a file; or --processes for all processes of this machine")
    folder = os.fspath(output)
    own_place(folder)
    now = utc(_now()) if moment is None else moment
    lister = Lister(now, host=host, root=None if root is None else os.fspath(root), is_anonymous=anonymous)
    with _locked(folder):
        remove_halves(folder)
        for name in os.listdir(folder):
            if name.startswith(_STAGE):
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        name = digest(os.urandom(8).hex())[:12]
        stage = os.path.join(os.path.abspath(folder), f"{_STAGE}{name}")
        settings = Settings(name, stage, now, command_lines)
        runner = local_runner(worker_count or usable_processor_count())
        plan = _Plan(lister, settings, known_inputs(folder))
        found, parts = Scanned(folder), []

        def keep(some: Iterable[PartDone]) -> None:
            nonlocal found
            for done in some:
                parts.append(commit_part(stage, folder, done.part))
                plan.see(done)
                found = found.plus(done)
            activity.begin(f"scans; {found.input_count:,} inputs are done")

        try:
            with runner as run_here, cluster_runner(scheduler) if scheduler else nullcontext(run_here) as run:
                for done in run_here(run_shard, plan.live_shards() if processes else ()):
                    keep(done)
                for done in run(
                    run_shard, plan.shards([*plan.live_programs, *[os.fspath(one) for one in sources]], run)
                ):
                    keep(done)
                for done in run(run_shard, plan.mapped_shards(run)):
                    keep(done)
            found = _with_notes(found, plan)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        check_parts(folder, parts)
    return replace(found, known_count=plan.known_count)


def _now() -> float:
    import time  # noqa: PLC0415 # the name is that of an argument in other modules

    return time.time()


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Make the dataset if it is not there, and keep other scans out of it.

    Raises:
        AccessError: If it cannot be written, or another scan is at work.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(os.path.join(folder, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise AccessError(folder, error.strerror or str(error)) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise AccessError(folder, "another scan writes to it") from None
    try:
        yield
    finally:
        os.close(descriptor)


def _with_notes(found: Scanned, plan: "_Plan") -> Scanned:
    """Write the notes of the list of inputs that the dataset does not have as a part of its own."""
    notes = tuple([one for _, one in plan.notes])
    found = replace(found, note_count=found.note_count + len(notes), notes=(*found.notes, *notes)[:_MOST_NOTES])
    new = plan.new_notes()
    if not new:
        return found
    day = plan.settings.moment.date()
    part, moment = f"{plan.settings.scan}-notes", plan.settings.moment
    rows: dict[str, list[tuple[Any, ...]]] = {
        "notes": [FleetNote(host, day, one.subject, *one) for host, one in new],
        "inputs": [
            FleetInput(host, day, moment, one.subject, "other", digest(*one), "", part, (), *AuditSums(), 1)
            for host, one in new
        ],
    }
    write_part(os.path.join(plan.settings.folder, part), part, rows)
    commit_part(plan.settings.folder, found.folder, part)
    return found


class _Plan:
    """Turns the inputs that the dataset does not have into shards.

    Args:
        lister: Lists the inputs.
        settings: What holds for the whole scan.
        known: What the dataset has.

    Attributes:
        known_count: The number of inputs that the dataset has already.
        live_programs: The programs of the live processes.
    """

    def __init__(self, lister: Lister, settings: Settings, known: Known) -> None:
        self.settings = settings
        self.known_count = 0
        self.live_programs: list[str] = []
        self._lister = lister
        self._known = known
        self._part_count = 0
        self._mapped: dict[str, tuple[ScanPlace, str]] = {}
        self._copies: dict[str, Candidate] = {}
        self._state = cache(file_state)
        self._packages = cache(Packages)

    @property
    def notes(self) -> list[tuple[str, Note]]:
        """What could not be listed, with the host."""
        return self._lister.notes

    def new_notes(self) -> list[tuple[str, Note]]:
        """Return those of them that the dataset does not have."""
        return [(host, one) for host, one in self.notes if self._known.add_record(host, digest(*one))]

    def _shard(self, items: Sequence[Item]) -> Task[Item]:
        self._part_count += 1
        return Task(self.settings, f"{self.settings.scan}-{self._part_count:06}", tuple(items))

    def live_shards(self) -> Iterator[Task[Item]]:
        """Yield shards of all processes of this machine, and note their programs."""
        moment, place = self.settings.moment, self._lister.this_host
        pids = [pid for pid in live_processes() if pid != os.getpid()]
        open_files = read_own_open_files(pids)
        items, programs = [], dict[str, None]()
        for pid in pids:
            try:
                program = os.readlink(f"/proc/{pid}/exe")
                is_ours = os.path.samefile(f"/proc/{pid}/root", "/")
            except OSError:  # a kernel thread, or it has ended, or it is another user's
                continue
            if is_ours and os.path.isfile(program):
                programs[program] = None
            candidate = Candidate(place, "", f"pid {pid}", "", moment, is_elf=False, is_executable=False)
            identity = Identity("process", digest(place.host, moment, pid))
            items.append(Item(candidate, identity, pid=pid, open_files=open_files.get(pid, ())))
        self.live_programs = list(programs)
        for some in _groups(items, _OF_PROCESSES):
            yield self._shard(some)

    def shards(self, sources: Sequence[str], run: Runner) -> Iterator[Task[Item]]:
        """Yield shards of what the dataset does not have."""
        candidates = self._lister.list(sources)
        while batch := list(islice(candidates, _BATCH)):
            new = [one for one in batch if not self._is_known(one) and _may_be_input(one)]
            found = self._identities(new, run)
            items = [item for one, identities in zip(new, found, strict=True) for item in self._items(one, identities)]
            for is_elf, size in ((True, _OF_ELF), (False, _OF_RECORDS)):
                for some in _groups([one for one in items if one.candidate.is_elf is is_elf], size):
                    yield self._shard(some)

    def see(self, done: PartDone) -> None:
        """Remember the files that the inputs of a part map, and forget those that could not be read."""
        for key in done.unread_files:
            self._known.forget_file(key)
        for key, (place, path) in done.mapped.items():
            if not self._known.has_file(key):
                self._mapped.setdefault(key, (place, path))

    def mapped_shards(self, run: Runner) -> Iterator[Task[Item]]:
        """Yield shards of the files that inputs map, and that were no inputs, and of copies of unread ones."""
        waiting = {key: self._lister.mapped(*where) for key, where in self._mapped.items()} | self._copies
        found = {key: one for key, one in waiting.items() if one is not None and not self._known.has_file(key)}
        self._mapped = {}
        candidates = list(found.values())
        items: list[Item] = []
        for key, one, (identity,) in zip(found, candidates, self._identities(candidates, run), strict=True):
            if identity.key == key:  # not another build at this path
                items += self._items(one, [identity._replace(kind="file")])
        for some in _groups(items, _OF_ELF):
            yield self._shard(some)

    def _identities(self, candidates: Sequence[Candidate], run: Runner) -> list[tuple[Identity, ...]]:
        groups = enumerate(_groups(candidates, _IDENTIFIED_AT_ONCE))
        tasks = [Task(self.settings, f"{number:06}", tuple(some)) for number, some in groups]
        return [each for _, found in sorted(run(identify, tasks)) for each in found]

    def _is_known(self, one: Candidate) -> bool:
        """Return whether the dataset has an input as it is now."""
        found = self._known.state_of(one.place.host, one.input, one.state)
        if found is None:
            return False
        depends_on, identity = found
        root = one.place.root or ""
        is_same = not depends_on or digest(*(self._state(f"{root}{path}") for path in depends_on)) == identity
        self.known_count += is_same
        return is_same

    def _items(self, one: Candidate, identities: Iterable[Identity]) -> Iterator[Item]:
        for identity in identities:
            if identity.kind == "other":
                continue
            if one.is_elf:
                is_new = self._known.add_file(identity.key)
                if not is_new and one.state:
                    # It is an input already: a row without a state is that of the file alone.
                    self._copies.setdefault(identity.key, one._replace(state=""))
                package = self._packages(one.place.root or "").of(one.path) if is_new else None
                yield Item(one, identity, is_new, package)
            elif self._known.add_record(one.place.host, identity.key):
                yield Item(one, identity)
            else:
                self.known_count += 1


def _may_be_input(one: Candidate) -> bool:
    """Return whether a new candidate is no script: workers need not start for these."""
    if not one.is_elf or one.place.image is not None:
        return True
    try:
        with open(one.opened, "rb", buffering=0) as file:
            return starts_like_elf(file.read(4))
    except OSError:  # a note when it is read
        return True


def _groups(some: Sequence[_Each], size: int) -> Iterator[Sequence[_Each]]:
    for start in range(0, len(some), size):
        yield some[start : start + size]
