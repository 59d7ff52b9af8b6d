"""Which object and function each byte of a heap is charged to."""

import pytest

from footprint.attribution.heap_usage import ONLY_LINES, name_frames
from footprint.heap.allocators import Allocators
from footprint.heap.attribution import (
    BELOW_THRESHOLD,
    CALLERS_BELOW,
    NO_STACK,
    NO_SYMBOL,
    Call,
    HeapShares,
    attribute,
    callees,
    callers,
)
from footprint.heap.formats import read_profile
from footprint.heap.profile import CallTree
from tests.massifwriter import ROOT, Line, Moment, massif

LIB = "/usr/lib/libtable.so"
PROGRAM = "/usr/bin/program"
LUMP = "in 3 places, all below massif's threshold (1.00%)"
Rows = list[tuple[str, str, int]]


def line(size_bytes: int, addr: int, function: str, owner: str, *callers: Line) -> Line:
    return Line(size_bytes, f"0x{addr:X}: {function} (in {owner})", callers)


def read(*below: Line, allocators: tuple[str, ...] = ()) -> tuple[CallTree, tuple[Call, ...]]:
    """Read a profile of one snapshot, which has this tree; and name its frames."""
    size_bytes = sum(one.size_bytes for one in below)
    profile = read_profile(massif([Moment(0, size_bytes, tree=Line(size_bytes, ROOT, below), is_peak=True)]), "a text")
    tree = profile.snapshots[0].tree
    assert tree is not None
    return tree, name_frames(profile, "a text", Allocators(allocators)).calls


def rows(result: HeapShares) -> Rows:
    assert sum(share.size_bytes for share in result.shares) == result.total_bytes
    assert sum(share.size_bytes for share in result.owners) == result.total_bytes
    return [(share.owner, share.function, share.size_bytes) for share in result.shares]


def attributed(*below: Line, allocators: tuple[str, ...] = ()) -> Rows:
    return rows(attribute(*read(*below, allocators=allocators)))


def lines_of(tree: CallTree) -> list[tuple[int, int, str | None]]:
    """Return each node as its depth, its bytes and its function."""
    depths = [0]
    for parent in tree.parents[1:]:
        depths.append(depths[parent] + 1)
    return [(depths[node], tree.node_bytes[node], tree.frame(node).function) for node in range(1, len(tree))]


# --- the function that asked ------------------------------------------------------------------------------------------


def test_bytes_are_charged_to_the_innermost_function_and_its_object() -> None:
    main = line(70, 0x30, "main", PROGRAM)
    assert attributed(line(70, 0x10, "grow", LIB, main), line(30, 0x20, "main", PROGRAM)) == [
        (LIB, "grow", 70),
        (PROGRAM, "main", 30),
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            [line(60, 0x10, "f", LIB, Line(60, LUMP))],
            [(LIB, "f", 60)],
            id="what is below the threshold behind a known function is that functions",
        ),
        pytest.param(
            [line(60, 0x10, "f", LIB), Line(40, LUMP)],
            [
                (LIB, "f", 60),
                (BELOW_THRESHOLD, BELOW_THRESHOLD, 40),
            ],
            id="what is below the threshold is a row of its own",
        ),
        pytest.param(
            [line(70, 0x10, "grow", LIB), line(30, 0x14, "grow", LIB)],
            [(LIB, "grow", 100)],
            id="two calls of one function are one row",
        ),
    ],
)
def test_each_call_is_charged_to_who_asked(lines: list[Line], expected: list[tuple[str, str, int]]) -> None:
    assert attributed(*lines) == expected


def test_what_hands_memory_on_is_passed_over_to_who_asked_it() -> None:
    asked = line(50, 0x12, "CRYPTO_zalloc", LIB, line(50, 0x13, "load", PROGRAM))
    assert attributed(line(50, 0x11, "xmalloc", LIB, asked)) == [(PROGRAM, "load", 50)]


def test_functions_of_the_programs_own_that_hand_memory_on_can_be_named() -> None:
    stack = line(50, 0x11, "pool_take(int)", LIB, line(50, 0x12, "arena::grow(int)", LIB, line(50, 0x13, "f", PROGRAM)))
    assert attributed(stack) == [(LIB, "pool_take(int)", 50)]
    assert attributed(stack, allocators=("pool_*",)) == [(LIB, "arena::grow(int)", 50)]
    assert attributed(stack, allocators=("pool_take", "arena::grow(int)")) == [(PROGRAM, "f", 50)]
    hidden = line(50, 0x11, "(anonymous namespace)::take(int)", LIB, line(50, 0x13, "f", PROGRAM))
    for name in ("(anonymous namespace)::take", "(anonymous namespace)::*", "take"):
        assert attributed(hidden, allocators=(name,)) == [(PROGRAM, "f", 50)]


def test_where_nobody_else_is_known_the_outermost_function_that_hands_memory_on_has_it() -> None:
    assert attributed(line(50, 0x11, "xmalloc", LIB, line(50, 0x12, "xcalloc", LIB))) == [(LIB, "xcalloc", 50)]


def test_a_function_that_hands_memory_on_further_out_has_not_asked_for_it() -> None:
    assert attributed(line(50, 0x11, "f", LIB, line(50, 0x12, "xmalloc", LIB))) == [(LIB, "f", 50)]


def test_what_was_inlined_is_its_callers() -> None:
    inner = Line(9, "0x11: append (in /usr/lib/libtable.so)", (line(9, 0x11, "load", LIB),))
    assert attributed(inner) == [(LIB, "load", 9)]


def test_what_was_inlined_into_a_function_that_hands_memory_on_is_passed_over_with_it() -> None:
    wrapper = line(9, 0x11, "xmalloc", LIB, line(9, 0x12, "load", LIB))
    assert attributed(line(9, 0x11, "checked", LIB, wrapper)) == [(LIB, "load", 9)]


@pytest.mark.parametrize(
    "name",
    [
        "malloc",
        "operator new(unsigned long)",
        "operator new[](unsigned long, std::align_val_t)",
        "_Znwm",
        "g_malloc0_n",
        "g_hash_table_resize",
        "safesysmalloc",
        "je_malloc_default",
        "_PyObject_Malloc",
        "(anonymous namespace)::do_malloc(unsigned long)",
        "std::allocator<int>::allocate(unsigned long)",
        "std::vector<int, std::allocator<int> >::_M_default_append(unsigned long)",
        "std::vector<std::__cxx11::basic_string<char> >::_M_realloc_insert(int)",
        "void std::vector<app::Row>::_M_realloc_insert<app::Row>(app::Row*, app::Row&&)",
        "std::_Vector_base<int, std::allocator<int> >::_M_allocate(unsigned long)",
        "std::_Hashtable<int, std::pair<int const, app::Row> >::_M_allocate_buckets(unsigned long)",
        "std::_Rb_tree<int, int>::_M_get_node()",
        "std::__detail::_MakeUniq<app::Row []>::__array std::make_unique<app::Row []>(unsigned long)",
        "std::shared_ptr<app::Row> std::make_shared<app::Row>()",
        "app::Row& std::deque<app::Row>::emplace_back<>()",
        "bool std::operator< <int>(std::vector<int>)",
        "std::__cxx11::basic_string<char>::_M_create(unsigned long&, unsigned long)",
        "std::__cxx11::basic_string<char, std::allocator<char> >::_M_mutate(unsigned long, char const*)",
        "void std::__cxx11::basic_string<char>::_M_construct<char const*>(char const*, char const*)",
        "std::__1::vector<int>::__push_back_slow_path(int&&)",
        "__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
        "alloc::alloc::Global::alloc_impl",
        "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
        "alloc::raw_vec::RawVec<T,A>::allocate_in",
        "<alloc::raw_vec::RawVec<u8>>::reserve_for_push",
        "alloc::vec::Vec<T,A>::push",
        "alloc::slice::<impl [T]>::to_vec",
        "<alloc::vec::Vec<T> as alloc::vec::spec_from_iter::SpecFromIter<T,I>>::from_iter",
        "<core::iter::adapters::map::Map<I,F> as core::iter::traits::iterator::Iterator>::fold",
        "<T as core::convert::Into<U>>::into",
        "<app::Row as alloc::string::ToString>::to_string",
        "<app::Row as <[_]>::to_vec_in::ConvertVec>::to_vec::<alloc::alloc::Global>",
        "hashbrown::raw::RawTable<T,A>::reserve_rehash",
        "std::collections::hash::map::HashMap<K,V,S>::insert",
        "runtime.mallocgc",
    ],
)
def test_functions_that_only_hand_memory_on_are_known_by_name(name: str) -> None:
    assert Allocators().rule_of(name)


@pytest.mark.parametrize(
    "name",
    [
        "g_main_loop_new",
        "PyObject_Call",
        "application::_M_create(int)",
        "app::std_rows(std::vector<int>)",
        "std::vector<int> app::load<int>(int)",
        "std::ostream& app::operator<< <int>(std::ostream&)",
        "app::Row::operator std::vector<int>() const",
        "app::load()::{lambda()#1}::operator()() const",
        "std::_Function_handler<int (), app::load()::{lambda()#1}>::_M_invoke(std::_Any_data const&)",
        "std::thread::_State_impl<std::thread::_Invoker<std::tuple<app::load()::{lambda()#1}> > >::_M_run()",
        "void* std::__1::__thread_proxy<std::__1::tuple<app::load()::$_0> >(void*)",
        "std::__1::__function::__func<app::load()::$_0, void ()>::operator()()",
        "core::Engine::load()",
        "<app::Row as core::clone::Clone>::clone",
        "<[T] as app::Rows>::load",
        "std::sys::backtrace::__rust_begin_short_backtrace",
        "core::ops::function::FnOnce::call_once{{vtable.shim}}",
        "operator()(int)",
        "mallocate",
        "main",
        "",
    ],
)
def test_functions_of_the_program_are_no_allocation_functions(name: str) -> None:
    # Where the compiler inlined a function of the program into a call-back, the call-back stands for it.
    assert not Allocators().rule_of(name)


def test_the_bytes_of_containers_are_those_of_the_function_that_fills_them() -> None:
    grow = "std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int*, int&&)"
    fill = line(50, 0x13, "app::fill(std::vector<int>&)", PROGRAM, line(50, 0x14, "main", PROGRAM))
    push = line(50, 0x12, "int& std::vector<int>::emplace_back<int>(int&&)", PROGRAM, fill)
    assert attributed(line(50, 0x11, f"void {grow}", PROGRAM, push)) == [(PROGRAM, "app::fill(std::vector<int>&)", 50)]


def test_a_replacement_of_malloc_is_known_by_its_file_where_its_functions_have_no_names() -> None:
    asked = line(50, 0x12, "???", "/opt/program")
    assert attributed(line(50, 0x11, "???", "/usr/lib/libjemalloc.so.2", asked)) == [("/opt/program", NO_SYMBOL, 50)]


def test_what_a_replacement_of_malloc_names_hands_memory_on_too() -> None:
    # DHAT's own copies of functions of the C library are in its file.
    asked = line(50, 0x12, "open_path", "/usr/lib/ld.so")
    own = "/usr/libexec/valgrind/vgpreload_dhat-amd64-linux.so"
    assert attributed(line(50, 0x11, "mempcpy", own, asked)) == [("/usr/lib/ld.so", "open_path", 50)]


# --- what is not known ------------------------------------------------------------------------------------------------


def test_what_is_below_the_threshold_behind_a_wrapper_could_be_anyones() -> None:
    one, other = line(40, 0x11, "load", LIB), Line(20, LUMP)
    assert attributed(line(60, 0x10, "xmalloc", LIB, one, other)) == [
        (LIB, "load", 40),
        (BELOW_THRESHOLD, BELOW_THRESHOLD, 20),
    ]


def test_a_place_without_a_name_is_its_objects() -> None:
    assert attributed(line(60, 0x10, "???", LIB), line(1, 0x20, "???", LIB)) == [(LIB, NO_SYMBOL, 61)]


def test_without_objects_the_cause_is_told() -> None:
    assert attributed(Line(60, "0x10: f (a.c:1)"), Line(7, "0x11: ??? (in ???)"), Line(3, "0x12: g")) == [
        (ONLY_LINES, "f", 60),
        ("[no object: the profile does not tell]", NO_SYMBOL, 7),
        ("[no object: the profile does not tell]", "g", 3),
    ]


def test_a_tree_without_stacks_has_one_row() -> None:
    assert attributed() == []
    tree, calls = read()
    tree.node_bytes[0] = 5
    assert rows(attribute(tree, calls)) == [(NO_STACK, NO_STACK, 5)]


def test_callers_that_do_not_add_up_are_still_conserved() -> None:
    tree, calls = read(line(60, 0x10, "f", LIB, line(50, 0x11, "g", LIB), line(30, 0x12, "h", LIB)))
    assert rows(attribute(tree, calls)) == [(LIB, "f", 60)]
    assert callers(tree, calls).total_bytes == callees(tree, calls).total_bytes == 60


# --- trees of functions -----------------------------------------------------------------------------------------------


STACKS = (
    line(
        90,
        0x10,
        "xmalloc",
        LIB,
        line(60, 0x11, "load", LIB, line(60, 0x20, "main", PROGRAM)),
        line(20, 0x12, "load", LIB, line(15, 0x20, "main", PROGRAM), Line(5, LUMP)),
        Line(10, LUMP),
    ),
    line(7, 0x21, "main", PROGRAM),
)


def test_a_tree_of_callers_begins_with_who_asked() -> None:
    assert lines_of(callers(*read(*STACKS))) == [
        (1, 80, "load"),
        (2, 75, "main"),
        (2, 5, BELOW_THRESHOLD),
        (1, 10, BELOW_THRESHOLD),
        (1, 7, "main"),
    ]


def test_a_tree_of_callees_begins_with_the_outermost_function_and_knows_who_asked_where_only_callers_are_unknown() -> (
    None
):
    # As in the tree of callers, who asked is unknown of 10.
    assert sorted(lines_of(callees(*read(*STACKS)))) == [
        (1, 5, CALLERS_BELOW),
        (1, 10, BELOW_THRESHOLD),
        (1, 82, "main"),
        (2, 5, "load"),
        (2, 75, "load"),
    ]


def test_places_without_names_that_follow_each_other_in_one_object_are_one_node() -> None:
    stack = line(9, 0x10, "???", LIB, line(9, 0x11, "???", LIB, line(9, 0x12, "main", PROGRAM)))
    assert lines_of(callers(*read(stack))) == [(1, 9, NO_SYMBOL), (2, 9, "main")]
    assert lines_of(callees(*read(stack))) == [(1, 9, "main"), (2, 9, NO_SYMBOL)]


def test_a_function_that_calls_itself_stays_a_stack() -> None:
    stack = line(9, 0x10, "f", LIB, line(9, 0x11, "f", LIB))
    assert lines_of(callers(*read(stack))) == [(1, 9, "f"), (2, 9, "f")]


def test_blocks_are_kept_beside_bytes() -> None:
    text = (
        b"heap profile: 3: 70 [3: 70] @ heapprofile\n 2: 60 [2: 60] @ 0x1001 0x2001\n 1: 10 [1: 10] @ 0x3001\n"
        b"\nMAPPED_LIBRARIES:\n00001000-00002000 r-xp 00000000 00:00 1 /lib/a.so\n"
        b"00002000-00004000 r-xp 00000000 00:00 2 /bin/b\n"
    )
    profile = read_profile(text, "a text")
    tree = profile.snapshots[0].tree
    assert tree is not None
    calls = name_frames(profile, "a text", Allocators()).calls
    found = attribute(tree, calls)
    assert [(share.owner, share.size_bytes, share.block_count) for share in found.owners] == [
        ("/lib/a.so", 60, 2),
        ("/bin/b", 10, 1),
    ]
    assert found.attributed_bytes == 70
    for grown in (callers(tree, calls), callees(tree, calls)):
        assert (grown.total_bytes, grown.total_blocks) == (70, 3)


def test_a_return_address_belongs_to_the_call_before_it() -> None:
    text = (
        b"heap profile: 1: 70 [1: 70] @ heapprofile\n 1: 70 [1: 70] @ 0x2000\n\nMAPPED_LIBRARIES:\n"
        b"00001000-00002000 r-xp 00000000 00:00 1 /lib/a.so\n00002000-00004000 r-xp 00000000 00:00 2 /bin/b\n"
    )
    profile = read_profile(text, "a text")
    calls = name_frames(profile, "a text", Allocators()).calls
    assert calls[1] == Call("/lib/a.so", NO_SYMBOL)
