"""Rule `empty-search-path`: folders of an RPATH or RUNPATH in which the loader finds nothing.

It tries each library that the object needs there, and in the subfolders for the processor, before it asks its cache.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import in_any_program, listed
from footprint.loader.configuration import directories
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
    lists: dict[tuple[FoundBy, int], tuple[str, ...]] = {}
    searched: Counter[tuple[str, FoundBy, int | None]] = Counter()
    useful = set()
    for search in graph.link_map.searches:
        for rule, folders, owner in search.lists:
            hits = (folder for folder in folders for part in parts if search.path == f"{folder}{part}{search.name}")
            hit = next(hits, None)
            if owner is not None:
                lists[rule, owner] = folders
            searched.update(
                (folder, rule, owner) for folder in (folders if hit is None else folders[: folders.index(hit) + 1])
            )
            if hit is not None:
                useful.add((hit, rule, owner))
                break
    useful.update(_folders_of_needs(graph, lists, parts))
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
            owners = {place: lists[place] for place in empty}
            findings.append(in_any_program(graph, _finding(graph, folder, owners, failed_count)))
    return tuple(findings)


RULE: Final = Rule(
    "empty-search-path",
    "A folder of an RPATH or RUNPATH without a library",
    (Fact.GRAPH,),
    empty_search_path,
    rank=4,
    is_of_start=True,
)


def _folders_of_needs(
    graph: DependencyGraph, lists: Iterable[tuple[FoundBy, int]], parts: Sequence[str]
) -> Iterator[tuple[str, FoundBy, int]]:
    """Return the folders with the libraries that search paths are for.

    What another object brought in first is not searched for, but is found there where its user is loaded alone.
    """
    for rule, owner in lists:
        users = graph.objects if rule is FoundBy.RPATH else (graph.objects[owner],)
        places = {needed.place for user in users for needed in user.dependencies if needed.place is not None}
        folders = {f"{graph.objects[place].path.rpartition('/')[0]}/" for place in places}
        yield from ((folder.removesuffix(part), rule, owner) for folder in folders for part in parts)


def _failed_count(graph: DependencyGraph, folder: str, search_count: int, *, is_shared: bool) -> int:
    """Count the failed opens in a folder that end where those who find nothing in it name it no more."""
    if is_shared:  # others go on trying once what does not exist
        return search_count * len(graph.link_map.folders.get(folder, ()))
    opens = [failed for cost in graph.start_costs if cost for failed in cost.failed_opens]
    places = {folder, *(o.folder for o in opens if o.is_for_processor and o.folder.startswith(folder))}
    return sum([failed.file_count for failed in opens if failed.folder in places])


def _finding(
    graph: DependencyGraph, folder: str, owners: dict[tuple[FoundBy, int], tuple[str, ...]], failed_count: int
) -> Finding:
    (rule, owner), numbers = next(iter(owners)), sorted({number for _, number in owners})
    names = listed([graph.name(number) for number in numbers])
    entries = sorted({_entry(graph, folder, folders, *place) for place, folders in owners.items()})
    shown = " or ".join([entry or "the empty entry" for entry in entries])
    if folder and entries != [folder]:
        shown += f" ({folder})"
    reasons = ["none of the libraries that were searched there was found there"]
    # An RPATH is searched for what the libraries of its owner open, too; a RUNPATH for what the owner opens.
    if graph.dlopen_callers and any(
        name is FoundBy.RPATH or not {0, number}.isdisjoint(graph.dlopen_callers) for name, number in owners
    ):
        reasons.append("what is opened while it runs may be searched there, too")
    if graph.link_map.folders.get(folder):
        reasons.append("the folder exists, and may have a library on another machine")
    if any("$" in entry for entry in entries):
        reasons.append("which folder it is depends on where the file is installed: it may have a library there")
    if not folder.startswith("/"):
        reasons.append("which folder it is depends on the working directory: it may have a library in another one")
    links = [linked.library.linkage for linked in graph.link_map.objects]
    if any(name is FoundBy.RUNPATH and len(folders) == 1 for (name, _), folders in owners.items()) and any(
        linkage.rpath is not None and linkage.runpath is None for linkage in links
    ):
        reasons.append("where no RUNPATH is left, the RPATH of those that load the file is searched, too")
    # patchelf turns an RPATH into a RUNPATH, and so do linkers: what the libraries need would not be found any more.
    flag, option, whose = "", "", ""
    if rpaths := sorted({number for name, number in owners if name is FoundBy.RPATH}):
        whose = "" if rpaths == numbers else f" for {listed([graph.name(number) for number in rpaths])}"
        flag, option = f" and with -Wl,--disable-new-dtags{whose}", " --force-rpath"
    return Finding(
        RULE.name,
        rule.value,
        graph.name(owner),
        f"{shown} in the {rule.value.upper()} of {names} has no library:"
        f" {counted(failed_count, 'failed open')} at each start",
        0,
        Confidence.HIGH if len(reasons) == 1 else Confidence.MEDIUM,
        tuple(reasons),
        f"link {names} without that folder in -Wl,-rpath{flag}, or take it out with"
        f" patchelf{'' if whose else option} --set-rpath{f', and{option}{whose}' if whose else ''}",
        object=graph.objects[owner].path,
        saving_us=graph.start_prices.failed_open_ns * failed_count // 1000,
    )


def _entry(graph: DependencyGraph, folder: str, folders: tuple[str, ...], rule: FoundBy, owner: int) -> str:
    """Return the entry of a list that leads to one of its folders, as the file has it."""
    linkage = graph.objects[owner].library.linkage
    text = (linkage.rpath if rule is FoundBy.RPATH else linkage.runpath) or ""
    entries = directories(text, ":", str)
    # Where entries have no value, or lead to the same folder, which of them it is is not known.
    if len(entries) != len(folders):
        return text if "$" in text else folder
    return entries[folders.index(folder)]
