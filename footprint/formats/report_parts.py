"""What reports of several verbs show alike: names of owners, the end of a long table, limits."""

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from typing import Final, TypeVar

from footprint.formats.document import Block, Heading, Paragraph, Table
from footprint.members import lazy_pattern
from footprint.model.projection import FitLimit, LimitUnit
from footprint.text.units import format_bytes


def cache_remark(limits: Sequence[FitLimit]) -> str:
    """Describe what page cache means for how many fit: beside it, fewer may."""
    beside_count = min([limit.beside_cache_count for limit in limits])
    remark = "files that they map; the kernel drops it where memory is short"
    return remark if beside_count == limits[0].count else f"{remark}, {beside_count:,} fit beside it"


def limit_blocks(limits: Sequence[FitLimit], noun: str) -> list[Block]:
    """Show how many fit into each limit, the one that is hit first at the top.

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


_T = TypeVar("_T")
_OPTION: Final = lazy_pattern(r": (?:-v|--top 0) (?=shows (?:it|them|all|which))")


def cut_at(rows: Sequence[_T], top: int) -> tuple[Sequence[_T], Sequence[_T]]:
    """Return the first `top` rows, or all for 0, and the rest."""
    count = top or len(rows)
    return rows[:count], rows[count:]


def more(count: int) -> str:
    """Return the label of the row that stands for those that are left out."""
    return f"[{count:,} more: --top 0 shows all]"


def without_options(text: str) -> str:
    """Name JavaScript in place of the option that shows what is left out: a report in a browser takes no options."""
    return _OPTION.sub(": with JavaScript this page ", text)


def rest_rows(count: int, column_count: int, *figures: str) -> tuple[tuple[str, ...], ...]:
    """Return the row that stands for `count` others, with their sums in its first columns; none for 0."""
    return (sum_row(more(count), column_count, *figures),) if count else ()


def sum_row(label: str, column_count: int, *figures: str) -> tuple[str, ...]:
    """Return a row with figures in its first columns and a label in the last one."""
    return (*figures, *[""] * (column_count - len(figures) - 1), label)


class Names:
    """Short names of owners and demangled names of symbols; or full paths and linker names.

    Args:
        owners: All owners of the report. A path is cut to its last part where no other owner has the same last part.
        is_whole: Whether to show full paths and linker names.
    """

    def __init__(self, owners: Iterable[str], *, is_whole: bool) -> None:
        self.is_whole = is_whole
        last_parts: dict[str, set[str]] = {}
        for owner in () if is_whole else owners:
            if owner.startswith("/"):
                last_parts.setdefault(owner.rsplit("/", 1)[-1], set()).add(owner)
        self._short = {paths.pop(): last for last, paths in last_parts.items() if last and len(paths) == 1}

    def owner(self, owner: str) -> str:
        """Return the name to show for an owner."""
        return self._short.get(owner, owner)

    def symbol(self, name: str) -> str:
        """Return the name to show for a linker name, or for a remainder in brackets."""
        if self.is_whole:
            return name
        from footprint.elf.names import shown_name  # noqa: PLC0415 # many reports name owners alone

        return shown_name(name)


_FEW = 3


def debug_file_blocks(debug_files: Dict[str, str], names: Names, *, is_whole: bool) -> list[Block]:
    """Name the debug file of each owner; only count them where there are many and `is_whole` is false."""
    if len(debug_files) > _FEW and not is_whole:
        return [Paragraph(f"The names in {len(debug_files)} stripped objects are from debug files: -v shows which.")]
    return [
        Paragraph(f"The names in {names.owner(owner)}, which is stripped, are from {path}.")
        for owner, path in debug_files.items()
    ]
