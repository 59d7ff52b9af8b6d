"""Rule `bound-at-start`: objects that have the loader look up hundreds of functions before any of them is called.

With `-z now` each call through the PLT is bound at start, also of functions that are never called. Below 500 such
calls, a start takes less than about 0.1 ms for them.
"""

from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import is_always_there
from footprint.loader.target import Libc
from footprint.model.finding import Confidence, Finding

_LEAST_CALLS: Final = 500


def bound_at_start(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Find the objects with many calls that are bound at start, the most first; musl always binds them so."""
    if graph.link_map.libc is not Libc.GLIBC:
        return ()
    numbers = [
        number
        for number, symbols in enumerate(graph.bindings.symbols)
        if len(symbols.reference_names) >= _LEAST_CALLS
        and graph.objects[number].library.linkage.binds_now
        and not is_always_there(graph, number)
    ]
    counts = [(cost.bound_now_count, number) for number in numbers if (cost := graph.start_costs[number])]
    return tuple([_finding(graph, *item) for item in sorted(counts, reverse=True) if item[0] >= _LEAST_CALLS])


RULE: Final = Rule(
    "bound-at-start",
    "An object whose calls are all bound at start",
    (Fact.GRAPH,),
    bound_at_start,
    rank=5,
    is_of_start=True,
)


def _finding(graph: DependencyGraph, count: int, number: int) -> Finding:
    name = graph.name(number)
    return Finding(
        RULE.name,
        "now",
        name,
        f"{name} is linked with -z now: {count:,} functions are looked up at each start, called or not",
        0,
        Confidence.LOW,
        (
            "how many of them a process calls is not known",
            "with -z relro it also seals the table of functions: keep it where the input is foreign",
        ),
        f"link {name} with -Wl,-z,lazy",
        object=graph.objects[number].path,
        saving_us=graph.start_prices.lookup_ns * count // 1000,
    )
