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
from footprint.heap.gperftools import read_gperftools

def looks_like_toy(head):
    return head.startswith(b"toy profile\\n")

def read_toy(pieces, name):
    whole = b"".join(pieces).removeprefix(b"toy profile\\n")
    return read_gperftools([whole], name)
"""
COMMAND = '''
from typing import Annotated

import typer

ORDER = 1000


def toy(name: Annotated[str, typer.Argument(help="Whom to greet.")]) -> None:
    """Greet someone."""
    typer.echo(f"hello {name}")
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Copy the package and its documentation."""
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "images", "examples")
    shutil.copytree(ROOT / "footprint", tmp_path / "footprint", ignore=ignored)
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=ignored)
    return tmp_path / "footprint"


def run(package: Path, *words: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
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
    table.write_text(text.replace(before, before + line).replace("\n__all__", f"{imported}\n__all__", 1))
    profile = tmp_path / "toy.prof"
    real = ROOT / "tests" / "corpus" / "heap" / "heapprofile-gperftools2.10-heap.txt"
    profile.write_bytes(b"toy profile\n" + real.read_bytes())
    assert json.loads(run(package, "heap", str(profile), "--json"))["heap"]


def test_a_verb_takes_a_folder(package: Path) -> None:
    folder = package / "verbs" / "toy"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""The verb `toy`."""\n')
    (folder / "command.py").write_text(COMMAND)
    assert run(package, "toy", "world") == "hello world\n"
    assert "Greet someone." in run(package, "--help")
