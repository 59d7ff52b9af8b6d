"""The budget of work of one answer: what draws from it, what it says when it is spent, and what raises it."""

import gzip
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import threading
import tracemalloc
from itertools import repeat
from pathlib import Path

import pytest

import footprint
from footprint.errors import InputError, LimitError, UsageError
from footprint.formats import saved_audit
from footprint.heap.formats import read_profile
from footprint.json import stream
from footprint.release.matching import is_same_program, named_owners, owner_names
from footprint.system.decompression import pieces_of
from footprint.system.limits import (
    Limits,
    answer,
    draw_bytes,
    draw_entries,
    limited,
    parse_limits,
    time_limit,
    unpacked,
)
from tests.ledgers import audit_of, ledger_row
from tests.sysroot import Sysroot

MIB = 1 << 20


@pytest.fixture
def sysroot(tmp_path: Path) -> Sysroot:
    return Sysroot(tmp_path)


def test_what_is_drawn_in_an_answer_adds_up_until_the_budget_is_spent() -> None:
    with limited(Limits(size_bytes=MIB, entry_count=3)):
        draw_entries(2, "one")
        draw_entries(1, "two")
        draw_bytes(MIB, "one")
        with pytest.raises(LimitError, match=r"^three: spent 4 of 3 entries; raise it with --limits entries=6$"):
            draw_entries(1, "three")
        spent = r"^four: spent 1.00 MiB of 1 MiB; raise it with --limits bytes=2MiB$"
        with pytest.raises(LimitError, match=spent):
            draw_bytes(1, "four")


def test_each_answer_has_a_budget_of_its_own_and_the_calls_within_it_share_it() -> None:
    @answer
    def part() -> None:
        draw_entries(600_000, "part")

    @answer
    def whole() -> None:
        part()
        part()

    part()
    part()
    with pytest.raises(LimitError, match="spent 1,200,000 of 1,048,576 entries"):
        whole()


def test_parts_with_a_budget_each_have_the_limits_of_the_answer() -> None:
    with limited(Limits(entry_count=3)):
        for _ in range(3):
            with limited():
                draw_entries(3, "part")
        with limited(), pytest.raises(LimitError, match="spent 4 of 3 entries"):
            draw_entries(4, "part")


def test_limits_are_raised_one_by_one() -> None:
    assert parse_limits("seconds=7") == Limits(seconds=7)
    assert parse_limits("bytes=4GiB, entries=5") == Limits(4 << 30, 5, is_raised=True)


@pytest.mark.parametrize(
    "text",
    ["", "4GiB", "bytes", "bytes=", "bytes=0", "bytes=4G", "entries=-1", "entries=1,entries=2", "seconds=1.5", "x=1"],
)
def test_limits_of_another_form_are_wrong_use(text: str) -> None:
    with pytest.raises(UsageError):
        parse_limits(text)


# --- what draws from it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("packed_bytes", "most_bytes"),
    [
        (1 << 10, MIB),  # 1 MiB of any ratio
        (16 << 10, 256 * (16 << 10)),  # as smaps of 1,500 threads, by zstd -19 or xz
        (200 << 10, 32 * MIB),  # as smaps of 30,000 mappings, by gzip
        (512 << 10, 32 * MIB),
        (2 * MIB, 64 * MIB),  # 32 times a large one
    ],
)
def test_what_compressed_bytes_may_become_grows_with_what_was_read(packed_bytes: int, most_bytes: int) -> None:
    pieces: list[int] = []
    with pytest.raises(LimitError, match=r"^trace: spent .* of compressed input; raise it with --limits bytes="):
        pieces.extend(map(len, unpacked(repeat(bytes(1 << 18)), packed_bytes, "trace")))
    assert most_bytes - (1 << 18) < sum(pieces) <= most_bytes


THREAD = """\
{start:x}-{guard:x} ---p 00000000 00:00 0 \n{no_counters}{guard:x}-{end:x} rw-p 00000000 00:00 0 \n{counters}"""


TOUCHED = ["Rss", "Pss", "Pss_Dirty", "Private_Dirty", "Referenced", "Anonymous"]
NOTHING = [
    "Shared_Clean",
    "Shared_Dirty",
    "Private_Clean",
    "KSM",
    "LazyFree",
    "AnonHugePages",
    "ShmemPmdMapped",
    "FilePmdMapped",
    "Shared_Hugetlb",
    "Private_Hugetlb",
    "Swap",
    "SwapPss",
    "Locked",
]


def smaps_of_threads(count: int) -> bytes:
    """Return smaps of so many stacks, each with its guard, of which some have 8 and some 12 KiB."""

    def lines(size: int, touched: int) -> str:
        sizes = {"Size": size, "KernelPageSize": 4, "MMUPageSize": 4}
        sizes |= dict.fromkeys(TOUCHED, touched) | dict.fromkeys(NOTHING, 0)
        return "".join(f"{name + ':':16}{kib:8} kB\n" for name, kib in sizes.items())

    texts = []
    for number in range(count):
        start = 0x7F0000000000 + number * 0x801000
        counters, no_counters = lines(8192, 8 + 4 * (number * number % 7 == 1)), lines(4, 0)
        guard, end = start + 0x1000, start + 0x801000
        texts.append(THREAD.format(start=start, guard=guard, end=end, counters=counters, no_counters=no_counters))
    return "".join(texts).encode()


def test_a_text_of_many_threads_that_was_compressed_well_is_read() -> None:
    text = smaps_of_threads(3000)
    packed = lzma.compress(text, preset=6)
    assert 128 < len(text) / len(packed) < 256
    assert b"".join(pieces_of(packed, "smaps")) == text


def test_a_raised_limit_allows_any_ratio() -> None:
    packed = gzip.compress(b"+ 0\n" * (10 * MIB), 1)
    with pytest.raises(LimitError):
        sum(map(len, pieces_of(packed, "trace")))
    with limited(parse_limits("bytes=64MiB")):
        assert sum(map(len, pieces_of(packed, "trace"))) == 40 * MIB


def test_links_to_the_folder_itself_multiply_no_pattern(sysroot: Sysroot) -> None:
    for number in range(40):
        sysroot.symlink(f"/d/{number:02}", ".")
    sysroot.file("/etc/ld.so.conf", b"include /d/*/*/*/*/*/*/x\n/last\n")
    sysroot.file("/d/x", b"/first\n")
    sysroot.library("/first/liba.so")
    sysroot.program("liba.so")
    # Each part of the pattern lists the one folder again: 6 times its 41 names, and the lines of two files.
    with limited(Limits(entry_count=6 * 41 + 20)):
        assert sysroot.paths() == ["/first/liba.so"]


def test_folders_that_multiply_a_pattern_are_drawn_from_the_budget(sysroot: Sysroot) -> None:
    for one in range(20):
        for two in range(20):
            (sysroot.root / f"d/{one}/{two}").mkdir(parents=True)
    sysroot.file("/etc/ld.so.conf", b"include /d/*/*/x\n")
    sysroot.program("liba.so")
    with limited(Limits(entry_count=400)), pytest.raises(LimitError, match="of 400 entries"):
        sysroot.link()


def test_a_pipe_without_end_is_read_no_further_than_its_beginning() -> None:
    command = [sys.executable, "-m", "footprint", "audit", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        sent = 0
        try:
            for text in repeat(b"y\n" * 4096, 10_000):
                sent += os.write(process.stdin.fileno(), text)
        except BrokenPipeError:
            pass
        said = process.stderr.read()
    assert (process.returncode, sent < 4 * MIB) == (3, True)
    assert said == (
        b"footprint: standard input: offset 0x0: neither maps, smaps nor pmap output: no line of its beginning is a "
        b"mapping\n"
    )


def test_the_command_takes_limits_and_says_which_one_is_spent(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"00400000-00401000 r-xp 00000000 fe:00 77 /bin/p\n" * 100_000))
    command = [sys.executable, "-m", "footprint", "audit", str(path), "--limits", "bytes=1MiB"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert re.match(
        rf"footprint: {path}: spent .* MiB of 1 MiB for .*; raise it with --limits bytes=2MiB\n", done.stderr
    )


# Long names of files: each of them took half a minute and more where the time grew with the square of the length.
LONG_NAMES = ["lib" + "1." * 40_000 + ".sox", "libz.so" + ".1" * 40_000 + "x", "a" + "-1" * 40_000 + "x"]


@pytest.mark.parametrize("name", LONG_NAMES, ids=["number", "version", "program"])
def test_a_long_file_name_is_compared_in_time(name: str) -> None:
    one, other = (audit_of(ledger_row(f"/lib/{each}", 4096)) for each in (name, "libother.so.1"))
    with time_limit(20):
        assert owner_names(one, other) == {}
        assert named_owners(name, one) == {f"/lib/{name}"}
        assert not is_same_program(name, "other")


# --- time -------------------------------------------------------------------------------------------------------------


def test_a_match_that_would_take_for_ever_is_given_up() -> None:
    with pytest.raises(UsageError, match="too slow"), time_limit(0.1, UsageError("too slow")):
        re.search("(a+)+$", "a" * 64 + "b")


def test_spent_time_is_told_as_the_other_limits() -> None:
    spent = r"^the answer: spent 0.1 of 0.1 seconds of processor time; raise it with --limits seconds=0.2$"
    with pytest.raises(InputError, match=spent), time_limit(0.1):
        re.search("(a+)+$", "a" * 64 + "b")


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
def test_afterwards_the_signal_and_the_timer_are_what_they_were(handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGVTALRM, handler)
    try:
        with time_limit(60):
            assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0
        assert signal.getsignal(signal.SIGVTALRM) == handler
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)


def test_within_a_limited_time_another_limit_ends_alone() -> None:
    with time_limit(60):
        with time_limit(30):
            assert 0 < signal.getitimer(signal.ITIMER_VIRTUAL)[0] < 45
        assert 45 < signal.getitimer(signal.ITIMER_VIRTUAL)[0] < 61


def test_in_another_thread_nothing_is_limited() -> None:
    result: list[bool] = []

    def match() -> None:
        with time_limit(60):
            result.append(signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0))

    thread = threading.Thread(target=match)
    thread.start()
    thread.join()
    assert result == [True]


def test_library_calls_have_a_budget(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"00400000-00401000 r-xp 00000000 fe:00 77 /bin/p\n" + b"\n" * (33 * MIB), 1))
    with pytest.raises(LimitError, match="of compressed input"):
        footprint.audit(path)


_AUDIT_BEGINS = b'{"schema": "footprint/1", "totals": {}, "ledger": ['


@pytest.mark.parametrize("place", [b"", b'], "objects": [', b'], "other": ['])
@pytest.mark.parametrize("value", [b"{}", b"[]", b"1", b'"a1"', b'{"a":"bcdefg"}'])
def test_a_saved_audit_of_short_values_is_refused_before_it_fills_the_memory(
    place: bytes, value: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_audit, "_MOST_HELD_BYTES", MIB)
    monkeypatch.setattr(stream, "_MOST_VALUE_CHARS", MIB >> 3)
    text = _AUDIT_BEGINS + place + (value + b",") * (2 * MIB // len(value)) + value + b"]}"
    tracemalloc.start()
    with pytest.raises(InputError):
        saved_audit.parsed_answer(text, "a")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 14 * MIB  # As one, they are 10 to 150 MiB.


def test_the_rows_of_a_saved_ledger_take_no_more_memory_than_their_text() -> None:
    row = {"owner": "a", "kind": "heap", "section": None, "symbol": "v" * 9, "name": "v" * 9, "bytes": 4096}
    row |= dict.fromkeys(("mapped_bytes", "shared_bytes", "sole_pages"), 0) | {"pages": None, "relocated_bytes": None}
    row |= {"is_writable": False, "evidence": "measured", "attribution": "name"}
    text = _AUDIT_BEGINS + b",\n".join([json.dumps(row).encode()] * 20_000) + b"]}"
    tracemalloc.start()
    assert len(saved_audit.parsed_answer(text, "a")["ledger"]) == 20_000
    held_bytes, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes < 1.5 * len(text)
    assert peak_bytes < held_bytes + 8 * MIB


@pytest.mark.parametrize(
    ("head", "line", "bytes_at_peak"),
    [
        (b"v 1 3\ns 1 f\ni 1 0 1\nt 1 0\na 8 1\n", b"+ 0\n", 8 << 16),
        (b"heap profile: 1: 8 [1: 8] @ heapprofile\n 1: 8 [1: 8] @ 0x1\n", b"\n", 8),
    ],
    ids=["heaptrack", "gperftools"],
)
def test_a_line_of_a_profile_that_is_repeated_a_hundred_thousand_times_is_one_step_each(
    head: bytes, line: bytes, bytes_at_peak: int
) -> None:
    # A step for each pair of lines would take minutes.
    profile = read_profile(head + line * (1 << 16), "the profile")
    assert max(snapshot.live_bytes for snapshot in profile.snapshots) == bytes_at_peak
