"""The cheap counters: what the texts say, and how seldom the expensive one is read."""

import os
import resource
import time
from pathlib import Path

import pytest

from footprint.model.over_time import ProcessCounters
from footprint.process.counters import CounterReader, parse_counters, parse_rollup

KIB = 1024
STATUS = b"""Name:\tserver
Umask:\t0022
State:\tS (sleeping)
VmPeak:\t  200000 kB
VmHWM:\t   90000 kB
VmRSS:\t   60000 kB
RssAnon:\t   50000 kB
RssFile:\t    8000 kB
RssShmem:\t    2000 kB
VmPTE:\t     300 kB
VmSwap:\t     700 kB
Threads:\t5
"""


def test_status_has_the_figures() -> None:
    private, resident = (50_000 + 700) * KIB, 60_000 * KIB
    found = parse_counters(STATUS)
    assert found == ProcessCounters(private, 300 * KIB, 2000 * KIB, resident, 90_000 * KIB, 5, file_bytes=8000 * KIB)


def test_the_peak_is_never_below_what_is_resident() -> None:
    # The kernel updates VmHWM when it removes pages.
    found = parse_counters(STATUS.replace(b"VmHWM:\t   90000", b"VmHWM:\t   50000"))
    assert found is not None
    assert found.peak_resident_bytes == 60_000 * KIB


def test_a_zombie_has_no_memory() -> None:
    assert parse_counters(b"Name:\tserver\nState:\tZ (zombie)\nThreads:\t1\n") is None


def test_a_kernel_before_4_5_does_not_divide_resident_memory() -> None:
    found = parse_counters(b"VmRSS:\t 100 kB\n")
    assert found == ProcessCounters(100 * KIB, 0, 0, 100 * KIB, 100 * KIB, 1)


def test_what_others_pay_is_in_the_rollup_since_linux_5_3() -> None:
    rollup = b"Pss:  9 kB\nPss_Anon:     400 kB\nAnonymous:  600 kB\nSwap:  50 kB\nSwapPss:   20 kB\n"
    assert parse_rollup(rollup, 50 * KIB) == (650 * KIB, (600 + 50 - 400 - 20) * KIB)
    assert parse_rollup(b"Pss:  9 kB\n", 0) is None


def test_swapped_pages_of_shared_memory_are_not_what_others_pay_of_anonymous_memory() -> None:
    # A mapping of shared memory adds its swapped pages to Swap, but not to SwapPss (fs/proc/task_mmu.c).
    rollup = b"Pss_Anon:  600 kB\nAnonymous:  600 kB\nSwap:  65556 kB\nSwapPss:   20 kB\n"
    assert parse_rollup(rollup, 20 * KIB) == (620 * KIB, 0)


class Texts:
    """The texts of a process, and how often each was read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("statm", b"1 2 3 4 5 6 7\n")
        self.write("status", STATUS)
        self.write("smaps_rollup", b"Pss_Anon:   30000 kB\nAnonymous:  50000 kB\nSwap: 700 kB\nSwapPss: 700 kB\n")
        self.write("maps", b"1000-2000 r-xp 0\n" * 3)
        (folder / "fd").mkdir()

    def write(self, name: str, text: bytes) -> None:
        with open(self.folder / name, "wb") as file:
            file.write(text)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[CounterReader, Texts]:
    texts = Texts(tmp_path)
    opened = os.open

    def open_(path: str, flags: int, dir_fd: int | None = None) -> int:
        return opened(tmp_path if path == "/proc/4711" else path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_)
    return CounterReader(4711), texts


def costs(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the processor time that each read of the rollup takes."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += seconds
        return now

    monkeypatch.setattr(time, "thread_time", clock)


def private(reader: CounterReader, now: float) -> int:
    found = reader.read(now)
    assert found is not None
    return found.private_bytes // KIB


def test_what_is_cow_shared_counts_by_shares_and_is_read_as_seldom_as_it_costs(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader_, texts = reader
    costs(monkeypatch, 0.010)
    # 50,700 KiB of its own, of which the others pay 20,000.
    assert private(reader_, 0) == 30_700
    # 10 ms are 0.2 % of 5 s. Until then the others pay 20,000 KiB, and then 1,700.
    texts.write("statm", b"2 2 3 4 5 6 7\n")
    texts.write("status", STATUS.replace(b"RssAnon:\t   50000", b"RssAnon:\t   60000"))
    texts.write("smaps_rollup", b"Pss_Anon:   58300 kB\nAnonymous:  60000 kB\nSwapPss: 700 kB\n")
    assert private(reader_, 4.9) == 40_700
    assert private(reader_, 5.1) == 59_000
    reader_.close()


@pytest.mark.parametrize(
    ("walked", "counted", "expected"),
    [
        (50_200, [50_000, 50_000], [50_200, 50_200]),
        (50_200, [50_000, 50_120, 50_300], [50_200, 50_200, 50_300]),  # what was late has come with what is new
        (50_200, [50_000, 40_000, 40_100], [50_200, 40_200, 40_200]),
        (49_900, [50_000, 50_300, 50_250, 50_000], [49_900, 50_200, 50_200, 50_000]),
    ],
)
def test_what_the_counters_have_late_counts_from_the_page_tables_until_it_comes(
    reader: tuple[CounterReader, Texts],
    monkeypatch: pytest.MonkeyPatch,
    walked: int,
    counted: list[int],
    expected: list[int],
) -> None:
    # Each thread keeps up to 64 page faults for itself before Linux 6.2, each processor some pages since.
    reader_, texts = reader
    costs(monkeypatch, 0.010)
    texts.write("smaps_rollup", b"Pss_Anon: %d kB\nAnonymous: %d kB\nSwapPss: 700 kB\n" % (walked, walked))
    sizes = []
    for second, anonymous in enumerate(counted):
        texts.write("statm", b"%d 2 3 4 5 6 7\n" % second)
        texts.write("status", STATUS.replace(b"RssAnon:\t   50000", b"RssAnon:\t   %d" % anonymous))
        sizes.append(private(reader_, second) - 700)
    assert sizes == expected
    reader_.close()


def test_what_changes_while_the_page_tables_are_walked_is_not_late(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader_, texts = reader
    costs(monkeypatch, 0.010)
    texts.write("smaps_rollup", b"Pss_Anon: 90000 kB\nAnonymous: 90000 kB\nSwapPss: 700 kB\n")
    status = iter([STATUS, STATUS.replace(b"RssAnon:\t   50000", b"RssAnon:\t   80000")])
    read = os.pread

    def pread(descriptor: int, size: int, offset: int) -> bytes:
        text = read(descriptor, size, offset)
        return next(status) if text == STATUS else text

    monkeypatch.setattr(os, "pread", pread)
    assert private(reader_, 0) == 50_700
    reader_.close()


def test_a_thousand_processes_divide_the_time_for_that(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader_, texts = reader
    costs(monkeypatch, 0.010)
    assert reader_.read(0, 1000) is not None
    texts.write("smaps_rollup", b"Pss_Anon:   48300 kB\nAnonymous:  50000 kB\nSwapPss: 700 kB\n")
    assert private(reader_, 4999) == 30_700
    assert private(reader_, 5001) == 50_700 - 1_700
    reader_.close()


def test_where_nothing_has_changed_only_statm_is_read(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, texts = reader
    costs(monkeypatch, 0.010)
    assert private(one, 0) == 30_700
    texts.write("status", b"")
    assert private(one, 1) == 30_700
    one.close()


def test_a_process_without_its_relatives_pays_nothing_of_what_it_shares(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader_, texts = reader
    costs(monkeypatch, 0.0)
    # By shares three others pay 15,000 KiB of 20,000 that four of them share. None of it is private.
    texts.write("smaps_rollup", b"Pss_Anon:   35000 kB\nAnonymous:  50000 kB\nSwapPss: 700 kB\n")
    assert private(reader_, 0) == 35_700
    reader_.learn_private(30_700 * KIB)
    assert private(reader_, 0) == 30_700
    # It writes to 4,000 KiB of it, which are then its own.
    texts.write("smaps_rollup", b"Pss_Anon:   38000 kB\nAnonymous:  50000 kB\nSwapPss: 700 kB\n")
    assert private(reader_, 1) == 34_700
    reader_.close()


def test_mappings_are_counted_where_the_address_space_has_another_size(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader_, texts = reader
    costs(monkeypatch, 0.0)

    def mappings(now: float) -> int:
        found = reader_.read(now)
        assert found is not None
        return found.mapping_count

    assert mappings(0) == 3
    texts.write("maps", b"1000-2000 r-xp 0\n" * 5)
    assert mappings(1) == 3
    texts.write("statm", b"9 2 3 4 5 6 7\n")
    assert mappings(2) == 5
    reader_.close()


def test_a_new_descriptor_alone_is_a_change(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Linux 6.2 shows the number of descriptors as the size of the folder.
    reader_, _ = reader
    costs(monkeypatch, 0.010)
    sizes = iter([7, 9])
    monkeypatch.setattr(os, "stat", lambda *_, **__: os.stat_result((0,) * 6 + (next(sizes),) + (0,) * 3))
    found = [reader_.read(now) for now in (0, 1)]
    assert [read.descriptor_count for read in found if read is not None] == [7, 9]
    reader_.close()


def test_a_process_that_has_ended_is_an_error(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader_, _ = reader

    def gone(*_: object) -> bytes:
        raise ProcessLookupError

    monkeypatch.setattr(os, "pread", gone)
    with pytest.raises(ProcessLookupError):
        reader_.read(0)
    reader_.close()


def test_a_user_in_thousands_of_groups_hides_no_memory(reader: tuple[CounterReader, Texts]) -> None:
    one, texts = reader
    groups = b"Groups:\t" + b" ".join(b"%d" % group for group in range(65_536)) + b" \n"
    texts.write("status", STATUS.replace(b"VmPeak", groups + b"VmPeak"))
    assert private(one, 0) == 30_700
    one.close()


def test_the_last_descriptors_are_left_for_audits(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = reader
    one.close()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="Too many open files"):
        CounterReader(4711)
    assert os.listdir("/proc/self/fd") == before


def test_where_the_rollup_may_not_be_read_or_has_no_shares_nothing_is_divided(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader_, texts = reader
    costs(monkeypatch, 0.001)
    seen = [(private(reader_, 0), reader_.is_divided)]
    texts.write("smaps_rollup", b"Pss: 9 kB\n")
    seen.append((private(reader_, 10), reader_.is_divided))
    os.unlink(texts.folder / "smaps_rollup")
    seen.append((private(reader_, 20), reader_.is_divided))
    assert seen == [(30_700, True), (50_700, False), (50_700, False)]
    reader_.close()
