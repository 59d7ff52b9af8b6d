"""Rule `unpacked-relocations`: objects whose relative relocations take 24 bytes each where RELR takes a bit for most.

The loader reads the table at each start, from pages of the file that all processes share. Below 40,000 relocations that
are packed, a start takes less than about 0.1 ms less, and the file has less than a megabyte less.
"""

from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf.relocations import pack_relative
from footprint.errors import FootprintError
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import is_always_there
from footprint.loader.target import Libc
from footprint.model.finding import Confidence, Finding
from footprint.text.units import format_bytes

_LEAST_RELOCATIONS: Final = 40_000
_ENTRY_BYTES: Final = 24
# Of libraries with 10,000 to 100,000 relocations that were built both ways: 2.3 to 2.5 ns.
_HUNDRED_RELOCATIONS_NS: Final = 230
# The first loader that reads RELR.
_FIRST_RELEASE: Final = (2, 36)


def unpacked_relocations(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Find the objects with many relative relocations that are not packed, and whose loader could read packed ones."""
    if graph.link_map.libc is not Libc.GLIBC:
        return ()
    counts = [
        (cost.relative_count, number)
        for number, cost in enumerate(graph.start_costs)
        if cost and cost.relative_count >= _LEAST_RELOCATIONS and not cost.relr_count and cost.image.is_64
    ]
    release = graph.start_system.partition("glibc ")[2] if counts else ""
    if tuple(map(int, release.split(".") if release else ())) < _FIRST_RELEASE:
        return ()
    findings = [_finding(graph, number) for _, number in sorted(counts, reverse=True)]
    return tuple([finding for finding in findings if finding])


RULE: Final = Rule(
    "unpacked-relocations",
    "An object with many relative relocations that are not packed",
    (Fact.GRAPH,),
    unpacked_relocations,
    rank=5,
    is_of_start=True,
)


def _finding(graph: DependencyGraph, number: int) -> Finding | None:
    """Describe the finding; None where the table cannot be read, or few relocations can be packed."""
    name, image = graph.name(number), graph.objects[number].library.image
    try:
        count, packed_bytes = pack_relative(image)
    except FootprintError:
        return None
    if is_always_there(graph, number) or count < _LEAST_RELOCATIONS:
        return None
    saved_bytes = _ENTRY_BYTES * count - packed_bytes
    return Finding(
        RULE.name,
        "rela",
        name,
        f"{name} has {count:,} relative relocations of {_ENTRY_BYTES} bytes: packed, its file is"
        f" {format_bytes(saved_bytes)} smaller, which is read at each start, and private memory stays as it is",
        0,
        Confidence.MEDIUM,
        ("the loader here can read packed ones", "the file no longer starts with a glibc older than 2.36"),
        f"link {name} with -Wl,-z,pack-relative-relocs",
        object=graph.objects[number].path,
        saving_us=_HUNDRED_RELOCATIONS_NS * count // 100_000,
    )
