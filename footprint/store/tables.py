"""The tables of a fleet's dataset. The types are its only description: columns, SQL types, docs and checks follow them.

Each table is a folder of Parquet files in the dataset. The large ones are partitioned by day, in the way of Hive:
`rows/day=2026-11-23/PART.parquet`; the column `day` is then in the path, not in the file. Their rows are sorted by
host. (With a folder for each host, too, a question about 2,000 hosts spent most of its time on opening files.)
"""

from datetime import date, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints


class FleetHost(NamedTuple):
    """A host at a moment, as far as a part of a scan tells. The last row of a host counts.

    Attributes:
        host: The name of the host; of an image, a package or a root file system the name of that.
        day: The day of `moment`.
        moment: When it was read, in UTC.
        kind: `host`, `image`, `package` or `folder`: whether processes run there, or only files were read.
        kernel: The release of its kernel; null where unknown.
        machine: Its processor, as `x86_64`; null where unknown.
        processor_count: The number of its processors; null where unknown.
        memory_bytes: All of its memory (MemTotal); null where unknown.
        available_bytes: What further processes could have (MemAvailable); null where unknown.
    """

    host: str
    day: date
    moment: datetime
    kind: str
    kernel: str | None
    machine: str | None
    processor_count: int | None
    memory_bytes: int | None
    available_bytes: int | None


class FleetProcess(NamedTuple):
    """A process at a moment.

    Attributes:
        host: The host.
        day: The day of `moment`.
        moment: When it was read, in UTC.
        audit: The key of this process at this moment, which its rows, libraries and findings have, too.
        input: What it was read from.
        pid: The process ID; null where unknown.
        program: The path of its program; the name of the process where the path is unknown.
        build_id: The build-id of the program; null where unknown.
        command: Its command line, with `--command-lines`; else null.
        private_bytes: Anonymous memory that only this process holds, swapped included; null where unknown.
        kernel_bytes: Page tables, kernel stacks, kernel objects.
        per_process_bytes: What one more such process costs.
        shared_once_bytes: Resident pages of files and shared memory, which a host pays once.
        mapped_writable_bytes: Virtual size of its private writable mappings.
        mapped_bytes: Virtual size of its mappings.
        swapped_bytes: The part of `private_bytes` that is swapped out.
        own_shared_bytes: The part of `per_process_bytes` that is shared memory of its own.
        mapping_count: The number of its mappings.
        unit: Its unit of systemd; null where unknown.
        container: The ID of its container; null where unknown.
        pod: The UID of its pod of Kubernetes; null where unknown.
        image: The name of the image of its container; null where unknown.
        is_searched: Whether it was searched for findings itself; else those of its program and files hold.
        process_count: 1; of a saved group of processes, which is one row, the number of its members.
        evidence: How `private_bytes` is known.
        source: What the input was: `smaps`, `pmap -d` and so on.
    """

    host: str
    day: date
    moment: datetime
    audit: int
    input: str
    pid: int | None
    program: str
    build_id: str | None
    command: str | None
    private_bytes: int | None
    kernel_bytes: int | None
    per_process_bytes: int | None
    shared_once_bytes: int | None
    mapped_writable_bytes: int | None
    mapped_bytes: int | None
    swapped_bytes: int
    own_shared_bytes: int
    mapping_count: int
    unit: str | None
    container: str | None
    pod: str | None
    image: str | None
    is_searched: bool
    process_count: int
    evidence: str
    source: str


class FleetRow(NamedTuple):
    """A row of the ledger of a process: an owner, a section and a symbol.

    The symbols of a section with less than 64 private bytes each are one row, which has no symbol. Where more than 512
    symbols of a process have so many bytes, the bound is 128, 256 and so on: the name of the row tells it.

    Attributes:
        host: The host.
        day: The day of the process.
        audit: The key of the process.
        program: The program of the process.
        owner: The path of the object, or a name in brackets for what no file owns.
        kind: What the memory is for: `data`, `bss`, `relro`, `text`, `tls`, `file`, `heap`, `stack`, `anonymous`,
            `shared`; or `kernel`, which is in no other sum.
        section: The section; null where there is none.
        symbol: The linker name; null where no symbol owns the bytes.
        name: What to show for the symbol, or why there is none.
        private_bytes: Private bytes; null where only virtual sizes are known.
        mapped_bytes: Virtual size.
        shared_bytes: Resident bytes that a host pays once; null where unknown.
        page_count: The number of private pages in which the bytes lie; null where unknown, and for several symbols.
        sole_page_count: The number of private pages in which no other variable lies.
        is_writable: Whether the range is private and writable.
        evidence: How `private_bytes` is known.
    """

    host: str
    day: date
    audit: int
    program: str
    owner: str
    kind: str
    section: str | None
    symbol: str | None
    name: str | None
    private_bytes: int | None
    mapped_bytes: int
    shared_bytes: int | None
    page_count: int | None
    sole_page_count: int
    is_writable: bool
    evidence: str


class FleetOwner(NamedTuple):
    """What a process holds of an owner: the rows of the ledger with this owner, added up.

    Attributes:
        host: The host.
        day: The day of the process.
        audit: The key of the process.
        program: The program of the process.
        owner: The path of the object, or a name in brackets for what no file owns.
        private_bytes: Private bytes; null where only virtual sizes are known, and for an owner of kernel memory.
        kernel_bytes: Kernel memory, which is in no other sum.
    """

    host: str
    day: date
    audit: int
    program: str
    owner: str
    private_bytes: int | None
    kernel_bytes: int


class FleetProgram(NamedTuple):
    """A program that was not run, with what a process of it costs at its start. The last row of a host and path counts.

    Attributes:
        host: The host, image or root file system.
        day: The day of `moment`.
        moment: When it was read, in UTC.
        audit: The key of this program at this moment, which its libraries and findings have, too.
        path: Its path, as its processes see it.
        file: Its key in `files`: the build-id, or a digest of the contents.
        object_count: How many objects a process of it has.
        startup_min_bytes: The pages of these that are surely written at start.
        startup_max_bytes: The pages of these that can ever be written.
        start_bytes: Stack, thread block and lists of the loader at start.
        unused_bytes: What libraries cost that nobody uses, at least with `medium` confidence.
        doubtful_bytes: What libraries cost for which that is `low`.
        is_complete: Whether all libraries were found.
    """

    host: str
    day: date
    moment: datetime
    audit: int
    path: str
    file: str
    object_count: int
    startup_min_bytes: int
    startup_max_bytes: int
    start_bytes: int
    unused_bytes: int
    doubtful_bytes: int
    is_complete: bool


class FleetLibrary(NamedTuple):
    """An object of a process or of a program: the program itself, its libraries, the loader.

    Attributes:
        host: The host, image or root file system.
        day: The day of the process or program.
        audit: The key of the process or program.
        is_process: Whether it is of a process; else of a program.
        program: The path of the program.
        path: The path of the object, which is the owner of its rows.
        name: Its soname, else its file name.
        build_id: Its build-id; null where unknown.
        private_bytes: What a process holds of it; null for a program.
        mapped_bytes: Its virtual size in a process; null for a program.
        startup_min_bytes: The pages of it that are surely written at start; null where its file was not read.
        startup_max_bytes: The pages of it that can ever be written; null where its file was not read.
        retained_bytes: The memory of all that leaves with it; null where unknown.
        needed_by: The paths of the objects that name it as needed.
        start_us: The processor time that it takes at each start of a program, estimated, in microseconds; null for a
            process, and where it is not known.
    """

    host: str
    day: date
    audit: int
    is_process: bool
    program: str
    path: str
    name: str
    build_id: str | None
    private_bytes: int | None
    mapped_bytes: int | None
    startup_min_bytes: int | None
    startup_max_bytes: int | None
    retained_bytes: int | None
    needed_by: tuple[str, ...]
    start_us: int | None = None


class FleetFinding(NamedTuple):
    """A finding about a process, a program or an ELF file. It holds for each process that runs or maps that.

    Attributes:
        host: The host, image or root file system.
        day: The day of the process or program.
        audit: The key of the process, program or file.
        is_process: Whether it is about a process; else about a program or file.
        program: The path of the program or file.
        rule: The name of its rule, such as `unused-library`.
        kind: One of the kinds of the rule.
        subject: The name of the library, variable or object.
        object_path: The path of the object to build differently; "" for none or several.
        saving_bytes: What each process saves with the remedy; 0 if it saves nothing by itself.
        private_bytes: The private bytes of the subject in a process; null where unknown.
        size_bytes: The size of the variable that it is about; null for none.
        confidence: `proof`, `high`, `medium`, `low` or `blocked`.
        is_counted: Whether sums count it: not with `low` or `blocked`, copies and constants only if sure.
        message: The finding in one sentence.
        remedy: What to do.
        leaves: The objects that leave the process with it.
        file: The key in `files` of the file that it is about alone; null for a process or program.
    """

    host: str
    day: date
    audit: int
    is_process: bool
    program: str
    rule: str
    kind: str
    subject: str
    object_path: str
    saving_bytes: int
    private_bytes: int | None
    size_bytes: int | None
    confidence: str
    is_counted: bool
    message: str
    remedy: str
    leaves: tuple[str, ...]
    file: str | None = None


class FleetFile(NamedTuple):
    """An ELF file that was read: one row for all hosts that have it.

    Attributes:
        file: The build-id; for a file without one, `blake2b:` and the digest of its contents.
        path: A path that it has on the first host where it was seen.
        name: Its soname, else its file name.
        is_program: Whether it can be run.
        machine: What it was built for, as the number in its header: 62 is x86-64, 183 is AArch64.
        size_bytes: Its size.
        text_bytes: The sections that are only read: code and constants.
        data_bytes: `.data` and what is like it, without RELRO.
        relro_bytes: RELRO.
        bss_bytes: `.bss` and what is like it.
        tls_bytes: Its thread-local variables in each thread.
        package: The package that it is from; null where unknown.
        package_version: The version of the package; null where unknown.
        day: The day of the scan that read it.
    """

    file: str
    path: str
    name: str
    is_program: bool
    machine: int
    size_bytes: int
    text_bytes: int
    data_bytes: int
    relro_bytes: int
    bss_bytes: int
    tls_bytes: int
    package: str | None
    package_version: str | None
    day: date


class FleetVariable(NamedTuple):
    """A variable of an ELF file; those below 256 bytes are one row a section, without symbol.

    Attributes:
        file: The key of the file.
        section: Its section.
        symbol: The linker name; null for the small ones, and for what no symbol names.
        name: What to show for it.
        size_bytes: Its size; of a row of several the sum.
        variable_count: The number of variables of the row; 0 for what no symbol names.
        is_writable: Whether the section is writable; thread-local sections are.
    """

    file: str
    section: str
    symbol: str | None
    name: str
    size_bytes: int
    variable_count: int
    is_writable: bool


class FleetNote(NamedTuple):
    """A problem with an input that did not stop the scan.

    Attributes:
        host: The host, image or root file system.
        day: The day of the scan.
        input: The input.
        slug: The kind of note; `input-unreadable` for an input of which nothing could be read.
        subject: The file, mapping or object that it is about.
        detail: What was found.
    """

    host: str
    day: date
    input: str
    slug: str
    subject: str
    detail: str


class FleetInput(NamedTuple):
    """An input that is in the dataset. An input that is not here is not there: the others of its part neither.

    Attributes:
        host: The host, image or root file system.
        day: The day of `moment`.
        moment: The moment of what it tells, in UTC.
        input: Its path, or the process.
        kind: `program`, `file` for another ELF file, `process`, `series` for one audit of a series; `record` for a
            capture, a text or a saved audit; `other` for a folder or file that has a note alone.
        identity: The digest of its contents; of a program, with those of its libraries; of a record, with its day.
        state: Size and time of change of the file when it was read; "" where there is none.
        part: The name of the Parquet files that hold its rows, without their folder and ending.
        depends_on: The paths, in the root of the host, of the files whose change would change what it tells.
        process_count: The number of its processes.
        row_count: The number of rows in their ledgers.
        private_bytes: The private bytes of its processes, as their audits have it.
        kernel_bytes: The kernel memory of its processes, as their audits have it.
        per_process_bytes: What its processes cost, as their audits have it.
        note_count: The number of its notes.
    """

    host: str
    day: date
    moment: datetime
    input: str
    kind: str
    identity: str
    state: str
    part: str
    depends_on: tuple[str, ...]
    process_count: int
    row_count: int
    private_bytes: int
    kernel_bytes: int
    per_process_bytes: int
    note_count: int


class FleetColumn(NamedTuple):
    """A column of a table.

    Attributes:
        name: Its name.
        sql_type: Its type in SQL.
        is_nullable: Whether it may be null.
    """

    name: str
    sql_type: str
    is_nullable: bool


class FleetTable(NamedTuple):
    """A table of the dataset.

    Attributes:
        name: The name of the table, and of its folder.
        row: The type of its rows.
        is_partitioned: Whether its files lie in folders by day.
    """

    name: str
    row: type[tuple[Any, ...]]
    is_partitioned: bool

    @property
    def columns(self) -> tuple[FleetColumn, ...]:
        """Its columns, in the order of the fields of a row."""
        return _columns(self.row)

    @property
    def pattern(self) -> str:
        """The pattern of the paths of its files in the dataset."""
        return f"{self.name}/*/*.parquet" if self.is_partitioned else f"{self.name}/*.parquet"


_SQL_TYPES: Final[dict[object, str]] = {
    str: "VARCHAR",
    int: "BIGINT",
    bool: "BOOLEAN",
    date: "DATE",
    datetime: "TIMESTAMP",
    tuple[str, ...]: "VARCHAR[]",
}


@cache
def _columns(row: type[tuple[Any, ...]]) -> tuple[FleetColumn, ...]:
    return tuple([_column(name, hint) for name, hint in get_type_hints(row).items()])


def _column(name: str, hint: Any) -> FleetColumn:  # noqa: ANN401 # a type, or a union of types
    is_nullable = get_origin(hint) is UnionType and NoneType in get_args(hint)
    inner = next(part for part in get_args(hint) if part is not NoneType) if is_nullable else hint
    return FleetColumn(name, _SQL_TYPES[inner], is_nullable)


PARTITION_COLUMN: Final = "day"
"""The column that is in the path of a partitioned table."""

TABLES: Final = {
    table.name: table
    for table in (
        FleetTable("hosts", FleetHost, is_partitioned=False),
        FleetTable("processes", FleetProcess, is_partitioned=True),
        FleetTable("rows", FleetRow, is_partitioned=True),
        FleetTable("owners", FleetOwner, is_partitioned=True),
        FleetTable("programs", FleetProgram, is_partitioned=True),
        FleetTable("libraries", FleetLibrary, is_partitioned=True),
        FleetTable("findings", FleetFinding, is_partitioned=True),
        FleetTable("files", FleetFile, is_partitioned=False),
        FleetTable("variables", FleetVariable, is_partitioned=False),
        FleetTable("notes", FleetNote, is_partitioned=False),
        FleetTable("inputs", FleetInput, is_partitioned=False),
    )
}
"""By name."""
