"""SARIF 2.1.0: what GitHub and editors show of findings and budgets."""

import json
import zlib
from dataclasses import replace
from typing import Any, Final
from unittest import mock

import pytest
from jsonschema import Draft202012Validator
from sarif_pydantic import Sarif

from footprint.formats import sarif as module
from footprint.formats.document import About
from footprint.formats.issues import Issues, issues_of_findings
from footprint.formats.sarif import sarif
from footprint.model.finding import Finding, SourceLocation
from tests.hostile import HOSTILE, finding

ABOUT: Final = About("audit server", "1.2.3", "/home/me")


def _object(required: str, **properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def _list(items: object, **more: object) -> dict[str, object]:
    return {"type": "array", "items": items, **more}


# What the standard says of the objects that are written here, in its own words (sections 3.13 to 3.52); anything else
# in them is an error.
TEXT: Final = {"type": "string", "minLength": 1}
INDEX: Final = {"type": "integer", "minimum": 0}
MESSAGE: Final = _object("text", text=TEXT, markdown=TEXT)
LEVEL: Final = {"enum": ["none", "note", "warning", "error"]}
# RFC 3986: no other character stands in a URI reference.
URI: Final = {"type": "string", "pattern": r"^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-F]{2})+$"}
PLACE: Final = _object("uri", uri=URI, uriBaseId=TEXT, index=INDEX)
DESCRIPTOR: Final = _object(
    "id",
    id=TEXT,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    properties=_object("tags", tags=_list(TEXT, maxItems=20, uniqueItems=True)),
)
LOCATION: Final = _object(
    "logicalLocations physicalLocation",
    logicalLocations=_list(_object("name", name={"type": "string"}, fullyQualifiedName={"type": "string"}), minItems=1),
    physicalLocation=_object(
        "artifactLocation region",
        artifactLocation=PLACE,
        region=_object("startLine", startLine={"type": "integer", "minimum": 1}),
    ),
)
RESULT: Final = _object(
    "ruleId ruleIndex level message locations partialFingerprints",
    ruleId=TEXT,
    ruleIndex=INDEX,
    level=LEVEL,
    message=MESSAGE,
    locations=_list(LOCATION, minItems=1, maxItems=1),
    partialFingerprints={"type": "object", "additionalProperties": TEXT, "minProperties": 1},
    properties={"type": "object"},
    analysisTarget=PLACE,
    suppressions=_list(
        _object(
            "kind",
            kind={"enum": ["inSource", "external"]},
            status={"enum": ["accepted"]},
            justification={"type": "string"},
        )
    ),
)
NOTIFICATION: Final = _object("message", level=LEVEL, message=MESSAGE, descriptor=_object("id", id=TEXT))
RUN: Final = _object(
    "tool results columnKind",
    tool=_object(
        "driver",
        driver=_object(
            "name",
            name=TEXT,
            semanticVersion=TEXT,
            rules=_list(DESCRIPTOR, uniqueItems=True),
            notifications=_list(DESCRIPTOR),
        ),
    ),
    automationDetails=_object("id", id=TEXT),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    invocations=_list(
        _object(
            "executionSuccessful",
            executionSuccessful={"type": "boolean"},
            toolExecutionNotifications=_list(NOTIFICATION),
        )
    ),
    artifacts=_list(
        _object("location", location=PLACE, roles=_list({"enum": ["analysisTarget", "tracedFile"]}), mimeType=TEXT),
        uniqueItems=True,
    ),
    results=_list(RESULT, maxItems=25_000),
)
SCHEMA: Final = _object(
    "version runs", **{"$schema": URI, "version": {"const": "2.1.0"}, "runs": _list(RUN, minItems=1, maxItems=20)}
)
VALIDATOR: Final = Draft202012Validator(SCHEMA)


def read(text: str) -> dict[str, Any]:
    found = json.loads(text)
    VALIDATOR.validate(found)
    assert len(Sarif.model_validate(found).runs) == 1
    (run,) = found["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return dict(run)


def run_of(*findings: Finding, binary: str = "") -> dict[str, Any]:
    return read(sarif(issues_of_findings(findings, "server", binary=binary), ABOUT))


def test_a_finding_is_at_its_declaration() -> None:
    run = run_of(finding("table", location=SourceLocation("/home/me/src/a b.c", 7)))
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "src/a%20b.c", "uriBaseId": "%SRCROOT%", "index": 0},
        "region": {"startLine": 7},
    }
    assert result["level"] == "warning"
    assert result["properties"] == {"savingBytes": 4096, "confidence": "high"}


def test_a_finding_without_a_line_is_in_its_binary_and_named() -> None:
    run = run_of(finding("table"), binary="/usr/bin/server")
    (result,) = run["results"]
    (location,) = result["locations"]
    assert location["logicalLocations"] == [{"name": "table", "fullyQualifiedName": "table"}]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "file:///usr/bin/server", "index": 0}
    assert run["artifacts"] == [
        {
            "location": {"uri": "file:///usr/bin/server"},
            "roles": ["analysisTarget"],
            "mimeType": "application/octet-stream",
        }
    ]


def test_a_finding_is_in_the_object_to_build_otherwise_where_that_is_another() -> None:
    inside = replace(finding("table"), object="/usr/lib/libx.so")
    at_its_line = replace(finding("pool", location=SourceLocation("/src/pool.c", 3)), object="/usr/lib/libx.so")
    table, pool = sorted(
        run_of(inside, at_its_line, binary="/usr/bin/server")["results"], key=lambda one: "analysisTarget" in one
    )
    (location,) = table["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "file:///usr/lib/libx.so"
    # A source file may be in many binaries.
    assert pool["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///src/pool.c"
    assert pool["analysisTarget"]["uri"] == "file:///usr/lib/libx.so"


def test_each_rule_and_each_file_is_told_once_and_the_rules_have_help() -> None:
    place = SourceLocation("a.c", 1)
    run = run_of(
        finding("a", location=place), finding("b", location=place), finding("c", rule="linked-twice", location=place)
    )
    rules = run["tool"]["driver"]["rules"]
    assert sorted(rule["id"] for rule in rules) == ["large-static", "linked-twice"]
    for rule in rules:
        for word in ("**What it is.**", "**Why it costs.**", "**Remedy.**"):
            assert word in rule["help"]["markdown"]
    assert len(run["artifacts"]) == 1


def test_an_alert_of_github_stays_the_same_one_when_its_line_moves() -> None:
    old, new = (
        run_of(finding("table", location=SourceLocation("a.c", line)))["results"][0]["partialFingerprints"]
        for line in (7, 90)
    )
    assert old == new
    assert set(old) == {"primaryLocationLineHash", "footprint/v1"}


def test_what_a_waiver_lets_pass_is_suppressed() -> None:
    (issue,) = issues_of_findings([finding("b")], "server").issues
    issue = issue._replace(waiver="why")
    run = read(sarif(Issues("server", (issue,), (), ""), ABOUT))
    assert run["results"][0]["suppressions"] == [{"kind": "external", "status": "accepted", "justification": "why"}]


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_any_name_comes_out_as_a_text_that_shows_what_it_is(name: str) -> None:
    run = run_of(finding(name, location=SourceLocation(name or "a.c", 1)), finding(name), binary=name)
    for result in run["results"]:
        text = result["message"]["text"]
        assert text.isprintable()
        assert len(text) <= 1000
        # A link in a message is `[text](target)`: the brackets of names are escaped.
        assert "](" not in text.replace("\\]", "")
        (logical,) = result["locations"][0]["logicalLocations"]
        assert logical["name"].isprintable()
        assert len(logical["name"]) <= 1000


def test_bytes_of_a_path_that_are_not_utf_8_stay_those_bytes() -> None:
    run = run_of(finding("x", location=SourceLocation("/src/\udcff.c", 1)))
    assert run["artifacts"][0]["location"]["uri"] == "file:///src/%FF.c"


def test_of_more_results_than_github_takes_those_that_save_most_are_written() -> None:
    assert module.MOST_RESULTS == 25_000
    with mock.patch.object(module, "MOST_RESULTS", 100):
        run = run_of(*[finding("v", saving_bytes=size) for size in range(1, 103)])
    assert len(run["results"]) == 100
    assert run["results"][-1]["properties"]["savingBytes"] == 3
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == "2 of 102 results are left out: those that save least."


def test_a_file_that_is_too_large_when_compressed_loses_those_that_save_least() -> None:
    issues = issues_of_findings([finding(f"variable_{number}") for number in range(1000)], "server")
    with mock.patch.object(module, "MOST_COMPRESSED_BYTES", 20_000):
        text = sarif(issues, ABOUT)
    assert len(zlib.compress(text.encode())) <= 20_000
    results = read(text)["results"]
    assert 0 < len(results) < 1000
