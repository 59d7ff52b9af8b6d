"""Which variables a file has and which source files they came from, as its symbol table tells."""

import pytest

from footprint.elf.image import read_image
from footprint.elf.statics import Statics, read_statics
from footprint.elf.symbols import Symbol
from footprint.errors import InputError
from tests.elfkinds import in_all_classes_and_orders
from tests.elfwriter import (
    RW,
    RX,
    SHN_ABS,
    SHT_NOBITS,
    STB_GLOBAL,
    STB_LOCAL,
    STT_FILE,
    STT_FUNC,
    STT_NOTYPE,
    STT_OBJECT,
    STT_TLS,
    TLS,
    At,
    ElfFile,
    Section,
    Sym,
    Value,
    patch,
    write,
)

SECTIONS = [
    Section(".text", flags=RX, data=bytes(64)),
    Section(".tdata", flags=TLS, data=bytes(16)),
    Section(".data", flags=RW, data=bytes(64)),
    Section(".bss", SHT_NOBITS, RW, size=64),
]


def source(name: str) -> Sym:
    return Sym(name, type=STT_FILE, binding=STB_LOCAL, section=SHN_ABS)


def local(name: str, value: Value, size: int = 8, type_: int = 1) -> Sym:
    return Sym(name, value, size, type_, STB_LOCAL)


def statics(*symbols: Sym) -> Statics:
    return read_statics(read_image(write(ElfFile(sections=SECTIONS, symbols=symbols)), "program"))


def units(result: Statics) -> dict[str, str | None]:
    return {static.name: None if static.unit is None else result.units[static.unit] for static in result.statics}


@in_all_classes_and_orders
def test_a_variable_has_name_place_size_and_source_file_in_all_classes_and_orders(kind: dict[str, int]) -> None:
    symbols = [source("a.c"), local("counter", At(".data", 8), 12), local("errors", At(".tdata", 4), 4, STT_TLS)]
    found = read_statics(read_image(write(ElfFile(sections=SECTIONS, symbols=symbols, **kind)), "program"))  # type: ignore[arg-type] # class, order and machine
    counter, errors = found.statics
    data = next(section for section in found.image.sections if section.name == ".data")
    assert counter == Symbol("counter", data.vaddr + 8, 12, STT_OBJECT, STB_LOCAL, data.index, offset=8, unit=0)
    assert (errors.vaddr, errors.size_bytes, errors.is_tls) == (4, 4, True)
    assert (found.units, found.is_stripped) == (("a.c",), False)


@pytest.mark.parametrize("name", ["", "<artificial>", "ld-temp.o"])
def test_locals_belong_to_the_source_file_before_them_and_link_time_optimisation_ends_that(name: str) -> None:
    result = statics(
        local("before", At(".data")),
        source("a.c"),
        local("x", At(".data", 8)),
        source("b.c"),
        local("y", At(".data", 16)),
        source(name),
        local("z.lto_priv.0", At(".data", 24)),
    )
    assert units(result) == {"before": None, "x": "a.c", "y": "b.c", "z.lto_priv.0": None}


def test_a_global_belongs_to_no_source_file_wherever_it_stands() -> None:
    found = statics(source("a.c"), local("own", At(".data")), Sym("shared", At(".data", 8), 8, binding=STB_GLOBAL))
    assert units(found) == {"own": "a.c", "shared": None}
    assert [static.is_local for static in found.statics] == [True, False]


def test_two_source_files_of_one_name_are_two() -> None:
    found = statics(source("x.c"), local("a", At(".data")), source("x.c"), local("b", At(".data", 8)))
    assert found.units == ("x.c", "x.c")
    assert [static.unit for static in found.statics] == [0, 1]


def test_several_names_at_one_address_are_one_variable() -> None:
    found = statics(local("table", At(".data")), local("folded", At(".data")), local("other", At(".data", 8)))
    assert [static.name for static in found.statics] == ["table", "other"]


def test_a_thread_local_and_a_variable_of_one_value_are_two() -> None:
    found = statics(local("of_thread", At(".tdata"), 4, STT_TLS), local("shared", At(".data")))
    assert [(static.name, static.is_tls) for static in found.statics] == [("of_thread", True), ("shared", False)]


def test_what_has_no_size_or_is_no_variable_is_none() -> None:
    found = statics(
        local("label", At(".data"), 0),
        local("code", At(".text"), 8, STT_FUNC),
        local("mark", At(".data"), 8, STT_NOTYPE),
    )
    assert found.statics == ()


def test_the_symbol_that_holds_an_address_is_found_and_none_between_two() -> None:
    result = statics(local("f", At(".text"), 16, STT_FUNC), local("x", At(".data"), 8), local("y", At(".data", 32), 8))
    vaddrs = {static.name: static.vaddr for static in result.statics}
    assert result.symbol_at(vaddrs["x"]) == ("x", 0)
    assert result.symbol_at(vaddrs["x"] + 7) == ("x", 7)
    assert result.symbol_at(vaddrs["x"] + 8) is None
    assert result.symbol_at(vaddrs["y"]) == ("y", 0)
    assert result.symbol_at(1) is None


def test_a_label_without_a_size_holds_its_own_address() -> None:
    found = statics(local("x", At(".data"), 8), local("end", At(".data", 8), 0))
    assert found.symbol_at(found.statics[0].vaddr + 8) == ("end", 0)


def test_the_function_that_an_address_lies_in_is_found() -> None:
    found = statics(local("f", At(".text", 16), 8, STT_FUNC), local("g", At(".text", 32), 8, STT_FUNC))
    f, g = found.functions
    assert (f.name, g.vaddr - f.vaddr) == ("f", 16)
    assert found.functions.at(f.vaddr + 7) == f
    assert found.functions.at(f.vaddr + 8) is None
    assert found.functions.at(f.vaddr - 1) is None


def test_a_stripped_file_has_the_variables_that_it_exports() -> None:
    exported = [Sym("shared", At(".data"), 8)]
    file = ElfFile(sections=SECTIONS, dynamic_symbols=exported)
    found = read_statics(read_image(write(file), "library.so"))
    assert ([static.name for static in found.statics], found.units, found.is_stripped) == (["shared"], (), True)


def test_a_file_without_any_symbol_has_no_variables() -> None:
    found = read_statics(read_image(write(ElfFile(sections=SECTIONS)), "program"))
    assert (found.statics, found.units, found.is_stripped, len(found.functions)) == ((), (), True, 0)
    assert found.symbol_at(0x1000) is None


@pytest.mark.parametrize(
    ("field", "value", "cause"),
    [("sh_entsize", 7, "are 7 bytes long"), ("sh_link", 0, "is not a section"), ("sh_link", 99, "is not a section")],
)
def test_a_damaged_table_is_an_error(field: str, value: int, cause: str) -> None:
    image = write(ElfFile(sections=SECTIONS, symbols=[local("x", At(".data"))]))
    with pytest.raises(InputError, match=cause):
        read_statics(read_image(patch(image, field, value, ".symtab"), "program"))


def test_what_makes_variables_at_start_is_counted() -> None:
    names = ["_GLOBAL__sub_I_main", "_GLOBAL__sub_I_b.cpp", "_GLOBAL__I_000101", "_GLOBAL__sub_I.00101_x", "main"]
    functions = [local(name, At(".text", 8 * at), 4 + at, STT_FUNC) for at, name in enumerate(names)]
    # What is at one place is one function; what runs at the end, or is no function, is none of them.
    others = [
        local("_GLOBAL__sub_I_again", At(".text", 0), 4, STT_FUNC),
        local("_GLOBAL__sub_D_main", At(".text", 48), 4, STT_FUNC),
        local("_GLOBAL__sub_I_data", At(".data")),
    ]
    assert statics(*functions, *others).initialisers == (4, 4 + 5 + 6 + 7)
    assert statics().initialisers == (0, 0)
