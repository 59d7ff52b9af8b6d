"""The needs without use of every program of a machine, really removed: `python benchmarks/removals.py`.

    python benchmarks/removals.py [--folder DIR ...] [--most N] [--residue] [--arguments=--version]

For each finding of `unused-library` a copy of the program, and of each library that has such a need, is changed by
patchelf. Then three things are compared: the objects that `ld.so --list` loads for the copies with those that footprint
computed, in their order; what the program prints and how it ends (LD_BIND_NOW, no input); and what the finding
predicted with what `footprint whatif` measures. It needs patchelf, ptrace, and footprint with its extra `whatif`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.libraries import FOLDERS, LOADER, programs
from footprint.attribution.dependency_graph import DependencyGraph
from footprint.errors import FootprintError
from footprint.findings.graph_rules.unused_library import UnusedNeed, unused_libraries, unused_needs
from footprint.loader.target import Environment
from footprint.model.finding import Confidence, Finding
from footprint.sources.programs import Programs
from footprint.verbs.whatif.call import whatif

_PATIENCE_SECONDS: Final = 20
_KIB: Final = 1 << 10


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        program: The program.
        library: What it does without.
        confidence: What the finding says.
        is_computed: Whether the loader loads what footprint computed, in that order.
        verdict: How the copy behaves.
        predicted_bytes: What the finding promises.
        measured_bytes: What `whatif` measured; None where it does not apply.
    """

    program: str
    library: str
    confidence: Confidence
    is_computed: bool
    verdict: str
    predicted_bytes: int
    measured_bytes: int | None


def findings(graph: DependencyGraph, *, with_residue: bool) -> Iterator[tuple[Finding, list[UnusedNeed]]]:
    """Yield the findings on a program, each with the needs that it is about."""
    unused = unused_needs(graph)
    for finding in unused_libraries(graph):
        is_residue = finding.kind == "linker-residue"
        if finding.kind == "soft" or finding.confidence is Confidence.BLOCKED or (is_residue and not with_residue):
            continue
        names = set(finding.subject.split(" and "))
        needs = [need for need in unused if graph.name(need.provider) in names]
        if needs and graph.name(0) not in names and not any(_is_loader(graph, need.provider) for need in needs):
            yield finding, needs


def _is_loader(graph: DependencyGraph, number: int) -> bool:
    return graph.name(number).startswith("ld-linux")


class Copies:
    """Copies of a program and of its libraries; `drop` removes some of their needs."""

    def __init__(self, folder: Path, graph: DependencyGraph, needs: Sequence[UnusedNeed]) -> None:
        self.program = folder / os.path.basename(graph.objects[0].library.real_path)
        self.originals: dict[str, str] = {}
        self._libraries = folder / "lib"
        self._libraries.mkdir()
        self._dropped: dict[Path, set[str]] = {}
        for user in sorted({0, *(need.user for need in needs)}):
            linked = graph.objects[user]
            path = self.program if user == 0 else self._libraries / graph.name(user)
            shutil.copy(linked.library.real_path, path)
            path.chmod(0o755)
            origin = os.path.dirname(os.path.realpath(linked.path) if user == 0 else linked.path)
            _keep_search_path(path, origin)
            self.originals[str(path)] = linked.path
            places = {need.provider for need in needs if need.user == user}
            self._dropped[path] = {dependency.name for dependency in linked.dependencies if dependency.place in places}

    def drop(self) -> None:
        """Remove the needs."""
        for path, names in self._dropped.items():
            for name in sorted(names):
                subprocess.run(["patchelf", "--remove-needed", name, str(path)], check=True)

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which the loader finds the copies."""
        return os.environ | {"LD_LIBRARY_PATH": str(self._libraries), "LD_BIND_NOW": "1"}

    def loaded(self) -> list[str]:
        """Return the objects that the loader finds, in its order, each by the path of its original."""
        command = [LOADER, "--list", str(self.program)]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        found = [_path(line) for line in done.stdout.splitlines()]
        return [self.originals.get(path, path) for path in found if path and "vdso" not in path]


def _path(line: str) -> str:
    words = line.split()
    return words[2] if len(words) > 2 and words[1] == "=>" else words[0]


def _keep_search_path(path: Path, origin: str) -> None:
    done = subprocess.run(["patchelf", "--print-rpath", str(path)], capture_output=True, text=True, check=True)
    if "$ORIGIN" in done.stdout:
        directories = done.stdout.strip().replace("$ORIGIN", origin)
        subprocess.run(["patchelf", "--set-rpath", directories, str(path)], check=True)


def run(path: str, arguments: Sequence[str], environment: dict[str, str], name: str) -> tuple[str, int, bytes, bytes]:
    """Run a program without input; return how it ended and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [name, *arguments],
                executable=path,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "timeout", 0, b"", b""
    return "ended", done.returncode, done.stdout, done.stderr


def removed(graph: DependencyGraph, finding: Finding, needs: list[UnusedNeed], arguments: Sequence[str]) -> Row:
    """Remove the needs of a finding, and see what happens."""
    program = graph.objects[0].library.real_path
    with tempfile.TemporaryDirectory() as folder:
        copies = Copies(Path(folder), graph, needs)
        command = str(copies.program), arguments, copies.environment, program
        before = [run(*command) for _ in range(2)]
        copies.drop()
        expected = [one.path for one in graph.without(needs).link_map.objects[1:]]
        is_computed = copies.loaded() == expected
        after = run(*command)
    verdict = "varies" if before[0] != before[1] else "equal" if after == before[0] else f"differs ({after[1]})"
    measured_bytes = None
    if finding.leaves:
        try:
            found = whatif([program, *arguments], drop=finding.subject.split(" and "), starts=3, timeout_seconds=5)
            measured_bytes = found.private.bytes if found.private else None
        except FootprintError as error:
            verdict += f"; whatif: {error}"
    name = os.path.basename(program)
    return Row(name, finding.subject, finding.confidence, is_computed, verdict, finding.saving_bytes, measured_bytes)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", nargs="+", default=list(FOLDERS), metavar="DIR", help="where the programs are")
    parser.add_argument("--most", type=int, default=0, metavar="N", help="how many removals; 0 is all")
    parser.add_argument("--residue", action="store_true", help="also needs whose removal saves nothing")
    parser.add_argument("--arguments", nargs="+", default=["--version"], metavar="WORD", help="of each program")
    options = parser.parse_args()
    reader = Programs(environment=Environment())
    print(f"{'program':26}{'without':22}{'confidence':11}{'order':9}{'behaviour':10}{'predicted':>10}{'measured':>10}")
    count = wrong = differing = uncomputed = 0
    for path in programs(options.folder):
        graph = reader.graph(path)
        for finding, needs in findings(graph, with_residue=options.residue):
            if options.most and count == options.most:
                break
            row = removed(graph, finding, needs, options.arguments)
            count += 1
            uncomputed += not row.is_computed
            differing += row.verdict.startswith("differs")
            wrong += row.verdict.startswith("differs") and row.confidence is Confidence.HIGH
            measured = "-" if row.measured_bytes is None else f"{row.measured_bytes / _KIB:.0f} KiB"
            order = "computed" if row.is_computed else "OTHER"
            line = f"{row.program[:25]:26}{row.library:22}{row.confidence.value:11}{order:9}{row.verdict:10}"
            print(f"{line}{row.predicted_bytes / _KIB:>6.0f} KiB{measured:>10}", flush=True)
    print(f"{count} removals; {differing} behave differently, {wrong} of them were called sure", end="")
    print(f"; {uncomputed} load other objects than computed")


if __name__ == "__main__":
    main()
