"""The peak by the counters of a memory cgroup: without page cache, also where it passed between two looks."""

import os
from pathlib import Path
from typing import cast

import pytest

from footprint.errors import AccessError
from footprint.model.audit import Audit
from footprint.model.over_time import Peak
from footprint.model.projection import Question
from footprint.model.row import Evidence
from footprint.process.cgroup import MemoryController, MemoryGroup, PeakUsage, Room, _copy_limits
from footprint.process.launch import Taken
from footprint.process.launch.moment import Moment, When
from footprint.process.launch.peak import PeakWatch
from footprint.verbs.run import call
from footprint.verbs.run.result import Start

MIB = 1 << 20


class Folder:
    """The files of a cgroup of version 2, written by the test; this process is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "cgroup.procs").touch()
        self.group = MemoryGroup(str(path), 2)
        (path / "memory.high").write_text("max\n")
        self.write(0, 0)

    def write(self, peak_mib: int, now_mib: int, file_mib: int = 0, shared_mib: int = 0) -> None:
        (self.path / "memory.peak").write_text(f"{peak_mib * MIB}\n")
        (self.path / "memory.current").write_text(f"{now_mib * MIB}\n")
        (self.path / "memory.stat").write_text(f"anon 1\nfile {file_mib * MIB}\nshmem {shared_mib * MIB}\n")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def watch(folder: Folder) -> PeakWatch:
    made = PeakWatch(folder.group)
    made.begin(os.getpid(), adopter=None)
    return made


def test_version_1_and_2_tell_the_peak_in_files_of_different_names(folder: Folder) -> None:
    folder.write(9, 5, file_mib=4, shared_mib=1)
    assert folder.group.read_peak() == PeakUsage(9 * MIB, 5 * MIB, 3 * MIB)
    old = MemoryGroup(folder.group.path, 1)
    (folder.path / "memory.max_usage_in_bytes").write_text(f"{8 * MIB}\n")
    (folder.path / "memory.usage_in_bytes").write_text(f"{7 * MIB}\n")
    (folder.path / "memory.stat").write_text(f"cache 1\ntotal_cache {2 * MIB}\ntotal_shmem {MIB}\n")
    assert old.read_peak() == PeakUsage(8 * MIB, 7 * MIB, MIB)


def test_a_peak_between_two_looks_is_not_missed(folder: Folder, watch: PeakWatch) -> None:
    folder.write(2, 2)
    watch.look(is_forced=True)
    folder.write(50, 3)
    watch.look(is_forced=True)
    peak = watch.result()
    assert (peak.peak_bytes, peak.source, peak.evidence) == (50 * MIB, "memory.peak", Evidence.MEASURED)
    assert watch.now_bytes == 3 * MIB


def test_who_held_nearly_all_of_the_peak_is_told_where_it_ended_before_the_counter_rose_once_more(
    folder: Folder, watch: PeakWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_mib = {11: 60, 12: 70}
    monkeypatch.setattr(
        "footprint.process.launch.peak.counted_sizes",
        lambda pid, _file: {b"VmHWM": held_mib[pid] * MIB, b"VmRSS": held_mib[pid] * MIB} if pid in held_mib else {},
    )
    monkeypatch.setattr(watch, "pids", lambda: list(held_mib))
    folder.write(130, 130)
    watch.look(is_forced=True)
    folder.write(130, 60)
    del held_mib[12]
    watch.look(is_forced=True)
    # 1 MiB was taken right after the first look, and is seen by the third.
    folder.write(131, 60)
    watch.look(is_forced=True)
    assert [holder.pid for holder in watch.result().holders] == [12, 11]
    held_mib[13] = 150
    folder.write(210, 210)
    watch.look(is_forced=True)
    assert [holder.pid for holder in watch.result().holders] == [13, 11]


def test_page_cache_is_left_out_and_what_is_left_is_derived(folder: Folder, watch: PeakWatch) -> None:
    folder.write(30, 30)
    watch.look(is_forced=True)
    folder.write(1000, 1000, file_mib=990, shared_mib=5)
    watch.look(is_forced=True)
    assert watch.result().peak_bytes == 30 * MIB
    folder.write(1040, 1040, file_mib=990, shared_mib=5)
    watch.look(is_forced=True)
    peak = watch.result()
    assert (peak.peak_bytes, peak.evidence, peak.page_cache_bytes) == (55 * MIB, Evidence.DERIVED, 985 * MIB)


def test_page_cache_that_has_gone_is_no_peak(folder: Folder) -> None:
    folder.write(300, 300, file_mib=295)
    full = folder.group.read_peak()
    assert full.most_bytes_since(0) == 5 * MIB
    # The file is deleted, and 100 MiB are allocated: the counter still has the page cache.
    folder.write(300, 105)
    assert folder.group.read_peak().most_bytes_since(full.peak_bytes) == 105 * MIB


def test_a_peak_is_reached_at_its_mark_or_shortly_below_where_it_no_longer_rises(
    folder: Folder, watch: PeakWatch
) -> None:
    for now_mib, is_reached in ((50, False), (98, False), (98, True), (99, False), (100, True)):
        folder.write(now_mib, now_mib)
        watch.look(is_forced=True)
        assert watch.has_reached(100 * MIB) is is_reached


def test_without_the_counter_of_the_peak_there_is_no_group(folder: Folder) -> None:
    (folder.path / "memory.peak").unlink()
    watch = PeakWatch(folder.group)
    watch.begin(os.getpid(), adopter=None)
    watch.look(is_forced=True)
    assert watch.result().source in {"VmHWM", "VmRSS", ""}


def test_limits_of_our_own_group_hold_for_a_program_that_runs_in_one_of_its_own(tmp_path: Path) -> None:
    folder_of_ours, beside = tmp_path / "ours", tmp_path / "beside"
    for folder in (folder_of_ours, beside):
        folder.mkdir()
    old, new = (MemoryController(version, str(tmp_path), str(folder_of_ours)) for version in (1, 2))
    assert (old.limiting_parents, new.limiting_parents) == (
        (str(folder_of_ours),),
        (str(folder_of_ours), str(tmp_path)),
    )
    for name, limit in {"memory.max": "1073741824\n", "memory.high": "max\n", "pids.max": "2305\n"}.items():
        (folder_of_ours / name).write_text(limit)
    assert _copy_limits(str(folder_of_ours), str(beside))
    assert {file.name: file.read_text() for file in beside.iterdir()} == {
        "memory.max": "1073741824",
        "pids.max": "2305",
    }


def test_a_group_that_cannot_have_a_limit_of_ours_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "pids.max").write_text("2305\n")
    assert not _copy_limits(str(tmp_path), str(tmp_path / "no folder"))


def test_what_the_kernel_killed_for_want_of_memory_is_told_with_the_limit(folder: Folder) -> None:
    folder.write(10, 10)
    (folder.path / "memory.events").write_text("oom 1\noom_kill 4\n")
    watch = PeakWatch(folder.group, room=Room("memory.max of /jobs, 64.0 MiB", 64 * MIB, 64 * MIB))
    watch.begin(os.getpid(), adopter=None)
    assert watch.killed_at() is None
    (folder.path / "memory.events").write_text("oom 2\noom_kill 5\n")
    assert watch.killed_at() == "memory.max of /jobs, 64.0 MiB"


def test_processes_are_read_once_shortly_before_a_limit_kills_them(folder: Folder) -> None:
    watch = PeakWatch(folder.group, room=Room("memory.max of /jobs, 100 MiB", 100 * MIB, 100 * MIB))
    watch.begin(os.getpid(), adopter=None)
    assert (folder.path / "memory.high").read_text() == str(95 * MIB)
    for now_mib, is_at_brink in ((50, False), (89, False), (90, True), (99, True)):
        folder.write(now_mib, now_mib)
        watch.look(is_forced=True)
        assert watch.is_at_brink is is_at_brink
    watch.let_go()
    assert not watch.is_at_brink
    assert (folder.path / "memory.high").read_text() == "max"


def test_a_group_that_is_in_use_is_removed_as_soon_as_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "group"
    folder.mkdir()
    (folder / "busy").touch()
    monkeypatch.setattr("time.sleep", lambda _: (folder / "busy").unlink())
    MemoryGroup(str(folder), 2).remove()
    assert not folder.exists()


# --- runs that the kernel holds ---------------------------------------------------------------------------------------


def taken_at(mib: int, when: When, exit_code: int | None, crashes: tuple[str, ...] = ()) -> Start:
    audit = cast("Audit", None)
    return Start(exit_code, None, (), None, mib * MIB, crashes, audit=audit, children=(), snapshots=(), moment=when)


@pytest.mark.parametrize(
    "held_run",
    [
        AccessError("server", "it cannot be started: Cannot allocate memory"),
        taken_at(80, When.EXIT, 127),
        taken_at(80, When.PEAK, None, ("SIGABRT ended worker, which it started",)),
    ],
    ids=["not started", "failed", "child crashed"],
)
def test_a_run_that_fails_only_where_the_kernel_holds_it_is_not_what_is_shown(
    monkeypatch: pytest.MonkeyPatch, held_run: Start | AccessError
) -> None:
    # Version 1 of control groups refuses kernel memory to whoever is held: system calls fail with ENOMEM.
    def start(_words: object, moment: Moment, *_: object, **_options: object) -> Start:
        if not moment.is_held:
            return taken_at(50, When.EXIT, 3)
        if isinstance(held_run, AccessError):
            raise held_run
        return held_run

    monkeypatch.setattr(call, "start", start)
    peak = Peak(100 * MIB, Evidence.MEASURED, "memory.peak", 0, 1.0, (), 1)
    first = Taken(3, None, (), peak, pid=7, answer=1, when=When.EXIT)
    best = call._near_peak(("server",), first, peak, Question(1), 60, 0)
    assert (best.exit_code, best.read_at_bytes, best.crashes) == (3, 50 * MIB, ())
    assert [note.slug for note in best.notes] == ["peak-missed"]


def test_a_run_that_cannot_be_started_where_nothing_holds_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **_options: object) -> Start:
        raise AccessError("server", "it cannot be started: Cannot allocate memory")

    monkeypatch.setattr(call, "start", start)
    peak = Peak(100 * MIB, Evidence.MEASURED, "memory.peak", 0, 1.0, (), 1)
    with pytest.raises(AccessError):
        call._near_peak(
            ("server",), Taken(3, None, (), peak, pid=7, answer=1, when=When.EXIT), peak, Question(1), 60, 0
        )
