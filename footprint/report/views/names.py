"""Names as reports show them."""

from collections.abc import Iterable

__all__ = ("short_names",)


def short_names(owners: Iterable[str]) -> dict[str, str]:
    """Give the last part of each path, where it names only one of them."""
    last_parts: dict[str, set[str]] = {}
    for owner in owners:
        if owner.startswith("/"):
            last_parts.setdefault(owner.rsplit("/", 1)[-1], set()).add(owner)
    return {paths.pop(): last for last, paths in last_parts.items() if last and len(paths) == 1}
