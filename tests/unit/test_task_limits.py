"""The limits that more processes meet: tasks of a machine and of a user, and those of a control group."""

from dataclasses import replace
from pathlib import Path

import pytest

from footprint.attribution.group import group_up
from footprint.errors import AccessError, UsageError
from footprint.model.group import CgroupComparison
from footprint.model.projection import FitLimit, LimitUnit
from footprint.process.control_groups import find_control_group
from footprint.sources.fit_limits import TaskLimit, fit_limits, limits_of_more, read_task_limits
from tests.groupmembers import heap, member
from tests.ledgers import audit_of, ledger_row

MIB = 1 << 20
LIMITS = """Limit              Soft Limit   Hard Limit   Units
Max stack size     8388608      unlimited    bytes
Max processes      {soft}          700          processes
"""


def machine(root: Path, *, user: int = 33, soft: str = "500") -> str:
    """Write a machine with init, a server of three threads under a user, and another program of that user."""
    files = {
        "proc/sys/kernel/pid_max": "32768\n",
        "proc/sys/kernel/threads-max": "9000\n",
        "proc/1/status": "Name:\tinit\nUid:\t0\t0\t0\t0\nThreads:\t1\n",
        "proc/20/status": f"Name:\tserver\nUid:\t{user}\t{user}\t{user}\t{user}\nThreads:\t3\n",
        "proc/20/limits": LIMITS.format(soft=soft),
        "proc/21/status": f"Name:\tother\nUid:\t{user}\t{user}\t{user}\t{user}\nThreads:\t40\n",
        "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "proc/20/cgroup": "0::/pod/app\n",
        "sys/fs/cgroup/pod/app/cgroup.procs": "20\n",
        "sys/fs/cgroup/pod/app/memory.stat": f"anon {10 * MIB}\n",
        "sys/fs/cgroup/pod/app/memory.max": "max\n",
        "sys/fs/cgroup/pod/app/pids.current": "3\n",
        "sys/fs/cgroup/pod/app/pids.max": "50\n",
        "sys/fs/cgroup/pod/cgroup.procs": "",
        "sys/fs/cgroup/pod/memory.stat": f"anon {30 * MIB}\nfile {70 * MIB}\n",
        "sys/fs/cgroup/pod/memory.max": f"{256 * MIB}\n",
        "sys/fs/cgroup/free/cgroup.procs": "",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return str(root)


def test_tasks_of_others_are_taken_and_those_of_the_target_are_not(tmp_path: Path) -> None:
    assert read_task_limits([20], 20, machine(tmp_path)) == (
        TaskLimit("pid_max", 32768, 41, is_of_machine=True),
        TaskLimit("threads-max", 9000, 41, is_of_machine=True),
        TaskLimit("RLIMIT_NPROC of user 33", 500, 40),
    )


@pytest.mark.parametrize(("user", "soft"), [(0, "500"), (33, "unlimited")])
def test_root_and_a_user_without_a_limit_have_none(tmp_path: Path, user: int, soft: str) -> None:
    names = [one.name for one in read_task_limits([20], 20, machine(tmp_path, user=user, soft=soft))]
    assert names == ["pid_max", "threads-max"]


def test_a_process_that_is_gone_leaves_the_limits_of_the_machine(tmp_path: Path) -> None:
    names = [limit.name for limit in read_task_limits([99], 99, machine(tmp_path))]
    assert names == ["pid_max", "threads-max"]


def test_the_limits_of_the_own_control_group_are_those_above_it_as_well(tmp_path: Path) -> None:
    # In the pod others hold 30 - 10 MiB that cannot be dropped, and a part of 64 of 256 MiB is left.
    found = fit_limits([20], "own", 2 * MIB, root=machine(tmp_path))
    assert found[:2] == (
        FitLimit("memory.max of /pod", LimitUnit.BYTES, 256 * MIB, 26 * MIB),
        FitLimit("pids.max of /pod/app", LimitUnit.TASKS, 50, 0),
    )
    assert [one.name for one in found[2:]] == ["pid_max", "threads-max", "RLIMIT_NPROC of user 33"]


def test_what_other_processes_of_the_control_group_hold_is_taken(tmp_path: Path) -> None:
    root = Path(machine(tmp_path))
    (root / "sys/fs/cgroup/pod/app/cgroup.procs").write_text("20\n21\n", encoding="ascii")
    (root / "proc/21/smaps_rollup").write_text(
        "Rss: 9000 kB\nPss_Anon: 4096 kB\nPss_Shmem: 1024 kB\n", encoding="ascii"
    )
    # 5 MiB and 40 threads of process 21, beside the 20 MiB that others in the pod hold, and the 4 MiB that are left.
    found = fit_limits([20], "own", 0, root=str(root))
    assert [(one.name, one.taken) for one in found[:2]] == [
        ("memory.max of /pod", 29 * MIB),
        ("pids.max of /pod/app", 40),
    ]
    both = fit_limits([20, 21], "own", 0, root=str(root))
    assert [one.taken for one in both[:2]] == [24 * MIB, 0]


def test_resident_memory_counts_of_processes_whose_shares_may_not_be_read(tmp_path: Path) -> None:
    root = Path(machine(tmp_path))
    status = root / "proc/20/status"
    status.write_text(status.read_text() + "RssAnon:\t4096 kB\nRssFile:\t800 kB\nRssShmem:\t0 kB\nVmPTE:\t1024 kB\n")
    # A program that does not run yet, in a pod where process 20 does.
    assert fit_limits([], "/pod/app", 0, root=str(root))[0].taken == 29 * MIB


def test_the_own_limits_of_a_chosen_control_group_are_not_those_of_one_below_it(tmp_path: Path) -> None:
    root = machine(tmp_path)
    found = fit_limits([20], "own", 0, own_group=find_control_group("/pod", root), root=root)
    assert found[0] == FitLimit("memory.max of /pod", LimitUnit.BYTES, 256 * MIB, 4 * MIB)
    assert "pids.max of /pod/app" not in [one.name for one in found]


def test_the_own_limits_of_processes_of_several_control_groups_are_those_that_hold_for_all(tmp_path: Path) -> None:
    # Also where the memory controller is off, so that the chosen group is not told with the figures.
    root = Path(machine(tmp_path))
    (root / "proc/21/cgroup").write_text("0::/pod/other/worker\n", encoding="ascii")
    (root / "sys/fs/cgroup/pod/pids.max").write_text("70\n", encoding="ascii")
    (root / "sys/fs/cgroup/pod/pids.current").write_text("43\n", encoding="ascii")
    for own in ("own", None):
        told = [fit_limit.name for fit_limit in fit_limits([20, 21], own, 0, root=str(root))]
        assert told[:2] == ["memory.max of /pod", "pids.max of /pod"]
        assert "pids.max of /pod/app" not in told


def test_the_limits_of_a_container_of_crun_stand_inside_the_group_that_has_its_id(tmp_path: Path) -> None:
    root, inside = machine(tmp_path), tmp_path / "sys/fs/cgroup/pod/container"
    inside.mkdir()
    (inside / "memory.max").write_text(f"{64 * MIB}\n")
    (inside / "memory.stat").write_text("anon 4096\nfile 0\nkernel 0\nshmem 0\n")
    (tmp_path / "proc/20/cgroup").write_text("0::/pod/container\n")
    limits = fit_limits([20], "own", 0, own_group=find_control_group("/pod", root), root=root)
    assert [(limit.name, limit.most) for limit in limits][:1] == [("memory.max of /pod/container", 64 * MIB)]


def test_the_parent_that_the_answer_prices_is_not_taken_besides(tmp_path: Path) -> None:
    root = Path(machine(tmp_path))
    (root / "sys/fs/cgroup/pod/app/cgroup.procs").write_text("20\n21\n", encoding="ascii")
    (root / "proc/21/smaps_rollup").write_text("Pss_Anon: 4096 kB\n", encoding="ascii")
    assert fit_limits([20], "own", 0, root=str(root))[0].taken == 28 * MIB
    assert fit_limits([20], "own", 0, parent=21, root=str(root))[0].taken == 24 * MIB


def test_a_program_fits_into_a_control_group_that_is_named(tmp_path: Path) -> None:
    assert [fit_limit.name for fit_limit in fit_limits([], "/pod", 0, root=machine(tmp_path))] == ["memory.max of /pod"]


def test_a_program_has_no_control_group_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name the path of one with --limit"):
        fit_limits([], "own", 0, root=machine(tmp_path))


def test_a_control_group_without_limits_or_that_is_not_there_limits_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither /free nor a control group above it has a limit"):
        fit_limits([], "/free", 0, root=machine(tmp_path))
    with pytest.raises(AccessError, match="no such control group"):
        fit_limits([], "/gone", 0, root=machine(tmp_path))


def test_as_many_of_a_live_process_fit_as_the_tasks_and_the_memory_of_its_control_group_allow(tmp_path: Path) -> None:
    root = machine(tmp_path)
    for thread in (20, 22, 23):
        (tmp_path / f"proc/20/task/{thread}").mkdir(parents=True)
    audit = replace(audit_of(ledger_row("[heap]", 4096)), pid=20, is_live=True, saved_in=None)
    # Three threads each: 500 - 40 tasks are left to the user. The control group allows 50, and has 232 of 256 MiB left:
    # each needs 1 MiB.
    audit = replace(audit, projection=audit.projection._replace(per_process_bytes=MIB, shared_once_bytes=0))
    fit = [(one.name, one.count) for one in limits_of_more(audit, root)]
    assert fit == [
        ("pids.max of /pod/app", 16),
        ("RLIMIT_NPROC of user 33", 153),
        ("memory.max of /pod", 232),
    ]
    # `project --memory` meets the same limits without being asked to.
    limits = fit_limits([20], None, 0, root=root)
    assert {limit.name for limit in limits} == {name for name, _ in fit}
    # A memory that is named may be another machine's: the limits of this one count with a group of it.
    of_machine = {"pid_max", "threads-max"}
    assert {one.name for one in fit_limits([20], "own", 0, root=root)} == {name for name, _ in fit} | of_machine
    for other in (replace(audit, saved_in="saved.json"), replace(audit, is_live=False), replace(audit, pid=99)):
        assert limits_of_more(other, root) == ()


def test_a_chosen_control_group_has_limits_of_its_own_alone_on_the_page_as_in_a_projection(tmp_path: Path) -> None:
    root = machine(tmp_path)
    (tmp_path / "proc/20/task/20").mkdir(parents=True)
    snapshot, audit = member(20, heap(1024), pss_anon=1024)
    running = group_up([(snapshot._replace(is_live=True), replace(audit, is_live=True))])
    group = replace(running, group=running.group._replace(cgroup=CgroupComparison("/pod", 2, 0, None, ())))
    told = [one.name for one in limits_of_more(group, root)]
    assert "memory.max of /pod" in told
    assert "pids.max of /pod/app" not in told
    assert sorted(told) == sorted(
        fit_limit.name for fit_limit in fit_limits([20], None, 0, own_group=find_control_group("/pod", root), root=root)
    )
    assert "pids.max of /pod/app" in [one.name for one in limits_of_more(running, root)]
    gone = replace(group, group=group.group._replace(cgroup=CgroupComparison("/gone", 2, 0, None, ())))
    assert limits_of_more(gone, root) == ()
