"""`run` where systemd is: the peak in scopes, and what the kernel kills for want of memory."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.vm.guest import IS_ROOT, footprint, has_file, only_root

MIB = 1 << 20
USER = () if IS_ROOT else ("--user",)
has_peak = pytest.mark.skipif(not has_file("memory.peak"), reason="Linux before 5.19 has no memory.peak")


def unit(*properties: str, kind: str = "--scope") -> tuple[str, ...]:
    how = ["--scope"] if kind == "--scope" else ["--wait", "--pipe"]
    return ("systemd-run", *USER, "--quiet", "--collect", *how, *(word for one in properties for word in ("-p", one)))


def run_json(*words: object, prefix: tuple[str, ...] = ()) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(footprint("run", "--json", *words, prefix=prefix, code=None))
    return answer


@has_peak
@pytest.mark.parametrize("kind", ["--scope", "--service"])
def test_the_peak_is_counted_by_the_kernel_in_a_scope_and_in_a_service(build: Callable[..., str], kind: str) -> None:
    answer = run_json("--", build("eat"), 40, prefix=unit(kind=kind))

    peak = answer["run"]["peak"]
    assert peak["source"] == "memory.peak"
    assert 40 * MIB < peak["peak_bytes"] < 44 * MIB
    assert answer["totals"]["per_process_bytes"] == pytest.approx(peak["peak_bytes"], rel=0.04)


@has_peak
def test_the_limits_of_the_scope_hold_for_what_it_runs() -> None:
    text = footprint(
        *("run", "--", "sh", "-c", "g=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); cat $g/pids.max $g/memory.max"),
        prefix=(*unit("TasksMax=123", "MemoryMax=99M"), "sh", "-c", 'exec "$@" 2>&1', "sh"),
    )
    assert re.match(rf"123\n{99 * MIB}\n", text)


@has_peak
@pytest.mark.parametrize("kind", ["--scope", "--service"])
@pytest.mark.parametrize("is_child", [False, True])
def test_what_the_kernel_kills_for_want_of_memory_is_told_with_its_owners(
    build: Callable[..., str], kind: str, *, is_child: bool
) -> None:
    command = ["sh", "-c", f"{build('eat')} 1000; exit 7"] if is_child else [build("eat"), "1000"]

    answer = run_json("--", *command, prefix=unit("MemoryMax=64M", "MemorySwapMax=0", kind=kind))

    (failure, *_) = answer["run"]["failures"]
    whom = "a process that it started" if is_child else "it"
    assert failure["kind"] == "memory"
    assert re.fullmatch(
        rf"the kernel killed {whom} for want of memory \(memory\.max of /\S+, 64 MiB\)", failure["detail"]
    )
    assert answer["run"]["signal"] == (None if is_child else "SIGKILL")
    assert answer["run"]["peak"]["peak_bytes"] == pytest.approx(64 * MIB, rel=0.1)
    assert answer["run"]["peak"]["audited_bytes"] > 0.85 * 64 * MIB
    # The largest is the one that was killed, and its owner is its allocator.
    assert "eat" in answer["target"]["command"]
    owners = {row["owner"]: row["bytes"] for row in answer["ledger"]}
    assert owners["[mapped blocks]"] + owners.get("[heap]", 0) > 0.9 * answer["totals"]["private_bytes"]


@has_peak
def test_a_failed_run_ends_with_the_cause_and_its_exit_code(build: Callable[..., str]) -> None:
    text = footprint("run", "--", build("eat"), 1000, prefix=unit("MemoryMax=32M", "MemorySwapMax=0"), code=None)
    last = " ".join(text.splitlines()[-3:])
    assert "The run failed: the kernel killed it for want of memory (memory.max of" in last


def test_without_a_group_of_its_own_a_program_is_explained_by_what_it_holds() -> None:
    # In a group of version 2 that is not root's, nobody may make one: the session of an ordinary user.
    answer = run_json("--", "ls", "/")
    peak = answer["run"]["peak"]
    if IS_ROOT and peak["source"].startswith("memory."):
        assert peak["peak_bytes"] > 0
    else:
        assert peak["source"] in {"VmHWM", "VmRSS"}
        assert peak["audited_bytes"] == pytest.approx(peak["peak_bytes"], rel=0.1)


@only_root
def test_an_answer_comes_before_systemd_ends_a_unit_of_which_something_was_killed(build: Callable[..., str]) -> None:
    # alice may make no group beside a unit of the system; systemd stops it when the kernel has killed a process of it.
    properties = ("User=alice", "MemoryMax=80M", "MemorySwapMax=0", "OOMPolicy=stop")
    # It is stopped and read at nine tenths of the limit: from there on it leaves seconds for that.
    answer = run_json("--", build("eat"), 1000, 0, 300, prefix=unit(*properties, kind="--service"))

    (failure, *_) = answer["run"]["failures"]
    assert failure["kind"] == "memory"
    assert "80 MiB" in failure["detail"]
    assert answer["run"]["peak"]["audited_bytes"] > 30 * MIB


@pytest.mark.parametrize("when", ["exit", "settled", "500ms", "peak"])
def test_each_moment_comes_on_a_slow_machine(build: Callable[..., str], when: str) -> None:
    answer = run_json("--when", when, "--", build("eat"), 20, 5)
    assert answer["run"]["moment"] in {"exit", "settled", "time", "peak"}
    assert answer["totals"]["private_bytes"] > (0 if when == "500ms" else 18 * MIB)


def test_what_it_started_is_followed(build: Callable[..., str]) -> None:
    script = f"{build('eat')} 10 1000 & {build('eat')} 5 1000 & wait"
    answer = run_json("--follow", "--when", "settled", "--", "sh", "-c", script)
    sizes = sorted(child["private_bytes"] for child in answer["run"]["children"])
    assert [round(size / MIB) for size in sizes] == [5, 10]
