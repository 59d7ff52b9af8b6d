"""What CONTRIBUTING.md says that an addition takes: each is made in a copy of the package, and used."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = str(ROOT / "sample_binaries" / "condor_shadow" / "base")

RULE = """
from footprint.findings.registry import Fact, Rule
from footprint.model.finding import Confidence, Finding

def find(_graph):
    return (Finding("toy-rule", "toy", "ball", "a ball lies about", 4096, Confidence.HIGH, ("seen",), "tidy up"),)

RULE = Rule("toy-rule", "A toy that costs memory", (Fact.GRAPH,), find)
"""
HEAP_FORMAT = """
from footprint.heap.address_rows import read_gperftools

def looks_like_toy(head):
    return head.startswith(b"toy profile\\n")

def read_toy(pieces, name):
    whole = b"".join(pieces).removeprefix(b"toy profile\\n")
    return read_gperftools([whole], name)
"""
VERB = {
    "command.py": '''
from typing import TYPE_CHECKING, Annotated

from footprint.verbs import options
from footprint.verbs.commands import Argument
from footprint.verbs.output import lazy_modules
from footprint.verbs.output import Answer, check_formats, write

if TYPE_CHECKING:
    from footprint.verbs.toy import call, json, text
else:
    call, json, text = lazy_modules("footprint.verbs.toy", "call json text")

ORDER = 1000


@options.shared_options("output format_ json color")
def toy(
    name: Annotated[str, Argument(help="Whom to greet.")], *, output: options.OutputOptions
) -> int:
    """Greet someone."""
    answer: Answer[str] = Answer("toy", "greetings", document=text.toy_report, members=json.toy_members)
    check_formats(answer, output)
    return write(answer, call.toy(name), f"toy {name}", output)
''',
    "call.py": """
def toy(name):
    return f"hello {name}"
""",
    "text.py": """
from footprint.formats.document import Verdict

def toy_report(found):
    return (Verdict(found),)
""",
    "json.py": """
def toy_members(found, version):
    return {"greetings": [{"text": found}]}
""",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Copy the package and its documentation."""
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "images", "examples")
    shutil.copytree(ROOT / "footprint", tmp_path / "footprint", ignore=ignored)
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=ignored)
    return tmp_path / "footprint"


def run(package: Path, *words: str, archive: Path | None = None) -> str:
    environment = os.environ | {"PYTHONPATH": str(archive or package.parent)}
    command = [sys.executable, "-m", "footprint", *words]
    done = subprocess.run(command, cwd=package.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_rule_takes_a_module_and_a_page(package: Path) -> None:
    (package / "findings" / "graph_rules" / "toy_rule.py").write_text(RULE)
    (package.parent / "docs" / "findings" / "toy-rule.md").write_text("# toy-rule\n\n**What it is.** A ball.\n")
    found = json.loads(run(package, "libraries", PROGRAM, "--json"))["findings"]
    assert "ball" in [one["subject"] for one in found]
    assert "A ball." in run(package, "explain", "toy-rule")
    assert "toy-rule" in run(package, "libraries", PROGRAM, "--format", "junit")


def test_a_heap_format_takes_a_module_and_a_line(package: Path, tmp_path: Path) -> None:
    (package / "heap" / "toy.py").write_text(HEAP_FORMAT)
    table = package / "heap" / "formats.py"
    before = "FORMATS: Final = (\n"
    line = '    HeapFormat("toy", looks_like_toy, read_toy),\n'
    imported = "from footprint.heap.toy import looks_like_toy, read_toy\n"
    text = table.read_text()
    assert before in text
    table.write_text(
        text.replace(before, before + line).replace(
            "\nfrom footprint.heap.v8", f"\n{imported}from footprint.heap.v8", 1
        )
    )
    profile = tmp_path / "toy.prof"
    real = ROOT / "tests" / "corpus" / "heap" / "heapprofile-gperftools2.10-heap.txt"
    profile.write_bytes(b"toy profile\n" + real.read_bytes())
    assert json.loads(run(package, "heap", str(profile), "--json"))["heap"]


def test_a_column_takes_a_line(package: Path) -> None:
    """It is in the text, the JSON, CSV, the metrics, the report, and what describes them."""
    path = package / "verbs" / "libraries" / "call.py"
    line = '    ball_bytes: int = column("The ball.", lambda row: 4096, title="ball", views="total report metric")\n'
    before = "    users: tuple[int, ...]"
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, line + before))
    shown = run(package, "libraries", PROGRAM).splitlines()
    assert "ball" in shown[1].split()
    assert "4 KiB" in shown[2]
    found = json.loads(run(package, "libraries", PROGRAM, "--json"))["libraries"]
    assert {row["ball_bytes"] for row in found} == {4096}
    assert "ball_bytes" in run(package, "libraries", PROGRAM, "--format", "csv").partition("\n")[0].split(",")
    assert "# HELP footprint_object_ball_bytes The ball." in run(
        package, "libraries", PROGRAM, "--format", "openmetrics"
    )
    code = "from footprint.verbs.libraries.call import libraries_page; print(libraries_page(None)['columns'])"
    environment = os.environ | {"PYTHONPATH": str(package.parent)}
    assert (
        b"ball_bytes Ball"
        in subprocess.run([sys.executable, "-P", "-c", code], env=environment, check=True, capture_output=True).stdout
    )
    shutil.copytree(ROOT / "shell", package.parent / "shell")
    subprocess.run([sys.executable, "shell/describe.py"], cwd=package.parent, check=True)
    assert "| `ball_bytes` | integer | The ball. |" in (package.parent / "docs" / "json.md").read_text()
    assert "The ball." in run(package, "explain", "ball_bytes")


def test_a_verb_takes_a_folder(package: Path) -> None:
    folder = package / "verbs" / "toy"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""The verb `toy`."""\n')
    for name, text in VERB.items():
        (folder / name).write_text(text)
    assert run(package, "toy", "world") == "hello world\n"
    assert json.loads(run(package, "toy", "world", "--json")) == {"greetings": [{"text": "hello world"}]}
    assert run(package, "toy", "world", "--format", "csv").splitlines()[-1] == "hello world"
    assert "--format" in run(package, "toy", "--help")
    # The help of the command is kept as it was written: `make shell` writes it anew.
    code = "from footprint.verbs.typer_app import run_typer; run_typer(['--help'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=package.parent, capture_output=True, text=True, check=True)
    assert "Greet someone." in done.stdout


def test_the_command_runs_from_a_zip_file(package: Path, tmp_path: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", package.parent, "footprint"))
    shutil.rmtree(package)
    assert "and what N cost" in run(package, "--help", archive=archive)
    assert run(package, "audit", "--by", "mapping", str(ROOT / "tests" / "corpus" / "smaps-sleep.txt"), archive=archive)
