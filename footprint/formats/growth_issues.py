"""What grew between two audits, for reviewers: new libraries with what they brought, and variables at their lines."""

from collections.abc import Iterator

from footprint.elf import shown_name
from footprint.formats.issues import Issue, Level, fingerprint
from footprint.formats.rules import GROWN_VARIABLE, NEW_LIBRARY
from footprint.model.finding import listed_places
from footprint.model.owner import file_name
from footprint.release.compare import Comparison, RowChange
from footprint.release.matching import comparable_name
from footprint.release.new_libraries import NewRoot, link_text, root_text
from footprint.units import format_bytes

__all__ = ("growth_issues", "root_sentence")


def growth_issues(found: Comparison, level: Level) -> Iterator[Issue]:
    """Return an issue for each root of the new libraries, and for each variable that grew."""
    for root in found.roots:
        yield _of_root(root, found, level)
    for one in found.grown_variables:
        yield _of_variable(one, found.count, level)


def root_sentence(root: NewRoot) -> str:
    """Write which library brought how many others, what they cost, and where it is linked."""
    libraries = "1 library" if root.library_count == 1 else f"{root.library_count:,} libraries"
    text = f"Came with {root_text(root)}: {libraries}, {format_bytes(root.retained_bytes)} retained."
    link = link_text(root)
    return f"{text} It {link}." if link else text


def _of_root(root: NewRoot, found: Comparison, level: Level) -> Issue:
    brought = [file_name(one.owner) for one in found.owners if one.came_with == root.owner]
    message = root_sentence(root)
    if brought:
        message += f" It brought {', '.join(brought[:5])}{f' and {len(brought) - 5} more' if len(brought) > 5 else ''}."
    user = root.needed_by[0] if root.needed_by else ""
    key = fingerprint((NEW_LIBRARY, root.name))
    return Issue(
        NEW_LIBRARY, level, root.name, message, key, root.retained_bytes, None, root.location, user, fails=False
    )


def _of_variable(one: RowChange, count: int, level: Level) -> Issue:
    name, owner = shown_name(one.symbol or ""), file_name(one.owner)
    before = "is new" if not one.old_mapped_bytes else f"had {format_bytes(one.old_mapped_bytes)} before"
    message = f"{name} of {owner} has {format_bytes(one.new_mapped_bytes)} in {one.section or 'memory'}, and {before}."
    if one.delta_bytes > 0:
        kind = "writable" if one.old_bytes is None or one.new_bytes is None else "private"
        message += f" It adds {format_bytes(one.delta_bytes)} of {kind} memory to each process"
        message += f", {format_bytes(one.delta_bytes * count)} to {count:,}." if count > 1 else "."
    if one.possible_locations:
        message += f" Its copies are declared at {listed_places(one.possible_locations, 'and')}."
    key = fingerprint((GROWN_VARIABLE, comparable_name(one.symbol or ""), owner))
    size_bytes = one.growth_bytes
    return Issue(GROWN_VARIABLE, level, name, message, key, size_bytes, None, one.location, one.owner, fails=False)
