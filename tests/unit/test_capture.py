"""Captures: what is written is read again as the same facts, and what nobody wrote so is refused with one error."""

import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.errors import InputError, Note, UnsupportedError, UsageError
from footprint.formats.document import Heading
from footprint.model.finding import Confidence, Finding
from footprint.model.heap_account import AllocatorAccount
from footprint.process.capture import (
    _Recording,
    _Writer,
    capture_processes,
    read_capture,
    read_findings_of_capture,
)
from footprint.process.descriptions import OpenFile, OpenFileKind
from footprint.process.mappings import Counters, Mapping, MemoryMap, ThreadStacks
from footprint.process.maps_text import parse_maps, parse_rollup
from footprint.process.memory_files import FileKeepers
from footprint.process.origin import CaptureHost, Placement
from footprint.process.pages import PageRange
from footprint.process.snapshot import CapturedHeap, FileFacts, Snapshot
from footprint.process.status import KernelHoldings, Status, parse_status
from footprint.verbs.audit.text import audit_document

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
KIB = 1024
MIB = 1024 * KIB
MANIFEST = "footprint-capture.json"

SMAPS = b"""\
00400000-00404000 rw-p 00001000 fe:00 77 /usr/bin/demo
Size:                 16 kB
KernelPageSize:        4 kB
Rss:                  12 kB
Anonymous:             8 kB
Swap:                  4 kB
VmFlags: rd wr mr mw me ac
7ffc00000000-7ffc00002000 rw-p 00000000 00:00 0 [stack]
Size:                  8 kB
KernelPageSize:        4 kB
Rss:                   4 kB
Anonymous:             4 kB
Swap:                  0 kB
VmFlags: rd wr mr mw me gd ac
"""
ROLLUP = b"00400000-7ffc00002000 ---p 00000000 00:00 0 [rollup]\nRss: 16 kB\nAnonymous: 12 kB\nSwap: 4 kB\n"
STATUS = b"Name:\tdemo\nState:\tT (stopped)\nVmSize:\t  24 kB\nVmPTE:\t  44 kB\nThreads:\t2\n"
PAGES = b"""\
400000
400000-402000
402000-403000 swapped
7ffc00000000
7ffc00001000-7ffc00002000
"""
CAPTURED_AT = "2026-11-27T19:40:00Z"
ACCOUNT = AllocatorAccount(
    allocator="glibc",
    arena_count=1,
    live_block_count=3,
    live_bytes=1000,
    overhead_bytes=48,
    free_bytes=2048,
    held_bytes=3096,
    cached_bytes=512,
    mapped_block_count=0,
    mapped_block_bytes=0,
    free_private_bytes=1024,
    trimmable_bytes=0,
    unread=("a heap of it lies in another one",),
    captured_at=CAPTURED_AT,
)
UNREAD = Note("allocator-unread", "pid 4711", "a part of its heap could not be read: a heap of it lies in another one")
KEYS = {"Size": 0, "KernelPageSize": 1, "Rss": 2, "Anonymous": 3, "Swap": 4}
DEMO = Snapshot(
    source="demo.capture",
    pid=4711,
    is_live=False,
    command="demo --file \udcff.txt",
    memory=MemoryMap(
        "smaps",
        (
            Mapping(
                *(0x400000, 0x404000, "rw-p", 0x1000, "fe:00", 77, "/usr/bin/demo"),
                Counters(KEYS, (16 * KIB, 4 * KIB, 12 * KIB, 8 * KIB, 4 * KIB)),
                "rd wr mr mw me ac",
            ),
            Mapping(
                *(0x7FFC00000000, 0x7FFC00002000, "rw-p", 0, "00:00", 0, "[stack]"),
                Counters(KEYS, (8 * KIB, 4 * KIB, 4 * KIB, 4 * KIB, 0)),
                "rd wr mr mw me gd ac",
            ),
        ),
    ),
    rollup=Counters({"Rss": 0, "Anonymous": 1, "Swap": 2}, (16 * KIB, 12 * KIB, 4 * KIB)),
    status=Status("demo", "T", 2, 44 * KIB, has_memory=True),
    kernel_holdings=KernelHoldings(2, (4712,), 3, has_own_network=True, queue_bytes=5000),
    capture_host=CaptureHost(),
    placement=Placement(),
    thread_stacks=ThreadStacks((0x7FFC00001F00,), ((0x7FFC00001000, 0x7FFC00002000),)),
    pages={
        0x400000: (PageRange(0x400000, 0x402000), PageRange(0x402000, 0x403000, is_swapped=True)),
        0x7FFC00000000: (PageRange(0x7FFC00001000, 0x7FFC00002000),),
    },
    page_bytes=4096,
    host={"kernel": "6.18.0", "machine": "x86_64"},
    notes=(Note("changed-while-read", "pid 4711", "its memory changed"),),
    files={("fe:00", 77, "/usr/bin/demo"): FileFacts(123456, "0123abcd")},
    allocated_bytes={("00:01", 2048): 8 << 20},
    open_files=(OpenFile(5, OpenFileKind.PIPE, 14, 4321, is_write_only=True, content_bytes=4096, holder_count=3),),
    keepers=FileKeepers({("00:01", 2048): frozenset({4711, 4712})}, {4711: 1, 4712: 4711, 1: 0}, 3),
    captured_heap=CapturedHeap(ACCOUNT, (UNREAD,)),
)


def manifest() -> dict[str, Any]:
    return {
        "format": "footprint-capture/1",
        "tool": {"name": "footprint", "version": "1.2.3"},
        "host": {"kernel": "6.18.0", "machine": "x86_64", "page_bytes": 4096},
        "processes": [
            {
                "pid": 4711,
                "command": "demo --file \udcff.txt",
                "start_ticks": 99,
                "thread_stack_addrs": [0x7FFC00001F00],
                "thread_stack_blocks": [{"start_addr": 0x7FFC00001000, "end_addr": 0x7FFC00002000}],
                "is_frozen": True,
                "members": ["status", "smaps", "smaps_rollup", "pages"],
                "notes": [{"slug": "changed-while-read", "subject": "pid 4711", "detail": "its memory changed"}],
                "files": [
                    {
                        "path": "/usr/bin/demo",
                        "inode": 77,
                        "device": "fe:00",
                        "size_bytes": 123456,
                        "build_id": "0123abcd",
                    }
                ],
                "allocated": [{"device": "00:01", "inode": 2048, "size_bytes": 8 << 20}],
                "open_files": [
                    {
                        "descriptor": 5,
                        "kind": "pipe",
                        "device": 14,
                        "inode": 4321,
                        "is_write_only": True,
                        "content_bytes": 4096,
                        "watch_count": 0,
                        "is_unread": False,
                        "holder_count": 3,
                    }
                ],
                "kernel_holdings": [
                    {
                        "timer_count": 2,
                        "zombies": [4712],
                        "filter_count": 3,
                        "has_own_network": True,
                        "queue_bytes": 5000,
                    }
                ],
                "captured_at": CAPTURED_AT,
                "allocator_accounts": [ACCOUNT._asdict() | {"captured_at": None}],
                "allocator_notes": [UNREAD._asdict()],
            }
        ],
        "memory_files": {
            "keepers": [{"device": "00:01", "inode": 2048, "pids": [4711, 4712]}],
            "parents": {"4711": 1, "4712": 4711, "1": 0},
            "unread_count": 3,
        },
    }


MEMBERS = {"4711/status": STATUS, "4711/smaps": SMAPS, "4711/smaps_rollup": ROLLUP, "4711/pages": PAGES}


def zipped(members: dict[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), text, method)
    return file.getvalue()


def capture(content: object = None, **members: bytes | None) -> bytes:
    """Return the capture of the demo process, with another manifest or other members; None leaves one out."""
    text = content if isinstance(content, bytes) else json.dumps(manifest() if content is None else content).encode()
    changed = {f"4711/{name}": member for name, member in members.items()}
    return zipped({name: one for name, one in ({**MEMBERS, **changed, MANIFEST: text}).items() if one is not None})


def read(data: bytes) -> Snapshot:
    (snapshot,) = read_capture(data, "demo.capture")
    return snapshot


def refused(data: bytes) -> InputError:
    """Return the error that a capture is refused with; it names the file."""
    with pytest.raises(InputError) as caught:
        read_capture(data, "demo.capture")
    assert caught.value.file == "demo.capture"
    return caught.value


# --- what is read -----------------------------------------------------------------------------------------------------


def test_a_capture_has_the_facts_of_the_process() -> None:
    assert read(capture()) == DEMO


def test_a_capture_of_an_earlier_version_has_no_open_files_and_no_allocated_memory() -> None:
    told = manifest()
    del told["memory_files"]
    del told["processes"][0]["open_files"]
    del told["processes"][0]["allocated"]
    assert read(capture(told)) == DEMO._replace(open_files=(), allocated_bytes={}, keepers=None)


def test_a_view_of_a_file_has_the_same_facts() -> None:
    assert read_capture(memoryview(capture()), "demo.capture") == (DEMO,)


def test_a_kernel_without_smaps_gives_maps_without_counters_and_pages() -> None:
    told = manifest()
    told["processes"][0]["members"] = ["status", "maps"]
    maps = b"00400000-00404000 rw-p 00001000 fe:00 77 /usr/bin/demo\n"
    snapshot = read(capture(told, maps=maps, smaps=None, smaps_rollup=None, pages=None))
    assert snapshot.memory.dialect == "maps"
    assert (snapshot.rollup, snapshot.pages) == (None, None)


def test_page_bits_that_could_not_be_read_are_not_the_same_as_no_private_page() -> None:
    told = manifest()
    told["processes"][0]["members"].remove("pages")
    assert read(capture(told)).pages is None
    assert read(capture(pages=b"")).pages == {}
    assert read(capture(pages=b"400000\n")).pages == {0x400000: ()}


def test_a_rollup_that_is_none_is_left_out_as_it_is_of_a_live_process() -> None:
    assert read(capture(smaps_rollup=b"nothing of the kind\n")).rollup is None


def test_a_file_that_could_not_be_read_has_neither_size_nor_build_id() -> None:
    told = manifest()
    told["processes"][0]["files"][0] |= {"size_bytes": None, "build_id": None}
    assert read(capture(told)).files == {("fe:00", 77, "/usr/bin/demo"): FileFacts(None, None)}


def test_notes_that_the_texts_give_now_stand_behind_those_that_were_written_down() -> None:
    cut = SMAPS.rpartition(b"VmFlags")[0]
    notes = read(capture(smaps=cut)).notes
    assert [note.slug for note in notes] == ["changed-while-read", "maps-text-truncated"]
    told = manifest()
    told["processes"][0]["notes"].append(
        {"slug": notes[1].slug, "subject": notes[1].subject, "detail": notes[1].detail}
    )
    assert read(capture(told, smaps=cut)).notes == notes


def test_members_and_keys_that_are_unknown_are_ignored() -> None:
    told = manifest()
    for one in (told, told["host"], told["processes"][0], told["processes"][0]["files"][0]):
        one["later"] = {"as": ["they", "like"]}
    told["processes"][0]["members"].append("later")
    assert read(capture(told, later=b"\0" * 1000)) == DEMO


def test_several_processes_stand_in_the_order_of_the_capture() -> None:
    told = manifest()
    told["processes"].append({**told["processes"][0], "pid": 12})
    members = {name.replace("4711", "12"): text for name, text in MEMBERS.items()}
    both = zipped({**MEMBERS, **members, MANIFEST: json.dumps(told).encode()})
    assert [one.pid for one in read_capture(both, "demo.capture")] == [4711, 12]


def test_of_several_processes_one_that_is_damaged_is_a_note_and_the_others_are_read() -> None:
    told = manifest()
    told["processes"].append({**told["processes"][0], "pid": 12})
    members = {name.replace("4711", "12"): text for name, text in MEMBERS.items()} | {"12/smaps": b"no map\n"}
    both = zipped({**MEMBERS, **members, MANIFEST: json.dumps(told).encode()})
    (demo,) = read_capture(both, "demo.capture")
    assert demo.pid == 4711
    assert [(note.slug, note.subject) for note in demo.notes[len(DEMO.notes) :]] == [("process-not-read", "pid 12")]


def test_names_of_members_are_never_paths_to_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    members = {**MEMBERS, MANIFEST: json.dumps(manifest()).encode(), "../up": b"x", "/etc/passwd": b"x", "a/": b""}
    assert read(zipped(members)) == DEMO
    assert list(tmp_path.iterdir()) == []


# --- there and back ---------------------------------------------------------------------------------------------------


def written(snapshot: Snapshot, texts: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    files = [
        {"path": path, "inode": inode, "device": device, "size_bytes": facts.size_bytes, "build_id": facts.build_id}
        for (device, inode, path), facts in snapshot.files.items()
    ]
    with zipfile.ZipFile(file, "w") as archive:
        writer = _Writer(archive)
        writer.store(
            _Recording(snapshot, texts, 99, is_frozen=True, notes=snapshot.notes, captured_at=CAPTURED_AT),
            files,
            snapshot.open_files or (),
        )
        writer.finish("1.2.3", snapshot.keepers)
    return file.getvalue()


def test_what_is_written_is_read_again() -> None:
    data = written(DEMO, {"status": STATUS, "smaps": SMAPS, "smaps_rollup": ROLLUP})
    found = read(data)
    assert (found.host["machine"], found.page_bytes) == (os.uname().machine, os.sysconf("SC_PAGE_SIZE"))
    if found.page_bytes == DEMO.page_bytes:
        assert found == Snapshot(**{name: getattr(DEMO, name) for name in DEMO._fields} | {"host": found.host})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {name: archive.read(name) for name in MEMBERS} == MEMBERS


@pytest.mark.parametrize("name", ["sleep", "node", "python3", "odd", "static64"])
def test_the_texts_of_real_processes_are_kept_to_the_byte(name: str) -> None:
    texts = {kind: (CORPUS / f"{kind}-{name}.txt").read_bytes() for kind in ("status", "smaps", "smaps_rollup")}
    memory = parse_maps(texts["smaps"], "pid 4711")
    facts = {field: getattr(DEMO, field) for field in DEMO._fields} | {
        "memory": memory,
        "rollup": parse_rollup(texts["smaps_rollup"], name),
        "status": parse_status(texts["status"]),
        "pages": None,
        "notes": memory.notes,
    }
    data = written(Snapshot(**facts), texts)
    found = read(data)
    assert found == Snapshot(**facts | {"host": found.host, "page_bytes": found.page_bytes})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {kind: archive.read(f"4711/{kind}") for kind in texts} == texts


def test_the_same_process_makes_the_same_file_whenever_it_is_written() -> None:
    assert written(DEMO, {"smaps": SMAPS}) == written(DEMO, {"smaps": SMAPS})


# --- as a target ------------------------------------------------------------------------------------------------------


@pytest.fixture
def file_of(tmp_path: Path) -> Callable[[bytes], str]:
    def write(data: bytes) -> str:
        (tmp_path / "demo.capture").write_bytes(data)
        return str(tmp_path / "demo.capture")

    return write


def test_a_capture_is_audited_with_its_kernel_memory(file_of: Callable[[bytes], str]) -> None:
    audit = footprint.audit(file_of(capture()))
    assert (audit.pid, audit.is_live, audit.mapping_count) == (4711, False, 2)
    assert audit.totals.private.bytes == 16 * KIB
    assert (audit.totals.kernel.bytes or 0) > 44 * KIB
    assert audit.totals.mapped_writable.bytes == 24 * KIB


def test_its_audit_shows_what_its_allocator_had_then_and_says_when(file_of: Callable[[bytes], str]) -> None:
    audit = footprint.audit(file_of(capture()))
    assert (audit.allocator, UNREAD in audit.notes) == (ACCOUNT, True)
    (heading,) = [one.text for one in audit_document(audit) if isinstance(one, Heading) and "The heap" in one.text]
    size = "3.02 KiB, as far as it could be read"
    assert heading == f"The heap as glibc had it at 2026-11-27 19:40:00 UTC, {size}"
    # There are no ranges: no row of the ledger says what is free.
    assert {"[in use]", "[free]"}.isdisjoint({row.name for row in audit.ledger})


def test_a_capture_of_an_earlier_version_has_no_account_and_no_note_on_it(file_of: Callable[[bytes], str]) -> None:
    told = manifest()
    for name in ("captured_at", "allocator_accounts", "allocator_notes"):
        del told["processes"][0][name]
    audit = footprint.audit(file_of(capture(told)))
    assert audit.allocator is None
    assert "allocator-unread" not in {note.slug for note in audit.notes}


@pytest.mark.parametrize(
    ("changed", "moment"),
    [
        ({"held_bytes": 3097}, CAPTURED_AT),
        ({"live_bytes": (1 << 63) - 1}, CAPTURED_AT),
        ({"cached_bytes": 2049}, CAPTURED_AT),
        ({"free_private_bytes": 2049}, CAPTURED_AT),
        ({"trimmable_bytes": 2049}, CAPTURED_AT),
        ({"mapped_block_bytes": 3097}, CAPTURED_AT),
        ({}, "yesterday\x1b[31m"),
        ({}, CAPTURED_AT + "\n"),
    ],
)
def test_an_account_that_contradicts_itself_is_refused(changed: dict[str, int], moment: str) -> None:
    told = manifest()
    process = told["processes"][0]
    process["captured_at"] = moment
    process["allocator_accounts"][0] |= changed
    assert refused(capture(told)).cause == f"{MANIFEST}: the account of an allocator contradicts itself"


def test_a_process_with_two_accounts_of_its_allocator_is_refused() -> None:
    told = manifest()
    told["processes"][0]["allocator_accounts"] *= 2
    pid = told["processes"][0]["pid"]
    assert refused(capture(told)).cause == f"{MANIFEST}: process {pid} has several accounts of its allocator"


def test_of_several_processes_one_is_chosen_by_its_number(file_of: Callable[[bytes], str]) -> None:
    told = manifest()
    told["processes"].append({**told["processes"][0], "pid": 12})
    members = {name.replace("4711", "12"): text for name, text in MEMBERS.items()}
    path = file_of(zipped({**MEMBERS, **members, MANIFEST: json.dumps(told).encode()}))
    assert footprint.audit(path, pid=12).pid == 12
    assert len(footprint.maps(path, pid=4711).memory.mappings) == 2
    assert [member.pid for member in footprint.audit(path).members] == [4711, 12]
    with pytest.raises(
        UsageError, match=r"^--model goes with .* is a capture of several processes: choose one with --pid$"
    ):
        footprint.audit(path, model="fork")
    assert footprint.audit(path, workers=7).group.workers.count == 7
    with pytest.raises(UsageError, match=r"^--workers goes with .* or a saved group; .* is a capture$"):
        footprint.audit(path, pid=12, workers=7)
    with pytest.raises(UsageError, match=r"holds 2 processes: choose one with --pid \(4711, 12\)"):
        footprint.maps(path)
    with pytest.raises(InputError, match="no mapping of process 13"):
        footprint.audit(path, pid=13)


def test_a_capture_of_no_process_has_no_mapping(file_of: Callable[[bytes], str]) -> None:
    with pytest.raises(InputError, match="no mapping in it"):
        footprint.audit(file_of(capture({**manifest(), "processes": []})))


# --- refused: the JSON ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["footprint-capture/2", "footprint-capture/10", "footprint-capture/01"])
def test_a_later_format_is_not_supported_and_both_are_named(name: str) -> None:
    error = refused(capture({"format": name, "host": "quite different"}))
    assert isinstance(error, UnsupportedError)
    assert error.cause == f"a capture of format {name}: this version reads footprint-capture/1"


@pytest.mark.parametrize("name", ["", "footprint/1", "footprint-capture/", "footprint-capture/1\n", "1" * 10**6])
def test_any_other_format_is_none_of_a_capture(name: str) -> None:
    error = refused(capture({**manifest(), "format": name}))
    assert not isinstance(error, UnsupportedError)
    assert error.cause == f"{MANIFEST}: not a format of captures: {name[:80]!r}"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"\xff\xfe\xfd", id="bytes of no text"),
        pytest.param(b"[" * 100_000, id="a deep nest"),
        pytest.param(b'{"a":' * 100_000, id="a deep nest of objects"),
        pytest.param(b"9" * 5000, id="a number without end"),
    ],
)
def test_what_is_no_json_is_refused(text: bytes) -> None:
    assert refused(capture(text)).cause.startswith(f"{MANIFEST} is not JSON: ")


@pytest.mark.parametrize("text", [b"[]", b"null", b"1", b'"footprint-capture/1"', b"NaN", b"1e999"])
def test_a_document_that_is_no_object_is_refused(text: bytes) -> None:
    assert refused(capture(text)).cause == f"{MANIFEST} is not an object"


WRONG: list[tuple[str, object, str]] = [
    ("format", 1, "`format` is not a text"),
    ("host", None, "`host` is not an object"),
    ("host.kernel", 6, "`host.kernel` is not a text"),
    ("host.machine", ["x86_64"], "`host.machine` is not a text"),
    ("host.page_bytes", "4096", "`host.page_bytes` is not an integer from 0 to 16777216"),
    ("host.page_bytes", 4096.0, "`host.page_bytes` is not an integer from 0 to 16777216"),
    ("host.page_bytes", True, "`host.page_bytes` is not an integer from 0 to 16777216"),
    ("host.page_bytes", 0, "pages of 0 bytes"),
    ("host.page_bytes", 1, "pages of 1 bytes"),
    ("host.page_bytes", 5000, "pages of 5000 bytes"),
    ("host.page_bytes", 1 << 80, "`host.page_bytes` is not an integer from 0 to 16777216"),
    ("processes", {}, "`processes` is not a list"),
    ("processes", [[]], "`processes[0]` is not an object"),
    ("processes.0.pid", -1, "`processes[0].pid` is not an integer from 0 to 2147483647"),
    ("processes.0.pid", 1 << 31, "`processes[0].pid` is not an integer from 0 to 2147483647"),
    ("processes.0.pid", "4711", "`processes[0].pid` is not an integer from 0 to 2147483647"),
    ("processes.0.command", None, "`processes[0].command` is not a text"),
    ("processes.0.members", "smaps", "`processes[0].members` is not a list"),
    ("processes.0.members", [1], "`processes[0].members[0]` is not a text"),
    ("processes.0.thread_stack_addrs", 1, "`processes[0].thread_stack_addrs` is not a list"),
    *(
        (
            "processes.0.thread_stack_addrs",
            [1, bad],
            f"`processes[0].thread_stack_addrs[1]` is not an integer {to}",
        )
        for to in ["from 0 to 18446744073709551615"]
        for bad in (-1, 1 << 64, 0.5, None, "1", False)
    ),
    ("processes.0.notes", None, "`processes[0].notes` is not a list"),
    ("processes.0.captured_at", None, "`processes[0].captured_at` is not a text"),
    ("processes.0.allocator_accounts", {}, "`processes[0].allocator_accounts` is not a list"),
    *(
        (
            "processes.0.allocator_accounts.0.free_bytes",
            bad,
            "`processes[0].allocator_accounts[0].free_bytes` is not a size or count",
        )
        for bad in (-1, 1 << 63, None, "1", True, 2.0)
    ),
    ("processes.0.notes", [{"slug": "odd", "subject": 1}], "`processes[0].notes[0].subject` is not a text"),
    ("processes.0.files", None, "`processes[0].files` is not a list"),
    ("processes.0.files.0.path", 7, "`processes[0].files[0].path` is not a text"),
    ("processes.0.files.0.device", None, "`processes[0].files[0].device` is not a text"),
    (
        "processes.0.files.0.inode",
        7.5,
        "`processes[0].files[0].inode` is not an integer from 0 to 18446744073709551615",
    ),
    ("processes.0.files.0.size_bytes", -1, "`processes[0].files[0].size_bytes` is not an integer from 0 to 1844674407"),
    ("processes.0.files.0.build_id", 1, "`processes[0].files[0].build_id` is not a text"),
]


@pytest.mark.parametrize(("place", "value", "cause"), WRONG)
def test_a_value_of_another_type_or_range_is_refused_and_named(place: str, value: object, cause: str) -> None:
    document: Any = manifest()
    *way, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    holder = document
    for part in way:
        holder = holder[part]
    holder[last] = value
    assert refused(capture(document)).cause.startswith(f"{MANIFEST}: {cause}")


@pytest.mark.parametrize(
    "place", ["format", "host", "host.kernel", "host.page_bytes", "processes", "processes.0.pid", "processes.0.members"]
)
def test_a_key_that_is_missing_is_refused(place: str) -> None:
    document: Any = manifest()
    *way, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    holder = document
    for part in way:
        holder = holder[part]
    del holder[last]
    named = place.replace(".0", "[0]")
    assert refused(capture(document)).cause.startswith(f"{MANIFEST}: `{named}` is missing")


def test_a_process_that_stands_in_it_twice_is_refused() -> None:
    told = manifest()
    told["processes"] *= 2
    assert refused(capture(told)).cause == f"{MANIFEST}: process 4711 is listed twice"


# --- refused: the members ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["status", "smaps", "smaps_rollup", "pages"])
def test_a_member_that_the_json_tells_of_and_that_is_missing_is_refused(name: str) -> None:
    assert refused(capture(**{name: None})).cause == f"it has no member 4711/{name}"


def test_a_process_without_any_map_is_refused() -> None:
    told = manifest()
    told["processes"][0]["members"] = ["status"]
    assert refused(capture(told)).cause == "it has no member 4711/maps"


def test_a_map_that_is_none_is_refused() -> None:
    cause = refused(capture(smaps=b"once upon a time\n" * 3)).cause
    assert cause.startswith("4711/smaps: offset 0x0: no line is a mapping")


@pytest.mark.parametrize(
    ("pages", "cause"),
    [
        (b"\n", "line 1 is neither a mapping nor a page range"),
        (b"400000\n0x400000-0x401000\n", "line 2 is neither"),
        (b"400000\n400000-401000 shared\n", "line 2 is neither"),
        (b"400000\r\n", "line 1 is neither"),
        (b"400000\n400000-\n", "line 2 is neither"),
        (b"400000\n-400000\n", "line 2 is neither"),
        (b"1" * 17, "line 1 is neither"),
        (b"1" * 1_000_000, "line 1 is neither"),
        (b"400000\n400000-401000\n\n", "line 3 is neither"),
        (b"500000\n", "line 1: no mapping starts at 0x500000"),
        (b"400000\n400000\n", "line 2: no mapping starts at 0x400000, or it is listed twice"),
        (b"400000-401000\n", "line 1: not whole pages of its mapping"),
        (b"400000\n3ff000-401000\n", "line 2: not whole pages of its mapping"),
        (b"400000\n403000-405000\n", "line 2: not whole pages of its mapping"),
        (b"400000\n400000-ffffffffffffffff\n", "line 2: not whole pages of its mapping"),
        (b"400000\n401000-401000\n", "line 2: not whole pages of its mapping"),
        (b"400000\n402000-401000\n", "line 2: not whole pages of its mapping"),
        (b"400000\n400800-401000\n", "line 2: not whole pages of its mapping"),
        (b"400000\n400000-400800\n", "line 2: not whole pages of its mapping"),
        (
            b"400000\n401000-402000\n400000-401000\n",
            "line 3: not whole pages of its mapping, or not in ascending order",
        ),
        (
            b"400000\n400000-402000\n401000-403000\n",
            "line 3: not whole pages of its mapping, or not in ascending order",
        ),
    ],
)
def test_pages_that_contradict_the_mappings_are_refused_and_their_line_is_named(pages: bytes, cause: str) -> None:
    found = refused(capture(pages=pages)).cause
    assert found.startswith("4711/pages, line ")
    assert cause in found


# --- refused: the zip -------------------------------------------------------------------------------------------------


def test_a_zip_that_is_no_capture_is_refused() -> None:
    assert refused(zipped({"readme.txt": b"hello"})).cause == f"a zip file, but not a capture: it has no {MANIFEST}"


@pytest.mark.parametrize("lost_bytes", [1, 21, 22, 100, 500])
def test_a_capture_that_is_cut_is_refused(lost_bytes: int) -> None:
    cut = capture()[:-lost_bytes]
    error = refused(cut)
    assert (error.cause, error.offset) == ("the file is cut: it does not end with the end record of a zip", len(cut))


def test_four_bytes_that_claim_to_be_a_zip_are_refused() -> None:
    assert refused(b"PK\x03\x04").cause.startswith("the file is cut")


def test_a_member_with_other_bytes_than_were_written_is_refused() -> None:
    told, stored = json.dumps(manifest()).encode(), zipfile.ZIP_STORED
    data = zipped({**MEMBERS, MANIFEST: told}, method=stored).replace(
        b"Anonymous:             8", b"Anonymous:             9"
    )
    assert refused(data).cause.startswith("4711/smaps is damaged: Bad CRC-32")


def test_a_member_with_damaged_packing_is_refused() -> None:
    data = bytearray(capture())
    at = data.index(b"4711/smaps") + len(b"4711/smaps")
    data[at : at + 8] = b"\xff" * 8
    assert refused(bytes(data)).cause.startswith("4711/smaps is damaged: ")


def test_two_members_of_one_name_are_refused() -> None:
    data = zipped({**MEMBERS, "4711/smapz": b"00400000-00500000 rw-p 0 0:0 0\n", MANIFEST: b"{}"})
    assert refused(data.replace(b"4711/smapz", b"4711/smaps")).cause == "a zip file with two members of the same name"


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    cause = refused(capture(smaps=bytes(200 * MIB))).cause
    assert cause.startswith(f"4711/smaps claims {200 * MIB} bytes, packed into ")
    assert refused(capture(smaps=bytes(MIB + 1))).cause.startswith(f"4711/smaps claims {MIB + 1} bytes, packed into ")
    # A text of a MiB may be packed as tightly as it likes.
    assert "packed into" not in refused(capture(smaps=bytes(MIB))).cause


def directory_entry(data: bytes, name: bytes) -> int:
    """Return where the entry of a member in the directory of a zip begins."""
    at = data.index(b"PK\x01\x02")
    while data[at + 46 : at + 46 + struct.unpack_from("<H", data, at + 28)[0]] != name:
        at = data.index(b"PK\x01\x02", at + 46)
    return at


def claiming(data: bytes, name: bytes, *, packed_bytes: int | None = None, size_bytes: int | None = None) -> bytes:
    """Return a zip whose directory claims other sizes of a member."""
    changed = bytearray(data)
    at = directory_entry(data, name)
    if packed_bytes is not None:
        struct.pack_into("<I", changed, at + 20, packed_bytes)
    if size_bytes is not None:
        struct.pack_into("<I", changed, at + 24, size_bytes)
    return bytes(changed)


OTHERS_BYTES = sum(map(len, (STATUS, ROLLUP, PAGES, json.dumps(manifest()))))


@pytest.mark.parametrize(
    ("sizes", "cause"),
    [
        ({"size_bytes": len(SMAPS) - 1}, "4711/smaps is damaged: Bad CRC-32"),
        ({"size_bytes": len(SMAPS) + 1}, "4711/smaps is "),
        ({"size_bytes": 100 * MIB}, f"4711/smaps claims {100 * MIB} bytes, packed into "),
        ({"size_bytes": 2 * 1024 * MIB}, f"its members claim {2 * 1024 * MIB + OTHERS_BYTES} bytes, more than "),
        ({"size_bytes": (1 << 32) - 2}, "its members claim "),
        ({"packed_bytes": 1}, "4711/smaps is "),
        # As if a bomb were packed no tighter than anything else.
        ({"size_bytes": 100 * MIB, "packed_bytes": MIB}, "its members claim "),
        ({"packed_bytes": 1 << 30}, "its members claim "),
    ],
)
def test_a_member_that_claims_another_size_is_refused(sizes: dict[str, int], cause: str) -> None:
    assert refused(claiming(capture(), b"4711/smaps", **sizes)).cause.startswith(cause)


@pytest.mark.parametrize(
    ("name", "size_bytes"), [("status", MIB + 1), ("smaps_rollup", MIB + 1), (MANIFEST, 16 * MIB + 1)]
)
def test_a_member_that_is_larger_than_it_may_be_is_refused(name: str, size_bytes: int) -> None:
    noise = os.urandom(size_bytes // 16 + 1) * 16
    data = capture(noise) if name == MANIFEST else capture(**{name: noise})
    assert f"{name} claims " in refused(data).cause


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packings_that_captures_do_not_use_are_refused(method: int) -> None:
    data = zipped({**MEMBERS, MANIFEST: json.dumps(manifest()).encode()}, method=method)
    assert refused(data).cause == f"4711/status is packed by method {method}, not deflate"


def test_members_that_are_not_packed_are_read() -> None:
    assert read(zipped({**MEMBERS, MANIFEST: json.dumps(manifest()).encode()}, method=zipfile.ZIP_STORED)) == DEMO


def test_an_encrypted_member_is_refused() -> None:
    data = bytearray(capture())
    data[directory_entry(bytes(data), b"4711/smaps") + 8] |= 1
    assert refused(bytes(data)).cause.startswith("4711/smaps is damaged: ")


def test_a_zip_with_a_comment_is_none_of_ours() -> None:
    data = capture()
    assert refused(data[:-2] + b"\x05\x00hello").cause.startswith("the file is cut")
    assert refused(data[:-2] + b"\x16\x00" + data[-22:]).cause.startswith("a damaged zip file: ")


def test_a_directory_that_claims_to_be_large_is_refused_before_it_is_read() -> None:
    data = bytearray(capture())
    struct.pack_into("<I", data, len(data) - 10, 1 << 31)
    assert refused(bytes(data)).cause == f"its directory claims {1 << 31} bytes"


def test_a_zip64_record_is_refused() -> None:
    data = capture()
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, 0, 1)
    assert refused(data[:-22] + locator + data[-22:]).cause == "a zip file of more than 4 GiB (zip64)"


def test_a_hundred_thousand_members_are_too_many() -> None:
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *[0] * 16)
    directory = entry * 100_000
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0, 0, len(directory), 0, 0)
    assert refused(b"PK\x03\x04" + directory + end).cause == f"its directory claims {len(directory)} bytes"


def test_a_name_that_is_no_text_is_refused() -> None:
    data = bytearray(capture())
    at = directory_entry(bytes(data), b"4711/smaps")
    data[at + 9] |= 8  # names are UTF-8
    data[at + 46] = 0xFF
    assert refused(bytes(data)).cause.startswith("a damaged zip file: ")


def test_bytes_before_the_zip_make_it_no_capture(file_of: Callable[[bytes], str]) -> None:
    with pytest.raises(InputError, match="neither maps, smaps nor pmap output"):
        footprint.audit(file_of(b"\0" + capture()))


def test_a_text_packed_as_gzip_is_no_capture(file_of: Callable[[bytes], str]) -> None:
    with pytest.raises(InputError, match="neither maps, smaps nor pmap output"):
        footprint.audit(file_of(zlib.compress(SMAPS)))


@pytest.mark.parametrize(("size_bytes", "is_kept"), [(1 << 10, True), (17 << 20, False)])
def test_findings_of_which_there_are_too_many_are_left_out_with_a_note(size_bytes: int, is_kept: bool) -> None:  # noqa: FBT001 # a case
    text = os.urandom(size_bytes // 2).hex()
    finding = Finding("unused-library", "unused", "libx.so", text, 4096, Confidence.HIGH, (), "drop it")
    file = io.BytesIO()
    done = capture_processes(
        [os.getpid()], file, freeze=None, version="1", find=lambda _: (finding,),
        build_id_of=lambda *_: None, heap_of=lambda *_, **__: CapturedHeap(None, ()),
    )  # fmt: skip
    assert read_findings_of_capture(file.getvalue(), "x") == ({os.getpid(): (finding,)} if is_kept else {})
    told = json.loads(zipfile.ZipFile(file).read(MANIFEST))
    assert [process["is_frozen"] for process in told["processes"]] == [False]
    assert [note.detail for note in done.notes if note.slug == "process-not-searched"] == (
        [] if is_kept else ["the capture has more findings than one file holds: it was captured without findings"]
    )
