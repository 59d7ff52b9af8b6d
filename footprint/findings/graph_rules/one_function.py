"""Rule `one-function`: libraries of which one object uses one function: they can be opened where it is called.

Below 200 us of start, the library and what leaves with it are not worth a dlopen.
"""

from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import is_always_there
from footprint.model.finding import Confidence, Finding

_LEAST_US: Final = 200


def one_function(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Find the libraries of which others use one function, the slowest at start first."""
    findings = []
    for number in range(len(graph.bindings.symbols)):
        users = graph.bindings.users(number)
        if number in graph.roots or len(users) != 1 or graph.used_count(number) != 1 or is_always_there(graph, number):
            continue
        references = graph.bindings.references(users[0], number)
        if graph.retained_start_us[number] < _LEAST_US or not all(reference.is_call for reference in references):
            continue
        if _requesters(graph, number) == list(users):  # where another one needs it, too, it would stay
            findings.append(_finding(graph, number, users[0], references[0].name))
    return tuple(sorted(findings, key=lambda finding: -finding.saving_us))


RULE: Final = Rule("one-function", "A library of which one function is used", (Fact.GRAPH,), one_function, rank=6)


def _requesters(graph: DependencyGraph, number: int) -> list[int]:
    """Return the objects that need a library, without those that leave with it."""
    needs = [{dependency.place for dependency in linked.dependencies} for linked in graph.objects]
    return [at for at, places in enumerate(needs) if number in places and at not in graph.retained[number]]


def _finding(graph: DependencyGraph, number: int, user: int, function: str) -> Finding:
    name, retained = graph.name(number), graph.retained[number]
    return Finding(
        RULE.name,
        "call",
        name,
        f"{graph.name(user)} calls {function} of {name}, and uses nothing else of it",
        graph.saving_bytes(retained),
        Confidence.LOW,
        ("a process that calls it pays all the same", "its constructors and its names would come later"),
        f"open {name} with dlopen where {graph.name(user)} calls {function}, and drop it from the link",
        leaves=tuple([graph.objects[other].path for other in sorted(retained - {number})]),
        object_path=graph.objects[user].path,
        saving_us=graph.retained_start_us[number],
    )
