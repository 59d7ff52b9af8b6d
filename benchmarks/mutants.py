"""How many small defects the hermetic tests catch: `python -m benchmarks.mutants --count 200 --seed 1`.

Changes one operator or number of a line that a test executes, runs the tests that execute it, and says which changes no
test noticed. The tests of each line come from one run of the suite under coverage, which `pytest-cov` has to be
installed for; `--coverage FILE` keeps that run. What survives is a missing test, or a change that changes nothing.
"""

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Final, NamedTuple

CHECKOUT: Final = Path(__file__).parent.parent
_PACKAGES: Final = ("attribution", "elf", "process", "findings", "release")
_TESTS: Final = ("tests/unit", "tests/cli", "tests/property")
# Of the tests of a line so many run: those that execute the least run first.
_MOST_TESTS: Final = 120
_PATIENCE_SECONDS: Final = 300
_COMPARED: Final = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq}
_COMPUTED: Final = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult}


class Mutant(NamedTuple):
    """A defect: the text that stands in a file instead of another, from a byte offset on."""

    path: str
    line: int
    offset: int
    before: bytes
    after: bytes


def main() -> int:
    """Make the defects, run their tests, and print what none noticed."""
    parser = argparse.ArgumentParser(description="Count the small defects that the hermetic tests catch.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--coverage", type=Path, help="that of an earlier run, or where to keep it")
    parser.add_argument("packages", nargs="*", default=_PACKAGES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        coverage = options.coverage or Path(folder, "coverage")
        if not coverage.exists():
            _cover(coverage)
        tests_of_line = _tests_of_lines(coverage)
        mutants = [
            mutant
            for package in options.packages
            for path in sorted((CHECKOUT / "footprint" / package).rglob("*.py"))
            for mutant in mutants_of(path)
            if (mutant.path, mutant.line) in tests_of_line
        ]
        chosen = random.Random(options.seed).sample(mutants, min(options.count, len(mutants)))  # noqa: S311 # no secret
        copy = Path(folder, "copy")
        shutil.copytree(CHECKOUT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "node_modules", "build", "dist"))
        caught_count = 0
        for mutant in chosen:
            is_caught = _is_caught(mutant, copy, tests_of_line[mutant.path, mutant.line])
            caught_count += is_caught
            if not is_caught:
                print(f"{mutant.path}:{mutant.line}: {mutant.before.decode()}  ->  {mutant.after.decode()}", flush=True)
    print(f"{caught_count} of {len(chosen)} are caught")
    return 0


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Find the defects that a file can have: another operator, or a number that is one more."""
    source = path.read_bytes()
    lines = source.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.expr) or (changed := _changed(deepcopy(node))) is None:
            continue
        start, end = (
            starts[line - 1] + column
            for line, column in ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        )
        # The offsets of what stands in an f-string may be wrong.
        with suppress(SyntaxError, UnicodeDecodeError):
            if ast.unparse(ast.parse(b"(%b)" % source[start:end])) == ast.unparse(node):
                after = f"({ast.unparse(changed)})".encode()
                yield Mutant(str(path.relative_to(CHECKOUT)), node.lineno, start, source[start:end], after)


def _changed(node: ast.expr) -> ast.expr | None:
    """Change one thing of an expression; None where there is nothing to change."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        node.ops[0] = _COMPARED[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        node.op = _COMPUTED[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    else:
        return None
    return node


def _cover(coverage: Path) -> None:
    words = ["-q", "-n", "auto", "--cov=footprint", "--cov-context=test", "--cov-report=", *_TESTS]
    subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=CHECKOUT,
        env={"COVERAGE_FILE": str(coverage), "PATH": "/usr/bin:/bin"},
        check=False,
    )


def _tests_of_lines(coverage: Path) -> dict[tuple[str, int], list[str]]:
    """Return the tests of each line, those that execute the fewest lines first."""
    words = [sys.executable, "-m", "coverage", "json", "--show-contexts", "--quiet", "-o", "/dev/stdout"]
    done = subprocess.run([*words, f"--data-file={coverage}"], cwd=CHECKOUT, check=True, capture_output=True)
    contexts: dict[tuple[str, int], list[str]] = {}
    line_counts: dict[str, int] = {}
    for path, measured in json.loads(done.stdout)["files"].items():
        for line, names in measured["contexts"].items():
            tests = [name.removesuffix("|run") for name in names if name.endswith("|run")]
            for test in tests:
                line_counts[test] = line_counts.get(test, 0) + 1
            if tests:
                contexts[path, int(line)] = tests
    return {place: sorted(set(tests), key=lambda test: line_counts[test]) for place, tests in contexts.items()}


def _is_caught(mutant: Mutant, copy: Path, tests: list[str]) -> bool:
    target = copy / mutant.path
    source = target.read_bytes()
    target.write_bytes(source[: mutant.offset] + mutant.after + source[mutant.offset + len(mutant.before) :])
    try:
        # Some names of tests have the folder of the checkout.
        names = [test.replace(str(CHECKOUT), str(copy)) for test in tests[:_MOST_TESTS]]
        words = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", *names]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=copy,
            check=False,
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        target.write_bytes(source)
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
