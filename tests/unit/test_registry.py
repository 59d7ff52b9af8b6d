"""The registry of rules: a rule that is registered is run, shown, budgeted, listed in every format and explained."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import footprint.findings
from footprint.cli import main
from footprint.findings.registry import Fact, fact_of, rule_named, rule_names, rules_reading
from footprint.formats import words
from footprint.formats.issues import rule_text

ROOT = Path(__file__).parents[2]
PROGRAM = str(ROOT / "sample_binaries" / "condor_shadow" / "base")
PROFILE = str(ROOT / "sample_binaries" / "heap_by_function" / "massif.out")
SMAPS = str(ROOT / "tests" / "corpus" / "smaps-python3.txt")
# Every verb that runs rules, by the fact that it has.
RUN_BY = {
    Fact.GRAPH: [["libraries", PROGRAM, "-v"], ["audit", PROGRAM]],
    Fact.LEDGER: [["audit", PROGRAM]],
    Fact.VARIABLES: [["duplicates", PROGRAM], ["audit", PROGRAM]],
    Fact.HEAP: [["heap", PROFILE], ["audit", SMAPS, "--heap", PROFILE]],
}
TOY = """
from footprint.findings.registry import Fact, Rule
from footprint.model.finding import Confidence, Finding

def find(_):
    return {found}

RULE = Rule("toy-rule", "A toy that costs memory", (Fact.{fact},), find)
"""
FOUND = 'Finding("toy-rule", "toy", "ball", "a ball lies about", 4096, Confidence.HIGH, ("seen",), "tidy up"),'
Register = Callable[[Fact, str], None]
Run = Callable[..., str]


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Register]:
    """Register a rule for the time of a test: one module in the folder of its fact, and one page."""
    modules: list[str] = []

    def register(fact: Fact, result: str) -> None:
        folder = tmp_path / f"{fact}_rules"
        folder.mkdir()
        (folder / "toy_rule.py").write_text(TOY.format(fact=fact.name, found=f"({result})"))
        package = __import__(f"footprint.findings.{fact}_rules", fromlist=["__path__"])
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        modules.append(f"{package.__name__}.toy_rule")
        shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.svg", "*.png"))
        (tmp_path / "docs" / "findings" / "toy-rule.md").write_text(
            "# toy-rule\n\n**What it is.** A ball on the floor.\n"
        )
        monkeypatch.setattr(words, "_folder", lambda: tmp_path / "docs")

    rule_text.cache_clear()
    yield register
    rule_text.cache_clear()
    for name in modules:
        sys.modules.pop(name, None)


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run the command in this process, and return what it writes to standard output."""

    def run(*arguments: str, code: int = 0) -> str:
        ended = main(arguments)
        captured = capfdbinary.readouterr()
        assert ended == code, captured.err
        return captured.out.decode()

    return run


@pytest.mark.parametrize("name", rule_names())
def test_a_rule_is_called_like_its_module_lies_with_its_first_fact_and_has_a_page(name: str) -> None:
    rule = rule_named(name)
    assert rule.name == name
    assert rule.needs[0] is fact_of(name)
    assert (ROOT / "docs" / "findings" / f"{name}.md").is_file()


@pytest.mark.parametrize("name", rule_names())
def test_some_verb_runs_each_rule(name: str) -> None:
    # What the verbs hand to the rules; the tests below show that they do.
    had = [
        {Fact.GRAPH},
        {Fact.VARIABLES},
        {Fact.HEAP},
        {Fact.GRAPH, Fact.LEDGER, Fact.VARIABLES},
        {Fact.HEAP, Fact.LEDGER},
    ]
    assert any(rule_named(name) in rules_reading(facts) for facts in had)


def test_rules_for_some_facts_are_found_without_an_import_of_the_others() -> None:
    assert rule_names(Fact.LEDGER) == ("free-heap", "relocated-tables")
    assert fact_of("heap-at-start") is Fact.HEAP
    assert fact_of("of-a-later-version") is None
    with pytest.raises(KeyError):
        rule_named("of-a-later-version")


CASES = [pytest.param(fact, command, id=f"{fact}-{command[0]}") for fact, runs in RUN_BY.items() for command in runs]


@pytest.mark.parametrize(("fact", "command"), CASES)
def test_a_new_rule_turns_up_where_its_facts_are(fact: Fact, command: list[str], register: Register, run: Run) -> None:
    register(fact, FOUND)
    # What an audit shows first of it is what to do.
    assert {"libraries": "a ball lies about", "audit": "toy-rule"}.get(command[0], "a ball lies about") in run(*command)
    assert "a ball lies about" in run(*command, "-v")
    assert "toy-rule" in {one["rule"] for one in json.loads(run(*command, "--json"))["findings"]}
    sarif = json.loads(run(*command, "--format", "sarif"))["runs"][0]
    (rule,) = [one for one in sarif["tool"]["driver"]["rules"] if one["id"] == "toy-rule"]
    assert rule["shortDescription"]["text"] == "A toy that costs memory."
    assert rule["fullDescription"]["text"] == "A ball on the floor."
    assert "toy-rule" in {one["ruleId"] for one in sarif["results"]}
    assert '<failure type="toy-rule"' in run(*command, "--format", "junit")


@pytest.mark.parametrize(("fact", "command"), CASES)
def test_a_rule_that_finds_nothing_is_a_case_that_passes(
    fact: Fact, command: list[str], register: Register, run: Run
) -> None:
    register(fact, "")
    assert '<testcase classname="footprint.toy-rule" name="toy-rule"/>' in run(*command, "--format", "junit")
    rules = json.loads(run(*command, "--format", "sarif"))["runs"][0]["tool"]["driver"]["rules"]
    assert "toy-rule" in {rule["id"] for rule in rules}


def test_a_new_rule_has_a_budget_and_is_explained(register: Register, run: Run, tmp_path: Path) -> None:
    register(Fact.GRAPH, FOUND)
    budgets = tmp_path / "footprint.toml"
    budgets.write_text("[budgets.findings]\ntoy-rule = 0\n")
    assert "findings.toy-rule" in run("check", PROGRAM, "--config", str(budgets), code=1)
    budgets.write_text("[budgets.findings]\ntoy-rule = 1\n")
    run("check", PROGRAM, "--config", str(budgets))
    assert "A ball on the floor." in run("explain", "toy-rule")


def test_every_folder_of_rules_is_one_of_a_fact() -> None:
    folders = {path.name for path in Path(footprint.findings.__path__[0]).glob("*_rules")}
    assert folders == {f"{fact}_rules" for fact in Fact}
