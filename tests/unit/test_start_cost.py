"""What the loader does at start, counted by hand for the fewest objects that show each rule."""

from dataclasses import replace
from pathlib import Path

import pytest

from footprint.elf.dynamic import read_linkage
from footprint.elf.image import read_image
from footprint.loader.bindings import Binder
from footprint.loader.link_map import Linked, LinkMap
from footprint.loader.map_entry import FoundBy
from footprint.loader.start_cost import FailedOpens, StartCost, start_costs
from footprint.loader.system import Library
from footprint.loader.target import Libc
from tests.elfwriter import (
    DT_INIT_ARRAY,
    DT_INIT_ARRAYSZ,
    DT_JMPREL,
    DT_PLTREL,
    DT_PLTRELSZ,
    DT_RELA,
    DT_SYMBOLIC,
    EM_386,
    EM_PPC,
    EM_PPC64,
    ET_EXEC,
    RO,
    RW,
    SHT_RELA,
    STB_GNU_UNIQUE,
    STB_WEAK,
    At,
    Dyn,
    ElfFile,
    Order,
    Rel,
    Section,
    Size,
    Sym,
    Version,
    write,
)
from tests.loadable import bind, defined, link_map, made
from tests.sysroot import Sysroot

COPY, GLOB_DAT, JUMP_SLOT, RELATIVE, IRELATIVE = 5, 6, 7, 8, 37


def costs(*libraries: Library, libc: Libc = Libc.GLIBC) -> list[StartCost]:
    """Return what the loader does for each object."""
    linked = link_map(*libraries, libc=libc)
    found = [one for one in start_costs(linked, bind(*libraries, libc=libc), linked.objects) if one]
    assert len(found) == len(libraries)
    return found


def relocated(name: str, *relocations: tuple[str | None, int], symbols: tuple[Sym, ...] = ()) -> Library:
    """Return a library with these relocations: the symbol and the type of each."""
    table = [Rel(At(".data", 8 * place), kind, symbol or 0, 0) for place, (symbol, kind) in enumerate(relocations)]
    return made(name, *symbols, sections=[Section(".rela.dyn", SHT_RELA, RO, table)])


def test_relocations_are_counted_by_their_kind() -> None:
    kinds = [(None, RELATIVE), (None, RELATIVE), ("f", GLOB_DAT), ("f", COPY), (None, IRELATIVE), (None, 0)]
    cost = costs(relocated("program", *kinds, symbols=(Sym("f"),)), made("a", defined("f")))[0]
    assert (cost.relative_count, cost.symbolic_count, cost.copy_count, cost.irelative_count) == (2, 1, 1, 1)
    assert cost.relocation_count == 5


def test_calls_of_resolvers_are_counted_in_a_program_without_a_dynamic_section() -> None:
    entries = [Rel(At(".data", 8 * place), IRELATIVE, 0, 0) for place in range(25)]
    sections = [Section(".rela.plt", SHT_RELA, RO, entries), Section(".data", flags=RW, data=bytes(200))]
    image = read_image(write(ElfFile(type=ET_EXEC, sections=sections)), "static")
    program = Library("static", image, read_linkage(image), 0o755, None, lambda *_: image)  # type: ignore[arg-type] # it never changes
    linked = link_map(program, libc=Libc.OTHER)
    (cost,) = start_costs(linked, bind(program, libc=Libc.OTHER), linked.objects)
    assert cost
    assert (cost.irelative_count, cost.relocation_count, cost.table_page_count) == (25, 25, 1)


def test_a_lookup_asks_all_objects_up_to_the_one_that_defines_the_name() -> None:
    program = made("program", Sym("f"), asks={"f": GLOB_DAT})
    cost = costs(program, made("a"), made("b", defined("f")), made("c", defined("f")))[0]
    assert (cost.lookup_count, cost.asked_count) == (1, 3)


def test_a_weak_name_that_nobody_defines_is_asked_of_all() -> None:
    program = made("program", Sym("f", binding=STB_WEAK), asks={"f": GLOB_DAT})
    cost = costs(program, made("a"), made("b"))[0]
    assert (cost.lookup_count, cost.asked_count) == (1, 3)


def test_a_symbolic_library_asks_itself_first_and_again_with_the_others() -> None:
    symbols = defined("own"), Sym("f")
    library = made("a", *symbols, asks={"own": GLOB_DAT, "f": GLOB_DAT}, more=[Dyn(DT_SYMBOLIC)])
    cost = costs(made("program"), library, made("b", defined("f")))[1]
    # `own` is in itself; `f` is in none of itself, the program and itself, but in the next.
    assert (cost.lookup_count, cost.asked_count) == (2, 1 + 4)


def test_the_loader_keeps_the_last_lookup_alone() -> None:
    symbols = Sym("f"), Sym("g")
    uses = [("f", GLOB_DAT), ("f", 1), ("g", GLOB_DAT), ("f", GLOB_DAT)]
    cost = costs(relocated("program", *uses, symbols=symbols), made("a", defined("f"), defined("g")))[0]
    assert (cost.lookup_count, cost.repeated_count) == (3, 1)


def test_relocations_of_one_symbol_that_begin_a_table_take_the_same_lookup() -> None:
    cost = costs(relocated("program", *[("f", 1)] * 3, symbols=(Sym("f"),)), made("a", defined("f")))[0]
    assert (cost.symbolic_count, cost.lookup_count, cost.repeated_count) == (3, 1, 2)


def test_a_copied_variable_is_not_asked_of_the_program() -> None:
    cost = costs(relocated("program", ("v", COPY), symbols=(Sym("v"),)), made("a", defined("v")))[0]
    assert (cost.lookup_count, cost.asked_count) == (1, 1)


def test_each_object_is_searched_by_the_lookups_that_reach_it() -> None:
    symbols = defined("own"), Sym("f"), Sym("none", binding=STB_WEAK)
    asks = {"own": GLOB_DAT, "f": GLOB_DAT, "none": GLOB_DAT}
    library = made("a", *symbols, asks=asks, more=[Dyn(DT_SYMBOLIC)], gnu_hash=True)
    program = made("program", Sym("v"), Sym("f"), asks={"v": COPY, "f": GLOB_DAT})
    objects = costs(program, library, made("b", defined("f"), defined("v")), made("c"))
    # The library looks in itself first: for `own` there alone, for the two others once more with all.
    assert [cost.searched_count for cost in objects] == [1 + 2, 2 + 3 + 2, 2 + 2, 1]
    assert sum(cost.asked_count or 0 for cost in objects) == 15
    assert [cost.hash_style for cost in objects] == ["sysv", "gnu", "sysv", "sysv"]


def test_calls_are_looked_up_at_start_where_the_caller_wants_it() -> None:
    calls = [Section(".rela.plt", SHT_RELA, RO, [Rel(At(".data"), JUMP_SLOT, "f", 0)])]
    tags = [Dyn(DT_JMPREL, At(".rela.plt")), Dyn(DT_PLTRELSZ, Size(".rela.plt")), Dyn(DT_PLTREL, DT_RELA)]
    linked = link_map(made("program", Sym("f"), sections=calls, more=tags), made("a", defined("f")))
    bindings = Binder().bind(linked)
    for binds_now, counts in ((False, (0, 1, 0)), (True, (1, 0, 1))):
        cost = start_costs(replace(linked, binds_now=binds_now), bindings, linked.objects)[0]
        assert cost
        assert (cost.lookup_count, cost.lazy_count, cost.bound_now_count) == counts


def test_a_symbolic_library_ends_the_lookup_of_its_unique_symbol_in_itself() -> None:
    unique = defined("u", binding=STB_GNU_UNIQUE)
    library = made("b", unique, asks={"u": GLOB_DAT}, more=[Dyn(DT_SYMBOLIC)])
    objects = costs(made("program"), made("a", unique), library)
    assert (objects[2].lookup_count, objects[2].asked_count, objects[2].own_lookup_count) == (1, 1, 1)
    assert [cost.searched_count for cost in objects] == [0, 0, 1]


def loader_cost(*libraries: Library, is_needed: bool) -> StartCost | None:
    """Return what the loader does for itself, where an object needs it, or none does."""
    loader = Linked("ld.so", made("ld.so"), FoundBy.INTERPRETER, None, ())
    linked = link_map(*libraries)
    if is_needed:
        linked = replace(linked, objects=(*linked.objects, loader), interpreter=len(libraries))
    bindings = Binder().bind(linked)
    return start_costs(linked, bindings, linked.objects if is_needed else (*linked.objects, loader))[-1]


def test_a_loader_that_no_object_needs_keeps_its_own_allocator() -> None:
    cost = loader_cost(made("program"), is_needed=False)
    # The functions of the vDSO.
    assert cost
    assert (cost.lookup_count, cost.asked_count) == (5, 5)


def test_the_loader_takes_over_the_allocator_of_the_version_of_the_c_library() -> None:
    other = made("libmm.so", defined("malloc", version=2), versions=[Version("FOO", 2)])
    libc = made("libc.so.6", defined("malloc", version=2), versions=[Version("GLIBC_2.2.5", 2)])
    cost = loader_cost(made("program"), other, libc, is_needed=True)
    # malloc is found in the third object; nobody defines the three other functions, and all four are asked.
    assert cost
    assert (cost.lookup_count, cost.asked_count) == (5 + 4, 5 + 3 + 3 * 4)


@pytest.mark.parametrize(
    ("texts", "counts"),
    [
        (b"\0", (5 + 4, 5 + 4 * 2)),
        (b"\0__vdso_getrandom\0", (6 + 4, 6 + 4 * 2)),
        (b"\0__vdso_getrandom\0_r_debug\0", (6 + 5, 6 + 5 * 2)),
    ],
    ids=["2.36", "2.41", "2.43"],
)
def test_later_loaders_look_up_a_function_of_the_vdso_more_and_what_debuggers_read(
    texts: bytes, counts: tuple[int, int]
) -> None:
    sections = [Section(".rodata", flags=RO, data=texts)]
    loader_file = made("ld.so", defined("_r_debug"), sections=sections)
    loader = Linked("ld.so", loader_file, FoundBy.INTERPRETER, None, ())
    linked = link_map(made("program"))
    linked = replace(linked, objects=(*linked.objects, loader), interpreter=1, interpreter_object=loader)
    cost = start_costs(linked, Binder().bind(linked), linked.objects)[-1]
    # Both objects are asked for each of the others.
    assert cost
    assert (cost.lookup_count, cost.asked_count) == counts


@pytest.mark.parametrize(("texts", "count"), [(b"\0__vdso_time\0", 2), (b"\0", 1)])
def test_resolvers_of_older_c_libraries_look_up_a_function_of_the_vdso(texts: bytes, count: int) -> None:
    program = made("program", Sym("time"), asks={"time": GLOB_DAT})
    libc = made("libc.so.6", defined("time"), sections=[Section(".rodata", flags=RO, data=texts)])
    assert costs(program, libc)[0].lookup_count == count


def test_the_vdso_of_32_bits_has_as_many_functions() -> None:
    cost = loader_cost(made("program", bits=32, machine=EM_386), is_needed=False)
    assert cost
    assert (cost.lookup_count, cost.asked_count) == (5, 5)


def test_of_musl_the_relocations_are_known_and_not_the_lookups() -> None:
    cost = costs(made("program", Sym("f"), asks={"f": JUMP_SLOT}), made("a", defined("f")), libc=Libc.MUSL)[0]
    assert cost.symbolic_count == 1
    assert (cost.lookup_count, cost.asked_count, cost.repeated_count, cost.tried_count) == (None,) * 4


def failed_opens(result: LinkMap) -> list[list[FailedOpens]]:
    """Return the failed opens of each library."""
    bindings = bind(*[one.library for one in result.objects])
    return [list(one.failed_opens) for one in start_costs(result, bindings, result.objects)[1:] if one]


def test_a_folder_of_an_rpath_that_does_not_exist_is_tried_once(tmp_path: Path) -> None:
    sysroot = Sysroot(tmp_path)
    sysroot.loader()
    sysroot.program("liba.so", "libb.so", rpath="/none:/empty:/opt")
    for name in ("liba.so", "libb.so"):
        sysroot.library(f"/opt/{name}")
    (tmp_path / "empty").mkdir()
    first, second = failed_opens(sysroot.link())
    assert [one._replace(file_count=0) for one in first] == [
        FailedOpens("/none/", FoundBy.RPATH, is_for_processor=False, file_count=0),
        FailedOpens("/empty/", FoundBy.RPATH, is_for_processor=False, file_count=0),
    ]
    assert [(one.folder, one.file_count) for one in second] == [("/empty/", 1)]


def test_each_folder_is_tried_with_its_subfolders_for_the_processor(tmp_path: Path) -> None:
    sysroot = Sysroot(tmp_path)
    sysroot.loader()
    sysroot.program("liba.so", "libb.so", runpath="/opt")
    for path in ("/opt/liba.so", "/opt/libb.so", "/opt/glibc-hwcaps/x86-64-v2/other.so"):
        sysroot.library(path)
    first, second = failed_opens(sysroot.link(hwcaps="x86-64-v3"))
    assert [(one.folder, one.is_for_processor, one.file_count) for one in first] == [
        ("/opt/glibc-hwcaps/x86-64-v3/", True, 1),
        ("/opt/glibc-hwcaps/x86-64-v2/", True, 1),
    ]
    assert [(one.folder, one.file_count) for one in second] == [("/opt/glibc-hwcaps/x86-64-v2/", 1)]


def test_a_missing_library_is_tried_in_all_folders_and_its_requester_pays(tmp_path: Path) -> None:
    sysroot = Sysroot(tmp_path)
    sysroot.loader(("/lib/", "/usr/lib/"))
    sysroot.program("liba.so")
    sysroot.library("/lib/liba.so", "libnone.so")
    (tmp_path / "usr" / "lib").mkdir(parents=True)
    assert [[(one.folder, one.reason, one.file_count) for one in opens] for opens in failed_opens(sysroot.link())] == [
        [("/lib/", FoundBy.DEFAULT, 1), ("/usr/lib/", FoundBy.DEFAULT, 1)]
    ]


@pytest.mark.parametrize(("name", "opens"), [("libnone.so", []), ("/none/libnone.so", [("/none/", FoundBy.PATH, 1)])])
def test_of_a_missing_library_nothing_is_opened(
    tmp_path: Path, name: str, opens: list[tuple[str, FoundBy, int]]
) -> None:
    sysroot = Sysroot(tmp_path)
    sysroot.loader()
    sysroot.program("liba.so")
    sysroot.library("/lib/liba.so", name)
    result = sysroot.link()
    cost = start_costs(result, bind(*[one.library for one in result.objects]), result.objects)[1]
    assert cost
    failed = [(one.folder, one.reason, one.file_count) for one in cost.failed_opens]
    assert [one for one in failed if one[1] is FoundBy.PATH] == opens
    # A name with a slash is no name to search for.
    assert not opens or failed == opens
    assert cost.tried_count == 1 + sum(one[2] for one in failed)


@pytest.mark.parametrize(
    ("preload", "tried_count"),
    [("/none/liba.so", 1), ("/lib/libz.so:libz.so", 1), ("libz.so", 1), ("libz.so libz.so", 1), ("libz.so /none/a", 2)],
)
def test_a_preloaded_library_is_searched_once_and_by_its_path_in_no_folder(
    tmp_path: Path, preload: str, tried_count: int
) -> None:
    sysroot = Sysroot(tmp_path)
    sysroot.loader(("/lib/", "/usr/lib/"))
    sysroot.program()
    sysroot.library("/lib/libz.so", soname="libz.so")
    result = sysroot.link(preload=preload)
    costs = start_costs(result, bind(*[one.library for one in result.objects]), result.objects)
    assert sum(cost.tried_count or 0 for cost in costs if cost) == tried_count


def test_an_empty_relocation_asks_for_nothing_though_it_has_a_symbol() -> None:
    program = relocated("program", ("f", GLOB_DAT), ("g", 0), symbols=(Sym("f"), Sym("g")))
    calling = relocated("calling", ("f", GLOB_DAT), ("g", GLOB_DAT), ("g", 0), symbols=(Sym("f"), Sym("g")))
    counts = [cost.lookup_count for cost in costs(program, calling, made("a", defined("f"), defined("g")))]
    assert counts[:2] == [1, 2]


def test_a_damaged_table_of_initialisers_leaves_the_other_figures() -> None:
    cost = costs(made("program", more=[Dyn(DT_INIT_ARRAY, 1 << 40), Dyn(DT_INIT_ARRAYSZ, 64)]))[0]
    assert (cost.initialiser_count, cost.initialiser_bytes) == (None, None)
    assert (cost.relocation_count, cost.lookup_count) == (0, 0)


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize(("bits", "machine"), [(64, EM_PPC64), (32, EM_PPC)])
def test_symbols_of_relocations_are_read_in_each_form_of_file(bits: int, machine: int, order: Order) -> None:
    program = made("program", Sym("f"), asks={"f": 1}, bits=bits, order=order, machine=machine)
    cost = costs(program, made("a", defined("f"), bits=bits, order=order, machine=machine))[0]
    assert (cost.symbolic_count, cost.lookup_count, cost.asked_count) == (1, 1, 2)
