"""Object stores: datasets and captures in a bucket, by a copy in the cache of the user; obstore does the transfer.

The copy is made before anything is asked, so that a query needs no network. A file whose size and time are those of the
object is not fetched again.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from hashlib import blake2b
from pathlib import PurePosixPath
from queue import Empty, Queue
from threading import Thread
from typing import Any, Final

from footprint.errors import AccessError, FootprintError, UsageError
from footprint.system.limits import draw_entries, limited
from footprint.system.whole_file import own_folder, whole_file
from footprint.text.command_line import without_secrets_in

_SCHEMES: Final = ("s3://", "gs://", "az://")
_LOCK: Final = "scan.lock"
# Plain HTTP only where the user names such an endpoint, as one of his own network.
_CLIENT: Final = {"connect_timeout": "5s", "timeout": "300s", "allow_http": True}
# It covers the sending of a request, too: what is put may be large.
_OF_SMALL: Final = {"read_timeout": "15s"}
_SMALL_BYTES: Final = 1 << 20
_RETRIES: Final = {"max_retries": 3, "retry_timeout": timedelta(seconds=15)}
# A page of the list takes at most as long as its retries.
_PAGE_SECONDS: Final = 60
_CREDENTIALS: Final = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
# Without any, obstore asks the service of a cloud that gives its machines some.
_NO_CREDENTIALS: Final = re.compile(
    r"/latest/(?:api/token|meta-data)|computeMetadata|/metadata/identity|Account must be"
)
# A part without its file of inputs is no part: that one is put last, and deleted first.
_LAST: Final = "inputs/"


def is_store(address: str) -> bool:
    """Return whether an address is one of an object store."""
    return address.startswith(_SCHEMES)


def fetch(address: str, *, is_written: bool = False) -> str:
    """Copy what a store has below an address into the cache, and return the folder.

    Args:
        address: The address.
        is_written: Whether the copy is changed, and goes back with `upload`. Those who only read have another copy:
            what a scan adds is not in the store yet, and they would remove it.

    Raises:
        AccessError: If the store cannot be read.
        UsageError: If obstore is not installed.
    """
    above = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = blake2b(address.encode(), digest_size=12).hexdigest() + ("-written" if is_written else "")
    folder = os.path.realpath(os.path.join(above, "footprint", "stores", name))
    with _errors(address) as (store, obstore):
        objects = _objects(address, store, obstore)
        own_folder(folder)
        for name in _files(folder) - objects.keys():
            with suppress(FileNotFoundError):  # somebody else brings the same copy up to date
                os.unlink(os.path.join(folder, name))
        for name in _in_order(objects):
            path = os.path.join(folder, name)
            if _state(path) != objects[name]:
                own_folder(os.path.dirname(path))
                with whole_file(path) as file:
                    file.writelines(_pieces(obstore.get(store, name).stream(), objects[name][0]))
                os.utime(path, (objects[name][1],) * 2)
    return folder


@contextmanager
def local_folder(name: str, *, is_written: bool = False) -> Iterator[str]:
    """Return a folder; of one in a store its copy. Errors about that name its address.

    Raises:
        AccessError: If the store cannot be read.
        UsageError: If obstore is not installed.
    """
    if not is_store(name):
        yield name
        return
    copy = fetch(name, is_written=is_written)
    try:
        yield copy
    except FootprintError as error:
        raise error.renamed(copy, name) from error


def upload(address: str, folder: str) -> None:
    """Make a store below an address as the folder is that `fetch` returned, and was changed since.

    Raises:
        AccessError: If the store cannot be written.
    """
    with _errors(address, is_large=True) as (store, obstore):
        objects, files = _objects(address, store, obstore), _files(folder)
        for name in reversed(list(_in_order(objects.keys() - files))):
            obstore.delete(store, name)
        for name in _in_order(files):
            path = os.path.join(folder, name)
            if _state(path) != objects.get(name):
                with open(path, "rb") as file:
                    obstore.put(store, name, file)
        for name, (_, seconds) in _objects(address, store, obstore).items():
            if name in files:
                os.utime(os.path.join(folder, name), (seconds,) * 2)


def put(address: str, data: bytes) -> None:
    """Write one object.

    Raises:
        AccessError: If the store cannot be written.
        UsageError: If obstore is not installed.
    """
    above, _, name = address.rpartition("/")
    with _errors(above, is_large=len(data) > _SMALL_BYTES) as (store, obstore):
        obstore.put(store, name, data)


@contextmanager
def locked_store(address: str) -> Iterator[None]:
    """Keep other scans out of a dataset in a store: only one of them can put the lock.

    Raises:
        AccessError: If another scan has it.
    """
    with _errors(address) as (store, obstore):
        try:
            obstore.put(store, _LOCK, os.uname().nodename.encode(), mode="create")
        except obstore.exceptions.AlreadyExistsError:
            cause = f"another scan writes to it; if that was killed, delete the object {_LOCK} there"
            raise AccessError(address, cause) from None
    try:
        yield
    finally:
        with _errors(address) as (store, obstore):
            obstore.delete(store, _LOCK)


@contextmanager
def _errors(address: str, *, is_large: bool = False) -> Iterator[tuple[Any, Any]]:
    """Open a store, and raise what goes wrong with it as our errors."""
    try:
        import obstore  # noqa: PLC0415 # of an extra
        from obstore import store as stores  # noqa: PLC0415 # the same
        from obstore.exceptions import BaseError  # noqa: PLC0415 # the same
    except ImportError:
        raise UsageError(f"{address} needs obstore: pip install 'footprint-audit[stores]'") from None
    open_store: Any = stores.from_url
    try:
        options = _CLIENT if is_large else _CLIENT | _OF_SMALL
        yield open_store(address, client_options=options, retry_config=_RETRIES), obstore
    except (BaseError, OSError, ValueError) as error:
        raise AccessError(address, _cause(address, str(error))) from error


def _cause(address: str, message: str) -> str:
    """Return what went wrong with a store, in one line without secrets."""
    if _NO_CREDENTIALS.search(message):
        return f"it needs credentials, and there are none: {_CREDENTIALS[address[:2]]}"
    return f"the store cannot be used: {without_secrets_in(message.strip().partition(chr(10))[0])[:300]}"


def _objects(address: str, store: Any, obstore: Any) -> dict[str, tuple[int, int]]:  # noqa: ANN401 # a store and the module
    """Return size and time of the objects below an address by name; names that lead out of the folder are left out.

    Raises:
        LimitError: If there are more than the limits allow.
        OSError: If the list does not go on.
    """
    objects = {}
    with limited():
        for some in _listed(store, obstore):
            draw_entries(len(some), address)
            for entry in some:
                name = PurePosixPath(entry["path"])
                if ".." not in name.parts and not name.is_absolute() and entry["path"] != _LOCK:
                    objects[str(name)] = entry["size"], int(entry["last_modified"].timestamp())
    return objects


def _listed(store: Any, obstore: Any) -> Iterator[Any]:  # noqa: ANN401 # the same
    """Yield some objects at a time. A store may answer with empty pages for ever, and obstore asks for the next."""
    chunks = Queue[Any](1)

    def ask() -> None:
        try:
            for some in obstore.list(store):
                chunks.put(some)
            chunks.put(None)
        except Exception as error:  # noqa: BLE001 # it is raised in the other thread
            chunks.put(error)

    Thread(target=ask, daemon=True).start()
    while True:
        try:
            some = chunks.get(timeout=_PAGE_SECONDS)
        except Empty:
            raise OSError(f"its list of objects did not go on for {_PAGE_SECONDS} seconds") from None
        if some is None:
            return
        if isinstance(some, Exception):
            raise some
        yield some


def _pieces(stream: Iterable[Any], size_bytes: int) -> Iterator[Any]:
    """Yield what a store sends of an object.

    Raises:
        OSError: If that is not as much as it listed.
    """
    for piece in stream:
        size_bytes -= len(piece)
        if size_bytes < 0:
            break
        yield piece
    if size_bytes:
        raise OSError("an object has another size than was listed, as one that was written meanwhile: ask again")


def _files(folder: str) -> set[str]:
    return {
        os.path.relpath(os.path.join(place, name), folder)
        for place, _, names in os.walk(folder)
        for name in names
        if not name.startswith(".")
    }


def _state(path: str) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_size, int(facts.st_mtime)


def _in_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (name.startswith(_LAST), name))
