"""Files in memory: who keeps them, what they hold, and to whom that is charged; the expected figures by hand."""

import os
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path

import pytest

from footprint.attribution.group import group_up
from footprint.attribution.kernel import BUILT_IN, INODES, inode_cost
from footprint.attribution.memory_files import ChargedFile, charge_files
from footprint.attribution.process_audit import audit_snapshot
from footprint.members import replace
from footprint.model.row import MemoryKind
from footprint.process.descriptions import OpenFile, OpenFileKind, mounted_memory_devices
from footprint.process.mappings import Mapping
from footprint.process.memory_files import (
    FileIdentity,
    FileKeepers,
    MemoryFile,
    file_identity,
    read_allocated_bytes,
)
from footprint.process.snapshot import Snapshot, read_texts
from footprint.process.status import Status
from tests.groupmembers import KIB, Member, NoFiles, block, heap

MIB = 1 << 20
MEMFD: FileIdentity = ("00:01", 4250)


def line(start: int, size: int, name: str, *, inode: int = 4250, permissions: str = "rw-s", offset: int = 0) -> str:
    return f"{start:x}-{start + size:x} {permissions} {offset:08x} 00:01 {inode} {name}"


JIT = [line(0x7F0000000000, 8 * MIB, "/memfd:vmem (deleted)"), line(0x7F1000000000, 8 * MIB, "/memfd:vmem (deleted)")]


def process(
    *blocks: bytes,
    pid: int = 10,
    holds: dict[FileIdentity, int] | None = None,
    opened: Iterable[OpenFile] = (),
    keepers: FileKeepers | None = None,
) -> Snapshot:
    (snapshot,) = read_texts(
        b"".join(blocks) or block("00400000-00401000 r--p 00000000 08:01 9 /bin/x", Rss=4), "smaps"
    )
    return snapshot._replace(pid=pid, allocated_bytes=holds or {}, open_files=tuple(opened), keepers=keepers)


def kept_by(*pids: int, parents: dict[int, int] | None = None, unread_count: int = 0) -> FileKeepers:
    return FileKeepers({MEMFD: frozenset(pids)}, parents or {}, unread_count)


def charged(*snapshots: Snapshot) -> ChargedFile:
    (one,) = charge_files(snapshots)
    return one


def own_kib(*snapshots: Snapshot) -> float:
    return charged(*snapshots).cost.own_bytes / KIB


def twice(rss: int) -> list[bytes]:
    """Return the blocks of a file whose pages one process has mapped twice: half a share of each for each mapping."""
    return [block(one, Rss=rss, Pss=rss // 2, Shared_Dirty=rss) for one in JIT]


def opened(size_kib: int, name: str = "/memfd:vmem (deleted)") -> OpenFile:
    return OpenFile(5, OpenFileKind.MEMORY, 1, 4250, content_bytes=size_kib * KIB, name=name)


def test_mounts_are_read_for_files_of_devices_without_a_disk_and_not_for_heap_and_stack(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text("30 1 0:99 / / rw - tmpfs none rw\n", encoding="ascii")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "data").write_bytes(bytes(8192))
    inode = (tmp_path / "root" / "data").stat().st_ino
    heap = Mapping(0x10000, 0x20000, "rw-p", 0, "00:00", 0, "[heap]")
    data = Mapping(0x30000, 0x40000, "rw-s", 0, "00:63", inode, "/data")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert list(read_allocated_bytes(folder, [heap, data])) == [("00:63", inode)]
        (tmp_path / "mountinfo").unlink()
        os.mkfifo(tmp_path / "mountinfo")  # who opens it waits
        assert read_allocated_bytes(folder, [heap]) == {}
    finally:
        os.close(folder)


# --- what belongs to one process --------------------------------------------------------------------------------------


def test_a_file_that_only_one_process_keeps_costs_what_it_holds_however_often_it_is_mapped() -> None:
    one = process(*twice(1024), holds={MEMFD: 3524 * KIB}, keepers=kept_by(10))
    assert own_kib(one) == 3524
    assert charged(one).cost.shared_bytes == 3524 * KIB
    assert charged(one).cost.mapping_count == 2


STATUS = Status("x", "S", 1, 40 * KIB, has_memory=True)


def index_of(snapshot: Snapshot) -> int:
    """Return what the kernel spends on a process more than on the same one without its files in memory."""
    audits = [
        audit_snapshot(each._replace(status=STATUS), {}, NoFiles(), target="x")
        for each in (snapshot, snapshot._replace(keepers=kept_by(10, 77)))
    ]
    own, shared = [audit.totals.kernel.bytes or 0 for audit in audits]
    assert audits[0].totals.per_process.bytes == own + audits[0].totals.of_which.own_shared_bytes
    return own - shared


# What the price of a memory file has beside the open file, which is there for a mapping as well.
INODE_BYTES = 1_159 - 200


def test_the_index_of_its_pages_is_kernel_memory_of_whom_the_file_belongs_to() -> None:
    """A node of 592 bytes for 64 pages, and one above them: an audit was 0.2 % too low without it."""
    mapped = process(*twice(1024), holds={MEMFD: 1024 * KIB}, keepers=kept_by(10))
    assert index_of(mapped) == (4 + 1) * 592 + INODE_BYTES
    # The price of the descriptor has the inode.
    assert index_of(process(opened=[opened(1024)], keepers=kept_by(10))) == (4 + 1) * 592


def siblings() -> list[Member]:
    """Return two processes with a heap each that alone keep a file of 1 MiB."""
    keepers = kept_by(10, 11, parents={10: 1, 11: 1, 1: 0})
    blocks = heap(64), block(JIT[0], Rss=1024, Pss=512, Shared_Dirty=1024)
    snapshots = [process(*blocks, pid=pid, holds={MEMFD: 1024 * KIB}, keepers=keepers) for pid in (10, 11)]
    snapshots = [snapshot._replace(status=STATUS) for snapshot in snapshots]
    return [(snapshot, audit_snapshot(snapshot, {}, NoFiles(), target="x")) for snapshot in snapshots]


def test_a_variable_with_the_name_of_a_part_of_kernel_memory_stays_in_the_ledger_of_a_group() -> None:
    members = []
    for snapshot, audit in siblings():
        rows = [r if r.kind is MemoryKind.KERNEL else r._replace(name=INODES) for r in audit.ledger]
        members.append((snapshot, replace(audit, ledger=tuple(rows))))
    group = group_up(members)
    assert sum(row.bytes or 0 for row in group.ledger if row.kind is not MemoryKind.KERNEL) == 2 * 64 * KIB
    assert group.totals.kernel == group_up(siblings()).totals.kernel


def test_siblings_that_alone_keep_a_file_pay_for_its_index_together() -> None:
    members = siblings()
    group = group_up(members)
    each_bytes = [audit.totals.kernel.bytes or 0 for _, audit in members]
    (row,) = [row for row in group.ledger if row.name == INODES]
    assert row.bytes == (4 + 1) * 592 + INODE_BYTES
    assert group.totals.kernel.bytes == sum(each_bytes) + row.bytes
    assert group_up(members[:1]).totals.kernel.bytes == each_bytes[0]


def test_huge_pages_have_no_index() -> None:
    huge = block(JIT[0], Rss=4096, Pss=4096, Private_Dirty=4096, ShmemPmdMapped=4096)
    assert index_of(process(huge, holds={MEMFD: 4 * MIB}, keepers=kept_by(10))) == INODE_BYTES
    assert index_of(process(huge, holds={MEMFD: 4 * MIB + 256 * KIB}, keepers=kept_by(10))) == INODE_BYTES + 592


def test_huge_pages_have_no_index_whichever_process_has_mapped_them_whole() -> None:
    blocks = [
        block(JIT[0], Rss=4096, Pss=1365, Shared_Dirty=4096, ShmemPmdMapped=huge_kib) for huge_kib in (4096, 2048, 0)
    ]
    processes = [
        process(one, pid=pid, holds={MEMFD: 4 * MIB}, keepers=kept_by(10, 11, 12)) for pid, one in enumerate(blocks, 10)
    ]
    for same in permutations(processes):
        assert inode_cost(charge_files(same), 4 * KIB, BUILT_IN).size_bytes == INODE_BYTES


def test_a_file_that_is_open_and_not_mapped_costs_what_it_holds() -> None:
    one = process(opened=[opened(4096)], keepers=kept_by(10))
    audit = audit_snapshot(one, {}, NoFiles(), target="x")
    assert audit.totals.of_which.own_shared_bytes == 4 * MIB
    (row,) = [row for row in audit.ledger if row.owner == "/memfd:vmem (deleted)"]
    assert (row.name, row.bytes, row.shared_bytes, row.mapped_bytes) == ("[open, not mapped]", 0, 4 * MIB, 0)
    assert sum(row.shared_bytes or 0 for row in audit.ledger) == audit.totals.shared_once.bytes


def test_a_file_that_is_only_open_counts_whole_where_not_all_processes_may_be_looked_at() -> None:
    one = process(opened=[opened(4096)], keepers=kept_by(10, unread_count=1))
    assert (own_kib(one), charged(one).least_bytes) == (4096, 0)


def test_private_copies_count_beside_the_pages_of_the_file() -> None:
    private = line(0x7F0000000000, 4 * MIB, "/memfd:d (deleted)", permissions="rw-p")
    copied = block(private, Rss=4096, Pss=4096, Private_Dirty=4096, Anonymous=4096)
    one = process(copied, holds={MEMFD: 4 * MIB}, opened=[opened(4096)], keepers=kept_by(10))
    audit = audit_snapshot(one, {}, NoFiles(), target="x")
    assert (audit.totals.private.bytes, audit.totals.of_which.own_shared_bytes) == (4 * MIB, 4 * MIB)


def test_a_file_that_others_keep_is_not_its_own() -> None:
    one = process(*twice(1024), holds={MEMFD: 3524 * KIB}, keepers=kept_by(10, 77))
    assert own_kib(one) == 0
    assert charged(one).cost.keeper_pids == (77,)
    assert charged(one).cost.shared_bytes == 1024 * KIB


def test_what_its_descendants_keep_too_is_its_own_as_a_copy_starts_its_own_descendants() -> None:
    keepers = kept_by(10, 12, parents={12: 11, 11: 10, 10: 1, 1: 0})
    assert own_kib(process(*twice(64), holds={MEMFD: 128 * KIB}, keepers=keepers)) == 128
    assert own_kib(process(*twice(64), pid=12, holds={MEMFD: 128 * KIB}, keepers=keepers)) == 0


def test_a_circle_of_parents_which_only_a_forged_capture_has_ends() -> None:
    keepers = kept_by(10, 12, parents={12: 13, 13: 12})
    assert own_kib(process(*twice(64), holds={MEMFD: 128 * KIB}, keepers=keepers)) == 0


def test_a_segment_of_sysv_and_a_memfd_with_one_number_are_two_files() -> None:
    segment = block(line(0x7F2000000000, 64 * KIB, "/SYSV00000000 (deleted)"), Rss=64, Pss=64, Private_Dirty=64)
    one = process(*twice(128), segment)
    assert {charge.file.identity for charge in charge_files([one])} == {MEMFD, ("SYSV", 4250)}


def test_a_library_in_tmpfs_is_a_file_that_all_its_processes_use() -> None:
    lines = [line(0x7F0000000000, 64 * KIB, "/run/libx.so", permissions=one) for one in ("r--p", "r-xp")]
    assert charge_files([process(*(block(one, Rss=64, Pss=64) for one in lines), holds={MEMFD: 128 * KIB})]) == ()


def test_a_file_of_tmpfs_that_is_only_read_is_paid_once() -> None:
    read = block(line(0x7F0000000000, 64 * KIB, "/run/table", permissions="r--s"), Rss=64, Pss=64, Private_Clean=64)
    one = process(read, holds={MEMFD: 128 * KIB}, keepers=kept_by(10))
    assert (own_kib(one), charged(one).cost.shared_bytes) == (0, 64 * KIB)


def test_a_file_under_a_name_is_counted_for_each_copy_with_a_note() -> None:
    written = block(line(0x7F0000000000, 4 * MIB, "/run/ring"), Rss=64, Pss=64, Private_Dirty=64)
    audit = audit_snapshot(process(written, holds={MEMFD: MIB}, keepers=kept_by(10)), {}, NoFiles(), target="x")
    assert audit.totals.of_which.own_shared_bytes == MIB
    (note,) = [note for note in audit.notes if note.slug == "shared-memory-of-whom"]
    assert "if copies open the same name, each costs 1 MiB less" in note.detail


def test_huge_pages_of_the_pool_are_in_no_total() -> None:
    huge = block(line(0x7F0000000000, 4 * MIB, "/memfd:h (deleted)"), Rss=0, Pss=0) + b"VmFlags: rd wr sh ht\n"
    assert charge_files([process(huge, holds={MEMFD: 0})]) == ()


# --- buffers of the kernel --------------------------------------------------------------------------------------------

PACKETS = "7f0000000000-7f0000800000 rw-s 00000000 00:09 118858 socket:[118858]"
RING = "7f0000000000-7f0000100000 rw-s 10000000 00:10 121799 anon_inode:[io_uring]"
ARRAYS = [f"7f{n}000000000-7f{n}000100000 rw-s 00000000 00:10 17 anon_inode:bpf-map" for n in (0, 1)]
SAMPLES = "7f0000000000-7f0000101000 rw-s 00000000 00:10 17 anon_inode:[perf_event]"


def test_the_ring_of_a_packet_socket_belongs_to_who_maps_it() -> None:
    audit = audit_snapshot(process(block(PACKETS, Rss=8192, Pss=8192, Private_Clean=8192)), {}, NoFiles(), target="x")
    assert (audit.totals.of_which.own_shared_bytes, audit.totals.shared_once.bytes) == (8 * MIB, 8 * MIB)
    assert [file.evidence for file in audit.memory_files] == ["measured"]
    assert [note.slug for note in audit.notes if "socket" in note.detail] == []
    assert index_of(process(block(PACKETS, Rss=8192, Pss=8192, Private_Clean=8192))) == 0


def test_a_ring_that_the_price_of_its_descriptor_has_counts_once() -> None:
    mapped = block(RING, Rss=1024, Pss=1024, Private_Clean=1024)
    ring = OpenFile(5, OpenFileKind.RING, 16, 121799, content_bytes=2 * MIB)
    held, closed = process(mapped, opened=[ring]), process(mapped)
    assert (charged(held).cost.own_bytes, charged(held).cost.shared_bytes) == (0, 0)
    assert (charged(closed).cost.own_bytes, charged(closed).cost.shared_bytes) == (MIB, MIB)


def test_arrays_of_bpf_have_one_inode_and_are_several() -> None:
    mapped = [block(header, Rss=1024, Pss=1024, Private_Dirty=1024) for header in ARRAYS]
    array = OpenFile(5, OpenFileKind.BPF, 16, 17, content_bytes=MIB)
    assert own_kib(process(*mapped)) == 2048
    assert own_kib(process(*mapped, opened=[array])) == 1024  # the other descriptor is closed


def test_a_ring_of_perf_is_allocated_whole_though_no_page_of_it_counts_as_resident() -> None:
    cost = charged(process(block(SAMPLES))).cost
    assert (cost.own_bytes, cost.evidence) == (1028 * KIB, "derived")


def test_the_ring_of_aio_is_allocated_whole_though_the_process_has_not_looked_at_it() -> None:
    # As the kernel shows it after io_setup(4096); the library alone looks at it, with the first event.
    cost = charged(process(block("7f2e03239000-7f2e0327a000 rw-s 00000000 00:13 250825 /[aio] (deleted)"))).cost
    assert (cost.owner, cost.own_bytes) == ("/[aio] (deleted)", 260 * KIB)


def test_each_process_with_a_ring_of_perf_has_its_own() -> None:
    # All have the name and the inode of the others.
    assert own_kib(process(block(SAMPLES), pid=10), process(block(SAMPLES), pid=11)) == 2 * 1028


@pytest.mark.parametrize(
    ("figures", "own_kib_of_it"),
    [
        pytest.param({"Rss": 8192}, 0, id="as in texts of pmap, no share says whose it is"),
        pytest.param({"Rss": 8192, "Private_Dirty": 8192}, 8192, id="it is mapped once"),
        pytest.param({"Rss": 8192, "Pss": 4096, "Shared_Dirty": 8192}, 0, id="another process maps it"),
    ],
)
def test_what_is_mapped_of_a_buffer_is_paid_once_where_it_is_not_known_as_its_own(
    figures: dict[str, int], own_kib_of_it: int
) -> None:
    snapshot = process(block(PACKETS, **figures))
    audit = audit_snapshot(snapshot, {}, NoFiles(), target="x")
    assert (audit.totals.of_which.own_shared_bytes, audit.totals.shared_once.bytes) == (own_kib_of_it * KIB, 8 * MIB)
    sums = group_up([(snapshot, audit)]).totals
    assert (sums.of_which.own_shared_bytes + (sums.shared_once.bytes or 0)) == (own_kib_of_it or 8192) * KIB


def test_relatives_that_map_one_ring_pay_for_it_once_together() -> None:
    # A third of it is rounded down.
    members = [process(block(PACKETS, Rss=8192, Pss=2730, Shared_Clean=8192), pid=pid) for pid in (10, 11, 12)]
    assert own_kib(*members) == 8192
    # A worker that is forked has the ring of its parent, as it has other files in memory that others keep.
    assert [own_kib(member) for member in members] == [0, 0, 0]


@pytest.mark.parametrize(
    ("keeper_pids", "parents", "unread_count", "kib"),
    [
        pytest.param((10, 11), {11: 10}, 0, 8192, id="its child"),
        pytest.param((10, 11), {11: 1}, 0, 0, id="a stranger"),
        pytest.param((10, 11, 12), {11: 10, 12: 1}, 0, 0, id="both"),
        pytest.param((10,), {}, 0, 0, id="nobody that was found"),
        pytest.param((10, 11), {11: 10}, 1, 4096, id="its child, and perhaps one that may not be looked at"),
    ],
)
def test_a_ring_that_only_its_descendants_map_too_is_its_own(
    keeper_pids: tuple[int, ...], parents: dict[int, int], unread_count: int, kib: int
) -> None:
    identity = ("socket:[118858]", 118858)
    keepers = FileKeepers({identity: frozenset(keeper_pids)}, parents, unread_count)
    assert own_kib(process(block(PACKETS, Rss=8192, Pss=4096, Shared_Clean=8192), keepers=keepers)) == kib


# --- where it cannot be told ------------------------------------------------------------------------------------------


def test_where_some_processes_may_not_be_looked_at_both_figures_are_told() -> None:
    touched = block(JIT[0], Rss=64, Pss=64, Private_Dirty=64)
    one = process(touched, holds={MEMFD: MIB}, keepers=kept_by(10, unread_count=9))
    assert (charged(one).cost.own_bytes, charged(one).least_bytes) == (MIB, 64 * KIB)
    assert charged(one).cost.evidence == "estimated"
    (note,) = [
        n for n in audit_snapshot(one, {}, NoFiles(), target="x").notes if n.slug == "memory-file-keepers-unknown"
    ]
    assert "1 MiB of /memfd:vmem (deleted) counts as its own" in note.detail
    assert "who were not looked at: 64 KiB of it is surely its own" in note.detail


def test_a_file_all_of_whose_pages_are_mapped_here_alone_is_certain() -> None:
    whole = block(JIT[0], Rss=1024, Pss=1024, Private_Dirty=1024)
    one = process(whole, holds={MEMFD: MIB}, keepers=kept_by(10, unread_count=9))
    assert (charged(one).cost.own_bytes, charged(one).cost.evidence) == (MIB, "measured")


def test_a_file_whose_size_may_not_be_read_has_what_was_touched_with_a_note() -> None:
    touched = block(JIT[0], Rss=64, Pss=64, Private_Dirty=64)
    audit = audit_snapshot(process(touched, keepers=kept_by(10)), {}, NoFiles(), target="x")
    assert audit.totals.of_which.own_shared_bytes == 64 * KIB
    (note,) = [note for note in audit.notes if note.slug == "memory-file-size-unknown"]
    assert "64 KiB that was touched here counts, of 8 MiB mapped" in note.detail


@pytest.mark.parametrize(
    ("blocks", "kib"),
    [
        pytest.param(twice(64), 64, id="the shares of two mappings are all of it"),
        pytest.param([block(JIT[0], Rss=64, Pss=32, Shared_Dirty=60, Private_Dirty=4)], 4, id="others map it"),
        pytest.param([block(JIT[0], Rss=0, Pss=0, Swap=256)], 256, id="it is swapped out"),
    ],
)
def test_in_a_text_the_shares_decide(blocks: list[bytes], kib: int) -> None:
    assert own_kib(process(*blocks)) == kib


# --- several processes ------------------------------------------------------------------------------------------------


def test_a_file_that_only_members_keep_is_theirs_once() -> None:
    keepers = kept_by(10, 11)
    members = [process(*twice(64), pid=pid, holds={MEMFD: 256 * KIB}, keepers=keepers) for pid in (10, 11)]
    assert own_kib(*members) == 256
    assert [own_kib(member) for member in members] == [0, 0]


def test_mappings_of_different_parts_have_all_their_pages() -> None:
    low = block(line(0x7F0000000000, MIB, "/memfd:vmem (deleted)"), Rss=64, Pss=32, Shared_Dirty=64)
    high = block(line(0x7F1000000000, MIB, "/memfd:vmem (deleted)", offset=MIB), Rss=16, Pss=16, Private_Dirty=16)
    file: MemoryFile = charged(process(low, high)).file
    assert (file.resident_bytes, file.proportional_bytes, file.extent_bytes) == (80 * KIB, 48 * KIB, 2 * MIB)
    assert file.is_mapped_elsewhere


# --- what is read -----------------------------------------------------------------------------------------------------


def test_the_devices_of_file_systems_in_memory_are_read_from_mountinfo() -> None:
    text = (
        b"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
        b"25 24 0:35 / /dev/shm rw,relatime shared:4 - tmpfs tmpfs rw,size=24684084k\n"
        b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    )
    assert mounted_memory_devices(text) == {"00:23"}


def test_pmap_has_no_inodes_so_names_tell_files_apart() -> None:
    assert file_identity(None, None, "memfd:a (deleted)") != file_identity(None, None, "memfd:b (deleted)")
