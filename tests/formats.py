"""Ask the command for a report, and read it as the format that it is in."""

import csv
import gzip
import json
from collections.abc import Sequence

import junitparser
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from footprint.cli import main

EVERY = {"text", "json", "markdown", "csv", "tsv"}
ISSUES = {"sarif", "junit", "github", "gitlab"}
FIGURES = {"openmetrics", "gitlab-metrics"}
STACKS = {"folded", "speedscope", "pprof"}
PAGE = {"html"}

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
    if format_ in {"json", "sarif", "gitlab", "speedscope"}:
        json.loads(text)
    elif format_ == "junit":
        assert list(junitparser.JUnitXml.fromstring(data))
    elif format_ in {"openmetrics", "gitlab-metrics"}:
        assert list(text_string_to_metric_families(text))
    elif format_ == "csv":
        assert len({len(row) for row in csv.reader(text.splitlines(), strict=True)}) == 1
    elif format_ == "tsv":
        assert len({line.count("\t") for line in text.splitlines()}) == 1
    elif format_ == "markdown":
        assert text.startswith("<!-- footprint: ")
    elif format_ == "html":
        assert text.startswith("<!doctype html>")
    elif format_ == "folded":
        assert all(line.rpartition(" ")[2].isdigit() for line in text.splitlines())


def check_every_format(captured: Captured, verb: str, words: Sequence[str], given: set[str], format_: str) -> None:
    """Ask a verb for a format: it writes it, or the error lists the formats that it gives."""
    asked = [words[0], "--format", format_, *words[1:]]
    if format_ in given:
        check_format(format_, ask(captured, *asked))
        return
    error = ask(captured, *asked, code=2).decode()
    assert error.startswith(f"footprint: `{verb}` does not write {format_}: it writes text, json, markdown, csv, tsv")
    assert set(error.strip().rpartition("it writes ")[2].split(", ")) == given
