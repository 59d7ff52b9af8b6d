"""The report of `footprint libraries`: a table in load order, a tree, or the chains to one of them."""

from collections.abc import Callable

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.errors import UsageError
from footprint.formats.document import Block, Document, Heading, Paragraph, Table, Verdict
from footprint.formats.sections.findings import finding_blocks
from footprint.formats.sections.notes import note_blocks
from footprint.formats.sections.rest import cut_at, rest_rows
from footprint.loader import FoundBy
from footprint.loader.dependencies import chains
from footprint.model.finding import Confidence
from footprint.units import counted, format_bytes
from footprint.verbs.libraries.call import Libraries

__all__ = ("chains_document", "libraries_document")

_MOST_CHAINS = 20
_DEEPEST = 60


def libraries_document(
    found: Libraries, *, top: int = 0, is_tree: bool = False, has_whole_names: bool = False
) -> Document:
    """Write what a program is made of.

    Args:
        found: What to say.
        top: How many objects to list; 0 for all.
        is_tree: Whether to show who brings whom in, instead of the load order.
        has_whole_names: Whether to show whole paths, and findings that save nothing.
    """
    graph = found.graph
    show = _shower(graph, is_whole=has_whole_names)
    heading = _heading(found)
    table = _tree(graph, show) if is_tree else _table(graph, show, top)
    blocks: list[Block] = [heading, table, *_difference(graph)]
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
    retained = graph.retained[number]
    gone = "nothing else" if len(retained) == 1 else f"{len(retained) - 1} more"
    verdict = f"{show(number)} costs {_size(graph.cost_bytes(frozenset({number})))} a process"
    verdict += f"; with it {gone} would leave: {_size(graph.cost_bytes(retained))} in all"
    verdict += f" ({graph.evidence.value})."
    heading = Heading(f"{found.target}: why {show(number)} is there")
    return heading, Table(("symbols", "chain"), rows, frozenset(), footer), Verdict(verdict)


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
    return Heading(f"{name}: {counted(count, 'object')}, {libc}")


def _table(graph: DependencyGraph, show: Callable[[int], str], top: int) -> Table:
    columns = (*_cost_columns(graph), "users", "symbols", "object")
    shown, rest = cut_at(range(len(graph.objects)), top)
    rows = tuple((*_figures(graph, number), _label(graph, number, show)) for number in shown)
    return Table(columns, rows, frozenset(), (*rest_rows(len(rest), len(columns)), _total(graph)))


def _cost_columns(graph: DependencyGraph) -> tuple[str, ...]:
    measured = () if graph.private_bytes is None else ("private", "beyond")
    return ("startup min", *measured, "mapped", "retained")


def _figures(graph: DependencyGraph, number: int) -> tuple[str, ...]:
    prediction = graph.predictions[number]
    private: tuple[str, ...] = ()
    if graph.private_bytes is not None:
        held_bytes = graph.private_bytes[number]
        private = (_size(held_bytes), _size(max(0, held_bytes - (prediction.startup_min_bytes if prediction else 0))))
    is_root = number in graph.roots
    return (
        _size(prediction.startup_min_bytes) if prediction else "?",
        *private,
        _size(prediction.mapped_bytes) if prediction else "?",
        "" if is_root else _size(graph.retained_bytes[number]),
        str(len(graph.bindings.users(number)) or "-"),
        str(graph.used_count(number) or "-"),
    )


def _total(graph: DependencyGraph) -> tuple[str, ...]:
    known = [one for one in graph.predictions if one]
    private = () if graph.private_bytes is None else (_size(sum(graph.private_bytes)), "")
    startup_min = _size(sum(one.startup_min_bytes for one in known))
    return (startup_min, *private, _size(sum(one.mapped_bytes for one in known)), "", "", "", "[total]")


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


def _tree(graph: DependencyGraph, show: Callable[[int], str]) -> Table:
    """List each object below the one that needs it; an object that is listed above already is only named."""
    rows: list[tuple[str, ...]] = []
    shown: set[int] = set()

    def add(number: int, user: int | None, depth: int) -> None:
        indent = "  " * min(depth, _DEEPEST)
        used = "" if user is None else str(len(graph.answerers(user).get(number, ())) or "-")
        figures = _figures(graph, number)
        is_again = number in shown
        costs = ("",) * (len(figures) - 2) if is_again else figures[:-2]
        rows.append((*costs, used, f"{indent}{show(number)}{'  [above]' if is_again else ''}"))
        shown.add(number)

    stack: list[tuple[int, int | None, int]] = [(number, None, 0) for number in reversed(graph.roots)]
    while stack:
        number, user, depth = stack.pop()
        is_first = number not in shown
        if user is None and not is_first:
            continue
        add(number, user, depth)
        if is_first:
            stack.extend((provider, number, depth + 1) for provider in reversed(graph.needed[number]))
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
    count = len(graph.objects)
    whole = f"The {count} objects take {cost}" if count > 1 else f"It takes {cost}"
    if missing := graph.link_map.missing:
        are = "is" if len(missing) == 1 else "are"
        return f"{whole}; {counted(len(missing), 'needed library')} {are} missing, so that is not all."
    many = f" in {found.count:,} processes" if found.count > 1 else ""
    free = [one for one in found.findings if one.rule in {"unused-library", "stub-library"}]
    sure_bytes = sum(one.saving_bytes for one in free if one.confidence.is_counted) * found.count
    doubtful_bytes = sum(one.saving_bytes for one in free if one.confidence is Confidence.LOW) * found.count
    if sure_bytes:
        low = f", {format_bytes(doubtful_bytes)} more with low confidence" if doubtful_bytes else ""
        return f"{whole}; {format_bytes(sure_bytes)}{many} of it could be spared{low}."
    if doubtful_bytes:
        return f"{whole}; {format_bytes(doubtful_bytes)}{many} of it could be spared, with low confidence."
    return f"{whole}; no library can be dropped as it is."
