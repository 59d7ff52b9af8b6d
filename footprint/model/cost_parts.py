"""Who pays for what N cost: the owners of the ledger, and parts of the cost that no row of it has."""

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.model.figures import FIGURES
from footprint.model.projection import FILES_TERM, Term, cost_at
from footprint.model.row import MemoryKind

if TYPE_CHECKING:
    from footprint.model.audit import Audit


OF_GROUP: Final = ("shared_between_bytes", "own_shared_bytes")
"""The figures of what a group costs beside what the rows of its ledger hold."""


class CostPart(NamedTuple):
    """A part of what N cost.

    Attributes:
        name: The owner, or the name of a term.
        each_bytes: What each of the N pays for it.
        once_bytes: What all of them pay for it together.
        is_owner: Whether it is an owner of the ledger.
    """

    name: str
    each_bytes: int
    once_bytes: int
    is_owner: bool

    def at_count(self, count: int) -> int:
        """Compute what `count` of them pay for it."""
        return self.once_bytes + count * self.each_bytes


def cost_parts(audit: "Audit") -> tuple[CostPart, ...]:
    """Return the parts of what N cost, which add up to the terms of the projection; none where the cost is unknown.

    Where the owners do not hold what each of the N pays, the terms are the parts: a forked worker that rewrites the
    memory of its parent pays more, one more thread pays less.
    """
    terms = audit.projection.terms
    each_bytes = cost_at([term for term in terms if not term.is_once], 1)
    costs, shared, kernel = _sums_by_owner(audit)
    if audit.members:
        unlisted = [(FIGURES[name].title, audit.figures[name].bytes or 0) for name in OF_GROUP]
    else:
        # The first term is what the rows add up to without those of the kernel.
        unlisted = [(term.name, term.size_bytes) for term in terms[1:] if not term.is_once and term.name not in kernel]
    if not costs or sum(costs.values()) + sum(size for _, size in unlisted) != each_bytes:
        return term_parts(terms)
    is_split = sum(shared.values()) == sum(term.size_bytes for term in terms if term.name == FILES_TERM)
    owners = [
        CostPart(name, size, shared.get(name, 0) if is_split else 0, is_owner=True) for name, size in costs.items()
    ]
    others = [CostPart(name, size, 0, is_owner=False) for name, size in unlisted if size]
    once = [term for term in terms if term.is_once and not (is_split and term.name == FILES_TERM)]
    return (*owners, *others, *term_parts(once))


def term_parts(terms: Iterable[Term]) -> tuple[CostPart, ...]:
    """Return terms as the parts of a cost."""
    return tuple(
        CostPart(t.name, 0 if t.is_once else t.size_bytes, t.size_bytes if t.is_once else 0, is_owner=False)
        for t in terms
    )


def _sums_by_owner(audit: "Audit") -> tuple[dict[str, int], dict[str, int], set[str]]:
    """Return what each owner holds and shares, and the names of what the kernel spends.

    Where private bytes are not known, each holds what it may write.
    """
    ledger = audit.ledger
    costs: dict[str, int] = {}
    once: dict[str, int] = {}
    size_name = "bytes"
    if audit.figures["private_bytes"].bytes is None:
        size_name, ledger = "mapped_bytes", tuple([row for row in ledger if row.is_writable])
    # One after the other: a list of them takes twice as long.
    sizes = map(attrgetter("owner", size_name, "shared_bytes"), ledger)
    for owner, own_bytes, shared_bytes in sizes:
        costs[owner] = costs.get(owner, 0) + (own_bytes or 0)
        if shared_bytes:
            once[owner] = once.get(owner, 0) + shared_bytes
    kernel = {(row.name or "").strip("[]") for row in ledger if row.kind is MemoryKind.KERNEL}
    return costs, once, kernel
