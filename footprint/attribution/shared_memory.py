"""Shared memory that a process, or a group of processes, brings with it: each further copy makes its own.

Memory without a name that others could open (memfd, shared anonymous memory, SysV segments, deleted files) belongs to
whoever maps it. If all who map it are counted, one more copy costs as much again. Memory under a name (`/dev/shm/NAME`)
is nearly always made by each program for itself as well, but a copy may open the same name: that is an assumption, and
a note states it. Pages of ordinary files belong to the file, and are paid once.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from enum import Enum
from typing import Final

from footprint.errors import Note
from footprint.model.owner import DELETED
from footprint.process import Mapping
from footprint.process.snapshot import ObjectIdentity
from footprint.units import format_bytes

__all__ = (
    "Backing",
    "backing_of",
    "own_shared_bytes",
    "own_shared_bytes_of_group",
    "shared_memory_notes",
)


class Backing(Enum):
    """What is behind a shared mapping."""

    NAMELESS = "memory that nobody else can open"
    NAMED = "memory under a name"
    FILE = "a file"


_SHARE_UNIT_BYTES: Final = 1024  # the kernel rounds each share down to it
_NAMELESS: Final = ("/memfd:", "/dev/zero", "/SYSV", "[anon_shmem:", "/anon_hugepage")
_NAMED: Final = ("/dev/shm/", "/run/shm/", "/dev/ashmem/")  # noqa: S108 # names are compared, nothing is opened


def backing_of(mapping: Mapping) -> Backing | None:
    """Return what is behind a shared mapping; None for a private one, and for memory of devices."""
    if not mapping.is_shared:
        return None
    name = mapping.name
    if name.startswith(_NAMELESS) or name.endswith(DELETED):
        return Backing.NAMELESS
    if name.startswith(_NAMED):
        return Backing.NAMED
    return Backing.FILE if mapping.inode and not name.startswith("/dev/") else None


def _sole_bytes(mapping: Mapping) -> int:
    """Return how much of a mapping no other process has mapped."""
    count = mapping.counters.get
    return (count("Private_Clean") or 0) + (count("Private_Dirty") or 0)


def own_shared_bytes(mappings: Iterable[Mapping]) -> int:
    """Add up the shared memory of one process that only it has mapped: each started copy makes its own."""
    return sum(_sole_bytes(one) for one in mappings if backing_of(one) in {Backing.NAMELESS, Backing.NAMED})


def own_shared_bytes_of_group(
    members: Sequence[Sequence[Mapping]],
    allocated_bytes: Dict[ObjectIdentity, int] | None = None,
    *,
    is_partial: bool = False,
) -> int:
    """Add up the shared memory that only some processes have mapped, each page once.

    The proportional shares (`Pss`) of all who map a page add up to the page. Memory that processes outside of the group
    have mapped as well is counted by the shares of the members. Memory that several members share, and nobody else as
    far as the shares tell, counts as a whole: also what was only allocated, or touched by a process that has ended.

    Args:
        members: The mappings of each process.
        allocated_bytes: What each shared memory holds in all, where that is known.
        is_partial: Whether others that map it could not be read: it has at least what one member has of it.
    """
    shares: Counter[ObjectIdentity] = Counter()
    most_shares: Counter[ObjectIdentity] = Counter()
    largest: Counter[ObjectIdentity] = Counter()
    several: set[ObjectIdentity] = set()
    for mappings in members:
        for one in mappings:
            if backing_of(one) not in {Backing.NAMELESS, Backing.NAMED}:
                continue
            count, identity = one.counters.get, (one.device, one.inode)
            shares[identity] += count("Pss") or 0
            most_shares[identity] += (count("Pss") or 0) + _SHARE_UNIT_BYTES
            largest[identity] = max(largest[identity], count("Rss") or 0)
            if count("Shared_Dirty") or count("Shared_Clean"):
                several.add(identity)
    whole = {
        identity: size_bytes
        for identity, size_bytes in (allocated_bytes or {}).items()
        # The shares of all who map some memory are never less than what one of them has.
        if identity in several and most_shares[identity] >= largest[identity]
    }
    least = largest if is_partial else {}
    return sum(
        max(share_bytes, whole.get(identity, 0), least.get(identity, 0)) for identity, share_bytes in shares.items()
    )


def shared_memory_notes(mappings: Sequence[Mapping], source: str) -> list[Note]:
    """Return a note for what may be counted for each copy or once: from the mappings nobody can tell."""
    notes = []
    for backing, is_for_each in ((Backing.NAMED, True), (Backing.FILE, False)):
        found = [one for one in mappings if backing_of(one) is backing and _sole_bytes(one)]
        if not found:
            continue
        names = ", ".join(dict.fromkeys(one.name for one in found[:3])) + (", ..." if len(found) > 3 else "")
        size = format_bytes(sum(map(_sole_bytes, found)))
        counted = (
            f"is counted for each copy; if copies open the same name, each costs {size} less"
            if is_for_each
            else f"is counted once; if each copy maps a file of its own, each costs {size} more"
        )
        notes.append(Note("shared-memory-of-whom", source, f"{size} of {names} that only this process maps {counted}"))
    return notes
