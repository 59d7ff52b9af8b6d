"""`footprint watch` on this machine: short processes, short peaks, and leaks whose rate is known."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import footprint
from footprint.cli import main
from footprint.errors import AccessError
from footprint.process.cgroup import make_group
from footprint.process.kernel_events import KernelEvents
from footprint.series.growth import GrowthKind
from footprint.series.timeline import Timeline
from footprint.verbs.watch.call import replay, watch
from footprint.verbs.watch.result import result_of
from footprint.verbs.watch.session import Session
from footprint.verbs.watch.watcher import Watcher
from tests.liveprocesses import states

KIB = 1024
MIB = 1 << 20

# A library whose static buffer grows by 64 KiB a second, a page at a time; and the program that calls it.
LIBRARY = """
static char leaked_buffer[256 << 20];
static long used;
void leak(long bytes) { for (; bytes > 0; bytes -= 4096, used += 4096) leaked_buffer[used] = 1; }
"""
PROGRAM = """
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
void leak(long bytes);
static double now(void) {
    struct timespec at; clock_gettime(CLOCK_MONOTONIC, &at); return at.tv_sec + at.tv_nsec / 1e9;
}
int main(int argc, char **argv) {
    double start = now();
    long leaked = 0, tick = 0;
    char *teeth[64] = {0};
    mallopt(M_MMAP_THRESHOLD, 1 << 16);
    puts("ready"); fflush(stdout);
    for (;;) {
        double seconds = now() - start;
        if (!strcmp(argv[1], "leak")) {
            long due = (long)(seconds * 65536) / 4096 * 4096;
            leak(due - leaked); leaked = due;
        } else if (!strcmp(argv[1], "saw")) {
            if (tick % 40 == 39) for (int i = 0; i < 64; i++) { free(teeth[i]); teeth[i] = 0; }
            else teeth[tick % 40] = memset(malloc(1 << 18), 1, 1 << 18);
        } else if (!strcmp(argv[1], "plateau") && seconds < 1) {
            memset(malloc(1 << 18), 1, 1 << 18);
        }
        tick++;
        nanosleep(&(struct timespec){0, 20000000}, 0);
    }
}
"""
PEAK = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    usleep(300000);
    char *volatile held = malloc(500000000);
    memset(held, 1, 500000000);
    usleep(50000);
    free(held);
    usleep(300000);
    return 0;
}
"""


def built(folder: Path, name: str, source: str, *options: str) -> Path:
    (folder / f"{name}.c").write_text(source)
    subprocess.run(["gcc", "-O0", f"{name}.c", "-o", name, *options], cwd=folder, check=True)
    return folder / name


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leak")
    built(folder, "libleaking.so", LIBRARY, "-shared", "-fPIC")
    return built(folder, "leaking", PROGRAM, "-L.", "-lleaking", f"-Wl,-rpath,{folder}")


@pytest.fixture
def run(leaking: Path) -> Iterator[Callable[[str], int]]:
    children = []

    def started(kind: str) -> int:
        child = subprocess.Popen([leaking, kind], stdout=subprocess.PIPE)
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        return child.pid

    yield started
    for child in children:
        child.kill()
        child.communicate()


def has_events() -> bool:
    try:
        KernelEvents().close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def watched(leaking: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Watch a program of each kind, and two shells that start 2,000 processes each, all at the same time."""
    folder = tmp_path_factory.mktemp("watched")
    with ExitStack() as opened:
        watches = []
        for kind, words in KINDS.items():
            child = opened.enter_context(subprocess.Popen([leaking, kind], stdout=subprocess.PIPE))
            opened.callback(child.kill)
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            watches.append(opened.enter_context(watching(folder / f"{kind}.fps", str(child.pid), *words)))
        for how in ("events", "ptrace"):
            words = ["--", "sh", "-c", MANY, str(folder / how)]
            watches.append(opened.enter_context(watching(folder / f"{how}.fps", *words, has_events=how == "events")))
        assert [one.wait() for one in watches] == [0] * len(watches)
    return {path.stem: path for path in folder.glob("*.fps")}


KINDS = {
    "leak": ["--every", "100ms", "--for", "12s"],
    "saw": ["--every", "50ms", "--for", "8s"],
    "plateau": ["--every", "50ms", "--for", "8s"],
    "nothing": ["--every", "50ms", "--for", "8s"],
}
# What makes the events of the kernel unavailable is what the kernel refuses to whom has no CAP_NET_ADMIN.
WATCH = """
import sys
from footprint.cli import main
from footprint.process.kernel_events import KernelEvents
def refused(*_, **_options): raise PermissionError
if sys.argv[1] != "True": KernelEvents.__init__ = refused
sys.exit(main(["watch", "-q", *sys.argv[2:]]))
"""


def watching(series: Path, *words: str, has_events: bool = True) -> "subprocess.Popen[bytes]":
    start = [sys.executable, "-c", WATCH, str(has_events), "-o", str(series)]
    return subprocess.Popen([*start, *words], stdout=subprocess.DEVNULL, env=os.environ | {"PYTHON": sys.executable})


def test_a_leak_of_a_known_rate_is_found_with_its_library_and_variable(watched: dict[str, Path]) -> None:
    result = result_of(replay(watched["leak"]), None)
    assert result.growth.kind is GrowthKind.GROWS
    assert result.growth.slope is not None
    assert abs(result.growth.slope.per_second / (64 * KIB) - 1) < 0.03
    assert result.owners[0].owner.endswith("/libleaking.so")
    assert result.comparison is not None
    grown = max(result.comparison.changes, key=lambda change: change.delta_bytes)
    assert (grown.section, grown.symbol) == (".bss", "leaked_buffer")
    # The buffer is most of one mapping, which has no name: it is behind the end of the file.
    largest = result.mappings[0]
    assert largest.end_addr - largest.start_addr >= (256 << 20) - 4 * KIB
    assert abs(largest.delta_bytes / grown.delta_bytes - 1) < 0.03


@pytest.mark.parametrize("kind", ["saw", "plateau", "nothing"])
def test_a_plateau_and_a_saw_tooth_are_no_leak(kind: str, watched: dict[str, Path]) -> None:
    found = result_of(replay(watched[kind]), None, most_per_second=MIB / 3600)
    assert found.growth.kind is not GrowthKind.GROWS
    assert found.fails is None


# The large one tells its peak at its end.
MANY = """
i=0
while [ $i -lt 2000 ]; do
    /bin/true
    i=$((i+1))
    if [ $i -eq 1000 ]; then
        "$PYTHON" -ISc "held = b'x' * 104857600; print(open('/proc/self/status').read())" >"$0"
    fi
done
"""


def _check_many(series: Path, source: str) -> Timeline:
    """Check that 2,000 short processes and a large one were seen, with the peak that the kernel told the large one."""
    result = replay(series)
    peak_bytes = int(series.with_suffix("").read_text().split("VmHWM:")[1].split()[0]) * KIB
    assert result.process_count == 1 + 2000 + 1, result.notes
    largest = max(result.ended.values(), key=lambda one: one.peak_resident_bytes or 0)
    # Where it came and ended between two looks, nobody read its command line: taskstats has its name.
    command, name = largest.came.command, Path(sys.executable).name[:15]
    assert "104857600" in command or (source, command) == ("taskstats", name)
    assert largest.ended is not None
    assert largest.ended.source == source
    assert abs((largest.peak_resident_bytes or 0) / peak_bytes - 1) < 0.02
    return result


# A child whose main thread ends, or whose other thread executes a program; what goes on takes 50 MiB.
CHILD = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *hold(void *unused) {
    volatile char *held = malloc(50 << 20);
    for (long at = 0; at < 50 << 20; at += 4096) held[at] = 1;
    sleep(2);
    _exit(0);
}
static void *start(void *program) { execl(program, program, "hold", (char *)0); return 0; }
int main(int argc, char **argv) {
    pthread_t thread;
    if (!strcmp(argv[1], "hold")) hold(0);
    if (!fork()) {
        int executes = !strcmp(argv[1], "exec");
        pthread_create(&thread, 0, executes ? start : hold, argv[0]);
        if (executes) pause();
        pthread_exit(0);
    }
    return wait(0) < 0;
}
"""


@pytest.mark.parametrize("how", ["events", "ptrace"])
@pytest.mark.parametrize("kind", ["exit", "exec"])
def test_a_child_goes_on_whose_main_thread_has_ended(kind: str, how: str, tmp_path: Path) -> None:
    if how == "events" and not has_events():
        pytest.skip("takes root: the process connector and taskstats")
    source, program, series = tmp_path / "child.c", tmp_path / "child", tmp_path / "x.fps"
    source.write_text(CHILD)
    subprocess.run(["gcc", "-O0", "-pthread", str(source), "-o", str(program)], check=True)
    words = ["--every", "100ms", "--", str(program), kind]
    with watching(series, *words, has_events=how == "events") as watch:
        assert watch.wait() == 0
    timeline = replay(series)
    assert timeline.process_count == 2
    assert 50 * MIB <= timeline.peak_bytes < 53 * MIB
    assert max(process.peak_resident_bytes or 0 for process in timeline.ended.values()) >= 50 * MIB


def test_two_thousand_short_processes_are_seen_by_events(watched: dict[str, Path]) -> None:
    if not has_events():
        pytest.skip("takes root: the process connector and taskstats")
    found = _check_many(watched["events"], "taskstats")
    assert found.closed is not None
    # Others start processes meanwhile; the counter is read a moment before and after the events.
    assert found.closed.fork_count - found.closed.seen_count < 100


def test_two_thousand_short_processes_are_seen_by_ptrace(watched: dict[str, Path]) -> None:
    _check_many(watched["ptrace"], "exit stop")


def test_what_ends_before_the_first_tick_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_events():
        pytest.skip("takes root: the process connector and taskstats")
    tick, turn, pid_file = Session.tick, Session.turn, tmp_path / "pid"
    looks: list[Session] = []

    def is_sleep() -> bool:
        text = pid_file.read_text() if pid_file.exists() else ""
        if not text.endswith("\n"):
            return False
        # Where it sleeps, its execution is over, and the kernel has told it.
        return Path(f"/proc/{int(text)}/cmdline").read_bytes() == b"sleep\x001000\0" and states(int(text)) == {"S"}

    # Nobody looks before the second program sleeps.
    def late_tick(session: Session, watcher: Watcher, *, is_last: bool = False) -> None:
        if looks or is_sleep():
            looks.append(session)
            tick(session, watcher, is_last=is_last)
        if len(looks) == 1:
            os.kill(int(pid_file.read_text()), signal.SIGKILL)

    def late_turn(session: Session, watcher: Watcher) -> None:
        if looks:
            turn(session, watcher)

    monkeypatch.setattr(Session, "tick", late_tick)
    monkeypatch.setattr(Session, "turn", late_turn)
    command = ["sh", "-c", f"/bin/true; echo $$ >{pid_file}; exec sleep 1000"]
    found = watch(command=command, every_seconds=0.1)
    assert sorted(one.came.command for one in found.ended.values()) == ["sleep 1000", "true"]


def test_a_peak_of_50_ms_is_found_with_its_owner(tmp_path: Path) -> None:
    peak = built(tmp_path, "peak", PEAK)
    result = result_of(watch(command=[str(peak)]), None)
    group = result.timeline.group_peak
    if group is None:
        pytest.skip("no memory cgroup can be made here")
    assert 500_000_000 < group.peak_bytes < 510_000_000
    assert result.near_peak is not None
    # The machine may be busy while the peak lasts, so that less is read. The control group counts less than an audit by
    # the kernel objects that have a price, and were charged to none.
    assert 0 < result.near_peak.held_bytes < 1.001 * group.peak_bytes


def test_the_cost_at_a_tick_is_what_the_kernel_counts(run: Callable[[str], int]) -> None:
    pid = run("nothing")
    found = watch([pid], every_seconds=0.1, most_seconds=0.5)
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as text:
        counted = dict(line.split()[:2] for line in text.readlines()[1:])
    (member,) = found.alive.values()
    assert member.figures is not None
    assert member.figures.private_bytes == int(counted["Pss_Anon:"]) * KIB
    # The tick has the cost that an audit has.
    assert member.cost_bytes == footprint.audit(pid).totals.per_process.bytes


def test_forked_workers_are_not_counted_twice(tmp_path: Path) -> None:
    code = (
        "import os, time\nheld = b'x' * 50_000_000\n"
        "for _ in range(4):\n    if not os.fork(): time.sleep(3600)\nprint('ready', flush=True)\ntime.sleep(3600)"
    )
    child = subprocess.Popen([sys.executable, "-ISc", code], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        result = watch(tree=child.pid, every_seconds=0.1, most_seconds=0.5, series=tmp_path / "x.fps")
    finally:
        os.killpg(child.pid, 9)
        child.communicate()
    assert result.process_count == 5
    assert 50_000_000 < result.peak_bytes < 100_000_000
    assert replay(tmp_path / "x.fps").peak_bytes == result.peak_bytes


def test_a_signal_asks_for_an_audit(run: Callable[[str], int], tmp_path: Path) -> None:
    path = tmp_path / "x.fps"
    words = [sys.executable, "-m", "footprint", "watch", str(run("nothing")), "--every", "100ms", "-o", str(path), "-q"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as watching:
        end = time.monotonic() + 60
        while (not path.exists() or b'"figures"' not in path.read_bytes()) and time.monotonic() < end:
            time.sleep(0.02)
        watching.send_signal(10)
        while b'"taken":"signal"' not in path.read_bytes() and time.monotonic() < end:
            time.sleep(0.02)
        watching.send_signal(2)
    assert watching.returncode == 0
    assert "signal" in [one.moment for one in replay(path).taken]


def test_a_cgroup_that_goes_ends_the_watch(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    series = tmp_path / "x.fps"

    def end(child: "subprocess.Popen[bytes]", opened: ExitStack) -> None:
        until = time.monotonic() + 60
        while (not series.exists() or b'"figures"' not in series.read_bytes()) and time.monotonic() < until:
            time.sleep(0.02)
        child.kill()
        child.wait()
        # The group is removed while the watch goes on.
        opened.close()

    with ExitStack() as opened:
        try:
            group = opened.enter_context(make_group())
        except AccessError as error:
            pytest.skip(f"no memory cgroup can be made here: {error}")
        child = opened.enter_context(subprocess.Popen(["sleep", "3600"]))
        opened.callback(child.kill)
        group.enter(child.pid)
        with open(f"/proc/{child.pid}/cgroup", encoding="ascii") as text:
            line = next(one for one in text if "memory" in one or one.startswith("0::/"))
        ending = threading.Thread(target=end, args=(child, opened))
        ending.start()
        words = ["--cgroup", line.rstrip().split(":", 2)[2], "--every", "100ms", "-o", str(series), "--json"]
        code = main(["watch", *words])
        ending.join()
    assert code == 0
    assert json.loads(capfd.readouterr().out)["watch"]["process_count"] == 1
    assert replay(series).closed is not None


def test_the_work_of_a_watch_is_the_processor_time_of_its_process(
    run: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: list[float] = []

    def reading() -> float:
        readings.append(7 + 0.016 * len(readings))
        return readings[-1]

    monkeypatch.setattr("time.process_time", reading)
    found = watch([run("nothing")], every_seconds=0.01, most_seconds=0.2)
    assert len(readings) > 2
    assert 0 < found.own_cpu_ms <= round(1000 * (readings[-1] - readings[0]))
    assert found.own_cpu_ms % 16 == 0
