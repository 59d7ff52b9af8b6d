"""Rule `own-lookups`: objects that have the loader look up names which they define themselves, through all objects.

Without `-Bsymbolic` or hidden visibility the loader must look whether another object stands in for a function. Each
such lookup asks all objects before this one. Below 5,000 of these, a start takes less than about 0.1 ms for them.
"""

from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import is_always_there, listed
from footprint.model.finding import Confidence, Finding

_LEAST_ASKED: Final = 5_000
# Of libraries with 1,000 to 10,000 functions that were built again: their tables are in the processor's cache. The
# prices of whole programs (`StartPrices`), whose tables are not, are two to three times as high.
_LOOKUP_NS: Final = 45
_ASKED_NS: Final = 5
_CXX_PREFIX: Final = "_Z"


def own_lookups(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Find the objects whose lookups of their own names ask many objects, the slowest first."""
    providers = enumerate(graph.bindings.providers)
    # An upper bound, which most programs are below.
    if max([len(places.get(number, ())) * (number + 1) for number, places in providers], default=0) < _LEAST_ASKED:
        return ()
    findings = []
    for number, cost in enumerate(graph.start_costs):
        if cost is None or not cost.own_lookup_count or number == 0 or is_always_there(graph, number):
            continue
        if (asked_count := cost.own_asked_count or 0) >= _LEAST_ASKED:
            findings.append(_finding(graph, number, cost.own_lookup_count, asked_count))
    return tuple(sorted(findings, key=lambda finding: -finding.saving_us))


RULE: Final = Rule(
    "own-lookups",
    "A library whose own names are looked up through others",
    (Fact.GRAPH,),
    own_lookups,
    rank=3,
    is_of_start=True,
)


def _finding(graph: DependencyGraph, number: int, lookup_count: int, asked_count: int) -> Finding:
    name = graph.name(number)
    symbols, answers = graph.bindings.symbols[number], graph.bindings.providers[number]
    is_cxx = any(symbols.reference_names[place].startswith(_CXX_PREFIX) for place in answers[number])
    reasons = ["a preloaded library can no longer stand in for its symbols"]
    remedy = f"build {name} with -fvisibility=hidden, and export only what others use"
    # The program has copies of variables, canonical PLT entries, or functions of the same name.
    elsewhere = {
        symbols.reference_names[place]: other
        for other in sorted(answers.keys() - {number} if not is_cxx else ())
        for place in answers[other]
        if symbols.kind(place).is_defined
    }
    if is_cxx:
        reasons.append("C++ needs one definition of a type or inline function in the process, which -Bsymbolic breaks")
    elif elsewhere:
        names, others = (
            listed(sorted(elsewhere)),
            listed([graph.name(other) for other in sorted({*elsewhere.values()})]),
        )
        reasons.append(f"{name} defines {names} and uses what {others} has instead, which must stay so")
        remedy += f", and {names}"
    else:
        remedy += "; or link it with -Wl,-Bsymbolic"
        reasons.append("in other programs the address of a function, or a variable that they copy, may differ")
    lookups = f"{name} has {lookup_count:,} lookups at start for names that it defines itself"
    return Finding(
        RULE.name,
        "cxx" if is_cxx else "c",
        name,
        f"{lookups}, which ask {asked_count:,} objects",
        0,
        Confidence.LOW if is_cxx or elsewhere else Confidence.MEDIUM,
        tuple(reasons),
        remedy,
        object=graph.objects[number].path,
        saving_us=(_LOOKUP_NS * lookup_count + _ASKED_NS * asked_count) // 1000,
    )
