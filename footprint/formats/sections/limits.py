"""The limits on how many fit, as a part of a report."""

from collections.abc import Sequence

from footprint.formats.document import Block, Heading, Table
from footprint.model.projection import FitLimit, LimitUnit
from footprint.units import format_bytes

__all__ = ("limit_blocks",)


def limit_blocks(limits: Sequence[FitLimit], noun: str) -> list[Block]:
    """Write how many fit into each limit, the one that is hit first at the top.

    Args:
        limits: The limits in this order.
        noun: What fits: `processes`, `groups`.
    """
    if len(limits) < 2:
        return []

    def amount(limit: FitLimit, value: int) -> str:
        return format_bytes(value) if limit.unit is LimitUnit.BYTES else f"{value:,}"

    rows = tuple(
        (
            f"{limit.count:,}",
            amount(limit, limit.most),
            amount(limit, limit.taken) if limit.taken else "-",
            amount(limit, limit.each),
            limit.name,
        )
        for limit in limits
    )
    return [
        Heading("Limits, the one that is hit first at the top"),
        Table((noun, "limit", "taken", "each", "name"), rows),
    ]
