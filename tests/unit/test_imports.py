"""What `import footprint` and the command load: quick to start means that nothing heavy comes along unasked."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Drawing, command line, ELF libraries, demangler, JSON schemas with what they bring, and arrays.
HEAVY = {
    "rich",
    "typer",
    "lief",
    "elftools",
    "pycxxfilt",
    "jsonschema",
    "referencing",
    "rpds",
    "fastjsonschema",
    "jsonschema_rs",
    "numpy",
    "duckdb",
    "distributed",
}


def packages_loaded_by(code: str, *arguments: str) -> set[str]:
    """Run code in a fresh interpreter, and name the top-level packages that it imported on the way."""
    command = [sys.executable, "-X", "importtime", "-c", code, *arguments]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    modules = re.findall(r"^import time:[ \d]+\|[ \d]+\| +(\S+)$", run.stderr, re.MULTILINE)
    return {module.partition(".")[0] for module in modules}


def test_the_list_of_loaded_packages_sees_an_import_inside_a_function() -> None:
    assert "wave" in packages_loaded_by("def f():\n    import wave\nf()")


def test_import_footprint_loads_nothing_heavy() -> None:
    loaded = packages_loaded_by("import footprint")
    assert "footprint" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_version_is_printed_without_rich() -> None:
    loaded = packages_loaded_by("from footprint.cli import main; main()", "--version")
    assert "footprint" in loaded
    assert "rich" not in loaded


def test_an_audit_without_a_page_loads_nothing_of_pages() -> None:
    smaps = str(ROOT / "tests" / "corpus" / "smaps-sleep.txt")
    code = (
        "import sys; from footprint.cli import main; main(sys.argv[1:]);"
        " assert not any(name.startswith('footprint.html') for name in sys.modules)"
    )
    assert "footprint" in packages_loaded_by(code, "audit", smaps)


@pytest.mark.parametrize(
    ("words", "most_count"),
    [
        (["audit", "PID"], 67),
        (["audit", "--by", "mapping", str(ROOT / "tests" / "corpus" / "smaps-sleep.txt")], 36),
        (["check", "PID", "--config", "one.toml"], 76),
        (["explain", "pss"], 25),
    ],
    ids=["audit PID", "audit --by mapping", "check with one limit", "explain"],
)
def test_a_command_imports_few_modules_of_ours(words: list[str], most_count: int, tmp_path: Path) -> None:
    """Raise a bound only on purpose: who looks for a defect reads what is imported."""
    (tmp_path / "one.toml").write_text('[budgets]\nprivate_bytes = "100 GiB"\n', encoding="utf-8")
    # A process of its own: this one has what other tests have left in it.
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        given = {"one.toml": str(tmp_path / "one.toml"), "PID": str(process.pid)}
        modules = modules_loaded_by(*(given.get(word, word) for word in words))
    assert len(modules) <= most_count, modules


def modules_loaded_by(*words: str) -> list[str]:
    """Run the command in a fresh interpreter, and return the modules of ours that it imported, without packages."""
    code = (
        "import sys; from footprint.cli import main; main(sys.argv[1:]); print('', *[name for name, module in "
        "sys.modules.items() if name.startswith('footprint.') and not hasattr(module, '__path__')], sep='\\n')"
    )
    command = [sys.executable, "-c", code, *words]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    return [line for line in run.stdout.splitlines() if line.startswith("footprint.")]


RUN_FILES = """
import sys

files = set()


def see(frame, event, _):
    code = frame.f_code
    # A function, no body of a module or a class, nor what Python 3.14 makes of annotations.
    is_call = event == "call" and code.co_flags & 1 and code.co_name != "__annotate__"
    if is_call and f"{sys.argv[1]}/footprint/" in code.co_filename:
        files.add(code.co_filename)


from footprint.cli import main

sys.setprofile(see)
main(sys.argv[2:])
sys.setprofile(None)
print("", *sorted(files), sep="\\n")
"""


def test_an_audit_runs_few_files_of_ours() -> None:
    """Raise the bound only on purpose, as above; the aim is 60."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        command = [sys.executable, "-c", RUN_FILES, str(ROOT), "audit", str(process.pid)]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    files = [line for line in run.stdout.splitlines() if line.startswith(f"{ROOT}/footprint/")]
    assert 50 < len(files) <= 64, files
