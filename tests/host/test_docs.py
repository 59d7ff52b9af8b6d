"""Every command that the documentation shows runs on this machine."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "findings").glob("*.md"))]


BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for found, text in BLOCK.findall(page.read_text()):
            if found == language:
                yield page.name, text


def _commands() -> list[tuple[str, str]]:
    return [
        (page, line[2:])
        for page, text in _blocks("console")
        for line in text.splitlines()
        if line.startswith("$ ") and "footprint" in line
    ]


@pytest.fixture(scope="module")
def sleeping_pid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    # One of the commands asks for processes of this name, whatever the interpreter is called.
    python = tmp_path_factory.mktemp("bin") / "python"
    python.symlink_to(sys.executable)
    child = subprocess.Popen([python, "-c", "import time; print(flush=True); time.sleep(600)"], stdout=-1)
    assert child.stdout is not None
    child.stdout.readline()
    yield child.pid
    child.kill()
    child.wait()
    child.stdout.close()


@pytest.mark.parametrize(("page", "command"), _commands())
def test_every_command_that_the_documentation_shows_runs(
    page: str, command: str, sleeping_pid: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if command.startswith("pmap") and not any(Path(path, "pmap").exists() for path in os.get_exec_path()):
        pytest.skip("pmap is missing")
    if "--massif" in command and not any(Path(path, "valgrind").exists() for path in os.get_exec_path()):
        pytest.skip("valgrind is missing")
    line = command.replace("$PID", str(sleeping_pid)).replace(
        "footprint ", f"{shlex.quote(sys.executable)} -m footprint "
    )
    # One folder for all of them: one command may read what another has written.
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMP": str(tmp_path_factory.getbasetemp())}
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, env=environment, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, (page, done.stderr.decode())
    assert done.stdout or "-o " in command
