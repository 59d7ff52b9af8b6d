"""The libraries that are new, by what brought them: the one that an object needs now, and those that came with it."""

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, NamedTuple

from footprint.members import Signed
from footprint.model.costs import ObjectCost, holders_of
from footprint.model.finding import SourceLocation, listed_places
from footprint.model.row import file_name

if TYPE_CHECKING:
    from footprint.model.audit import Audit


class NewRoot(NamedTuple):
    """A library that is new because an object needs it that is there without it.

    Attributes:
        owner: Its path.
        name: Its soname, else its file name.
        needed_by: The paths of the objects that need it and that are there without it; empty where it is opened at
            run time, or needed by the loader alone.
        library_count: How many libraries would leave with it, itself included.
        retained_bytes: The private memory of all of them.
        location: The line of a build file that links it, with its path below the folder of the project; else the line
            of the linker map; None where neither is known.
        possible_locations: The lines of build files that link it, where there are several.
        needed_for: The first object file that needs it, with the symbol, by the linker map; None without a map.
        delta_bytes: What it costs with all libraries that came with it: the sum of their `delta_bytes`.
        brought_count: How many libraries came with it, itself included.
    """

    owner: str
    name: str
    needed_by: tuple[str, ...]
    library_count: int
    retained_bytes: int
    location: SourceLocation | None = None
    possible_locations: tuple[SourceLocation, ...] = ()
    needed_for: str | None = None
    delta_bytes: Signed = 0
    brought_count: int = 1

    @property
    def libraries_text(self) -> str:
        """Return how many libraries came, in words."""
        return "1 library" if self.brought_count == 1 else f"{self.brought_count:,} libraries"


def came_with(new: "Audit", owners_before: Container[str]) -> dict[str, str | None]:
    """Return for each new object the root that it came with; None for the roots.

    That is the outermost new object that holds it, or, if several new objects bring it in, the first of them.

    Args:
        new: The audit now.
        owners_before: The owners now that were there before.
    """
    objects = {linked.path: linked for linked in new.objects}
    program = next(iter(objects), None)
    if program not in owners_before:
        # Another program, or no objects: nothing in it is new by itself.
        return {}
    added = [path for path in objects if path not in owners_before]
    needed_by = _needed_by(new.objects)
    held_by = {linked.path: linked.held_by for linked in new.objects}
    root_of: dict[str, str | None] = {}
    for path in added:
        holders = [holder for holder in holders_of(path, held_by) if holder not in owners_before]
        root_of[path] = holders[-1] if holders else None
    roots = [path for path in added if root_of[path] is None and _is_root(needed_by.get(path, ()), owners_before)]
    below = _reached_from(roots, new.objects)
    for path in added:
        if root_of[path] is None and path not in roots:
            root_of[path] = below.get(path)
    # An object that several roots bring in may hold others: these came with its root.
    return {path: (brought_by and root_of[brought_by]) or brought_by for path, brought_by in root_of.items()}


def _is_root(users: Iterable[str], owners_before: Container[str]) -> bool:
    """Return whether an object is there because of one that was there before, or because of nobody."""
    users = tuple(users)
    return not users or any(user in owners_before for user in users)


def _needed_by(objects: Iterable[ObjectCost]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for linked in objects:
        for need in linked.needs or ():
            users.setdefault(need.path, []).append(linked.path)
    return users


def _reached_from(roots: Iterable[str], objects: Iterable[ObjectCost]) -> dict[str, str]:
    """Return for each object the first of some roots that brings it in."""
    from footprint.loader.dependencies import reached  # noqa: PLC0415 # few comparisons have new libraries

    given = tuple(objects)
    numbers = {linked.path: number for number, linked in enumerate(given)}
    needed = [[numbers[need.path] for need in linked.needs or () if need.path in numbers] for linked in given]
    root_by_path: dict[str, str] = {}
    for root in roots:
        for number in reached(needed, (numbers[root],)):
            root_by_path.setdefault(given[number].path, root)
    return root_by_path


def new_roots(new: "Audit", owners_before: Container[str]) -> tuple[NewRoot, ...]:
    """Return the roots of the new libraries, the one that retains most first.

    Args:
        new: The audit now.
        owners_before: The owners now that were there before.
    """
    brought = came_with(new, owners_before)
    needed_by, held_by = _needed_by(new.objects), {linked.path: linked.held_by for linked in new.objects}
    counts: dict[str, int] = {}
    for path in held_by:
        for holder in (path, *holders_of(path, held_by)):
            counts[holder] = counts.get(holder, 0) + 1
    roots = [
        NewRoot(
            linked.path,
            linked.name,
            tuple(user for user in needed_by.get(linked.path, ()) if user in owners_before),
            counts[linked.path],
            linked.retained_bytes,
        )
        for linked in new.objects
        if brought.get(linked.path, "") is None
    ]
    return tuple(sorted(roots, key=lambda root: (-root.retained_bytes, root.owner)))


def root_text(root: NewRoot) -> str:
    """Return the name of a root, and who needs it."""
    users = [file_name(user) for user in root.needed_by]
    if not users:
        return f"{root.name}, which is opened at run time"
    if len(users) > 2:
        return f"{root.name}, which {users[0]} and {len(users) - 1} others now need"
    return f"{root.name}, which {' and '.join(users)} now need{'s' if len(users) == 1 else ''}"


def link_text(root: NewRoot) -> str:
    """Write where a root is linked, and for which object file, as the end of a sentence; "" where neither is known."""
    if root.location is not None:
        text = f"is linked at {listed_places((root.location,), '')}"
    elif root.possible_locations:
        text = f"may be linked at {listed_places(root.possible_locations, 'or')}"
    else:
        text = "is linked" if root.needed_for else ""
    return f"{text}, for {root.needed_for}" if root.needed_for else text
