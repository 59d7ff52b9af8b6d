"""The report of `footprint libraries`: a table in load order, a tree, or the chains to one of them."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.start_time import CALIBRATED
from footprint.errors import UsageError
from footprint.formats.answer_table import size_text, table, titled
from footprint.formats.document import Block, Document, Heading, Paragraph, Table, Verdict, note_blocks
from footprint.formats.finding_blocks import finding_blocks, first_remedy
from footprint.loader.dependencies import chains, reached
from footprint.loader.link_map import MissingLibrary
from footprint.loader.map_entry import FoundBy
from footprint.loader.target import Libc
from footprint.model.costs import processor_hours
from footprint.text.units import counted, format_bytes, format_hours
from footprint.verbs.libraries.call import Libraries, LibraryRow, ObjectOfGraph, mark_of, objects_of
from footprint.verbs.options import LibrarySort

_MOST_CHAINS = 20
_MOST_DAILY: Final = 5
_MOST_NEAR: Final = 3
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
    libraries: Libraries, *, sort: LibrarySort = LibrarySort.LOAD, top: int = 0, has_whole_names: bool = False
) -> Document:
    """Show what a program is made of.

    Args:
        libraries: What to say.
        sort: The order of the objects.
        top: How many objects to list; 0 for all.
        has_whole_names: Whether to show whole paths, and findings that save nothing.
    """
    show = _shower(libraries.graph, is_whole=has_whole_names)
    objects = _table(libraries, show, sort, top)
    below = [*_prices(libraries.graph), *_daily(libraries, show)] if libraries.has_start else ()
    return _document(libraries, objects, *below, has_whole_names=has_whole_names)


def tree_document(libraries: Libraries, *, depth: int | None = None, has_whole_names: bool = False) -> Document:
    """Show who brings whom in; `depth` levels, None for all."""
    show = _shower(libraries.graph, is_whole=has_whole_names)
    return _document(libraries, _tree(libraries.graph, show, depth), has_whole_names=has_whole_names)


def _document(libraries: Libraries, table: Table, *below: Block, has_whole_names: bool) -> Document:
    blocks: list[Block] = [_heading(libraries), table, *below, *_difference(libraries.graph)]
    programs = {libraries.graph.objects[0].path}
    blocks.extend(first_remedy(libraries.findings, programs))
    blocks.extend(finding_blocks(libraries.findings, libraries.count, programs, is_verbose=has_whole_names))
    if not libraries.has_start:
        blocks.append(Paragraph("--sort start shows the time of each at start, and what would save some of it."))
    blocks.extend(note_blocks(libraries.notes, libraries.target))
    return (*blocks, Verdict(_verdict(libraries)))


def chains_document(libraries: Libraries, library: str) -> Document:
    """Show the chains of objects that lead to a library, and how many of its symbols each last object uses.

    Raises:
        UsageError: If it is neither one of the objects nor missing.
    """
    graph = libraries.graph
    missing = [m for m in graph.link_map.missing if library in {m.name, m.name.rpartition("/")[2]}]
    if missing:
        return _missing_document(libraries, missing)
    numbers = [
        number
        for number, linked in enumerate(graph.objects)
        if library in {linked.path, linked.path.rsplit("/", 1)[-1], graph.name(number)}
    ] or [n for n in range(len(graph.objects)) if graph.name(n).startswith(f"{library}.so")]
    if not numbers:
        near = _near(graph, library)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(
            f"{library} is none of the {counted(len(graph.objects), 'object')} of {libraries.target}{hint}"
        )
    number = numbers[0]
    show = _shower(graph, is_whole=False)
    found_chains = chains(graph.needed, graph.roots, number, _MOST_CHAINS + 1)
    rows = tuple((_used(graph, chain), " -> ".join(map(show, chain))) for chain in found_chains[:_MOST_CHAINS])
    footer = _more_chains(len(found_chains), 2)
    members = dict.fromkeys(number for chain in found_chains[:_MOST_CHAINS] for number in chain)
    places = tuple((graph.objects[member].path, _found_by(graph, member)) for member in members)
    retained = graph.retained[number]
    gone = "nothing else" if len(retained) == 1 else f"{len(retained) - 1} more"
    verdict = f"{show(number)} costs {size_text(graph.cost_bytes(frozenset({number})))} a process"
    verdict += f"; with it {gone} would leave: {size_text(graph.cost_bytes(retained))} in all"
    verdict += f" ({graph.evidence.value})."
    heading = Heading(f"{libraries.target}: why {show(number)} is there")
    chains_table = Table(("symbols", "chain"), rows, frozenset(), footer)
    how = Table(("object", "found by"), places, frozenset({0, 1}))
    return heading, chains_table, Heading("How each file was found"), how, Verdict(verdict)


def _missing_document(libraries: Libraries, missing: Sequence[MissingLibrary]) -> Document:
    """Show the chains of objects that lead to who needs a missing library, and where it was searched for each."""
    graph, (first, *others) = libraries.graph, missing
    show = _shower(graph, is_whole=False)
    blocks: list[Block] = [Heading(f"{libraries.target}: why {first.name} is missing")]
    rows = [
        (" -> ".join([*map(show, chain), f"{library.name} [missing]"]),)
        for library in missing[:_MOST_CHAINS]
        for chain in chains(graph.needed, graph.roots, library.requester, _MOST_CHAINS)
    ]
    blocks.append(Table(("chain",), tuple(rows[:_MOST_CHAINS]), frozenset({0}), _more_chains(len(rows), 1)))
    target = graph.link_map.target
    last = frozenset(target.system_directories if target else ())
    has_cache = graph.link_map.libc is Libc.GLIBC and all(note.slug != "loader-cache" for note in libraries.notes)
    for library in missing[:_MOST_CHAINS]:
        places = [place for place in library.looked_in if place not in last]
        places += ["/etc/ld.so.cache"] if has_cache and library.looked_in else []
        places += [place for place in library.looked_in if place in last]
        if places:
            blocks.append(Heading(f"Where it is searched for {show(library.requester)}"))
            blocks.append(Table(("place",), tuple([(place,) for place in places]), frozenset({0})))
    more = f", and {counted(len(others), 'more object')} need{'s' if len(others) == 1 else ''} it" if others else ""
    return (*blocks, Verdict(f"{show(first.requester)} needs {first.name}{more}: {first.cause}."))


def _more_chains(count: int, column_count: int) -> tuple[tuple[str, ...], ...]:
    """Return the last row of a table of chains where there are more than it has."""
    return ((*[""] * (column_count - 1), "[more chains]"),) if count > _MOST_CHAINS else ()


def _near(graph: DependencyGraph, library: str) -> list[str]:
    """Return the names of objects, and of missing ones, that contain or resemble a name."""
    objects = map(graph.name, range(len(graph.objects)))
    names = list(dict.fromkeys([*objects, *(m.name for m in graph.link_map.missing)]))
    inside = [name for name in names if library and library in name]
    close = get_close_matches(_stem(library), map(_stem, names), _MOST_NEAR)
    return (inside or [name for name in names if _stem(name) in close])[:_MOST_NEAR]


def _stem(name: str) -> str:
    return name.removeprefix("lib").partition(".so")[0]


def _found_by(graph: DependencyGraph, number: int) -> str:
    linked = graph.objects[number]
    owner = linked.directory_owner
    return _RULES[linked.found_by] + (f" of {graph.name(owner)}" if owner is not None else "")


def _used(graph: DependencyGraph, chain: tuple[int, ...]) -> str:
    """Count the symbols of the last object of a chain that the object before it uses."""
    if len(chain) < 2:
        return "-"
    return str(len(graph.answerers(chain[-2]).get(chain[-1], ())) or "none")


def _heading(libraries: Libraries) -> Heading:
    graph = libraries.graph
    name = f"pid {libraries.pid}: {graph.name(0)}" if libraries.pid is not None else libraries.target
    count = len(graph.objects)
    is_static = graph.objects[0].library.linkage.interpreter is None and graph.objects[0].library.is_program
    libc = "statically linked" if is_static else graph.link_map.libc.value
    cost = format_bytes(graph.cost_bytes(range(count)))
    sure_bytes, doubtful_bytes = libraries.graph.spared_bytes(libraries.findings)
    spared = f", {format_bytes(sure_bytes)} unused" if sure_bytes else ""
    if doubtful_bytes and not sure_bytes:
        spared = f", {format_bytes(doubtful_bytes)} perhaps unused"
    threads = f" and {format_bytes(size_bytes)} for threads" if (size_bytes := graph.thread_local_bytes) else ""
    return Heading(f"{name}: {counted(count, 'object')}, {libc}; {cost} a process{threads}{spared}")


def _table(libraries: Libraries, show: Callable[[int], str], sort: LibrarySort, top: int) -> Table:
    graph = libraries.graph
    orders: dict[LibrarySort, Callable[[ObjectOfGraph], object]] = {
        LibrarySort.NAME: lambda row: graph.name(row.number),
        LibrarySort.RETAINED: lambda row: 0 if row.is_root else -graph.retained_bytes[row.number],
        LibrarySort.USERS: lambda row: -len(graph.bindings.users(row.number)),
        LibrarySort.START: lambda row: -graph.start_us[row.number],
        LibrarySort.FLOOR: lambda row: -row.predicted.startup_min_bytes if row.predicted else 0,
    }
    return table(
        LibraryRow,
        objects_of(graph, has_start=libraries.has_start),
        heading="object",
        label=lambda row: _label(graph, row.number, show),
        top=top,
        order=orders.get(sort),
        # Pages of thread-local variables are those of all objects together.
        totals={"thread_bytes": graph.thread_local_bytes},
    )


def _label(graph: DependencyGraph, number: int, show: Callable[[int], str]) -> str:
    mark = mark_of(graph, number)
    return f"{show(number)}  [{mark}]" if mark else show(number)


def _tree(graph: DependencyGraph, show: Callable[[int], str], depth: int | None) -> Table:
    """List each object below the one that needs it first; in brackets what else that one needs."""
    rows: list[tuple[str, ...]] = []
    objects = objects_of(graph, has_start=False)
    columns = [c for c in titled(LibraryRow, objects) if c.key not in {"users", "used_symbol_count"}]
    shown = set(graph.roots)
    waiting: list[tuple[int, int | None, int]] = [(number, None, 0) for number in reversed(graph.roots)]
    while waiting:
        number, user, level = waiting.pop()
        used = "" if user is None else str(len(graph.answerers(user).get(number, ())) or "-")
        new = [n for n in graph.needed[number] if n not in shown]
        if depth is not None and level >= depth:
            below = reached(graph.needed, new) - shown
            shown |= below
            mark = f"  [{counted(len(below), 'object')} below]" if below else ""
        else:
            again = [show(n) for n in graph.needed[number] if n in shown]
            more = f" and {len(again) - _MOST_AGAIN} more" if len(again) > _MOST_AGAIN else ""
            mark = f"  [and {', '.join(again[:_MOST_AGAIN])}{more}]" if again else ""
            shown |= set(new)
            waiting.extend((provider, number, level + 1) for provider in reversed(new))
        indent = "  " * min(level, _DEEPEST)
        rows.append((*[column.cell(objects[number]) for column in columns], used, f"{indent}{show(number)}{mark}"))
    return Table((*[column.title or "" for column in columns], "symbols", "object"), tuple(rows))


def _difference(graph: DependencyGraph) -> list[Block]:
    """Show what a live process has beyond what its loader surely wrote, and who wrote it."""
    if graph.private_bytes is None:
        return []
    startup_mins = [prediction.startup_min_bytes if prediction else 0 for prediction in graph.predictions]
    beyond = {n: size - startup_mins[n] for n, size in enumerate(graph.private_bytes) if size > startup_mins[n]}
    less_bytes = sum(startup_mins[n] - size for n, size in enumerate(graph.private_bytes) if size < startup_mins[n])
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


def _prices(graph: DependencyGraph) -> list[Block]:
    """Name the prices by which times at start are estimated, or why there are no times."""
    if not any(graph.start_us):
        cause = (
            "its loader was not measured" if graph.link_map.interpreter_object else "a static program relocates itself"
        )
        return [Paragraph(f"Times at start are not known: {cause}.")]
    prices = graph.start_prices
    if prices.origin == CALIBRATED:
        return [Paragraph(f"start us: prices {CALIBRATED} ({prices.system})")]
    unlike = "" if prices.is_compared else f", not compared with {graph.start_system}"
    return [Paragraph(f"start us: built-in prices ({prices.system}){unlike}; doctor --calibrate fits them")]


def _daily(libraries: Libraries, show: Callable[[int], str]) -> list[Block]:
    """Show what so many starts a day take, and the objects that take most of it with what leaves with them."""
    daily, graph = libraries.daily, libraries.graph
    if daily is None or daily.entry_hours is None:
        return []
    rows = [(format_hours(daily.entry_hours), "[total]")]
    numbers = sorted(set(range(len(graph.objects))) - {*graph.roots}, key=lambda n: -graph.retained_start_us[n])
    for number in numbers[:_MOST_DAILY]:
        retained = graph.retained[number]
        more = f" and {len(retained) - 1} more that leave with it" if len(retained) > 1 else ""
        hours = processor_hours(graph.retained_start_us[number], daily.start_count)
        rows.append((format_hours(hours), f"{show(number)}{more}"))
    title = f"Processor hours of {counted(daily.start_count, 'start')} a day up to its own code (estimated)"
    lacks = [Paragraph("It is more: libraries are missing or cannot be read.")] if daily.is_lower_bound else []
    return [Heading(title), Table(("hours", "object"), tuple(rows)), *lacks]


def _shower(graph: DependencyGraph, *, is_whole: bool) -> Callable[[int], str]:
    return (lambda number: graph.objects[number].path) if is_whole else graph.name


def _verdict(libraries: Libraries) -> str:
    graph = libraries.graph
    everything = frozenset(range(len(graph.objects)))
    cost = f"{format_bytes(graph.cost_bytes(everything))} private memory a process ({graph.evidence.value})"
    if any(note.slug == "go-heap-unknown" for note in libraries.notes):
        cost = f"at least {cost}"
    if thread_local_bytes := graph.thread_local_bytes:
        cost += f" and {format_bytes(thread_local_bytes)} of thread-local variables"
    count = len(graph.objects)
    whole = f"The {count} objects take {cost}" if count > 1 else f"It takes {cost}"
    if missing := graph.link_map.missing:
        are = "is" if len(missing) == 1 else "are"
        return f"{whole}; {counted(len(missing), 'needed library')} {are} missing, so that is not all."
    who = f"{libraries.count:,} processes" if libraries.count > 1 else "it"
    sure_bytes, doubtful_bytes = (size_bytes * libraries.count for size_bytes in graph.spared_bytes(libraries.findings))
    if sure_bytes:
        low = f", and {format_bytes(doubtful_bytes)} more with low confidence" if doubtful_bytes else ""
        return f"{whole}; without unused libraries {who} would save {format_bytes(sure_bytes)}{low}."
    if doubtful_bytes:
        return f"{whole}; without unused libraries {who} may save {format_bytes(doubtful_bytes)} (low confidence)."
    return f"{whole}; no library can be dropped as it is."
