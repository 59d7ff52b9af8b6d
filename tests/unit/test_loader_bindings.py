"""Who answers what an object asks for: each rule of the loaders by the fewest objects that show it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.loader import bindings
from footprint.loader.bindings import Binder, Bindings
from footprint.loader.system import Library
from footprint.loader.target import Libc
from tests.elfwriter import (
    DT_GNU_HASH,
    DT_HASH,
    DT_SYMBOLIC,
    ET_EXEC,
    RO,
    SHT_GNU_VERSYM,
    SHT_RELA,
    STB_GNU_UNIQUE,
    STB_WEAK,
    STT_FUNC,
    STT_OBJECT,
    STT_TLS,
    STV_HIDDEN,
    STV_PROTECTED,
    VER_FLG_BASE,
    VERSYM_HIDDEN,
    At,
    Dyn,
    Rel,
    Section,
    Sym,
    Version,
)
from tests.loadable import bind, defined, link_map, made

COPY, GLOB_DAT, JUMP_SLOT, TPOFF64 = 5, 6, 7, 18
SYMBOLIC = Dyn(DT_SYMBOLIC)
V1, V2 = Version("V1", 2), Version("V2", 3)
BASE = Version("libx.so", 1, VER_FLG_BASE)


def answers(result: Bindings, user: int = 0) -> dict[str, int]:
    """Return who answers each name that an object asks for; a name that nobody answers is missing."""
    references = result.symbols[user].references
    return {references[place].name: one for one, places in result.providers[user].items() for place in places}


def who(*libraries: Library, user: int = 0, libc: Libc = Libc.GLIBC) -> dict[str, int]:
    return answers(bind(*libraries, libc=libc), user)


PROGRAM = made("program", Sym("f"), asks={"f": GLOB_DAT})


# --- the order


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [PROGRAM, made("a"), made("b", defined("f")), made("c", defined("f"))],
            {"f": 2},
            id="the first that defines a name answers",
        ),
        pytest.param(
            [PROGRAM, made("a", defined("f", binding=STB_WEAK)), made("b", defined("f"))],
            {"f": 1},
            id="a weak definition is as good as any",
        ),
        pytest.param(
            [PROGRAM, made("a", defined("f", visibility=STV_HIDDEN)), made("b", defined("f"))],
            {"f": 2},
            id="a hidden definition answers nobody",
        ),
        pytest.param(
            [
                made("program", Sym("f", 0x401000, type=STT_FUNC), asks={"f": GLOB_DAT}, more=[SYMBOLIC], type=ET_EXEC),
                made("a", defined("f")),
            ],
            {"f": 0},
            id="a symbolic program is the first of all anyway",
        ),
        pytest.param(
            [made("program", Sym("f", binding=STB_WEAK), asks={"f": GLOB_DAT}), made("a", defined("f"))],
            {"f": 1},
            id="a weak reference that is answered binds",
        ),
    ],
)
def test_who_answers(objects: list[Library], expected: dict[str, int]) -> None:
    assert who(*objects) == expected


def test_a_program_binds_to_itself_first_and_so_do_its_libraries_to_it() -> None:
    program = made("program", defined("f"), asks={"f": GLOB_DAT})
    library = made("a", defined("f"), asks={"f": JUMP_SLOT})
    found = bind(program, library)
    assert (answers(found), answers(found, 1)) == ({"f": 0}, {"f": 0})
    assert found.users(0) == (1,)
    assert found.users(1) == ()
    assert [reference.name for reference in found.references(1, 0)] == ["f"]
    assert found.references(0, 1) == ()


@pytest.mark.parametrize("binding", [1, STB_WEAK])
def test_what_nobody_defines_is_unanswered_whether_it_must_be_there_or_not(binding: int) -> None:
    program = made("program", Sym("f", binding=binding), asks={"f": GLOB_DAT})
    found = bind(program, made("a", defined("g")))
    assert found.providers[0] == {}
    assert found.symbols[0].references[0].is_weak == (binding == STB_WEAK)


def test_a_library_whose_tables_are_damaged_answers_nothing_and_is_noted() -> None:
    damaged = made("a", defined("f"), more=[Dyn(DT_HASH, 1 << 40), Dyn(DT_GNU_HASH, 0)])
    found = bind(PROGRAM, damaged, made("b", defined("f")))
    assert answers(found) == {"f": 2}
    assert [(note.slug, note.subject) for note in found.notes] == [("file-unreadable", "a")]
    assert found.notes[0].detail.endswith("; its symbol bindings are unknown")


# --- versions


def asking(*versions: Version) -> Library:
    """Return a program that asks for `f` in the first version; without any, in none."""
    needs = {"libx.so": versions} if versions else {}
    return made("program", Sym("f", version=versions[0].index if versions else 1), asks={"f": JUMP_SLOT}, needs=needs)


def versioned(name: str, *indexes: int, versions: Sequence[Version] = (BASE, V1, V2)) -> Library:
    return made(name, *(defined("f", version=index) for index in indexes), versions=versions, gnu_hash=True)


UNVERSIONED = made("plain", defined("f"))
# It has a table of versions, but defines none: as glibc sees it, all its names are of the base.
TABLE_ONLY = made("table", defined("f"), sections=[Section(".versym", SHT_GNU_VERSYM, RO, b"\0\0\1\0", align=2)])
MARKED = Version("V1", 2 | VERSYM_HIDDEN)


@pytest.mark.parametrize(
    ("program", "library", "is_answered"),
    [
        # A version is asked for.
        (asking(V1), versioned("x", 2), True),
        (asking(V1), versioned("x", 2 | VERSYM_HIDDEN), True),
        (asking(V1), versioned("x", 3), False),
        (asking(V1), versioned("x", 3, 2 | VERSYM_HIDDEN), True),
        (asking(Version("V1", 7)), versioned("x", 2), True),
        (asking(V1), UNVERSIONED, True),
        (asking(V1), TABLE_ONLY, True),
        (asking(V1), versioned("x", 1), True),
        (asking(V1), versioned("x", 1 | VERSYM_HIDDEN), False),
        (asking(V1), versioned("x", 0), True),
        (asking(MARKED), versioned("x", 2), True),
        (asking(MARKED), versioned("x", 1), False),
        (asking(MARKED), TABLE_ONLY, False),
        (asking(MARKED), UNVERSIONED, True),
        (asking(Version("libx.so", 2)), versioned("x", 1), True),
        (asking(Version("libx.so", 2 | VERSYM_HIDDEN)), versioned("x", 1), False),
        # None is asked for: the first is as good as the base, of the others one must be the only one that is shown.
        (asking(), versioned("x", 0), True),
        (asking(), versioned("x", 1), True),
        (asking(), versioned("x", 2), True),
        (asking(), versioned("x", 2 | VERSYM_HIDDEN), True),
        (asking(), versioned("x", 3), True),
        (asking(), versioned("x", 3 | VERSYM_HIDDEN), False),
        (asking(), versioned("x", 3, 4 | VERSYM_HIDDEN, versions=(V1, V2, Version("V3", 4))), True),
        (asking(), versioned("x", 3, 4, versions=(V1, V2, Version("V3", 4))), False),
        (asking(), UNVERSIONED, True),
    ],
)
def test_a_version_decides_who_answers(program: Library, library: Library, *, is_answered: bool) -> None:
    assert who(program, library) == ({"f": 1} if is_answered else {})


def test_a_definition_in_another_version_does_not_end_the_search() -> None:
    assert who(asking(V1), versioned("x", 3), UNVERSIONED, versioned("y", 2)) == {"f": 2}


def test_the_file_that_is_to_have_a_version_is_not_asked_before_others() -> None:
    program = made("program", Sym("f", version=2), asks={"f": JUMP_SLOT}, needs={"libm.so": [V1]})
    assert who(program, versioned("libc.so", 2), versioned("libm.so", 2)) == {"f": 1}


def test_a_library_asks_for_its_own_symbol_in_the_version_that_it_gave_it() -> None:
    library = made("libx.so", defined("f", version=2), asks={"f": JUMP_SLOT}, versions=[BASE, V1])
    assert who(made("program"), versioned("other", 3), library, user=2) == {"f": 2}
    assert who(made("program"), versioned("other", 2), library, user=2) == {"f": 1}


# --- programs that take things over


def test_a_function_of_a_program_that_stands_in_for_a_library_is_its_address_but_not_what_is_called() -> None:
    program = made("program", Sym("f", 0x401000, type=STT_FUNC), asks={"f": JUMP_SLOT}, type=ET_EXEC)
    calling, taking = (made(name, Sym("f"), asks={"f": kind}) for name, kind in (("a", JUMP_SLOT), ("b", GLOB_DAT)))
    found = bind(program, calling, taking, made("c", defined("f")))
    assert [answers(found, user) for user in range(3)] == [{"f": 3}, {"f": 3}, {"f": 0}]


def test_a_thread_local_of_a_program_that_is_not_defined_there_is_none() -> None:
    program = made("program", Sym("t", type=STT_TLS), asks={"t": TPOFF64})
    assert who(program, made("a", Sym("t", 0, 8, STT_TLS, section=".data"))) == {"t": 1}


def test_what_a_program_copies_it_looks_for_in_libraries_and_all_others_bind_to_the_copy() -> None:
    program = made("program", defined("environ", STT_OBJECT), asks={"environ": COPY}, type=ET_EXEC)
    owner = made("libc.so", defined("environ", STT_OBJECT), asks={"environ": GLOB_DAT})
    user = made("a", Sym("environ"), asks={"environ": GLOB_DAT})
    found = bind(program, user, owner)
    assert [answers(found, number) for number in range(3)] == [{"environ": 2}, {"environ": 0}, {"environ": 0}]


def test_one_symbol_is_found_in_two_places_when_it_is_asked_for_in_two_ways() -> None:
    program = made("program", Sym("f", 0x401000, type=STT_FUNC), asks={"f": JUMP_SLOT}, type=ET_EXEC)
    both = [Rel(At(".data"), kind, "f", 0) for kind in (JUMP_SLOT, GLOB_DAT)]
    library = made("a", Sym("f"), sections=[Section(".rela.all", SHT_RELA, RO, both)])
    found = bind(program, library, made("b", defined("f")))
    calls = {
        found.symbols[1].references[place].is_call: one
        for one, places in found.providers[1].items()
        for place in places
    }
    assert calls == {True: 2, False: 0}


# --- libraries that keep to themselves


@pytest.mark.parametrize("kind", [JUMP_SLOT, GLOB_DAT])
def test_a_protected_definition_is_what_its_own_library_gets(kind: int) -> None:
    library = made("a", defined("f", visibility=STV_PROTECTED), asks={"f": kind})
    found = bind(made("program", defined("f")), library, made("b", Sym("f"), asks={"f": kind}))
    assert (answers(found, 1), answers(found, 2)) == ({"f": 1}, {"f": 0})


def test_the_address_of_a_protected_function_is_the_programs_where_that_stands_in_for_it() -> None:
    program = made("program", Sym("f", 0x401000, type=STT_FUNC), type=ET_EXEC)
    taking, calling = (
        made(name, defined("f", visibility=STV_PROTECTED), asks={"f": kind})
        for name, kind in (("a", GLOB_DAT), ("a", JUMP_SLOT))
    )
    assert who(program, taking, user=1) == {"f": 0}
    assert who(program, calling, user=1) == {"f": 1}
    # Where what it stands in for is another's, the library keeps to its own.
    assert who(program, made("b", defined("f")), taking, user=2) == {"f": 2}


@pytest.mark.parametrize("entry", [Dyn(DT_SYMBOLIC), Dyn(30, 2)])
def test_a_symbolic_library_looks_in_itself_first_and_then_where_all_look(entry: Dyn) -> None:
    library = made("a", defined("f"), Sym("g"), asks={"f": JUMP_SLOT, "g": JUMP_SLOT}, more=[entry])
    assert who(made("program", defined("f"), defined("g")), library, user=1) == {"f": 1, "g": 0}


# --- what is unique in a process


def unique(name: str, version: int, other: int) -> Library:
    """Return a library that defines and uses a unique symbol in one version, where another has it in another."""
    return made(
        name,
        defined("u", STT_OBJECT, binding=STB_GNU_UNIQUE, version=version),
        asks={"u": GLOB_DAT},
        versions=[Version(f"V{version}", version), Version(f"V{other}", other)],
        gnu_hash=True,
    )


def test_of_a_unique_symbol_there_is_one_whatever_the_versions() -> None:
    # Each would find its own. The objects are relocated last to first, so the last enters the one that all get.
    found = bind(made("program"), unique("libapt-private.so", 2, 3), unique("libapt-pkg.so", 3, 2))
    assert (answers(found, 1), answers(found, 2)) == ({"u": 2}, {"u": 2})


def test_symbols_of_the_same_versions_that_are_not_unique_stay_apart() -> None:
    first, other = (
        made(
            name,
            defined("u", STT_OBJECT, version=2),
            asks={"u": GLOB_DAT},
            versions=[Version(version, 2)],
            gnu_hash=True,
        )
        for name, version in (("a", "V2"), ("b", "V3"))
    )
    found = bind(made("program"), first, other)
    assert (answers(found, 1), answers(found, 2)) == ({"u": 1}, {"u": 2})


def test_a_unique_symbol_that_is_answered_by_another_that_is_not_stays_there() -> None:
    program = made("program", defined("u", STT_OBJECT))
    found = bind(program, made("a", defined("u", binding=STB_GNU_UNIQUE), asks={"u": GLOB_DAT}))
    assert answers(found, 1) == {"u": 0}


# --- musl


def test_musl_asks_for_no_version_and_takes_no_hidden_one() -> None:
    def musl(*indexes: int) -> dict[str, int]:
        return who(asking(V1), versioned("x", *indexes), UNVERSIONED, libc=Libc.MUSL)

    assert musl(3) == {"f": 1}
    assert musl(1) == {"f": 1}
    assert musl(2 | VERSYM_HIDDEN) == {"f": 2}
    assert musl(3, 2 | VERSYM_HIDDEN) == {"f": 1}


def test_with_musl_no_library_keeps_to_itself() -> None:
    program = made("program", defined("f"), defined("p"))
    library = made(
        "a",
        defined("f"),
        defined("p", visibility=STV_PROTECTED),
        asks={"f": JUMP_SLOT, "p": JUMP_SLOT},
        more=[SYMBOLIC],
    )
    assert who(program, library, user=1, libc=Libc.MUSL) == {"f": 0, "p": 0}


def test_with_musl_too_a_program_stands_in_for_addresses_only_and_looks_for_copies_elsewhere() -> None:
    program = made(
        "program",
        Sym("f", 0x401000, type=STT_FUNC),
        defined("environ", STT_OBJECT),
        asks={"f": JUMP_SLOT, "environ": COPY},
        type=ET_EXEC,
    )
    library = made("a", Sym("f"), asks={"f": GLOB_DAT})
    found = bind(program, library, made("libc.so", defined("f"), defined("environ")), libc=Libc.MUSL)
    assert (answers(found), answers(found, 1)) == ({"f": 2, "environ": 2}, {"f": 0})


def test_with_musl_a_unique_symbol_is_one_as_any() -> None:
    one, other = (made(name, defined("u", binding=STB_GNU_UNIQUE), asks={"u": GLOB_DAT}) for name in "ab")
    found = bind(made("program"), one, other, libc=Libc.MUSL)
    assert (answers(found, 1), answers(found, 2)) == ({"u": 1}, {"u": 1})


# --- who else would answer


def test_a_reference_has_another_answer_where_one_of_the_others_defines_it_in_its_version() -> None:
    found = bind(asking(V1), versioned("x", 2), versioned("y", 3), versioned("z", 2))
    (reference,) = found.symbols[0].references
    assert found.has_other(reference, frozenset({1}))
    assert not found.has_other(reference, frozenset({1, 3}))


def test_a_copy_of_the_program_itself_is_no_other_answer_to_it() -> None:
    program = made("program", defined("environ", STT_OBJECT), asks={"environ": COPY}, type=ET_EXEC)
    found = bind(program, made("libc.so", defined("environ", STT_OBJECT)))
    (reference,) = found.symbols[0].references
    assert not found.has_other(reference, frozenset({1}))


# --- one after the other

POOL = (
    made("p1", Sym("f"), Sym("g"), defined("h"), asks={"f": JUMP_SLOT, "g": GLOB_DAT}),
    made("p2", Sym("f", 0x401000, type=STT_FUNC), Sym("u"), asks={"f": JUMP_SLOT, "u": GLOB_DAT}, type=ET_EXEC),
    made("p3", defined("d"), Sym("h"), asks={"d": COPY, "h": JUMP_SLOT}, type=ET_EXEC),
    asking(V1),
    made("l1", defined("f"), Sym("h"), Sym("d"), asks={"f": JUMP_SLOT, "h": JUMP_SLOT, "d": GLOB_DAT}),
    made("l2", defined("f"), defined("g"), defined("d"), asks={"f": GLOB_DAT, "d": GLOB_DAT}, more=[SYMBOLIC]),
    made("l3", defined("f", visibility=STV_PROTECTED), defined("h"), asks={"f": GLOB_DAT, "h": JUMP_SLOT}),
    versioned("l4", 3, 2 | VERSYM_HIDDEN),
    unique("l5", 2, 3),
    unique("l6", 3, 2),
)
_places = st.permutations(range(len(POOL))).flatmap(lambda order: st.integers(1, len(order)).map(lambda n: order[:n]))


@given(binds=st.lists(st.tuples(_places, st.sampled_from([Libc.GLIBC, Libc.MUSL])), min_size=2, max_size=6))
def test_what_was_bound_before_changes_no_answer(binds: list[tuple[list[int], Libc]]) -> None:
    binder = Binder()
    for places, libc in binds:
        given_map = link_map(*(POOL[place] for place in places), libc=libc)
        kept, fresh = binder.bind(given_map), Binder().bind(given_map)
        assert kept.providers == fresh.providers
        assert [symbol.references for symbol in kept.symbols] == [symbol.references for symbol in fresh.symbols]


@given(places=_places, libc=st.sampled_from([Libc.GLIBC, Libc.MUSL]))
def test_among_very_many_objects_the_same_ones_answer(places: list[int], libc: Libc) -> None:
    few = bind(*(POOL[place] for place in places), libc=libc)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bindings, "_MANY_OBJECTS", 0)
        many = bind(*(POOL[place] for place in places), libc=libc)
    assert few.providers == many.providers


@given(places=_places, libc=st.sampled_from([Libc.GLIBC, Libc.MUSL]))
def test_each_reference_has_at_most_one_provider(places: list[int], libc: Libc) -> None:
    found = bind(*(POOL[place] for place in places), libc=libc)
    for symbols, providers in zip(found.symbols, found.providers, strict=True):
        places = [place for provided in providers.values() for place in provided]
        assert len(places) == len(set(places))
        assert set(places) <= set(range(len(symbols.references)))
        assert all(providers.values())
