"""The examples of the library pass the type checkers: what is public has types that a project can use."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECKERS = {
    "mypy": ["mypy", "--strict", "--config-file=", "."],
    "pyright": ["pyright", "-p", ".", "--pythonpath", sys.executable],  # fetches itself by npm at the first time
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_every_example_of_the_library_passes_the_type_checkers(checker: str, tmp_path: Path) -> None:
    if checker == "pyright" and shutil.which("node") is None:
        pytest.skip("node is missing")
    page = (ROOT / "docs" / "library.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert examples
    for number, code in enumerate(examples):
        (tmp_path / f"example_{number}.py").write_text(code)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    words = [sys.executable, "-m", *CHECKERS[checker]]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
