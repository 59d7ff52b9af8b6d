"""What grew, for reviewers: a library at the program that needs it, a variable at its line, nothing of the system."""

import json
from dataclasses import replace

from footprint.formats.document import About
from footprint.formats.issues import Level, growth_issues, issues_of_findings
from footprint.formats.reviews import github
from footprint.formats.sarif import sarif
from footprint.model.costs import Need, ObjectCost
from footprint.model.finding import Confidence, Finding, SourceLocation
from footprint.model.row import MemoryKind
from footprint.release.compare import Comparison, compare
from tests.ledgers import audit_of, ledger_row

KIB = 1024
ABOUT = About("diff", "1.0", "/src")


def comparison() -> Comparison:
    program, library = "/src/agentd", "/usr/lib/libcurl.so.4"
    objects = (
        ObjectCost(program, "agentd", KIB, KIB, None, 0, (Need(library, 1),)),
        ObjectCost(library, "libcurl.so.4", 3 * KIB, 3 * KIB, None, 0, ()),
    )
    table = ledger_row(program, 2 * KIB, kind=MemoryKind.BSS, section=".bss", symbol="table")
    small = ledger_row(program, 8, kind=MemoryKind.BSS, section=".bss", symbol="small")
    new = audit_of(table, small._replace(bytes=1031, mapped_bytes=1031), ledger_row(library, 3 * KIB))
    found = compare(audit_of(small), replace(new, objects=objects))
    at = SourceLocation("/src/cache.cpp", 6)
    return found._replace(changes=tuple(change._replace(location=at) for change in found.changes))


def test_a_variable_that_grew_by_less_than_1_kib_is_no_culprit() -> None:
    # `small` grew from 8 to 1,031 bytes: by 1,023.
    assert [grown_variable.symbol for grown_variable in comparison().grown_variables] == ["table"]


def test_what_grew_is_told_at_its_place() -> None:
    grown = list(growth_issues(comparison(), Level.NOTE))
    assert [(one.rule, one.subject, one.location, one.binary) for one in grown] == [
        ("new-library", "libcurl.so.4", None, "/src/agentd"),
        ("grown-variable", "table", ("/src/cache.cpp", 6), "/src/agentd"),
    ]
    assert grown[0].message == (
        "Came with libcurl.so.4, which agentd now needs: 1 library. It adds 3 KiB of private memory to each process."
    )
    assert not any(one.fails for one in grown)
    text = github(issues_of_findings((), "agentd", others=grown), ABOUT)
    assert "::notice file=cache.cpp,line=6,title=A variable is new or grew%3A table::" in text


def test_the_lines_of_copies_are_listed_where_nothing_tells_which_of_them_grew() -> None:
    result = comparison()
    lines = tuple(SourceLocation(f"{name}.c", 3) for name in "abcde")
    changes = tuple(change._replace(location=None, possible_locations=lines[:2]) for change in result.changes)
    issue = list(growth_issues(result._replace(changes=changes), Level.NOTE))[-1]
    assert issue.location is None
    assert issue.message.endswith("Its copies are declared at a.c:3 and b.c:3.")
    changes = tuple(change._replace(possible_locations=lines) for change in changes)
    issue = list(growth_issues(result._replace(changes=changes), Level.NOTE))[-1]
    assert issue.message.endswith("Its copies are declared at a.c:3, b.c:3, c.c:3 and 2 more lines.")


def test_notes_on_system_libraries_stay_out_of_code_scanning_and_are_counted() -> None:
    def finding(path: str, confidence: Confidence) -> Finding:
        return Finding("large-static", "buffer", "pool", "pool is large", 4096, confidence, (), "", object=path)

    low, high = Confidence.LOW, Confidence.HIGH
    result = [finding("/usr/lib/libc.so.6", low), finding("/usr/lib/libc.so.6", high), finding("/src/agentd", low)]
    issues = issues_of_findings(result, "agentd", binary="/src/agentd")
    run = json.loads(sarif(issues, ABOUT))["runs"][0]
    assert [one["level"] for one in run["results"]] == ["warning", "note"]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == "1 note on system libraries left out: JSON and text have them."
    # A library that was audited itself is no library of the system.
    own = issues_of_findings(result[:1], "libc", binary="/usr/lib/libc.so.6")
    assert len(json.loads(sarif(own, ABOUT))["runs"][0]["results"]) == 1
