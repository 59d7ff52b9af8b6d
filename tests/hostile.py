"""List names that files, symbols and sections may have, each of which means something in some output format."""

from typing import Final

from footprint.model.finding import Confidence, Finding, SourceLocation

HOSTILE: Final = {
    "the end of a script": "</script><img src=x onerror=alert(1)>",
    "a workflow command": "::error::x",
    "an older workflow command": "##[error]x",
    "a command of Azure Pipelines": "##vso[task.setvariable variable=x]y",
    "a command of TeamCity": "##teamcity[buildStatus status='SUCCESS']",
    "an escaped workflow command": "%0A::error::y",
    "quotes": "a\"b'c",
    "line breaks": "a\nb\r\nc\x0bd\x85e\u2028f",
    "a workflow command on its own line": "a\n::error::y",
    "another direction": "a\u202eb\u2066c\u200fd",
    "an escape code": "\x1b[31mred\x1b]0;title\x07",
    "NUL": "a\0b",
    "a formula": "=cmd|' /C calc'!A0",
    "a formula with a plus": "+1+cmd|' /C calc'!A0",
    "a formula with a minus": "-1+1",
    "a formula with an at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "a formula behind a tab": "\t=1",
    "a formula behind a line end": "\r=1",
    "the end of CDATA": "a]]>b",
    "the end of a comment": "a-->b--!>c",
    "a pipe": "a|b",
    "backticks": "`a` ``` b",
    "a link": "[click](https://evil.example/)",
    "a picture": "![x](https://evil.example/x.png)",
    "a bare link": "https://evil.example www.evil.example",
    "a mention": "@everyone #1 GH-1",
    "a heading": "# a",
    "a list": "- a",
    "a numbered list": "1. a",
    "an entity": "&lt;b&gt; &amp;",
    "separators": "a;b 12",
    "a backslash": "a\\",
    "a backslash before a quote": 'a\\"b',
    "braces": '{0} {label="x"} 1',
    "bytes that are not UTF-8": "a\udcff\udc80b",
    "a single surrogate": "a\ud800b",
    "no character": "a\ufffeb\uffffc",
    "a very long name": "x" * 10_240,
    "a very long name of line breaks": "\n" * 10_240,
    "nothing": "",
    "spaces": "   ",
}


def finding(
    subject: str,
    *,
    rule: str = "large-static",
    saving_bytes: int = 4096,
    confidence: Confidence = Confidence.HIGH,
    location: SourceLocation | None = None,
) -> Finding:
    """Make a finding that says its subject everywhere."""
    return Finding(
        rule, "buffer", subject, f"{subject} takes 4 KiB", saving_bytes, confidence, (subject,), subject, (), location
    )
