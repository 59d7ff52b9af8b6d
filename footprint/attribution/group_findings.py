"""The findings and objects of several processes: each once, with the sums over the processes that have it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from footprint.model.audit import Audit
from footprint.model.finding import Finding, SearchedRule
from footprint.model.object_cost import ObjectCost

__all__ = ("group_findings", "group_objects", "group_rules")

_Value = TypeVar("_Value")


def group_findings(audits: Iterable[Audit]) -> tuple[Finding, ...]:
    """Join the findings that several processes have, the largest saving first.

    One finding is that of another process where all that is said of it is the same, apart from the figures. A process
    may have it several times.
    """
    alike: dict[object, list[Finding]] = {}
    for audit in audits:
        seen: dict[object, int] = {}
        for one in audit.findings:
            key = (one.rule, one.kind, one.subject, one.object_path, one.location)
            seen[key] = seen.get(key, 0) + 1
            alike.setdefault((key, seen[key]), []).append(one)
    return tuple(sorted(map(_joined, alike.values()), key=lambda one: -one.saving_bytes))


def _joined(found: Sequence[Finding]) -> Finding:
    # The words are those of the process in which it saves most.
    most = max(found, key=lambda one: one.saving_bytes)
    private = [one.private_bytes for one in found if one.private_bytes is not None]
    return replace(
        most,
        saving_bytes=sum(one.saving_bytes for one in found),
        private_bytes=sum(private) if len(private) == len(found) else None,
        member_count=len(found),
    )


def group_rules(audits: Iterable[Audit]) -> tuple[SearchedRule, ...]:
    """Return the rules that were run for every process that was searched."""
    searched = [{one.rule: one.left_out_count for one in audit.searched_rules} for audit in audits]
    searched = [one for one in searched if one]
    rules = [rule for rule in (searched[0] if searched else ()) if all(rule in one for one in searched)]
    return tuple([SearchedRule(rule, sum(one[rule] for one in searched)) for rule in rules])


def group_objects(audits: Iterable[Audit]) -> tuple[ObjectCost, ...]:
    """Join the objects that several processes have, in the order in which they are met first."""
    alike: dict[str, list[ObjectCost]] = {}
    for audit in audits:
        for one in audit.objects:
            alike.setdefault(one.path, []).append(one)
    return tuple(
        [
            found[0]._replace(
                own_bytes=sum(one.own_bytes for one in found),
                retained_bytes=sum(one.retained_bytes for one in found),
                held_by=_same([one.held_by for one in found]),
                tls_bytes=sum(one.tls_bytes for one in found),
                needs=_same([one.needs for one in found]),
                build_id=_same([one.build_id for one in found]),
            )
            for found in alike.values()
        ]
    )


def _same(values: Sequence[_Value | None]) -> _Value | None:
    """Return what all values are; None where they differ."""
    return values[0] if all(value == values[0] for value in values) else None
