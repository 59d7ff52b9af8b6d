"""What speaks against dropping needs from a process: what would differ, and what no file can tell.

The process without the needs is computed as its loader would build it, and compared: files, order, symbols, versions.
Beside that a library may do something by being there: by its constructors, or for whoever finds it by name or in the
list of loaded objects. Each doubt says how sure the removal can still be.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf.abi import EM_AARCH64, EM_LOONGARCH, EM_PPC64, EM_RISCV, PF_X, PT_GNU_STACK
from footprint.elf.dynsym import weak_names
from footprint.errors import FootprintError
from footprint.loader.dependencies import LibraryRemoval, Rebinding, start_order
from footprint.loader.link_map import LinkMap
from footprint.loader.map_entry import FoundBy
from footprint.loader.target import Libc
from footprint.members import NamedTuple, lazy_pattern, replace
from footprint.model.finding import CONFIDENCES, Confidence, Finding
from footprint.text.units import counted

# Every process has the C library and the loader.
_ALWAYS: Final = re.compile(r"(libc\.so|libc\.musl|ld-linux|ld-musl|ld64\.so|ld\.so|linux-vdso|linux-gate)")
# What the C library opens by itself: to end a thread, to look up users and hosts, and to convert texts. The modules of
# gconv have no names of their own, and bring some libraries.
_OPENED_BY_LIBC: Final = re.compile(r"lib(gcc_s\.so|nss_|(JIS|JISX0213|KSC|CNS|GB|ISOIR165)\.so)")
_GCONV_FOLDER: Final = "/gconv/"
# A program that is linked for plugins exports at least so many symbols that these bind to.
_LEAST_SHOWN: Final = 32
_MOST_NAMED: Final = 3
# glibc makes the stack executable for a file without PT_GNU_STACK, but not on these (sysdeps/*/stackinfo.h).
_NO_CODE_ON_STACK: Final = {EM_AARCH64, EM_PPC64, EM_RISCV, EM_LOONGARCH}
# Compiled twice from one source (math/, sysdeps/ieee754): `tests/host/test_bindings.py` compares what they return.
_WITH_THE_SAME_FUNCTIONS: Final = {"libc.so.6", "libm.so.6"}
# Compilers leave their name there: null-terminated texts.
_COMMENT: Final = ".comment"
_RUSTC: Final = b"rustc version "
_GO: Final = ".go.buildinfo"
# The drivers of C++ link them by themselves.
_ADDED_BY_CXX: Final = lazy_pattern(r"lib(stdc\+\+|c\+\+|c\+\+abi|m|gcc_s)\.so")


class Doubt(NamedTuple):
    """A reason against dropping some needs.

    Attributes:
        confidence: How sure the removal can still be.
        reason: The reason.
        is_fatal: Whether the loader would refuse to start the program.
    """

    confidence: Confidence
    reason: str
    is_fatal: bool = False


def doubts(
    graph: DependencyGraph, without: LibraryRemoval, leaving: frozenset[int], order: Sequence[Doubt] | None = None
) -> tuple[Doubt, ...]:
    """Find what speaks against dropping needs.

    Args:
        graph: The process.
        without: The process without the needs.
        leaving: The objects that leave it.
        order: What `order_differences` found; None to find it now.
    """
    listed = differences(graph, without, leaving, order)
    if graph.start_failures:
        listed.append(Doubt(Confidence.MEDIUM, "the program does not start as it is, or ends at a call; see its notes"))
    if graph.link_map.missing:
        listed.append(Doubt(Confidence.MEDIUM, "libraries are missing, which may bind to it"))
    unread = {note.subject for note in graph.bindings.notes}
    for number, linked in enumerate(graph.link_map.objects if unread else ()):
        if linked.library.real_path in unread:
            reason = f"the symbols of {graph.name(number)} cannot be read: it may bind to others, and they to it"
            listed.append(Doubt(Confidence.BLOCKED, reason))
    if leaving:
        is_blocked = any(d.confidence is Confidence.BLOCKED for d in listed)
        listed += [*finders(graph, leaving, is_blocked=is_blocked), *_presence(graph, leaving)]
    if leaving and not listed:
        listed += _readers_of_mappings(graph, leaving)
    return tuple(sorted(listed, key=lambda d: (not d.is_fatal, d.confidence is not Confidence.BLOCKED)))


def differences(
    graph: DependencyGraph, without: LibraryRemoval, leaving: frozenset[int], order: Sequence[Doubt] | None = None
) -> list[Doubt]:
    """Find what the loader would do differently; the arguments are those of `doubts`."""
    return [
        *_missing(graph, without),
        *_other_files(graph, without),
        *_other_bindings(graph, without, leaving),
        *_versions(graph, leaving),
        *(order_differences(graph, without) if order is None else order),
    ]


def order_differences(graph: DependencyGraph, without: LibraryRemoval) -> tuple[Doubt, ...]:
    """Find what the loader would do at another time, whatever leaves."""
    return (*_order(graph, without), *_later(graph, without))


def weakest(found_doubts: Iterable[Doubt]) -> Confidence:
    """Return the confidence that some doubts leave."""
    return max((found_doubt.confidence for found_doubt in found_doubts), key=CONFIDENCES.index, default=Confidence.HIGH)


def in_any_program(graph: DependencyGraph, finding: Finding) -> Finding:
    """Return a finding on a graph; on a library alone it is at most `medium`, since no process has it alone."""
    if graph.objects[0].library.is_program or finding.confidence is not Confidence.HIGH:
        return finding
    name = graph.name(0)
    reason = f"{name} is a library: its program may bind to what would leave, or keep it, and then saves nothing"
    reasons = (*finding.reasons, reason)
    return replace(finding, confidence=Confidence.MEDIUM, reasons=reasons)


def is_always_there(graph: DependencyGraph, number: int) -> bool:
    """Return whether an object is the C library or the loader."""
    return bool(_ALWAYS.match(graph.name(number)))


def listed(names: Sequence[str]) -> str:
    """Join some names, and count those beyond the first ones."""
    if len(names) > _MOST_NAMED + 1:
        return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"
    return " and ".join([*filter(None, [", ".join(names[:-1])]), *names[-1:]])


def names_of(graph: DependencyGraph, numbers: Iterable[int]) -> str:
    """Join the names of some objects."""
    return listed([graph.name(number) for number in sorted(numbers)])


# --- what differs for the loader


def _missing(graph: DependencyGraph, without: LibraryRemoval) -> Iterator[Doubt]:
    for library in without.missing:
        user = without.link_map.objects[library.requester]
        was = next((old for old in graph.link_map.objects if old.library is user.library), None)
        place = next((d.place for d in was.dependencies if d.name == library.name), None) if was else None
        how = "" if place is None else _how_found(graph, place)
        yield Doubt(Confidence.BLOCKED, f"{_name(user.path)} would not find {library.name}{how}", is_fatal=True)


def _how_found(graph: DependencyGraph, number: int) -> str:
    """Describe by whose search path a library is found now, or who brings it in."""
    linked = graph.objects[number]
    if linked.directory_owner is not None:
        return f", which is found now by the {linked.found_by.upper()} of {graph.name(linked.directory_owner)}"
    return "" if linked.loader is None else f", which is found now through {graph.name(linked.loader)}"


def _other_files(graph: DependencyGraph, without: LibraryRemoval) -> Iterator[Doubt]:
    for replaced in without.replaced:
        before = graph.objects[replaced.before].path
        yield Doubt(Confidence.BLOCKED, f"{replaced.name} would be {replaced.after} instead of {before}")


def _other_bindings(graph: DependencyGraph, without: LibraryRemoval, leaving: frozenset[int]) -> Iterator[Doubt]:
    lost: dict[tuple[int, int], list[Rebinding]] = {}
    moved: dict[tuple[int, int | None, int | None], list[Rebinding]] = {}
    for rebinding in without.rebindings:
        if _is_twice_in_glibc(graph, without, rebinding):
            continue
        if rebinding.before in leaving:
            lost.setdefault((rebinding.user, rebinding.before), []).append(rebinding)
        else:
            moved.setdefault((rebinding.user, rebinding.before, rebinding.after), []).append(rebinding)
    for (user, provider), rebindings in sorted(lost.items()):
        yield Doubt(Confidence.BLOCKED, _lost(graph, user, provider, rebindings))
    for (user, before, after), rebindings in moved.items():
        names = listed([rebinding.reference.name for rebinding in rebindings])
        if after is None:
            # Beside a missing library this says nothing new.
            if not without.missing:
                yield Doubt(Confidence.BLOCKED, f"{graph.name(user)} would find no {names}")
            continue
        other = without.link_map.objects[after].path
        source = "although nothing defines it now"
        if before is not None:
            name = graph.name(before)
            source = f"instead of {graph.objects[before].path if name == _name(other) else name}"
        # Two files of one name are told apart by their paths.
        shown = other if source.endswith(f"/{_name(other)}") else _name(other)
        text = f"{graph.name(user)} would get {names} from {shown} {source}"
        if before is not None and _are_inline(graph, without, rebindings, before, after):
            yield Doubt(Confidence.MEDIUM, f"{text}; both have it from a header")
        else:
            yield Doubt(Confidence.BLOCKED, text)


def _is_twice_in_glibc(graph: DependencyGraph, without: LibraryRemoval, rebinding: Rebinding) -> bool:
    """Return whether one function of glibc stands in for another: both of its libraries have `frexp`, for example."""
    version, before, after = rebinding.reference.version, rebinding.before, rebinding.after
    if version is None or not version.name.startswith("GLIBC_") or before is None or after is None:
        return False
    return {graph.name(before), _name(without.link_map.objects[after].path)} == _WITH_THE_SAME_FUNCTIONS


def _lost(graph: DependencyGraph, user: int, provider: int, rebindings: Sequence[Rebinding]) -> str:
    """Describe what an object that stays binds to in one that leaves, and what follows from it."""
    names = listed([rebinding.reference.name for rebinding in rebindings])
    pair = f"{graph.name(user)} binds to {graph.name(provider)}"
    if all(rebinding.after is not None for rebinding in rebindings):
        return f"{pair} although others define the same ({names}): it may be there to replace them"
    if all(rebinding.reference.is_weak for rebinding in rebindings):
        return f"{pair} only where it is there ({names}): a part of it would be switched off"
    return f"{pair} ({names})" if provider in graph.needed[user] else f"{pair} without needing it by name ({names})"


def _are_inline(
    graph: DependencyGraph, without: LibraryRemoval, rebindings: Sequence[Rebinding], before: int, after: int
) -> bool:
    """Return whether two objects have their definitions from one header: inline functions and templates of C++."""
    names = {rebinding.reference.name for rebinding in rebindings}
    if not all(name.startswith("_Z") for name in names):
        return False
    images = graph.objects[before].library.image, without.link_map.objects[after].library.image
    symbols = graph.bindings.symbols[before], without.bindings.symbols[after]
    return all(names <= weak_names(image, symbol, names) for image, symbol in zip(images, symbols, strict=True))


def _versions(graph: DependencyGraph, leaving: frozenset[int]) -> Iterator[Doubt]:
    """Find the versions that staying objects check at start of libraries that leave; musl checks none."""
    if graph.link_map.libc is Libc.MUSL:
        return
    names = {graph.name(number) for number in leaving}
    for user in sorted({user for name in names for user in graph.version_checks.get(name, ())} - leaving):
        versions_by_file: dict[str, list[str]] = {}
        for version in graph.bindings.symbols[user].versions.needed:
            if version.file in names:
                versions_by_file.setdefault(version.file, []).append(version.name)
        for file, versions in versions_by_file.items():
            check = f"{graph.name(user)} checks at start that {file} has {listed(versions)}"
            yield Doubt(Confidence.BLOCKED, f"{check}: relink it, no patch will do", is_fatal=True)


def _order(graph: DependencyGraph, without: LibraryRemoval) -> Iterator[Doubt]:
    swapped = _swapped_constructors(graph, without.link_map)
    if swapped:
        first, second = [graph.name(number) for number in swapped]
        yield Doubt(Confidence.MEDIUM, f"{first} would be initialised before {second}, which comes first now")
    finders = {n for n in (*graph.dlsym_callers, *graph.listers) if not is_always_there(graph, n)}
    if without.swapped and finders:
        later, earlier = [graph.name(number) for number in without.swapped]
        order = f"{later} would be loaded before {earlier}"
        yield Doubt(Confidence.MEDIUM, f"{names_of(graph, finders)} may look up symbols in load order, and {order}")


def _later(graph: DependencyGraph, without: LibraryRemoval) -> Iterator[Doubt]:
    """Find what a live process would load only when it opens what needs it."""
    opened = {linked.library for linked in without.link_map.objects if linked.found_by is FoundBy.OPENED}
    for number, linked in enumerate(graph.link_map.objects):
        if linked.library in opened and linked.found_by is not FoundBy.OPENED:
            reason = f"{graph.name(number)} would be searched for when the process opens what needs it"
            yield Doubt(Confidence.MEDIUM, f"{reason}, and may not be found then")


def _swapped_constructors(graph: DependencyGraph, without: LinkMap) -> tuple[int, int] | None:
    """Return the first two objects with code at start or exit of their own that would run the other way around."""
    numbers = {linked.library: number for number, linked in enumerate(graph.link_map.objects)}
    after = [numbers.get(without.objects[place].library) for place in start_order(without)]
    places = {number: place for place, number in enumerate(after) if number is not None}
    before = [number for number in start_order(graph.link_map) if number in places]
    # Most are as they were, and the constructors of each are in its file.
    if before == list(places):
        return None
    acting = [n for n in before if n != 0 and (graph.constructor_count(n) or graph.destructor_count(n))]
    return next(((other, number) for number, other in pairwise(acting) if places[number] > places[other]), None)


# --- what a library does by being there


def finders(graph: DependencyGraph, leaving: frozenset[int], *, is_blocked: bool) -> Iterator[Doubt]:
    """Find who may look for what leaves: by the name of a symbol or of a file, or in the list of loaded objects."""
    by_symbol, by_file, listers = [
        [n for n in group if n not in leaving and not is_always_there(graph, n)]
        for group in (graph.dlsym_callers, graph.dlopen_callers, graph.listers)
    ]
    # The search reads all constants: skip it where it would change nothing.
    hit = None if is_blocked else _sought(graph, leaving, by_symbol, [*by_file, *listers])
    if hit:
        yield Doubt(Confidence.LOW, hit)
    if loads_plugins(graph):
        yield Doubt(Confidence.LOW, f"{graph.name(0)} loads plugins, which may bind to it")
    elif (by_symbol or by_file) and not hit:
        who = names_of(graph, {*by_symbol, *by_file})
        yield Doubt(Confidence.MEDIUM, f"{who} may load objects or look up symbols by name")
    if openers := [n for n in graph.module_callers if n not in leaving and not is_always_there(graph, n)]:
        reason = f"for {names_of(graph, openers)} the C library may open modules (NSS, gconv), which may bind to it"
        yield Doubt(Confidence.MEDIUM, reason)
    if listers:
        walk = "walks" if len(listers) == 1 else "walk"
        yield Doubt(Confidence.MEDIUM, f"{names_of(graph, listers)} {walk} the list of loaded objects")
    if auditors := [_name(auditor.objects[0].path) for auditor in graph.link_map.auditors]:
        watch = "watches" if len(auditors) == 1 else "watch"
        yield Doubt(Confidence.MEDIUM, f"{listed(auditors)} {watch} what the loader does (DT_AUDIT)")
    if opened := [number for number in sorted(leaving) if _is_opened_by_libc(graph, number)]:
        yield Doubt(Confidence.MEDIUM, f"the C library opens {names_of(graph, opened)} by name where it needs it")


def loads_plugins(graph: DependencyGraph) -> bool:
    """Return whether the program opens files by name and exports the symbols that plugins bind to."""
    is_opener = 0 in graph.dlopen_callers and not is_always_there(graph, 0)
    return is_opener and len(graph.bindings.symbols[0].defined) >= _LEAST_SHOWN


def _is_opened_by_libc(graph: DependencyGraph, number: int) -> bool:
    return bool(_OPENED_BY_LIBC.match(graph.name(number))) or _GCONV_FOLDER in graph.objects[number].path


def _presence(graph: DependencyGraph, leaving: frozenset[int]) -> Iterator[Doubt]:
    """Find what the objects that leave do at start and at exit."""
    for kind, count_of in (("constructor", graph.constructor_count), ("destructor", graph.destructor_count)):
        counts = {number: count for number in sorted(leaving) if (count := count_of(number))}
        names = names_of(graph, counts)
        if len(counts) == 1:
            total = counted(sum(counts.values()), kind)
            yield Doubt(Confidence.MEDIUM, f"{names} has {total} of its own, which would not run")
        elif counts:
            yield Doubt(Confidence.MEDIUM, f"{names} have {kind}s of their own, which would not run")
    # musl leaves the stack as the kernel has made it for the program.
    if graph.link_map.libc is Libc.MUSL:
        return
    makers = [number for number in sorted(leaving) if _has_executable_stack(graph, number)]
    kept = (number for number in range(len(graph.objects)) if number not in leaving)
    if makers and not any(_has_executable_stack(graph, number) for number in kept):
        yield Doubt(Confidence.MEDIUM, f"the stack is executable because of {names_of(graph, makers)}")


def _has_executable_stack(graph: DependencyGraph, number: int) -> bool:
    try:
        image = graph.objects[number].library.image
        segment = image.segment(PT_GNU_STACK)
    except FootprintError:
        return False
    if segment is None:
        return image.machine not in _NO_CODE_ON_STACK
    return bool(segment.flags & PF_X)


def _readers_of_mappings(graph: DependencyGraph, leaving: frozenset[int]) -> Iterator[Doubt]:
    for number, name in graph.mapping_readers:
        if number not in leaving and not is_always_there(graph, number):
            yield Doubt(Confidence.MEDIUM, f"{graph.name(number)} may read {name}")


def _sought(
    graph: DependencyGraph, leaving: frozenset[int], by_symbol: Sequence[int], by_file: Sequence[int]
) -> str | None:
    """Find an object that looks up symbols or files by name and holds one of the names that would leave."""
    symbols = graph.bindings.symbols
    files = {graph.name(number) for number in leaving} | {_name(graph.objects[number].path) for number in leaving}
    functions = files.union(*(symbols[number].defined for number in leaving if number < len(symbols)))
    naming = [(number, functions, "symbols") for number in by_symbol]
    naming += [(number, files, "libraries") for number in by_file if number not in by_symbol]
    for number, names, what in naming:
        constants = graph.constants_among(
            number, frozenset([name.encode("utf-8", "surrogateescape") for name in names])
        )
        if constants:
            shown = listed(sorted(constant.decode("utf-8", "backslashreplace") for constant in constants))
            return f"{graph.name(number)} looks up {what} by name, and holds {shown}"
    return None


def _name(path: str) -> str:
    return path.rpartition("/")[2]


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
    # Where all are options, they stand as in the link line.
    is_line = all(option.startswith("-l") for option in options_found)
    options = " ".join(options_found) if is_line else listed(options_found)
    them = "it" if len(options_found) == 1 else "them"
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
