"""Build processes with a heap, and profiles of it, from values, for the tests that join both."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from footprint.attribution.heap_usage import HeapUsage, heap_usage, name_frames, place_at
from footprint.attribution.process_audit import audit_snapshot
from footprint.attribution.symbol_ranges import PageNumbers
from footprint.elf.contents import Contents
from footprint.heap.allocators import Allocators
from footprint.heap.formats import read_profile
from footprint.model.audit import Audit
from footprint.process.snapshot import read_texts
from tests.massifwriter import ROOT, Line, Moment, massif

KIB = 1024
PROGRAM = "/bin/program"


class NoFiles:
    """Files that cannot be had."""

    def contents_of(self, _loaded: object) -> Contents | None:
        """Return nothing."""
        return None

    def relocated_pages_of(self, _loaded: object, _page_bytes: int) -> PageNumbers:
        """Return none."""
        return PageNumbers(())


class Area(NamedTuple):
    """A mapping: its name, how much is mapped and how much is private, in KiB."""

    name: str
    mapped_kib: int
    private_kib: int
    permissions: str = "rw-p"


def process(*areas: Area) -> Audit:
    """Return the audit of a process that has a program and these mappings, with gaps between them."""
    lines = [f"00400000-00401000 r-xp 00000000 08:01 7 {PROGRAM}\n{_counted(4, 0)}"]
    start = 0x10_0000_0000 + 0x1000
    for area in areas:
        end = start + area.mapped_kib * KIB
        counters = _counted(area.mapped_kib, area.private_kib)
        lines.append(f"{start:x}-{end:x} {area.permissions} 00000000 00:00 0 {area.name}\n{counters}")
        start = end + 0x10000
    (snapshot,) = read_texts("".join(lines).encode(), "a text")
    return audit_snapshot(snapshot, {}, NoFiles(), target="a text")


def _counted(mapped_kib: int, private_kib: int) -> str:
    told = {"Size": mapped_kib, "KernelPageSize": 4, "Rss": private_kib, "Private_Dirty": private_kib}
    told |= dict.fromkeys(("Shared_Clean", "Shared_Dirty", "Private_Clean", "Swap"), 0) | {"Anonymous": private_kib}
    return "".join(f"{name}: {size} kB\n" for name, size in told.items())


def stacks(*sizes: tuple[str, str, int], root: str = ROOT) -> Line:
    """Return a tree of functions that asked for memory, each by one call: object, function and bytes."""
    callers = tuple(
        Line(size_bytes, f"0x{16 * place + 16:X}: {function} (in {owner})")
        for place, (owner, function, size_bytes) in enumerate(sizes)
    )
    return Line(sum(size_bytes for _, _, size_bytes in sizes), root, callers)


def profiled(*moments: Moment, at: str | None = "end", description: str = "(none)", time_unit: str = "i") -> HeapUsage:
    """Return what a profile of massif says of one of its moments."""
    profile = read_profile(massif(moments, description, time_unit=time_unit), "massif.out")
    return heap_usage(
        "massif.out", profile, place_at(profile, at, "massif.out"), name_frames(profile, "", Allocators())
    )


def dhat(*points: dict[str, Any], end: int = 10**9) -> HeapUsage:
    """Return what a profile of DHAT says of its end; each point is of a function of its own (`fs`): `f1`, `f2`, ...."""
    defaults = {"tb": 0, "tbk": 1, "tl": 0, "mb": 0, "mbk": 0, "rb": 1, "wb": 0}
    rows = []
    for place, point in enumerate(points, 1):
        size_bytes, count = point["tb"], point.get("tbk", 1)
        left = {"gb": size_bytes, "gbk": count, "eb": size_bytes, "ebk": count}
        rows.append({**defaults, "fs": [place], **left, **point})
    labels = ["[root]", *(f"0x{16 * place:X}: f{place} (in {PROGRAM})" for place in range(1, len(points) + 1))]
    facts = {"dhatFileVersion": 2, "mode": "heap", "bklt": True, "bkacc": True, "tu": "instrs", "cmd": "a", "pid": 1}
    text = json.dumps(facts | {"te": end, "tg": end, "pps": rows, "ftbl": labels})
    profile = read_profile(text.encode(), "dhat.json")
    return heap_usage("d", profile, place_at(profile, "end", "d"), name_frames(profile, "d", Allocators()))


def moment(*sizes: tuple[str, str, int], time: float = 1, extra_bytes: int = 0, is_peak: bool = False) -> Moment:
    """Return a moment at which these functions had asked for so much."""
    return Moment(time, sum(size[2] for size in sizes), extra_bytes, tree=stacks(*sizes), is_peak=is_peak)


def end(*sizes: tuple[str, str, int, int], time: float = 9) -> tuple[Moment, Moment]:
    """Return the end of a run, as XTree has it, at which these functions had asked for so many bytes and blocks."""
    live, blocks = (
        stacks(*((owner, function, amounts[at]) for owner, function, *amounts in sizes), root=root)
        for at, root in enumerate(("curB : currently allocated Bytes", "curBk : currently allocated Blocks"))
    )
    return Moment(time, live.size_bytes, tree=live), Moment(time, blocks.size_bytes, tree=blocks)


def heap_rows(audit: Audit) -> list[tuple[str, str | None, int | None, int]]:
    """Return the rows of the heap: owner, name, private bytes and virtual size; the largest first."""
    return [(row.owner, row.name, row.bytes, row.mapped_bytes) for row in audit.ledger if row.kind.value == "heap"]


def sums(audit: Audit, owners: Sequence[str] = ("heap", "anonymous")) -> Mapping[str, int]:
    """Return the private bytes of some kinds together."""
    kinds: dict[str, int] = dict.fromkeys(owners, 0)
    for row in audit.ledger:
        if row.kind.value in kinds:
            kinds[row.kind.value] += row.bytes or 0
    return kinds
