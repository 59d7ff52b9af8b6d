"""Ask the command for a report, and read it as the format that it is in."""

import csv
import gzip
import json
import re
from collections.abc import Mapping, Sequence

import junitparser
import pytest
from jsonschema import Draft202012Validator
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from sarif_pydantic import Sarif

from footprint.cli import main
from tests.formatschemas import GITLAB_SCHEMA, JUNIT_SCHEMA, SPEEDSCOPE_SCHEMA, TRACE_SCHEMA
from tests.jsonschemas import WRITTEN

EVERY = {"text", "json", "markdown", "csv", "tsv", "jsonl"}
ISSUES = {"sarif", "junit", "github", "gitlab"}
FIGURES = {"openmetrics", "gitlab-metrics"}
STACKS = {"folded", "speedscope", "pprof"}
PAGE = {"html"}
GRAPH = {"dot"}
TRACE = {"perfetto"}

_BEGINNINGS = {"markdown": "<!-- footprint: ", "html": "<!doctype html>"}
# https://graphviz.org/doc/info/lang.html
_DOT_TEXT = r'"(?:[^"\\\n]|\\.)*"'
_DOT = rf"""(?x) digraph\ {_DOT_TEXT}\ \{{ \n (?: \ \ [^"\n]*;\n )*
    (?: \ \ n\d+ (?:\ ->\ n\d+)? \ \[label={_DOT_TEXT} [^"\]\n]* \];\n )+ \}}\n"""
_SCHEMAS: dict[str, Mapping[str, object]] = {"speedscope": SPEEDSCOPE_SCHEMA, "perfetto": TRACE_SCHEMA}
_FORMS = {"dot": _DOT, "folded": r"(?:.* \d+\n)+"}
# https://docs.github.com/actions: workflow commands. A property has no raw comma or colon, a message no line break.
_PROPERTY = r"(?:(?:file|title)=[^,:]+|line=[1-9]\d*)"
_WORKFLOW_COMMAND = rf"::(?:error|warning|notice) {_PROPERTY}(?:,{_PROPERTY})*::.+"

Captured = pytest.CaptureFixture[bytes]


def ask(captured: Captured, *words: str, code: int = 0) -> bytes:
    """Run the command in this process, and return its answer, or its error where the exit code says that it failed."""
    assert main(words) == code
    out, error = captured.readouterr()
    assert bool(error) is bool(code), error
    return error if code else out


def check_format(format_: str, data: bytes) -> None:
    """Read an answer as its format; the tests of each writer look at what it means."""
    if format_ == "pprof":
        assert gzip.decompress(data)
        return
    text = data.decode()
    assert text.endswith("\n")
    if format_ in ISSUES:
        _check_issues(format_, text)
    elif format_ == "json":
        WRITTEN.validate(json.loads(text))
    elif format_ in _SCHEMAS:
        Draft202012Validator(_SCHEMAS[format_]).validate(json.loads(text))
    elif format_ in {"openmetrics", "gitlab-metrics"}:
        assert list(text_string_to_metric_families(text))
    elif format_ in {"csv", "tsv", "jsonl"}:
        _check_table(format_, text.splitlines())
    elif format_ in _BEGINNINGS:
        assert text.startswith(_BEGINNINGS[format_])
    elif format_ in _FORMS:
        assert re.fullmatch(_FORMS[format_], text)


def _check_table(format_: str, lines: Sequence[str]) -> None:
    if format_ == "csv":
        assert len({len(row) for row in csv.reader(lines, strict=True)}) == 1
    elif format_ == "tsv":
        assert len({line.count("\t") for line in lines}) == 1
    else:
        assert len({tuple(json.loads(line)) for line in lines}) <= 1


def _check_issues(format_: str, text: str) -> None:
    if format_ == "sarif":
        Sarif.model_validate_json(text)
    elif format_ == "gitlab":
        Draft202012Validator(GITLAB_SCHEMA).validate(json.loads(text))
    elif format_ == "junit":
        JUNIT_SCHEMA.validate(text)
        assert list(junitparser.JUnitXml.fromstring(text.encode()))
    else:
        # What the runner takes for a command; all else is log.
        commands = [line for line in text.splitlines() if line.lstrip().startswith("::")]
        assert all(re.fullmatch(_WORKFLOW_COMMAND, line) for line in commands), commands


def check_every_format(captured: Captured, verb: str, words: Sequence[str], given: set[str], format_: str) -> None:
    """Ask a verb for a format: it writes it, or the error lists the formats that it gives."""
    asked = [words[0], "--format", format_, *words[1:]]
    if format_ in given:
        check_format(format_, ask(captured, *asked))
        return
    error = ask(captured, *asked, code=2).decode()
    # What no audit writes is refused before the processes are looked for.
    ends = f"does not write {format_}: it writes text, json, markdown, csv, tsv"
    assert error.startswith((f"footprint: `{verb}` {ends}", f"footprint: `{words[0]}` {ends}"))
    assert set(error.strip().rpartition("it writes ")[2].split(", ")) == given
