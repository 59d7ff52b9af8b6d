"""Rule `empty-search-path`: folders of an RPATH or RUNPATH in which the loader finds nothing.

It tries each library that the object needs there, and in the subfolders for the processor, before it asks its cache.
"""

from collections import Counter
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import in_any_program, listed
from footprint.loader.map_entry import FoundBy
from footprint.loader.target import Libc
from footprint.model.finding import Confidence, Finding
from footprint.text.units import counted


def empty_search_path(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Find the folders that were searched for objects and had none of the libraries, the most searched first."""
    target = graph.link_map.target
    if target is None or target.libc is not Libc.GLIBC:
        return ()
    parts = (*target.subdirectories, "")
    searched: Counter[tuple[str, FoundBy, int | None]] = Counter()
    useful = set()
    for search in graph.link_map.searches:
        for rule, folders, owner in search.lists:
            hits = (folder for folder in folders for part in parts if search.path == f"{folder}{part}{search.name}")
            hit = next(hits, None)
            searched.update(
                (folder, rule, owner) for folder in (folders if hit is None else folders[: folders.index(hit) + 1])
            )
            if hit is not None:
                useful.add((hit, rule, owner))
                break
    # Those who name the same folder share its opens: the loader tries once what does not exist.
    counts: dict[str, dict[tuple[FoundBy, int], int]] = {}
    for (folder, rule, owner), count in searched.most_common():
        if owner is not None and (folder, rule, owner) not in useful:
            counts.setdefault(folder, {})[rule, owner] = count
    findings = []
    for folder, empty in counts.items():
        is_shared = any(at == folder and (rule, owner) not in empty for at, rule, owner in searched)
        failed_count = _failed_count(graph, folder, sum(empty.values()), is_shared=is_shared)
        if failed_count:
            findings.append(in_any_program(graph, _finding(graph, folder, list(empty), failed_count)))
    return tuple(findings)


RULE: Final = Rule(
    "empty-search-path",
    "A folder of an RPATH or RUNPATH without a library",
    (Fact.GRAPH,),
    empty_search_path,
    rank=4,
    is_of_start=True,
)


def _failed_count(graph: DependencyGraph, folder: str, search_count: int, *, is_shared: bool) -> int:
    """Count the failed opens in a folder that end where those who find nothing in it name it no more."""
    if is_shared:  # others go on trying once what does not exist
        return search_count * len(graph.link_map.folders.get(folder, ()))
    opens = [failed for cost in graph.start_costs if cost for failed in cost.failed_opens]
    places = {folder, *(o.folder for o in opens if o.is_for_processor and o.folder.startswith(folder))}
    return sum([failed.file_count for failed in opens if failed.folder in places])


def _finding(graph: DependencyGraph, folder: str, owners: list[tuple[FoundBy, int]], failed_count: int) -> Finding:
    (rule, owner), numbers = owners[0], sorted({number for _, number in owners})
    names = listed([graph.name(number) for number in numbers])
    reasons = ["none of the libraries that were searched there was found there"]
    # An RPATH is searched for what the libraries of its owner open, too; a RUNPATH for what the owner opens.
    if graph.dlopen_callers and any(
        name is FoundBy.RPATH or not {0, number}.isdisjoint(graph.dlopen_callers) for name, number in owners
    ):
        reasons.append("what is opened while it runs may be searched there, too")
    if graph.link_map.folders.get(folder):
        reasons.append("the folder exists, and may have a library on another machine")
    return Finding(
        RULE.name,
        rule.value,
        graph.name(owner),
        f"{folder} in the {rule.value.upper()} of {names} has no library:"
        f" {counted(failed_count, 'failed open')} at each start",
        0,
        Confidence.HIGH if len(reasons) == 1 else Confidence.MEDIUM,
        tuple(reasons),
        f"link {names} without that folder in -Wl,-rpath, or take it out with patchelf --set-rpath",
        object=graph.objects[owner].path,
        saving_us=graph.start_prices.failed_open_ns * failed_count // 1000,
    )
