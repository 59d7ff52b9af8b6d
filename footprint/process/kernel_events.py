"""Starts and ends of processes as the kernel reports them by netlink, of the whole machine: none is too short.

The process connector reports forks, executions and exits. taskstats reports each task at its exit, with its largest
resident memory. Both take CAP_NET_ADMIN in the first namespaces.

Source: drivers/connector/cn_proc.c, include/uapi/linux/cn_proc.h, kernel/taskstats.c and include/uapi/linux/taskstats.h
of Linux 6.18; netlink(7), Documentation/accounting/taskstats.rst.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, Self

_NETLINK_GENERIC: Final = 16
_NETLINK_CONNECTOR: Final = 11
_RECEIVE_BUFFER_FORCE: Final = 33
_BUFFER_BYTES: Final = 16 << 20
_MESSAGE_BYTES: Final = 1 << 16
_HEADER: Final = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_GENERIC: Final = struct.Struct("=BBH")
_ATTRIBUTE: Final = struct.Struct("=HH")  # length, type
_ERROR, _REQUEST, _ACKNOWLEDGE = 2, 1, 4
_FAMILY_CONTROLLER, _GET_FAMILY, _FAMILY_NAME, _FAMILY_ID = 16, 3, 2, 1
_TASKSTATS_GET, _REGISTER_CPUS = 1, 3
_OF_TASK, _STATISTICS = 4, 3
_CONNECTOR_MESSAGE: Final = struct.Struct(
    "=IIIIHHI"
)  # index, value, sequence, acknowledgement, length, flags, operation
_LISTEN: Final = 1
# In a message of the connector: after the headers of netlink (16) and connector (20), the event.
_EVENT_OFFSET: Final = 36
_EVENT: Final = struct.Struct("=IIQ")  # what, processor, time
_FORK, _EXEC, _EXIT = 1, 2, 0x80000000
# Offsets in struct taskstats, whose later versions only add members.
_COMM, _PID, _LIVED, _PEAK, _TGID = 80, 128, 144, 200, 368
_LEAST_BYTES, _TGID_VERSION = 216, 12


class Forked(NamedTuple):
    """A process was started.

    Attributes:
        parent_pid: The process that forked it.
        pid: The process.
    """

    parent_pid: int
    pid: int


class Executed(NamedTuple):
    """A process executes another program."""

    pid: int


class Exited(NamedTuple):
    """A process has ended.

    Attributes:
        pid: The process.
        status: How, as waitpid(2) has it.
    """

    pid: int
    status: int


class TaskEnd(NamedTuple):
    """What taskstats says of a task that has ended.

    Attributes:
        pid: The task.
        group_pid: The process that it belongs to; 0 where the kernel does not tell it.
        parent_pid: The parent of the process.
        name: The name of the task.
        peak_resident_bytes: The most resident memory of its address space.
        status: How it ended, as waitpid(2) has it.
        lived_ms: The time from its start to its end.
    """

    pid: int
    group_pid: int
    parent_pid: int
    name: str
    peak_resident_bytes: int
    status: int
    lived_ms: int = 0


def parse_process_event(message: bytes) -> Forked | Executed | Exited | None:
    """Read a message of the process connector; None for an event of a thread, and for all others."""
    if len(message) < _EVENT_OFFSET + _EVENT.size + 16:
        return None
    what, _, _ = _EVENT.unpack_from(message, _EVENT_OFFSET)
    first, second, third, fourth = struct.unpack_from("=4I", message, _EVENT_OFFSET + _EVENT.size)
    if what == _FORK:
        # Parent and its group, child and its group.
        return Forked(second, fourth) if third == fourth else None
    if what == _EXEC:
        return Executed(second)
    if what == _EXIT and first == second:
        return Exited(second, third)
    return None


def is_fork(message: bytes) -> bool:
    """Return whether a message says that a process or a thread was started."""
    return len(message) > _EVENT_OFFSET + 4 and struct.unpack_from("=I", message, _EVENT_OFFSET)[0] == _FORK


def parse_task_ends(message: bytes) -> Iterator[TaskEnd]:
    """Read the records of a message of taskstats; those of whole processes and what is damaged are left out."""
    for kind, body in _attributes(message, _HEADER.size + _GENERIC.size):
        if kind == _OF_TASK:
            for inner, record in _attributes(body, 0):
                if inner == _STATISTICS and len(record) >= _LEAST_BYTES:
                    yield _task_end(record)


def _task_end(record: bytes) -> TaskEnd:
    (version, status) = struct.unpack_from("=H2xI", record)
    pid, parent_pid = struct.unpack_from("=II", record, _PID)
    (lived_us,) = struct.unpack_from("=Q", record, _LIVED)
    (peak_kib,) = struct.unpack_from("=Q", record, _PEAK)
    has_group = version >= _TGID_VERSION and len(record) >= _TGID + 4
    group_pid = struct.unpack_from("=I", record, _TGID)[0] if has_group else 0
    name = record[_COMM : _COMM + 32].partition(b"\0")[0].decode("utf-8", "surrogateescape")
    return TaskEnd(pid, group_pid, parent_pid, name, peak_kib * 1024, status, lived_us // 1000)


def _attributes(data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, data[offset + _ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3


class KernelEvents:
    """Both sources, opened; a context manager.

    Args:
        has_starts: Whether starts are reported, too; else ends only.

    Raises:
        OSError: If the kernel does not allow it, or has neither.
    """

    def __init__(self, *, has_starts: bool = True) -> None:
        self.fork_count = 0
        self.lost_count = 0
        self._processes: socket.socket | None = None
        self._tasks = _socket(_NETLINK_GENERIC, 0)
        try:
            self._listen_to_tasks()
            if has_starts:
                self._processes = _socket(_NETLINK_CONNECTOR, 1)
                self._listen_to_processes(self._processes)
        except OSError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Listen no longer."""
        self._tasks.close()
        if self._processes is not None:
            self._processes.close()

    def read(self) -> Iterator[Forked | Executed | Exited | TaskEnd]:
        """Return what has happened: first the starts and ends, then what taskstats says of the ends."""
        for message in () if self._processes is None else self._messages(self._processes):
            self.fork_count += is_fork(message)
            event = parse_process_event(message)
            if event is not None:
                yield event
        for message in self._messages(self._tasks):
            yield from parse_task_ends(message)

    def _messages(self, source: socket.socket) -> Iterator[bytes]:
        while True:
            try:
                message = source.recv(_MESSAGE_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self.lost_count += 1
                continue
            yield message

    def _listen_to_tasks(self) -> None:
        family = b"TASKSTATS\0"
        answer = self._request(_FAMILY_CONTROLLER, _GET_FAMILY, _FAMILY_NAME, family, _REQUEST)
        attributes = dict(_attributes(answer, _HEADER.size + _GENERIC.size))
        if _FAMILY_ID not in attributes:
            raise OSError(errno.ENOENT, "this kernel has no taskstats")
        number = struct.unpack("=H", attributes[_FAMILY_ID][:2])[0]

        with open("/sys/devices/system/cpu/possible", "rb") as file:
            processors = file.read(256).strip() + b"\0"
        self._request(number, _TASKSTATS_GET, _REGISTER_CPUS, processors, _REQUEST | _ACKNOWLEDGE)

    def _request(self, kind: int, command: int, attribute: int, value: bytes, flags: int) -> bytes:
        """Send a request of generic netlink, and return the answer."""
        body = _GENERIC.pack(command, 1, 0) + _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), attribute) + value
        body += bytes(-len(body) % 4)
        self._tasks.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body)
        self._tasks.settimeout(2)
        answer = self._tasks.recv(_MESSAGE_BYTES)
        if _HEADER.unpack_from(answer)[1] == _ERROR:
            number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
            if number:
                raise OSError(number, os.strerror(number))
        self._tasks.settimeout(0)
        return answer

    def _listen_to_processes(self, processes: socket.socket) -> None:
        body = _CONNECTOR_MESSAGE.pack(1, 1, 0, 0, 4, 0, _LISTEN)
        processes.send(_HEADER.pack(_HEADER.size + len(body), 3, 0, 0, 0) + body)
        processes.settimeout(0)


def _socket(protocol: int, groups: int) -> socket.socket:
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    try:
        opened.bind((0, groups))
        opened.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCE, _BUFFER_BYTES)
    except OSError:
        opened.close()
        raise
    return opened
