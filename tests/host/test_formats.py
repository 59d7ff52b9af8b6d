"""`--format` of the verbs that start a program, and of a process in two runs of its program."""

import json
import subprocess
from pathlib import Path

import pytest

from footprint.cli import main
from footprint.verbs.options import Format
from tests.formats import EVERY, FIGURES, STACKS, Captured, check_every_format

ROOT = Path(__file__).resolve().parents[2]
UNUSED = "sample_binaries/unused_library/shadow"
VERBS = {
    "run": (["run", "--", "true"], EVERY | FIGURES | STACKS),
    "whatif": (["whatif", "--drop", "libcrypt_like.so", "--starts", "1", "--", UNUSED], EVERY),
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


def test_what_is_told_of_a_process_is_the_same_one_in_the_next_run(tmp_path: Path, capfdbinary: Captured) -> None:
    toml = tmp_path / "footprint.toml"
    toml.write_text("[budgets]\nprivate_bytes = 1\n")
    told = []
    for _ in range(2):
        with subprocess.Popen([ROOT / "sample_binaries/condor_shadow/base", "--wait"], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert any(line == b"ready\n" for line in child.stdout)
            words = ["check", str(child.pid), "--config", str(toml), "--format"]
            assert main([*words, "sarif"]) == 1
            (run,) = json.loads(capfdbinary.readouterr().out)["runs"]
            assert main([*words, "markdown"]) == 1
            first_line = capfdbinary.readouterr().out.splitlines()[0]
            told.append((run["automationDetails"], [one["partialFingerprints"] for one in run["results"]], first_line))
            child.kill()
    assert told[0] == told[1]
    assert told[0][2] == b"<!-- footprint: check base -->"
