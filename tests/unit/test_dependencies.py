"""Who brings whom into a process: what is reached, what leaves with an object, and by which chains it came."""

from collections.abc import Sequence
from itertools import pairwise
from math import isqrt

from hypothesis import given
from hypothesis import strategies as st

from footprint.elf.dynamic import read_linkage
from footprint.elf.image import read_image
from footprint.loader.dependencies import chains, needs, reached, retained, roots, start_order
from footprint.loader.link_map import Dependency, Linked, LinkMap
from footprint.loader.map_entry import FoundBy
from footprint.loader.system import Library
from footprint.loader.target import Libc
from tests.elfwriter import DT_SONAME, Dyn, ElfFile, write
from tests.workcount import assert_linear

# 0 needs 1 and 2, both of which need 3, which alone needs 4; 2 alone needs 5.
DIAMOND = ((1, 2), (3,), (3, 5), (4,), (), ())


def without(needed: tuple[tuple[int, ...], ...], start: tuple[int, ...], gone: int) -> frozenset[int]:
    """Return what is reached when one object is not there, the slow way."""
    result: set[int] = set()
    waiting = [one for one in start if one != gone]
    while waiting:
        at = waiting.pop()
        if at not in result:
            result.add(at)
            waiting.extend(one for one in needed[at] if one != gone)
    return frozenset(result)


graphs = (
    st.integers(1, 9)
    .flatmap(
        lambda count: st.tuples(
            st.lists(
                st.lists(st.integers(0, count - 1), max_size=4, unique=True).map(tuple), min_size=count, max_size=count
            ).map(tuple),
            st.lists(st.integers(0, count - 1), min_size=1, max_size=3, unique=True).map(lambda some: (0, *some)),
        )
    )
    .map(lambda drawn: (drawn[0], tuple(dict.fromkeys(drawn[1]))))
)


# --- what is reached


def test_all_that_is_needed_by_what_is_needed_is_reached() -> None:
    assert reached(DIAMOND, [0]) == {0, 1, 2, 3, 4, 5}
    assert reached(DIAMOND, [1]) == {1, 3, 4}
    assert reached(DIAMOND, [1, 5]) == {1, 3, 4, 5}
    assert reached(DIAMOND, []) == frozenset()


def test_a_need_that_is_dropped_leads_nowhere_and_its_target_may_be_reached_otherwise() -> None:
    assert reached(DIAMOND, [0], lambda user, provider: (user, provider) != (1, 3)) == {0, 1, 2, 3, 4, 5}
    assert reached(DIAMOND, [0], lambda _, provider: provider != 3) == {0, 1, 2, 5}


@given(graph=graphs)
def test_what_is_reached_is_closed_and_holds_nothing_else(
    graph: tuple[tuple[tuple[int, ...], ...], tuple[int, ...]],
) -> None:
    needed, start = graph
    assert reached(needed, start) == without(needed, start, -1)


# --- what leaves


def leaving(needed: Sequence[Sequence[int]], start: Sequence[int]) -> list[frozenset[int]]:
    found = retained(needed, start)
    return [found[number] for number in range(len(needed))]


def test_with_an_object_leaves_what_it_alone_brings_in() -> None:
    assert leaving(DIAMOND, [0]) == [{0, 1, 2, 3, 4, 5}, {1}, {2, 5}, {3, 4}, {4}, {5}]


def test_what_is_a_root_of_its_own_leaves_with_no_other() -> None:
    assert leaving(((1,), (2,), ()), [0, 2]) == [{0, 1}, {1}, {2}]


def test_objects_that_need_each_other_leave_with_the_one_that_is_needed_from_without() -> None:
    assert leaving(((1,), (2,), (1, 3), ()), [0]) == [{0, 1, 2, 3}, {1, 2, 3}, {2, 3}, {3}]


def test_an_object_that_nobody_reaches_leaves_alone() -> None:
    assert leaving(((), (2,), ()), [0]) == [{0}, {1}, {2}]


def test_an_object_that_needs_itself_leaves_as_any() -> None:
    assert leaving(((0, 1), (1,)), [0]) == [{0, 1}, {1}]


@given(graph=graphs)
def test_what_leaves_with_an_object_is_all_that_is_not_reached_without_it(
    graph: tuple[tuple[tuple[int, ...], ...], tuple[int, ...]],
) -> None:
    needed, start = graph
    everything = without(needed, start, -1)
    for number, found in enumerate(leaving(needed, start)):
        expected = everything - without(needed, start, number) if number in everything else {number}
        assert found == expected


# --- by which chains


def test_there_is_a_chain_through_each_that_needs_it_the_shortest_first() -> None:
    assert chains(DIAMOND, [0], 3, 9) == [(0, 1, 3), (0, 2, 3)]
    assert chains(DIAMOND, [0], 4, 9) == [(0, 1, 3, 4)]
    assert chains(((1, 3), (2,), (3,), ()), [0], 3, 9) == [(0, 3), (0, 1, 2, 3)]
    assert chains(DIAMOND, [0], 3, 1) == [(0, 1, 3)]


def test_a_root_is_there_by_itself_and_for_those_that_need_it() -> None:
    assert chains(((1,), ()), [0, 1], 1, 9) == [(1,), (0, 1)]
    assert chains(((1,), ()), [0, 1], 1, 1) == [(1,)]
    assert chains(((1,), ()), [0], 0, 9) == [(0,)]


def test_no_chain_leads_through_its_own_end() -> None:
    assert chains(((1,), (2,), (1,)), [0], 1, 9) == [(0, 1)]


def test_there_is_no_chain_to_what_is_not_reached() -> None:
    assert chains(((), ()), [0], 1, 9) == []


@given(graph=graphs, target=st.integers(0, 8))
def test_every_chain_follows_the_needs_from_a_root_and_none_could_be_shorter(
    graph: tuple[tuple[tuple[int, ...], ...], tuple[int, ...]], target: int
) -> None:
    needed, start = graph
    target %= len(needed)
    result = chains(needed, start, target, 99)
    assert [len(one) for one in result] == sorted(len(one) for one in result)
    for chain in result:
        assert chain[0] in start
        assert chain[-1] == target
        assert target not in chain[:-1]
        assert all(after in needed[before] for before, after in pairwise(chain))
    users = {one for one in without(needed, start, target) if target in needed[one]}
    assert {one[-2] for one in result if len(one) > 1} == users
    assert len(result) == len(users) + (target in start)


# --- large ones


Needs = tuple[tuple[int, ...], ...]


def test_a_chain_of_10000_objects_takes_no_recursion_and_each_object_once() -> None:
    def walk(needed: Needs) -> None:
        count = len(needed)
        assert len(reached(needed, [0])) == count
        assert chains(needed, [0], count - 1, 2) == [tuple(range(count))]
        found = retained(needed, [0])
        assert len(found[0]) == count
        assert found[count - 2] == {count - 2, count - 1}

    assert_linear(lambda count: (*((number + 1,) for number in range(count - 1)), ()), walk, 2_500)


def test_an_object_that_all_of_a_chain_need_gets_only_the_chains_that_are_asked_for() -> None:
    def make(count: int) -> Needs:
        return (*((number + 1, count - 1) for number in range(count - 2)), (count - 1,), ())

    def walk(needed: Needs) -> None:
        last = len(needed) - 1
        assert chains(needed, [0], last, 3) == [(0, last), (0, 1, last), (0, 1, 2, last)]

    assert_linear(make, walk, 2_500)


def test_300_objects_that_all_need_all_are_told_apart_by_each_need_once() -> None:
    def make(need_count: int) -> Needs:
        count = isqrt(need_count)
        return tuple(tuple(range(count)) for _ in range(count))

    def walk(needed: Needs) -> None:
        assert [len(one) for one in leaving(needed, [0])] == [len(needed)] + [1] * (len(needed) - 1)

    assert_linear(make, walk, 150 * 150)


# --- of a link map


def linked(name: str, loader: int | None, *dependencies: int | None) -> Linked:
    image = read_image(write(ElfFile(dynamic=[Dyn(DT_SONAME, name)])), name)
    library = Library(name, image, read_linkage(image), 0o755, None, lambda *_: image)  # type: ignore[arg-type] # it never changes
    named = tuple(Dependency(f"lib{place}.so", place) for place in dependencies)
    return Linked(name, library, FoundBy.DEFAULT, loader, named)


def test_each_need_counts_once_and_neither_what_is_missing_nor_the_object_itself() -> None:
    objects = (linked("program", None, 2, 1, 2, None), linked("a", 0, 1, 2), linked("b", 0))
    assert needs(LinkMap(objects, (), None, None, Libc.GLIBC, None, ())) == ((2, 1), (2,), ())


def test_the_roots_are_the_program_what_is_preloaded_and_the_loader() -> None:
    objects = (linked("program", None, 2), linked("preloaded", None), linked("libc", 0, 3), linked("ld.so", 2))
    loader = objects[3]
    assert roots(LinkMap(objects, (), 3, loader, Libc.GLIBC, None, ())) == (0, 1, 3)
    assert roots(LinkMap(objects[:3], (), None, loader, Libc.GLIBC, None, ())) == (0, 1)
    # A loader that is looked at as if it were a program is there once.
    assert roots(LinkMap((loader,), (), 0, loader, Libc.GLIBC, None, ())) == (0,)


def test_constructors_run_from_the_last_object_on_and_first_those_of_what_it_needs() -> None:
    # The program needs a and b, a needs b, and both need libc.
    objects = (linked("program", None, 1, 2), linked("a", 0, 2, 3), linked("b", 0, 3), linked("libc", 1))
    assert start_order(LinkMap(objects, (), None, None, Libc.GLIBC, None, ())) == [3, 2, 1, 0]
    # Without the need of b, the later one of the two comes first all the same.
    objects = (linked("program", None, 1, 2), linked("a", 0, 3), linked("b", 0, 3), linked("libc", 1))
    assert start_order(LinkMap(objects, (), None, None, Libc.GLIBC, None, ())) == [3, 2, 1, 0]
    objects = (linked("program", None, 1, 2), linked("b", 0, 3), linked("a", 0, 3), linked("libc", 1))
    assert start_order(LinkMap(objects, (), None, None, Libc.GLIBC, None, ())) == [3, 2, 1, 0]
