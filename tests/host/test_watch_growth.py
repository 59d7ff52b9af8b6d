"""Programs that grow in a known way (`growth/*.c`): the trend, its owners, and the gates; and how a watch ends."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import footprint
from footprint.series.growth import GrowthKind
from footprint.verbs.watch.call import replay
from footprint.verbs.watch.result import WatchResult, result_of

SOURCES = Path(__file__).parent / "growth"
KIB = 1024
MIB = 1 << 20
HOUR = 3600
# What each writes in a second, without what the kernel spends; the last word of a plateau is its warm-up.
PROGRAMS = {"fdleak": "24", "forkserver": "24", "plateau": "24 6", "shmleak": "24", "threadleak": "24"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("growth")
    for name in PROGRAMS:
        subprocess.run(["gcc", "-O1", "-pthread", SOURCES / f"{name}.c", "-o", found / name, "-w"], check=True)
    return found


def watching(*words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "footprint", "watch", "-q", *words], stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def grown(folder: Path) -> dict[str, WatchResult]:
    """Watch all programs at the same time."""
    watches = [
        watching("--every", "250ms", "-o", str(folder / f"{name}.fps"), "--", str(folder / name), *words.split())
        for name, words in PROGRAMS.items()
    ]
    assert [watch.wait() for watch in watches] == [0] * len(watches)
    return {name: result_of(replay(folder / f"{name}.fps"), None, most_per_second=0.0) for name in PROGRAMS}


def rate_of(result: WatchResult) -> float:
    assert result.growth.kind is GrowthKind.GROWS
    assert result.growth.slope is not None
    return result.growth.slope.per_second


def rates(result: WatchResult) -> dict[str, float]:
    return {owner.owner: owner.growth.slope.per_second for owner in result.owners if owner.growth.slope is not None}


def test_what_forked_workers_write_is_counted_once_and_by_its_owner(grown: dict[str, WatchResult]) -> None:
    found = grown["forkserver"]
    assert rate_of(found) == pytest.approx(4 * 64 * KIB, rel=0.03)
    assert rates(found)["[heap]"] == pytest.approx(4 * 32 * KIB, rel=0.05)
    assert rates(found)["[anonymous]"] == pytest.approx(4 * 32 * KIB, rel=0.05)


def test_open_sockets_with_their_data_grow(grown: dict[str, WatchResult]) -> None:
    found = grown["fdleak"]
    # 64 KiB in as many blocks of the kernel, and what two sockets cost.
    assert 4 * 64 * KIB < rate_of(found) < 4 * 74 * KIB
    assert rates(found)["[open descriptors]"] == pytest.approx(rate_of(found), rel=0.01)


def test_a_file_in_memory_grows_with_what_is_written_to_it(grown: dict[str, WatchResult]) -> None:
    found = grown["shmleak"]
    assert rate_of(found) == pytest.approx(128 * KIB, rel=0.03)
    assert rates(found)["/memfd:leak (deleted)"] == pytest.approx(128 * KIB, rel=0.03)


def test_threads_grow_with_their_stacks_and_all_that_the_kernel_has_for_them(grown: dict[str, WatchResult]) -> None:
    found = grown["threadleak"]
    # 8 KiB of stack, 16 KiB of kernel stack, a page of page tables, and the objects of a task and two mappings.
    assert 2 * 31 * KIB < rate_of(found) < 2 * 36 * KIB
    by_owner = rates(found)
    assert by_owner["[kernel stacks]"] == pytest.approx(2 * 16 * KIB, rel=0.05)
    assert by_owner["[thread stacks]"] == pytest.approx(2 * 8 * KIB, rel=0.05)


@pytest.mark.parametrize("name", ["fdleak", "forkserver", "shmleak", "threadleak"])
def test_owners_add_up_to_the_trend_and_in_each_audit_to_the_cost(name: str, grown: dict[str, WatchResult]) -> None:
    found = grown[name]
    assert sum(rates(found).values()) == pytest.approx(rate_of(found), rel=0.01)
    timeline = found.timeline
    owners_bytes = sum(course.values[-1] for course in timeline.owners.values())
    assert owners_bytes == pytest.approx(timeline.taken[-1].held_bytes, abs=1)
    for audit in timeline.taken:
        held_bytes = json.loads(audit.answer(name))
        cost = (
            held_bytes["group"]["per_group_bytes"]
            if "group" in held_bytes
            else held_bytes["totals"]["per_process_bytes"]
        )
        assert audit.held_bytes == cost


@pytest.mark.parametrize("name", ["fdleak", "shmleak", "threadleak"])
def test_a_gate_fails_on_a_leak_that_no_heap_shows(name: str, grown: dict[str, WatchResult]) -> None:
    assert grown[name].fails == "it grows"


def test_neither_a_plateau_nor_an_owner_of_it_grows(grown: dict[str, WatchResult]) -> None:
    found = grown["plateau"]
    assert found.growth.kind in {GrowthKind.WARMED_UP, GrowthKind.STEADY}
    assert {owner.growth.kind for owner in found.owners} <= {GrowthKind.WARMED_UP, GrowthKind.STEADY}
    assert found.fails is None


# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("target", ["process", "command"])
def test_what_stops_a_service_ends_a_watch_with_its_report(number: signal.Signals, target: str, tmp_path: Path) -> None:
    series = tmp_path / "x.fps"
    with subprocess.Popen(["sleep", "1000"]) as child:
        named = ["--", "sleep", "1000"] if target == "command" else [str(child.pid)]
        words = [sys.executable, "-m", "footprint", "watch", "--every", "50ms", "-o", str(series), *named]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as running:
            until = time.monotonic() + 60
            while (not series.exists() or b'"taken":"start"' not in series.read_bytes()) and time.monotonic() < until:
                time.sleep(0.02)
            running.send_signal(number)
            out, _ = running.communicate()
        child.kill()
    assert running.returncode == 0
    assert "its peak is" in out.splitlines()[-1]
    found = replay(series)
    assert found.closed is not None
    assert [found.taken[0].moment, found.taken[-1].moment] == ["start", "end"]
    # On a busy machine ticks come less often.
    assert {note.slug for note in found.notes} <= {"ticks-slowed"}


CHILD = """
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    usleep(500000);
    if (!fork()) {
        char *volatile memory = malloc(100 << 20);
        memset(memory, 1, 100 << 20);
        usleep(20000);
        free(memory);
        _exit(0);
    }
    wait(0);
    usleep(500000);
}
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """Make a folder outside of those of pytest, into which only their owner can look."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture
def nobody(home: Path) -> list[str]:
    """Return the beginning of a command that runs as an ordinary user, who can write into the folder."""
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("takes root, and setpriv of util-linux")
    home.chmod(0o755)
    os.chown(home, 65534, 65534)
    # The project may lie where only root can read.
    package = Path(footprint.__file__).parent
    shutil.copytree(package, home / "package" / "footprint", ignore=shutil.ignore_patterns("__pycache__"))
    variables = [f"HOME={home}", f"PYTHONPATH={home / 'package'}", "PYTHONDONTWRITEBYTECODE=1"]
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-C", str(home), *variables]
    # The interpreter of root, too.
    is_closed = subprocess.run([*user, sys.executable, "-c", "pass"], check=False, capture_output=True).returncode
    return [*user, "/usr/bin/python3" if is_closed else sys.executable, "-m", "footprint"]


def test_an_ordinary_user_is_told_a_short_peak_of_a_child_and_its_budget_fails(nobody: list[str], home: Path) -> None:
    source, program = home / "child.c", home / "child"
    source.write_text(CHILD)
    subprocess.run(["gcc", "-O0", str(source), "-o", str(program)], check=True)
    words = ["watch", "--every", "400ms", "-o", "x.fps", "--", str(program)]
    subprocess.run([*nobody, *words], check=True, stdout=subprocess.DEVNULL)
    shown = subprocess.run([*nobody, "watch", "--replay", "x.fps", "--json"], check=True, capture_output=True)
    figures = json.loads(shown.stdout)["watch"]
    assert figures["is_peak_lower_bound"]
    # The kernel counts pages for each processor by itself.
    assert 99.5 * MIB <= figures["peak_bytes"] < 101 * MIB

    def check(limit: str, *more: str) -> int:
        (home / "footprint.toml").write_text(f'[budgets]\npeak_bytes = "{limit}"\n')
        return subprocess.run([*nobody, "check", "x.fps", *more], check=False, stdout=subprocess.DEVNULL).returncode

    assert check("50 MiB", "--accept", "lower-bound") == 1
    assert check("200 MiB") == 1
    assert check("200 MiB", "--accept", "lower-bound") == 0
