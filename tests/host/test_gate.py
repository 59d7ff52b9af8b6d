"""The gate of the example stops each change that should not be released, and names what is responsible.

The example becomes a repository of two commits, and the steps of its two workflows are run.
"""

import html
import json
import os
import re
import shutil
from pathlib import Path

import junitparser
import pytest

from tests.workflows import ROOT, Runner, StepResult, read_yaml

EXAMPLE = ROOT / "docs" / "examples" / "gate"
ACTION = read_yaml((ROOT / "action.yml").read_text())
# Each change, the target that it makes fail, and what is named as responsible.
CHANGES = {
    "table": ("agentd", "histogram (agentd) at histogram.h:5"),
    "library": ("agentd", "libmetrics.so, which agentd now needs"),
    "plugins": ("running.json", "libmetrics.so, which is opened at run time"),
    "cache": ("running.json", "[heap]"),
    "crash": ("running.json", "SIGABRT"),
    "hang": ("running.json", "the time was over before it printed the line that was waited for"),
    "exit": ("running.json", "it exited with 1, not with 0"),
}
# The lines of a change that are to blame, which a reviewer sees annotated.
LINES = {
    "table": {("grown-variable", "histogram.h", 5), ("duplicate-static", "histogram.h", 5)},
    "library": {("new-library", "Makefile", 5)},
    "plugins": {("new-library", "Makefile", 5)},
}
# What fails only while the daemon works, and what fails nothing.
LEAK, NOISE = "leak", "noise"
# What fails without a crash: the limit that is exceeded by its largest part, and who makes it so in one last line.
VERDICTS = {
    "table": ", grew most histogram (agentd) at histogram.h:5.",
    "library": "libraries.allow_new by 36, came with libmetrics.so at Makefile:5.",
    "plugins": ", came with libmetrics.so.",
    "cache": 'owners."[heap]" by ',
    "crash": "The run failed: SIGABRT ended it (3 starts).",
}
NAME = {
    "GIT_AUTHOR_NAME": "me",
    "GIT_AUTHOR_EMAIL": "me@here",
    "GIT_COMMITTER_NAME": "me",
    "GIT_COMMITTER_EMAIL": "me@here",
}
COMMIT = "git add -A; git commit -q -m"


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository of the example: one commit with the daemon and its gate."""
    for tool in ("git", "make", "cc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing")
    top = tmp_path_factory.mktemp("gate")
    shutil.copytree(EXAMPLE, top / "agentd", ignore=shutil.ignore_patterns("changes", "README.md"))
    runner = Runner(top / "agentd", top / "home")
    for script in (
        "make",
        "footprint check --init agentd --ci github",
        "make running.json",
        "footprint check running.json --config running.toml --update-baseline",
        f"git init -q .; {COMMIT} 'The daemon and its gate'",
    ):
        code, text = runner.shell(script, os.environ | NAME)
        assert code == 0, text
    return top / "agentd"


@pytest.fixture
def runner(gated: Path, tmp_path: Path) -> Runner:
    """Return a machine with a fresh clone."""
    runner = Runner(tmp_path, tmp_path.parent / f"{tmp_path.name}-home")
    code, text = runner.shell(f"git clone -q '{gated}' agentd")
    assert code == 0, text
    runner.folder = tmp_path / "agentd"
    return runner


def steps_of(runner: Runner, workflow: str) -> list[StepResult]:
    """Run the steps of a workflow, and those of the action where it is used."""
    (job,) = read_yaml((runner.folder / ".github" / "workflows" / workflow).read_text())["jobs"].values()
    found = runner.run(job["steps"])
    for step in job["steps"]:
        if "/footprint@" in step.get("uses", ""):
            told = {name: one.get("default", "") for name, one in ACTION["inputs"].items()}
            found += runner.run(ACTION["runs"]["steps"], told | step["with"])
    return found


def failed(results: list[StepResult]) -> list[str]:
    return [result.name for result in results if result.code]


def test_a_second_build_of_the_same_passes(runner: Runner) -> None:
    for workflow in ("footprint.yml", "running.yml"):
        results = steps_of(runner, workflow)
        assert failed(results) == [], results
        assert [result.name for result in results].count("What one process may cost") == 1
    _, *ours = runner.comments
    assert [comment.splitlines()[0] for comment in ours] == [
        "<!-- footprint: check agentd -->",
        "<!-- footprint: check running.json -->",
    ]
    assert all("limits hold." in comment for comment in ours)


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_fails_and_the_responsible_is_named_in_every_format(runner: Runner, change: str) -> None:
    target, culprit = CHANGES[change]
    assert runner.shell(f"git apply '{EXAMPLE}/changes/{change}.patch'; {COMMIT} {change}", os.environ | NAME)[0] == 0

    static = failed(steps_of(runner, "footprint.yml"))
    running = failed(steps_of(runner, "running.yml"))
    assert ("What one process may cost" in static) is (target == "agentd")
    if target == "running.json":
        assert "What one process may cost" in running
        assert ("Start the daemon, and fail if it does not come up" in running) is (change not in {"cache", "plugins"})
    (comment,) = (one for one in runner.comments if one.startswith(f"<!-- footprint: check {target} -->"))
    assert culprit.split(",")[0] in html.unescape(comment)

    line = f"footprint check {target}" + (" --config running.toml" if target == "running.json" else "")
    code, text = runner.shell(line)
    assert code == 1
    assert culprit in " ".join(text.split())
    assert runner.shell(f"{line} --format sarif -o it.sarif")[0] == 1
    (run,) = json.loads((runner.folder / "it.sarif").read_text())["runs"]
    assert any(culprit in one["message"]["text"] for one in run["results"] if one["level"] == "error")
    places = [(one["ruleId"], one["locations"][0]["physicalLocation"]) for one in run["results"]]
    assert LINES.get(change, set()) <= {
        (rule, one["artifactLocation"]["uri"], one["region"]["startLine"]) for rule, one in places
    }
    assert runner.shell(f"{line} --format junit -o it.xml")[0] == 1
    (suite,) = junitparser.JUnitXml.fromfile(str(runner.folder / "it.xml"))
    assert any(culprit in f"{result.message} {result.text}" for case in suite for result in case.result)


@pytest.mark.parametrize("change", VERDICTS)
def test_all_formats_say_one_thing_of_a_change_and_name_files_of_the_repository(runner: Runner, change: str) -> None:
    target = CHANGES[change][0]
    assert runner.shell(f"git apply '{EXAMPLE}/changes/{change}.patch'")[0] == 0
    runner.shell("make; make running.json")
    command = f"footprint check {target}" + (" --config running.toml" if target == "running.json" else "")
    if change in {"library", "plugins"}:
        # The program of a run is searched, too.
        assert "What to do" in runner.shell(command)[1]
    written = {}
    for format_ in ("json", "sarif", "junit", "gitlab", "markdown"):
        assert runner.shell(f"{command} --format {format_} -o answer.{format_}")[0] == 1
        written[format_] = (runner.folder / f"answer.{format_}").read_text()
    code, written["github"] = runner.shell(f"{command} --format github")
    verdict = json.loads(written["json"])["verdict"]
    assert (code, VERDICTS[change] in verdict) == (1, True), verdict

    # The last line is one for all, and counts no crash as a limit.
    for format_ in ("junit", "markdown", "github"):
        assert verdict in html.unescape(written[format_]).replace("\\", ""), format_
    assert " ".join(runner.shell(f"{command} -q")[1].split()).endswith(verdict)

    # Each place is a file of the repository, named from its root, with a line.
    results = json.loads(written["sarif"])["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert all(place["region"]["startLine"] >= 1 for place in places)
    named = {place["artifactLocation"]["uri"] for place in places}
    named |= {entry["location"]["path"] for entry in json.loads(written["gitlab"])}
    named |= set(re.findall(r' file="([^"]+)"', written["junit"]))
    named |= set(re.findall(r"^::\w+ file=([^,]+),", written["github"], re.MULTILINE))
    assert named
    assert all(not name.startswith("/") and (runner.folder / name).is_file() for name in named), named

    # A new library has one figure of private memory, whatever says it.
    text = " ".join(line for line in written["github"].splitlines() if "mapped_writable" not in line)
    figures = set(re.findall(r"libmetrics\.so \+?([0-9.]+ [KM]iB)", text))
    figures |= set(re.findall(r"Came with libmetrics\.so.*?(?:It|They) adds? ([0-9.]+ [KM]iB)", text))
    assert len(figures) == (change in {"library", "plugins"}), figures


def test_every_change_of_the_example_is_tried_and_described() -> None:
    changes = {*CHANGES, LEAK, NOISE}
    assert {path.stem for path in (EXAMPLE / "changes").iterdir()} == changes
    readme = (EXAMPLE / "README.md").read_text()
    assert all(f"| `{name}` |" in readme for name in changes)


@pytest.mark.parametrize("change", [None, LEAK])
def test_a_leak_fails_once_the_daemon_works_and_every_format_names_its_owner(
    runner: Runner, change: str | None
) -> None:
    script = f"git apply '{EXAMPLE}/changes/{change}.patch'" if change else ":"
    code, text = runner.shell(f"{script} && make growing.fps")
    assert code == 0, text
    line = "footprint check growing.fps --config growing.toml"
    code, text = runner.shell(line)
    assert code == (1 if change else 0), text
    if not change:
        return
    assert " ".join(text.split()).endswith(", grew most [heap].")
    assert "1 of 1 limit exceeded: hourly_growth_bytes by " in " ".join(text.split())
    for format_ in ("json", "sarif", "junit", "gitlab", "github", "markdown"):
        code, text = runner.shell(f"{line} --format {format_}")
        assert (code, "[heap]" in html.unescape(text).replace("\\", "")) == (1, True), text


def test_noise_of_starts_passes(runner: Runner) -> None:
    assert runner.shell(f"git apply '{EXAMPLE}/changes/{NOISE}.patch'; {COMMIT} noise", os.environ | NAME)[0] == 0
    for workflow in ("footprint.yml", "running.yml", "running.yml"):
        results = steps_of(runner, workflow)
        assert failed(results) == [], results


@pytest.mark.parametrize("change", [None, "crash", "hang", "exit"])
def test_the_workflow_of_init_starts_the_daemon_and_fails_where_it_does_not_come_up(
    gated: Path, runner: Runner, change: str | None
) -> None:
    shutil.copy(gated / "agentd", runner.folder / "agentd")
    for script in (
        "rm -r .github/workflows/footprint.yml",
        "footprint check --init agentd --ci github --when-output ready",
        "sed -i 's/--timeout 60/--timeout 5/' .github/workflows/footprint.yml",
        "footprint run --when-output ready -o footprint-run.json -- ./agentd",
        "footprint check footprint-run.json --propose -o footprint-run.toml",
        "rm footprint-run.json",
        f"git apply '{EXAMPLE}/changes/{change}.patch'" if change else ":",
    ):
        code, text = runner.shell(script)
        assert code == 0, text
    results = steps_of(runner, "footprint.yml")
    both = ["The program starts, five times, without a crash or a hang", "What a running process may cost"]
    assert failed(results) == (both if change else []), results
    assert both == [result.name for result in results if result.name in both]
