"""Names as reports show them."""

from collections.abc import Iterable

from footprint.elf import shown_name

__all__ = ("Names",)


class Names:
    """How owners and symbols are shown: short and demangled, or whole and as the linker has them.

    Args:
        owners: All owners of the report: a path is cut to its last part where that names only one of them.
        is_whole: Whether to show names whole.
    """

    def __init__(self, owners: Iterable[str], *, is_whole: bool) -> None:
        self.is_whole = is_whole
        last_parts: dict[str, set[str]] = {}
        for owner in () if is_whole else owners:
            if owner.startswith("/"):
                last_parts.setdefault(owner.rsplit("/", 1)[-1], set()).add(owner)
        self._short = {paths.pop(): last for last, paths in last_parts.items() if last and len(paths) == 1}

    def owner(self, owner: str) -> str:
        """Give what to show for an owner."""
        return self._short.get(owner, owner)

    def symbol(self, name: str) -> str:
        """Give what to show for a linker name, or for a remainder in brackets."""
        return name if self.is_whole else shown_name(name)
