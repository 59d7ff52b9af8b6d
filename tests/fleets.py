"""Datasets of fleets, row by row."""

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from datetime import date, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from footprint.store.parquet import open_dataset, write_part
from footprint.store.tables import (
    TABLES,
    FleetFile,
    FleetFinding,
    FleetHost,
    FleetInput,
    FleetLibrary,
    FleetOwner,
    FleetProcess,
    FleetProgram,
    FleetRow,
)

__all__ = (
    "BUILD_IDS",
    "DAY",
    "SMAPS",
    "Holding",
    "Member",
    "asked",
    "capture_of",
    "contents",
    "scan_in_one_process",
    "text_of",
    "write",
    "write_fleet",
)

DAY = date(2026, 11, 23)
GIB = 1 << 30
SMAPS = Path(__file__).with_name("corpus").joinpath("smaps-sleep.txt").read_bytes()


class Holding(NamedTuple):
    """What a process holds: private bytes of an owner, and of a variable of it."""

    owner: str
    private_bytes: int
    symbol: str | None = None


class Member(NamedTuple):
    """A process of a fleet; `savings` has by rule and subject what it saves, `is_judged` whether they are its own.

    A group of `process_count` processes has no `pid`.
    """

    host: str
    program: str
    holdings: tuple[Holding, ...]
    pid: int | None = 100
    hour: int = 9
    day: date = DAY
    build_id: str = "b1"
    kernel_bytes: int = 0
    savings: tuple[tuple[str, str, int], ...] = ()
    is_judged: bool = True
    process_count: int = 1

    @property
    def audit(self) -> int:
        """The key of the process."""
        text = repr((self.host, self.program, self.pid, self.hour, self.day))
        return int.from_bytes(blake2b(text.encode("utf-8", "surrogateescape"), digest_size=7).digest(), "big")


def _moment(member: Member) -> datetime:
    return datetime(member.day.year, member.day.month, member.day.day) + timedelta(hours=member.hour)  # noqa: DTZ001 # UTC, as there


def write_fleet(folder: Path, members: Iterable[Member], files: Iterable[FleetFile] = (), part: str = "p") -> Path:
    """Write a dataset with some processes; hosts have 4 GiB of memory, and 1 GiB of it is available."""
    tables: dict[str, list[tuple[Any, ...]]] = {"files": list(files)}
    days: dict[tuple[str, date], list[Member]] = {}
    programs: dict[tuple[str, str], int] = {}

    def add(table: str, row: tuple[Any, ...]) -> None:
        tables.setdefault(table, []).append(row)

    for member in members:
        days.setdefault((member.host, member.day), []).append(member)
        private_bytes = sum(held.private_bytes for held in member.holdings)
        cost = private_bytes, member.kernel_bytes, private_bytes + member.kernel_bytes
        head = member.host, member.day
        add(
            "processes",
            FleetProcess(
                *head, _moment(member), member.audit, "processes", member.pid, member.program, member.build_id, None,
                *cost, 0, 0, 0, 0, 0, 1, None, None, None, None, member.is_judged and bool(member.savings),
                member.process_count,
                "measured", "smaps",
            ),
        )  # fmt: skip
        for owner in dict.fromkeys(held.owner for held in member.holdings):
            held_bytes = sum(held.private_bytes for held in member.holdings if held.owner == owner)
            add("owners", FleetOwner(*head, member.audit, member.program, owner, held_bytes, 0))
        for holder in member.holdings:
            kind = "data" if holder.owner.startswith("/") else "heap"
            size = holder.private_bytes
            add(
                "rows",
                FleetRow(
                    *head, member.audit, member.program, holder.owner, kind, ".data", holder.symbol, holder.symbol,
                    size, size, 0, 1, 0, True, "measured",  # noqa: FBT003 # a row by its columns
                ),
            )  # fmt: skip
            if holder.owner.startswith("/") and holder.symbol is None:
                name = holder.owner.rpartition("/")[2]
                add(
                    "libraries",
                    FleetLibrary(
                        *head, member.audit, True, member.program, holder.owner, name, f"id-{name}",  # noqa: FBT003 # the same
                        size, size, size, size, None, (),
                    ),
                )  # fmt: skip
        key = member.audit
        if not member.is_judged and member.savings:
            if (member.host, member.program) in programs:
                continue
            key = programs[member.host, member.program] = member.audit ^ 1
            add("programs", FleetProgram(*head, _moment(member), key, member.program, "b1", 1, 0, 0, 0, 0, 0, True))  # noqa: FBT003 # the same
        for rule, subject, saving_bytes in member.savings:
            add(
                "findings",
                FleetFinding(
                    *head, key, member.is_judged, member.program, rule, "", subject, "", saving_bytes,
                    None, None, "high", True, f"{subject} is unused", "drop it", (),  # noqa: FBT003 # the same
                ),
            )  # fmt: skip
    for (host, day), some in days.items():
        moment = max(map(_moment, some))
        add("hosts", FleetHost(host, day, moment, "host", "6.18", "x86_64", 4, 4 * GIB, GIB))
        private_bytes = sum(held.private_bytes for one in some for held in one.holdings)
        row_count = sum(len(one.holdings) for one in some)
        add(
            "inputs",
            FleetInput(
                host, day, moment, "processes", "processes", "", "", part, (),
                sum(one.process_count for one in some), row_count,
                private_bytes, 0, private_bytes, 0,
            ),
        )  # fmt: skip
    write_part(str(folder), part, tables)
    return folder


def write(path: Path, data: bytes) -> Path:
    """Write a file that was changed long ago, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (1_763_900_000, 1_763_900_000))
    return path


BUILD_IDS = {
    "shadow": "d6ad7e6f78aa0adaf53971c03a89799de21939df",
    "libcrypt_like.so": "bdc409c208fe6790657fb44c65a7e42f58fc9f61",
    "libfreebl_like.so": "349b81700e0ba6d4d87153c05aaa45e9463fb5ed",
}


def capture_of(path: Path, build_ids: dict[str, str], **host: object) -> Path:
    """Write a capture of a process with files of these build-ids, a private page of each, the program first."""
    mapping = "%05x000-%05x000 r-xp 00000000 fe:00 %d /opt/app/%s\nRss: 4 kB\nAnonymous: 4 kB\nVmFlags: rd ex mr\n"
    smaps = "".join(mapping % (0x400 + 2 * at, 0x401 + 2 * at, at + 1, name) for at, name in enumerate(build_ids))
    files = [
        {"path": f"/opt/app/{name}", "inode": at + 1, "device": "fe:00", "size_bytes": None, "build_id": build_id}
        for at, (name, build_id) in enumerate(build_ids.items())
    ]
    process = {
        "pid": 7, "command": "shadow", "members": ["smaps", "status"], "thread_stack_addrs": [], "notes": [],
        "files": files,
    }  # fmt: skip
    manifest = {
        "format": "footprint-capture/1",
        "host": {"kernel": "6.1.0", "machine": "x86_64", "page_bytes": 4096, **host},
        "processes": [process],
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("footprint-capture.json", json.dumps(manifest))
        archive.writestr("7/smaps", smaps)
        archive.writestr("7/status", f"Name:\tshadow\nThreads:\t1\nVmPTE:\t44 kB\n# {path}\n")
    return write(path, packed.getvalue())


def scan_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do the tasks of scans in this process, pickled as those of workers are: to start one takes half a second."""

    def call(work: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        for task in tasks:
            sent = pickle.loads(pickle.dumps(task))  # noqa: S301 # made here
            yield pickle.loads(pickle.dumps(work(sent)))  # noqa: S301 # the same

    monkeypatch.setattr("footprint.verbs.scan.call.local_runner", lambda _: nullcontext(call))


def text_of(number: int) -> bytes:
    """Return smaps of a process: the digests of all differ, the figures do not."""
    return SMAPS + b"\n" * number


def asked(dataset: Path, query: str) -> list[tuple[Any, ...]]:
    with open_dataset(str(dataset)) as connection:
        return connection.execute(query).fetchall()


def contents(dataset: Path) -> dict[str, list[str]]:
    """Return all rows of a dataset without the names of parts, which differ from scan to scan."""
    result = {}
    with open_dataset(str(dataset)) as connection:
        for name in TABLES:
            columns = "* EXCLUDE (part)" if name == "inputs" else "*"
            rows = connection.execute(f"SELECT {columns} FROM {name}").fetchall()
            # Each part tells of its hosts.
            result[name] = sorted(set(map(str, rows))) if name == "hosts" else sorted(map(str, rows))
    return result
