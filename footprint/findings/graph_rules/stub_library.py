"""Rule `stub-library`: libraries that glibc keeps empty for programs built against an older version."""

from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import in_any_program, listed
from footprint.model.finding import Confidence, Finding


def stub_libraries(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Find the empty libraries of glibc: one finding for all, since one remedy removes them."""
    stubs = [number for number in range(1, len(graph.objects)) if graph.is_stub(number)]
    users = sorted({user for number in stubs for user in graph.needing.get(number, ())})
    if not users:
        return ()
    subject = listed([graph.name(number) for number in stubs])
    # glibc 2.34 left a link for -lanl in the development files, none for the others.
    has_link = any(graph.name(number).startswith("libanl.") for number in stubs)
    are = "is" if len(stubs) == 1 else "are"
    return (
        in_any_program(
            graph,
            Finding(
                RULE.name,
                "empty",
                subject,
                f"{subject} {are} empty since glibc 2.34; {listed([graph.name(user) for user in users])}"
                f" still need{'s' if len(users) == 1 else ''} {'it' if len(stubs) == 1 else 'them'}",
                graph.cost_bytes(stubs),
                Confidence.HIGH,
                ("libc.so.6 defines what they defined",),
                f"build {listed([graph.name(user) for user in users])} against glibc 2.34 or later"
                f"{', without -lanl' if has_link else ': nothing else is needed'}",
                tuple(graph.objects[number].path for number in stubs),
                object=graph.objects[users[0]].path if len(users) == 1 else None,
            ),
        ),
    )


RULE: Final = Rule(
    "stub-library",
    "A library that glibc keeps empty for programs built against an older version",
    (Fact.GRAPH,),
    stub_libraries,
)
