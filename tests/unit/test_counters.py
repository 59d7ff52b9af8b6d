"""The cheap counters: what the texts say, and how seldom the expensive one is read."""

import os
import resource
import time
from pathlib import Path

import pytest

from footprint.model.process_counters import ProcessCounters
from footprint.process.counters import CounterReader, parse_counters, parse_shared_bytes

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
    assert parse_counters(STATUS) == ProcessCounters(private, 300 * KIB, 2000 * KIB, resident, 90_000 * KIB, 5)


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
    assert parse_shared_bytes(rollup) == (600 + 50 - 400 - 20) * KIB
    assert parse_shared_bytes(b"Pss:  9 kB\n") is None


class Texts:
    """The texts of a process, and how often each was read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("statm", b"1 2 3 4 5 6 7\n")
        self.write("status", STATUS)
        self.write("smaps_rollup", b"Pss_Anon:   30700 kB\nAnonymous:  50700 kB\n")

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
    one, texts = reader
    costs(monkeypatch, 0.010)
    # 50,700 KiB of its own, of which the others pay 20,000.
    assert private(one, 0) == 30_700
    # 10 ms are 0.2 % of 5 s. Until then the others pay 20,000 KiB, and then 1,700.
    texts.write("statm", b"2 2 3 4 5 6 7\n")
    texts.write("status", STATUS.replace(b"RssAnon:\t   50000", b"RssAnon:\t   60000"))
    texts.write("smaps_rollup", b"Pss_Anon:   59000 kB\nAnonymous:  60700 kB\n")
    assert private(one, 4.9) == 40_700
    assert private(one, 5.1) == 59_000
    one.close()


def test_a_thousand_processes_divide_the_time_for_that(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, texts = reader
    costs(monkeypatch, 0.010)
    assert one.read(0, 1000) is not None
    texts.write("smaps_rollup", b"Pss_Anon:   59000 kB\nAnonymous:  60700 kB\n")
    assert private(one, 4999) == 30_700
    assert private(one, 5001) == 50_700 - 1_700
    one.close()


def test_where_nothing_has_changed_only_statm_is_read(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, texts = reader
    costs(monkeypatch, 0.010)
    assert private(one, 0) == 30_700
    texts.write("status", b"")
    assert private(one, 1) == 30_700
    one.close()


def test_a_process_that_has_ended_is_an_error(
    reader: tuple[CounterReader, Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = reader

    def gone(*_: object) -> bytes:
        raise ProcessLookupError

    monkeypatch.setattr(os, "pread", gone)
    with pytest.raises(ProcessLookupError):
        one.read(0)
    one.close()


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
    one, texts = reader
    costs(monkeypatch, 0.001)
    seen = [(private(one, 0), one.is_divided)]
    texts.write("smaps_rollup", b"Pss: 9 kB\n")
    seen.append((private(one, 10), one.is_divided))
    os.unlink(texts.folder / "smaps_rollup")
    seen.append((private(one, 20), one.is_divided))
    assert seen == [(30_700, True), (50_700, False), (50_700, False)]
    one.close()
