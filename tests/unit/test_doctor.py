"""What `doctor` makes of a host, told by texts and folders of our own; measuring is for the oracle tests."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from footprint.attribution.kernel import BUILT_IN, built_in_constants
from footprint.errors import AccessError, Note
from footprint.formats.text import plain
from footprint.json.answer import write
from footprint.model.row import Evidence
from footprint.process import cgroup
from footprint.process.cgroup import MemoryController, MemoryGroup, find_memory_controller
from footprint.sources import calibration as kept
from footprint.sources import kernel_calibration
from footprint.sources.calibration import load_constants
from footprint.sources.kernel_calibration import calibrate
from footprint.verbs import options
from footprint.verbs.doctor import call as verb
from footprint.verbs.doctor.call import Check, Diagnosis, State, doctor, doctor_document, doctor_members
from footprint.verbs.doctor.command import doctor as doctor_command

KERNEL, MACHINE = "6.1.0-37-amd64", "x86_64"
SIZES = {
    "stack_bytes": 16_384,
    "process_bytes": 13_600,
    "thread_bytes": 7_000,
    "mapping_bytes": 210,
    "written_bytes": 190,
    "file_bytes": 260,
}

# --- finding the memory controller ------------------------------------------------------------------------------------

V1 = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
"""
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"


def test_version_1_is_where_the_options_of_the_mount_name_memory() -> None:
    found = find_memory_controller(V1, "4:memory:/jobs/7\n1:cpu:/\n0::/\n")
    assert found == MemoryController(1, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/jobs/7")


def test_version_2_is_where_no_older_hierarchy_has_memory() -> None:
    found = find_memory_controller(V2, "0::/user.slice/user-1000.slice/session-3.scope\n")
    assert found == MemoryController(2, "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope")


def test_a_group_may_be_made_at_the_top_beside_our_own_or_in_it() -> None:
    found = find_memory_controller(V2, "0::/user.slice/session-3.scope\n")
    assert found is not None
    assert found.parents == (
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/user.slice",
        "/sys/fs/cgroup/user.slice/session-3.scope",
    )


@pytest.mark.parametrize("path", ["/docker/abc", "/"])
def test_in_a_container_the_mount_is_our_own_group(path: str) -> None:
    mounts = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    found = find_memory_controller(mounts, f"4:memory:{path}\n")
    assert found is not None
    assert found.folder == found.mount == "/sys/fs/cgroup/memory"
    assert found.parents == ("/sys/fs/cgroup/memory",)


def test_blanks_in_the_path_of_a_mount_are_octal() -> None:
    mounts = r"30 23 0:26 / /mnt/control\040groups rw - cgroup2 none rw"
    found = find_memory_controller(mounts, "0::/")
    assert found is not None
    assert found.mount == "/mnt/control groups"


@pytest.mark.parametrize(
    "mounts", ["", "torn", "30 23 - cgroup2", V1.splitlines()[1], "30 23 0:26 / /x rw - tmpfs tmpfs rw"]
)
def test_without_a_memory_controller_there_is_none(mounts: str) -> None:
    assert find_memory_controller(mounts, "0::/\ntorn\n") is None


# --- groups, as folders that look like them ---------------------------------------------------------------------------


def group_of(folder: Path, version: int, **files: str) -> MemoryGroup:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="ascii")
    return MemoryGroup(str(folder), version)


def test_usage_of_version_1_adds_up_what_two_files_tell(tmp_path: Path) -> None:
    stat = "cache 5\nrss 7\ntotal_cache 4096\ntotal_rss 8192\n"
    files = {"memory__usage_in_bytes": "99999\n", "memory__kmem__usage_in_bytes": "12288\n", "memory__stat": stat}
    usage = group_of(tmp_path, 1, **files).usage()
    assert (usage.total_bytes, usage.anonymous_bytes, usage.file_bytes, usage.kernel_bytes) == (
        99_999,
        8192,
        4096,
        12_288,
    )
    assert usage.used_bytes == 8192 + 4096 + 12_288


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param("kernel 700\nkernel_stack 100\nslab 200\n", id="Linux 5.18 adds up the kernel's part"),
        pytest.param("kernel_stack 100\npagetables 150\npercpu 50\nslab 400\n", id="before, we do"),
    ],
)
def test_usage_of_version_2(tmp_path: Path, rows: str) -> None:
    usage = group_of(tmp_path, 2, memory__current="9000\n", memory__stat=f"anon 1000\nfile 2000\n{rows}").usage()
    assert (usage.total_bytes, usage.used_bytes, usage.kernel_bytes) == (9000, 3700, 700)


def test_settled_waits_until_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = group_of(tmp_path, 2, memory__current="9000\n", memory__stat="anon 1\nfile 0\nkernel 0\n")
    rounds = iter(range(2, 100))

    def grow(_: float) -> None:
        size = min(next(rounds), 4)
        group_of(tmp_path, 2, memory__stat=f"anon {size}\nfile 0\nkernel 0\n")

    monkeypatch.setattr("time.sleep", grow)
    assert group.settled(10, still_seconds=0).anonymous_bytes == 4


def allow(monkeypatch: pytest.MonkeyPatch, controller: MemoryController | None) -> None:
    monkeypatch.setattr(cgroup, "read_memory_controller", lambda: controller)


def test_a_group_without_the_controller_is_taken_away_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, MemoryController(2, str(tmp_path), str(tmp_path)))
    with pytest.raises(AccessError, match="has the memory controller enabled"):
        cgroup.make_group()
    assert os.listdir(tmp_path) == []


def test_a_group_is_made_in_the_first_place_that_lets_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    allow(monkeypatch, MemoryController(2, str(tmp_path / "nowhere"), str(tmp_path / "own" / "group")))
    make = os.mkdir

    def with_controller(path: str) -> None:
        make(path)
        Path(path, "memory.current").touch()

    monkeypatch.setattr("os.mkdir", with_controller)
    assert Path(cgroup.make_group().path).parent == tmp_path / "own"
    # Processes that had our PID were killed before they could remove their groups.
    serial = int(cgroup.make_group().path.rpartition("-")[2])
    for number in (serial + 1, serial + 2):
        make(f"{tmp_path}/own/footprint-{os.getpid()}-{number}")
    assert cgroup.make_group().path.endswith(f"-{serial + 3}")


def test_where_no_group_can_be_made_the_error_tells_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, MemoryController(1, str(tmp_path / "nowhere"), str(tmp_path / "nowhere")))
    with pytest.raises(AccessError, match=r"no group can be made in .*nowhere.*be root"):
        calibrate()


def test_where_no_controller_is_mounted_calibrating_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, None)
    with pytest.raises(AccessError, match="no memory controller is mounted"):
        calibrate()


# --- constants that were kept -----------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of calibrations, which is not there yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "footprint" / "kernel.json"


def keep(state: Path, text: str) -> None:
    state.parent.mkdir(exist_ok=True)
    state.write_text(text, encoding="utf-8")


def test_without_a_calibration_the_built_in_constants_are_used(state: Path) -> None:
    assert load_constants(KERNEL, MACHINE) == built_in_constants(KERNEL, MACHINE)
    assert not state.parent.exists()


def test_a_calibration_is_read_back_for_its_kernel_only(state: Path) -> None:
    kept.keep(str(state), "kernels", {f"{KERNEL} {MACHINE}": SIZES})
    found = load_constants(KERNEL, MACHINE)
    assert {field: getattr(found, field) for field in SIZES} == SIZES
    assert found.evidence is Evidence.DERIVED
    assert found.notes == ()
    assert load_constants("6.1.0-38-amd64", MACHINE).evidence is Evidence.ESTIMATED
    assert load_constants(KERNEL, "aarch64").evidence is Evidence.ESTIMATED


def test_a_second_calibration_stands_beside_the_first(state: Path) -> None:
    for kernel in (KERNEL, "6.18.44"):
        kept.keep(str(state), "kernels", {f"{kernel} {MACHINE}": SIZES})
    assert load_constants(KERNEL, MACHINE).process_bytes == load_constants("6.18.44", MACHINE).process_bytes == 13_600
    assert os.listdir(state.parent) == ["kernel.json"]


@pytest.mark.parametrize("is_set", [True, False])
def test_the_file_is_below_the_home_folder_unless_xdg_names_an_absolute_one(
    is_set: bool,  # noqa: FBT001 # a case
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg") if is_set else "relative")
    folder = tmp_path / ("xdg" if is_set else ".local/state")
    assert kept.kept_path("kernel.json") == str(folder / "footprint" / "kernel.json")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"kernels": 7}',
        "[" * 100_000,
        json.dumps({"kernels": {f"{KERNEL} {MACHINE}": 7}}),
        json.dumps({"kernels": {f"{KERNEL} {MACHINE}": SIZES | {"thread_bytes": -1}}}),
        json.dumps({"kernels": {f"{KERNEL} {MACHINE}": SIZES | {"thread_bytes": True}}}),
        json.dumps({"kernels": {f"{KERNEL} {MACHINE}": SIZES | {"thread_bytes": 1e300}}}),
        json.dumps({"kernels": {f"{KERNEL} {MACHINE}": {}}}),
        "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
    ],
)
def test_a_damaged_file_is_a_note_and_the_built_in_constants(state: Path, text: str) -> None:
    keep(state, text)
    found = load_constants(KERNEL, MACHINE)
    assert found._replace(notes=()) == built_in_constants(KERNEL, MACHINE)
    assert [(note.slug, note.subject) for note in found.notes] == [("calibration-unreadable", str(state))]


def test_a_damaged_file_is_written_anew(state: Path) -> None:
    keep(state, "{")
    kept.keep(str(state), "kernels", {f"{KERNEL} {MACHINE}": SIZES})
    assert load_constants(KERNEL, MACHINE).notes == ()


def test_a_folder_that_cannot_be_made_is_an_error(state: Path) -> None:
    state.parent.write_text("in the way", encoding="ascii")
    with pytest.raises(AccessError, match="cannot be stored"):
        kept.keep(str(state), "kernels", {f"{KERNEL} {MACHINE}": SIZES})


def test_sizes_are_found_from_kinds_of_children_that_differ_by_one_thing() -> None:
    def mean(
        threads: float, mappings: float, written: float, files: float, once: float = 0
    ) -> kernel_calibration._Mean:
        # A thread costs 22,000 in all, and the first one that is started 1,800 once.
        size = 10_000 + 22_000 * threads + 200 * mappings + 184 * written + 210 * files + once
        return kernel_calibration._Mean(size, threads, mappings, written, files)

    sizes = kernel_calibration._solve(
        mean(1, 37.5, 17.5, 7),
        mean(2, 40, 19, 7, once=1_800),
        mean(18, 72, 35, 7, once=1_800),
        mean(1, 437.5, 17.25, 7),
        mean(1, 437, 217.5, 7),
        mean(1, 37.25, 17.5, 57),
        stack_bytes=16_384,
    )
    # One of the figures differs by its rounding: the mean of the plain kind has 0.25 written mappings more.
    assert sizes == {
        "stack_bytes": 16_384,
        "process_bytes": pytest.approx(10_000, abs=20),
        "thread_bytes": pytest.approx(22_000 - 16_384, abs=2),
        "mapping_bytes": 200,
        "written_bytes": 184,
        "file_bytes": 210,
    }


KNOWN = built_in_constants("6.18", "x86_64")
MEASURED = {field: getattr(KNOWN, field) for field in ("process_bytes", "thread_bytes", "mapping_bytes", "file_bytes")}


def children(objects_bytes: float) -> kernel_calibration._Mean:
    return kernel_calibration._Mean(objects_bytes, 1, 37, 17, 7)


def test_a_measurement_that_does_not_hold_is_not_kept() -> None:
    kernel_calibration._check(MEASURED, KNOWN, children(27_000), children(27_700))
    with pytest.raises(AccessError, match="mapping_bytes 61 where about 200 is usual"):
        kernel_calibration._check(MEASURED | {"mapping_bytes": 61}, KNOWN, children(27_000), children(27_000))
    with pytest.raises(AccessError, match=r"a process 27,000 at first and 31,000 in the end .* nothing is kept"):
        kernel_calibration._check(MEASURED, KNOWN, children(27_000), children(31_000))


def test_a_kernel_that_accounts_no_kernel_memory_is_told() -> None:
    with pytest.raises(AccessError, match="kernel memory is not accounted"):
        kernel_calibration._check(MEASURED, KNOWN, children(-45_000), children(-45_000))


@pytest.mark.parametrize(("price_bytes", "is_kept"), [(3_614, True), (1_740, False), (60_000, False)])
def test_the_price_of_an_open_file_that_is_far_from_the_usual_one_is_not_kept(
    price_bytes: int,
    is_kept: bool,  # noqa: FBT001 # a case
) -> None:
    assert kernel_calibration._holds("TCP socket", price_bytes) is is_kept


# --- the checks -------------------------------------------------------------------------------------------------------


def told(monkeypatch: pytest.MonkeyPatch, path: str, text: str | None) -> None:
    """Replace what one file of the system holds."""
    read = verb._text
    monkeypatch.setattr(verb, "_text", lambda asked: text if asked == path else read(asked))


def test_doctor_looks_at_everything_and_says_what_it_means(state: Path) -> None:
    found = doctor()
    assert not state.exists()
    assert {"page bits", "ptrace", "memory cgroup", "calibration", "gdb"} <= {check.name for check in found.checks}
    assert all(check.meaning for check in found.checks)
    assert all(check.cure for check in found.checks if check.state is State.LIMITED)
    assert found.host["kernel"] == os.uname().release


@pytest.mark.parametrize(
    ("path", "text", "check", "state_"),
    [
        ("/proc/sys/kernel/yama/ptrace_scope", None, verb._ptrace_scope, State.OK),
        ("/proc/sys/kernel/yama/ptrace_scope", "1\n", verb._ptrace_scope, State.OK),
        ("/proc/sys/kernel/yama/ptrace_scope", "3\n", verb._ptrace_scope, State.LIMITED),
        ("/proc/self/status", "CapEff:\t0000000000080000\n", verb._capability, State.OK),
        ("/proc/self/status", "CapEff:\t00000000a80425fb\n", verb._capability, State.LIMITED),
        ("/proc/self/status", None, verb._capability, State.LIMITED),
        ("/proc/self/smaps_rollup", None, verb._rollup, State.MISSING),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n", verb._huge_pages, State.LIMITED),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n", verb._huge_pages, State.OK),
        ("/sys/kernel/mm/transparent_hugepage/enabled", None, verb._huge_pages, State.OK),
        ("/sys/kernel/mm/ksm/run", "1\n", verb._same_page_merging, State.LIMITED),
        ("/sys/kernel/mm/ksm/run", "0\n", verb._same_page_merging, State.OK),
    ],
)
def test_a_setting_of_the_host_decides_a_check(
    path: str, text: str | None, check: Callable[[], Check], state_: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(monkeypatch, path, text)
    assert check().state is state_


def test_swap_is_seen_behind_the_heading_of_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    heading = "Filename\tType\tSize\tUsed\tPriority\n"
    told(monkeypatch, "/proc/swaps", heading)
    assert verb._swap().meaning.startswith("none")
    told(monkeypatch, "/proc/swaps", heading + "/dev/zram0 partition 4194300 0 100\n")
    assert verb._swap().meaning.startswith("present")


def test_a_group_that_cannot_be_made_limits_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, MemoryController(2, str(tmp_path / "nowhere"), str(tmp_path / "nowhere")))
    assert verb._cgroup() == Check(
        "memory cgroup", State.LIMITED, "v2, but no group can be made: no calibration", cgroup.CURE
    )
    allow(monkeypatch, None)
    assert verb._cgroup().state is State.MISSING


def test_a_calibrated_kernel_is_fine(state: Path) -> None:
    assert verb._calibration(load_constants(KERNEL, MACHINE)).cure == "footprint doctor --calibrate"
    kept.keep(str(state), "kernels", {f"{KERNEL} {MACHINE}": SIZES})
    assert verb._calibration(load_constants(KERNEL, MACHINE)).state is State.OK


# --- showing ----------------------------------------------------------------------------------------------------------

DIAGNOSIS = Diagnosis(
    {"kernel": "6.18.44", "machine": "x86_64"},
    (
        Check("page bits", State.OK, "private memory is known by page"),
        Check("memory cgroup", State.LIMITED, "no calibration", "be root"),
    ),
    BUILT_IN,
    (Note("calibration-unreadable", "kernel.json", "it is not a calibration of footprint"),),
)


def test_the_report_shows_checks_cures_constants_and_the_count() -> None:
    text = plain(doctor_document(DIAGNOSIS))
    assert "footprint doctor: Linux 6.18.44 x86_64\n" in text
    assert "  memory cgroup  limited  no calibration\n" in text
    assert "What would help\n  memory cgroup: be root\n" in text
    assert "5.89 KiB  estimated\n" in text  # 6,032 bytes a thread
    assert "calibration-unreadable: kernel.json: it is not a calibration of footprint\n" in text
    assert "  1 of 2 checks are fine; not memory cgroup.\n" in text


def test_the_last_line_says_what_this_host_lets_footprint_know_and_how_to_get_more() -> None:
    def told(*lacking: Check) -> str:
        *_, last = plain(doctor_document(replace(DIAGNOSIS, checks=(*lacking, DIAGNOSIS.checks[0])))).split("\n\n")
        return " ".join(last.split())

    kernel = "kernel memory is estimated."
    assert told(Check("memory cgroup", State.LIMITED, "no calibration", "be root")) == (
        f"Here footprint reads every process to the page and the variable; {kernel} For more: be root."
    )
    own = Check("CAP_SYS_PTRACE", State.LIMITED, "own", "be root")
    calibration = Check("calibration", State.LIMITED, "built in", "footprint doctor --calibrate")
    assert told(calibration, own) == (
        "Here footprint reads your own processes to the page and the variable; "
        f"{kernel} For more: be root; footprint doctor --calibrate."
    )
    bits = replace(DIAGNOSIS.checks[0], name="page bits", state=State.MISSING)
    assert told(bits) == f"Here footprint reads every process by mapping; {kernel}"


def test_a_host_that_allows_everything_needs_no_cure() -> None:
    text = plain(doctor_document(replace(DIAGNOSIS, checks=DIAGNOSIS.checks[:1], notes=())))
    assert "help" not in text
    assert text.endswith("\nAll 1 checks are fine: figures are as exact as footprint can make them.\n")


def test_the_json_has_every_check_and_constant() -> None:
    result = json.loads(write(doctor_members(DIAGNOSIS, "1.2.3")))
    assert result["host"] == {"kernel": "6.18.44", "machine": "x86_64"}
    assert result["checks"][1] == {
        "name": "memory cgroup",
        "state": "limited",
        "meaning": "no calibration",
        "cure": "be root",
    }
    assert result["constants"]["thread_bytes"] == 6_032
    assert result["constants"]["evidence"] == "estimated"
    assert result["notes"][0]["slug"] == "calibration-unreadable"


@pytest.mark.parametrize(("is_json", "expected"), [(True, '"checks": ['), (False, "What the kernel spends")])
def test_the_command_writes_either(state: Path, is_json: bool, expected: str) -> None:  # noqa: FBT001 # a case
    output = state.parent.parent / "answer"
    doctor_command(output=str(output), json=is_json, color=options.Color.NEVER)
    assert expected in output.read_text(encoding="utf-8")
