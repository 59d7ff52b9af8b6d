"""What grew between the moments of one heap profile, by function."""

from itertools import pairwise
from typing import NamedTuple

from footprint.attribution.heap_usage import HeapUsage
from footprint.errors import UsageError


class GrownFunction(NamedTuple):
    """The memory of one function at the first and at the last moment.

    Attributes:
        owner: The path of its object, or in brackets why it is not known.
        function: Its name, or in brackets why there is none.
        first_bytes: Its bytes at the first moment.
        last_bytes: Its bytes at the last moment.
        step: The numbers of the two successive snapshots between which it grew most.
        step_bytes: By how much it grew between them.
    """

    owner: str
    function: str
    first_bytes: int
    last_bytes: int
    step: tuple[int, int]
    step_bytes: int

    @property
    def growth_bytes(self) -> int:
        """By how much it grew from the first to the last moment."""
        return self.last_bytes - self.first_bytes


class Growth(NamedTuple):
    """What grew in a profile.

    Attributes:
        numbers: The numbers of the snapshots that were compared, in the order of time.
        functions: Each function that has memory at one of them, the one that grew most first. Their growth adds up to
            that of the profile.
    """

    numbers: tuple[int, ...]
    functions: tuple[GrownFunction, ...]


def growth_of(usage: HeapUsage) -> Growth:
    """Return what grew from the first call tree of a profile to its chosen moment.

    Raises:
        UsageError: If no call tree is earlier than the chosen moment.
    """
    moments = []
    for snapshot in usage.profile.snapshots:
        if snapshot.tree is not None:
            sizes = {share[:2]: share.size_bytes for share in usage.shares_in(snapshot.tree)}
            moments.append((snapshot.number, sizes))
        if snapshot is usage.snapshot:
            break
    if usage.snapshot is None or len(moments) < 2:
        raise UsageError(
            f"{usage.file} has no call tree before this moment: growth needs two (--at end chooses the last moment; "
            "massif --detailed-freq=1 keeps all call trees)"
        )
    functions = []
    for owner, function in dict.fromkeys(place for _, sizes in moments for place in sizes):
        sizes_bytes = [(number, sizes.get((owner, function), 0)) for number, sizes in moments]
        before, after = max(pairwise(sizes_bytes), key=lambda step: step[1][1] - step[0][1])
        step = (before[0], after[0])
        functions.append(
            GrownFunction(owner, function, sizes_bytes[0][1], sizes_bytes[-1][1], step, after[1] - before[1])
        )
    functions.sort(key=lambda f: (-f.growth_bytes, -f.step_bytes, f.owner, f.function))
    return Growth(tuple([number for number, _ in moments]), tuple(functions))
