"""Rule `unused-library`: libraries that are needed by name, and of which nothing is used.

An object that needs a library without binding to it is no saving yet: the library goes only when nobody else needs it,
and what it alone brought in goes with it. So every such need is judged by what would leave the process.
"""

import re
from collections.abc import Sequence
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import (
    Doubt,
    differences,
    doubts,
    in_any_program,
    is_always_there,
    listed,
    names_of,
    order_differences,
    program_advice,
    weakest,
)
from footprint.loader.dependencies import LibraryRemoval, Rebinding, reached
from footprint.members import NamedTuple, replace
from footprint.model.finding import CONFIDENCES, Confidence, Finding
from footprint.text.units import format_bytes

# These are linked for their presence, not for their symbols.
_RUNTIMES: Final = re.compile(r"lib(asan|tsan|ubsan|lsan|hwasan|clang_rt|gcov|profiler|gperftools|efence|duma)\b")
# More pairs than this are judged as one group.
_MOST_PAIRS: Final = 1 << 20
# So many objects are linked again to judge the groups one by one; those after that are judged together.
_MOST_LINKED: Final = 1 << 14


class UnusedNeed(NamedTuple):
    """An object that needs a library; both by their number in load order."""

    user: int
    provider: int


class _Judged(NamedTuple):
    """A finding with the needs that it is about."""

    finding: Finding
    needs: frozenset[UnusedNeed]


class _Whole(NamedTuple):
    """The process without all needs that are unused.

    Attributes:
        without: The process.
        lost: The references of staying objects by the object that provides them now, where another one or none would.
        order: What the loader would do at another time.
    """

    without: LibraryRemoval
    lost: dict[int, list[Rebinding]]
    order: tuple[Doubt, ...]


def unused_needs(graph: DependencyGraph) -> frozenset[UnusedNeed]:
    """Return the needs from which nothing is bound, those of the loader and the C library too."""
    return frozenset(
        [
            UnusedNeed(user, provider)
            for user, providers in enumerate(graph.needed[: len(graph.link_map.objects)])
            for provider in providers
            if provider not in graph.answerers(user) and provider not in graph.filtees[user]
        ]
    )


def unused_libraries(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Find the libraries that nobody uses, the largest saving first; then those that save nothing, and why."""
    unused = unused_needs(graph)
    judged = frozenset(need for need in unused if _is_judged(graph, need.provider))
    findings = _apart(graph, judged)
    loader = graph.link_map.interpreter
    findings += [_residue(graph, need) for need in sorted(unused - judged) if need.provider == loader]
    findings += _soft(graph, judged)
    findings = [in_any_program(graph, finding) for finding in findings]
    return tuple(sorted(findings, key=lambda f: (-f.saving_bytes, CONFIDENCES.index(f.confidence), f.subject)))


RULE: Final = Rule(
    "unused-library", "A library that is needed by name, and of which nothing is used", (Fact.GRAPH,), unused_libraries
)


def _is_judged(graph: DependencyGraph, provider: int) -> bool:
    """Return whether this rule judges a library. Those that glibc keeps empty have a rule of their own."""
    if provider == 0 or is_always_there(graph, provider) or graph.is_stub(provider):
        return False
    return not _RUNTIMES.match(graph.name(provider))


def _apart(graph: DependencyGraph, unused: frozenset[UnusedNeed]) -> list[Finding]:
    """Judge the groups, the largest first; a group that leaves completely with another one is counted there."""
    users: dict[int, set[int]] = {}
    for user, provider in unused:
        users.setdefault(provider, set()).add(user)
    leaving = {
        group: _leaving_alone(graph, min(group), unused) if len(group) == 1 else _leaving(graph, group, unused)
        for group in _groups(graph, unused)
    }
    judged: list[_Judged] = []
    gone: list[frozenset[int]] = []
    whole: _Whole | None = None
    for group in sorted(leaving, key=lambda group_heads: (-len(leaving[group_heads]), sorted(group_heads))):
        needing = set[int]().union(*(users[head] for head in group))
        if any(needing <= earlier for earlier in gone):
            continue
        needs = frozenset(UnusedNeed(user, head) for head in group for user in users[head])
        gone_now = leaving[group] if leaving[group] & group else frozenset[int]()
        if len(judged) * len(graph.objects) < _MOST_LINKED:
            doubts_of_group = doubts(graph, graph.without(needs), gone_now)
        else:
            whole = whole or _whole(graph, unused)
            doubts_of_group = _doubts_of_many(graph, whole, gone_now)
        finding = _finding(graph, group, needing, leaving[group], doubts_of_group)
        judged.append(_Judged(finding, needs))
        if leaving[group] & group and finding.confidence is not Confidence.BLOCKED:
            gone.append(leaving[group])
    return [_beside_others(finding_judged, judged) for finding_judged in _together(graph, judged)]


def _whole(graph: DependencyGraph, unused: frozenset[UnusedNeed]) -> _Whole:
    without = replace(graph.without(unused), swapped=None)
    lost: dict[int, list[Rebinding]] = {}
    for rebinding in without.rebindings:
        if rebinding.before is not None:
            lost.setdefault(rebinding.before, []).append(rebinding)
    return _Whole(without, lost, order_differences(graph, without))


def _doubts_of_many(graph: DependencyGraph, whole: _Whole, leaving: frozenset[int]) -> tuple[Doubt, ...]:
    """Find what speaks against one of very many removals, of which only all together were computed."""
    rebindings = tuple([r for number in sorted(leaving) for r in whole.lost.get(number, ())])
    alone = replace(whole.without, rebindings=rebindings)
    reason = "only the removal of all needs without use was computed: there are too many to try each"
    return (*doubts(graph, alone, leaving, whole.order), Doubt(Confidence.MEDIUM, reason))


def _together(graph: DependencyGraph, judged: Sequence[_Judged]) -> list[_Judged]:
    """Lower the confidence of findings whose needs are safe to drop each, and not together: all, or all of one link."""
    sure = [judgement for judgement in judged if judgement.finding.confidence is Confidence.HIGH]
    users = sorted({need.user for judgement in sure for need in judgement.needs})
    links = [[j for j in sure if any(need.user == user for need in j.needs)] for user in users]
    lowered = {judgement: judgement for judgement in judged}
    if len(users) * len(graph.objects) > _MOST_LINKED:
        links = []
    for link in [sure, *(link for link in links if link != sure)]:
        needs = frozenset[UnusedNeed]().union(*(judgement.needs for judgement in link))
        leaving = _leaving(graph, frozenset([need.provider for need in needs]), needs)
        problems = differences(graph, graph.without(needs), leaving) if len(link) > 1 else []
        for m in link if problems else ():
            reason = f"dropping {listed([other.finding.subject for other in link])} together is not safe"
            reasons = (*m.finding.reasons, f"{reason}: {problems[0].reason}")
            lowered[m] = m._replace(finding=replace(m.finding, confidence=Confidence.MEDIUM, reasons=reasons))
    return list(lowered.values())


def _beside_others(removal: _Judged, judged: Sequence[_Judged]) -> Finding:
    """Add to the remedy of a finding what --as-needed would also drop, and may not."""
    users = {need.user for need in removal.needs}
    blocked = [
        other.finding.subject
        for other in judged
        if other.finding.confidence is Confidence.BLOCKED and users & {need.user for need in other.needs}
    ]
    finding = removal.finding
    if not blocked or finding.confidence is Confidence.BLOCKED or "--as-needed" not in finding.remedy:
        return finding
    return replace(finding, remedy=f"{finding.remedy}; --as-needed would also drop {listed(blocked)}, which is blocked")


def _groups(graph: DependencyGraph, unused: frozenset[UnusedNeed]) -> list[frozenset[int]]:
    """Return the libraries whose needs are dropped together: alone, or where only the whole group frees something."""
    heads = sorted({need.provider for need in unused})
    alone = [_leaving_alone(graph, head, unused) for head in heads]
    together = _leaving(graph, frozenset(heads), unused)
    left = together.difference(*alone)
    joined = [head for head in heads if head in together] if left else []
    if len(left) * len(joined) > _MOST_PAIRS:
        return [frozenset(joined), *(frozenset({head}) for head in heads if head not in together)]
    group_of = {head: {head} for head in heads}
    below = {head: reached(graph.needed, (head,)) for head in joined}
    for number in sorted(left):
        group = set[int]().union(*(group_of[head] for head in joined if number in below[head]))
        for head in group:
            group_of[head] = group
    return list({frozenset(group) for group in group_of.values()})


def _leaving_alone(graph: DependencyGraph, head: int, unused: frozenset[UnusedNeed]) -> frozenset[int]:
    """Return the objects that leave if nobody needs a library any more without using it.

    These are all objects that only the library brings in, unless an object outside of them uses it.
    """
    retained = graph.retained[head]
    is_kept = head in graph.roots or any(
        (user, head) not in unused and user not in retained for user in graph.needing.get(head, ())
    )
    return frozenset() if is_kept else retained


def _leaving(graph: DependencyGraph, heads: frozenset[int], unused: frozenset[UnusedNeed]) -> frozenset[int]:
    """Return the objects that leave if nobody needs some libraries any more without using them."""
    kept = graph.remaining(lambda user, provider: provider in heads and (user, provider) in unused)
    return frozenset(range(len(graph.objects))) - kept


def _finding(
    graph: DependencyGraph,
    heads: frozenset[int],
    needing: set[int],
    leaving: frozenset[int],
    doubts_of_group: tuple[Doubt, ...],
) -> Finding:
    """Make the finding on the libraries of one group."""
    users = sorted(needing - leaving)
    subject = names_of(graph, heads)
    if not leaving & heads:
        return _staying(graph, heads, users, doubts_of_group)
    confidence = weakest(doubts_of_group)
    saving_bytes = graph.saving_bytes(leaving)
    others = sorted(leaving - heads)
    message = f"{subject} {'is' if len(heads) == 1 else 'are'} needed by {names_of(graph, users)}, and nothing is used"
    message += f" of {'it' if len(heads) == 1 else 'them'}"
    if others:
        message += f"; {names_of(graph, others)} would leave with {'it' if len(heads) == 1 else 'them'}"
    reasons = tuple([d.reason for d in doubts_of_group]) or ("no object of the process binds to what would leave",)
    return Finding(
        RULE.name,
        "droppable-set"
        if len(heads) > 1
        else "direct"
        if any(user not in leaving for number in leaving for user in graph.bindings.users(number))
        else "whole-process",
        subject,
        message,
        saving_bytes,
        confidence,
        reasons,
        _remedy(graph, heads, users, is_blocked=confidence is Confidence.BLOCKED),
        tuple(graph.objects[number].path for number in sorted(leaving)),
        object=_only_path(graph, users),
        thread_bytes=graph.thread_bytes(leaving),
    )


def _only_path(graph: DependencyGraph, users: Sequence[int]) -> str | None:
    """Return the path of the only object to link differently; None where there are several."""
    return graph.objects[users[0]].path if len(users) == 1 else None


def _staying(graph: DependencyGraph, heads: frozenset[int], users: list[int], doubts: Sequence[Doubt]) -> Finding:
    """Make the finding for a need whose removal frees nothing: others need the library too, and use it."""
    keepers = sorted(
        user
        for user, providers in enumerate(graph.needed)
        for head in heads
        if head in providers and head in graph.answerers(user)
    )
    subject = names_of(graph, heads)
    through = f"through {names_of(graph, keepers)}" if keepers else "through what others need"
    return Finding(
        RULE.name,
        "linker-residue",
        subject,
        f"{names_of(graph, users)} need{'s' if len(users) == 1 else ''} {subject} without using it, but it stays"
        f" loaded {through}",
        0,
        weakest(doubts),
        ("dropping it saves nothing", *(doubt.reason for doubt in doubts)),
        "none is needed"
        if doubts
        else f"none is needed; relinking {names_of(graph, users)} with -Wl,--as-needed tidies it up",
        object=_only_path(graph, users),
    )


def _residue(graph: DependencyGraph, need: UnusedNeed) -> Finding:
    """Make the finding for a need of the loader, which is loaded anyway."""
    subject = graph.name(need.provider)
    return Finding(
        RULE.name,
        "linker-residue",
        subject,
        f"{graph.name(need.user)} needs the loader itself ({subject}), which is there anyway",
        0,
        Confidence.HIGH,
        ("linkers leave it there; it costs nothing",),
        "none is needed",
        object=graph.objects[need.user].path,
    )


def _remedy(graph: DependencyGraph, heads: frozenset[int], users: list[int], *, is_blocked: bool) -> str:
    """Return what to do about the needs of a group."""
    steps = []
    if 0 in users:
        steps.append(program_advice(graph, heads))
    if libraries := [user for user in users if user != 0]:
        subject = names_of(graph, heads)
        steps.append(
            f"relink {names_of(graph, libraries)}, which need{'s' if len(libraries) == 1 else ''} {subject} for"
            " nothing, with -Wl,--as-needed"
        )
    remedy = "; ".join(steps)
    return f"{remedy}, once what blocks it is settled" if is_blocked else remedy


def _soft(graph: DependencyGraph, unused: frozenset[UnusedNeed]) -> list[Finding]:
    """Find needs that are bound only to symbols that others define too, or to optional ones."""
    findings = []
    for user, providers in enumerate(graph.needed):
        for provider in providers:
            places = graph.bindings.providers[user].get(provider) if user < len(graph.bindings.symbols) else None
            if not places or (user, provider) in unused or not _is_judged(graph, provider):
                continue
            symbols, gone = graph.bindings.symbols[user], frozenset({provider})
            is_optional = all(symbols.kind(place).is_weak for place in places)
            if not is_optional and not all(graph.bindings.has_other(symbols.reference(at), gone) for at in places):
                continue
            leaving = _leaving_alone(graph, provider, frozenset({UnusedNeed(user, provider)}))
            if provider not in leaving:
                continue
            cost = format_bytes(graph.saving_bytes(leaving))
            names = listed([symbols.reference_names[place] for place in sorted(places)])
            pair = f"{graph.name(user)} gets only {names} of {graph.name(provider)}"
            why = "all optional, and present" if is_optional else "all of it also defined by others"
            findings.append(
                Finding(
                    RULE.name,
                    "soft",
                    graph.name(provider),
                    f"{pair}, {why}; it costs {cost} a process",
                    0,
                    Confidence.LOW,
                    ("--as-needed drops what is only optional; ldd -u counts it as used",)
                    if is_optional
                    else ("it may be there to replace the others",),
                    "if it is optional, open it with dlopen where it is wanted"
                    if is_optional
                    else "decide which of the definitions is meant",
                    tuple(graph.objects[number].path for number in sorted(leaving)),
                    object=graph.objects[user].path,
                )
            )
    return findings
