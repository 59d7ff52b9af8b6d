"""The link map of a live process, which has opened more objects with dlopen."""

from collections.abc import Iterable
from dataclasses import replace

from footprint.loader.link_map import Dependency, Linked, LinkMap
from footprint.loader.map_entry import FoundBy
from footprint.loader.system import Library

__all__ = ("with_opened",)


def with_opened(link_map: LinkMap, opened: Iterable[tuple[str, Library]]) -> LinkMap:
    """Append the objects that a process opened with dlopen to the link map of its start.

    Their dependencies are found by name among all objects, because the process has loaded them. Its scopes (RTLD_LOCAL,
    RTLD_DEEPBIND) leave no trace in memory.

    Args:
        link_map: The link map of the start.
        opened: The path and file of each other object, in load order as far as it is known.
    """
    before = link_map.objects
    objects = [*before, *(Linked(path, library, FoundBy.OPENED, None, ()) for path, library in opened)]
    places: dict[str, int] = {}
    for place, linked in enumerate(objects):
        for name in (linked.library.linkage.soname, linked.path.rsplit("/", 1)[-1], linked.path):
            if name:
                places.setdefault(name, place)
    for place in range(len(before), len(objects)):
        needed = objects[place].library.linkage.needed
        dependencies = tuple(
            [Dependency(name, places.get(name, places.get(name.rsplit("/", 1)[-1]))) for name in needed]
        )
        objects[place] = replace(objects[place], dependencies=dependencies)
    # The dependencies of an opened object were loaded with it.
    for place in range(len(before), len(objects)):
        for dependency in objects[place].dependencies:
            at = dependency.place
            if at is not None and at >= len(before) and at != place and objects[at].loader is None and at > place:
                objects[at] = replace(objects[at], loader=place)
    return replace(link_map, objects=tuple(objects))
