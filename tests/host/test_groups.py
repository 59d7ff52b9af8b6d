"""What a family of running processes costs together, against the physical pages that it really has."""

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import footprint
from footprint.errors import AccessError
from footprint.model.audit import Audit
from footprint.model.projection import Model
from footprint.process.pages import has_exclusive_bit
from footprint.process.status import descendants, named
from footprint.sources.target import ProcessChoice, Processes
from footprint.verbs.audit.call import audit_group
from footprint.verbs.audit.group import audit_processes
from tests.liveprocesses import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.skipif(
    not has_exclusive_bit(), reason="the page bits of this host do not tell which pages are mapped once"
)

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "footprint" / "json" / "footprint-1.schema.json").read_text(encoding="utf-8"))
KIB, MIB = 1 << 10, 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")

Json = dict[str, Any]


# --- starting ---------------------------------------------------------------------------------------------------------

Start = Callable[[Sequence[str | Path]], int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program in a session of its own, wait for its first line, and kill the session in the end."""
    children: list[subprocess.Popen[bytes]] = []

    def start_one(command: Sequence[str | Path]) -> int:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        children.append(child)
        assert child.stdout is not None
        if command[0] == sys.executable:
            assert child.stdout.readline() == b"ready\n"
        else:
            wait_until(lambda: Path(f"/proc/{child.pid}/exe").resolve().name == Path(command[0]).name, "it to start")
            wait_until(lambda: state(child.pid) == "S", "it to sleep")
        return child.pid

    yield start_one
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]


def stop(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
        wait_until(partial(lambda one: state(one) == "T", pid), "it to stop")


def children_of(pid: int) -> list[int]:
    result = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace")
                if int(stat.rpartition(")")[2].split()[1]) == pid:
                    result.append(int(name))
    return sorted(result)


# A parent of 8 MiB and two children; each of the three rewrites a quarter of its own, of which one is the same place.
FAMILY = """
import os, time, mmap
block = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
block.madvise(mmap.MADV_NOHUGEPAGE)
block[:] = b'x' * len(block)
shared = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
shared[:] = b's' * len(shared)
here, there = os.pipe()
for number in (0, 1):
    if os.fork() == 0:
        block[number << 21:(number << 21) + (2 << 20)] = b'y' * (2 << 20)
        os.write(there, b'.')
        time.sleep(3600)
        os._exit(0)
assert os.read(here, 1) + os.read(here, 1) == b'..'
block[6 << 20:] = b'z' * (2 << 20)
print('ready', flush=True)
time.sleep(3600)
"""


@pytest.fixture
def relatives(start: Start) -> list[int]:
    """Return a stopped parent and its two stopped children."""
    parent = start([sys.executable, "-c", FAMILY])
    pids = [parent, *children_of(parent)]
    assert len(pids) == 3
    wait_until(lambda: all(state(pid) == "S" for pid in pids), "them to sleep")
    stop(*pids)
    return pids


# --- physical pages ---------------------------------------------------------------------------------------------------


def frames_of(pid: int) -> tuple[set[int], set[int]]:
    """Return the numbers of the physical pages that a process maps: the anonymous ones, and the others.

    Source: Documentation/admin-guide/mm/pagemap.rst; of kpageflags 12 is ANON, 24 ZERO_PAGE.
    """
    anonymous, others = set(), set()
    with (
        open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap,
        open("/proc/kpageflags", "rb", buffering=0) as kpageflags,
        open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps,
    ):
        for line in maps:
            start, end = (int(number, 16) for number in line.split(" ", 1)[0].split("-"))
            if "[vsyscall]" in line or "[vvar" in line:
                continue
            pagemap.seek(start // PAGE * 8)
            for (word,) in struct.iter_unpack("=Q", pagemap.read((end - start) // PAGE * 8)):
                if not word >> 63:
                    continue
                frame = word & (1 << 55) - 1
                kpageflags.seek(frame * 8)
                flags = int.from_bytes(kpageflags.read(8), sys.byteorder)
                if flags >> 12 & 1:
                    anonymous.add(frame)
                elif not flags >> 24 & 1:
                    others.add(frame)
    return anonymous, others


def needs_frames() -> None:
    try:
        with open("/proc/kpageflags", "rb") as file:
            file.read(8)
    except OSError:
        pytest.skip("the numbers of physical pages are told to root only")
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
        pagemap.seek(id(pagemap) // PAGE * 8)
        if not int.from_bytes(pagemap.read(8), sys.byteorder) & (1 << 55) - 1:
            pytest.skip("the numbers of physical pages are told to root only")


def size_of(group: Audit, what: str) -> int:
    size_bytes = group.figures[f"{what}_bytes"].bytes
    assert isinstance(size_bytes, int)
    return size_bytes


# --- relatives --------------------------------------------------------------------------------------------------------


def test_a_family_costs_its_physical_pages_each_counted_once(relatives: list[int]) -> None:
    needs_frames()
    group = audit_group(relatives)
    frames = [frames_of(pid)[0] for pid in relatives]
    together = len(set().union(*frames)) * PAGE
    assert size_of(group, "private") + size_of(group, "shared_between") == pytest.approx(together, abs=2 * PAGE)
    # As one by one they would seem to cost this:
    assert sum(map(len, frames)) * PAGE > together + 8 * MIB


def test_what_each_has_rewritten_is_its_own_and_the_rest_is_between_them(relatives: list[int]) -> None:
    # Of 8 MiB, the parent has 2 MiB rewritten and each child 2 MiB. In each of these places two of the three still
    # share the old page; the 2 MiB that nobody rewrote all three share. So 8 MiB stay shared, beside Python itself.
    group = audit_group(relatives)
    for audit in group.group.audits:
        assert 2 * MIB <= (audit.totals.private.bytes or 0) < 8 * MIB
        assert (audit.totals.cow_shared.bytes or 0) >= 6 * MIB
    assert size_of(group, "private") == sum(audit.totals.private.bytes or 0 for audit in group.group.audits)
    assert size_of(group, "shared_between") >= 8 * MIB
    most_shared = max(audit.totals.cow_shared.bytes or 0 for audit in group.group.audits)
    all_shared = sum(audit.totals.cow_shared.bytes or 0 for audit in group.group.audits)
    assert most_shared <= size_of(group, "shared_between") <= all_shared / 2 + PAGE


def test_a_family_costs_its_private_memory_what_is_between_them_and_the_kernel(relatives: list[int]) -> None:
    group = audit_group(relatives)
    kernel_bytes = sum(audit.totals.kernel.bytes or 0 for audit in group.group.audits)
    assert size_of(group, "kernel") == kernel_bytes > 3 * 16 * KIB
    parts = ("private", "shared_between", "own_shared", "kernel")
    assert size_of(group, "per_group") == sum(size_of(group, part) for part in parts)
    # The area that the program maps shared, and nobody else has.
    assert size_of(group, "own_shared") == 1 * MIB
    assert sum(row.bytes or 0 for row in group.ledger if row.kind.value != "kernel") == size_of(group, "private")


def test_shared_memory_and_files_of_a_family_are_counted_once(relatives: list[int]) -> None:
    group = audit_group(relatives)
    alone = [audit.totals.shared_once.bytes or 0 for audit in group.group.audits]
    together = size_of(group, "shared_once") + size_of(group, "own_shared")
    assert 1 * MIB < max(alone) <= together <= sum(alone) - min(alone)


def test_files_of_a_family_are_never_more_than_their_physical_pages(relatives: list[int]) -> None:
    needs_frames()
    group = audit_group(relatives)
    together = set().union(*(frames_of(pid)[1] for pid in relatives))
    assert size_of(group, "shared_once") <= len(together) * PAGE


def test_a_tree_is_the_parent_with_its_children(relatives: list[int]) -> None:
    assert descendants(relatives[0]) == tuple(relatives)
    assert [audit.pid for audit in audit_group(tree=relatives[0]).group.audits] == relatives
    assert [audit.pid for audit in audit_group(tree=relatives[1]).group.audits] == [relatives[1]]


# --- strangers --------------------------------------------------------------------------------------------------------


@pytest.fixture
def servers(start: Start, tmp_path: Path) -> tuple[str, list[int]]:
    """Return two stopped processes of one program under a name that nobody else has."""
    sleep = shutil.which("sleep")
    if sleep is None:
        pytest.skip("sleep is not installed")
    name = f"fp-sleep-{os.getpid()}"
    shutil.copy(Path(sleep).resolve(), tmp_path / name)
    pids = [start([tmp_path / name, "3600"]) for _ in range(2)]
    stop(*pids)
    return name, pids


def test_processes_of_one_name_are_found(servers: tuple[str, list[int]]) -> None:
    name, pids = servers
    assert named(name) == tuple(sorted(pids))
    assert sorted(audit.pid or 0 for audit in audit_group(name=name).group.audits) == sorted(pids)


def test_the_files_of_two_started_copies_count_once_and_all_else_twice(servers: tuple[str, list[int]]) -> None:
    group = audit_group(servers[1])
    one, other = (audit.totals for audit in group.group.audits)
    assert size_of(group, "shared_between") == 0
    assert size_of(group, "private") == (one.private.bytes or 0) + (other.private.bytes or 0)
    assert size_of(group, "per_group") == (one.per_process.bytes or 0) + (other.per_process.bytes or 0)
    alone = [totals.shared_once.bytes or 0 for totals in (one, other)]
    assert max(alone) <= size_of(group, "shared_once") < sum(alone)


def test_a_process_that_ends_between_being_named_and_read_is_left_out_with_a_note(
    servers: tuple[str, list[int]], start: Start
) -> None:
    gone = start([sys.executable, "-c", "print('ready', flush=True); import time; time.sleep(3600)"])
    os.kill(gone, signal.SIGKILL)
    wait_until(lambda: state(gone) == "Z", "it to end")
    group = audit_group([*servers[1], gone])
    assert [audit.pid for audit in group.group.audits] == servers[1]
    notes = [note for note in group.notes if note.slug == "process-not-read"]
    assert [note.subject for note in notes] == [f"pid {gone}"]
    assert "it is left out" in notes[0].detail


def test_where_none_can_be_read_there_is_no_answer(start: Start) -> None:
    gone = start([sys.executable, "-c", "print('ready', flush=True); import time; time.sleep(3600)"])
    os.kill(gone, signal.SIGKILL)
    wait_until(lambda: state(gone) == "Z", "it to end")
    with pytest.raises(AccessError):
        audit_group([gone])


# --- the command ------------------------------------------------------------------------------------------------------


def run(*words: str | int) -> "subprocess.CompletedProcess[str]":
    return run_verb("audit", *words)


def run_verb(*words: str | int) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "footprint", *map(str, words)],
        cwd=ROOT,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def answered(*words: str | int) -> Json:
    done = run(*words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found: Json = json.loads(done.stdout)
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(found)] == []
    return found


def test_several_numbers_are_one_group(relatives: list[int]) -> None:
    found = answered(*relatives)
    assert found["target"]["pids"] == relatives
    assert [process["pid"] for process in found["processes"]] == relatives
    assert_adds_up(found)
    assert found["group"]["shared_between_bytes"] >= 8 * MIB


def assert_adds_up(result: Json) -> None:
    group = result["group"]
    totals = [process["totals"] for process in result["processes"]]
    rows = [row for row in result["ledger"] if row["kind"] != "kernel"]
    kernel = [row for row in result["ledger"] if row["kind"] == "kernel"]
    assert sum(row["bytes"] for row in rows) == group["private_bytes"] == sum(each["private_bytes"] for each in totals)
    assert sum(row["bytes"] for row in kernel) == group["kernel_bytes"] == sum(each["kernel_bytes"] for each in totals)
    parts = ("private_bytes", "kernel_bytes", "shared_between_bytes", "own_shared_bytes")
    assert group["per_group_bytes"] == sum(group[part] for part in parts)
    assert sum(row["mapped_bytes"] for row in rows) == sum(total["mapped_bytes"] for total in totals)
    assert set(group["evidence"]) == {key for key in group if key.endswith("_bytes")}


def test_the_option_tree_takes_the_whole_family(relatives: list[int]) -> None:
    found = answered("--tree", relatives[0])
    assert found["target"]["pids"] == relatives
    assert_adds_up(found)


def test_the_option_name_takes_all_of_a_name(servers: tuple[str, list[int]]) -> None:
    name, pids = servers
    found = answered("--name", name)
    assert found["target"]["pids"] == sorted(pids)
    assert_adds_up(found)


def test_the_same_moment_gives_the_same_answer_however_it_is_asked_for(relatives: list[int]) -> None:
    by_numbers, by_tree = answered(*relatives), answered("--tree", relatives[0])
    assert by_numbers["group"] == by_tree["group"]
    assert by_numbers["ledger"] == by_tree["ledger"]


def test_the_report_says_what_they_cost_together_in_its_last_line(relatives: list[int]) -> None:
    done = run(*relatives)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("3 processes cost ")
    for pid in relatives:
        assert str(pid) in done.stdout
    assert run(*relatives, "-q").stdout.splitlines() == done.stdout.splitlines()[-1:]


@pytest.mark.parametrize("by", ["owner", "kind", "section", "symbol"])
def test_the_ledger_of_a_group_is_shown_by_each_grouping(servers: tuple[str, list[int]], by: str) -> None:
    done = run(*servers[1], "--by", by)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"by {by}" in done.stdout


def test_a_number_of_groups_costs_each_group_and_the_files_once(servers: tuple[str, list[int]]) -> None:
    found = answered(*servers[1], "-n", 10)
    group, projection = found["group"], found["projection"]
    assert (projection["count"], projection["worker_count"]) == (10, 2)
    assert projection["per_group_bytes"] == group["per_group_bytes"]
    assert projection["total_bytes"] == 10 * group["per_group_bytes"] + group["shared_once_bytes"]


def test_a_text_among_several_targets_is_refused(servers: tuple[str, list[int]]) -> None:
    done = run(servers[1][0], "pmap.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "footprint: pmap.txt is not a PID: several targets must be live processes\n"


def test_a_process_that_has_ended_is_a_note_and_under_strict_a_partial_answer(servers: tuple[str, list[int]]) -> None:
    gone = no_process()
    done = run(*servers[1], gone)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"pid {gone}" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("2 processes cost ")
    assert run(*servers[1], gone, "--strict").returncode == 4


def no_process() -> int:
    """Return a number that no process has, nor will have: above the largest that the kernel gives."""
    return int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii")) + 1


@pytest.mark.parametrize("words", [["--tree"], ["--name"], []], ids=["tree", "name", "numbers"])
def test_a_group_of_which_nothing_is_there_is_an_input_that_cannot_be_read(words: list[str]) -> None:
    gone = str(no_process())
    done = run(*words, gone, *([] if words else [str(int(gone) + 1)]))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("footprint: ")
    assert done.stderr.count("\n") == 1
    assert gone in done.stderr


SPLIT_HUGE_PAGES = """
import mmap, os, sys, time
memory = mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(14)  # MADV_HUGEPAGE
memory[:] = b"x" * len(memory)
ready, told = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        memory[0] = memory[5 << 20] = 1
        os.write(told, b".")
        time.sleep(600)
for _ in range(2):
    os.read(ready, 1)
print("ready", flush=True)
time.sleep(600)
"""


def test_huge_pages_that_a_fork_split_are_private_as_far_as_the_counters_say(start: Start) -> None:
    parent = start([sys.executable, "-c", SPLIT_HUGE_PAGES])
    for pid in descendants(parent):
        audit = footprint.audit(pid)
        sums = dict(line.split(":") for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
        counted = sum(int(sums[key].split()[0]) * KIB for key in ("Private_Dirty", "Private_Clean"))
        # `Private_*` also counts pages of files that only this process maps.
        assert (audit.totals.private.bytes or 0) <= counted
        if "page-bits-differ" in {note.slug for note in audit.notes}:
            assert pid == parent
    huge = [row for row in footprint.audit(parent).ledger if row.mapped_bytes >= 16 * MIB]
    assert sum(row.bytes or 0 for row in huge) < MIB


# --- workers ----------------------------------------------------------------------------------------------------------


def test_the_children_of_a_family_are_its_workers_and_seen_to_be_forks(relatives: list[int]) -> None:
    group = audit_group(tree=relatives[0])
    workers = group.group.classes[0]
    assert workers.pids == tuple(relatives[1:])
    assert (workers.model, workers.parent_pids) == (Model.FORK, (relatives[0],))
    children = [audit.totals for audit in group.group.audits if audit.pid in relatives[1:]]
    assert workers.each_bytes == sum(totals.per_process.bytes or 0 for totals in children) // 2


def test_a_worker_is_projected_with_the_parent_that_it_really_has(relatives: list[int]) -> None:
    parent, *workers = relatives
    group = audit_group(tree=parent)
    worker = footprint.audit(workers[0], count=2)
    assert worker.projection.model.value == "fork"
    assert str(parent) in worker.projection.reasons[0]
    # The whole, from one worker and its parent alone. Each of the three has rewritten 2 MiB of the 8 elsewhere: the
    # children share 2 MiB that the parent has no longer, and the parent 2 MiB with each of them.
    whole_bytes = group.totals.per_process.bytes or 0
    projected_bytes = worker.projection.total_bytes - _files_bytes(worker)
    assert abs(projected_bytes - whole_bytes) <= 4 * MIB


def _files_bytes(audit: Audit) -> int:
    return sum(term.size_bytes for term in audit.projection.terms if term.name == "files and shared memory")


def test_a_master_is_projected_as_one_and_says_how_its_workers_are(relatives: list[int]) -> None:
    found = footprint.audit(relatives[0], count=2)
    assert found.projection.model.value == "exec"
    assert [note.detail for note in found.notes if note.slug == "has-workers"] == [
        f"it has 2 children of the same program: `--tree {relatives[0]}` projects it with its workers"
    ]


def test_what_fits_into_a_memory_does_not_meet_the_limits_of_this_machine(relatives: list[int]) -> None:
    answer = footprint.audit(relatives[0], memory_bytes=1 << 60)
    # The memory may be another machine's, whose pid_max is another one.
    met = {limit.name for limit in answer.projection.limits}
    assert "memory" in met
    assert "pid_max" not in met


def test_the_projection_of_a_group_is_what_its_schema_says(relatives: list[int]) -> None:
    done = run_verb("audit", "--tree", relatives[0], "--memory", "4GiB", "--reserve", "1GiB", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(found)] == []
    projection, (first, *_) = found["projection"], found["projection"]["limits"]
    # The kernel drops page cache where memory is short; what else is paid once takes room.
    once = [(term["is_page_cache"], term["size_bytes"]) for term in projection["terms"] if term["is_once"]]
    assert sum(size_bytes for _, size_bytes in once) == projection["shared_once_bytes"]
    room_bytes = (3 << 30) - sum(size_bytes for is_page_cache, size_bytes in once if not is_page_cache)
    assert (first["name"], first["count"]) == ("memory", room_bytes // projection["per_group_bytes"])
    beside_bytes = (3 << 30) - projection["shared_once_bytes"]
    assert first["beside_cache_count"] == beside_bytes // projection["per_group_bytes"]
    assert projection["count"] == first["count"]


def test_processes_that_come_while_a_group_is_read_are_a_note(relatives: list[int]) -> None:
    # Of the family only the master was known when it was listed.
    listed = Processes("the family", (relatives[0],), ProcessChoice(tree=relatives[0]))
    group = audit_processes(listed)
    assert [audit.pid for audit in group.group.audits] == [relatives[0]]
    detail = next(note.detail for note in group.notes if note.slug == "members-changed")
    assert detail.startswith("while they were read, 2 processes came and 0 ended: those that came are left out, ")
