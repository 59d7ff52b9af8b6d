"""The files that make a process, found by the rules of its loader. Nothing is ever run."""

from footprint.loader.link_map import Dependency, Linked, LinkMap, MissingLibrary, Needs, Searches, link
from footprint.loader.map_entry import FoundBy
from footprint.loader.system import Library, Refusal, System
from footprint.loader.target import Environment, Libc

__all__ = (
    "Dependency",
    "Environment",
    "FoundBy",
    "Libc",
    "Library",
    "LinkMap",
    "Linked",
    "MissingLibrary",
    "Needs",
    "Refusal",
    "Searches",
    "System",
    "link",
)
