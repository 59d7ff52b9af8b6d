"""Whatever a name is, each format holds it as one name, and its reader finds as much as was written."""

import csv as reader
import io
import json

import junitparser
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from footprint.formats.csv import csv, tsv
from footprint.formats.document import About, Heading, Table, Verdict
from footprint.formats.issues import issues_of_findings
from footprint.formats.markdown import COMMENT_BYTES, markdown
from footprint.formats.metrics import MetricFamily, MetricSample, openmetrics
from footprint.formats.reviews import github, gitlab, junit
from footprint.formats.sarif import sarif
from footprint.formats.stacks import Measure, StackFrame, Stacks, folded, pprof, speedscope
from footprint.formats.stacks import StackSample as Stack
from footprint.model.finding import SourceLocation
from tests.hostile import finding

# Any code there is, single surrogates included: names come from bytes.
NAMES = st.text(st.characters(), max_size=40) | st.text(
    "\\`*_[]<>&|~$@#:;,=+-%\"'{}\0\r\n\t\x1b\u202e./w ", max_size=40
)


def about(name: str) -> About:
    return About(name, "1.2.3", "/home", "rows")


@given(NAMES, NAMES)
def test_a_row_of_a_table_stays_one_row_of_as_many_cells(first: str, second: str) -> None:
    members = {"rows": [{"symbol": first, "size_bytes": 1, "file": second}]}
    assert [len(row) for row in reader.reader(io.StringIO(csv(members, about(first)), newline=""), strict=True)] == [
        3,
        3,
    ]
    assert [line.count("\t") for line in tsv(members, about(first)).split("\n")] == [2, 2, 0]
    table = Table(("size", first, "file"), (("1 B", first, second), ("2 B", second, first)))
    text = markdown((Heading(first), Heading(second), table, Verdict(first)), about(second))
    assert len(text.encode()) <= COMMENT_BYTES
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert sum(token.type in {"td_open", "th_open"} for token in tokens) == 9


@given(NAMES, NAMES)
def test_an_issue_stays_one_issue(name: str, file: str) -> None:
    issues = issues_of_findings([finding(name, location=SourceLocation(file, 1)), finding(file)], name, binary=file)
    assert len(json.loads(sarif(issues, about(name)))["runs"][0]["results"]) == 2
    assert len(json.loads(gitlab(issues, about(name)))) == 2
    assert len(list(junitparser.JUnitXml.fromstring(junit(issues, about(name)).encode()))) == 1
    lines = github(issues, about(name)).split("\n")
    assert [line.lstrip().startswith("::warning ") for line in lines] == [True, True, False, False]


@given(NAMES, NAMES)
def test_a_series_stays_a_series_and_a_stack_a_stack(name: str, other: str) -> None:
    families = [
        MetricFamily(
            "x", "X.", [MetricSample({"owner": name, "file": other}, 1), MetricSample({"owner": "", "file": "b"}, 2)]
        )
    ]
    (family,) = text_string_to_metric_families(openmetrics(families, about(name)))
    assert sum(sample.value for sample in family.samples) == 3
    frames = (StackFrame(name, other, other, name, 1), StackFrame("inner"))
    stacks = Stacks((Measure("live", "bytes"),), frames, (Stack((0, 1), (12,)),))
    text = folded(stacks, about(name))
    assert text.endswith(";inner 12\n")
    assert (text.count("\n"), text.count(";")) == (1, 1)
    assert len(json.loads(speedscope(stacks, about(name)))["profiles"][0]["samples"]) == 1
    assert pprof(stacks, about(name))
