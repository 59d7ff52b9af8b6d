"""`explain` knows every word that answers have: the pages of the documentation say what it means."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import footprint
from footprint.cli import main
from footprint.errors import UsageError
from footprint.findings.registry import rule_names
from footprint.formats.issues import BUDGET
from footprint.formats.words import explain, known_words
from footprint.model.figures import FIGURES
from footprint.model.finding import Confidence
from footprint.model.row import FIGURE_NAMES, Evidence, MemoryKind, OfWhich, Row
from footprint.release.budget_file import LIBRARY_KEYS, LIMIT_KEYS
from footprint.release.compare import RowStatus

SOURCES = Path(footprint.__file__).parent
PAGES = Path(__file__).resolve().parents[2] / "docs" / "findings"


def texts(*folders: str) -> Iterator[str]:
    """Yield the literal texts of the modules of some packages."""
    for folder in folders:
        for path in (SOURCES / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def rules() -> dict[str, set[str]]:
    """Return the rules with their kinds, as their modules name them."""
    result: dict[str, set[str]] = {}
    for rule in rule_names():
        (path,) = (SOURCES / "findings").glob(f"*_rules/{rule.replace('-', '_')}.py")
        kinds = result.setdefault(rule, set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                kinds |= words(node.args[1])
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).lstrip("(").startswith("kind, "):
                kinds |= words(node.value)
    return result


def words(node: ast.AST) -> set[str]:
    """Return the literal texts of one word below a node."""
    constants = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    return {constant for constant in constants if isinstance(constant, str) and " " not in constant}


WORDS = [
    *FIGURE_NAMES.values(),
    *OfWhich._fields,
    *FIGURES,
    *(one.value for enum in (MemoryKind, Evidence, Confidence, RowStatus) for one in enum),
    "pages",
    "sole_pages",
    "relocated_bytes",
    "retained_bytes",
    "saving_bytes",
    "evidence",
    "attribution",
    *LIMIT_KEYS,
    *LIBRARY_KEYS,
    "at_processes",
    "baseline",
    "waiver",
    "contributors",
    "grew_from",
    "is_noise",
    BUDGET,
    *map(str, (0, 1, 2, 3, 4, 130, 141)),
]


@pytest.mark.parametrize("word", WORDS)
def test_each_figure_kind_and_exit_code_is_explained(word: str) -> None:
    assert explain(word)[0].text


@pytest.mark.parametrize("word", ["RSS", "PSS", "USS", "VSZ", "VIRT", "RES", "SHR", "working set"])
def test_the_words_of_ps_and_top_lead_to_the_figure_in_their_place(word: str) -> None:
    (found,) = explain(word)
    assert found.subject == "Figures of ps and top"
    assert any(f"`{name}`" in found.text for name in FIGURES)


def test_what_the_reports_of_checks_and_comparisons_say_is_explained() -> None:
    said = {text.strip() for text in texts("verbs")}
    for label in ("too much", "room", "grew most", "most of it", "among them", "new", "limit", "waived"):
        assert label in said
        assert explain(label)[0].text
    assert any("within the spread of the starts" in one for one in said)
    assert explain("within the spread of the starts")[0].text


def test_each_owner_in_brackets_is_explained() -> None:
    named = {text for text in texts("attribution", "model", "process") if re.fullmatch(r"\[[a-z][a-z ]*[a-z]\]", text)}
    # What Linux prints for the sums of a process, and a table of a budget file, are no owners.
    assert named - {"[rollup]", "[budgets]"} - set(known_words()) == set()


def test_each_rule_has_a_page_with_all_its_kinds_its_cost_an_example_and_a_remedy() -> None:
    found = rules()
    assert len(found) >= 7
    assert found["large-static"] == {"dead-code", "zero-filled", "buffer"}
    assert {path.stem for path in PAGES.glob("*.md")} == found.keys()
    for rule, kinds in found.items():
        page = (PAGES / f"{rule}.md").read_text()
        assert page.startswith(f"# {rule}\n")
        for part in ("What it is", "Why it costs", "Example", "Remedy"):
            assert f"**{part}.**" in page, (rule, part)
        for kind in kinds - {rule, "-"}:
            assert f"| `{kind}` |" in page, (rule, kind)


def test_a_word_with_several_meanings_has_all_of_them() -> None:
    assert [one.subject for one in explain("evidence")] == ["Columns"]
    assert {one.subject for one in explain("direct")} == {"Kinds of unused-library"}


def test_words_are_found_as_text_and_json_write_them() -> None:
    assert explain("per process") == explain("PER_PROCESS_BYTES") == explain("`per_process_bytes`")


def test_an_unknown_word_is_wrong_use_with_what_could_be_meant() -> None:
    with pytest.raises(UsageError, match="did you mean private_bytes"):
        explain("privat_bytes")
    with pytest.raises(UsageError, match="lists all"):
        explain("\x1b[31m" * 100)


def test_rows_of_a_ledger_have_no_column_without_meaning() -> None:
    plain = {"owner", "section", "symbol", "name", "is_writable", "bytes", "kind", "shared_bytes"}
    assert set(Row._fields) - plain - set(known_words()) == set()


def test_no_mark_of_the_pages_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for rule in rule_names():
        assert main(["explain", rule]) == 0
        assert "`" not in capsys.readouterr().out, rule
