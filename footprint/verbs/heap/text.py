"""The report of `footprint heap`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

from footprint.attribution.heap_places import STARTS_AT
from footprint.attribution.heap_totals import ORDERS, FunctionTotals, counted_by, growth_of, run_totals, sorted_totals
from footprint.attribution.heap_usage import HeapUsage
from footprint.errors import Note
from footprint.formats.document import (
    Block,
    Document,
    Facts,
    Graph,
    GraphPoint,
    Heading,
    Names,
    Paragraph,
    Table,
    Verdict,
    cut_at,
    note_blocks,
    rest_rows,
    sum_row,
)
from footprint.formats.finding_blocks import finding_blocks
from footprint.formats.graph import format_time
from footprint.heap.allocators import RULES
from footprint.heap.attribution import callees, callers, stepped_over
from footprint.heap.profile import CallTree, Counted, Frame, HeapSnapshot, Profile
from footprint.members import NamedTuple
from footprint.model.finding import Finding
from footprint.model.heap_account import Share
from footprint.model.row import Evidence
from footprint.text.command_line import shown_command
from footprint.text.escape import shortened
from footprint.text.units import counted, format_bytes

OVERHEAD: Final = "[allocator overhead]"
STACKS: Final = "[stacks]"
_BESIDE: Final = ((OVERHEAD, attrgetter("extra_bytes")), (STACKS, attrgetter("stack_bytes")))
_LEAST_POINTS: Final = 3
_LONGEST_COMMAND: Final = 60
_LONGEST_UNIT: Final = 16
# Rows are many, and a name may be as long as a profile is.
_LONGEST_OWNER: Final = 200
_LONGEST_FUNCTION: Final = 120
_LONGEST_WHOLE: Final = 2000
_BLOCKS: Final = {Counted.HEAP: "blocks", Counted.PAGES: "blocks", Counted.COPIES: "copies", Counted.EVENTS: "events"}
_SHOWN_TALLIES: Final = frozenset({"allocated", "freed", "temporary", "read", "written"})
_ORDER_NAMES: Final = {
    "allocated": "the most allocated bytes first",
    "blocks": "the most blocks first",
    "temporary": "the most temporary blocks first",
    "lifetime": "the longest life of a block first",
    "read": "the most bytes read first",
    "written": "the most bytes written first",
    "leaked": "the most leaked bytes first",
}
_KNOWN: Final = {
    Evidence.VIRTUAL: "virtual: address space only",
    Evidence.ESTIMATED: "estimated by the profiler",
    Evidence.MEASURED: "measured by the profiler",
}


class HeapView(NamedTuple):
    """What is shown of heap profiles.

    Attributes:
        by: `owner`, `function`, `tree` (from the outermost function inwards), `callers` (the other way round), or
            `growth`.
        sort: The order of the totals over the run; they are also shown beside trees then.
        has_allocators: Whether to list the allocation functions and the rules by which they are.
        threshold_percent: Which calls of a tree are left out.
        top: How many rows a table has; 0 for all.
        is_whole: Whether to show whole paths, linker names, and each single call of a tree of callers.
    """

    by: str = "function"
    sort: str | None = None
    has_allocators: bool = False
    threshold_percent: float = 1.0
    top: int = 20
    is_whole: bool = False


def heap_document(
    usages: Sequence[HeapUsage],
    notes: Sequence[Note] = (),
    findings: Sequence[Finding] = (),
    view: HeapView = HeapView(),  # noqa: B008 # it does not change
) -> Document:
    """Show how much memory was in use and who asked for it; several profiles are compared.

    Args:
        usages: What each profile says of its moment.
        notes: What was odd.
        findings: What could be constant data.
        view: What is shown.
    """
    top = view.top
    names = Names({call.owner for usage in usages for call in usage.calls}, is_whole=view.is_whole)
    if len(usages) == 1:
        (usage,) = usages
        blocks = _single(usage, names, top)
        blocks += _by(usage, view, names)
        # What a profile without moments shows by function is its only total already.
        has_more = usage.snapshot is not None or len(usage.profile.tallies) > 1
        is_shown = view.sort or (view.by == "function" and has_more)
        blocks += _totals_table(usage, view.sort, names, top) if is_shown else ()
        blocks += _allocators(usage, names, top) if view.has_allocators else ()
        verdict = _verdict(usage, names)
    else:
        blocks = _several(usages, view, names)
        verdict = _difference(usages)
    of_findings = finding_blocks(findings, 1, is_verbose=view.is_whole)
    target = usages[0].file if len(usages) == 1 else ""
    return (*blocks, *of_findings, *note_blocks(notes, target), Verdict(verdict))


# --- one profile ------------------------------------------------------------------------------------------------------


def _single(usage: HeapUsage, names: Names, top: int) -> list[Block]:
    profile = usage.profile
    command = shortened(shown_command(profile.command or "").replace("\n", " "), _LONGEST_COMMAND)
    blocks: list[Block] = [Heading(f"{usage.file}: {profile.format}{f' of {command}' if command else ''}")]
    if usage.evidence is Evidence.VIRTUAL:
        text = "address space only: what was reserved and never touched is in it, so it is no memory in use"
        blocks.append(Paragraph(f"virtual: {text}"))
    blocks += _graph(profile)
    if usage.snapshot is not None:
        blocks.append(_facts(usage, usage.snapshot))
    elif usage.tally is not None and usage.tree is not None:
        blocks.append(Paragraph(f"{_tally(usage, usage.tree)} over the whole run; no moment of it is known"))
    if len(profile.snapshots) >= _LEAST_POINTS:
        trees = f"{len(profile.tree_places)} with a call tree"
        blocks += [Heading(f"{counted(len(profile.snapshots), 'snapshot')}, {trees}"), _snapshots(usage, top)]
    if usage.attribution is not None and usage.attribution.shares:
        blocks += [Heading(f"By object, {moment_name(usage)}"), _owners(usage, usage.attribution.owners, names, top)]
    elif usage.snapshot is not None and usage.snapshot.live_bytes:
        blocks.append(Paragraph("no call tree of this moment could be read: who asked for it is not known"))
    return blocks


def moment_name(usage: HeapUsage) -> str:
    """Return the name of a moment: `at the peak (snapshot 63)`."""
    if usage.snapshot is None:
        return "over the whole run"
    number = f"snapshot {usage.snapshot.number}"
    if len(usage.profile.snapshots) == 1:
        return "when it was saved"
    return f"at the peak ({number})" if usage.snapshot.is_peak else f"at {number}"


def _graph(profile: Profile) -> list[Block]:
    trees = frozenset(profile.tree_places)
    points = tuple(
        GraphPoint(snapshot.time, snapshot.used_bytes, "#" if snapshot.is_peak else "@" if place in trees else " ")
        for place, snapshot in enumerate(profile.snapshots)
        if snapshot.time is not None
    )
    if len(points) < _LEAST_POINTS or points[0].time >= points[-1].time or not any(p.size_bytes for p in points):
        return []
    legend = ["# the peak"] if any(point.mark == "#" for point in points) else []
    legend += ["@ with a call tree"] if any(point.mark == "@" for point in points) else []
    return [Graph(points, _unit(profile), ", ".join(legend))]


def _facts(usage: HeapUsage, snapshot: HeapSnapshot) -> Facts:
    when = "" if snapshot.time is None else f", at {format_time(snapshot.time, _unit(usage.profile))}"
    rows = [(moment_name(usage), format_bytes(usage.total_bytes), f"{_KNOWN[usage.evidence]}{when}")]
    peak = usage.profile.untold_peak
    if peak is not None and peak is not snapshot:
        larger = f"at the peak (snapshot {peak.number})"
        rows.insert(0, (larger, format_bytes(peak.used_bytes), "no call tree: who asked for it is not known"))
    rows.append(("  live", format_bytes(snapshot.live_bytes), ""))
    if snapshot.extra_bytes:
        rows.append(("  allocator overhead", format_bytes(snapshot.extra_bytes), ""))
    if snapshot.stack_bytes:
        rows.append(("  stacks", format_bytes(snapshot.stack_bytes), ""))
    rows += [
        (
            f"{tally.name} over the run",
            format_bytes(tally.tree.total_bytes),
            "" if tally.tree.total_blocks is None else f"in {counted(tally.tree.total_blocks, 'block')}",
        )
        for tally in usage.profile.tallies
        if tally.name in _SHOWN_TALLIES
    ]
    return Facts(tuple(rows))


def _snapshots(usage: HeapUsage, top: int) -> Table:
    """List snapshots in the order of time: the most important ones, and others evenly between them."""
    profile = usage.profile
    snapshots, trees = profile.snapshots, frozenset(profile.tree_places)
    places = _picked(usage, top)
    rows = []
    for place in places:
        snapshot = snapshots[place]
        marks = ["peak"] * snapshot.is_peak + ["tree"] * (place in trees)
        parts = (snapshot.used_bytes, snapshot.live_bytes, snapshot.extra_bytes, snapshot.stack_bytes)
        amounts = ("-" if part is None else f"{part:,}" for part in parts)
        time = "-" if snapshot.time is None else f"{snapshot.time:,}"
        rows.append((str(snapshot.number), time, *amounts, " ".join(marks)))
    left = len(snapshots) - len(places)
    footer = (("", "", "", "", "", "", f"[{left} more]"),) if left else ()
    time_heading = f"time ({_unit(profile)})" if profile.time_unit else "time"
    return Table(("n", time_heading, "total", "live", "overhead", "stacks", ""), tuple(rows), frozenset(), footer)


def _picked(usage: HeapUsage, top: int) -> list[int]:
    count = len(usage.profile.snapshots)
    if not top or count <= top:
        return list(range(count))
    wanted = [usage.profile.peak_index, count - 1, 0]
    wanted += [place for place, snapshot in enumerate(usage.profile.snapshots) if snapshot is usage.snapshot]
    picked = list(dict.fromkeys(place for place in wanted if place is not None))[:top]
    for step in range(1, top):
        if len(picked) >= top:
            break
        place = step * count // top
        if place not in picked:
            picked.append(place)
    return sorted(picked)


def _unit(profile: Profile) -> str:
    return (profile.time_unit or "")[:_LONGEST_UNIT]


def _cut(text: str, most: int) -> str:
    """Leave out the middle of a text that is too long."""
    return text if len(text) <= most else f"{text[: most // 2]}...{text[len(text) - most // 2 :]}"


def _share(part: int, usage: HeapUsage) -> str:
    return f"{part / usage.whole_bytes:.2%}" if usage.whole_bytes and part >= 0 else "-"


def _shares_table(
    usage: HeapUsage, shares: Sequence[Share], top: int, words: Mapping[str, Callable[[Share], str]]
) -> Table:
    """List what each owner or function asked for; `words` has the heading and the cell of each text column."""
    amounts = _amount_headings(usage)
    columns = (*amounts, *words)
    shown, rest = cut_at(shares, top)
    rows = tuple((*_amounts(share, usage), *(cell(share) for cell in words.values())) for share in shown)
    rest_bytes = sum(share.size_bytes for share in rest)
    footer = rest_rows(len(rest), len(columns), f"{rest_bytes:,}", _share(rest_bytes, usage))
    return Table(columns, rows, frozenset(range(len(amounts), len(columns) - 1)), footer)


def _owners(usage: HeapUsage, shares: Sequence[Share], names: Names, top: int) -> Table:
    table = _shares_table(usage, shares, top, {"object": lambda share: _owner(share.owner, names)})
    beside = [] if usage.snapshot is None else [(label, size_of(usage.snapshot)) for label, size_of in _BESIDE]
    rows = [sum_row(label, len(table.columns), f"{size:,}", _share(size, usage)) for label, size in beside if size]
    return table._replace(footer=(*table.footer, *rows))


def _amount_headings(usage: HeapUsage) -> tuple[str, ...]:
    amounts = (_unit_of(usage), "share")
    has_blocks = usage.attribution is not None and usage.attribution.total_blocks is not None
    return (*amounts, _BLOCKS[usage.profile.counted]) if has_blocks else amounts


def _amounts(share: Share, usage: HeapUsage) -> tuple[str, ...]:
    blocks = () if share.block_count is None else (f"{share.block_count:,}",)
    return (f"{share.size_bytes:,}", _share(share.size_bytes, usage), *blocks)


def _by(usage: HeapUsage, view: HeapView, names: Names) -> list[Block]:
    """List who asked for the heap: by function, or as a tree; nothing for `owner`, whose table is above."""
    attribution, tree, by, top = usage.attribution, usage.tree, view.by, view.top
    if attribution is None or tree is None or not attribution.shares or by == "owner":
        return []
    if by == "growth":
        return _growth(usage, names, top)
    if by == "function":
        title = "By function"
        table = _shares_table(
            usage,
            attribution.shares,
            top,
            {
                "object": lambda share: _owner(share.owner, names),
                "function": lambda share: _function(share.owner, share.function, names),
            },
        )
    else:
        is_raw = by == "callers" and names.is_whole
        title = "From the outermost function to who asked for it"
        shown = callees(tree, usage.calls)
        if by == "callers":
            title = "Who asked for it, and below each its callers"
            shown = tree if is_raw else callers(tree, usage.calls)
        least_bytes = view.threshold_percent / 100 * usage.total_bytes
        rows = _tree_rows(usage, shown, least_bytes, top, lambda node: _label(shown, node, names, is_raw=is_raw))
        table = Table((*_amount_headings(usage), "function"), tuple(rows))
    blocks: list[Block] = [Heading(f"{title}, {moment_name(usage)}"), table]
    if any(share.function.startswith(STARTS_AT) for share in attribution.shares[: top or None]):
        name = f"{STARTS_AT}0x...]"
        blocks.append(Paragraph(f"{name}: no symbol covers it; it starts there in the file, by the unwind tables."))
    return blocks


def _totals_table(usage: HeapUsage, sort: str | None, names: Names, top: int) -> list[Block]:
    """List what was counted over the whole run, by function."""
    totals = run_totals(usage)
    if not totals:
        return []
    orders = counted_by(totals)
    order = sort or orders[0]
    shown, rest = cut_at(sorted_totals(totals, order), top)
    rows = tuple(
        (
            *(_total_cell(total, order, usage.profile) for order in orders),
            # With a column for the object, 80 columns have no room for the function.
            f"{_function(total.owner, total.function, names)}  ({_owner(total.owner, names)})",
        )
        for total in shown
    )
    columns = (*orders, "function")
    footer = rest_rows(len(rest), len(columns))
    unit = f" (lives in {_unit(usage.profile)})" if "lifetime" in orders else ""
    return [
        Heading(f"By function over the whole run{unit}, {_ORDER_NAMES[order]}"),
        Table(columns, rows, frozenset(), footer),
    ]


def _total_cell(totals: FunctionTotals, order: str, profile: Profile) -> str:
    value = getattr(totals, ORDERS[order])
    if order == "lifetime":
        return format_time(value, _unit(profile)).removesuffix(_unit(profile)).strip()
    return f"{value:,}"


def _growth(usage: HeapUsage, names: Names, top: int) -> list[Block]:
    """List by how much each function grew from the first call tree on, and between which snapshots it grew most."""
    growth = growth_of(usage)
    shown, rest = cut_at([f for f in growth.functions if f.growth_bytes or f.step_bytes], top)
    first, last = growth.numbers[0], growth.numbers[-1]
    columns = ("grew", f"at {last}", "most in", "object", "function")
    rows = tuple(
        (
            f"{f.growth_bytes:+,}",
            f"{f.last_bytes:,}",
            f"{f.step[0]}-{f.step[1]}" if f.step_bytes > 0 else "-",
            _owner(f.owner, names),
            _function(f.owner, f.function, names),
        )
        for f in shown
    )
    rest_bytes = sum(f.growth_bytes for f in rest), sum(f.last_bytes for f in rest)
    footer = rest_rows(len(rest), len(columns), f"{rest_bytes[0]:+,}", f"{rest_bytes[1]:,}")
    trees = counted(len(growth.numbers), "call tree")
    title = f"By growth, from snapshot {first} to snapshot {last} in {trees}"
    return [Heading(title), Table(columns, rows, frozenset({2, 3}), footer)]


def _owner(owner: str, names: Names) -> str:
    return _cut(names.owner(owner), _LONGEST_OWNER)


def _function(owner: str, function: str, names: Names) -> str:
    return "" if function == owner else _cut_function(names.symbol(function), names)


def _cut_function(text: str, names: Names) -> str:
    return _cut(text, _LONGEST_WHOLE if names.is_whole else _LONGEST_FUNCTION)


def _allocators(usage: HeapUsage, names: Names, top: int) -> Iterator[Block]:
    """List the allocation functions that were stepped over; with whole names also the patterns of all rules."""
    passed = [] if usage.tree is None else stepped_over(usage.tree, usage.calls)
    rules = {share[:2]: call.rule for call, share in passed}
    if passed:
        yield Heading(f"Functions that only pass memory on, {moment_name(usage)}")
        words: dict[str, Callable[[Share], str]] = {
            "rule": lambda call: rules[call[:2]],
            "object": lambda call: _owner(call.owner, names),
            "function": lambda call: _function(call.owner, call.function, names),
        }
        shown, rest = cut_at([share for _, share in passed], top)
        columns = (*_amount_headings(usage), *words)
        rows = tuple((*_amounts(call, usage), *(cell(call) for cell in words.values())) for call in shown)
        texts = frozenset(range(len(columns) - len(words), len(columns) - 1))
        yield Table(columns, rows, texts, rest_rows(len(rest), len(columns)))
    used = {call.rule for call, _ in passed}
    unused = [rule.name for rule in RULES if rule.name not in used]
    yield Paragraph(f"These rules apply to no function here: {'; '.join(unused)}.")
    if names.is_whole:
        yield Heading("The rules by which functions only pass memory on")
        yield Table(("rule", "pattern"), tuple((rule.name, pattern) for rule in RULES for pattern in rule.patterns))


# --- trees ------------------------------------------------------------------------------------------------------------


def _label(tree: CallTree, node: int, names: Names, *, is_raw: bool) -> str:
    """Return the function of a node, and its object if its parent has another; or the frame as Valgrind writes it."""
    frame = tree.frame(node)
    if is_raw:
        return _cut_function(_raw_label(frame), names)
    function = _cut_function(names.symbol(frame.function or ""), names)
    parent = tree.parents[node]
    if frame.object == frame.function or (parent > 0 and tree.frame(parent).object == frame.object):
        return function
    return f"{function}  ({_owner(frame.object or '', names)})"


def _raw_label(frame: Frame) -> str:
    """Format a frame as Valgrind does."""
    if frame.label is not None:
        return frame.label
    where = f" ({frame.file}:{frame.line})" if frame.file else f" (in {frame.object})" if frame.object else ""
    addr = "" if frame.addr is None else f"{frame.addr:#X}: ".replace("0X", "0x")
    return f"{addr}{frame.function or '???'}{where}"


def _tree_rows(
    usage: HeapUsage, tree: CallTree, least_bytes: float, top: int, label: Callable[[int], str]
) -> Iterator[tuple[str, ...]]:
    """Return a row for each node, the largest first; those below the threshold share a row.

    A node that is all of its parent is not indented below it: most chains are long.
    """
    children: dict[int, list[int]] = {}
    for node in range(1, len(tree)):
        if tree.node_bytes[node] or (tree.node_blocks is not None and tree.node_blocks[node]):
            children.setdefault(tree.parents[node], []).append(node)

    def row(size_bytes: int, blocks: str, depth: int, text: str) -> tuple[str, ...]:
        cells = () if tree.node_blocks is None else (blocks,)
        return (f"{size_bytes:,}", _share(size_bytes, usage), *cells, "  " * depth + text)

    def rows_below(parent: int, depth: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Yield each node below a node with its depth and row; the row of the nodes that are left out has node 0."""
        below = sorted(children.get(parent, ()), key=lambda node: -tree.node_bytes[node])
        most = top if top and parent == 0 else len(below)
        shown = [node for node in below[:most] if tree.node_bytes[node] >= least_bytes]
        own_depth = depth if len(below) == 1 and parent != 0 else depth + 1
        for node in shown:
            blocks = "" if tree.node_blocks is None else f"{tree.node_blocks[node]:,}"
            yield node, own_depth, row(tree.node_bytes[node], blocks, own_depth, label(node))
        if left := len(below) - len(shown):
            size_bytes = sum(tree.node_bytes[node] for node in set(below) - set(shown))
            yield 0, depth, row(size_bytes, "", depth + 1, f"[{counted(left, 'call')} more, smaller ones]")

    waiting = [rows_below(0, -1)]
    while waiting:
        node_below = next(waiting[-1], None)
        if node_below is None:
            waiting.pop()
            continue
        node, depth, cells = node_below
        yield cells
        if node:
            waiting.append(rows_below(node, depth))


# --- several profiles -------------------------------------------------------------------------------------------------


def _several(usages: Sequence[HeapUsage], view: HeapView, names: Names) -> list[Block]:
    by, top = view.by, view.top
    totals = _totals(usages)
    rows = tuple(
        (
            str(number),
            f"{total_bytes:,}",
            f"{total_bytes - totals[0]:+,}" if number > 1 else "",
            usage.evidence.value,
            moment_name(usage),
            usage.file,
        )
        for number, (usage, total_bytes) in enumerate(zip(usages, totals, strict=True), 1)
    )
    columns = ("", "bytes", "to the first", "known", "moment", "profile")
    is_one = all(usage.profile is usages[0].profile for usage in usages)
    title = f"{len(usages)} moments of one profile" if is_one else f"{len(usages)} profiles"
    blocks: list[Block] = [Heading(title), Table(columns, rows, frozenset({3, 4}))]
    blocks += _left_out(usages)
    owners = [
        [(owner.owner, "", owner.size_bytes) for owner in (usage.attribution.owners if usage.attribution else ())]
        + [(label, "", size_bytes) for label, size_bytes in _beside(usage, usages)]
        for usage in usages
    ]
    words: dict[str, Callable[[str, str], str]] = {"object": lambda owner, _: _owner(owner, names)}
    blocks += [Heading("By object"), _beside_each_other(owners, top, words)]
    words["function"] = lambda owner, function: _function(owner, function, names)
    functions: list[list[tuple[str, str, int]]]
    if by == "function":
        functions = [
            [
                (share.owner, share.function, share.size_bytes)
                for share in (usage.attribution.shares if usage.attribution else ())
            ]
            for usage in usages
        ]
        blocks += [Heading("By function"), _beside_each_other(functions, top, words)]
    if view.sort:
        field = ORDERS[view.sort]
        functions = [
            [(row.owner, row.function, round(getattr(row, field) or 0)) for row in run_totals(usage)]
            for usage in usages
        ]
        blocks += [Heading(f"By function over the whole run: {view.sort}"), _beside_each_other(functions, top, words)]
    return blocks


def _beside(usage: HeapUsage, usages: Sequence[HeapUsage]) -> Iterator[tuple[str, int]]:
    """Yield the amounts besides live memory that all profiles count: an amount that a profile lacks is not 0."""
    for label, size_of in _BESIDE:
        if usage.snapshot is not None and not _silent(usages, size_of):
            yield label, size_of(usage.snapshot)


def _silent(usages: Sequence[HeapUsage], size_of: Callable[[HeapSnapshot], int | None]) -> list[HeapUsage]:
    return [usage for usage in usages if usage.snapshot is not None and size_of(usage.snapshot) is None]


def _totals(usages: Sequence[HeapUsage]) -> list[int]:
    """Return the memory of each profile, without the amounts that one of them lacks."""
    return [
        usage.total_bytes
        if usage.snapshot is None
        else usage.snapshot.live_bytes + sum(size_bytes for _, size_bytes in _beside(usage, usages))
        for usage in usages
    ]


def _left_out(usages: Sequence[HeapUsage]) -> Iterator[Block]:
    for label, size_of in _BESIDE:
        silent = _silent(usages, size_of)
        if any(usage.snapshot is not None and size_of(usage.snapshot) for usage in usages) and silent:
            yield Paragraph(f"Without {label}: {silent[0].file} does not tell it.")


def _beside_each_other(
    tables: Sequence[Sequence[tuple[str, str, int]]], top: int, words: Mapping[str, Callable[[str, str], str]]
) -> Table:
    """List the amounts of all profiles, what has changed most first; differences are to the first profile.

    Args:
        tables: Of each profile the owners, functions and bytes.
        top: How many rows the table has; 0 for all.
        words: The heading and the cell of each text column, from owner and function.
    """
    sums: dict[tuple[str, str], list[int]] = {}
    for number, table in enumerate(tables):
        for owner, function, size_bytes in table:
            sums.setdefault((owner, function), [0] * len(tables))[number] += size_bytes
    ordered = sorted(
        ((place, sizes) for place, sizes in sums.items() if any(sizes)),
        key=lambda item: (-max(abs(size - item[1][0]) for size in item[1]), -max(item[1]), item[0]),
    )
    shown, rest = cut_at(ordered, top)

    def amounts(sizes: Sequence[int]) -> tuple[str, ...]:
        return (*(f"{size:,}" for size in sizes), *(f"{size - sizes[0]:+,}" for size in sizes[1:]))

    numbers = [str(number) for number in range(1, len(tables) + 1)]
    columns = (*numbers, *(f"{number}-1" for number in numbers[1:]), *words)
    rows = tuple((*amounts(sizes), *(cell(*place) for cell in words.values())) for place, sizes in shown)
    rest_sizes = [sum(sizes[number] for _, sizes in rest) for number in range(len(tables))]
    footer = rest_rows(len(rest), len(columns), *amounts(rest_sizes))
    return Table(columns, rows, frozenset(range(len(columns) - len(words), len(columns) - 1)), footer)


# --- what matters most ------------------------------------------------------------------------------------------------


def _verdict(usage: HeapUsage, names: Names) -> str:
    attribution = usage.attribution
    if usage.snapshot is None:
        if usage.tree is None:
            return f"{usage.file} says nothing of memory in use."
        why = "nothing refers to them any more" if usage.tally == "leaked" else "which is no memory in use"
        return f"{_tally(usage, usage.tree)} over the whole run, {why}."
    what = "of address space" if usage.evidence is Evidence.VIRTUAL else "of heap"
    amount = f"{format_bytes(usage.snapshot.live_bytes)} {what} {moment_name(usage)}"
    peak = usage.profile.untold_peak
    if peak is not None and usage.snapshot is not peak:
        larger = f"{format_bytes(peak.live_bytes)} {what} at the peak (snapshot {peak.number})"
        amount = f"{larger}, which has no call tree; {amount}"
    if attribution is None or not attribution.total_bytes:
        return f"{amount[0].upper()}{amount[1:]}."
    first = attribution.owners[0]
    whole_bytes = attribution.whole_bytes
    share = attribution.attributed_bytes / whole_bytes
    if first.owner.startswith("["):
        return f"{amount}; which object asked for it is known of {share:.1%}."
    most = f"{_owner(first.owner, names)} asked for {first.size_bytes / whole_bytes:.1%} of "
    most += (
        "it" if whole_bytes == attribution.total_bytes else f"the {format_bytes(whole_bytes)} that its calls add up to"
    )
    largest = next(share for share in attribution.shares if share.owner == first.owner)
    if not largest.function.startswith("["):
        function = shortened(largest.function, _LONGEST_FUNCTION)
        most += f", its {function} for {largest.size_bytes / whole_bytes:.1%}"
    return f"{amount}: {most}; the object is known of {share:.1%}."


def _tally(usage: HeapUsage, tree: CallTree) -> str:
    return f"{tree.total_bytes:,} {_unit_of(usage)} {usage.tally}"


def _unit_of(usage: HeapUsage) -> str:
    return "units" if usage.profile.counted is Counted.EVENTS else "bytes"


def _difference(usages: Sequence[HeapUsage]) -> str:
    first, totals = usages[0], _totals(usages)
    parts = []
    for usage, total_bytes in zip(usages[1:], totals[1:], strict=True):
        difference = total_bytes - totals[0]
        word = "more" if difference > 0 else "less"
        much = f"{format_bytes(abs(difference))} {word} than" if difference else "as much as"
        parts.append(f"{usage.file} has {much} {first.file}")
    return "; ".join(parts) + "."
