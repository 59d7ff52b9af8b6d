"""Hostile captures: whatever happens to one, it is refused with one error, or read as it was written."""

import contextlib
import copy
import io
import json
import os
import tempfile
import zipfile
from functools import cache
from itertools import pairwise
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

import footprint
from footprint.errors import FootprintError, InputError, Note
from footprint.model.heap_account import AllocatorAccount
from footprint.process.capture import _Recording, _Writer, read_capture
from footprint.process.mappings import Mapping, MemoryMap, ThreadStacks
from footprint.process.maps_text import parse_maps
from footprint.process.pages import PageRange, page_lines, read_page_lines
from footprint.process.snapshot import CapturedHeap, FileFacts, Snapshot

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SMAPS = b"""\
00400000-00480000 rw-p 00010000 fe:00 77 /usr/bin/demo
Size:                512 kB
Rss:                 320 kB
Anonymous:           320 kB
VmFlags: rd wr mr mw me ac
7ffc00000000-7ffc00020000 rw-p 00000000 00:00 0 [stack]
Size:                128 kB
Rss:                  64 kB
Anonymous:            64 kB
VmFlags: rd wr mr mw me gd ac
"""
TEXTS = {
    "status": b"Name:\tdemo\nVmSize:\t  640 kB\nVmPTE:\t  44 kB\nThreads:\t2\n",
    "smaps": SMAPS,
    "smaps_rollup": b"00400000-7ffc00020000 ---p 00000000 00:00 0 [rollup]\nRss: 384 kB\nAnonymous: 384 kB\n",
}


@cache
def sound() -> bytes:
    """Return a capture of one small process."""
    memory = parse_maps(SMAPS, "pid 4711")
    snapshot = Snapshot(
        source="pid 4711",
        pid=4711,
        is_live=True,
        command="demo",
        memory=memory,
        rollup=None,
        status=None,
        thread_stacks=ThreadStacks((0x7FFC0001FF00,), ((0x7FFC0001F000, 0x7FFC00020000),)),
        pages={0x400000: (PageRange(0x400000, 0x440000), PageRange(0x450000, 0x460000))},
        page_bytes=PAGE_BYTES,
        host={},
        notes=(),
        files={("fe:00", 77, "/usr/bin/demo"): FileFacts(4096, "0123")},
        captured_heap=CapturedHeap(
            AllocatorAccount("glibc", 1, 3, 1000, 48, 2048, 3096, 512, 0, 0, 1024, 0, ("a heap lies in another one",)),
            (Note("allocator-unread", "pid 4711", "a heap lies in another one"),),
        ),
    )
    files = [{"path": "/usr/bin/demo", "inode": 77, "device": "fe:00", "size_bytes": 4096, "build_id": "0123"}]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        writer = _Writer(archive)
        recording = _Recording(snapshot, TEXTS, 99, is_frozen=True, notes=(), captured_at="2026-11-27T19:40:00Z")
        writer.store(recording, files, ())
        writer.finish("1.2.3", None)
    return file.getvalue()


@cache
def facts() -> tuple[Snapshot, ...]:
    return read_capture(sound(), "demo.capture")


def read(data: bytes) -> tuple[Snapshot, ...] | None:
    """Return the processes, or None where the capture is refused; any other exception is a failed test."""
    try:
        return read_capture(data, "demo.capture")
    except InputError as error:
        if error.file == "demo.capture":
            return None
        raise


# --- the bytes --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 1 << 16), st.integers(1, 255))
def test_a_capture_with_any_byte_changed_is_refused_or_read_as_it_was(at: int, change: int) -> None:
    data = bytearray(sound())
    data[at % len(data)] ^= change
    found = read(bytes(data))
    assert found is None or found == facts()


def test_every_byte_matters_or_does_not_but_none_of_them_deceives() -> None:
    for at in range(len(sound())):
        for change in (0x01, 0x80, 0xFF):
            data = bytearray(sound())
            data[at] ^= change
            found = read(bytes(data))
            assert found is None or found == facts(), (at, change)


def test_a_capture_cut_anywhere_is_refused() -> None:
    assert all(read(sound()[:length]) is None for length in range(len(sound())))


@given(st.integers(0, 1 << 16), st.integers(0, 300), st.binary(max_size=300))
def test_a_capture_with_any_bytes_replaced_is_refused_or_read_as_it_was(at: int, lost: int, put: bytes) -> None:
    data = bytearray(sound())
    at %= len(data)
    data[at : at + lost] = put
    found = read(bytes(data))
    assert found is None or found == facts()


@given(st.binary(max_size=400))
@example(b"PK\x05\x06" + bytes(18))
def test_any_bytes_are_refused(data: bytes) -> None:
    assert read(data) is None
    assert read(b"PK\x03\x04" + data) is None


# --- the JSON ---------------------------------------------------------------------------------------------------------


@cache
def members() -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(sound())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def with_members(changed: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in (members() | changed).items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return file.getvalue()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from([4711, 1 << 64, "smaps", "maps", "pages", "footprint-capture/1", "footprint-capture/2"]),
    lambda value: st.lists(value, max_size=3) | st.dictionaries(st.text(max_size=5), value, max_size=3),
    max_leaves=5,
)


def places(value: Any, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:  # noqa: ANN401 # it is JSON
    """Return the way to every value of a document but itself."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in ((*way, key), *places(value[key], (*way, key)))]


@given(st.data(), JSON)
def test_a_capture_with_any_value_replaced_or_taken_out_is_refused_or_read(data: st.DataObject, value: object) -> None:
    manifest = copy.deepcopy(json.loads(members()["footprint-capture.json"]))
    *way, last = data.draw(st.sampled_from(places(manifest)))
    holder = manifest
    for key in way:
        holder = holder[key]
    if data.draw(st.booleans()):
        holder[last] = value
    else:
        del holder[last]
    found = read(with_members({"footprint-capture.json": json.dumps(manifest).encode()}))
    assert found is None or all(isinstance(one, Snapshot) for one in found)


@given(st.sampled_from(["page_bytes", "pages", "status", "smaps", "files", "thread_stack_addrs"]), st.data())
def test_what_is_read_of_a_hostile_capture_can_be_audited(what: str, data: st.DataObject) -> None:
    manifest = copy.deepcopy(json.loads(members()["footprint-capture.json"]))
    changed: dict[str, bytes] = {}
    if what == "page_bytes":
        manifest["host"]["page_bytes"] = 1 << data.draw(st.integers(9, 24))
    elif what == "thread_stack_addrs":
        manifest["processes"][0][what] = data.draw(st.lists(st.integers(0, (1 << 64) - 1) | st.just(0x400000)))
    elif what == "files":
        manifest["processes"][0][what][0] |= {
            "path": data.draw(st.text()),
            "build_id": data.draw(st.none() | st.text()),
        }
    elif what == "pages":
        borders = sorted(data.draw(st.lists(st.integers(0x400, 0x480), unique=True, min_size=2)))
        ranges = [PageRange(start << 12, end << 12) for start, end in pairwise(borders)]
        changed["4711/pages"] = b"".join(page_lines({0x400000: tuple(ranges)}))
    else:
        text = bytearray(TEXTS[what])
        for _ in range(data.draw(st.integers(1, 4))):
            text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.sampled_from(b"0123456789abcdef k-\n"))
        changed[f"4711/{what}"] = bytes(text)
    with tempfile.NamedTemporaryFile() as file:
        file.write(with_members({**changed, "footprint-capture.json": json.dumps(manifest).encode()}))
        file.flush()
        with contextlib.suppress(FootprintError):
            assert footprint.audit(file.name).pid == 4711


@given(st.binary(max_size=100) | JSON.map(lambda value: json.dumps(value).encode()))
def test_a_capture_with_any_document_in_it_is_refused(text: bytes) -> None:
    assert read(with_members({"footprint-capture.json": text})) is None


@given(st.sampled_from(["status", "smaps", "smaps_rollup", "pages"]), st.binary(max_size=200))
def test_a_capture_with_any_text_in_it_is_refused_or_read(name: str, text: bytes) -> None:
    found = read(with_members({f"4711/{name}": text}))
    assert found is None or len(found) == 1


# --- the pages --------------------------------------------------------------------------------------------------------


@st.composite
def maps_with_pages(draw: st.DrawFn) -> tuple[MemoryMap, dict[int, tuple[PageRange, ...]]]:
    """Draw mappings, and in some of them ranges of pages."""
    mappings, pages = [], {}
    at = 0
    for _ in range(draw(st.integers(0, 4))):
        start = at + draw(st.integers(0, 1 << 30))
        at = start
        ranges = []
        for _ in range(draw(st.integers(0, 5))):
            first = at + draw(st.integers(0, 1 << 20))
            at = first + draw(st.integers(1, 1 << 20))
            ranges.append(PageRange(first * PAGE_BYTES, at * PAGE_BYTES, draw(st.booleans())))
        at += draw(st.integers(1, 100))
        mappings.append(Mapping(start * PAGE_BYTES, at * PAGE_BYTES, "rw-p"))
        if draw(st.booleans()):
            pages[start * PAGE_BYTES] = tuple(ranges)
    return MemoryMap("smaps", tuple(mappings)), pages


@given(maps_with_pages(), st.integers(1, 50))
def test_pages_that_are_written_and_read_again_are_the_same(
    drawn: tuple[MemoryMap, dict[int, tuple[PageRange, ...]]], piece_bytes: int
) -> None:
    memory, pages = drawn
    text = b"".join(page_lines(pages))
    pieces = [text[at : at + piece_bytes] for at in range(0, len(text), piece_bytes)]
    assert read_page_lines(pieces, memory, PAGE_BYTES, "demo.capture", "4711/pages") == pages


@given(st.lists(st.from_regex(rb"[0-9a-f]{1,7}(-[0-9a-f]{1,7}( swapped)?)?|4[0-8]0000-4[0-8]0000", fullmatch=True)))
def test_pages_that_are_read_lie_in_their_mapping_in_order(lines: list[bytes]) -> None:
    memory = parse_maps(SMAPS, "pid 4711")
    text = b"\n".join([b"400000", *lines])
    try:
        pages = read_page_lines([text], memory, PAGE_BYTES, "demo.capture", "4711/pages")
    except InputError:
        return
    for start_addr, ranges in pages.items():
        end_addr = next(mapping.end_addr for mapping in memory.mappings if mapping.start_addr == start_addr)
        borders = [start_addr, *(border for span in ranges for border in span[:2]), end_addr]
        assert borders == sorted(borders)
        assert all(span.start_addr < span.end_addr for span in ranges)
