"""Rule `sysv-hash`: objects whose symbols are found by a hash table without a filter, which each lookup must walk.

The table of `-Wl,--hash-style=gnu` has a Bloom filter that tells most names that an object lacks by one word. In the
one of `sysv` the loader walks a chain, and compares its names. Below 2,500 searches, a start takes about 0.1 ms less.
"""

from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf import abi
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import is_always_there
from footprint.model.finding import Confidence, Finding

_LEAST_SEARCHES: Final = 2_500
# Of libraries with 50 to 1,000 functions that were built both ways: 44 to 51 ns. With 3,000 it was 107.
_SEARCH_NS: Final = 45
_LEAST_MEASURED: Final = 50


def sysv_hash(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Find the objects with a table of the older style alone that is searched often, the most often first."""
    numbers = [
        number
        for number, linked in enumerate(graph.objects)
        if linked.library.linkage.hash_style == "sysv"
        # Its linkers make no other one.
        and linked.library.kind.machine != abi.EM_MIPS
        and not is_always_there(graph, number)
    ]
    counts = [(cost.searched_count or 0, number) for number in numbers if (cost := graph.start_costs[number])]
    return tuple([_finding(graph, *item) for item in sorted(counts, reverse=True) if item[0] >= _LEAST_SEARCHES])


RULE: Final = Rule(
    "sysv-hash",
    "A library whose symbols are found by a hash table without a filter",
    (Fact.GRAPH,),
    sysv_hash,
    rank=3,
    is_of_start=True,
)


def _finding(graph: DependencyGraph, count: int, number: int) -> Finding:
    name, symbol_count = graph.name(number), len(graph.bindings.symbols[number].defined)
    reasons = ["tools that read DT_HASH themselves find none any more: --hash-style=both keeps it for them"]
    if symbol_count < _LEAST_MEASURED:
        measured = f"the time is that of tables with {_LEAST_MEASURED} names or more"
        reasons.append(f"{measured}: in this one, with {symbol_count:,}, a search takes less")
    return Finding(
        RULE.name,
        "sysv",
        name,
        f"{name} has a hash table of the sysv style alone: {count:,} lookups walk it at each start",
        0,
        Confidence.MEDIUM,
        tuple(reasons),
        f"link {name} with -Wl,--hash-style=gnu",
        object=graph.objects[number].path,
        saving_us=_SEARCH_NS * count // 1000,
    )
