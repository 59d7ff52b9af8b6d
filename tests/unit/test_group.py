"""Several processes as one: texts of their memory in, what they cost together by hand out; and who belongs together."""

import os
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace

import pytest

from footprint.attribution.group import group_up
from footprint.attribution.process_audit import audit_snapshot
from footprint.errors import AccessError, Note, UsageError
from footprint.model.audit import Audit
from footprint.model.row import Evidence, Total
from footprint.process import status
from footprint.process.maps_text import BlockCache
from footprint.process.snapshot import Snapshot, read_texts
from footprint.process.status import descendants, named
from footprint.verbs.audit import group as groups
from footprint.verbs.audit.call import audit_group
from tests.groupmembers import (
    HEAP,
    KIB,
    MORE_TEXT,
    OTHER_TEXT,
    SEGMENT,
    TEXT,
    Member,
    NoFiles,
    block,
    file,
    heap,
    member,
)


def kernel_bytes(*members: Member) -> int:
    return sum(audit.totals.kernel.bytes or 0 for _, audit in members)


# --- what they cost together ------------------------------------------------------------------------------------------


def test_what_each_holds_alone_is_added_up_and_what_both_hold_since_a_fork_counts_once() -> None:
    # Each: 60 KiB alone, 40 KiB with the other, so a proportional share of 60 + 40 / 2.
    one, other = member(1, heap(60, 40), pss_anon=80), member(2, heap(60, 40), pss_anon=80)
    group = group_up([one, other])
    assert group.totals.private == Total(120 * KIB, Evidence.MEASURED)
    assert group.totals.cow_shared == Total(40 * KIB, Evidence.DERIVED)
    assert group.totals.kernel.bytes == kernel_bytes(one, other)
    assert group.totals.per_process.bytes == 160 * KIB + kernel_bytes(one, other)


def test_processes_that_share_nothing_cost_what_each_costs() -> None:
    one, other = member(1, heap(60), pss_anon=60), member(2, heap(25), pss_anon=25)
    group = group_up([one, other])
    assert group.totals.cow_shared.bytes == 0
    assert group.totals.per_process.bytes == sum(audit.totals.per_process.bytes or 0 for audit in group.group.audits)


def test_a_group_of_one_costs_what_the_one_costs() -> None:
    only = member(1, heap(60), file(TEXT, 100), pss_anon=60)
    group = group_up([only])
    assert group.totals.per_process.bytes == only[1].totals.per_process.bytes
    assert group.totals.shared_once.bytes == only[1].totals.shared_once.bytes == 100 * KIB


def test_of_memory_that_a_stranger_holds_too_the_group_has_its_share() -> None:
    # 30 KiB held by three, two of them here: 10 KiB of it each.
    group = group_up([member(1, heap(5, 30), pss_anon=15), member(2, heap(5, 30), pss_anon=15)])
    assert group.totals.cow_shared.bytes == 20 * KIB


def test_three_relatives_that_share_all_hold_it_once() -> None:
    group = group_up([member(pid, heap(0, 90), pss_anon=30) for pid in (1, 2, 3)])
    assert (group.totals.private.bytes, group.totals.cow_shared.bytes) == (0, 90 * KIB)


def test_swapped_memory_is_private_and_no_part_of_the_share_of_what_is_in_memory() -> None:
    # The kernel's share speaks of pages in memory: 60 of its own and half of 40. The 16 in swap are beside that.
    one, other = member(1, heap(60, 40, swapped=16), pss_anon=80), member(2, heap(60, 40), pss_anon=80)
    group = group_up([one, other])
    assert group.totals.private.bytes == 136 * KIB
    assert group.totals.cow_shared.bytes == 40 * KIB


@pytest.mark.parametrize("pss_anon", [0, 59, 60])
def test_a_share_that_is_smaller_than_what_is_private_gives_nothing(pss_anon: int) -> None:
    # Pages come and go between two readings: a figure below zero would be none.
    assert group_up([member(1, heap(60, 40), pss_anon=pss_anon)]).totals.cow_shared.bytes == 0


def test_a_share_is_never_more_than_what_is_shared() -> None:
    assert group_up([member(1, heap(60, 40), pss_anon=9999)]).totals.cow_shared.bytes == 40 * KIB


def test_where_the_kernel_tells_no_shares_what_relatives_share_is_unknown_and_so_is_the_sum() -> None:
    group = group_up([member(1, heap(60, 40)), member(2, heap(60, 40))])
    assert group.totals.cow_shared == Total(None, Evidence.ESTIMATED)
    assert group.totals.per_process.bytes is None
    assert group.totals.private.bytes == 120 * KIB


def test_where_nothing_is_shared_no_share_is_asked_for() -> None:
    assert group_up([member(1, heap(60)), member(2, heap(60))]).totals.cow_shared.bytes == 0


def test_a_member_of_which_only_virtual_sizes_are_known_makes_the_sum_unknown() -> None:
    virtual, *_ = read_texts(f"{HEAP}\n".encode(), "maps")
    unknown = (virtual, audit_snapshot(virtual, {}, NoFiles(), target="maps"))
    group = group_up([member(1, heap(60)), unknown])
    assert group.totals.private.bytes is None
    assert group.totals.per_process.bytes is None


def test_the_sums_are_as_weak_as_the_weakest_of_them() -> None:
    group = group_up([member(1, heap(60), pss_anon=60)])
    assert group.totals.kernel.evidence is Evidence.ESTIMATED
    assert group.totals.per_process.evidence is Evidence.ESTIMATED
    assert group.totals.shared_once.evidence is Evidence.ESTIMATED


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "shared_once_kib"),
    [
        pytest.param([member(1, file(TEXT, 100)), member(2, file(OTHER_TEXT, 50))], 150, id="different files add up"),
        pytest.param(
            [member(1, file(TEXT, 100)), member(2, file(TEXT, 180)), member(3, file(TEXT, 20))],
            180,
            id="the pages of a file count once as many as the member has that has most",
        ),
        pytest.param(
            [member(1, file(TEXT, 100)), member(2, file(TEXT.replace("08:01 11", "08:01 99"), 100))],
            200,
            id="a file that was replaced is another one under the same name",
        ),
    ],
)
def test_of_each_file_the_most_that_one_member_has_counts_once(members: list[Member], shared_once_kib: int) -> None:
    assert group_up(members).totals.shared_once.bytes == shared_once_kib * KIB


def test_each_part_of_a_file_is_counted_for_itself() -> None:
    # One has most of the code, the other most of the constants.
    one, other = [file(TEXT, 100), file(MORE_TEXT, 10)], [file(TEXT, 50), file(MORE_TEXT, 200)]
    assert group_up([member(1, *one), member(2, *other)]).totals.shared_once.bytes == 300 * KIB


def test_the_pages_that_a_process_has_copied_are_its_own_and_not_the_files() -> None:
    data = "40080000-400c0000 rw-p 00080000 08:01 11 /usr/bin/server"
    written = block(data, Rss=100, Shared_Clean=60, Private_Dirty=40, Anonymous=40)
    group = group_up([member(1, written, pss_anon=40), member(2, written, pss_anon=40)])
    assert group.totals.shared_once.bytes == 60 * KIB
    assert group.totals.private.bytes == 80 * KIB


def test_a_segment_of_shared_memory_counts_once() -> None:
    # Each of the two who map it has half of it as its proportional share. Another group makes its own segment.
    here = block(SEGMENT, Rss=512, Pss=256, Shared_Dirty=512)
    group = group_up([member(1, here), member(2, here)])
    assert (group.group.own_shared.bytes, group.totals.shared_once.bytes) == (512 * KIB, 0)


def test_a_segment_that_others_map_too_counts_by_the_shares_of_the_members() -> None:
    here = block(SEGMENT, Rss=512, Pss=128, Shared_Dirty=512)
    assert group_up([member(1, here), member(2, here)]).group.own_shared.bytes == 256 * KIB


def holding(member: Member, size_kib: int) -> Member:
    """Return a member whose segment holds so much in all."""
    snapshot, audit = member
    (mapping,) = [each for each in snapshot.memory.mappings if each.is_shared]
    return snapshot._replace(allocated_bytes={(mapping.device, mapping.inode): size_kib * KIB}), audit


def test_a_segment_that_only_members_share_counts_with_what_nobody_touched() -> None:
    here = block(SEGMENT, Rss=512, Pss=256, Shared_Dirty=512)
    group = group_up([holding(member(1, here), 1024), holding(member(2, here), 1024)])
    assert group.group.own_shared.bytes == 1024 * KIB


def test_shares_that_the_kernel_has_rounded_down_are_still_all_of_it() -> None:
    # 64 KiB of 13 processes are 4.9 KiB each; the kernel shows 4.
    here = block(SEGMENT, Rss=64, Pss=4, Shared_Dirty=64)
    assert group_up([holding(member(pid, here), 1024) for pid in range(1, 14)]).group.own_shared.bytes == 1024 * KIB


@pytest.mark.parametrize(
    "here",
    [block(SEGMENT, Rss=512, Pss=128, Shared_Dirty=512), block(SEGMENT, Rss=512, Pss=512, Private_Dirty=512)],
    ids=["others map it, too", "nobody else maps what the members touched"],
)
def test_of_a_segment_that_others_may_have_touched_only_what_members_map_counts(here: bytes) -> None:
    group = group_up([holding(member(1, here), 4096), holding(member(2, here), 4096)])
    assert group.group.own_shared.bytes == group_up([member(1, here), member(2, here)]).group.own_shared.bytes


def test_two_segments_that_have_one_name_are_two() -> None:
    here, there = (
        block(SEGMENT.replace(" 77 ", f" {inode} "), Rss=512, Pss=512, Private_Dirty=512) for inode in (77, 78)
    )
    group = group_up([member(1, here), member(2, there)])
    assert (group.group.own_shared.bytes, group.totals.shared_once.bytes) == (1024 * KIB, 0)


def test_a_file_that_two_members_have_cut_differently_still_counts_once() -> None:
    """One has mapped 512 KiB as a whole, the other as two halves (mprotect cuts them): the file has no more pages."""
    whole = "40000000-40080000 r--s 00000000 08:01 11 /var/cache/table"
    halves = [
        "40000000-40040000 r--s 00000000 08:01 11 /var/cache/table",
        "40040000-40080000 rw-s 00040000 08:01 11 /var/cache/table",
    ]
    one = member(1, file(whole, 512))
    other = member(2, *(file(half, 256) for half in halves))
    assert group_up([one, other]).totals.shared_once.bytes == 512 * KIB


# --- the ledger -------------------------------------------------------------------------------------------------------


def test_the_rows_of_all_members_are_added_up_by_owner() -> None:
    group = group_up([member(1, heap(60), file(TEXT, 100)), member(2, heap(25), file(TEXT, 100))])
    rows = {row.owner: (row.bytes, row.mapped_bytes) for row in group.ledger if row.kind.value != "kernel"}
    assert rows == {"[heap]": (85 * KIB, 2 * 704 * KIB), "/usr/bin/server": (0, 2 * 256 * KIB)}


def test_kernel_stacks_of_members_with_one_and_with_several_threads_are_one_row() -> None:
    one, several = member(1, heap(60)), member(2, heap(60), threads=7)
    group = group_up([one, several])
    kernel = {row.name: row.bytes for row in group.ledger if row.kind.value == "kernel"}
    assert set(kernel) == {"[page tables]", "[kernel stacks]", "[kernel objects]"}
    assert kernel["[page tables]"] == 80 * KIB
    assert kernel["[kernel stacks]"] == 8 * 16 * KIB
    assert sum(size or 0 for size in kernel.values()) == group.totals.kernel.bytes


def test_a_group_whose_rows_do_not_add_up_is_refused() -> None:
    group = group_up([member(1, heap(60))])
    with pytest.raises(ValueError, match=r"the rows hold 61440 private bytes, the total is 61441"):
        replace(group, totals=group.totals._replace(private=Total(60 * KIB + 1, Evidence.MEASURED)))


def test_the_notes_of_the_group_come_before_those_of_its_members() -> None:
    snapshot, audit = member(1, heap(60))
    noted = replace(audit, notes=(Note("odd", "pid 1", "something"),))
    group = group_up([(snapshot, noted)], [Note("process-not-read", "pid 2", "gone")])
    assert [note.slug for note in group.notes] == ["process-not-read", "odd"]


LEFT_OUT = [Note("process-not-read", "pid 2", "no such process; it is left out")]


def test_where_members_could_not_be_read_the_others_still_share_what_one_of_them_does() -> None:
    # Of ten workers that share 90 KiB with their master nine have ended: the shares of the others are 8 KiB each.
    master, worker = member(1, heap(10, 90), pss_anon=18), member(2, heap(5, 90), pss_anon=13, parent=1)
    group = group_up([master, worker], LEFT_OUT)
    assert group.totals.cow_shared == Total(90 * KIB, Evidence.ESTIMATED)
    assert group.totals.per_process.bytes == 105 * KIB + kernel_bytes(master, worker)
    assert [one.each_bytes for one in group.group.classes if not one.parent_pids] == [group.totals.per_process.bytes]
    assert group_up([master, worker]).totals.cow_shared == Total(16 * KIB, Evidence.DERIVED)
    # Of a capture the first process has the note.
    noted = master[0], replace(master[1], notes=tuple(LEFT_OUT))
    assert group_up([noted, worker]).totals.cow_shared == group.totals.cow_shared


def test_where_members_could_not_be_read_a_segment_has_what_one_of_the_others_has_of_it() -> None:
    here = block(SEGMENT, Rss=512, Pss=64, Shared_Dirty=512)
    assert group_up([member(1, here)], LEFT_OUT).group.own_shared == Total(512 * KIB, Evidence.ESTIMATED)


# --- which processes --------------------------------------------------------------------------------------------------


class Proc:
    """A folder of processes: number, parent, name of the task, and what it was started as."""

    def __init__(self, *processes: tuple[int, int, bytes, bytes]) -> None:
        self.files: dict[str, bytes] = {}
        for pid, parent, task, command in processes:
            self.files[f"/proc/{pid}/stat"] = b"%d (%s) S %d 1 1 0 -1 4194304%s" % (pid, task, parent, b" 0" * 43)
            self.files[f"/proc/{pid}/cmdline"] = command

    def listdir(self, path: str) -> list[str]:
        assert path == "/proc"
        # In no order, and among other things.
        return ["self", *sorted({name.split("/")[2] for name in self.files}, reverse=True), "meminfo"]

    def open(self, path: str, _mode: str) -> BytesIO:
        try:
            return BytesIO(self.files[path])
        except KeyError:
            raise FileNotFoundError(path) from None


@pytest.fixture
def proc(monkeypatch: pytest.MonkeyPatch) -> Proc:
    """Show these processes to the code under test, which is the one with the number 900."""
    proc = Proc(
        (1, 0, b"init", b"/sbin/init\0splash\0"),
        (2, 0, b"kthreadd", b""),
        (20, 2, b"kworker/0:0", b""),
        (100, 1, b"nginx", b"nginx: master process /usr/sbin/nginx\0"),
        (101, 100, b"nginx", b"nginx: worker process\0"),
        (102, 100, b"nginx", b"nginx: worker process\0"),
        (50, 101, b"helper", b"/usr/lib/helper\0nginx\0"),
        (200, 1, b"a-very-long-nam", b"/opt/bin/a-very-long-name-of-a-server\0--fast\0"),
        (300, 1, b"odd) R 100 (", b"./odd\0"),
        (301, 300, b"\xff\xfe", b"/tmp/\xff\xfe\0"),
        (900, 1, b"nginx", b"/usr/bin/nginx\0"),
    )
    replaced = SimpleNamespace(listdir=proc.listdir, fsencode=os.fsencode, getpid=lambda: 900)
    for module in (status,):
        monkeypatch.setattr(module, "os", replaced)
        monkeypatch.setattr(module, "open", proc.open, raising=False)
    return proc


@pytest.mark.usefixtures("proc")
@pytest.mark.parametrize(
    ("pid", "expected"),
    [
        pytest.param(100, (100, 101, 102, 50), id="a tree is a process with all that descend from it parents first"),
        pytest.param(102, (102,), id="a tree may be one process"),
        pytest.param(300, (300, 301), id="a name that looks like a parent is only a name"),
    ],
)
def test_a_tree_is_a_process_with_all_that_descend_from_it_parents_first(pid: int, expected: tuple[int, ...]) -> None:
    assert descendants(pid) == expected


@pytest.mark.usefixtures("proc")
def test_a_tree_of_nobody_is_refused() -> None:
    with pytest.raises(AccessError, match=r"^pid 4711: no such process$"):
        descendants(4711)


def test_a_process_that_ends_while_the_tree_is_read_is_none_of_it(proc: Proc) -> None:
    del proc.files["/proc/102/stat"]
    assert descendants(100) == (100, 101, 50)


@pytest.mark.usefixtures("proc")
def test_all_of_a_name_are_found_but_not_the_one_who_asks() -> None:
    assert named("nginx") == (100, 101, 102)


@pytest.mark.usefixtures("proc")
def test_a_process_has_the_name_of_what_was_started_too() -> None:
    # The kernel keeps 15 bytes of a name.
    assert named("a-very-long-name-of-a-server") == (200,)
    assert named("a-very-long-nam") == (200,)
    assert named("odd") == (300,)


@pytest.mark.usefixtures("proc")
def test_names_are_bytes_and_need_not_be_text() -> None:
    assert named(os.fsdecode(b"\xff\xfe")) == (301,)


@pytest.mark.usefixtures("proc")
@pytest.mark.parametrize("name", ["ngin", "nginx2", "NGINX", "/usr/lib/helper", "splash", "init\0"])
def test_what_is_nearly_a_name_is_none(name: str) -> None:
    with pytest.raises(AccessError, match="no process has this name"):
        named(name)


@pytest.mark.usefixtures("proc")
def test_the_empty_name_is_not_that_of_the_kernels_threads() -> None:
    # They were started as nothing at all.
    with pytest.raises((AccessError, UsageError)):
        named("")


# --- the verb ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> dict[int, bytes]:
    """Have processes by number, with the text of their memory; all others are gone."""
    texts: dict[int, bytes] = {}

    def read(pid: int, cache: BlockCache) -> Snapshot:
        assert isinstance(cache, BlockCache)
        if pid not in texts:
            raise AccessError(f"pid {pid}", "no such process")
        return member(pid, texts[pid])[0]

    monkeypatch.setattr(groups, "read_process", read)
    return texts


def pids(group: Audit) -> list[int | None]:
    return [audit.pid for audit in group.group.audits]


def test_a_process_that_is_named_twice_is_one(processes: dict[int, bytes]) -> None:
    processes[7] = heap(60)
    assert pids(audit_group([7, 7])) == [7]


@pytest.mark.usefixtures("proc")
def test_numbers_tree_and_name_together_are_each_process_once(processes: dict[int, bytes]) -> None:
    processes |= dict.fromkeys((1, 50, 100, 101, 102, 200), heap(10))
    assert pids(audit_group([1, 102], tree=101, name="nginx")) == [1, 102, 101, 50, 100]


def test_a_process_that_has_ended_is_left_out_with_a_note(processes: dict[int, bytes]) -> None:
    processes |= {7: heap(60), 9: heap(25)}
    group = audit_group([7, 8, 9])
    assert pids(group) == [7, 9]
    assert group.totals.private.bytes == 85 * KIB
    assert Note("process-not-read", "pid 8", "no such process; it is left out") in group.notes


@pytest.mark.usefixtures("processes")
def test_where_all_have_ended_there_is_no_answer() -> None:
    with pytest.raises(AccessError, match=r"^7, 8: no such process$"):
        audit_group([7, 8])


@pytest.mark.usefixtures("processes")
def test_where_many_have_ended_the_error_names_the_first_ones() -> None:
    with pytest.raises(AccessError, match=r"^7, 8, 9, 10, 11 and 1993 more: no such process$"):
        audit_group(range(7, 2005))


def test_a_group_of_nobody_is_refused() -> None:
    with pytest.raises(
        UsageError, match="name the processes: PIDs, --tree PID, --name NAME, --cgroup PATH, --unit or --container"
    ):
        audit_group()
