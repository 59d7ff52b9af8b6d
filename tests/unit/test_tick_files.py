"""Files in memory at a tick: what each holds now, and what of it the processes pay for."""

import os
from pathlib import Path

import pytest

from footprint.attribution.kernel import BUILT_IN
from footprint.attribution.memory_files import charge_open
from footprint.model.over_time import ProcessCounters
from footprint.process import memory_files
from footprint.process.descriptions import OpenFile, OpenFileKind, device_name
from footprint.process.mappings import Counters, Mapping
from footprint.process.memory_files import FileIdentity
from footprint.verbs.watch import tick_costs
from footprint.verbs.watch.tick_costs import HeldFile, KernelPrices, TickCosts, TickFiles, held_files
from tests.groupmembers import block, member

KIB = 1024


class MemoryFile:
    """A file whose length stands for its pages, at a place where a descriptor could be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def holds(self, size_bytes: int) -> None:
        self.path.touch()
        os.truncate(self.path, size_bytes)

    def held(self, size_bytes: int, own_bytes: int, pid: int = 1) -> HeldFile:
        status = self.path.stat()
        # Files of any file system are asked in the same way.
        return held_file(("SYSV", status.st_ino), size_bytes, own_bytes, pid, str(self.path))


def held_file(
    identity: FileIdentity,
    size_bytes: int,
    own_bytes: int,
    pid: int = 1,
    *paths: str,
    mappings: tuple[Mapping, ...] = (),
) -> HeldFile:
    charge = charge_open(memory_files.MemoryFile(identity, "", size_bytes, mappings, (5,)))
    cost = charge.cost._replace(size_bytes=size_bytes, own_bytes=own_bytes)
    return HeldFile(charge._replace(cost=cost), pid, paths)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryFile:
    monkeypatch.setattr(tick_costs, "held_bytes", lambda _, status: status.st_size)
    return MemoryFile(tmp_path / "file")


def counters(shared_bytes: int = 0) -> ProcessCounters:
    return ProcessCounters(0, 0, shared_bytes, 0, 0, 1)


def test_at_a_tick_a_file_has_the_size_that_it_has_then(file: MemoryFile) -> None:
    files = TickFiles()
    file.holds(256 * KIB)
    files.learn([file.held(64 * KIB, 64 * KIB)])
    # The reading has just been; the tick that belongs to it has its figures.
    assert files.own_bytes({1: counters()}) == {1: 64 * KIB}
    assert files.own_bytes({1: counters()}) == {1: 256 * KIB}


def test_of_a_file_that_is_theirs_in_part_the_part_grows(file: MemoryFile) -> None:
    files = TickFiles()
    file.holds(256 * KIB)
    files.learn([file.held(64 * KIB, 16 * KIB)])
    files.own_bytes({1: counters()})
    assert files.own_bytes({1: counters()}) == {1: 64 * KIB}


def test_a_file_that_its_process_has_let_go_of_costs_nothing(file: MemoryFile) -> None:
    files = TickFiles()
    files.learn([file.held(64 * KIB, 64 * KIB)])
    files.own_bytes({1: counters()})
    file.path.unlink()
    assert files.own_bytes({1: counters()}) == {1: 0}


def test_what_may_not_be_looked_at_stays_as_it_was(file: MemoryFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> os.stat_result:
        raise PermissionError

    files = TickFiles()
    files.learn([file.held(64 * KIB, 64 * KIB)])
    files.own_bytes({1: counters()})
    monkeypatch.setattr(os, "stat", refused)
    assert files.own_bytes({1: counters()}) == {1: 64 * KIB}


def test_a_file_whose_size_no_file_system_tells_stays_as_the_mappings_have_it() -> None:
    # memfd_secret(2): stat says that it has no blocks.
    header = "7f0000000000-7f0000400000 rw-s 00000000 00:0e 249523 /secretmem (deleted)"
    snapshot, _ = member(1, block(header, Rss=4096, Pss=4096, Private_Dirty=4096))
    files = TickFiles()
    files.learn(held_files([snapshot._replace(pid=os.getpid())]))
    assert [files.own_bytes({os.getpid(): counters()}) for _ in range(2)] == [{os.getpid(): 4 << 20}] * 2


def test_a_descriptor_that_leads_to_another_file_is_not_taken_for_it(file: MemoryFile) -> None:
    files = TickFiles()
    file.holds(256 * KIB)
    files.learn([held_file(("00:01", 1), 64 * KIB, 64 * KIB, 1, str(file.path))])
    files.own_bytes({1: counters()})
    assert files.own_bytes({1: counters()}) == {1: 0}


def test_a_file_that_was_opened_since_the_reading_belongs_to_who_opened_it() -> None:
    files = TickFiles()
    files.learn([])
    files.own_bytes({1: counters(), 2: counters()})
    opened = OpenFile(5, OpenFileKind.MEMORY, 1, 4711, content_bytes=64 * KIB)
    files.add_open(2, [opened, OpenFile(6, OpenFileKind.FILE, 1, 4712, content_bytes=KIB)])
    files._files = {
        identity: one._replace(paths=()) for identity, one in files._files.items()
    }  # no process has this descriptor
    assert list(files._files) == [(device_name(1), 4711)]
    assert files.own_bytes({1: counters(), 2: counters()}) == {1: 0, 2: 64 * KIB}
    files.drop(2)
    assert files.own_bytes({1: counters()}) == {1: 0}


def test_shared_memory_that_is_in_no_file_is_known_by_the_counter(file: MemoryFile) -> None:
    files = TickFiles()
    file.holds(64 * KIB)
    files.learn([file.held(64 * KIB, 64 * KIB)])
    assert files.own_bytes({1: counters(64 * KIB)}) == {1: 64 * KIB}
    assert files.own_bytes({1: counters(96 * KIB)}) == {1: 96 * KIB}
    # What the file has grown by explains what was touched.
    file.holds(128 * KIB)
    assert files.own_bytes({1: counters(128 * KIB)}) == {1: 128 * KIB}


def test_what_relatives_have_touched_together_counts_once() -> None:
    files = TickFiles()
    files.learn([])
    files.own_bytes({1: counters(), 2: counters()})
    assert sorted(files.own_bytes({1: counters(64 * KIB), 2: counters(64 * KIB)}).values()) == [0, 64 * KIB]


def index_at_ticks(count: int, *files: HeldFile) -> list[int]:
    costs = TickCosts(BUILT_IN, lambda pids: dict.fromkeys(pids, ()))
    costs.learn({1: KernelPrices(0, 0, 0, 1, 0)}, files, {})
    return [costs.priced({1: counters()}, 0)[1].object_bytes for _ in range(count)]


def test_a_tick_counts_the_index_of_small_pages_as_an_audit_does(file: MemoryFile) -> None:
    file.holds(8 * 1024 * KIB)
    huge = Mapping(0, 1 << 23, "rw-s", 0, "00:01", 9, "/memfd:x", Counters({"ShmemPmdMapped": 0}, (2 * 1024 * KIB,)))
    held = held_file(
        ("SYSV", file.path.stat().st_ino), 4 * 1024 * KIB, 4 * 1024 * KIB, 1, str(file.path), mappings=(huge,)
    )
    # A node for 64 pages, and one above them; at the second tick the file has grown. A segment has 464 bytes besides.
    assert index_at_ticks(2, held) == [(8 + 1) * 592 + 464, (24 + 1) * 592 + 464]


def test_at_a_tick_each_file_has_an_index_of_its_own() -> None:
    assert index_at_ticks(1, *(held_file(("00:01", number), 4 * KIB, 4 * KIB) for number in range(500))) == [0]
    assert index_at_ticks(1, *(held_file(("00:01", number), 8 * KIB, 8 * KIB) for number in range(500))) == [500 * 592]
