"""Where a variable is declared, by its address: each way of writing it, and what only looks like it."""

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import pytest

from footprint.dwarf.declarations import Declarations, compiled_sources, declarations_by_name, read_declarations
from footprint.dwarf.description import Declaration
from footprint.dwarf.places import VariablePlace
from footprint.dwarf.units import DebugInfo
from footprint.elf.image import read_image
from footprint.errors import InputError
from tests.dwarfwriter import (
    AT_ABSTRACT_ORIGIN,
    AT_ADDR_BASE,
    AT_BYTE_SIZE,
    AT_CALL_VALUE,
    AT_COMP_DIR,
    AT_CONST_VALUE,
    AT_COUNT,
    AT_DECL_FILE,
    AT_DECL_LINE,
    AT_DECLARATION,
    AT_EXTERNAL,
    AT_INLINE,
    AT_LANGUAGE,
    AT_LINKAGE_NAME,
    AT_LOCATION,
    AT_NAME,
    AT_SPECIFICATION,
    AT_STMT_LIST,
    AT_TYPE,
    AT_UPPER_BOUND,
    BLOCK1,
    BLOCK2,
    BLOCK4,
    DATA1,
    DATA2,
    DATA4,
    DATA16,
    EXPRLOC,
    FLAG_PRESENT,
    IMPLICIT_CONST,
    REF4,
    REF_ADDR,
    SDATA,
    SEC_OFFSET,
    STRING,
    STRP,
    TAG_ARRAY,
    TAG_BASE_TYPE,
    TAG_CALL_SITE_PARAMETER,
    TAG_COMPILE_UNIT,
    TAG_CONST,
    TAG_FORMAL_PARAMETER,
    TAG_MEMBER,
    TAG_POINTER,
    TAG_STRUCTURE,
    TAG_SUBPROGRAM,
    TAG_SUBRANGE,
    TAG_SUBROUTINE,
    TAG_TYPEDEF,
    TAG_VARIABLE,
    UDATA,
    Addr,
    Attribute,
    Die,
    Ref,
    Tls,
    Unit,
    Value,
    sections,
    uleb,
)
from tests.elfkinds import in_all_classes_and_orders
from tests.elfwriter import EM_RISCV, EM_X86_64, RW, SHF_COMPRESSED, ElfFile, Section, write
from tests.workcount import assert_linear

VADDR = 0x404010
INT = Die(TAG_BASE_TYPE, [(AT_NAME, STRING, "int"), (AT_BYTE_SIZE, DATA1, 4)], label="int")
C99, RUST = 0x0C, 0x1C
AT_PRODUCER = 0x25
HERE = Addr(VADDR)


def unit(
    *entries: Die,
    version: int = 5,
    language: int = C99,
    more: Sequence[Attribute] = (),
    first_code: int = 1,
    addresses: Sequence[int] = (),
) -> Unit:
    """Return a unit compiled from /src/a.c, which includes /src/inc/a.h; its files have the numbers 1 and 2."""
    place = SEC_OFFSET if version >= 4 else DATA4
    root: list[Attribute] = [(AT_NAME, STRP, "a.c"), (AT_COMP_DIR, STRING, "/src"), (AT_LANGUAGE, DATA1, language)]
    names = [("a.c", 0), ("a.h", 1)]
    directories = ["/src", "inc"]
    if version >= 5:
        names.insert(0, names[0])
    else:
        directories.pop(0)
    entry = Die(TAG_COMPILE_UNIT, [*root, (AT_STMT_LIST, place, 0), *more], [INT, *entries])
    return Unit(entry, version, 1, directories, names, addresses, first_code)


def variable(
    name: str, *more: Attribute, location: Value = HERE, form: int = EXPRLOC, type_: str = "int", file: int = 1
) -> Die:
    start: list[Attribute] = [(AT_NAME, STRP, name), (AT_DECL_FILE, DATA1, file), (AT_DECL_LINE, DATA2, 7)]
    return Die(TAG_VARIABLE, [*start, *more, (AT_TYPE, REF4, Ref(type_)), (AT_LOCATION, form, location)])


def elf(*units: Unit, is_64: bool = False, kind: dict[str, Any] | None = None, more: Sequence[Section] = ()) -> bytes:
    kind = kind or {"bits": 64, "order": "little"}
    debug = sections(units, order=kind["order"], bits=kind["bits"], is_64=is_64)
    return write(ElfFile(sections=[Section(".data", flags=RW, data=bytes(8)), *debug, *more], **kind))


def read(
    data: bytes, vaddrs: Sequence[int] = (VADDR,), tls_offsets: Sequence[int] = (), *, with_functions: bool = False
) -> Declarations:
    places = [VariablePlace(vaddr, is_tls=False) for vaddr in vaddrs]
    places += [VariablePlace(offset, is_tls=True) for offset in tls_offsets]
    return read_declarations(read_image(data, "program"), places, with_functions=with_functions)


def the_only(result: Declarations) -> Declaration:
    assert result.notes == ()
    ((one,),) = result.by_place.values()
    return one


# --- each way of writing it -------------------------------------------------------------------------------------------


def test_a_folder_that_a_map_of_prefixes_made_relative_is_not_put_before_itself() -> None:
    # gcc -ffile-prefix-map=/build=. leaves the folder of the compilation as ./lib, and so directory 0.
    root: list[Attribute] = [(AT_NAME, STRP, "a.c"), (AT_COMP_DIR, STRING, "./lib"), (AT_STMT_LIST, SEC_OFFSET, 0)]
    below = [INT, variable("x"), variable("y", location=Addr(VADDR + 4), file=2)]
    one = Unit(Die(TAG_COMPILE_UNIT, root, below), 5, 1, ["./lib", "../inc"], [("a.c", 0), ("a.c", 0), ("a.h", 1)])
    found = read(elf(one), [VADDR, VADDR + 4]).by_place
    told = [(each.file, each.unit, each.is_in_header) for (each,) in found.values()]
    assert told == [("lib/a.c", "lib/a.c", False), ("inc/a.h", "lib/a.c", True)]


@in_all_classes_and_orders
@pytest.mark.parametrize("is_64", [False, True], ids=["dwarf32", "dwarf64"])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_a_variable_is_found_by_its_address(kind: dict[str, Any], version: int, *, is_64: bool) -> None:
    form = EXPRLOC if version >= 4 else BLOCK1
    data = elf(unit(variable("counter", form=form), version=version), is_64=is_64, kind=kind)
    one = the_only(read(data))
    assert one[:9] == ("counter", "counter", "/src/a.c", 7, "/src/a.c", 7, "/src/a.c", "int", 4)
    assert not one.is_in_header | one.is_external


@in_all_classes_and_orders
@pytest.mark.parametrize("operation", [0x9B, 0xE0])
def test_a_thread_local_variable_is_found_by_its_offset(kind: dict[str, Any], operation: int) -> None:
    data = elf(unit(variable("own", location=Tls(24, operation))), kind=kind)
    found = read(data, [24], [24])
    assert the_only(found).name == "own"
    assert found.by_place.keys() == {(24, True)}


@in_all_classes_and_orders
def test_an_address_by_its_index_is_found_in_the_units_that_own_it(kind: dict[str, Any]) -> None:
    indexed = variable("indexed", location=b"\xa1\x02")
    owners = [[1, 2, VADDR], [VADDR, 4, 5]]
    base, units = 0, []
    for addresses in owners:
        base += 8
        more = [(AT_ADDR_BASE, SEC_OFFSET, base)]
        units.append(unit(indexed, more=more, addresses=addresses))
        base += 3 * kind["bits"] // 8
    assert the_only(read(elf(*units, kind=kind))).name == "indexed"


@pytest.mark.parametrize("form", [BLOCK1, BLOCK2, BLOCK4])
def test_the_length_of_the_expression_may_be_written_in_any_way(form: int) -> None:
    assert the_only(read(elf(unit(variable("counter", form=form), version=3)))).name == "counter"


@pytest.mark.parametrize("first_code", [1, 0x41, 0x7F, 0x3F00, 0x10000])
@pytest.mark.parametrize("name_form", [STRP, STRING])
def test_many_abbreviations_and_names_of_any_length_stand_before_it(first_code: int, name_form: int) -> None:
    entries = [
        Die(
            TAG_VARIABLE,
            [
                (AT_NAME, name_form, f"{'ABCD' * count}\u00e9"),
                (AT_DECL_FILE, IMPLICIT_CONST, 2),
                (AT_DECL_LINE, UDATA, 127 + count),
                (AT_EXTERNAL, FLAG_PRESENT, 1),
                (AT_CONST_VALUE, DATA16, 3),
                (AT_TYPE, REF4, Ref("int")),
                (AT_LOCATION, EXPRLOC, Addr(VADDR + count)),
            ],
        )
        for count in range(40)
    ]
    found = read(elf(unit(*entries, first_code=first_code)), range(VADDR, VADDR + 40))
    assert found.notes == ()
    assert [(one.name, one.line, one.file) for (one,) in found.by_place.values()] == [
        (f"{'ABCD' * count}\u00e9", 127 + count, "/src/inc/a.h") for count in range(40)
    ]


def test_a_variable_that_was_taken_apart_is_found_by_its_first_piece() -> None:
    data = elf(unit(variable("pair", location=Addr(VADDR, b"\x93\x04\x03" + bytes(8) + b"\x93\x04"))))
    assert the_only(read(data)).name == "pair"


@pytest.mark.parametrize("machine", [EM_X86_64, EM_RISCV])
def test_merged_variables_are_found_by_the_place_of_the_first_and_an_offset(machine: int) -> None:
    inner = variable("inner", location=Addr(VADDR, b"\x23\x90\x01"))
    data = elf(unit(variable("first"), inner), kind={"bits": 64, "order": "little", "machine": machine})
    found = read(data, [VADDR, VADDR + 0x90]).by_place
    assert [[one.name for one in here] for here in found.values()] == [["first"], ["inner"]]
    # The first one is searched for by its own place, where clang merges variables also what has none.
    assert [one.name for here in read(data, [VADDR + 0x90]).by_place.values() for one in here] == (
        [] if machine == EM_X86_64 else ["inner"]
    )


@pytest.mark.parametrize("machine", [EM_X86_64, EM_RISCV])
def test_merged_variables_are_found_by_the_index_of_the_place_of_the_first(machine: int) -> None:
    entries = [variable(name, location=b"\xa1\0" + behind) for name, behind in (("first", b""), ("inner", b"\x23\x08"))]
    owner = unit(*entries, more=[(AT_ADDR_BASE, SEC_OFFSET, 8)], addresses=[VADDR])
    data = elf(owner, kind={"bits": 64, "order": "little", "machine": machine})
    assert [one.name for here in read(data, [VADDR, VADDR + 8]).by_place.values() for one in here] == ["first", "inner"]
    assert [one.name for here in read(data, [VADDR + 8]).by_place.values() for one in here] == (
        [] if machine == EM_X86_64 else ["inner"]
    )


def test_bytes_that_are_not_utf_8_become_surrogates() -> None:
    assert the_only(read(elf(unit(variable("caf\udce9"))))).name == "caf\udce9"


# --- where it is declared ---------------------------------------------------------------------------------------------


def test_a_member_is_declared_in_its_class_and_defined_elsewhere() -> None:
    member: list[Attribute] = [(AT_NAME, STRP, "count"), (AT_DECL_FILE, DATA1, 2), (AT_DECL_LINE, DATA1, 3)]
    more: list[Attribute] = [(AT_LINKAGE_NAME, STRP, "_ZN1S5countE"), (AT_TYPE, REF4, Ref("int"))]
    declared = Die(TAG_MEMBER, [*member, *more, (AT_DECLARATION, FLAG_PRESENT, 1)], label="count")
    defined: list[Attribute] = [
        (AT_SPECIFICATION, REF4, Ref("count")),
        (AT_DECL_FILE, DATA1, 1),
        (AT_DECL_LINE, DATA1, 9),
    ]
    entry = Die(TAG_VARIABLE, [*defined, (AT_LOCATION, EXPRLOC, Addr(VADDR))])
    one = the_only(read(elf(unit(Die(TAG_STRUCTURE, [(AT_NAME, STRING, "S")], [declared]), entry))))
    assert (one.name, one.source_name, one.size_bytes) == ("_ZN1S5countE", "count", 4)
    assert (one.file, one.line, one.defined_in, one.defined_at_line) == ("/src/inc/a.h", 3, "/src/a.c", 9)
    assert not one.is_in_header


def test_a_variable_of_a_header_is_declared_by_each_unit() -> None:
    in_header: list[Attribute] = [(AT_NAME, STRP, "table"), (AT_DECL_FILE, DATA1, 2), (AT_DECL_LINE, DATA1, 3)]
    places = VADDR, VADDR + 64
    units = [
        unit(Die(TAG_VARIABLE, [*in_header, (AT_TYPE, REF4, Ref("int")), (AT_LOCATION, EXPRLOC, Addr(place))]))
        for place in places
    ]
    found = read(elf(*units), places)
    assert {one.is_in_header for (one,) in found.by_place.values()} == {True}
    assert {(one.file, one.line) for (one,) in found.by_place.values()} == {("/src/inc/a.h", 3)}


def test_a_module_of_rust_is_no_header() -> None:
    entry = variable("TABLE", (AT_DECL_FILE, DATA1, 2))
    assert not the_only(read(elf(unit(entry, language=RUST)))).is_in_header


def in_function(*more: Attribute) -> Die:
    static = Die(TAG_VARIABLE, [(AT_NAME, STRP, "calls"), (AT_TYPE, REF4, Ref("int"))], label="calls")
    name: Attribute = AT_LINKAGE_NAME, STRP, "_Z5countv"
    return Die(TAG_SUBPROGRAM, [(AT_NAME, STRP, "count"), name, *more], [static], label="count")


def test_a_variable_of_a_function_is_declared_once_however_often_it_is_inlined() -> None:
    copy = Die(TAG_VARIABLE, [(AT_ABSTRACT_ORIGIN, REF4, Ref("calls")), (AT_LOCATION, EXPRLOC, Addr(VADDR))])
    calls = [Die(TAG_SUBPROGRAM, [(AT_ABSTRACT_ORIGIN, REF4, Ref("count"))], [copy]) for _ in range(5)]
    found = read(elf(unit(in_function((AT_INLINE, DATA1, 3)), *calls)), with_functions=True)
    one = the_only(found)
    assert (one.name, one.function) == ("calls", "_Z5countv")


def test_functions_are_told_only_if_they_are_asked_for() -> None:
    inner = Die(TAG_SUBPROGRAM, [(AT_NAME, STRP, "main")], [variable("calls")])
    data = elf(unit(inner))
    assert the_only(read(data)).function is None
    assert the_only(read(data, with_functions=True)).function == "main"


# --- types ------------------------------------------------------------------------------------------------------------


def array(of: str, *bounds: Attribute, label: str = "array") -> Die:
    return Die(TAG_ARRAY, [(AT_TYPE, REF4, Ref(of))], [Die(TAG_SUBRANGE, [bound]) for bound in bounds], label)


def points_to(of: str, label: str) -> Die:
    return Die(TAG_POINTER, [(AT_BYTE_SIZE, DATA1, 8), (AT_TYPE, REF4, Ref(of))], label=label)


CONST = Die(TAG_CONST, [(AT_TYPE, REF4, Ref("int"))], label="const")
STRUCT = Die(TAG_STRUCTURE, [(AT_NAME, STRING, "pair"), (AT_BYTE_SIZE, DATA2, 300)], label="struct")
PARAMETER = Die(TAG_FORMAL_PARAMETER, [(AT_TYPE, REF4, Ref("pointer"))])
TYPES: dict[str, tuple[list[Die], str, str, int | None]] = {
    "base": ([], "int", "int", 4),
    "struct": ([STRUCT], "struct", "struct pair", 300),
    "array of pointers": (
        [CONST, points_to("const", "pointer"), array("pointer", (AT_UPPER_BOUND, DATA1, 11))],
        "array",
        "const int *[12]",
        96,
    ),
    "pointer to an array": ([array("int", (AT_COUNT, DATA1, 7)), points_to("array", "p")], "p", "int (*)[7]", 8),
    "two dimensions": ([array("int", (AT_COUNT, DATA1, 2), (AT_UPPER_BOUND, SDATA, 2))], "array", "int[2][3]", 24),
    "no elements": ([array("int", (AT_UPPER_BOUND, DATA4, 0xFFFFFFFF))], "array", "int[0]", 0),
    "no bound": ([array("int", (AT_DECL_LINE, DATA1, 3))], "array", "int[]", None),
    "typedef": ([Die(TAG_TYPEDEF, [(AT_NAME, STRING, "u"), (AT_TYPE, REF4, Ref("int"))], label="u")], "u", "u", 4),
    "function pointer": (
        [
            points_to("int", "pointer"),
            Die(TAG_SUBROUTINE, [(AT_TYPE, REF4, Ref("int"))], [PARAMETER], label="function"),
            points_to("function", "p"),
        ],
        "p",
        "int (*)(int *)",
        8,
    ),
    "void pointer": ([Die(TAG_POINTER, [(AT_BYTE_SIZE, DATA1, 8)], label="p")], "p", "void *", 8),
    "a loop": ([Die(TAG_CONST, [(AT_TYPE, REF4, Ref("loop"))], label="loop")], "loop", "const void", None),
    "itself an element": ([array("array", (AT_COUNT, DATA1, 2))], "array", "void" + "[2]" * 64, None),
}


@pytest.mark.parametrize("case", TYPES.values(), ids=TYPES)
def test_types_are_written_as_in_c(case: tuple[list[Die], str, str, int | None]) -> None:
    types, label, name, size_bytes = case
    one = the_only(read(elf(unit(*types, variable("x", type_=label)))))
    assert (one.type_name, one.size_bytes) == (name, size_bytes)


def test_a_type_in_another_unit_is_followed() -> None:
    types: list[Attribute] = [
        (AT_NAME, STRP, "x"),
        (AT_TYPE, REF_ADDR, Ref("far")),
        (AT_LOCATION, EXPRLOC, Addr(VADDR)),
    ]
    other = unit(Die(TAG_BASE_TYPE, [(AT_NAME, STRING, "far"), (AT_BYTE_SIZE, DATA1, 2)], label="far"))
    assert the_only(read(elf(unit(Die(TAG_VARIABLE, types)), other))).type_name == "far"


def test_tables_that_were_forgotten_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    types: list[Attribute] = [(AT_NAME, STRP, "x"), (AT_TYPE, REF_ADDR, Ref("far"))]
    far = Die(TAG_BASE_TYPE, [(AT_NAME, STRING, "far"), (AT_BYTE_SIZE, DATA1, 2)], label="far")
    units = [unit(far, first_code=100)]
    units += [unit(Die(TAG_VARIABLE, [*types, (AT_LOCATION, EXPRLOC, Addr(VADDR + at))])) for at in range(0, 40, 4)]
    whole, vaddrs = elf(*units), range(VADDR, VADDR + 40, 4)
    expected = read(whole, vaddrs)
    assert [one.type_name for (one,) in expected.by_place.values()] == ["far"] * 10
    monkeypatch.setattr("footprint.dwarf.encoding._MOST_KEPT", 1)
    monkeypatch.setattr("footprint.dwarf.proof._MOST_SHAPES", 1)
    assert read(whole, vaddrs) == expected


# --- what only looks like it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location",
    [
        Addr(VADDR, b"\x9f"),
        Addr(VADDR, b"\x23\x08"),
        Addr(VADDR, b"\x06"),
        b"\x50" + b"\x03" + bytes(8),
        Addr(VADDR + 1),
    ],
    ids=["value", "plus", "dereferenced", "register", "another"],
)
def test_an_expression_that_is_no_address_of_the_variable_is_passed_over(location: Value) -> None:
    found = read(elf(unit(variable("x", location=location))))
    assert found.by_place == {}
    assert found.notes == ()


def test_an_address_that_a_call_passes_declares_nothing() -> None:
    argument: list[Attribute] = [(AT_LOCATION, EXPRLOC, b"\x55"), (AT_CALL_VALUE, EXPRLOC, Addr(VADDR))]
    calls = [Die(TAG_CALL_SITE_PARAMETER, argument) for _ in range(300)]
    found = read(elf(unit(variable("x"), *calls)))
    assert the_only(found).name == "x"


def test_a_constant_that_holds_a_whole_entry_declares_nothing() -> None:
    inner = variable("x")
    (text,) = [section.data for section in sections([unit(inner)]) if section.name == ".debug_info"]
    assert isinstance(text, bytes)
    trap = Die(TAG_BASE_TYPE, [(AT_NAME, STRING, "trap"), (AT_CONST_VALUE, BLOCK2, text[-32:])])
    found = read(elf(unit(inner, trap)))
    assert the_only(found).name == "x"


# --- what is absent or not handled ------------------------------------------------------------------------------------


def slugs(result: Declarations) -> list[str]:
    return [note.slug for note in result.notes]


def test_a_file_without_debug_information_says_so() -> None:
    assert slugs(read(elf())) == ["debug-info-absent"]


def test_units_of_an_unknown_version_are_passed_over() -> None:
    found = read(elf(unit(variable("x")), unit(variable("y"), version=7)))
    assert [one.name for (one,) in found.by_place.values()] == ["x"]
    assert slugs(found) == ["debug-info-unsupported"]


@in_all_classes_and_orders
@pytest.mark.parametrize("old", [False, True], ids=["chdr", "zdebug"])
def test_compressed_sections_are_read(kind: dict[str, Any], *, old: bool) -> None:
    assert the_only(read(compressed(kind, old=old))).name == "x"


def compressed(
    kind: dict[str, Any], *, old: bool = False, claim: int = 0, compression: int = 1, contents: bytes = b""
) -> bytes:
    """Write a file whose .debug_info is compressed, and claims so many bytes more."""
    debug = []
    for section in sections([unit(variable("x"))], order=kind["order"], bits=kind["bits"]):
        assert isinstance(section.data, bytes)
        text = zlib.compress(contents or section.data)
        size = len(section.data) + claim
        mark = "<" if kind["order"] == "little" else ">"
        if section.name != ".debug_info":
            debug.append(section)
        elif old:
            debug.append(Section(".zdebug_info", data=b"ZLIB" + struct.pack(">Q", size) + text))
        else:
            head = struct.pack(
                f"{mark}IIQQ" if kind["bits"] == 64 else f"{mark}III",
                compression,
                *([0, size, 1] if kind["bits"] == 64 else [size, 1]),
            )
            debug.append(Section(section.name, flags=SHF_COMPRESSED, data=head + text))
    return write(ElfFile(sections=[Section(".data", flags=RW, data=bytes(8)), *debug], **kind))


KIND: dict[str, Any] = {"bits": 64, "order": "little"}


@pytest.mark.parametrize("claim", [-1, 1, 1 << 20, 1 << 40])
def test_a_compressed_section_that_lies_about_its_size_is_refused(claim: int) -> None:
    with pytest.raises(InputError, match="claim"):
        read(compressed(KIND, claim=claim))


def test_a_compressed_section_gives_no_more_than_it_claims() -> None:
    with pytest.raises(InputError, match="more"):
        read(compressed(KIND, contents=bytes(64 << 20)))


def test_an_unknown_compression_is_said() -> None:
    assert slugs(read(compressed(KIND, compression=9))) == ["debug-info-unsupported"]


# --- by name ----------------------------------------------------------------------------------------------------------


@in_all_classes_and_orders
@pytest.mark.parametrize("form", [STRP, STRING])
def test_a_constant_without_an_address_is_found_by_its_name(kind: dict[str, Any], form: int) -> None:
    def constant(name: str, *more: Attribute) -> Die:
        place: list[Attribute] = [(AT_DECL_FILE, DATA1, 2), (AT_DECL_LINE, DATA1, 6), (AT_TYPE, REF4, Ref("int"))]
        return Die(TAG_VARIABLE, [(AT_NAME, form, name), *place, *more])

    value: Attribute = AT_CONST_VALUE, BLOCK1, bytes(4)
    is_declared: Attribute = AT_DECLARATION, FLAG_PRESENT, 1
    vanished = constant("vanished", (AT_CONST_VALUE, DATA1, 3))
    entries = constant("ratios", is_declared, value), constant("elsewhere", is_declared), variable("located"), vanished
    image = read_image(elf(unit(*entries, constant("no_ratios", value)), kind=kind), "program")
    found = declarations_by_name(DebugInfo(image), ["ratios", "elsewhere", "located", "vanished", "", "absent"])
    assert [*found] == ["ratios"]
    assert [(one.file, one.line, one.is_in_header) for one in found["ratios"]] == [("/src/inc/a.h", 6, True)]


def test_names_are_found_where_texts_share_their_ends_and_where_they_are_short() -> None:
    def constant(name: str) -> Die:
        place: list[Attribute] = [(AT_DECL_FILE, DATA1, 1), (AT_DECL_LINE, DATA1, 6), (AT_TYPE, REF4, Ref("int"))]
        return Die(TAG_VARIABLE, [(AT_NAME, STRP, name), *place, (AT_CONST_VALUE, BLOCK1, bytes(4))])

    names = ["x", "xy", "xyz", "wxyz", "a_wxyz"]
    debug = sections([unit(*map(constant, names))])
    (info,) = (one.data for one in debug if one.name == ".debug_info")
    (texts,) = (one.data for one in debug if one.name == ".debug_str")
    assert isinstance(info, bytes)
    assert isinstance(texts, bytes)
    # The linker lets the text of `wxyz` be the end of `a_wxyz`.
    old, new = texts.index(b"\0wxyz\0") + 1, texts.index(b"a_wxyz\0") + 2
    shared = info.replace(old.to_bytes(4, "little"), new.to_bytes(4, "little"))
    others = [one for one in debug if one.name != ".debug_info"]
    data = write(
        ElfFile(sections=[Section(".data", flags=RW, data=bytes(8)), *others, Section(".debug_info", data=shared)])
    )
    image = read_image(data, "program")
    assert {*declarations_by_name(DebugInfo(image), names)} == {*names}
    assert {*declarations_by_name(DebugInfo(image), ["wxyz", "z", "yz"])} == {"wxyz"}


def test_the_sources_that_were_compiled_are_told_in_their_order() -> None:
    image = read_image(elf(unit(), unit()), "program")
    assert compiled_sources(DebugInfo(image)) == ("/src/a.c", "/src/a.c")


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_entries_that_refer_to_each_other_end() -> None:
    loop = Die(TAG_VARIABLE, [(AT_SPECIFICATION, REF4, Ref("b"))], label="a")
    back = Die(TAG_VARIABLE, [(AT_SPECIFICATION, REF4, Ref("a"))], label="b")
    start = Die(TAG_VARIABLE, [(AT_SPECIFICATION, REF4, Ref("a")), (AT_LOCATION, EXPRLOC, Addr(VADDR))])
    found = read(elf(unit(loop, back, start)))
    ((one,),) = found.by_place.values()
    assert one.name is None
    assert [note.slug for note in found.notes] == ["debug-info-damaged"]
    assert "references form a circle" in found.notes[0].detail


def test_a_flood_of_one_address_costs_each_entry_once() -> None:
    def flood(count: int) -> bytes:
        return elf(unit(*(variable(f"x{number % 7}") for number in range(count))))

    def read_all(data: bytes) -> None:
        found = read(data, with_functions=True)
        assert {one.name for one in found.by_place[VariablePlace(VADDR, is_tls=False)]} == {
            f"x{number}" for number in range(7)
        }

    assert_linear(flood, read_all, 2_000)


def test_deep_nesting_takes_no_stack_and_each_level_once() -> None:
    def nested(depth: int) -> bytes:
        image = sections([unit(variable("x"))])
        by_name = {one.name: one for one in image}
        info, table = by_name[".debug_info"].data, by_name[".debug_abbrev"].data
        assert isinstance(info, bytes)
        assert isinstance(table, bytes)
        # The last byte ends the unit's list of entries: before it stand entries that open lists, over and over.
        abbreviations = table[:-1] + uleb(99) + uleb(TAG_SUBPROGRAM) + b"\1\0\0" + b"\0"
        body = info[4:-1] + uleb(99) * depth + bytes(depth) + b"\0"
        rest = [one for one in image if one.name not in {".debug_info", ".debug_abbrev"}]
        body = struct.pack("<I", len(body)) + body
        changed = [Section(".debug_info", data=body), Section(".debug_abbrev", data=abbreviations)]
        return write(ElfFile(sections=[*changed, *rest]))

    def read_all(data: bytes) -> None:
        assert the_only(read(data, with_functions=True)).name == "x"

    assert_linear(nested, read_all, 25_000)


def test_an_address_of_any_width_is_asked_for_without_harm() -> None:
    assert read(elf(unit(variable("x"))), [VADDR, 1 << 63, (1 << 64) - 1, 1 << 70, 0]).by_place.keys() == {
        (VADDR, False)
    }


@pytest.mark.parametrize(
    ("language", "producer", "label"),
    [
        (0x04, "GNU C++17 12.2.0 -mtune=generic -g -O2", "C++17"),
        (0x1A, "GNU C++11 12.2.0 -std=gnu++11", "C++11"),
        (0x04, "GNU C++98 8.3.0", "C++98"),
        (0x04, "GNU C++ 4.8.5 -O2 -std=c++0x", "C++11"),
        (0x1D, "GNU C17 12.2.0 -g", "C17"),
        (0x01, "GNU C89 12.2.0", "C89"),
        # clang names C++14 for every later standard.
        (0x21, "Debian clang version 14.0.6", "C++"),
        (0x21, "clang version 17.0.1 /usr/bin/clang -std=c++2a -c x.cc", "C++20"),
        (0x1A, "clang version 14.0.6", "C++11"),
        (0x1D, "clang version 14.0.6", "C11"),
        (0x0C, "", "C99"),
        (RUST, "rustc 1.70", None),
    ],
)
def test_the_language_standard_is_that_of_the_producer_or_else_of_the_language(
    language: int, producer: str, label: str | None
) -> None:
    data = elf(unit(variable("x"), language=language, more=[(AT_PRODUCER, STRING, producer)]))
    standard = the_only(read(data)).standard
    assert (None if standard is None else standard.label) == label
