"""Units of systemd, slices, groups and containers: what they hold beside what the kernel charges to them."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vm.guest import (
    CGROUPS,
    IS_ROOT,
    background,
    footprint,
    footprint_json,
    held_bytes,
    only_root,
    settled_bytes,
    systemctl,
    wait_until,
)

MIB = 1 << 20
USER = () if IS_ROOT else ("--user",)
Figure = Callable[[str, float, float], float]


@pytest.fixture
def unit(build: Callable[..., str]) -> Iterator[tuple[str, Path]]:
    """A service with ten sleeps and two workers, in a slice of its own with limits."""
    name = f"footprint-test-{os.getpid()}.service"
    script = f"for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1000 & done; {build('worker')} & {build('worker')} & wait"
    limits = ("-p", "MemoryHigh=300M", "-p", "MemoryMax=400M", "-p", "Slice=footprinttest.slice")
    subprocess.run(["systemd-run", *USER, "--quiet", "--unit", name, *limits, "sh", "-c", script], check=True)
    folder = CGROUPS / systemctl("show", "--property=ControlGroup", "--value", name).lstrip("/")
    wait_until(lambda: len((folder / "cgroup.procs").read_text().split()) == 13, "all processes run")
    yield name, folder
    systemctl("stop", name)


def test_a_unit_costs_what_it_is_charged_and_each_difference_has_a_name(unit: tuple[str, Path], figure: Figure) -> None:
    name, folder = unit
    settled_bytes(folder)

    answer = footprint_json("audit", "--unit", name)

    assert len(answer["processes"]) == 13
    assert abs(figure("a unit", answer["group"]["per_group_bytes"], held_bytes(folder))) < 0.02
    rows = {row["name"]: row for row in answer["cgroup"]["rows"]}
    assert sum(row["charged_bytes"] for row in rows.values()) == answer["cgroup"]["total_bytes"]
    assert {"page tables", "kernel stacks", "kernel objects"} <= set(rows)
    assert rows["charged before use"]["charged_bytes"] <= 63 * 4096 * (os.cpu_count() or 1)
    assert "not named" not in rows
    for kind in ("kernel stacks", "anonymous memory"):
        # The manager forks the first process: its stack and tables are charged to the group of the manager.
        assert rows[kind]["audited_bytes"] == pytest.approx(rows[kind]["charged_bytes"], rel=0.02, abs=65536)


def test_a_watched_unit_costs_what_it_is_charged(unit: tuple[str, Path], figure: Figure, tmp_path: Path) -> None:
    name, folder = unit
    settled_bytes(folder)

    # It does not grow, and the watch is too short to say so.
    answer = footprint_json("watch", "--unit", name, "--every", "2s", "--for", "20s", "-o", tmp_path / "unit.fps")

    assert abs(figure("a watched unit", answer["watch"]["peak_bytes"], held_bytes(folder))) < 0.01


def test_the_group_and_the_slice_have_the_same_processes_as_the_unit(unit: tuple[str, Path], figure: Figure) -> None:
    _, folder = unit
    settled_bytes(folder)
    path = folder.relative_to(CGROUPS)
    slice_bytes = footprint_json("audit", "--cgroup", f"/{path.parent}")["group"]["per_group_bytes"]
    assert abs(figure("a slice", slice_bytes, held_bytes(folder.parent))) < 0.02
    (unit_bytes,) = {footprint_json("audit", "--cgroup", name)["group"]["per_group_bytes"] for name in (path, folder)}
    assert unit_bytes == pytest.approx(slice_bytes, rel=0.001)


def test_a_unit_has_its_high_mark_among_the_limits(unit: tuple[str, Path]) -> None:
    # A path that does not fit into the line stands on the next.
    text = " ".join(footprint("audit", "--unit", unit[0], "--memory", "1GiB", "--limit", "own").split())
    assert "memory.high of /" in text
    assert "memory.max of /" in text


def test_many_of_a_process_of_a_unit_are_projected(unit: tuple[str, Path]) -> None:
    pid = (unit[1] / "cgroup.procs").read_text().split()[-1]
    answer = footprint_json("audit", pid, "-n", 1000)
    projection = answer["projection"]
    each, once = projection["per_process_bytes"], projection["shared_once_bytes"]
    assert projection["total_bytes"] == 1000 * each + once


@only_root
def test_a_unit_that_the_system_and_a_user_have_is_to_be_named_by_its_group() -> None:
    name = "footprint-twice.service"
    users = (["systemd-run"], ["systemd-run", "--user", "--machine=alice@.host"])
    alice = ["su-alice", "systemd-run", "--user"]
    for command in (users[0], alice):
        subprocess.run([*command, "--quiet", "--unit", name, "sleep", "1000"], check=True)
    try:
        done = subprocess.run(
            ["/opt/footprint/bin/footprint", "audit", "--unit", name], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        message = " ".join(done.stderr.split())
        assert "2 control groups have this name: choose one by --cgroup" in message
        paths = re.findall(rf"/\S+/{name}", message)
        assert len(paths) == 2
        assert footprint_json("audit", "--cgroup", paths[1])["processes"]
    finally:
        subprocess.run(["systemctl", "stop", name], check=False)
        subprocess.run(["su-alice", "systemctl", "--user", "stop", name], check=False)


def test_nginx_is_explained_and_its_next_worker_costs_what_it_adds(tmp_path: Path, figure: Figure) -> None:
    costs, charges = [], []
    worker_bytes = 0
    for number in (2, 6):
        name = f"footprint-nginx-{os.getpid()}-{number}.service"
        folder = tmp_path / name
        folder.mkdir()
        text = f"worker_processes {number}; daemon off; pid {folder}/pid; error_log /dev/null; events {{}}\n"
        text += f"http {{ access_log off; server {{ listen unix:{folder}/s; }}"
        text += "".join(
            f" {kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "conf").write_text(text + " }\n")
        command = ["nginx", "-c", f"{folder}/conf", "-e", "/dev/null"]
        subprocess.run(
            ["systemd-run", *USER, "--quiet", "--unit", name, shutil.which("nginx") or "/usr/sbin/nginx", *command[1:]],
            check=True,
        )
        group = CGROUPS / systemctl("show", "--property=ControlGroup", "--value", name).lstrip("/")
        try:
            procs = group / "cgroup.procs"
            wait_until(lambda: len(procs.read_text().split()) == number + 1, "its workers run")  # noqa: B023 # called here
            charges.append(settled_bytes(group))
            answer = footprint_json("audit", "--unit", name)
            costs.append(answer["group"]["per_group_bytes"])
            worker_bytes = answer["projection"]["per_worker_bytes"] if answer["projection"] else 0
            worker_bytes = worker_bytes or footprint_json("audit", "--unit", name)["projection"]["per_worker_bytes"]
        finally:
            systemctl("stop", name)
    assert abs(figure("nginx with 6 workers", costs[1], charges[1])) < 0.02
    assert abs(figure("one more worker of nginx", worker_bytes, (charges[1] - charges[0]) / 4)) < 0.03


# --- containers -------------------------------------------------------------------------------------------------------


@pytest.fixture
def container(tmp_path: Path) -> Iterator[str]:
    """A container of podman with a limit, from busybox alone."""
    rootfs = tmp_path / "rootfs"
    for name in ("bin", "proc", "sys", "dev", "tmp", "etc", "run"):
        (rootfs / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", rootfs / "bin/busybox")
    (rootfs / "bin/sh").symlink_to("busybox")
    script = "i=0; while [ $i -lt 8 ]; do busybox sleep 1000 & i=$((i+1)); done; wait"
    options = ["--network=none", "--memory=64m", "--security-opt=seccomp=unconfined", "--log-driver=none"]
    done = subprocess.run(
        [
            "podman",
            "run",
            "-d",
            *options,
            "--rootfs",
            str(rootfs),
            "/bin/busybox",
            "sh",
            "-c",
            script.replace("busybox", "/bin/busybox"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    identifier = done.stdout.strip()
    yield identifier
    subprocess.run(["podman", "rm", "-f", "-t", "0", identifier], capture_output=True, check=False)


def pids_of(identifier: str) -> list[int]:
    found = subprocess.run(
        ["podman", "inspect", "-f", "{{.State.Pid}}", identifier], capture_output=True, text=True, check=True
    )
    first = int(found.stdout)
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    return [first, *map(int, children)]


def folder_of(pid: int) -> Path:
    return CGROUPS / Path(f"/proc/{pid}/cgroup").read_text().strip().split(":")[2].lstrip("/")


def test_a_container_is_its_processes_with_its_limit_and_without_conmon(container: str, figure: Figure) -> None:
    wait_until(lambda: len(pids_of(container)) == 9, "its processes run")
    pids = pids_of(container)
    folder = folder_of(pids[0])
    settled_bytes(folder)

    answer = footprint_json("audit", "--container", container)

    assert sorted(one["pid"] for one in answer["processes"]) == sorted(pids)
    # What crun did there before is charged to it as well, and named: names of files, and counters.
    rows = {row["name"]: row["charged_bytes"] for row in answer["cgroup"]["rows"]}
    named_bytes = sum(rows.get(name, 0) for name in ("cached names and inodes", "memory of each processor"))
    assert abs(figure("a container", answer["group"]["per_group_bytes"], held_bytes(folder) - named_bytes)) < 0.02
    (monitor,) = [note for note in answer["notes"] if note["slug"] == "container-monitor"]
    assert re.match(r"conmon \(process \d+\)", monitor["subject"])
    assert re.search(r"costs [0-9.]+ [KM]iB", monitor["detail"])
    text = footprint("audit", "--container", container[:12], "--memory", "2GiB", "--limit", "own")
    assert re.search(r"memory\.max\s+of\s+/\S*libpod-", text), text
    assert "64 MiB" in text


def test_a_container_without_python_is_captured_by_a_script(container: str, tmp_path: Path) -> None:
    wait_until(lambda: len(pids_of(container)) == 9, "its processes run")
    script = footprint("capture", "--script")
    done = subprocess.run(
        ["podman", "exec", "-i", container, "/bin/busybox", "sh", "-s", "1"],
        input=script.encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    saved = tmp_path / "container.capture"
    saved.write_bytes(done.stdout)
    answer: dict[str, Any] = footprint_json("audit", saved)
    live = footprint_json("audit", pids_of(container)[0])
    assert answer["totals"]["private_bytes"] == pytest.approx(live["totals"]["private_bytes"], abs=16384)


# --- captures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", [("dash",), ("busybox", "sh")])
def test_a_process_that_a_script_captured_has_the_figures_of_the_live_one(
    build: Callable[..., str], tmp_path: Path, shell: tuple[str, ...]
) -> None:
    script = footprint("capture", "--script")
    with background(build("worker")) as process:
        wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 3, "its threads run")
        live = footprint_json("audit", process.pid)
        saved, whole = tmp_path / "saved", tmp_path / "whole.capture"
        with saved.open("wb") as file:
            subprocess.run([*shell, "-s", str(process.pid)], input=script.encode(), stdout=file, check=True)
        footprint("capture", process.pid, "-o", whole)
    for path in (saved, whole):
        assert footprint_json("audit", path)["totals"]["private_bytes"] == live["totals"]["private_bytes"]
