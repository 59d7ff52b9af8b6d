"""Scans by processes of their own: workers that are killed or frozen, a cluster on loopback, executors."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import footprint
from footprint.errors import AccessError
from footprint.store.tables import TABLES
from footprint.verbs.scan.cluster import Places, cluster_runner
from footprint.verbs.scan.inputs import Candidate
from footprint.verbs.scan.tasks import Settings, Task
from footprint.verbs.scan.work import identify, run_shard
from tests.fleets import SMAPS, asked, contents, text_of, write

ROOT = Path(__file__).resolve().parents[2]
MOMENT = datetime(2026, 11, 23, 12)  # noqa: DTZ001 # UTC, as in the dataset


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a process."""
    folder = tmp_path_factory.mktemp("captures")
    write(folder / "web-0" / "1.smaps", SMAPS)
    return folder


def started(*words: str, path: str = str(ROOT)) -> "subprocess.Popen[str]":
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment, cwd=path, start_new_session=True)


def killed(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    if process.stderr is not None and not process.stderr.closed:
        process.communicate()


SCAN = """
import json, sys, footprint
if __name__ == "__main__":
    footprint.scan(sys.argv[1], output=sys.argv[2], **json.loads(sys.argv[3]))
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """Return captures that make three parts, of one mapping each, and what a dataset of them has."""
    mapping, end = SMAPS.partition(b"\nVmFlags:")[::2]
    text = mapping + b"\nVmFlags:" + end.partition(b"\n")[0] + b"\n"
    folder = tmp_path_factory.mktemp("many")
    for number in range(450):
        write(
            folder / "captures" / f"host-{number // 50}" / f"{number}.smaps",
            text.replace(b"247766", b"%d" % (247766 + number)),
        )
    footprint.scan(folder / "captures", output=folder / "fleet", worker_count=1)
    return folder / "captures", contents(folder / "fleet")


def scan_until_the_first_part(captures: Path, fleet: Path, options: dict[str, object]) -> "subprocess.Popen[str]":
    """Start a scan, and return it when its first part is in the dataset, and the last one is not."""
    script = write(fleet.with_suffix(".py"), SCAN.encode())
    child = started(sys.executable, str(script), str(captures), str(fleet), json.dumps(options))
    while child.poll() is None and not (fleet / "inputs").is_dir():
        time.sleep(0.005)
    return child


# It stops itself when only the last file of its second part is missing: rows are there of which no input tells.
HALTING = """
import os, signal, sys

moved = []

def hook(event, arguments):
    if event == "os.rename" and "/inputs/" in str(arguments[1]):
        moved.append(arguments)
        if len(moved) == 2:
            os.kill(os.getpid(), signal.SIGSTOP)

sys.addaudithook(hook)
"""


def parts_of(fleet: Path) -> set[Path]:
    return {path for name in TABLES for path in (fleet / name).rglob("*.parquet")}


def test_a_scan_refuses_another_one_shows_whole_parts_and_goes_on_when_it_is_killed(
    many: tuple[Path, dict[str, list[str]]], tmp_path: Path
) -> None:
    captures, expected = many
    fleet, script = tmp_path / "fleet", write(tmp_path / "scan.py", (HALTING + SCAN).encode())
    child = started(sys.executable, str(script), str(captures), str(fleet), json.dumps({"worker_count": 2}))
    try:
        assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
        before = parts_of(fleet)
        with pytest.raises(AccessError, match="another scan writes to it"):
            footprint.scan(captures, output=fleet, worker_count=1)
        assert parts_of(fleet) == before
        sums = "SELECT sum(process_count), sum(private_bytes) FROM"
        (in_inputs,), (in_files,) = (asked(fleet, f"{sums} {name}") for name in ("inputs", "processes"))
        assert footprint.fleet(fleet, query=f"{sums} processes").result.rows == (in_inputs,)
        assert in_files[0] > in_inputs[0] > 0
    finally:
        killed(child)
    known_count = len(asked(fleet, "SELECT * FROM inputs"))
    done = footprint.scan(captures, output=fleet, worker_count=1)
    assert done.input_count + known_count == 450
    assert contents(fleet) == expected


DEADLY = '''
from footprint.verbs.scan import runners
from footprint.verbs.scan.cluster import Places, cluster_runner

HOOK = """
import os, sys
def hook(event, arguments):
    if event == "open" and str(arguments[0]).endswith("deadly.smaps"):
        os.kill(os.getpid(), 9)
sys.addaudithook(hook)
"""
runners._SERVER = HOOK + runners._SERVER
'''


def test_an_input_that_kills_each_worker_is_a_note_and_the_others_are_there(tmp_path: Path) -> None:
    script = write(tmp_path / "scan.py", (DEADLY + SCAN).encode())
    for name in ("deadly", "harmless"):
        write(tmp_path / "web-1" / f"{name}.smaps", text_of(len(name)))
    fleet = tmp_path / "fleet"
    child = started(sys.executable, str(script), str(tmp_path / "web-1"), str(fleet), json.dumps({"worker_count": 1}))
    assert child.communicate()[1] == ""
    assert asked(fleet, "SELECT count(*) FROM inputs") == [(2,)]
    assert asked(fleet, "SELECT count(*) FROM processes") == [(1,)]
    unreadable = "SELECT input FROM notes WHERE slug = 'input-unreadable'"
    assert asked(fleet, unreadable) == [(str(tmp_path / "web-1" / "deadly.smaps"),)]


def wait_for(process: "subprocess.Popen[str]", text: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"a program ended before it wrote {text}")


@contextmanager
def cluster(worker_count: int = 2, path: str = str(ROOT)) -> Iterator[tuple[str, list["subprocess.Popen[str]"]]]:
    """Start a scheduler and workers on loopback, which find footprint on a path; yield the address and all of them."""
    module = [sys.executable, "-m", "distributed.cli."]
    words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    running = [started(*module[:2], f"{module[2]}dask_scheduler", *words)]
    try:
        address = wait_for(running[0], "Scheduler at:").split()[-1]
        for _ in range(worker_count):
            words = [*module[:2], f"{module[2]}dask_worker", address, "--nthreads", "1", "--no-nanny"]
            running.append(started(*words, path=path))
            wait_for(running[-1], "Registered to:")
        yield address, running
    finally:
        for one in running:
            killed(one)


def test_a_cluster_that_loses_a_worker_and_its_client_makes_the_same_dataset(
    many: tuple[Path, dict[str, list[str]]], tmp_path: Path
) -> None:
    captures, expected = many
    fleet = tmp_path / "fleet"
    with cluster() as (address, workers):
        client = scan_until_the_first_part(captures, fleet, {"scheduler": address})
        killed(workers[1])
        killed(client)
        known_count = len(asked(fleet, "SELECT * FROM inputs"))
        done = footprint.scan(captures, output=fleet, scheduler=address)
    assert done.input_count + known_count == 450
    assert contents(fleet) == expected


def test_a_cluster_without_workers_is_an_error(captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.verbs.scan.cluster._PATIENCE_SECONDS", 1)
    with cluster(0) as (address, _), pytest.raises(AccessError, match="it has no worker after 1 seconds: start some"):
        footprint.scan(captures, output=tmp_path / "fleet", scheduler=address)


@pytest.mark.parametrize(
    ("package", "cause"),
    [
        ("raise ModuleNotFoundError(\"No module named 'footprint'\")", "has no footprint .*: install version"),
        ("__version__ = '0.0.1'", "has footprint 0.0.1, and this is .*: install the same"),
    ],
)
def test_a_worker_without_this_version_of_footprint_is_an_error(
    package: str, cause: str, captures: Path, tmp_path: Path
) -> None:
    write(tmp_path / "path" / "footprint" / "__init__.py", package.encode())
    with cluster(1, str(tmp_path / "path")) as (address, _), pytest.raises(AccessError, match=f"worker tcp.* {cause}"):
        footprint.scan(captures, output=tmp_path / "fleet", scheduler=address)


def test_a_scheduler_that_dies_in_the_middle_is_an_error_and_the_next_scan_goes_on(
    many: tuple[Path, dict[str, list[str]]], tmp_path: Path
) -> None:
    captures, expected = many
    fleet = tmp_path / "fleet"
    with cluster(1) as (address, running):
        client = scan_until_the_first_part(captures, fleet, {"scheduler": address})
        killed(running[0])
        _, errors = client.communicate(timeout=120)
    assert client.returncode == 0 or "the cluster is lost" in errors or "no answer" in errors
    # What Dask itself reports of a lost connection, with a traceback.
    assert "distributed.client - " not in errors
    assert client.returncode == 0 or len(errors.splitlines()[-1]) < 200
    footprint.scan(captures, output=fleet, worker_count=1)
    assert contents(fleet) == expected


def test_a_scheduler_that_hangs_is_an_error(captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint.verbs.scan.cluster._PATIENCE_SECONDS", 1)
    # Only the first connection must not depend on the speed of this machine.
    monkeypatch.setattr("footprint.verbs.scan.cluster._check_workers", lambda *_: None)
    task = Task[Candidate](Settings("a", str(tmp_path), MOMENT, has_commands=False), "1", ())
    with cluster(1) as (address, running), cluster_runner(address, Places(str(tmp_path), (str(captures),))) as run:
        running[0].send_signal(signal.SIGSTOP)
        with pytest.raises(AccessError, match=r"the cluster is lost .the scheduler gave no answer in 1 seconds"):
            list(run(identify, [task]))


def frozen(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGSTOP)
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)


@pytest.mark.parametrize("worker_count", [1, 2])
def test_the_tasks_of_a_worker_that_is_frozen_are_done_by_another_one_or_the_scan_ends(
    worker_count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("footprint.verbs.scan.cluster._check_workers", lambda *_: None)
    settings = Settings("a", str(tmp_path), MOMENT, has_commands=False)
    tasks = [Task[Candidate](settings, str(number), ()) for number in range(6)]
    with cluster(worker_count) as (address, running), cluster_runner(address, Places(str(tmp_path), ())) as run:
        frozen(running[1])
        if worker_count == 1:
            # It never answers; of two, the other one has the time that it may need on a slow machine.
            monkeypatch.setattr("footprint.verbs.scan.cluster._SILENCE_SECONDS", 1)
            with pytest.raises(AccessError, match=r"worker tcp:.* gave no answer in 1 seconds, and no other is left"):
                list(run(identify, tasks))
        else:
            assert sorted(run(identify, tasks)) == [(str(number), []) for number in range(6)]


class WorkerCrashedError(Exception):
    """What Ray raises of a task whose worker was killed, as often as it tried again."""


class RayLike(Executor):
    """An executor over Ray, as the documentation has it: all that passes is pickled, and a lost worker is an error."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1)
        self.shard_count = 0

    def _run(self, packed: bytes) -> bytes:
        call, arguments = pickle.loads(packed)  # noqa: S301 # packed above
        self.shard_count += call is run_shard
        if call is run_shard and self.shard_count == 1:
            raise WorkerCrashedError("the worker died unexpectedly")
        return pickle.dumps(call(*arguments))

    def submit(self, call: Any, /, *arguments: Any, **named: Any) -> "Future[Any]":  # noqa: ANN401 # as the interface
        assert not named
        future = Future[Any]()
        inner = self._threads.submit(self._run, pickle.dumps((call, arguments)))

        def end(done: "Future[bytes]") -> None:
            error = done.exception()
            if error is None:
                future.set_result(pickle.loads(done.result()))  # noqa: S301 # packed above
            else:
                future.set_exception(error)

        inner.add_done_callback(end)
        return future


def test_an_executor_that_only_submits_and_loses_a_worker_makes_the_same_dataset(
    many: tuple[Path, dict[str, list[str]]], tmp_path: Path
) -> None:
    captures, expected = many
    executor = RayLike()
    footprint.scan(captures, output=tmp_path / "fleet", executor=executor)
    assert executor.shard_count > 3
    assert contents(tmp_path / "fleet") == expected


def test_an_executor_makes_the_same_dataset_and_one_that_lacks_the_folders_is_an_error(
    many: tuple[Path, dict[str, list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captures, expected = many
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        footprint.scan(captures, output=tmp_path / "fleet", executor=executor)
    assert contents(tmp_path / "fleet") == expected
    with ThreadPoolExecutor(1) as executor:
        monkeypatch.setattr("footprint.verbs.scan.cluster._unreachable", lambda places: f"has no {places.sources[0]}")
        with pytest.raises(AccessError, match=r"has no .*: all workers must see the same folders"):
            footprint.scan(captures, output=tmp_path / "other", executor=executor)
