"""The house rules that a linter does not know: one name for one thing, plain words, and files that exist."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "footprint").rglob("*.py"))
# Without the docstring: that is read, not followed.
LONGEST_FUNCTION_LINES = 55
# A module of the HTML report: it does one thing.
LONGEST_REPORT_MODULE_LINES = 80
# Commands are their options: a parameter a line, which cannot be split.
COMMANDS = "command.py"

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(path: Path) -> Iterator[Definition]:
    """Yield the functions and classes of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Definition):
            yield node


def code_lines(node: Definition) -> int:
    """Count the lines of a function without its docstring."""
    docstring = node.body[0] if ast.get_docstring(node) is not None else None
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    return lines - ((docstring.end_lineno or 0) - docstring.lineno + 1 if docstring else 0)


def test_no_public_class_name_stands_twice() -> None:
    homes = defaultdict(list)
    for path in MODULES:
        for node in definitions(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "footprint")))
def test_docstrings_begin_with_what_the_code_does(path: Path) -> None:
    riddles = [
        f"{path.name}:{node.lineno}: {text.splitlines()[0]}"
        for node in definitions(path)
        if (text := ast.get_docstring(node)) and re.match(r"(Give|Tell|Let|Say)\b", text)
    ]
    assert riddles == []


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{path.relative_to(ROOT)}: {node.name}": lines
        for path in MODULES
        if path.name != COMMANDS
        for node in definitions(path)
        if not isinstance(node, ast.ClassDef) and (lines := code_lines(node)) > LONGEST_FUNCTION_LINES
    }
    assert long == {}


def test_no_module_is_called_by_what_says_nothing() -> None:
    empty_words = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}
    assert [path for path in MODULES if path.stem in empty_words] == []


def test_each_verb_is_one_folder() -> None:
    verbs = {path.parent for path in (ROOT / "footprint" / "verbs").glob("*/command.py")}
    assert len(verbs) >= 16
    assert [verb.name for verb in verbs if not any((verb / part).exists() for part in ("call.py", "json.py"))] == []


@pytest.mark.parametrize("page", ["docs/how-it-works.md", "CONTRIBUTING.md", "docs/json.md"])
def test_the_files_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    # `footprint/1` is the schema.
    named = set(
        re.findall(r"`((?!footprint/1`)(?:footprint|tests|benchmarks|sample_binaries|shell|docs)/[\w./-]+)`", text)
    )
    assert named
    # A name in capitals stands for any name, as in `verbs/NAME/call.py`.
    given = [name for name in sorted(named) if not re.search(r"NAME|FACT", name)]
    assert [name for name in given if not (ROOT / name).exists()] == []


def test_no_module_of_the_report_is_longer_than_a_section() -> None:
    lines = {
        path.name: len(text.splitlines())
        for path in (ROOT / "footprint" / "html" / "app" / "src").glob("*.ts")
        if "`make schema` writes this file" not in (text := path.read_text(encoding="utf-8")).partition("\n")[0]
    }
    assert lines
    assert {name: count for name, count in lines.items() if count > LONGEST_REPORT_MODULE_LINES} == {}
