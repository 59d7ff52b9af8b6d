"""Rule `one-function`: libraries of which one object uses one function: they can be opened where it is called.

Below 200 us of start, the library and what leaves with it are not worth a dlopen.
"""

import re
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf.image import Image
from footprint.elf.names import shown_name
from footprint.errors import FootprintError
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import finders, is_always_there, listed, loads_plugins, weakest
from footprint.model.finding import Confidence, Finding, SourceLocation, is_packaged, listed_places

_LEAST_US: Final = 200
# Compilers call these by themselves, and their headers those of namespace std: no source has a call to put a dlopen at.
# Source: the Itanium C++ ABI, and the manuals and the runtime libraries of GCC and LLVM.
_EMITTED: Final = re.compile(
    "_Z(nw|na|dl|da|N?K?S[tabsiod])|__cxa_|__gxx_|__dynamic_cast$|_Unwind_|__emutls_|__stack_chk_|__morestack"
    "|GOMP_|GOACC_|__kmpc_|_gfortran_|__atomic_|__sync_|__(a|t|m|l|ub|hwa|d?f)san_|__sanitizer_|__gcov_"
    "|objc_|__objc_|runtime[.]|__go_|_d_|__gnat_|__rust_|swift_"
)
# What compilers call in these has no common beginning.
_RUNTIMES: Final = re.compile(r"lib(gcc_s|quadmath|go|supc\+\+)\.so")


def one_function(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Find the libraries of which others use one function, the slowest at start first."""
    findings = []
    leaving_us = graph.retained.sums(graph.start_us)
    for number in range(len(graph.bindings.symbols)):
        users = graph.bindings.users(number)
        if number in graph.roots or len(users) != 1 or graph.used_count(number) != 1 or is_always_there(graph, number):
            continue
        if leaving_us[number] < _LEAST_US or _requesters(graph, number) != list(users):
            continue  # where another one needs it, too, it would stay
        if finding := _finding(graph, number, users[0]):
            findings.append(finding)
    return tuple(sorted(findings, key=lambda finding: -finding.saving_us))


RULE: Final = Rule(
    "one-function", "A library of which one function is used", (Fact.GRAPH,), one_function, rank=6, is_of_start=True
)


def _requesters(graph: DependencyGraph, number: int) -> list[int]:
    """Return the objects that need a library, without those that leave with it."""
    needs = [{dependency.place for dependency in linked.dependencies} for linked in graph.objects]
    return [at for at, places in enumerate(needs) if number in places and at not in graph.retained[number]]


def _finding(graph: DependencyGraph, number: int, user: int) -> Finding | None:
    """Describe the finding; None where the function is not only called, or that is not known."""
    name, retained = graph.name(number), graph.retained[number]
    references = graph.bindings.references(user, number)
    function = references[0].name
    if _EMITTED.match(function) or _RUNTIMES.match(name):
        return None
    # Who uses a package looks for no calls in it.
    is_built = user == 0 or not is_packaged(graph.objects[user].path)
    functions, lines = _calls(graph.objects[user].library.image, function) if is_built else ([], [])
    # Without a PLT (-fno-plt) the relocation of a call is that of an address: the code says which it is.
    if not functions and not all(reference.is_call for reference in references):
        return None
    callers = f" in {listed(functions)}" if functions else ""
    places = f" ({listed_places(lines, 'and')})" if lines else ""
    shown = shown_name(function)
    # Plugins block the remedy, whatever else the process looks up.
    doubts = tuple(finders(graph, retained, is_blocked=loads_plugins(graph)))
    rest = "binds to nothing else of it, but may use more at run time" if doubts else "uses nothing else of it"
    return Finding(
        RULE.name,
        "call",
        name,
        f"{graph.name(user)} calls {shown} of {name}{callers}, and {rest}",
        graph.saving_bytes(retained),
        Confidence.BLOCKED if weakest(doubts) is Confidence.LOW else Confidence.LOW,
        (
            "a process that calls it pays all the same",
            "its constructors and its names would come later",
            *(doubt.reason for doubt in doubts),
        ),
        f"open {name} with dlopen where {graph.name(user)} calls {shown}{places}, and drop it from the link",
        leaves=tuple([graph.objects[other].path for other in sorted(retained - {number})]),
        location=lines[0] if lines else None,
        object=graph.objects[user].path,
        saving_us=graph.retained_start_us[number],
    )


def _calls(image: Image, function: str) -> tuple[list[str], list[SourceLocation]]:
    """Return the functions that call a function of another file, and the lines of the calls, as far as they are known.

    Where the file has no symbol for a function, its call has an address.
    """
    # Few programs have such a library: what reads code and source lines would take longer than all else of the rule.
    from footprint.dwarf.code_lines import code_lines  # noqa: PLC0415
    from footprint.elf.call_sites import call_sites  # noqa: PLC0415

    try:
        sites = call_sites(image, function)
        lines = code_lines(image, [site.vaddr for site in sites]) if sites else {}
    except FootprintError:
        return [], []
    functions = [shown_name(site.function) for site in sites if site.function]
    functions += [f"{site.vaddr:#x}" for site in sites if not site.function]
    return list(dict.fromkeys(functions)), list(
        dict.fromkeys([lines[site.vaddr] for site in sites if site.vaddr in lines])
    )
