"""`footprint.scan`: programs, processes, captures and saved audits of many hosts in one dataset."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any, Final, TypeVar

from footprint.elf.image import starts_like_elf
from footprint.errors import AccessError, Note, UsageError
from footprint.process.descriptions import read_own_open_files
from footprint.process.mappings import open_regular
from footprint.process.memory_files import read_all_keepers
from footprint.process.status import processes as live_processes
from footprint.process.two_processors import usable_processor_count
from footprint.store.audits import AuditSums, digest
from footprint.store.parquet import (
    DatasetInputs,
    check_parts,
    commit_part,
    known_inputs,
    locked_dataset,
    own_place,
    remove_damaged,
    remove_halves,
    write_part,
)
from footprint.store.remote import fetch, is_store, local_folder, locked_store, upload
from footprint.store.tables import FleetInput, FleetNote
from footprint.system.files import StrPath
from footprint.system.limits import begin_activity
from footprint.system.roots import folder_names
from footprint.system.whole_file import own_folder
from footprint.text.units import counted
from footprint.verbs.scan.cluster import Places, cluster_runner, executor_runner
from footprint.verbs.scan.inputs import Candidate, Lister, ScanPlace, file_state, utc
from footprint.verbs.scan.runners import Runner, local_runner
from footprint.verbs.scan.tasks import Identity, Item, PartDone, Settings, Task
from footprint.verbs.scan.work import identify, run_shard

_MOST_DATABASE_BYTES: Final = 256 << 20
_INSTALLED: Final = re.compile(r"^Status: .* installed$", re.MULTILINE)
_FIELD: Final = {name: re.compile(rf"^{name}: (.+)$", re.MULTILINE) for name in ("Package", "Version", "Architecture")}
_DPKG: Final = "/var/lib/dpkg"
_APK: Final = "/lib/apk/db/installed"


class Packages:
    """The packages of one root file system.

    Args:
        root: The root; "" for that of this machine.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._by_path = self._dpkg() or self._apk()

    def of(self, path: str) -> tuple[str, str] | None:
        """Return the package of a file and its version; None where no package has it."""
        # /bin, /lib and /sbin may be links into /usr, and a package may name either.
        return self._by_path.get(path) or self._by_path.get(path.removeprefix("/usr"))

    def _text(self, path: str) -> str:
        data = open_regular(f"{self._root}{path}", None)
        return "" if isinstance(data, str) else bytes(data[:_MOST_DATABASE_BYTES]).decode("utf-8", "surrogateescape")

    def _dpkg(self) -> dict[str, tuple[str, str]]:
        versions: dict[str, tuple[str, str]] = {}
        for block in self._text(f"{_DPKG}/status").split("\n\n"):
            name, version, architecture = (
                match and match[1] for match in (field.search(block) for field in _FIELD.values())
            )
            if name and version and _INSTALLED.search(block):
                versions[name] = versions[f"{name}:{architecture}"] = name, version
        package_of_file: dict[str, tuple[str, str]] = {}
        try:
            lists = folder_names(f"{self._root}{_DPKG}/info") if versions else []
        except OSError:
            lists = []
        for list_name in lists:
            package = versions.get(list_name.removesuffix(".list")) if list_name.endswith(".list") else None
            if package:
                package_of_file.update(dict.fromkeys(self._text(f"{_DPKG}/info/{list_name}").split("\n"), package))
        return package_of_file

    def _apk(self) -> dict[str, tuple[str, str]]:
        package_of_file: dict[str, tuple[str, str]] = {}
        for block in self._text(_APK).split("\n\n"):
            name = version = folder = ""
            for line in block.split("\n"):
                key, value = line[:2], line[2:]
                if key == "P:":
                    name = value
                elif key == "V:":
                    version = value
                elif key == "F:":
                    folder = value
                elif key == "R:":
                    package_of_file[f"/{folder}/{value}"] = name, version
        return package_of_file


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
        notes: The first of them, those that are the same once.
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

    @property
    def is_nothing_read(self) -> bool:
        """Whether no input could be read, and the dataset had none of them."""
        is_any_refused = self.unreadable_count > 0 or any(note.slug == "input-unreadable" for note in self.notes)
        return is_any_refused and self.known_count == 0 and self.input_count <= self.unreadable_count

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
            notes=tuple(dict.fromkeys((*self.notes, *done.notes)))[:_MOST_NOTES],
        )


def scan(  # noqa: PLR0913 # keyword-only
    *sources: StrPath,
    output: StrPath,
    processes: bool = False,
    root: StrPath | None = None,
    host: str | None = None,
    command_lines: bool = False,
    anonymous: bool = False,
    scheduler: str | None = None,
    executor: Executor | None = None,
    worker_count: int | None = None,
    moment: datetime | None = None,
) -> Scanned:
    """Add programs, processes, captures, texts, saved audits and series to a dataset of a fleet.

    What is in it already, and did not change, is not read again. A scan that was interrupted goes on where it stopped.

    Args:
        sources: Folders of programs, captures or packages, root file systems, container images, and single files.
        output: The folder of the dataset; it is made if it does not exist.
        processes: Whether all processes of this machine are inputs, too, with their programs.
        root: The folder that programs take for `/`; that has the files of captures.
        host: The name of the host that all inputs are from; None where the sources tell.
        command_lines: Whether the command lines of processes are kept.
        anonymous: Whether digests take the place of the names of hosts.
        scheduler: The scheduler of a Dask cluster that does the work; None for this machine.
        executor: An executor of `concurrent.futures` that does the work, such as a pool of processes, or one of Dask.
            Its workers have this version of footprint, and see the sources and the dataset.
        worker_count: How many processes do the work; None for one a processor.
        moment: The time of the scan in UTC, without a zone; None for now.

    Raises:
        AccessError: If a source does not exist, the dataset cannot be written, nobody answers as scheduler, or the
            workers are none, have no footprint or another version, or do not see the folders.
        InputError: If the dataset is damaged or of another version, its path would be read as columns or a pattern, or
            what was written does not add up to its audits.
        UsageError: If nothing is named, or DuckDB or Dask is not installed.
    """
    if not sources and not processes:
        raise UsageError("name a folder, an image, or a file; or --processes for all processes of this machine")
    if scheduler and executor:
        raise UsageError("the work is done by a scheduler or an executor")
    paths = [os.fspath(source) for source in sources]
    named = tuple([_fetched(path) if is_store(path) else path for path in paths])
    now = utc(_now()) if moment is None else moment
    copies = tuple([(copy, path.rstrip("/")) for path, copy in zip(paths, named, strict=True) if is_store(path)])
    tree = None if root is None else os.fspath(root)
    lister = Lister(now, host=host, root=tree, is_anonymous=anonymous, copies=copies)
    with _local_dataset(os.fspath(output)) as folder, locked_dataset(folder):
        _clear(folder, lister)
        name = digest(os.urandom(8).hex())[:12]
        stage = os.path.join(os.path.abspath(folder), f"{_STAGE}{name}")
        settings = Settings(name, stage, now, command_lines, copies)
        runner = local_runner(worker_count or usable_processor_count())
        plan = _Plan(lister, settings, known_inputs(folder))
        scanned, parts = Scanned(folder), []

        def keep(some: Iterable[PartDone]) -> None:
            nonlocal scanned
            for done in some:
                parts.append(commit_part(stage, folder, done.part))
                plan.see(done)
                scanned = scanned.plus(done)
            begin_activity(f"scans; {scanned.input_count:,} inputs are done")

        try:
            with runner as run_here, _elsewhere(run_here, scheduler, executor, Places(stage, named)) as run:
                for done in run_here(run_shard, plan.live_shards() if processes else ()):
                    keep(done)
                for done in run(run_shard, plan.shards([*plan.live_programs, *named], run)):
                    keep(done)
                for done in run(run_shard, plan.mapped_shards(run)):
                    keep(done)
            scanned = _with_notes(scanned, plan)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        check_parts(folder, parts)
    return replace(scanned, folder=os.fspath(output), known_count=plan.known_count)


def _fetched(address: str) -> str:
    """Return the folder with a copy of what a store has below an address."""
    copy = fetch(address)
    if not os.listdir(copy):
        raise AccessError(address, "there is nothing below it: name the folder of what is to be scanned")
    return copy


@contextmanager
def _local_dataset(output: str) -> Iterator[str]:
    """Return the folder of a dataset; of one in a store its copy, which goes back there at the end."""
    if not is_store(output):
        own_place(output)
        yield output
        return
    with locked_store(output), local_folder(output, is_written=True) as copy:
        yield copy
        upload(output, copy)


@contextmanager
def _elsewhere(run_here: Runner, scheduler: str | None, executor: Executor | None, places: Places) -> Iterator[Runner]:
    """Start what does the work beside the processes of this machine."""
    if scheduler is None and executor is None:
        yield run_here
        return
    own_folder(places.stage)
    with cluster_runner(scheduler or "", places) if executor is None else executor_runner(executor, places) as run:
        yield run


def _now() -> float:
    import time  # noqa: PLC0415 # the name is that of an argument in other modules

    return time.time()


def _clear(folder: str, lister: Lister) -> None:
    """Remove what scans left that were killed, and the parts that miss a file, with a note."""
    remove_halves(folder)
    for part, count in remove_damaged(folder).items():
        detail = f"a file of it was gone: {counted(count, 'input')} of it {'is' if count == 1 else 'are'} read again"
        lister.notes.append((lister.this_host.host, Note("part-removed", part, f"{detail}, where a source has them")))
    for name in os.listdir(folder):
        if name.startswith(_STAGE):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def _with_notes(scanned: Scanned, plan: "_Plan") -> Scanned:
    """Write the notes of the list of inputs that the dataset does not have as a part of its own."""
    notes = tuple([note for _, note in plan.notes])
    scanned = replace(scanned, note_count=scanned.note_count + len(notes), notes=(*scanned.notes, *notes)[:_MOST_NOTES])
    new = plan.new_notes()
    if not new:
        return scanned
    day = plan.settings.moment.date()
    part, moment = f"{plan.settings.scan}-notes", plan.settings.moment
    rows: dict[str, list[tuple[Any, ...]]] = {
        "notes": [FleetNote(host, day, note.subject, *note) for host, note in new],
        "inputs": [
            FleetInput(host, day, moment, note.subject, "other", digest(*note), "", part, (), *AuditSums(), 1)
            for host, note in new
        ],
    }
    write_part(os.path.join(plan.settings.folder, part), part, rows)
    commit_part(plan.settings.folder, scanned.folder, part)
    return scanned


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

    def __init__(self, lister: Lister, settings: Settings, inputs: DatasetInputs) -> None:
        self.settings = settings
        self.known_count = 0
        self.live_programs: list[str] = []
        self._lister = lister
        self._inputs = inputs
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
        return [(host, note) for host, note in self.notes if self._inputs.add_record(host, digest(*note))]

    def _shard(self, items: Sequence[Item]) -> Task[Item]:
        self._part_count += 1
        return Task(self.settings, f"{self.settings.scan}-{self._part_count:06}", tuple(items))

    def live_shards(self) -> Iterator[Task[Item]]:
        """Yield shards of all processes of this machine, and note their programs."""
        moment, place = self.settings.moment, self._lister.this_host
        pids = [pid for pid in live_processes() if pid != os.getpid()]
        open_files = read_own_open_files(pids)
        keepers = read_all_keepers(open_files)
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
            items.append(Item(candidate, identity, pid=pid, open_files=open_files.get(pid, ()), keepers=keepers))
        self.live_programs = list(programs)
        for some in _groups(items, _OF_PROCESSES):
            yield self._shard(some)

    def shards(self, sources: Sequence[str], run: Runner) -> Iterator[Task[Item]]:
        """Yield shards of what the dataset does not have."""
        candidates = self._lister.list(sources)
        while batch := list(islice(candidates, _BATCH)):
            new = [c for c in batch if not self._is_known(c) and _may_be_input(c)]
            identified = self._identities(new, run)
            items = [item for c, identities in zip(new, identified, strict=True) for item in self._items(c, identities)]
            for is_elf, size in ((True, _OF_ELF), (False, _OF_RECORDS)):
                for some in _groups([item for item in items if item.candidate.is_elf is is_elf], size):
                    yield self._shard(some)

    def see(self, done: PartDone) -> None:
        """Remember the files that the inputs of a part map, and forget those that could not be read."""
        for key in done.unread_files:
            self._inputs.forget_file(key)
        for key, (place, path) in done.mapped.items():
            if not self._inputs.has_file(key):
                self._mapped.setdefault(key, (place, path))

    def mapped_shards(self, run: Runner) -> Iterator[Task[Item]]:
        """Yield shards of the files that inputs map, and that were no inputs, and of copies of unread ones."""
        waiting = {key: self._lister.mapped(*where) for key, where in self._mapped.items()} | self._copies
        unread = {key: c for key, c in waiting.items() if c is not None and not self._inputs.has_file(key)}
        self._mapped = {}
        candidates = list(unread.values())
        items: list[Item] = []
        for key, candidate, (identity,) in zip(unread, candidates, self._identities(candidates, run), strict=True):
            if identity.key == key:  # not another build at this path
                items += self._items(candidate, [identity._replace(kind="file")])
        for some in _groups(items, _OF_ELF):
            yield self._shard(some)

    def _identities(self, candidates: Sequence[Candidate], run: Runner) -> list[tuple[Identity, ...]]:
        groups = enumerate(_groups(candidates, _IDENTIFIED_AT_ONCE))
        tasks = [Task(self.settings, f"{number:06}", tuple(some)) for number, some in groups]
        return [identity for _, identities in sorted(run(identify, tasks)) for identity in identities]

    def _is_known(self, candidate: Candidate) -> bool:
        """Return whether the dataset has an input as it is now."""
        # The host of a capture may be another one than that of its folder.
        host = candidate.place.host if candidate.is_elf or self._lister.has_host else ""
        state = self._inputs.state_of(host, candidate.input, candidate.state)
        if state is None:
            return False
        depends_on, identity = state
        root = candidate.place.root or ""
        is_same = not depends_on or digest(*(self._state(f"{root}{path}") for path in depends_on)) == identity
        self.known_count += is_same
        return is_same

    def _items(self, candidate: Candidate, identities: Iterable[Identity]) -> Iterator[Item]:
        for identity in identities:
            if identity.kind == "other":
                continue
            if not candidate.is_elf:
                candidate = self._lister.located(candidate, identity.host)  # the same, of its host
            if candidate.is_elf:
                is_new = self._inputs.add_file(identity.key)
                if not is_new and candidate.state:
                    # It is an input already: a row without a state is that of the file alone.
                    self._copies.setdefault(identity.key, candidate._replace(state=""))
                place = candidate.place
                package = place.package
                if is_new and package is None:
                    package = self._packages(place.root or "").of(candidate.path)
                yield Item(candidate, identity, is_new, package)
            elif self._inputs.add_record(candidate.place.host, identity.key):
                yield Item(candidate, identity)
            else:
                self.known_count += 1


def _may_be_input(candidate: Candidate) -> bool:
    """Return whether a new candidate is no script: workers need not start for these."""
    if not candidate.is_elf or candidate.place.image is not None:
        return True
    try:
        with open(candidate.opened, "rb", buffering=0) as file:
            return starts_like_elf(file.read(4))
    except OSError:  # a note when it is read
        return True


def _groups(some: Sequence[_Each], size: int) -> Iterator[Sequence[_Each]]:
    for start in range(0, len(some), size):
        yield some[start : start + size]
