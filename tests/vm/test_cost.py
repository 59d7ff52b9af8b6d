"""What processes cost, against what the kernel charges to their control group."""

import os
import sys
from collections.abc import Callable, Iterator
from statistics import fmean

import pytest

from tests.vm.guest import (
    SCOPE,
    Group,
    footprint,
    footprint_json,
    per_process_bytes,
    settled_bytes,
    wait_until,
)

Figure = Callable[[str, float, float], float]


def start(group: Group, number: int, *command: str, threads: int = 1) -> list[int]:
    """Start copies, and wait until all of their threads run."""
    pids = group.start(number, *command)
    wait_until(lambda: {len(os.listdir(f"/proc/{pid}/task")) for pid in pids} == {threads}, "all threads run")
    return pids


def cost_of_copies(group: Group, build: Callable[..., str], name: str, number: int) -> tuple[float, float]:
    """Start copies twice; return what one costs by its audit, and by how much the group grows for one."""
    commands = {
        "sleep": (("sleep", "1000"), 1),
        "worker": ((build("worker"),), 3),
        "python": ((sys.executable, "-Ic", "import json, time; time.sleep(1000)"), 1),
    }
    command, threads = commands[name]
    start(group, number, *command, threads=threads)
    before_bytes = settled_bytes(group.path)
    pids = start(group, number, *command, threads=threads)
    true_bytes = (settled_bytes(group.path) - before_bytes) / number

    # No two copies are alike to the page. Each costs in a group what it costs alone.
    totals = {one["pid"]: one["totals"] for one in footprint_json("audit", *pids)["processes"]}
    assert totals[pids[0]]["per_process_bytes"] == per_process_bytes(pids[0])
    return fmean(totals[pid]["per_process_bytes"] for pid in pids), true_bytes


COPIES = pytest.mark.parametrize(("name", "number"), [("sleep", 40), ("worker", 8), ("python", 6)])


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Measure the costs of this C library and kernel, and have them used meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        text = footprint("doctor", "--calibrate", prefix=SCOPE)
        print(text)  # noqa: T201 # shown with a test that fails
        assert "nokmem" not in text
        yield


@COPIES
def test_a_started_copy_costs_what_the_group_grows_by(
    group: Group, build: Callable[..., str], figure: Figure, name: str, number: int
) -> None:
    assert abs(figure(name, *cost_of_copies(group, build, name, number))) < 0.02


def test_a_mixed_group_costs_what_it_is_charged(group: Group, build: Callable[..., str], figure: Figure) -> None:
    before_bytes = settled_bytes(group.path)
    pids = [*start(group, 10, "sleep", "1000"), *start(group, 3, build("worker"), threads=3)]
    true_bytes = settled_bytes(group.path) - before_bytes

    answer = footprint_json("audit", *pids)

    assert abs(figure("10 sleeps and 3 workers", answer["group"]["per_group_bytes"], true_bytes)) < 0.02


@COPIES
@pytest.mark.usefixtures("calibrated")
def test_a_started_copy_costs_within_one_per_cent_when_calibrated(
    group: Group, build: Callable[..., str], figure: Figure, name: str, number: int
) -> None:
    assert abs(figure(f"{name}, calibrated", *cost_of_copies(group, build, name, number))) < 0.01
