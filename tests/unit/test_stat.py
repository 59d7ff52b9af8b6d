"""What `/proc/PID/stat` says: whose child a process is, when it started, and what it does."""

import os
import signal
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.process.status import Stat, parse_stat, processes, read_stat, stands_still

# As Linux 6.18 printed it.
LINE = (
    b"4711 (sleep) S 4700 4711 4690 34816 4711 4194304 115 0 0 0 0 0 0 0 20 0 1 0 5170894 2949120 466 "
    b"18446744073709551615 94080561041408 94080561060201 140723390066976 0 0 0 0 0 0 1 0 0 17 3 0 0 0 0 0 "
    b"94080561073424 94080561074736 94080592211968 140723390075330 140723390075341 140723390075341 140723390078955 0\n"
)
SLEEPING = Stat(
    b"sleep",
    "S",
    parent_pid=4700,
    session=4690,
    flags=4194304,
    start_ticks=5170894,
    pending=0,
    stack_addr=140723390066976,
)
NOBODY = (1 << 22) + 1  # more than the kernel ever gives


def test_a_line_tells_name_state_parent_session_flags_start_and_pending_signals() -> None:
    assert parse_stat(LINE) == SLEEPING


@pytest.mark.parametrize(
    "name",
    [b"", b"(", b")", b") ", b"(sd-pam)", b"odd) R 100 (", b"Web Content", b"\xff\xfe", b"a\\nb", b"tmux: server"],
)
def test_a_name_may_hold_anything_parentheses_too(name: bytes) -> None:
    assert parse_stat(LINE.replace(b"sleep", name)) == SLEEPING._replace(name=name)


@pytest.mark.parametrize(("thread_count", "has_ended"), [(1, True), (4, False)])
def test_a_process_whose_main_thread_alone_has_ended_is_no_zombie(thread_count: int, *, has_ended: bool) -> None:
    stat = parse_stat(LINE.replace(b") S ", b") Z ").replace(b" 20 0 1 0 ", b" 20 0 %d 0 " % thread_count))
    assert stat is not None
    assert (stat.thread_count, stat.has_ended) == (thread_count, has_ended)


def test_a_task_that_ends_is_in_no_session() -> None:
    stat = parse_stat(LINE.replace(b" 4711 4690 ", b" -1 -1 "))
    assert stat == SLEEPING._replace(session=-1)


@pytest.mark.parametrize("line", [b"", b"\n", b"4711 (sleep", b"4711 (sleep) ", LINE[:60], LINE.replace(b")", b"")])
def test_what_is_cut_or_no_such_line_tells_nothing(line: bytes) -> None:
    assert parse_stat(line) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_error(text: bytes) -> None:
    assert parse_stat(text) is None
    assert isinstance(parse_stat(b"1 (" + text + LINE[LINE.index(b") ") :]), Stat)


@pytest.mark.parametrize(
    ("state", "is_still", "is_dead"),
    [
        *(("R", False, False), ("S", False, False), ("D", False, False), ("I", False, False)),
        *(("T", True, False), ("t", True, False), ("Z", True, True), ("X", True, True)),
    ],
)
def test_the_state_tells_who_stands_still_and_who_is_dead(state: str, *, is_still: bool, is_dead: bool) -> None:
    stat = SLEEPING._replace(state=state)
    assert (stat.is_still, stat.is_dead) == (is_still, is_dead)


def test_flags_tell_who_is_beyond_its_exit_and_who_dies_of_a_signal() -> None:
    assert SLEEPING._replace(flags=0x4).is_dead
    assert SLEEPING._replace(flags=0x400).is_killed
    assert SLEEPING._replace(pending=1 << (signal.SIGKILL - 1)).is_killed
    assert not SLEEPING._replace(pending=1 << (signal.SIGTERM - 1)).is_killed
    assert not SLEEPING.is_killed


def test_this_process_and_its_threads_are_found() -> None:
    stat = read_stat(os.getpid())
    assert stat is not None
    assert (stat.parent_pid, stat.session, stat.is_still) == (os.getppid(), os.getsid(0), False)
    thread = read_stat(os.getpid(), threading.get_native_id())
    assert thread is not None
    assert (thread.state, thread.start_ticks >= stat.start_ticks) == ("R", True)
    found = processes()
    assert found[os.getpid()].start_ticks == stat.start_ticks
    assert list(found) == sorted(found)


def test_who_is_gone_tells_nothing_and_stands_still() -> None:
    assert read_stat(NOBODY) is None
    assert read_stat(os.getpid(), NOBODY) is None
    assert stands_still(NOBODY)
    assert not stands_still(os.getpid())
