"""Objects that are laid out as one file: what lies where, and what points to what."""

from collections.abc import Sequence

import pytest

from footprint.elf.image import Section as ElfSection
from footprint.elf.image import read_image
from footprint.elf.initial import Initials
from footprint.elf.prelink import Prelinked, prelinked
from footprint.elf.statics import read_statics
from footprint.errors import InputError
from footprint.findings.copies import find_copies
from tests.elfwriter import (
    EM_AARCH64,
    EM_X86_64,
    ET_REL,
    RO,
    RW,
    RX,
    SHN_ABS,
    SHT_NOBITS,
    SHT_RELA,
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FILE,
    STT_FUNC,
    TLS,
    At,
    ElfFile,
    Rel,
    Section,
    Sym,
    write,
)

R_X86_64_NONE, R_X86_64_64, R_X86_64_PC32, R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX = 0, 1, 2, 9, 41
DATA = bytes(range(1, 33))


def an_object(name: str, symbols: Sequence[Sym], sections: Sequence[Section], *, bits: int = 64) -> bytes:
    source = Sym(name, type=STT_FILE, binding=STB_LOCAL, section=SHN_ABS)
    return write(ElfFile(type=ET_REL, bits=bits, sections=sections, symbols=[source, *symbols]))  # type: ignore[arg-type] # 32 or 64


def whole(*objects: bytes) -> Prelinked:
    return prelinked([read_image(one, f"lib.a({number}.o)") for number, one in enumerate(objects)], "lib.a")


def table(name: str = "table", section: str = ".data", **what: int) -> Sym:
    return Sym(name, At(section), 32, **{"binding": STB_LOCAL, **what})


@pytest.mark.parametrize("bits", [32, 64])
def test_the_statics_of_several_objects_are_copies(bits: int) -> None:
    objects = [an_object(f"{name}.c", [table()], [Section(".data", flags=RW, data=DATA)], bits=bits) for name in "ab"]
    statics = read_statics(whole(*objects).image)
    (found,) = find_copies(statics)
    assert (found.name, found.copy_count, found.units, found.section) == ("table", 2, ("a.c", "b.c"), ".data")


def test_sections_of_one_kind_become_one_section() -> None:
    sections = [Section(".data.rel.ro.local.x", flags=RW, data=DATA), Section(".bss.y", SHT_NOBITS, RW, size=32)]
    symbols = [table("x", ".data.rel.ro.local.x"), table("y", ".bss.y")]
    found = whole(an_object("a.c", symbols, sections), an_object("b.c", symbols, sections))
    assert {one.name: one.size_bytes for one in found.image.sections if one.name in {".data.rel.ro", ".bss"}} == {
        ".data.rel.ro": 64,
        ".bss": 64,
    }


def test_the_zeros_of_threads_are_in_no_segment() -> None:
    sections = [Section(".tdata", flags=TLS, data=DATA), Section(".tbss", SHT_NOBITS, TLS, size=32)]
    image = whole(an_object("a.c", [], sections)).image
    loaded = {load.vaddr for load in image.loads}
    assert [(one.name, one.vaddr in loaded) for one in image.sections if one.is_tls] == [
        (".tdata", True),
        (".tbss", False),
    ]


def test_of_a_global_name_the_first_definition_counts() -> None:
    objects = [
        an_object(f"{name}.c", [table(binding=STB_WEAK)], [Section(".data", flags=RW, data=DATA)]) for name in "ab"
    ]
    assert [static.name for static in read_statics(whole(*objects).image).statics] == ["table"]


def test_pointers_lead_to_the_names_of_other_objects_and_to_those_that_none_defines() -> None:
    def table_of(target: str) -> bytes:
        sections = [
            Section(".data", flags=RW, data=bytes(32)),
            Section(".rela.data", SHT_RELA, 0, [Rel(At(".data", 8), R_X86_64_64, target, 4)], info=".data"),
        ]
        return an_object(f"{target}.c", [table(), Sym(target, binding=STB_GLOBAL)], sections)

    other = an_object("c.c", [table("there", binding=STB_GLOBAL)], [Section(".data", flags=RW, data=DATA)])
    statics = read_statics(whole(table_of("there"), table_of("nowhere"), other).image)
    initials = Initials(statics)
    initials.prepare(statics.statics)
    targets = [initials.of(static).targets for static in statics.statics if static.name == "table"]  # type: ignore[union-attr] # each has
    assert targets == [((8, ("there", 4)),), ((8, ("nowhere", 4)),)]
    assert all(initials.is_relocated(static) for static in statics.statics if static.name == "table")


HOLE = bytes(4)


@pytest.mark.parametrize(
    ("before", "kind", "after", "become"),
    [
        pytest.param(b"\x8b\x05", R_X86_64_PC32, b"\xc3", b"\x8b\x05", id="mov table(%rip), %eax"),
        pytest.param(b"", R_X86_64_PC32, b"", b"", id="all of the section"),
        pytest.param(b"\x48\x8b\x05", R_X86_64_GOTPCREL, b"", b"\x48\x8d\x05", id="mov table@GOTPCREL(%rip), %rax"),
        pytest.param(b"\x8b\x05", R_X86_64_GOTPCRELX, b"\xc3", b"\x8d\x05", id="mov table@GOTPCREL(%rip), %eax"),
        pytest.param(b"\x48\x03\x05", R_X86_64_GOTPCREL, b"\xc3", b"\x48\x03\x05", id="add table@GOTPCREL(%rip), %rax"),
        pytest.param(b"\xff\x15", R_X86_64_GOTPCRELX, b"\xc3", b"\x67\xe8", id="call *table@GOTPCREL(%rip)"),
        pytest.param(b"\x90\xff\x25", R_X86_64_GOTPCRELX, b"\xc3", b"\x90\x67\xe9", id="jmp *table@GOTPCREL(%rip)"),
        pytest.param(b"\xff\x15", R_X86_64_PC32, b"\xc3", b"\xff\x15", id="call *table(%rip)"),
    ],
)
def test_references_in_code_lead_to_where_the_variable_lies(
    before: bytes, kind: int, after: bytes, become: bytes
) -> None:
    text, data, code = linked_code(before + HOLE + after, kind, len(before))
    # The relocation has the addend -4: a displacement counts from the next instruction.
    distance = data.vaddr - (text.vaddr + len(before) + 4)
    assert code == become + distance.to_bytes(4, "little", signed=True) + after


@pytest.mark.parametrize(
    ("code", "kind", "offset", "machine"),
    [
        pytest.param(b"\x8b\x05" + HOLE, R_X86_64_PC32, 3, EM_X86_64, id="a place that ends behind the section"),
        pytest.param(b"\x8b\x05" + HOLE, R_X86_64_NONE, 2, EM_X86_64, id="no relocation"),
        pytest.param(b"\x8b\x05" + HOLE, R_X86_64_PC32, 2, EM_AARCH64, id="code of another machine"),
    ],
)
def test_code_stays_as_it_is_without_a_reference_of_x86_64_in_it(
    code: bytes, kind: int, offset: int, machine: int
) -> None:
    assert linked_code(code, kind, offset, machine)[2] == code


def linked_code(code: bytes, kind: int, offset: int, machine: int = EM_X86_64) -> tuple[ElfSection, ElfSection, bytes]:
    """Return the sections of code and of a variable of one object, with a relocation there, and the code as linked."""
    sections = [
        Section(".text", flags=RX, data=code),
        Section(".data", flags=RW, data=DATA),
        Section(".rela.text", SHT_RELA, 0, [Rel(At(".text", offset), kind, "table", -4)], info=".text"),
    ]
    symbols = [table(binding=STB_GLOBAL), Sym("f", At(".text"), len(code), STT_FUNC)]
    file = ElfFile(type=ET_REL, sections=sections, symbols=symbols, machine=machine)
    image = whole(write(file)).image
    text, data = (next(one for one in image.sections if one.name == name) for name in (".text", ".data"))
    return text, data, bytes(image.section_bytes(text))


def test_sections_that_claim_the_same_bytes_many_times_are_refused() -> None:
    sections = [Section(".rodata", flags=RO, data=bytes(4096)), *[Section(".data", flags=RW, data=b"")] * 3]
    image = read_image(an_object("a.c", [], sections), "a.o")
    wide = image.sections[1]
    forged = [*image.sections, *[wide._replace(index=len(image.sections) + n) for n in range(9)]]
    object.__setattr__(image, "sections", tuple(forged))
    with pytest.raises(InputError, match="more bytes than the file"):
        prelinked([image], "a.o")


def test_an_object_without_symbols_is_refused() -> None:
    data = write(ElfFile(type=ET_REL, sections=[Section(".data", flags=RW, data=DATA)]))
    with pytest.raises(InputError, match="no symbol table"):
        whole(data)
