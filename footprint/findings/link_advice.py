"""What to change in the link of a program so that it no longer needs a library."""

from collections.abc import Iterable, Sequence
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.errors import FootprintError
from footprint.members import lazy_pattern

# Compilers leave their name there: null-terminated texts.
_COMMENT: Final = ".comment"
_RUSTC: Final = b"rustc version "
_GO: Final = ".go.buildinfo"
# The drivers of C++ link them by themselves.
_ADDED_BY_CXX: Final = lazy_pattern(r"lib(stdc\+\+|c\+\+|c\+\+abi|m|gcc_s)\.so")


def link_option(graph: DependencyGraph, number: int) -> str:
    """Return the linker's option for a library, or its soname where the system has no development link for it."""
    name = graph.link_name(graph.objects[number])
    return graph.name(number) if name is None else f"-l{name}"


def program_advice(graph: DependencyGraph, libraries: Iterable[int]) -> str:
    """Return how to drop libraries from the link of the program, in the words of the tool that built it.

    `docs/findings/unused-library.md` says it for build systems, which leave no name in a program.
    """
    dropped, tool = sorted(libraries), _built_with(graph)
    runtimes = [number for number in dropped if graph.is_cxx_runtime(number) and not tool]
    added = [number for number in dropped if runtimes and _ADDED_BY_CXX.match(graph.name(number))]
    rest = [number for number in dropped if number not in added]
    steps = [_dropped(graph, rest, tool)] if rest else []
    if added:
        # It is C code that was linked as C++.
        options, name = " ".join([link_option(graph, number) for number in added]), graph.name(0)
        instead = f"link {name} with gcc or clang instead of g++ or clang++, which add {options} by themselves"
        steps.insert(0, f"{instead}, or write -Wl,--as-needed there")
    return "; ".join(steps)


def _dropped(graph: DependencyGraph, libraries: Sequence[int], tool: str) -> str:
    name = graph.name(0)
    options_found = [link_option(graph, number) for number in libraries]
    options, them = " ".join(options_found), "it" if len(options_found) == 1 else "them"
    match tool:
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
