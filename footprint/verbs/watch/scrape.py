"""The figures of a watch for whoever asks by HTTP, such as Prometheus.

It answers between two ticks, in the only thread: a second one would keep footprint from adopting orphans of a program.
It never waits for a connection: each turn reads and sends what the kernel takes at once.

A page of a stranger may lead a browser here: its name then has the address of this machine (DNS rebinding). So the
Host of a request must be an address, `localhost`, the name of this machine, or what the user listens at.

Source: RFC 9112, RFC 9110 section 15.5.20.
"""

import ipaddress
import re
import socket
import time
from contextlib import suppress
from typing import Final

from footprint.errors import AccessError, UsageError, cause_of
from footprint.formats.document import About
from footprint.formats.metrics import openmetrics
from footprint.series.timeline import Timeline
from footprint.text.escape import shortened
from footprint.verbs.watch.metrics import timeline_metrics

_PORT: Final = re.compile(r"[0-9]{1,5}")
_HOST: Final = re.compile(rb"^host:[ \t]*([^\r\n]*?)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_PATIENCE_SECONDS: Final = 5
_MOST_REQUEST_BYTES: Final = 8192
_MOST_CONNECTIONS: Final = 32
_MOST_AT_ONCE: Final = 64
_NOT_HERE: Final = b"not a name of this machine: name it in --listen, or use an address\n"
_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class _Connection:
    """A connection: what it has sent so far, and what is still to be sent to it."""

    def __init__(self, peer: socket.socket, now_seconds: float) -> None:
        peer.settimeout(0)
        self.peer = peer
        self.end_seconds = now_seconds + _PATIENCE_SECONDS
        self.request = b""
        self.answer: memoryview | None = None

    def is_asking(self) -> bool:
        """Receive what is there; return whether a request is whole.

        Raises:
            OSError: If the connection broke.
        """
        if self.answer is not None:
            return False
        with suppress(BlockingIOError):
            piece = self.peer.recv(_MOST_REQUEST_BYTES)
            self.request += piece
            return not piece or b"\r\n\r\n" in self.request or len(self.request) >= _MOST_REQUEST_BYTES
        return False

    def is_done(self) -> bool:
        """Send what the kernel takes; return whether that was all.

        Raises:
            OSError: If the connection broke.
        """
        if self.answer is None:
            return False
        with suppress(BlockingIOError):
            self.answer = self.answer[self.peer.send(self.answer) :]
        return not self.answer


class Listener:
    """Listens at an address.

    Args:
        address: Such as `127.0.0.1:9123`.

    Raises:
        AccessError: If it is taken.
        UsageError: If it is no address.
    """

    def __init__(self, address: str) -> None:
        host, colon, port = address.rpartition(":")
        if not colon or not host or not _PORT.fullmatch(port) or int(port) > 65535:
            raise UsageError(f"{shortened(address, 80)!r} is no address to listen at: write it like 127.0.0.1:9123")
        try:
            self._socket = socket.create_server(
                (host.strip("[]"), int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET
            )
        except OSError as error:
            raise AccessError(address, cause_of(error)) from error
        self._socket.settimeout(0)
        self._names = {"localhost", socket.gethostname().lower(), host.strip("[]").lower()}
        self._connections: list[_Connection] = []

    @property
    def port(self) -> int:
        """Return the port, which the kernel chooses for 0."""
        return int(self._socket.getsockname()[1])

    def answer(self, timeline: Timeline) -> None:
        """Accept who connects, and go on with those who are connected; nobody is waited for."""
        now_seconds = time.monotonic()
        for _ in range(_MOST_AT_ONCE):
            try:
                peer, _ = self._socket.accept()
            except OSError:
                break
            self._connections.append(_Connection(peer, now_seconds))
            if len(self._connections) > _MOST_CONNECTIONS:
                self._go_on(timeline, now_seconds)
            # Who has been silent longest gives way.
            for silent in self._connections[:-_MOST_CONNECTIONS]:
                silent.end_seconds = now_seconds
        self._go_on(timeline, now_seconds)

    def _go_on(self, timeline: Timeline, now_seconds: float) -> None:
        for connection in list(self._connections):
            is_over = now_seconds >= connection.end_seconds
            with suppress(OSError):
                if connection.is_asking():
                    connection.answer = memoryview(self._answer_to(connection.request, timeline))
                is_over = connection.is_done() or is_over
                if not is_over:
                    continue
            connection.peer.close()
            self._connections.remove(connection)

    def _answer_to(self, request: bytes, timeline: Timeline) -> bytes:
        body = b""
        host = _HOST.search(request)
        if not request.startswith(b"GET "):
            status = "405 Method Not Allowed"
        elif host is not None and not self._is_here(host[1].decode("latin-1")):
            status, body = "421 Misdirected Request", _NOT_HERE
        else:
            status, body = "200 OK", openmetrics(timeline_metrics(timeline), About("watch", "")).encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: {_TYPE}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        return head.encode() + body

    def _is_here(self, host: str) -> bool:
        """Return whether a Host is a name of this machine or any address."""
        name = re.sub(r":[0-9]*\Z", "", host).strip("[]").lower()
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True

    def close(self) -> None:
        """Listen no longer."""
        for connection in self._connections:
            connection.peer.close()
        self._socket.close()
