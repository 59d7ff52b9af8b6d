"""The names of owners and symbols in reports."""

from collections.abc import Iterable

from footprint.elf import shown_name

__all__ = ("Names",)


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
        return name if self.is_whole else shown_name(name)
