"""The figures of a watch for whoever asks by HTTP, such as Prometheus.

It answers between two ticks, in the only thread: a second one would keep footprint from adopting orphans of a program.
"""

import re
import socket
import time
from contextlib import suppress
from typing import Final

from footprint.errors import AccessError, UsageError
from footprint.formats.document import About
from footprint.formats.escape import shortened
from footprint.formats.openmetrics import openmetrics
from footprint.series.timeline import Timeline
from footprint.verbs.watch.metrics import timeline_metrics

__all__ = ("Listener",)

_PORT: Final = re.compile(r"[0-9]{1,5}")
_PATIENCE_SECONDS: Final = 0.2
_MOST_REQUEST_BYTES: Final = 8192
_MOST_AT_ONCE: Final = 4
_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"


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
            self._socket = socket.create_server((host.strip("[]"), int(port)), family=_family(host))
        except OSError as error:
            raise AccessError(address, error.strerror or str(error)) from error
        self._socket.settimeout(0)

    @property
    def port(self) -> int:
        """Return the port, which the kernel chooses for 0."""
        return int(self._socket.getsockname()[1])

    def answer(self, timeline: Timeline) -> None:
        """Answer those who ask, but not too many at once."""
        for _ in range(_MOST_AT_ONCE):
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                _answer(connection, timeline)

    def close(self) -> None:
        """Listen no longer."""
        self._socket.close()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _answer(connection: socket.socket, timeline: Timeline) -> None:
    """Read a request, and send the figures."""
    request = b""
    end = time.monotonic() + _PATIENCE_SECONDS
    while b"\r\n\r\n" not in request and len(request) < _MOST_REQUEST_BYTES:
        # Who sends it byte by byte does not hold the watch.
        left = end - time.monotonic()
        if left <= 0:
            return
        connection.settimeout(left)
        piece = connection.recv(_MOST_REQUEST_BYTES)
        if not piece:
            break
        request += piece
    if request.startswith(b"GET "):
        status, body = "200 OK", openmetrics(timeline_metrics(timeline), About("watch", "")).encode()
    else:
        status, body = "405 Method Not Allowed", b""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {_TYPE}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    connection.settimeout(_PATIENCE_SECONDS)
    connection.sendall(head.encode() + body)
