"""Which NEEDED entries are dropped so that libraries leave a process, and why some cannot leave."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.errors import UsageError
from footprint.findings.graph_rules.unused_library import UnusedNeed, unused_needs
from footprint.findings.removal import Doubt, doubts
from footprint.loader.library_removal import LibraryRemoval
from footprint.loader.map_entry import FoundBy
from footprint.model.finding import Confidence

_MOST_REASONS: Final = 3


@dataclass(frozen=True, slots=True)
class Dropping:
    """The needs of a process that are dropped, and the result. Objects are numbered in load order.

    Attributes:
        heads: The libraries that were named.
        needs: The needs that are dropped.
        leaving: The objects that leave with them, the named ones included.
        without: The process without the needs.
        doubts: What may go wrong.
    """

    heads: frozenset[int]
    needs: frozenset[UnusedNeed]
    leaving: frozenset[int]
    without: LibraryRemoval
    doubts: tuple[str, ...]


def plan_dropping(graph: DependencyGraph, names: Sequence[str], *, is_forced: bool) -> Dropping:
    """Decide which needs are dropped so that some libraries leave.

    Args:
        graph: The process.
        names: The libraries: sonames, file names, or paths.
        is_forced: Whether to drop them although something is bound from them.

    Raises:
        UsageError: If a library is missing or cannot leave; the text says why.
    """
    heads = frozenset([_head(graph, name) for name in names])
    needs = _needs(graph, heads)
    unused = needs & unused_needs(graph)
    staying = heads - _leaving(graph, unused)
    if staying and not is_forced:
        raise UsageError(_use(graph, staying, unused))
    dropped = needs if is_forced else unused
    leaving = _leaving(graph, dropped)
    without = graph.without(dropped)
    doubts_found = doubts(graph, without, leaving)
    blocks = [d for d in doubts_found if d.is_fatal or (d.confidence is Confidence.BLOCKED and not is_forced)]
    if blocks:
        # --force does not help where the loader would refuse the program.
        hint = "" if any(block.is_fatal for block in blocks) else "; --force tries it anyway"
        raise UsageError(f"{_names(graph, heads)} cannot be dropped: {_listed(blocks)}{hint}")
    # The needs of an object that leaves do not matter.
    kept = frozenset([need for need in dropped if need.user not in leaving])
    return Dropping(heads, kept, leaving, without, tuple([d.reason for d in doubts_found]))


def _use(graph: DependencyGraph, staying: frozenset[int], unused: frozenset[UnusedNeed]) -> str:
    """Describe who uses some libraries, so that they stay, and who needs them without using them."""
    needs = _needs(graph, staying)
    doubts_found = doubts(graph, graph.without(needs), _leaving(graph, needs))
    blocks = [d for d in doubts_found if d.confidence is Confidence.BLOCKED and not d.is_fatal]
    text = f"{_names(graph, staying)} cannot be dropped: {_listed(blocks)}"
    if users := {need.user for need in unused if need.provider in staying}:
        need = "needs it without using it" if len(users) == 1 else "need it without using it"
        text += f"; {_names(graph, users)} {need}, but it stays loaded, and nothing is saved"
    return text if any(d.is_fatal for d in doubts_found) else f"{text}; --force tries it anyway"


def _needs(graph: DependencyGraph, providers: frozenset[int]) -> frozenset[UnusedNeed]:
    return frozenset(
        [UnusedNeed(user, provider) for user, needed in enumerate(graph.needed) for provider in providers & {*needed}]
    )


def _head(graph: DependencyGraph, name: str) -> int:
    """Find the library of a name, and refuse one that no process can do without."""
    objects = graph.objects
    numbers = [number for number in range(len(objects)) if name in _names_of(graph, number)]
    if len(objects) == 1:
        raise UsageError(f"{objects[0].path} is a static program: it needs no library by name")
    if not numbers:
        path = objects[0].path
        raise UsageError(
            f"{name} is none of the {len(objects) - 1} libraries of {path}; `footprint libraries` shows them"
        )
    number = numbers[0]
    if number == 0:
        raise UsageError(f"{name} is the program itself")
    if objects[number].found_by is FoundBy.AUDIT:
        raise UsageError(f"{name} cannot be dropped: it watches the loader (DT_AUDIT), or is a copy for what does")
    loader = graph.link_map.interpreter_object
    is_loader = loader is not None and objects[number].library is loader.library
    if is_loader or graph.name(number).startswith("libc.so."):
        raise UsageError(f"{name} cannot be dropped: no program runs without the C library and the loader")
    if number in graph.roots:
        raise UsageError(f"{name} cannot be dropped: it is preloaded, and no object needs it by name")
    return number


def _names_of(graph: DependencyGraph, number: int) -> set[str]:
    linked = graph.objects[number]
    requested = {d.name for linked in graph.link_map.objects for d in linked.dependencies if d.place == number}
    return requested | {graph.name(number), linked.path, linked.path.rpartition("/")[2], linked.library.real_path}


def _leaving(graph: DependencyGraph, dropped: Collection[UnusedNeed]) -> frozenset[int]:
    kept = graph.remaining(lambda user, provider: UnusedNeed(user, provider) in dropped)
    return frozenset(range(len(graph.objects))) - kept


def _names(graph: DependencyGraph, numbers: frozenset[int] | set[int]) -> str:
    return " and ".join([graph.name(number) for number in sorted(numbers)])


def _listed(doubts: Sequence[Doubt]) -> str:
    shown = [doubt.reason for doubt in doubts[:_MOST_REASONS]]
    rest = len(doubts) - len(shown)
    return "; ".join([*shown, *([f"and {rest} more"] if rest else [])])
