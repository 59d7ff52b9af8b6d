"""Runs the work of a scan on all cores of this machine."""

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Final, Generic, Protocol, TypeVar

from footprint.errors import AccessError
from footprint.system.c_library import prctl
from footprint.verbs.scan.tasks import Task

# So many tasks wait for each worker: none is idle, and memory does not grow with the number of inputs.
TASKS_EACH: Final = 3
_PR_SET_PDEATHSIG: Final = 1
# What Dask and Ray raise: neither need be installed.
_LOSSES: Final = ("KilledWorker", "WorkerCrashedError")
_SERVER: Final = (
    "import sys; sys.path[:] = {path}; from footprint.verbs.scan.runners import serve; serve({descriptors})"
)

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
            yield from in_flight(pool.submit, pool.first_done, worker_count * TASKS_EACH, work, tasks, suspects)
            while suspects:
                task = suspects.pop()
                lost: list[Task[_Each]] = []
                yield from in_flight(alone.submit, alone.first_done, 1, work, [task], lost)
                if lost:
                    suspects += pieces_of(task)

        yield run


def pieces_of(task: Task[_Each]) -> tuple[Task[_Each], ...]:
    """Return the pieces of a task that workers were killed with.

    Raises:
        AccessError: If they are killed even with what reads nothing.
    """
    pieces = task.pieces()
    if not pieces:
        raise AccessError("scan", "all worker processes are killed, perhaps for want of memory")
    return pieces


class _WorkerLostError(Exception):
    """A worker was killed while it did a task."""


class _Call(Generic[_Done]):
    """A task in a worker, and what came of it."""

    def __init__(self, work: Callable[[Any], _Done], task: Any) -> None:  # noqa: ANN401 # a task of any items
        self.request = work, task
        self.is_done = False
        self._value: _Done | None = None
        self._error: Exception | None = None

    def end(self, value: _Done | None, error: Exception | None) -> None:
        """Take the outcome."""
        self.is_done, self._value, self._error = True, value, error

    def result(self) -> _Done:
        """Return what the work returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value] # it is done


class _Pool:
    """Worker processes, each at the end of a pipe; others are started for those that were killed.

    A pool of `concurrent.futures` needs semaphores with names and a socket, which stay when a scan is killed, and its
    workers then wait for ever.
    """

    def __init__(self, worker_count: int) -> None:
        self._worker_count = worker_count
        self._waiting: deque[_Call[Any]] = deque()
        self._idle: list[Connection] = []
        self._busy: dict[Connection, _Call[Any]] = {}
        self._servers: list[subprocess.Popen[bytes]] = []

    def submit(self, work: Callable[[Task[_Each]], _Done], task: Task[_Each]) -> _Call[_Done]:
        """Do a task as soon as a worker is free."""
        call = _Call(work, task)
        self._waiting.append(call)
        self._hand_out()
        return call

    def first_done(self, calls: Iterable[_Call[Any]]) -> set[_Call[Any]]:
        """Wait until one of the calls is done, and return those that are."""
        while not (done := {call for call in calls if call.is_done}):
            for connection in wait(list(self._busy)):
                self._take(connection)  # type: ignore[arg-type] # it waits for what it was given
            self._hand_out()
        return done

    def _hand_out(self) -> None:
        while self._waiting and (self._idle or len(self._busy) < self._worker_count):
            if not self._idle:
                self._start(self._worker_count - len(self._busy))
            connection, call = self._idle.pop(), self._waiting.popleft()
            try:
                connection.send(call.request)
            except OSError:
                # It was killed while it had nothing to do.
                connection.close()
                self._waiting.appendleft(call)
            else:
                self._busy[connection] = call

    def _start(self, count: int) -> None:
        """Start workers: a process that imports all they need, and copies itself so many times."""
        pairs = [Pipe() for _ in range(count)]
        theirs = [there.fileno() for _, there in pairs]
        code = _SERVER.format(path=sys.path, descriptors=theirs)
        # While Python starts it answers Ctrl-C by a traceback; the workers keep the mask, and end with the scan.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            words = [sys.executable, "-I", "-c", code]
            self._servers.append(subprocess.Popen(words, pass_fds=theirs))  # noqa: S603 # a program of our own
            self._idle += [here for here, _ in pairs]
        except OSError as error:
            raise AccessError("scan", f"no worker can be started: {error.strerror}") from error
        finally:
            for _, there in pairs:
                there.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _take(self, connection: Connection) -> None:
        call = self._busy.pop(connection)
        try:
            call.end(*connection.recv())
        except (EOFError, OSError):
            connection.close()
            call.end(None, _WorkerLostError())
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """End the workers, without the tasks that none has begun."""
        self._waiting.clear()
        for connection in (*self._idle, *self._busy):
            connection.close()
        for server in self._servers:
            # Idle workers end with their pipe, and the server with its workers.
            if self._busy:
                server.kill()
            server.wait()


def serve(descriptors: Sequence[int]) -> None:
    """Start a worker at the end of each pipe, and wait for them; when the scan ends, however it does, all end.

    It is called in a process of its own. Fork would copy the threads of DuckDB halfway, which the scan has: this
    process has imported all, and runs none.
    """
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    import footprint.verbs.scan.work  # noqa: F401, PLC0415 # once for all workers
    from footprint.store.parquet import load_engine  # noqa: PLC0415 # the same

    load_engine()

    server = os.getpid()
    for place, descriptor in enumerate(descriptors):
        if os.fork() == 0:
            prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
            for other in (*descriptors[:place], *descriptors[place + 1 :]):
                os.close(other)
            if os.getppid() == server:
                _work(Connection(descriptor))
            os._exit(0)
    for descriptor in descriptors:
        os.close(descriptor)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _work(connection: Connection) -> None:
    with suppress(EOFError, OSError):
        while True:
            work, task = connection.recv()
            outcome: tuple[Any, Exception | None]
            try:
                outcome = work(task), None
            except Exception as error:  # noqa: BLE001 # the scan decides what to do with it
                outcome = None, _sendable(error)
            connection.send(outcome)


def _sendable(error: Exception) -> Exception:
    """Return an error that arrives at the other end of a pipe: with its text, where it cannot itself."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 # made here
    except Exception:  # noqa: BLE001 # whatever its own methods raise
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def in_flight(
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
            for future in first_done(waiting):
                task = waiting.pop(future)
                try:
                    yield future.result()
                except Exception as error:
                    if not _is_loss(error):
                        raise
                    lost.append(task)

    for task in tasks:
        waiting[submit(work, task)] = task
        yield from finish(most_count - 1)
    yield from finish(0)


def _is_loss(error: Exception) -> bool:
    return isinstance(error, _WorkerLostError) or type(error).__name__ in _LOSSES
