"""What the loader of glibc does at start, as it counts it itself under LD_DEBUG, and as it is predicted."""

import re
import resource
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf.abi import ET_DYN
from footprint.process.held_program import AT_ENTRY, held_at_start


class Counted(NamedTuple):
    """What the loader counts, and lists."""

    lookup_count: int
    repeated_count: int
    relative_count: int
    tried_count: int
    searched: tuple[tuple[str, int], ...]
    mapped_count: int

    @property
    def asked_count(self) -> int:
        """The objects that all lookups ask."""
        return sum(count for _, count in self.searched)


def counted_by_loader(program: str, folder: Path, **variables: str) -> Counted:
    """Run a program to its entry point under LD_DEBUG."""
    variables |= {"LD_DEBUG": "statistics,symbols,bindings,files,libs", "LD_DEBUG_OUTPUT": str(folder / "loader")}
    with held_at_start(program, variables) as held:
        held.run_to(held.auxiliary(AT_ENTRY))
        text = (folder / f"loader.{held.pid}").read_text(errors="surrogateescape")
    before, after = text.split("runtime linker statistics", 1)
    numbers = dict(re.findall(r"(number of [a-z ]+): (\d+)", after))
    return Counted(
        int(numbers["number of relocations"]),
        int(numbers["number of relocations from cache"]),
        int(numbers["number of relative relocations"]),
        before.count("trying file="),
        tuple(sorted(Counter(re.findall(";  lookup in file=(.*) \\[", before)).items())),
        before.count("generating link map"),
    )


def predicted(graph: DependencyGraph) -> Counted:
    """Add up what is predicted of each object."""
    costs = [start_cost for start_cost in graph.start_costs if start_cost]
    # The loader of glibc 2.36 counts those that are sorted first, of objects that it moves.
    objects = graph.link_map.objects
    moved = [
        cost for cost, linked in zip(graph.start_costs, objects, strict=False) if cost and linked.library.type == ET_DYN
    ]
    asking_objects = zip(graph.objects, graph.start_costs, strict=True)
    searched = {linked.path: cost.searched_count or 0 for linked, cost in asking_objects if cost}
    vdso = "linux-vdso.so.1" if objects[0].library.image.is_64 else "linux-gate.so.1"
    searched[vdso] = sum(cost.asked_count or 0 for cost in costs) - sum(searched.values())
    # The kernel maps the program and the loader.
    mapped_count = len(objects) - 1 - (graph.link_map.interpreter is not None)
    return Counted(
        sum(cost.lookup_count or 0 for cost in costs),
        sum(cost.repeated_count or 0 for cost in costs),
        sum(cost.relative_count for cost in moved),
        sum(cost.tried_count or 0 for cost in costs),
        tuple(sorted([(path, count) for path, count in searched.items() if count])),
        mapped_count,
    )


def fault_count(program: str) -> int:
    """Count the page faults of a program from its execve to its entry point, by getrusage of the ended process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    with held_at_start(program) as held:
        # What the starter's copy did before execve.
        fields = Path(f"/proc/{held.pid}/stat").read_bytes().rpartition(b")")[2].split()
        held.run_to(held.auxiliary(AT_ENTRY))
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before - int(fields[7])
