"""The processes of a program that was started: what is ended with it, and what is not."""

import pytest

from footprint.process.launch import program
from footprint.process.launch.program import Members
from footprint.process.status import Stat


def stat(parent_pid: int, session: int, start_ticks: int) -> Stat:
    return Stat(b"work", "S", parent_pid, session, 0, start_ticks, 0)


def test_the_session_of_a_later_process_with_the_pid_of_the_program_is_not_that_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {100: stat(50, 100, 1), 101: stat(100, 100, 2), 102: stat(101, 102, 3), 103: stat(1, 100, 4)}
    monkeypatch.setattr(program, "processes", lambda: table)
    members = Members(100, adopts=False)
    assert set(members.alive(is_gone=False)) == {100, 101, 102, 103}
    # It has ended, and what it left behind is ended with it; no process gets its PID as long as its session is there.
    del table[100]
    assert set(members.alive(is_gone=True)) == {101, 102, 103}
    del table[101], table[103]
    table |= {100: stat(1, 100, 8), 104: stat(100, 100, 9)}
    assert set(members.alive(is_gone=True)) == {102}
