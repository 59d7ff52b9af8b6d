"""The programs of a group of processes are read once for all that see the same files and were started alike."""

from dataclasses import replace

import pytest

from footprint.loader.target import Environment
from footprint.process.mappings import MemoryMap, ThreadStacks
from footprint.process.snapshot import Snapshot
from footprint.sources import programs
from footprint.sources.programs import KeptPrograms, ProcessView, Programs

VIEW = ProcessView("/usr/bin/program", Environment(library_path="/opt"), None, "/")


PROCESS = Snapshot(
    source="pid 1",
    pid=1,
    is_live=True,
    command="program",
    memory=MemoryMap("smaps", ()),
    rollup=None,
    status=None,
    thread_stacks=ThreadStacks(),
    pages=None,
    page_bytes=4096,
    host={},
    notes=(),
)


def test_alike_processes_share_what_reads_their_programs_and_others_have_their_own() -> None:
    kept: KeptPrograms = {}
    first = Programs.of_process(PROCESS, VIEW, kept=kept)
    assert Programs.of_process(PROCESS, VIEW._replace(program="/usr/bin/other"), kept=kept) is first
    others = [VIEW._replace(environment=replace(VIEW.environment, preload="/a.so")), VIEW._replace(root="/proc/2/root")]
    assert all(Programs.of_process(PROCESS, view, kept=kept) is not first for view in others)
    assert Programs.of_process(PROCESS, VIEW, kept=kept) is first
    assert Programs.of_process(PROCESS, VIEW) is not first


def test_a_process_whose_file_has_moved_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: KeptPrograms = {}
    first = Programs.of_process(PROCESS, VIEW, kept=kept)
    moved = {"/usr/lib/gone.so": "/proc/1/map_files/1-2"}
    monkeypatch.setattr(programs, "_moved_files", lambda *_: moved)
    assert Programs.of_process(PROCESS, VIEW, kept=kept) is not first
    assert [*kept.values()] == [first]


def test_only_some_are_kept() -> None:
    kept: KeptPrograms = {}
    for number in range(100):
        Programs.of_process(PROCESS, VIEW._replace(environment=Environment(cwd=f"/{number}")), kept=kept)
        assert 0 < len(kept) <= 16
