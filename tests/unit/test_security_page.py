"""The page on security: each claim names a test that exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[a-z_/]+\.py)::(test_[a-z0-9_]+)`", PAGE)


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda part: part.rpartition("/")[2])
def test_a_test_that_holds_a_claim_exists(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_claim_names_a_test() -> None:
    claims, rights = PAGE.split("## Rights")
    rows = [
        line
        for line in claims.splitlines()
        if line.startswith("| ") and not line.startswith(("| claim", "| input", "| output"))
    ]
    assert len(rows) > 15
    assert [row for row in rows if "::test_" not in row] == []
    assert "tests/host/test_privileges.py" in rights
