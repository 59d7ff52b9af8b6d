"""Refuse general words as names of parameters, fields and variables that live long: `make lint` runs this."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("footprint", "tests", "shell", "benchmarks", "fuzz", "sample_binaries")
GENERAL = {"one", "found", "each", "known", "own", "asked", "held", "told", "said"}
# From its first line to its last: within these its meaning is in view.
MOST_LINES_APART = 5
# `each` is a member of a saved answer.
MEMBERS = {("footprint/model/projection.py", "each")}

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
    """Return the names of the parameters of a scope."""
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
    nodes = list(ast.walk(ast.parse(source)))
    # In most modules the words stand in texts and comments.
    if GENERAL.isdisjoint(getattr(node, "id", getattr(node, "arg", None)) for node in nodes):
        return []
    names = []
    for scope in nodes:
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


def unclear_names(root: Path = ROOT) -> list[str]:
    """Return the general words among the names of all files, each with its place."""
    return [
        f"{file}:{line}: `{word}` is a general word: say what it is"
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
        for file in [str(path.relative_to(root))]
        for line, word in general_names(path.read_text(encoding="utf-8"))
        if (file, word) not in MEMBERS
    ]


if __name__ == "__main__" and (unclear := unclear_names()):
    sys.exit("\n".join(unclear))
