"""Runs the work of a scan: on all cores of this machine, or on a Dask cluster."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar

from footprint.errors import AccessError, UsageError

__all__ = ("Runner", "cluster_runner", "local_runner", "usual_worker_count")

# So many tasks wait for each worker: none is idle, and memory does not grow with the number of inputs.
_TASKS_EACH: Final = 3
_CONNECT_SECONDS: Final = 10

_Task = TypeVar("_Task")
_Done = TypeVar("_Done")


class Runner(Protocol):
    """Calls a function on each of some tasks, and yields what it returns, in the order in which they are done."""

    def __call__(self, work: Callable[[_Task], _Done], tasks: Iterable[_Task]) -> Iterator[_Done]: ...  # noqa: D102


@contextmanager
def local_runner(worker_count: int) -> Iterator[Runner]:
    """Start worker processes on this machine; with one worker, the work is done in this process.

    Raises:
        AccessError: If a worker is killed.
    """
    if worker_count < 2:
        yield _run_here
        return
    # Fork would copy the threads of DuckDB halfway.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(worker_count, context) as pool:

        def run(work: Callable[[_Task], _Done], tasks: Iterable[_Task]) -> Iterator[_Done]:
            try:
                yield from _in_flight(pool.submit, _first_done, worker_count * _TASKS_EACH, work, tasks)
            except BrokenProcessPool:
                cause = "a worker process was killed, perhaps for want of memory: scan again, and it goes on from there"
                raise AccessError("scan", cause) from None

        try:
            yield run
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run_here(work: Callable[[_Task], _Done], tasks: Iterable[_Task]) -> Iterator[_Done]:
    return map(work, tasks)


@contextmanager
def cluster_runner(address: str) -> Iterator[Runner]:
    """Connect with the scheduler of a Dask cluster; a task that a worker was lost with is done by another one.

    Args:
        address: Its address, as `tcp://host:8786`.

    Raises:
        AccessError: If nobody answers there.
        UsageError: If Dask is not installed.
    """
    try:
        from distributed import Client  # noqa: PLC0415 # of an extra
        from distributed import wait as wait_for  # noqa: PLC0415 # the same
    except ImportError:
        raise UsageError("--scheduler needs Dask: pip install 'footprint-audit[cluster]'") from None
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise AccessError(address, f"no scheduler answers there: {error}") from error

    def submit(work: Callable[[_Task], _Done], task: _Task) -> Any:  # noqa: ANN401 # a future of Dask
        # Work that writes is no pure function: a second scan must not get the result of the first.
        return client.submit(work, task, pure=False, retries=_TASKS_EACH)

    def first_done(futures: Iterable[Any]) -> set[Any]:
        with client.as_current():
            return set(wait_for(list(futures), return_when="FIRST_COMPLETED").done)

    def run(work: Callable[[_Task], _Done], tasks: Iterable[_Task]) -> Iterator[_Done]:
        threads = sum(client.nthreads().values()) or 1
        try:
            yield from _in_flight(submit, first_done, threads * _TASKS_EACH, work, tasks)
        except (OSError, CancelledError) as error:
            cause = f"the cluster is lost ({error}): scan again, and it goes on from there"
            raise AccessError(address, cause) from error

    with client:
        yield run


def _first_done(futures: Iterable["Future[Any]"]) -> set["Future[Any]"]:
    return wait(futures, return_when=FIRST_COMPLETED).done


def _in_flight(
    submit: Callable[..., Any],
    first_done: Callable[[Iterable[Any]], set[Any]],
    most_count: int,
    work: Callable[[_Task], _Done],
    tasks: Iterable[_Task],
) -> Iterator[_Done]:
    """Keep so many tasks in flight, and yield what is done."""
    waiting: set[Any] = set()
    for task in tasks:
        waiting.add(submit(work, task))
        while len(waiting) >= most_count:
            done = first_done(waiting)
            waiting -= done
            yield from [one.result() for one in done]
    while waiting:
        done = first_done(waiting)
        waiting -= done
        yield from [one.result() for one in done]


def usual_worker_count() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))
