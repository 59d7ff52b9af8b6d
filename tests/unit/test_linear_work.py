"""Work that grows with the input and not with its square: it is counted here, not timed."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.findings.graph_rules.unused_library import unused_libraries
from footprint.json.answer import Json, LargeTable, pieces
from footprint.loader.dependencies import start_order
from footprint.loader.link_map import LinkMap
from footprint.loader.target import Environment
from footprint.sources.programs import Programs
from tests.elfwriter import DT_NEEDED, DT_SONAME, RO, RW, STT_FUNC, At, Dyn, ElfFile, Rel, Section, Sym, write
from tests.sysroot import GLIBC, Sysroot, loader_cache

JUMP_SLOT = 7
# More objects than are searched one after the other.
MANY = 300


def made(soname: str, *needed: str, offers: Sequence[str] = (), asks: Sequence[str] = (), binding: int = 1) -> bytes:
    symbols = [Sym(name, At(".data"), 8, STT_FUNC) for name in offers]
    symbols += [Sym(name, type=STT_FUNC, binding=binding) for name in asks]
    slots = [Rel(At(".data", 8 * place), JUMP_SLOT, name, 0) for place, name in enumerate(asks)]
    sections = [Section(".data", flags=RW, data=bytes(max(16, 8 * len(asks))))]
    sections += [Section(".rela.dyn", 4, RO, slots)] if slots else []
    sections += [] if soname else [Section(".interp", flags=RO, data=GLIBC.encode() + b"\0")]
    dynamic = [*(Dyn(DT_NEEDED, name) for name in needed), *([Dyn(DT_SONAME, soname)] if soname else [])]
    return write(ElfFile(sections=sections, dynamic=dynamic, dynamic_symbols=symbols))


def graph_of(folder: Path, count: int, *, is_used: bool) -> DependencyGraph:
    """Return the graph of a program with many libraries, which it uses, or needs for nothing."""
    names = [f"lib{number:04}.so" for number in range(count)]
    functions = [f"f{number}" for number in range(count)]
    system = Sysroot(folder)
    system.loader()
    system.file("/etc/ld.so.cache", loader_cache([]))
    system.file("/bin/program", made("", *names, asks=functions if is_used else ()))
    for name, function in zip(names, functions, strict=True):
        system.file(f"/lib/{name}", made(name, offers=[function]))
    return Programs(str(folder), Environment(hwcaps="baseline"), is_calibrated=False).graph("/bin/program")


class Lookups:
    """Counts who is asked whether it defines a name."""

    def __init__(self) -> None:
        self.count = 0


class Watched(dict[str, int]):
    """The definitions of one object, which count how often they are searched."""

    lookups: Lookups

    def __contains__(self, name: object) -> bool:
        self.lookups.count += 1
        return super().__contains__(name)


def test_only_objects_that_define_a_name_are_asked_whether_they_provide_it(tmp_path: Path) -> None:
    bindings = graph_of(tmp_path, MANY, is_used=True).bindings
    lookups = Lookups()
    for symbols in bindings.symbols:
        watched = Watched(symbols.defined)
        watched.lookups = lookups
        object.__setattr__(symbols, "found", watched)
    references = bindings.symbols[0].references
    assert len(references) == MANY
    providers = {reference: place for place, found in bindings.providers[0].items() for reference in found}
    for index, reference in enumerate(references):
        assert not bindings.has_other(reference, frozenset({providers[index]}))
        assert bindings.has_other(reference, frozenset())
    assert lookups.count <= 2 * MANY


def test_the_bindings_are_read_once_for_the_used_symbols_of_all_objects(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, MANY, is_used=True)
    passes = []

    class Counted(tuple[dict[int, frozenset[int]], ...]):
        """The answers to each object, which count how often they are all looked at."""

        __slots__ = ()

        def __iter__(self) -> Iterator[dict[int, frozenset[int]]]:
            passes.append(1)
            return super().__iter__()

    object.__setattr__(graph.bindings, "providers", Counted(graph.bindings.providers))
    assert [graph.used_count(number) for number in range(MANY + 1)] == [0, *[1] * MANY]
    assert len(passes) == 1


@pytest.mark.parametrize("count", [MANY, 2 * MANY])
def test_the_order_of_constructors_is_computed_for_the_needs_that_are_tried_and_once_for_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    graph = graph_of(tmp_path, count, is_used=False)
    calls: list[LinkMap] = []

    def counted(link_map: LinkMap) -> list[int]:
        calls.append(link_map)
        return start_order(link_map)

    monkeypatch.setattr("footprint.findings.removal.start_order", counted)
    assert len([one for one in unused_libraries(graph) if one.kind == "whole-process"]) == count
    tried = (1 << 14) // count + 1
    # Each takes two: with the need and without. All together are computed for the rest, and for the safe ones.
    assert len(calls) <= 2 * (tried + 2)


def test_rows_of_a_large_table_are_made_when_they_are_written_a_part_at_a_time() -> None:
    made_count = 0

    def texts() -> Iterator[list[str]]:
        nonlocal made_count
        for _ in range(1000):
            made_count += 100
            yield ['{"n": 1}'] * 100

    members: Json = {"rows": LargeTable(list, texts)}
    written = pieces(members)
    longest_bytes = 0
    for number, piece in enumerate(written):
        longest_bytes = max(longest_bytes, len(piece))
        # The piece in front of the rows is none of them.
        assert made_count <= 100 * (number + 1)
    assert made_count == 100_000
    assert longest_bytes <= 100 * 16
