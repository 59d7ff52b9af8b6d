"""Which processes of a group came, went, or changed."""

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.members import Signed, json_members

if TYPE_CHECKING:
    from footprint.model.audit import GroupMember


_NUMBERS: Final = re.compile("[0-9]+")


class MemberStatus(StrEnum):
    """What happened to a process of a group."""

    CAME = "came"
    WENT = "went"
    CHANGED = "changed"
    SAME = "same"


@json_members("status pid old_pid command old_bytes new_bytes delta_bytes per_process_bytes")
class MemberChange(NamedTuple):
    """One process of a group, before and now.

    Attributes:
        status: What happened to it: to its private memory, where it is there on both sides.
        pid: The process now; null where it went, or is not known.
        old_pid: The process before; null where it came, or is not known.
        command: Its command line or name.
        old_bytes: Its private memory before; 0 where it was not there, null where it is not known.
        new_bytes: The same now.
        per_process_bytes: What it costs now, or did at last; null where it is not known.
    """

    status: MemberStatus
    pid: int | None
    old_pid: int | None
    command: str
    old_bytes: int | None
    new_bytes: int | None
    per_process_bytes: int | None

    @property
    def delta_bytes(self) -> Signed | None:
        """Return the growth of its private memory; None where that is not known."""
        return None if self.old_bytes is None or self.new_bytes is None else self.new_bytes - self.old_bytes


_Pair = tuple["GroupMember | None", "GroupMember | None"]


def member_changes(old: Sequence["GroupMember"], new: Sequence["GroupMember"]) -> tuple[MemberChange, ...]:
    """Return each process of two groups: those that came first, then those that went, then the largest change.

    A process is the same where its PID and its command are. Of the others, those of one command are paired in their
    order, whatever numbers are in it: a group that was started again has other PIDs, and workers name their number.
    """
    pairs, before, now = _paired(old, new, lambda member: (member.pid, member.command))
    more, before, now = _paired(before, now, lambda member: _NUMBERS.sub("", member.command))
    changes = [
        *(_change(None, member) for member in now),
        *(_change(member, None) for member in before),
        *sorted((_change(*pair) for pair in (*pairs, *more)), key=lambda change: -abs(change.delta_bytes or 0)),
    ]
    return tuple(changes)


def _paired(
    old: Iterable["GroupMember"], new: Iterable["GroupMember"], key: Callable[["GroupMember"], object]
) -> tuple[list[_Pair], list["GroupMember"], list["GroupMember"]]:
    """Pair processes with the same key, in their order; return the pairs, and those that are left of each side."""
    waiting: dict[object, list[GroupMember]] = {}
    for member in old:
        waiting.setdefault(key(member), []).append(member)
    pairs: list[_Pair] = []
    rest = []
    for member in new:
        same = waiting.get(key(member))
        if same:
            pairs.append((same.pop(0), member))
        else:
            rest.append(member)
    left = {id(member) for same in waiting.values() for member in same}
    return pairs, [member for member in old if id(member) in left], rest


def _change(old: "GroupMember | None", new: "GroupMember | None") -> MemberChange:
    last = new or old
    if last is None:
        raise ValueError("a change is of a process")
    old_bytes = old.totals.private.bytes if old else 0
    new_bytes = new.totals.private.bytes if new else 0
    both = MemberStatus.SAME if old_bytes == new_bytes else MemberStatus.CHANGED
    return MemberChange(
        MemberStatus.CAME if old is None else MemberStatus.WENT if new is None else both,
        new.pid if new else None,
        old.pid if old else None,
        last.command,
        old_bytes,
        new_bytes,
        last.totals.per_process.bytes,
    )
