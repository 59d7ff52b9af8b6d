"""`--drop-privileges`: the same answers with fewer rights. And which capability each answer takes."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from footprint.system.privileges import DENIED

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "sample_binaries" / "unused_library" / "shadow"
PROFILE = ROOT / "tests" / "corpus" / "heap" / "massif-3.19-default.out"
SMAPS = ROOT / "tests" / "corpus" / "smaps-sleep.txt"
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def footprint(*words: str, before: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    command = [*before, sys.executable, "-m", "footprint", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)


# --- the option -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        f"symbols --source {PROGRAM}",
        f"libraries {PROGRAM}",
        f"duplicates {PROGRAM}",
        f"audit {PROGRAM} --reproducible",
        f"audit {SMAPS}",
        f"audit {SMAPS} --by mapping",
        f"heap {PROFILE}",
        f"audit {PROGRAM} -n 3",
        f"check {PROGRAM} --propose",
        f"diff {SMAPS} {SMAPS}",
        "explain unused-library",
    ],
)
def test_an_answer_is_the_same_without_the_privileges(words: str) -> None:
    whole, dropped = footprint(*words.split()), footprint(*words.split(), "--drop-privileges")
    assert (dropped.returncode, dropped.stdout) == (0, whole.stdout)
    assert all("--drop-privileges does without" in line for line in dropped.stderr.splitlines())


def test_a_live_process_and_its_capture_are_read_without_the_privileges(tmp_path: Path) -> None:
    saved, capture, history = (str(tmp_path / name) for name in ("audit.json", "sleep.capture", "history"))
    with subprocess.Popen(["sleep", "600"]) as process:
        pid = str(process.pid)
        assert footprint("audit", pid, "-o", saved, "--drop-privileges").returncode == 0
        assert footprint("capture", pid, "-o", capture, "--drop-privileges").returncode == 0
        process.kill()
    assert json.loads(Path(saved).read_text())["totals"]["private_bytes"] > 0
    assert footprint("audit", capture, "--drop-privileges").returncode == 0
    for _ in range(2):
        recorded = footprint("trend", "--add", saved, "--version", "1", "--history", history, "--drop-privileges")
        assert recorded.returncode == 0, recorded.stderr
    assert footprint("trend", "--history", history, "--drop-privileges").returncode == 0


@pytest.mark.parametrize("option", ["--debuginfod", "--update-baseline", "--freeze"])
def test_an_option_that_needs_the_privileges_is_refused(option: str) -> None:
    verb = {"--debuginfod": "symbols", "--update-baseline": "check", "--freeze": "capture"}[option]
    refused = footprint(verb, "1", option, "--drop-privileges")
    assert (refused.returncode, refused.stderr) == (
        2,
        f"footprint: --drop-privileges gives up what {option} needs\n",
    )


ATTEMPTS: Final = """
import json, os, socket, subprocess, sys
from footprint.system.privileges import drop_privileges

folder = sys.argv[1]
refused = drop_privileges([f"{folder}/allowed/answer"], reads_processes=sys.argv[2] == "live")

def outcome(attempt):
    try:
        attempt()
    except OSError:
        return False
    return True

print(json.dumps({
    "refused": refused,
    "run": outcome(lambda: subprocess.run(["true"])),
    "network": outcome(socket.socket),
    "signal": outcome(lambda: os.kill(os.getppid(), 0)),
    "signal to itself": outcome(lambda: os.kill(os.getpid(), 0)),
    "answer": outcome(lambda: open(f"{folder}/allowed/answer", "w").close()),
    "other file": outcome(lambda: open(f"{folder}/other", "w").close()),
    "null": outcome(lambda: open("/dev/null", "w").close()),
    "remove": outcome(lambda: os.unlink(f"{folder}/kept")),
    "read": outcome(lambda: open(f"{folder}/kept").close()),
    "owner": outcome(lambda: os.chown("/", 0, 0)),
    "another process": outcome(lambda: open(f"/proc/{os.getppid()}/maps").read()),
}))
"""


def attempts(folder: Path, kind: str) -> dict[str, Any]:
    (folder / "allowed").mkdir()
    (folder / "kept").touch()
    done = subprocess.run([sys.executable, "-c", ATTEMPTS, folder, kind], capture_output=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)  # type: ignore[no-any-return] # an object


def test_a_reader_of_files_may_run_nothing_reach_nobody_and_write_only_its_answer(tmp_path: Path) -> None:
    found = attempts(tmp_path, "files")
    if found["refused"]:
        pytest.skip(f"this kernel does not allow {found['refused']}")
    assert {name for name, is_possible in found.items() if is_possible} == (
        {"signal to itself", "answer", "null", "read"} | ({"owner"} if os.geteuid() == 0 else set())
    )
    assert (tmp_path / "kept").exists()


def test_a_reader_of_processes_may_run_nothing_and_reach_nobody(tmp_path: Path) -> None:
    found = attempts(tmp_path, "live")
    if found["refused"]:
        pytest.skip(f"this kernel does not allow {found['refused']}")
    assert [found[name] for name in ("run", "network", "signal")] == [False] * 3
    assert found["signal to itself"]
    assert found["another process"]


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_of_denied_calls_are_those_of_the_kernel(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("x86-64 alone has this header here")
    told = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text()))
    assert {name: int(told[name]) for name in DENIED} == {
        name: getattr(numbers, machine) for name, numbers in DENIED.items()
    }


# --- the capabilities -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def of_another_user() -> Iterator[int]:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("takes root and setpriv")
    with subprocess.Popen(["setpriv", "--reuid=65534", "--clear-groups", "sleep", "600"]) as process:
        yield process.pid
        process.kill()


def with_capabilities(names: str, *words: str) -> "subprocess.CompletedProcess[str]":
    kept = ",".join(["-all", *(f"+{name}" for name in names.split())])
    return footprint(*words, before=("setpriv", f"--bounding-set={kept}", f"--inh-caps={kept}"))


# As the table of docs/security.md says it.
@pytest.mark.parametrize(
    ("names", "code", "notes", "has_heap"),
    [
        ("", 3, None, False),
        ("dac_read_search", 3, None, False),
        ("sys_ptrace", 0, ["page-bits-denied"], False),
        ("sys_ptrace dac_read_search", 0, [], True),
    ],
)
def test_a_process_of_another_user_takes_these_capabilities(
    of_another_user: int, names: str, code: int, notes: list[str] | None, *, has_heap: bool
) -> None:
    done = with_capabilities(names, "audit", str(of_another_user), "--json")
    assert done.returncode == code, done.stderr
    if notes is None:
        assert "CAP_SYS_PTRACE" in done.stderr
        return
    found = json.loads(done.stdout)
    assert [note["slug"] for note in found["notes"]] == notes
    assert (found["allocator"] is not None) == has_heap


@pytest.mark.parametrize(("names", "code"), [("", 3), ("dac_read_search", 0)])
def test_a_file_that_only_another_user_may_read_takes_a_capability(tmp_path: Path, names: str, code: int) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("takes root and setpriv")
    path = tmp_path / "program"
    shutil.copy(PROGRAM, path)
    os.chown(path, 65534, 65534)
    path.chmod(0o400)
    assert with_capabilities(names, "symbols", str(path)).returncode == code


def test_a_file_that_was_replaced_takes_a_capability(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("takes root and setpriv")
    path = tmp_path / "program"
    shutil.copy(shutil.which("sleep") or "", path)
    with subprocess.Popen([path, "600"]) as process:
        subprocess.run(["sh", "-c", f"while ! grep -q libc /proc/{process.pid}/maps; do :; done"], check=True)
        path.unlink()
        found = {
            names: json.loads(with_capabilities(names, "audit", str(process.pid), "--json").stdout)["notes"]
            for names in ("sys_ptrace dac_read_search", "sys_ptrace dac_read_search checkpoint_restore")
        }
        process.kill()
    assert [*found.values()][1] == []
