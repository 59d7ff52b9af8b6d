"""What to change in the link of a program so that it no longer needs a library."""

from collections.abc import Iterable
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.errors import FootprintError

__all__ = ("link_option", "program_advice")

# Compilers leave their name there: null-terminated texts.
_COMMENT: Final = ".comment"
_RUSTC: Final = b"rustc version "
_GO: Final = ".go.buildinfo"


def link_option(graph: DependencyGraph, number: int) -> str:
    """Return the linker's option for a library, or its soname where the system has no development link for it."""
    name = graph.link_name(graph.objects[number])
    return graph.name(number) if name is None else f"-l{name}"


def program_advice(graph: DependencyGraph, libraries: Iterable[int]) -> str:
    """Return how to drop libraries from the link of the program, in the words of the tool that built it.

    `docs/findings/unused-library.md` says it for build systems, which leave no name in a program.
    """
    name = graph.name(0)
    found = [link_option(graph, number) for number in sorted(libraries)]
    options, them = " ".join(found), "it" if len(found) == 1 else "them"
    match _built_with(graph):
        case "rustc":
            return (
                f"find what links {options} into {name} although rustc passes --as-needed: a link-arg"
                " -Wl,--no-as-needed, or a library named by its path"
            )
        case "cgo":
            return f"drop {options} from #cgo LDFLAGS of {name}, or write -Wl,--as-needed before {them} there"
        case _:
            return f"drop {options} from the link of {name}, or write -Wl,--as-needed before {them} there"


def _built_with(graph: DependencyGraph) -> str:
    """Return `rustc` or `cgo` where the program says so, or ""."""
    try:
        image = graph.objects[0].library.image
        for section in image.sections:
            if section.name == _GO:
                return "cgo"
            if section.name == _COMMENT and _RUSTC in bytes(image.section_bytes(section)):
                return "rustc"
    except FootprintError:
        return ""
    return ""
