"""Names say what they are: a general word names neither a parameter, nor a field, nor a variable that lives long."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERAL = {"one", "found", "each", "known", "own", "asked", "held", "told", "said"}
# From its first line to its last: within these its meaning is in view.
MOST_LINES_APART = 5
# `each` is a member of a saved answer.
MEMBERS = {("footprint/model/projection.py", "each")}
# Files that are not clean yet. The list only shrinks: a file that is clean must leave it.
NOT_YET: set[str] = set()

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def nodes_of(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope; of the scopes within it only their first node."""
    waiting = list(ast.iter_child_nodes(scope))
    for node in waiting:
        yield node
        if not isinstance(node, (Scope, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def parameters(scope: ast.AST) -> set[str]:
    if not isinstance(scope, (Function, ast.Lambda)):
        return set()
    return {node.arg for node in ast.walk(scope.args) if isinstance(node, ast.arg)}


def bound_by(scope: ast.AST) -> set[str]:
    """Return the general words that a scope binds, but for its parameters."""
    names = (node for node in nodes_of(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return {node.id for node in names} & GENERAL


def lines_of(scope: ast.AST, word: str) -> Iterator[int]:
    """Yield the lines of a variable, also in the scopes within its own that do not bind the name anew."""
    for node in nodes_of(scope):
        if isinstance(node, ast.Name) and node.id == word:
            yield node.lineno
        elif isinstance(node, Scope) and word not in bound_by(node) | parameters(node):
            yield from lines_of(node, word)


def general_names(source: str) -> list[tuple[int, str]]:
    """Return the general words among the names of a module that are read far from where they are bound."""
    if not re.search(rf"\b(?:{'|'.join(GENERAL)})\b", source):
        return []
    names = []
    for scope in ast.walk(ast.parse(source)):
        if isinstance(scope, Function):
            names += [(scope.lineno, word) for word in GENERAL & parameters(scope)]
        if isinstance(scope, ast.ClassDef):
            fields = [node.target for node in scope.body if isinstance(node, ast.AnnAssign)]
            names += [(node.lineno, node.id) for node in fields if isinstance(node, ast.Name) and node.id in GENERAL]
        for word in bound_by(scope) - parameters(scope) if isinstance(scope, Scope) else ():
            lines = list(lines_of(scope, word))
            if max(lines) - min(lines) > MOST_LINES_APART:
                names.append((min(lines), word))
    return sorted(names)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def read(found): pass", [(1, "found")]),
        ("def read(*, one): pass", [(1, "one")]),
        ("class Row:\n    own: int", [(2, "own")]),
        ("def read():\n    known = 1\n\n\n\n\n\n    return known", [(2, "known")]),
        ("def read():\n    known = 1\n\n\n\n    return known", []),
        ("def read():\n    told = 1\n    def text():\n\n\n\n\n        return told\n    return text", [(2, "told")]),
        ("def read():\n    a = [one for one in b]\n\n\n\n\n\n    return [one for one in a]", []),
        ("sorted(rows, key=lambda one: one.size)", []),
        ("def read(mapping): return mapping.held", []),
    ],
)
def test_a_general_word_is_seen_where_its_meaning_is_far(source: str, expected: list[tuple[int, str]]) -> None:
    assert general_names(source) == expected


def test_names_say_what_they_are() -> None:
    unclear = {}
    for folder in ("footprint", "tests", "shell", "benchmarks", "fuzz", "sample_binaries"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            file = str(path.relative_to(ROOT))
            if names := [
                item for item in general_names(path.read_text(encoding="utf-8")) if (file, item[1]) not in MEMBERS
            ]:
                unclear[file] = names
    assert {file: names for file, names in unclear.items() if file not in NOT_YET} == {}
    assert sorted(NOT_YET - unclear.keys()) == [], "these are clean: take them out of NOT_YET"
