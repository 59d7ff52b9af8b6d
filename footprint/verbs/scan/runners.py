"""Runs the work of a scan: on all cores of this machine, or on a Dask cluster."""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from typing import Any, Final, Protocol, TypeVar

from footprint.errors import AccessError, UsageError
from footprint.verbs.scan.tasks import Task

__all__ = ("Runner", "cluster_runner", "local_runner")

# So many tasks wait for each worker: none is idle, and memory does not grow with the number of inputs.
_TASKS_EACH: Final = 3
_CONNECT_SECONDS: Final = 10

_Done = TypeVar("_Done")
_Each = TypeVar("_Each")


class Runner(Protocol):
    """Calls a function on each of some tasks, and yields what it returns, in the order in which they are done."""

    def __call__(self, work: Callable[[Task[_Each]], _Done], tasks: Iterable[Task[_Each]]) -> Iterator[_Done]: ...  # noqa: D102


@contextmanager
def local_runner(worker_count: int) -> Iterator[Runner]:
    """Start worker processes on this machine.

    The tasks that a worker was killed with are done again one by one, and one that kills it again in pieces.

    Raises:
        AccessError: If workers are killed whatever they do.
    """
    with closing(_Pool(worker_count)) as pool, closing(_Pool(1)) as alone:

        def run(work: Callable[[Task[_Each]], _Done], tasks: Iterable[Task[_Each]]) -> Iterator[_Done]:
            suspects: list[Task[_Each]] = []
            yield from _in_flight(pool.submit, _first_done, worker_count * _TASKS_EACH, work, tasks, suspects)
            while suspects:
                task = suspects.pop()
                try:
                    yield alone.submit(work, task).result()
                except BrokenProcessPool:
                    suspects += _pieces(task)

        yield run


def _pieces(task: Task[_Each]) -> tuple[Task[_Each], ...]:
    pieces = task.pieces()
    if not pieces:
        raise AccessError("scan", "all worker processes are killed, perhaps for want of memory")
    return pieces


class _Pool:
    """Worker processes, which are started again when one of them was killed."""

    def __init__(self, worker_count: int) -> None:
        self._worker_count = worker_count
        self._executor = self._started()

    def _started(self) -> ProcessPoolExecutor:
        # Fork would copy the threads of DuckDB halfway. The server that forks workers has imported all, and runs none.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["duckdb", "footprint.verbs.scan.work"])
        return ProcessPoolExecutor(self._worker_count, context)

    def submit(self, work: Callable[[Task[_Each]], _Done], task: Task[_Each]) -> "Future[_Done]":
        """Run a task in a worker."""
        try:
            return self._executor.submit(work, task)
        except BrokenProcessPool:
            self._executor = self._started()
            return self._executor.submit(work, task)

    def close(self) -> None:
        """End the workers, without the tasks that none has begun."""
        self._executor.shutdown(wait=False, cancel_futures=True)


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

    def submit(work: Callable[[Task[_Each]], _Done], task: Task[_Each]) -> Any:  # noqa: ANN401 # a future of Dask
        # Work that writes is no pure function: a second scan must not get the result of the first.
        return client.submit(work, task, pure=False, retries=_TASKS_EACH)

    def first_done(futures: Iterable[Any]) -> set[Any]:
        with client.as_current():
            return set(wait_for(list(futures), return_when="FIRST_COMPLETED").done)

    def run(work: Callable[[Task[_Each]], _Done], tasks: Iterable[Task[_Each]]) -> Iterator[_Done]:
        threads = sum(client.nthreads().values()) or 1
        try:
            waiting: Iterable[Task[_Each]] = tasks
            while True:
                killers: list[Task[_Each]] = []
                yield from _in_flight(submit, first_done, threads * _TASKS_EACH, work, waiting, killers)
                if not killers:
                    break
                waiting = [piece for one in killers for piece in _pieces(one)]
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
    work: Callable[[Task[_Each]], _Done],
    tasks: Iterable[Task[_Each]],
    lost: list[Task[_Each]],
) -> Iterator[_Done]:
    """Keep so many tasks in flight, and yield what is done; add the tasks that workers were killed with to a list."""
    waiting: dict[Any, Task[_Each]] = {}

    def finish(count: int) -> Iterator[_Done]:
        while len(waiting) > count:
            for one in first_done(waiting):
                task = waiting.pop(one)
                try:
                    yield one.result()
                except Exception as error:
                    if not _is_loss(error):
                        raise
                    lost.append(task)

    for task in tasks:
        waiting[submit(work, task)] = task
        yield from finish(most_count - 1)
    yield from finish(0)


def _is_loss(error: Exception) -> bool:
    return isinstance(error, BrokenProcessPool) or type(error).__name__ == "KilledWorker"
