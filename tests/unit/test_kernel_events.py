"""What the kernel reports of starts and ends, from the bytes of its messages."""

import struct

from footprint.process.kernel_events import (
    Executed,
    Exited,
    Forked,
    TaskEnd,
    is_fork,
    parse_process_event,
    parse_task_ends,
)

FORK, EXEC, EXIT, COMM = 1, 2, 0x80000000, 0x200


def event(what: int, *words: int) -> bytes:
    """Return a message of the process connector: its headers have 36 bytes, those of an event 16."""
    return bytes(36) + struct.pack("=IIQ", what, 0, 123) + struct.pack("=6I", *words, *[0] * (6 - len(words)))


def test_a_fork_has_the_parent_and_the_child() -> None:
    assert parse_process_event(event(FORK, 10, 10, 20, 20)) == Forked(10, 20)
    # A thread of the parent forks: the process is its group.
    assert parse_process_event(event(FORK, 11, 10, 20, 20)) == Forked(10, 20)
    # A new thread is no process, but the kernel counts it.
    assert parse_process_event(event(FORK, 10, 10, 21, 10)) is None
    assert is_fork(event(FORK, 10, 10, 21, 10))
    assert not is_fork(event(EXEC, 10, 10))


def test_an_execution_and_an_end_have_the_process() -> None:
    assert parse_process_event(event(EXEC, 20, 20)) == Executed(20)
    assert parse_process_event(event(EXIT, 20, 20, 256, 17, 10, 10)) == Exited(20, 256)
    assert parse_process_event(event(EXIT, 21, 20, 0, 17, 10, 10)) is None


def test_other_events_and_short_messages_are_left_out() -> None:
    assert parse_process_event(event(COMM, 20, 20)) is None
    assert parse_process_event(b"") is None
    assert parse_process_event(event(FORK, 10, 10, 20, 20)[:60]) is None
    assert not is_fork(b"")


def attribute(kind: int, body: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(body), kind) + body + bytes(-len(body) % 4)


def statistics(version: int = 16, length: int = 400) -> bytes:
    """Return a struct taskstats of the process 4711 that exited with 3 after it held 100,000 KiB."""
    data = bytearray(400)
    struct.pack_into("=H2xI", data, 0, version, 3 << 8)
    data[80:84] = b"work"
    struct.pack_into("=II", data, 128, 4711, 1)
    struct.pack_into("=Q", data, 144, 12_345)  # microseconds
    struct.pack_into("=Q", data, 200, 100_000)
    struct.pack_into("=I", data, 368, 4700)
    return bytes(data[:length])


def message(*attributes: bytes) -> bytes:
    return bytes(20) + b"".join(attributes)


def test_the_end_of_a_task_has_its_largest_memory() -> None:
    of_task = attribute(4, attribute(1, struct.pack("=I", 4711)) + attribute(3, statistics()))
    assert list(parse_task_ends(message(of_task))) == [TaskEnd(4711, 4700, 1, "work", 100_000 * 1024, 3 << 8, 12)]


def test_kernels_before_version_12_do_not_name_the_process_of_a_task() -> None:
    for record in (statistics(version=11), statistics(length=328)):
        (end,) = parse_task_ends(message(attribute(4, attribute(3, record))))
        assert (end.pid, end.group_pid) == (4711, 0)


def test_records_of_whole_processes_and_damaged_ones_are_left_out() -> None:
    assert list(parse_task_ends(message(attribute(5, attribute(3, statistics()))))) == []
    assert list(parse_task_ends(message(attribute(4, attribute(3, statistics(length=200)))))) == []
    assert list(parse_task_ends(message(struct.pack("=HH", 2, 4) + bytes(40)))) == []
    assert list(parse_task_ends(b"")) == []
