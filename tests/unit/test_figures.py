"""The table of figures: each is described once, and adds up over N processes as it should."""

from pathlib import Path

import pytest

from footprint.formats.words import figure_rows
from footprint.model.figures import BUDGETED, FIGURES, AddsUp
from footprint.model.row import FIGURE_NAMES, OfWhich
from tests.ledgers import audit_of, ledger_row


@pytest.mark.parametrize("name", FIGURES)
def test_each_figure_has_a_title_and_a_meaning_of_its_own(name: str) -> None:
    figure = FIGURES[name]
    others = [one for one in FIGURES.values() if one is not figure]
    assert figure.title not in {other.title for other in others}
    assert figure.meaning not in {other.meaning for other in others}
    assert figure.sentence.endswith(".")
    assert not figure.meaning.endswith(".")


@pytest.mark.parametrize("name", FIGURES)
def test_the_name_of_a_figure_says_its_unit(name: str) -> None:
    # What is counted may stand in the plural.
    endings = {"things": ("_count", "_opens", "_faults"), "bytes": ("_bytes",), "microseconds": ("_seconds",)}
    assert name.endswith(endings[FIGURES[name].unit])


def test_what_is_paid_once_is_paid_once_by_any_number_of_processes() -> None:
    assert FIGURES["shared_once_bytes"].at_count(100, 7) == 100
    assert FIGURES["per_process_bytes"].at_count(100, 7) == 700
    assert FIGURES["library_count"].at_count(100, 7) is None


def test_every_total_and_every_part_of_one_is_in_the_table() -> None:
    assert {*FIGURE_NAMES.values(), *OfWhich._fields} <= FIGURES.keys()


def test_a_budget_limits_only_what_has_a_sum_or_a_value_of_its_own() -> None:
    assert {"per_process_bytes", "total_at_count_bytes", "mapping_count"} <= set(BUDGETED)
    assert FIGURES["total_at_count_bytes"].adds_up is AddsUp.NOT_ADDITIVE


def test_the_figures_of_totals_are_in_the_order_of_the_totals() -> None:
    totals = audit_of(ledger_row("a", 4096)).totals
    assert list(totals.figures) == list(FIGURE_NAMES.values())


def test_the_page_of_words_has_the_table_of_figures() -> None:
    page = Path(__file__).parents[2] / "docs" / "words.md"
    assert figure_rows() in page.read_text(), f"docs/words.md should have:\n{figure_rows()}"
