"""The report of `footprint libraries`: a table in load order, a tree, or the chains to one of them."""

from collections.abc import Callable, Sequence
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.errors import UsageError
from footprint.formats.document import Block, Document, Heading, Paragraph, Table, Verdict
from footprint.formats.sections.findings import finding_blocks
from footprint.formats.sections.notes import note_blocks
from footprint.formats.sections.rest import cut_at, rest_rows
from footprint.loader import FoundBy
from footprint.loader.dependencies import chains, reached
from footprint.model.finding import Confidence
from footprint.units import counted, format_bytes
from footprint.verbs.libraries.call import Libraries
from footprint.verbs.options import LibrarySort

__all__ = ("chains_document", "libraries_document", "tree_document")

_MOST_CHAINS = 20
_RULES: Final = {
    FoundBy.PROGRAM: "the program",
    FoundBy.PRELOAD: "LD_PRELOAD or /etc/ld.so.preload",
    FoundBy.INTERPRETER: "the interpreter that the program names",
    FoundBy.PATH: "the path in the need",
    FoundBy.RPATH: "RPATH",
    FoundBy.RUNPATH: "RUNPATH",
    FoundBy.ENVIRONMENT: "LD_LIBRARY_PATH",
    FoundBy.CACHE: "ld.so.cache",
    FoundBy.CONFIGURATION: "a directory of ld.so.conf",
    FoundBy.DEFAULT: "a system directory of the loader",
    FoundBy.AUDIT: "DT_AUDIT",
    FoundBy.OPENED: "dlopen, while it ran",
}
_DEEPEST = 60
_MOST_AGAIN = 4


def libraries_document(
    found: Libraries, *, sort: LibrarySort = LibrarySort.LOAD, top: int = 0, has_whole_names: bool = False
) -> Document:
    """Write what a program is made of.

    Args:
        found: What to say.
        sort: The order of the objects.
        top: How many objects to list; 0 for all.
        has_whole_names: Whether to show whole paths, and findings that save nothing.
    """
    show = _shower(found.graph, is_whole=has_whole_names)
    return _document(found, _table(found.graph, show, sort, top), has_whole_names=has_whole_names)


def tree_document(found: Libraries, *, depth: int | None = None, has_whole_names: bool = False) -> Document:
    """Write who brings whom in; `depth` levels, None for all."""
    show = _shower(found.graph, is_whole=has_whole_names)
    return _document(found, _tree(found.graph, show, depth), has_whole_names=has_whole_names)


def _document(found: Libraries, table: Table, *, has_whole_names: bool) -> Document:
    blocks: list[Block] = [_heading(found), table, *_difference(found.graph)]
    blocks.extend(finding_blocks(found.findings, found.count, is_verbose=has_whole_names))
    blocks.extend(note_blocks(found.notes, found.target))
    return (*blocks, Verdict(_verdict(found)))


def chains_document(found: Libraries, library: str) -> Document:
    """Write the chains of objects that lead to a library, and how many of its symbols each last object uses.

    Raises:
        UsageError: If it is none of the objects.
    """
    graph = found.graph
    numbers = [
        number
        for number, linked in enumerate(graph.objects)
        if library in {linked.path, linked.path.rsplit("/", 1)[-1], graph.name(number)}
    ] or [n for n in range(len(graph.objects)) if graph.name(n).startswith(f"{library}.so")]
    if not numbers:
        raise UsageError(f"{library} is none of the {len(graph.objects)} objects of {found.target}")
    number = numbers[0]
    show = _shower(graph, is_whole=False)
    found_chains = chains(graph.needed, graph.roots, number, _MOST_CHAINS + 1)
    rows = tuple((_used(graph, chain), " -> ".join(map(show, chain))) for chain in found_chains[:_MOST_CHAINS])
    footer = (("", "[more chains]"),) if len(found_chains) > _MOST_CHAINS else ()
    members = dict.fromkeys(one for chain in found_chains[:_MOST_CHAINS] for one in chain)
    places = tuple((graph.objects[one].path, _found_by(graph, one)) for one in members)
    retained = graph.retained[number]
    gone = "nothing else" if len(retained) == 1 else f"{len(retained) - 1} more"
    verdict = f"{show(number)} costs {_size(graph.cost_bytes(frozenset({number})))} a process"
    verdict += f"; with it {gone} would leave: {_size(graph.cost_bytes(retained))} in all"
    verdict += f" ({graph.evidence.value})."
    heading = Heading(f"{found.target}: why {show(number)} is there")
    chains_table = Table(("symbols", "chain"), rows, frozenset(), footer)
    how = Table(("object", "found by"), places, frozenset({0, 1}))
    return heading, chains_table, Heading("How each file was found"), how, Verdict(verdict)


def _found_by(graph: DependencyGraph, number: int) -> str:
    linked = graph.objects[number]
    owner = linked.directory_owner
    return _RULES[linked.found_by] + (f" of {graph.name(owner)}" if owner is not None else "")


def _used(graph: DependencyGraph, chain: tuple[int, ...]) -> str:
    """Count the symbols of the last object of a chain that the object before it uses."""
    if len(chain) < 2:
        return "-"
    return str(len(graph.answerers(chain[-2]).get(chain[-1], ())) or "none")


def _heading(found: Libraries) -> Heading:
    graph = found.graph
    name = f"pid {found.pid}: {graph.name(0)}" if found.pid is not None else found.target
    count = len(graph.objects)
    is_static = graph.objects[0].library.linkage.interpreter is None and graph.objects[0].library.is_program
    libc = "statically linked" if is_static else graph.link_map.libc.value
    cost = format_bytes(graph.cost_bytes(range(count)))
    sure_bytes, doubtful_bytes = _spared(found)
    spared = f", {format_bytes(sure_bytes)} of it could go" if sure_bytes else ""
    if doubtful_bytes and not sure_bytes:
        spared = f", {format_bytes(doubtful_bytes)} of it may go"
    threads = f" and {format_bytes(size_bytes)} for threads" if (size_bytes := graph.thread_local_bytes) else ""
    return Heading(f"{name}: {counted(count, 'object')}, {libc}; {cost} a process{threads}{spared}")


def _spared(found: Libraries) -> tuple[int, int]:
    """Add up what a process saves without the libraries that nobody uses: surely enough, and with low confidence."""
    free = [one for one in found.findings if one.rule in {"unused-library", "stub-library"}]
    return (
        sum(one.saving_bytes for one in free if one.confidence.is_counted),
        sum(one.saving_bytes for one in free if one.confidence is Confidence.LOW),
    )


def _table(graph: DependencyGraph, show: Callable[[int], str], sort: LibrarySort, top: int) -> Table:
    columns = (*_cost_columns(graph), "users", "symbols", "object")
    shown, rest = cut_at(_sorted(graph, sort), top)
    rows = tuple((*_figures(graph, number), _label(graph, number, show)) for number in shown)
    return Table(columns, rows, frozenset(), (*rest_rows(len(rest), len(columns)), _total(graph)))


def _sorted(graph: DependencyGraph, sort: LibrarySort) -> Sequence[int]:
    """Return the objects in an order; those that are equal in it stay in load order."""
    numbers = range(len(graph.objects))
    match sort:
        case LibrarySort.LOAD:
            return numbers
        case LibrarySort.NAME:
            return sorted(numbers, key=graph.name)
        case LibrarySort.RETAINED:
            return sorted(numbers, key=lambda number: 0 if number in graph.roots else -graph.retained_bytes[number])
        case LibrarySort.USERS:
            return sorted(numbers, key=lambda number: -len(graph.bindings.users(number)))
        case LibrarySort.FLOOR:
            known = [one.startup_min_bytes if one else 0 for one in graph.predictions]
            return sorted(numbers, key=lambda number: -known[number])


def _cost_columns(graph: DependencyGraph) -> tuple[str, ...]:
    measured = () if graph.private_bytes is None else ("private", "beyond")
    threads = ("in threads",) if graph.thread_local_bytes else ()
    return ("startup min", *measured, *threads, "mapped", "retained")


def _figures(graph: DependencyGraph, number: int) -> tuple[str, ...]:
    prediction = graph.predictions[number]
    private: tuple[str, ...] = ()
    if graph.private_bytes is not None:
        held_bytes = graph.private_bytes[number]
        private = (_size(held_bytes), _size(max(0, held_bytes - (prediction.startup_min_bytes if prediction else 0))))
    is_root = number in graph.roots
    has_threads = graph.thread_local_bytes > 0
    return (
        _size(prediction.startup_min_bytes) if prediction else "?",
        *private,
        *([_size(graph.thread_bytes((number,)) * graph.thread_count)] if has_threads else []),
        _size(prediction.mapped_bytes) if prediction else "?",
        "" if is_root else _size(graph.retained_bytes[number]),
        str(len(graph.bindings.users(number)) or "-"),
        str(graph.used_count(number) or "-"),
    )


def _total(graph: DependencyGraph) -> tuple[str, ...]:
    known = [one for one in graph.predictions if one]
    private = () if graph.private_bytes is None else (_size(sum(graph.private_bytes)), "")
    startup_min = _size(sum(one.startup_min_bytes for one in known))
    threads = (_size(size_bytes),) if (size_bytes := graph.thread_local_bytes) else ()
    return (startup_min, *private, *threads, _size(sum(one.mapped_bytes for one in known)), "", "", "", "[total]")


def _size(size_bytes: int) -> str:
    return format_bytes(size_bytes) if size_bytes else "-"


def _label(graph: DependencyGraph, number: int, show: Callable[[int], str]) -> str:
    found_by, mark = graph.objects[number].found_by, ""
    if found_by is FoundBy.PRELOAD:
        mark = "  [preloaded]"
    elif found_by is FoundBy.OPENED:
        mark = "  [opened while running]"
    elif found_by is FoundBy.AUDIT:
        mark = "  [watches the loader]"
    elif number == len(graph.link_map.objects):
        mark = "  [the loader]"
    elif number not in graph.roots and not graph.bindings.users(number):
        mark = "  [unused]"
    return f"{show(number)}{mark}"


def _tree(graph: DependencyGraph, show: Callable[[int], str], depth: int | None) -> Table:
    """List each object below the one that needs it first; in brackets what else that one needs."""
    rows: list[tuple[str, ...]] = []
    shown = set(graph.roots)
    waiting: list[tuple[int, int | None, int]] = [(number, None, 0) for number in reversed(graph.roots)]
    while waiting:
        number, user, level = waiting.pop()
        used = "" if user is None else str(len(graph.answerers(user).get(number, ())) or "-")
        new = [one for one in graph.needed[number] if one not in shown]
        if depth is not None and level >= depth:
            below = reached(graph.needed, new) - shown
            shown |= below
            mark = f"  [{counted(len(below), 'object')} below]" if below else ""
        else:
            again = [show(one) for one in graph.needed[number] if one in shown]
            more = f" and {len(again) - _MOST_AGAIN} more" if len(again) > _MOST_AGAIN else ""
            mark = f"  [and {', '.join(again[:_MOST_AGAIN])}{more}]" if again else ""
            shown |= set(new)
            waiting.extend((provider, number, level + 1) for provider in reversed(new))
        indent = "  " * min(level, _DEEPEST)
        rows.append((*_figures(graph, number)[:-2], used, f"{indent}{show(number)}{mark}"))
    return Table((*_cost_columns(graph), "symbols", "object"), tuple(rows))


def _difference(graph: DependencyGraph) -> list[Block]:
    """Write what a live process has beyond what its loader surely wrote, and who wrote it."""
    if graph.private_bytes is None:
        return []
    startup_mins = [one.startup_min_bytes if one else 0 for one in graph.predictions]
    beyond = {n: held - startup_mins[n] for n, held in enumerate(graph.private_bytes) if held > startup_mins[n]}
    less_bytes = sum(startup_mins[n] - held for n, held in enumerate(graph.private_bytes) if held < startup_mins[n])
    text = f"beyond: pages written after the loader was done, {format_bytes(sum(beyond.values()))}"
    constructed = [number for number in beyond if graph.constructor_count(number)]
    if constructed:
        size = format_bytes(sum(beyond[number] for number in constructed))
        text += f"; {size} of it in objects with constructors of their own, which may have written them"
    if beyond.keys() - set(constructed):
        size = format_bytes(sum(size for number, size in beyond.items() if number not in constructed))
        text += f"; {size} by the program while it ran"
    if less_bytes:
        text += f". {format_bytes(less_bytes)} less than predicted elsewhere: pages shared with a parent"
    return [Paragraph(text)]


def _shower(graph: DependencyGraph, *, is_whole: bool) -> Callable[[int], str]:
    return (lambda number: graph.objects[number].path) if is_whole else graph.name


def _verdict(found: Libraries) -> str:
    graph = found.graph
    everything = frozenset(range(len(graph.objects)))
    cost = f"{format_bytes(graph.cost_bytes(everything))} private memory a process ({graph.evidence.value})"
    if thread_local_bytes := graph.thread_local_bytes:
        cost += f" and {format_bytes(thread_local_bytes)} of thread-local variables"
    count = len(graph.objects)
    whole = f"The {count} objects take {cost}" if count > 1 else f"It takes {cost}"
    if missing := graph.link_map.missing:
        are = "is" if len(missing) == 1 else "are"
        return f"{whole}; {counted(len(missing), 'needed library')} {are} missing, so that is not all."
    many = f" in {found.count:,} processes" if found.count > 1 else ""
    sure_bytes, doubtful_bytes = (size_bytes * found.count for size_bytes in _spared(found))
    if sure_bytes:
        low = f", {format_bytes(doubtful_bytes)} more with low confidence" if doubtful_bytes else ""
        return f"{whole}; {format_bytes(sure_bytes)}{many} of it could be spared{low}."
    if doubtful_bytes:
        return f"{whole}; {format_bytes(doubtful_bytes)}{many} of it could be spared, with low confidence."
    return f"{whole}; no library can be dropped as it is."
