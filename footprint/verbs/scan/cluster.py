"""Runs the work of a scan elsewhere: on a Dask cluster, or in any executor of `concurrent.futures`."""

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, TypeVar

from footprint import __version__
from footprint.errors import AccessError, UsageError
from footprint.process.two_processors import usable_processor_count
from footprint.system.limits import begin_activity
from footprint.verbs.scan.runners import TASKS_EACH, Runner, in_flight, pieces_of
from footprint.verbs.scan.tasks import Task

_CONNECT_SECONDS: Final = 10
_PATIENCE_SECONDS: Final = 20
"""How long a cluster may have no worker, or give no answer, before the scan ends."""
_SILENCE_SECONDS: Final = 15
"""How long a worker may send no heartbeat, of which Dask has several in this time; then others do its tasks."""
_LOGGERS: Final = ("distributed", "distributed.client")
"""What Dask reports of a lost connection by, with tracebacks; the scan raises one error instead."""
_POLL_SECONDS: Final = 1
# An expression, since a worker without footprint cannot read a function of it: it would die, and tell nothing.
_VERSION_OF_WORKER: Final = "__import__('footprint').__version__"

_Done = TypeVar("_Done")
_Each = TypeVar("_Each")


class Places(NamedTuple):
    """What workers must see as the client does.

    Attributes:
        stage: The folder where parts are written; it is there.
        sources: The sources of the scan.
    """

    stage: str
    sources: tuple[str, ...]


def _unreachable(places: Places) -> str:
    """Return what a worker does not see, or may not write to; "" where it sees all."""
    if not os.path.isdir(places.stage) or not os.access(places.stage, os.W_OK):
        return f"cannot write to the dataset, {os.path.dirname(places.stage)}"
    return next((f"has no {source}" for source in places.sources if not os.path.exists(source)), "")


def _check_version(name: str, where: str, version: object) -> None:
    """Check the version of footprint that a worker answers, or the error that it raises.

    Raises:
        AccessError: If it is another one, or none.
    """
    if isinstance(version, ImportError):
        raise AccessError(where, f"worker {name} has no footprint ({version}): install version {__version__} there")
    if isinstance(version, Exception):
        raise AccessError(where, f"worker {name} gives no answer: {type(version).__name__}: {version}")
    if version != __version__:
        raise AccessError(where, f"worker {name} has footprint {version}, and this is {__version__}: install the same")


def _check_places(name: str, where: str, missing: object) -> None:
    """Check what a worker cannot reach.

    Raises:
        AccessError: If there is anything.
    """
    if missing:
        raise AccessError(where, f"worker {name} {missing}: all workers must see the same folders as the client")


def _within(seconds: float, call: Callable[[], _Done]) -> _Done:
    """Return what a call returns.

    Raises:
        TimeoutError: If it takes longer.
    """
    thread = ThreadPoolExecutor(1)
    try:
        return thread.submit(call).result(seconds)
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


@contextmanager
def cluster_runner(address: str, places: Places) -> Iterator[Runner]:
    """Connect with the scheduler of a Dask cluster; a task that a worker was lost with is done by another one.

    Args:
        address: Its address, as `tcp://host:8786`.
        places: What its workers must see.

    Raises:
        AccessError: If nobody answers there, there are no workers, or one of them cannot do the work.
        UsageError: If Dask is not installed.
    """
    client = _connected(address)

    def submit(work: Callable[[Task[_Each]], _Done], task: Task[_Each]) -> Any:  # noqa: ANN401 # a future of Dask
        # Work that writes is no pure function: a second scan must not get the result of the first.
        return client.submit(work, task, pure=False, retries=TASKS_EACH)

    def run(work: Callable[[Task[_Each]], _Done], tasks: Iterable[Task[_Each]]) -> Iterator[_Done]:
        try:
            threads = sum(worker["nthreads"] for worker in _workers(client).values()) or 1
            yield from _until_done(submit, lambda futures: _first_done(client, futures), threads, work, tasks)
        except (OSError, CancelledError) as error:
            lost = "its scheduler is gone, or cancelled the tasks" if isinstance(error, CancelledError) else error
            cause = f"the cluster is lost ({lost}): scan again, and it goes on from there"
            raise AccessError(address, cause) from error

    with _quiet_dask():
        try:
            _check_workers(client, address, places)
            yield run
        finally:
            client.close(_POLL_SECONDS)


@contextmanager
def _quiet_dask() -> Iterator[None]:
    """Keep Dask from writing tracebacks of a lost connection to the terminal: the scan raises one error."""
    levels = {logger: logger.level for logger in map(logging.getLogger, _LOGGERS)}
    for logger in levels:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def _connected(address: str) -> Any:  # noqa: ANN401 # a client of Dask
    try:
        import dask  # noqa: PLC0415 # of an extra
        from distributed import Client  # noqa: PLC0415 # the same
    except ImportError:
        raise UsageError("--scheduler needs Dask: pip install 'footprint-audit[cluster]'") from None
    dask.config.set({"distributed.comm.timeouts.connect": f"{_CONNECT_SECONDS}s"})
    begin_activity(f"connects with {address}")
    try:
        return Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise AccessError(address, f"no scheduler answers there: {error}") from error


def _check_workers(client: Any, address: str, places: Places) -> None:  # noqa: ANN401 # a client of Dask
    """Wait for a worker, and ask all that are there what they have, in so many seconds together.

    Raises:
        AccessError: If there is none, or one of them cannot do the work.
    """
    last = time.monotonic() + _PATIENCE_SECONDS
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_SECONDS)
    except TimeoutError:
        cause = f"it has no worker after {_PATIENCE_SECONDS} seconds: start some with `dask worker {address}`"
        raise AccessError(address, cause) from None
    begin_activity(f"asks the {len(client.nthreads())} workers of {address} what they have")

    def ask(call: Callable[..., object], argument: object) -> dict[str, object]:
        try:
            answers = _within(last - time.monotonic(), lambda: client.run(call, argument, on_error="return"))
        except TimeoutError:
            raise AccessError(address, f"its workers gave no answer in {_PATIENCE_SECONDS} seconds") from None
        return dict(sorted(answers.items()))

    for name, version in ask(eval, _VERSION_OF_WORKER).items():
        _check_version(name, address, version)
    for name, missing in ask(_unreachable, places).items():
        _check_places(name, address, missing)


def _workers(client: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 # a client of Dask
    """Ask the scheduler what it knows of its workers, by address.

    Raises:
        OSError: If it gives no answer.
    """
    try:
        workers = _within(_PATIENCE_SECONDS, lambda: client.sync(client.scheduler.identity))["workers"]
    except TimeoutError:
        raise OSError(f"the scheduler gave no answer in {_PATIENCE_SECONDS} seconds") from None
    return workers  # type: ignore[no-any-return]


def _first_done(client: Any, futures: Iterable[Any]) -> set[Any]:  # noqa: ANN401 # a client of Dask
    """Wait for some of the futures. A worker that falls silent, as one that is frozen, is removed: others do its tasks.

    Raises:
        OSError: If the scheduler is gone, or all workers.
    """
    from distributed import wait as wait_for  # noqa: PLC0415 # of an extra

    waiting, with_workers = list(futures), time.monotonic()
    heartbeats: dict[str, tuple[float, float]] = {}
    while True:
        with client.as_current(), suppress(TimeoutError):
            return set(wait_for(waiting, return_when="FIRST_COMPLETED", timeout=_POLL_SECONDS).done)
        if client.status != "running":
            raise OSError("the scheduler is gone")
        workers, now = _workers(client), time.monotonic()
        if workers:
            with_workers = now
        elif now - with_workers > _PATIENCE_SECONDS:
            raise OSError("all workers are gone")
        # The clocks of the machines differ: what counts is that the scheduler has another time than before.
        before = heartbeats
        heartbeats = {
            name: before[name]
            if name in before and before[name][0] == worker["last_seen"]
            else (worker["last_seen"], now)
            for name, worker in workers.items()
        }
        silent = [name for name, (_, since) in heartbeats.items() if now - since > _SILENCE_SECONDS]
        for name in silent:
            begin_activity(f"has no answer of worker {name}: others do its tasks")
            client.sync(client.scheduler.unregister, address=name, stimulus_id="footprint-silent")
        if silent and len(silent) == len(workers):
            raise OSError(f"worker {silent[0]} gave no answer in {_SILENCE_SECONDS} seconds, and no other is left")


@contextmanager
def executor_runner(executor: Executor, places: Places) -> Iterator[Runner]:
    """Do the work in an executor, which stays open; one that breaks ends the scan, and the next one goes on.

    Raises:
        AccessError: If its workers cannot do the work, or it is lost.
    """
    name = type(executor).__name__
    begin_activity(f"asks the workers of {name} what they have")

    def ask(call: Callable[..., object], argument: object) -> object:
        try:
            return executor.submit(call, argument).result(_PATIENCE_SECONDS)
        except Exception as error:  # noqa: BLE001 # whatever its workers raise is their answer
            return error

    _check_version("1", name, ask(eval, _VERSION_OF_WORKER))
    _check_places("1", name, ask(_unreachable, places))

    def first_done(futures: Iterable[Any]) -> set[Any]:
        return set(wait_for_futures(list(futures), return_when=FIRST_COMPLETED).done)

    def run(work: Callable[[Task[_Each]], _Done], tasks: Iterable[Task[_Each]]) -> Iterator[_Done]:
        worker_count = getattr(executor, "_max_workers", None) or usable_processor_count()
        try:
            yield from _until_done(executor.submit, first_done, worker_count, work, tasks)
        except (BrokenExecutor, CancelledError) as error:
            cause = f"its workers are lost ({error}): scan again, and it goes on from there"
            raise AccessError(name, cause) from error

    yield run


def _until_done(
    submit: Callable[..., Any],
    first_done: Callable[[Iterable[Any]], set[Any]],
    worker_count: int,
    work: Callable[[Task[_Each]], _Done],
    tasks: Iterable[Task[_Each]],
) -> Iterator[_Done]:
    """Do all tasks, those that workers were lost with in pieces."""
    waiting: Iterable[Task[_Each]] = tasks
    while True:
        killers: list[Task[_Each]] = []
        yield from in_flight(submit, first_done, worker_count * TASKS_EACH, work, waiting, killers)
        if not killers:
            return
        waiting = [piece for killer in killers for piece in pieces_of(killer)]
