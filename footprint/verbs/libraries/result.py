"""The libraries of one program or process: what each costs, who uses it, what leaves with it."""

from dataclasses import dataclass

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.errors import Note
from footprint.model.finding import Finding

__all__ = ("Libraries",)


@dataclass(frozen=True, slots=True)
class Libraries:
    """What a program is made of, and what it could do without.

    Attributes:
        target: What was asked about, as the user named it.
        pid: The process, where a live one was asked about.
        graph: The objects, and all relations between them.
        findings: Libraries that nobody uses, and what else could be spared.
        count: How many processes to project to.
        notes: What the reader of the figures must know.
    """

    target: str
    pid: int | None
    graph: DependencyGraph
    findings: tuple[Finding, ...]
    count: int
    notes: tuple[Note, ...]
