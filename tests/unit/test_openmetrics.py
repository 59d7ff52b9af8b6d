"""OpenMetrics: the figures of an answer for what watches them, and for GitLab's metrics reports."""

import re
import shlex
from datetime import date

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import footprint
from footprint.formats.document import About
from footprint.formats.metrics import MetricFamily, MetricSample, audit_metrics, gitlab_metrics, openmetrics
from footprint.release.budget import check_audit
from footprint.release.budget_file import parse_budgets
from footprint.verbs.check.json import check_metrics
from footprint.verbs.diff.json import diff_metrics
from tests.hostile import HOSTILE

ABOUT = About("audit server", "1.2.3")
SLEEP = "tests/corpus/smaps-sleep.txt"
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(text: str) -> Series:
    """Read with the parser of Prometheus, which refuses series that are there twice and wrong units."""
    result: Series = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation
        assert family.unit in {"bytes", ""}
        assert family.name.endswith("_bytes") is (family.unit == "bytes")
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in result
            result[key] = sample.value
    return result


def as_gitlab_reads(text: str) -> dict[str, str]:
    """Read as GitLab does: what follows a `#` is gone, the first two words of a shell are name and value."""
    result: dict[str, str] = {}
    for line in text.splitlines():
        if words := shlex.split(re.sub("#.*$", "", line)):
            name, value = words
            assert name not in result
            result[name] = value
    return result


def test_the_figures_are_those_of_the_audit() -> None:
    audit = footprint.audit(SLEEP, count=100)
    result = read(openmetrics(audit_metrics(audit), ABOUT))
    # The `Anonymous:` of this text add up to 108 KiB, of 37 mappings.
    assert result["footprint_private_bytes", (("evidence", "measured"), ("target", SLEEP))] == 108 * 1024
    assert result["footprint_mappings", (("target", SLEEP),)] == 37
    assert sum(value for (name, _), value in result.items() if name == "footprint_owner_private_bytes") == 108 * 1024
    projected = [value for (name, _), value in result.items() if name == "footprint_projected_bytes"]
    assert projected == [audit.projection.total_bytes]
    # What the text does not tell is no series.
    assert not any(name == "footprint_kernel_bytes" for name, _ in result)


def test_a_diff_tells_the_new_figures_and_the_changes() -> None:
    found = read(openmetrics(diff_metrics(footprint.diff(SLEEP, "tests/corpus/smaps-python3.txt")), ABOUT))
    change = found["footprint_change_bytes", (("figure", "private"),)]
    new = footprint.audit("tests/corpus/smaps-python3.txt").totals.private.bytes
    assert new is not None
    assert change == new - 108 * 1024


def test_a_check_tells_what_is_used_of_each_budget() -> None:
    toml = {"budgets": {"private_bytes": "64 KiB", "mapping_count": 1000}}
    checked = check_audit(footprint.audit(SLEEP), parse_budgets(toml, "t.toml"), None, date(2027, 1, 1))
    found = read(openmetrics(check_metrics(checked), ABOUT))
    key = (("budget", "private_bytes"), ("limit", "absolute"))
    assert found["footprint_budget_used_bytes", key] == 108 * 1024
    assert found["footprint_budget_limit_bytes", key] == 64 * 1024
    assert found["footprint_budget_count_limit", (("budget", "mapping_count"), ("limit", "absolute"))] == 1000
    assert found["footprint_budgets_exceeded", ()] == 1


def test_the_text_has_units_meanings_and_an_end() -> None:
    text = openmetrics([MetricFamily("heap", 'What "is" \\ there.', [MetricSample({"a": 'b"c\\d'}, 4096)])], ABOUT)
    assert text == (
        "# TYPE footprint_heap_bytes gauge\n"
        "# UNIT footprint_heap_bytes bytes\n"
        '# HELP footprint_heap_bytes What \\"is\\" \\\\ there.\n'
        'footprint_heap_bytes{a="b\\"c\\\\d"} 4096\n'
        "# EOF\n"
    )


def test_names_that_are_alike_when_escaped_are_one_series() -> None:
    names = ["a\x1b", "a\\x1b"]
    text = openmetrics([MetricFamily("x", "X.", [MetricSample({"n": name}, 1) for name in names])], ABOUT)
    assert list(read(text).values()) == [2]


def test_gitlab_compares_names_that_stay_the_same_from_run_to_run() -> None:
    audit = footprint.audit(SLEEP)
    found = as_gitlab_reads(gitlab_metrics(audit_metrics(audit), ABOUT))
    assert found["footprint_private_bytes"] == str(108 * 1024)
    assert found["footprint_owner_private_bytes{owner=[stack],kind=stack}"] == "12288"


def test_gitlab_is_told_the_largest_twenty_of_a_family() -> None:
    family = MetricFamily("x", "X.", [MetricSample({"n": str(number)}, 100 - number) for number in range(50)])
    assert len(as_gitlab_reads(gitlab_metrics([family], ABOUT))) == 20


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_any_name_comes_out_as_one_label(name: str) -> None:
    families = [
        MetricFamily(
            "x",
            "X.",
            [MetricSample({"owner": name, "kind": "data"}, 1), MetricSample({"owner": "b", "kind": "data"}, 2)],
        )
    ]
    text = openmetrics(families, ABOUT)
    assert text.replace("\n", "").isprintable()
    assert len(text.splitlines()) == 6
    (first, second) = read(text)
    assert dict(first[1])["owner"].isprintable()
    assert dict(second[1])["owner"] == "b"
    for_gitlab = gitlab_metrics(families, ABOUT)
    assert list(as_gitlab_reads(for_gitlab).values()) == ["1", "2"]
    assert len(read(for_gitlab)) == 2
