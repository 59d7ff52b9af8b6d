"""Rule `underlinked`: objects that use a library without needing it by name.

They work as long as another object brings the library in, and no longer when that one drops it. So whoever drops what
is needed for nothing must know of them. The C library and the loader are left out: no process is without them.
So is what a module uses of the library that opened it: a module of Python that needs libpython gets a second one where
the interpreter has its own built in.
"""

from collections.abc import Iterable
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf.dynsym import SymbolReference
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import is_always_there, link_option, listed
from footprint.loader.map_entry import FoundBy
from footprint.model.finding import Confidence, Finding


def underlinked(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Find the objects that use a library which they do not need by name, in load order."""
    findings = []
    for user, providers in enumerate(graph.bindings.providers):
        if is_always_there(graph, user):
            continue
        for provider in sorted(providers):
            if provider in {0, user} or is_always_there(graph, provider) or _is_needed(graph, user, provider):
                continue
            if _may_have_opened(graph, provider, user):
                continue
            missed = [r for r in graph.bindings.references(user, provider) if _is_hard(graph, r, provider)]
            if missed:
                findings.append(_finding(graph, user, provider, missed))
    return tuple(findings)


RULE: Final = Rule(
    "underlinked", "An object that uses a library without needing it by name", (Fact.GRAPH,), underlinked, rank=2
)


def _is_needed(graph: DependencyGraph, user: int, provider: int) -> bool:
    """Return whether an object needs another by name, or needs an object that the other is a filtee of."""
    needed = {user, *graph.needed[user]}
    return provider in needed or any(provider in graph.filtees[number] for number in needed)


def _may_have_opened(graph: DependencyGraph, provider: int, user: int) -> bool:
    """Return whether an object that was opened while the program ran may have been opened by another, loaded before."""
    is_opened = graph.objects[user].found_by is FoundBy.OPENED
    return is_opened and provider < user and provider in graph.dlopen_callers and provider in graph.dlsym_callers


def _is_hard(graph: DependencyGraph, reference: SymbolReference, provider: int) -> bool:
    return not reference.is_weak and not graph.bindings.has_other(reference, frozenset({provider}))


def _finding(graph: DependencyGraph, user: int, provider: int, missed: Iterable[SymbolReference]) -> Finding:
    name, library = graph.name(user), graph.name(provider)
    symbols = listed(list(dict.fromkeys(reference.name for reference in missed)))
    bringers = [graph.name(number) for number, needed in enumerate(graph.needed) if provider in needed]
    where = (
        f"{listed(bringers)} need{'s' if len(bringers) == 1 else ''} it" if bringers else "it is preloaded or opened"
    )
    return Finding(
        RULE.name,
        "missing-need",
        name,
        f"{name} uses {symbols} of {library} without needing it by name",
        0,
        Confidence.HIGH,
        (f"it works because {where}",),
        f"link {name} with {link_option(graph, provider)}",
        object=graph.objects[user].path,
    )
