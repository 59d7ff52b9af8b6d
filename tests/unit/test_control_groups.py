"""Control groups of others, on trees of files as Linux shows them: version 1 and 2, units, containers, limits."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from footprint.errors import AccessError, UsageError
from footprint.process.control_groups import (
    CgroupCharges,
    CgroupLimit,
    control_group_of,
    find_container,
    find_control_group,
    find_unit,
    pids_of,
    read_charges,
    read_limits,
)

MIB = 1 << 20
CONTAINER = "3f0c9d2b7a61e5f48c1d0b9e7f6a5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b"
SERVICE = "/system.slice/nginx.service"

V2_MOUNTS = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNTS = (
    "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 23 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    "33 23 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
    "34 23 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)
V2_STAT = f"""anon {40 * MIB}
file {30 * MIB}
kernel {5 * MIB}
kernel_stack 65536
sock 4096
shmem {10 * MIB}
file_mapped {8 * MIB}
slab {3 * MIB}
"""
V1_STAT = f"cache {MIB}\ntotal_cache {30 * MIB}\ntotal_rss {40 * MIB}\ntotal_shmem {10 * MIB}\n"


def tree(root: Path, files: Mapping[str, str]) -> str:
    """Write files below a directory that is taken for `/`."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return str(root)


@pytest.fixture
def unified(tmp_path: Path) -> str:
    """A machine with version 2: a service whose worker is in a group of its own, in a slice with limits."""
    group, above = f"/sys/fs/cgroup{SERVICE}", "/sys/fs/cgroup/system.slice"
    return tree(
        tmp_path,
        {
            "/proc/self/mountinfo": V2_MOUNTS,
            "/proc/1/cgroup": "0::/init.scope\n",
            "/proc/70/cgroup": f"0::{SERVICE}\n",
            "/proc/71/cgroup": f"0::{SERVICE}/worker\n",
            f"{group}/cgroup.procs": "70\n0\n",
            f"{group}/worker/cgroup.procs": "71\n72\n",
            f"{group}/memory.stat": V2_STAT,
            f"{group}/memory.current": f"{90 * MIB}\n",
            f"{group}/memory.max": "max\n",
            f"{group}/pids.current": "3\n",
            f"{group}/pids.max": "100\n",
            f"{above}/cgroup.procs": "",
            f"{above}/memory.stat": V2_STAT.replace(f"anon {40 * MIB}", f"anon {60 * MIB}"),
            f"{above}/memory.max": f"{200 * MIB}\n",
            f"{above}/memory.high": f"{180 * MIB}\n",
            f"{above}/pids.current": "10\n",
            f"{above}/pids.max": "max\n",
            "/sys/fs/cgroup/cgroup.procs": "1\n",
            "/sys/fs/cgroup/memory.stat": V2_STAT,
        },
    )


@pytest.fixture
def mixed(tmp_path: Path) -> str:
    """A machine with version 1: a container of docker, with a limit; a unit that only systemd's hierarchy has."""
    memory, tasks = f"/sys/fs/cgroup/memory/docker/{CONTAINER}", f"/sys/fs/cgroup/pids/docker/{CONTAINER}"
    membership = f"9:name=systemd:/docker/{CONTAINER}\n8:pids:/docker/{CONTAINER}\n4:memory:/docker/{CONTAINER}\n0::/\n"
    return tree(
        tmp_path,
        {
            "/proc/self/mountinfo": V1_MOUNTS,
            "/proc/80/cgroup": membership,
            "/proc/90/cgroup": "9:name=systemd:/system.slice/cron.service\n8:pids:/\n4:memory:/\n0::/\n",
            f"{memory}/cgroup.procs": "80\n81\n",
            f"{memory}/memory.usage_in_bytes": f"{85 * MIB}\n",
            f"{memory}/memory.limit_in_bytes": f"{128 * MIB}\n",
            f"{memory}/memory.kmem.usage_in_bytes": f"{5 * MIB}\n",
            f"{memory}/memory.kmem.tcp.usage_in_bytes": "4096\n",
            f"{memory}/memory.stat": V1_STAT,
            f"{tasks}/cgroup.procs": "80\n81\n",
            f"{tasks}/pids.current": "2\n",
            f"{tasks}/pids.max": "64\n",
            "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes": "9223372036854771712\n",
            "/sys/fs/cgroup/memory/docker/memory.stat": V1_STAT,
            "/sys/fs/cgroup/systemd/system.slice/cron.service/cgroup.procs": "90\n",
        },
    )


# --- which processes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [SERVICE, SERVICE[1:], f"/sys/fs/cgroup{SERVICE}", f"/sys/fs/cgroup{SERVICE}/"])
def test_a_group_has_the_processes_in_it_and_below_it(unified: str, path: str) -> None:
    # 0 is a process of another PID namespace.
    found = find_control_group(path, unified)
    assert (found.path, pids_of(found)) == (SERVICE, (70, 71, 72))


@pytest.mark.parametrize("name", ["nginx.service", "nginx"])
def test_a_unit_is_found_by_its_name_wherever_it_is(unified: str, name: str) -> None:
    assert find_unit(name, unified).path == SERVICE


@pytest.mark.parametrize("name", ["php8.2-fpm", "php8.2-fpm.service"])
def test_the_name_of_a_unit_may_have_dots(tmp_path: Path, name: str) -> None:
    path = "/system.slice/php8.2-fpm.service"
    files = {
        "/proc/self/mountinfo": V2_MOUNTS,
        "/proc/9/cgroup": f"0::{path}\n",
        f"/sys/fs/cgroup{path}/cgroup.procs": "9\n",
    }
    assert find_unit(name, tree(tmp_path, files)).path == path


@pytest.mark.parametrize("digits", [12, 64])
def test_a_container_is_found_by_the_beginning_of_its_id(mixed: str, digits: int) -> None:
    found = find_container(CONTAINER[:digits].upper(), mixed)
    assert (found.path, found.version) == (f"/docker/{CONTAINER}", 1)
    assert pids_of(found) == (80, 81)


def test_a_container_of_kubernetes_is_found_in_its_pod(tmp_path: Path) -> None:
    path = f"/kubepods.slice/kubepods-pod1.slice/cri-containerd-{CONTAINER}.scope"
    files = {"/proc/self/mountinfo": V2_MOUNTS, "/proc/5/cgroup": f"0::{path}\n"}
    root = tree(tmp_path, files | {f"/sys/fs/cgroup{path}/cgroup.procs": "5\n"})
    assert find_container(CONTAINER[:12], root).path == path


def test_a_unit_of_the_system_is_not_mixed_up_with_one_of_a_user(tmp_path: Path) -> None:
    system, user = (
        "/system.slice/dbus.service",
        "/user.slice/user-1000.slice/user@1000.service/session.slice/dbus.service",
    )
    files = {"/proc/self/mountinfo": V2_MOUNTS, "/proc/7/cgroup": f"0::{user}\n", "/proc/900/cgroup": f"0::{system}\n"}
    root = tree(tmp_path, files | {f"/sys/fs/cgroup{path}/cgroup.procs": "" for path in (system, user)})
    with pytest.raises(UsageError, match=f"2 control groups have this name: choose one by --cgroup {user} or {system}"):
        find_unit("dbus", root)


def test_the_monitor_of_a_container_is_no_part_of_it(tmp_path: Path) -> None:
    scope, monitor = f"/machine.slice/libpod-{CONTAINER}.scope", f"/machine.slice/libpod-conmon-{CONTAINER}.scope"
    files = {
        "/proc/self/mountinfo": V2_MOUNTS,
        "/proc/5/cgroup": f"0::{monitor}\n",
        "/proc/8/cgroup": f"0::{scope}/container\n",
        f"/sys/fs/cgroup{monitor}/cgroup.procs": "5\n",
        f"/sys/fs/cgroup{scope}/container/cgroup.procs": "8\n",
    }
    root = tree(tmp_path, files)
    assert pids_of(find_container(CONTAINER, root)) == (8,)


def test_a_unit_without_the_memory_controller_has_processes_and_no_charges(mixed: str) -> None:
    found = find_unit("cron.service", mixed)
    assert (pids_of(found), found.charges()) == ((90,), None)


@pytest.mark.parametrize("identifier", ["", "3f0c9d2b7a6", "nginx", "../../etc", "g" * 12])
def test_what_is_no_id_of_a_container_is_refused(mixed: str, identifier: str) -> None:
    with pytest.raises(UsageError, match="at least 12 hexadecimal digits"):
        find_container(identifier, mixed)


def test_what_is_not_there_is_named(unified: str) -> None:
    with pytest.raises(AccessError, match="no such control group"):
        find_control_group("/jobs/7", unified)
    with pytest.raises(AccessError, match="no process is in a control group of this unit"):
        find_unit("cron.service", unified)
    with pytest.raises(AccessError, match="no process is in a control group of this container"):
        find_container(CONTAINER, unified)
    empty = {f"/sys/fs/cgroup{SERVICE}{below}/cgroup.procs": "" for below in ("", "/worker")}
    with pytest.raises(AccessError, match="no process is in this control group"):
        pids_of(find_control_group("/system.slice", tree(Path(unified), empty)))


# --- what is charged --------------------------------------------------------------------------------------------------

CHARGES = CgroupCharges(
    total_bytes=90 * MIB,
    anonymous_bytes=40 * MIB,
    page_cache_bytes=20 * MIB,
    shared_memory_bytes=10 * MIB,
    kernel_bytes=5 * MIB,
    slab_bytes=3 * MIB,
    socket_bytes=4096,
)


def test_charges_of_version_2_have_shared_memory_apart_from_the_page_cache(unified: str) -> None:
    charges = find_control_group(SERVICE, unified).charges()
    assert charges is not None
    assert charges._replace(stat={}) == CHARGES._replace(stat={})
    assert charges.stat["kernel_stack"] == 65536


def test_charges_of_version_1_are_those_of_the_groups_below_as_well(mixed: str) -> None:
    assert find_container(CONTAINER, mixed).charges() == CHARGES._replace(total_bytes=85 * MIB, slab_bytes=None)


def test_before_linux_5_18_kernel_memory_is_the_sum_of_its_parts(unified: str) -> None:
    folder = Path(unified) / "sys/fs/cgroup/old"
    tree(
        folder, {"memory.stat": "anon 1\nfile 0\nkernel_stack 2\npagetables 30\nslab 400\n", "memory.current": "433\n"}
    )
    assert read_charges(str(folder), 2).kernel_bytes == 432


def test_charges_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"memory\.stat"):
        read_charges(str(tmp_path), 2)


# --- its limits -------------------------------------------------------------------------------------------------------


def test_limits_are_those_of_the_group_and_of_all_above_it(unified: str) -> None:
    # The service holds 40 + 10 + 5 MiB and 4 KiB, its slice 60 + 10 + 5 MiB and 4 KiB.
    # The group of the worker has no controllers of its own.
    assert [limit.name for limit in read_limits(control_group_of([71], unified))] == [
        "memory.max of /system.slice",
        "memory.high of /system.slice",
        f"pids.max of {SERVICE}",
    ]
    assert read_limits(find_control_group(SERVICE, unified)) == (
        CgroupLimit("memory.max of /system.slice", "bytes", 200 * MIB, 75 * MIB + 4096, 55 * MIB + 4096),
        CgroupLimit("memory.high of /system.slice", "bytes", 180 * MIB, 75 * MIB + 4096, 55 * MIB + 4096),
        CgroupLimit(f"pids.max of {SERVICE}", "tasks", 100, 3, 3),
    )


def test_limits_of_version_1_leave_out_what_is_unlimited(mixed: str) -> None:
    assert [(limit.name, limit.most) for limit in read_limits(control_group_of([80], mixed))] == [
        (f"memory.limit_in_bytes of /docker/{CONTAINER}", 128 * MIB),
        (f"pids.max of /docker/{CONTAINER}", 64),
    ]


def test_a_process_that_is_gone_has_no_group(mixed: str) -> None:
    with pytest.raises(AccessError, match="its control group cannot be read"):
        control_group_of([99], mixed)
