"""The registry of rules: every module in a folder `*_rules` is a rule, and nothing else names it.

The module defines `RULE`, and is called like its rule: `unused_library.py` holds `unused-library`. A registered rule is
run by every verb that has its facts, shown in reports, accepted in budgets, listed in SARIF and JUnit (also where it
found nothing), and explained by `docs/findings/RULE.md`.

The folder says which fact a rule reads, so a verb imports no rule that it cannot run, and the names of all rules are
known without an import.
"""

import os
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from footprint.members import NamedTuple
from footprint.model.finding import Finding
from footprint.model.heap_account import AllocatorAccount
from footprint.model.row import Row
from footprint.system.limits import begin_activity

if TYPE_CHECKING:
    from footprint.attribution.heap_usage import HeapUsage


class Fact(StrEnum):
    """What a rule reads; the value is the beginning of the name of the folder with its rules."""

    GRAPH = "graph"
    """The dependency graph of a program or process: a `DependencyGraph`."""
    LEDGER = "ledger"
    """The rows of its memory: `LedgerFacts`."""
    VARIABLES = "variable"
    """The variables of its ELF files: `footprint.findings.variables.Variables`."""
    HEAP = "heap"
    """An allocator profile: `HeapFacts`."""


class LedgerFacts(NamedTuple):
    """The ledger of a program or process.

    Attributes:
        rows: Its rows.
        page_bytes: The size of a page.
        allocator: Its heap as the allocator has it; None where that was not read.
        pages_relocated_alone: Counts the pages that only the relocations of the variable of a row write; None where
            that is not known.
    """

    rows: tuple[Row, ...]
    page_bytes: int
    allocator: AllocatorAccount | None = None
    pages_relocated_alone: Callable[[Row], int | None] = lambda _: None


class HeapFacts(NamedTuple):
    """What an allocator profile says.

    Attributes:
        usage: The profile with the memory of each function.
        held_bytes: By owner and function of the profile, how much of its memory a process surely holds; None where no
            process was asked.
    """

    usage: "HeapUsage"
    held_bytes: Mapping[tuple[str, str], int] | None = None


class Rule(NamedTuple):
    """One rule.

    Attributes:
        name: Its name, such as `unused-library`.
        title: What it finds, in a few words.
        needs: The facts that it reads. Where it reads several, it lies in the folder of the first.
        find: Finds; its arguments are the facts, in the order of `needs`.
        rank: Where its findings stand in reports among those of rules that read the same: the lowest rank first.
        is_of_start: Whether its findings save time at start, for which the costs of a start are computed.
    """

    name: str
    title: str
    needs: tuple[Fact, ...]
    find: Callable[..., tuple[Finding, ...]]
    rank: int = 0
    is_of_start: bool = False


def rule_names(fact: Fact | None = None) -> tuple[str, ...]:
    """Return the names of all rules, or of those in the folder of one fact; no rule is imported."""
    return tuple(name for f in Fact if fact in {None, f} for name in _names_in(*_folder(f).__path__))


def fact_of(name: str) -> Fact | None:
    """Return the first fact that a rule reads; None for a rule that is not registered. No rule is imported."""
    return next((fact for fact in Fact if name in _names_in(*_folder(fact).__path__)), None)


def rule_named(name: str) -> Rule:
    """Return a rule.

    Raises:
        KeyError: Where no rule has that name.
    """
    fact = fact_of(name)
    if fact is None:
        raise KeyError(name)
    rule: Rule = import_module(f"{_folder(fact).__name__}.{name.replace('-', '_')}").RULE
    return rule


def rules_reading(facts: Collection[Fact], first: Fact | None = None) -> tuple[Rule, ...]:
    """Return the rules that need no other facts, in order of reports, or those of them whose first fact is `first`."""
    folders = [_folder(fact).__path__ for fact in Fact if fact in facts and first in {None, fact}]
    return tuple([rule for paths in folders for rule in _rules_in(*paths) if set(rule.needs) <= set(facts)])


def find_all(facts: Mapping[Fact, object], first: Fact | None = None, *, has_start: bool = True) -> tuple[Finding, ...]:
    """Run every rule that these facts suffice for, as `rules_reading` lists them, and return what they find.

    Without `has_start`, what saves time at start is not searched.
    """
    findings: list[Finding] = []
    for rule in rules_reading(facts.keys(), first):
        if rule.is_of_start and not has_start:
            continue
        begin_activity(f"searches for findings of {rule.name}")
        findings += rule.find(*(facts[fact] for fact in rule.needs))
    return tuple(findings)


def _folder(fact: Fact) -> ModuleType:
    return import_module(f"footprint.findings.{fact}_rules")


@cache
def _rules_in(*paths: str) -> tuple[Rule, ...]:
    return tuple(sorted(map(rule_named, _names_in(*paths)), key=lambda rule: (rule.rank, rule.name)))


@cache
def _names_in(*paths: str) -> tuple[str, ...]:
    if all(map(os.path.isdir, paths)):
        files = [name.partition(".") for path in paths for name in os.listdir(path)]
        modules = {name for name, _, end in files if end in {"py", "pyc"} and name != "__init__"}
    else:
        from pkgutil import iter_modules  # noqa: PLC0415 # an archive; it imports `inspect` for a folder

        modules = {module.name for module in iter_modules(paths)}
    return tuple(sorted([name.replace("_", "-") for name in modules]))
