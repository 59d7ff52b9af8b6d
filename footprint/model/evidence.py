"""How a figure is known."""

from collections.abc import Iterable
from enum import StrEnum

__all__ = ("Evidence", "weakest")


class Evidence(StrEnum):
    """How a figure is known, from the strongest to the weakest."""

    MEASURED = "measured"
    """A kernel counter or page bit, as it stands."""
    DERIVED = "derived"
    """Exact arithmetic on measured figures."""
    PREDICTED = "predicted"
    """From ELF files, before running."""
    ESTIMATED = "estimated"
    """A model with constants, or an assumption that is usually right."""
    VIRTUAL = "virtual"
    """Address space only: an upper bound."""


_STRENGTH = {evidence: place for place, evidence in enumerate(Evidence)}


def weakest(evidence: Iterable[Evidence]) -> Evidence:
    """Return the weakest evidence of several figures, which is that of their sum; measured for none, as 0 is exact."""
    return max(evidence, key=_STRENGTH.__getitem__, default=Evidence.MEASURED)
