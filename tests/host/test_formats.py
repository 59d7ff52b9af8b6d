"""`--format` of the verbs that start a program, and of a process in two runs of its program."""

import json
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from footprint.cli import main
from footprint.formats.document import About
from footprint.formats.dot import Digraph, DigraphEdge, DigraphNode, dot
from footprint.text.escape import printable
from footprint.verbs.options import Format
from tests.formats import EVERY, FIGURES, PAGE, STACKS, Captured, check_every_format
from tests.hostile import HOSTILE

ROOT = Path(__file__).resolve().parents[2]
UNUSED = "sample_binaries/unused_library/shadow"
BUILDS = "sample_binaries/condor_shadow/sans_answers", "sample_binaries/condor_shadow/base"
VERBS = {
    "run": (["run", "--", "true"], EVERY | FIGURES | STACKS | PAGE),
    "whatif": (["whatif", "--drop", "libcrypt_like.so", "--starts", "1", "--", UNUSED], EVERY | PAGE),
    "whatif --with": (["whatif", "--with", BUILDS[0], "--starts", "1", "--", BUILDS[1]], EVERY | PAGE),
}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@pytest.mark.parametrize("format_", [one.value for one in Format])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_runs_a_program_gives_a_format_or_says_which_it_gives(
    verb: str, format_: str, capfdbinary: Captured
) -> None:
    check_every_format(capfdbinary, verb, *VERBS[verb], format_)


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is missing")
@pytest.mark.parametrize("name", [name for name, label in HOSTILE.items() if label])
def test_graphviz_draws_every_graph_with_its_labels(name: str) -> None:
    label = HOSTILE[name]
    graph = Digraph(
        label, [DigraphNode((label, "4 KiB")), DigraphNode((label,), is_marked=True)], [DigraphEdge(0, 1, label)]
    )
    text = dot(graph, About("libraries", "1"))
    done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True)
    drawn = [one.text for one in ET.fromstring(done.stdout).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314 # dot wrote it
    shown = printable(label).split()
    assert [(one or "").split() for one in drawn] == [shown, ["4", "KiB"], shown, shown]
    assert done.stderr == b""


def test_what_is_told_of_a_process_is_the_same_one_in_the_next_run(tmp_path: Path, capfdbinary: Captured) -> None:
    toml = tmp_path / "footprint.toml"
    toml.write_text("[budgets]\nprivate_bytes = 1\n")
    runs_told = []
    for _ in range(2):
        with subprocess.Popen([ROOT / "sample_binaries/condor_shadow/base", "--wait"], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert any(line == b"ready\n" for line in child.stdout)
            words = ["check", str(child.pid), "--config", str(toml), "--format"]
            assert main([*words, "sarif"]) == 1
            (run,) = json.loads(capfdbinary.readouterr().out)["runs"]
            assert main([*words, "markdown"]) == 1
            first_line = capfdbinary.readouterr().out.splitlines()[0]
            runs_told.append(
                (run["automationDetails"], [one["partialFingerprints"] for one in run["results"]], first_line)
            )
            child.kill()
    assert runs_told[0] == runs_told[1]
    assert runs_told[0][2] == b"<!-- footprint: check base -->"
