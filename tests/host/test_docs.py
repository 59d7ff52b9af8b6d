"""Every command that the documentation shows runs on this machine."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docpages import ROOT, commands


@pytest.fixture(scope="module")
def sleeping_pid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    # One of the commands asks for processes of this name, whatever the interpreter is called.
    python = tmp_path_factory.mktemp("bin") / "python"
    python.symlink_to(sys.executable)
    child = subprocess.Popen([python, "-c", "import time; print(flush=True); time.sleep(1e6)"], stdout=-1)
    assert child.stdout is not None
    child.stdout.readline()
    yield child.pid
    child.kill()
    child.wait()
    child.stdout.close()


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a docker and a kubectl that run the command of a container here."""
    folder = tmp_path_factory.mktemp("clusters")
    for name in ("docker", "kubectl"):
        program = folder / name
        program.write_text(
            '#!/bin/sh\n[ "$1" = inspect ] && exec echo "$PID"\nwhile [ "$1" != sh ]; do shift; done; exec "$@"\n'
        )
        program.chmod(0o755)
    return folder


@pytest.mark.parametrize(("page", "command"), commands())
def test_every_command_that_the_documentation_shows_runs(
    page: str, command: str, sleeping_pid: int, clusters: Path, tmp_path_factory: pytest.TempPathFactory
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
    environment |= {"PID": str(sleeping_pid), "PATH": f"{clusters}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, env=environment, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, (page, done.stderr.decode())
    assert done.stdout or "-o " in command or ">" in command
