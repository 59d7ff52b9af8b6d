"""debuginfod: servers that the user has named.

Source: debuginfod(8) and debuginfod-client-config(7) of elfutils 0.192.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

from footprint.errors import Note, UsageError
from footprint.system.limits import begin_activity

if TYPE_CHECKING:
    from http.client import HTTPResponse


_MOST_DOWNLOAD_BYTES: Final = 2 << 30
_CHUNK_BYTES: Final = 1 << 20
_IDLE_SECONDS: Final = 15
_MOST_SECONDS: Final = 120


class Servers:
    """The servers that DEBUGINFOD_URLS names. One that fails is not asked again.

    Raises:
        UsageError: Where it names none.
    """

    def __init__(self) -> None:
        # Fedora has words like `ima:enforcing` among the addresses.
        words = os.environ.get("DEBUGINFOD_URLS", "").split()
        self._urls = [word.rstrip("/") for word in words if word.lower().startswith(("http://", "https://"))]
        if not self._urls:
            raise UsageError("--debuginfod needs a server with http or https in DEBUGINFOD_URLS")

    def fetch(self, build_id: str, path: str) -> Iterator[Note]:
        """Put a debug file to a path, where one of the servers has it; give what was in the way."""
        for url in list(self._urls):
            begin_activity(f"asks {url} for a debug file")
            cause = _download(f"{url}/buildid/{build_id}/debuginfo", path)
            if cause is None:
                return
            if cause:
                self._urls.remove(url)
                yield Note("debuginfod-failed", url, f"{cause}; it was not asked again")


def _download(address: str, path: str) -> str | None:
    """Write what an address gives to a file; say what was in the way: nothing where it has no such file."""
    from http.client import HTTPException  # noqa: PLC0415 # slow to import, and only for those who ask for it
    from urllib import request  # noqa: PLC0415 # the same
    from urllib.error import HTTPError  # noqa: PLC0415 # the same

    from footprint.system.whole_file import whole_file  # noqa: PLC0415 # the same

    # What urllib opens by itself may also be a file of this machine.
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPRedirectHandler,
        request.HTTPErrorProcessor,
        request.HTTPDefaultErrorHandler,
        request.UnknownHandler,
    ):
        opener.add_handler(handler())
    try:
        with opener.open(address, timeout=_IDLE_SECONDS) as answer:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with whole_file(path) as file:
                _copy(answer, file)
    except HTTPError as error:
        with suppress(OSError):
            error.close()
        return "" if error.code == 404 else f"it answers {error.code}"
    except (OSError, HTTPException, ValueError) as error:
        return str(getattr(error, "reason", "") or error) or type(error).__name__
    return None


def _copy(answer: "HTTPResponse", file: IO[bytes]) -> None:
    """Copy what a server sends, which may be without end, or take for ever.

    Raises:
        ValueError: Where it is too much, too slow, or not all of it.
    """
    until, total_bytes = time.monotonic() + _MOST_SECONDS, 0
    while chunk := answer.read1(_CHUNK_BYTES):
        total_bytes += file.write(chunk)
        if total_bytes > _MOST_DOWNLOAD_BYTES:
            raise ValueError(f"it sends more than {_MOST_DOWNLOAD_BYTES} bytes")
        if time.monotonic() > until:
            raise ValueError(f"it takes longer than {_MOST_SECONDS} seconds")
    if answer.length:
        raise ValueError(f"it breaks off {answer.length} bytes before the end")
