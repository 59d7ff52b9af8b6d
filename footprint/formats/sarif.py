"""Issues as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), within the limits of GitHub."""

import json
import zlib
from typing import Final
from urllib.parse import quote

from footprint.formats.document import About
from footprint.formats.issues import Issue, Issues, relative_path, rule_text
from footprint.json.answer import Json
from footprint.text.escape import printable, shortened
from footprint.text.units import counted

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
# GitHub refuses a file with more results or more compressed bytes than this. It shows the first 5,000 results.
MOST_RESULTS: Final = 25_000
MOST_COMPRESSED_BYTES: Final = 10_000_000
# GitHub cuts longer messages.
_LONGEST_MESSAGE: Final = 1000
_LONGEST_NAME: Final = 1000
_SOURCE_ROOT: Final = "%SRCROOT%"


def sarif(issues: Issues, about: About) -> str:
    """Format issues as one run; if there are too many, the least important ones are left out with a notification."""
    project = issues.of_project
    shown = project.issues[:MOST_RESULTS]
    while True:
        text = _text(project, shown, len(issues.issues) - len(project.issues), about)
        # A text below the limit needs no compression for the check.
        if len(text) <= MOST_COMPRESSED_BYTES or len(zlib.compress(text.encode())) <= MOST_COMPRESSED_BYTES:
            return text
        shown = shown[: len(shown) // 2]


def _text(issues: Issues, shown: tuple[Issue, ...], system_count: int, about: About) -> str:
    names = list(dict.fromkeys((*(issue.rule for issue in shown), *issues.rules)))
    artifacts = _Artifacts(about.folder)
    results = [_result(item, issues.name, names, artifacts) for item in shown]
    left_out: list[tuple[str, str, str]] = []
    if rest := len(issues.issues) - len(shown):
        text = f"{rest} of {len(issues.issues)} results are left out: those that save least."
        left_out.append(("warning", "results-left-out", text))
    if system_count:
        text = f"{counted(system_count, 'note')} on system libraries left out: JSON and text have them."
        left_out.append(("note", "system-libraries-left-out", text))
    invocation: Json = {"executionSuccessful": True}
    driver: Json = {
        "name": "footprint",
        "semanticVersion": about.version,
        "rules": [_rule(name) for name in names],
    }
    if left_out:
        invocation["toolExecutionNotifications"] = [
            {"level": level, "message": {"text": text}, "descriptor": {"id": name}} for level, name, text in left_out
        ]
        driver["notifications"] = [{"id": name} for _, name, _ in left_out]
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{_plain(about.name)}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "artifacts": artifacts.all,
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(name: str) -> Json:
    rule = rule_text(name)
    return {
        "id": _plain(name),
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.what},
        "help": {"text": rule.page.replace("**", ""), "markdown": rule.page},
        "properties": {"tags": ["memory", "performance"]},
    }


def _result(issue: Issue, target: str, names: list[str], artifacts: "_Artifacts") -> Json:
    name = shortened(issue.subject, _LONGEST_NAME)
    extra: Json = {}
    message = _without_links(shortened(issue.message, _LONGEST_MESSAGE))
    # GitHub refuses a file with a result that has no place or no line; binaries and whole files have the first line.
    file = issue.location.file if issue.location is not None else issue.binary or target
    line = None if issue.location is None else issue.location.line
    location: Json = {
        "logicalLocations": [{"name": name, "fullyQualifiedName": name}],
        "physicalLocation": {
            "artifactLocation": artifacts.location(file, is_binary=issue.location is None),
            "region": {"startLine": max(1, line or 1)},
        },
    }
    if issue.location is not None and issue.confidence is not None and issue.binary not in {"", file}:
        # A source file may be compiled into several binaries.
        extra["analysisTarget"] = artifacts.location(issue.binary, is_binary=True)
    properties: Json = {"savingBytes": issue.saving_bytes}
    if issue.confidence is not None:
        properties["confidence"] = issue.confidence.value
    result: Json = {
        "ruleId": _plain(issue.rule),
        "ruleIndex": names.index(issue.rule),
        "level": issue.level.value,
        "message": {"text": message},
        "locations": [location],
        # GitHub reads only the first; without it, it computes a hash of the text of the line.
        "partialFingerprints": {"primaryLocationLineHash": issue.fingerprint, "footprint/v1": issue.fingerprint},
        "properties": properties,
    } | extra
    if issue.waiver is not None:
        justification = printable(shortened(issue.waiver, _LONGEST_MESSAGE))
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": justification}]
    return result


class _Artifacts:
    """The files of the results, each listed once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._places: dict[str, int] = {}
        self.all: list[Json] = []

    def location(self, path: str, *, is_binary: bool) -> Json:
        """Return the location of a file."""
        short = relative_path(path, self._folder)
        uri = _uri(short)
        location: Json = {"uri": uri} if short.startswith("/") else {"uri": uri, "uriBaseId": _SOURCE_ROOT}
        place = self._places.get(uri)
        if place is None:
            place = self._places[uri] = len(self.all)
            # A copy: the reference below has the index as well.
            artifact: Json = {"location": dict(location), "roles": ["analysisTarget" if is_binary else "tracedFile"]}
            if is_binary:
                artifact["mimeType"] = "application/octet-stream"
            self.all.append(artifact)
        return location | {"index": place}


def _uri(path: str) -> str:
    """Format a path as a URI; bytes that are not UTF-8 are quoted as they are."""
    data = path.encode("utf-8", "surrogateescape" if _is_path(path) else "backslashreplace")
    quoted = quote(data, safe="/-._~+=@,")
    return f"file://{quoted}" if path.startswith("/") else quoted


def _is_path(path: str) -> bool:
    return not any("\ud800" <= character <= "\udc7f" or "\udd00" <= character <= "\udfff" for character in path)


def _without_links(text: str) -> str:
    """Escape text that SARIF would read as a link, `[text](target)`."""
    return text.replace("[", "\\[").replace("]", "\\]") if "](" in text else text


def _plain(text: str) -> str:
    return printable(shortened(text, _LONGEST_NAME))
