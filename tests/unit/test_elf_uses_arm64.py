"""What code of arm64 does with a variable, and with the one behind it, which compilers reach from its address."""

import pytest

from footprint.elf.arm64_code import decoded
from footprint.elf.functions import read_functions
from footprint.elf.harmless import Use
from footprint.elf.image import read_image
from footprint.elf.instruction import Operation
from footprint.elf.references import ReferencedPlace, find_references
from footprint.elf.uses import Uses
from tests.elfwriter import EM_AARCH64, RO, RW, STB_LOCAL, STT_FUNC, At, ElfFile, Section, Sym, write

EXECUTABLE = RO | 4
VARIABLE_BYTES = 64
TABLE = "adrp x1, table; add x1, x1, :lo12:table"
# The instructions of the cases, as an assembler encodes them.
WORDS = {
    "ret": 0xD65F03C0,
    "mov x0, #0": 0xD2800000,
    "mov x1, #0": 0xD2800001,
    "mov x0, x1": 0xAA0103E0,
    "ldr w0, [x1, #4]": 0xB9400420,
    "ldr w0, [x1, #68]": 0xB9404420,
    "ldr w0, [x1, #128]": 0xB9408020,
    "ldr w0, [x1, w0, sxtw #2]": 0xB860D820,
    "ldr w0, [x0, w1, uxtw #2]": 0xB8615800,
    "ldr w0, [x1], #4": 0xB8404420,
    "ldr q0, [x1, #16]": 0x3DC00420,
    "ldp x1, x2, [x1, #16]": 0xA9410821,
    "ldar w0, [x1]": 0x88DFFC20,
    "ldxr w0, [x1]": 0x885F7C20,
    "ldaddal w0, w2, [x1]": 0xB8E00022,
    "str w0, [x1]": 0xB9000020,
    "str w0, [x1, #68]": 0xB9004420,
    "str x1, [x0]": 0xF9000001,
    "add x2, x1, x0, lsl #2": 0x8B000822,
    "add x2, x2, #68": 0x91011042,
    "ldr w0, [x2, #68]": 0xB9404440,
    "madd x2, x0, x3, x1": 0x9B030402,
    "sub x0, x0, x1": 0xCB010000,
    "and x0, x1, #7": 0x92400820,
    "cmp x1, x2": 0xEB02003F,
    "cmp x2, x3": 0xEB03005F,
    "ccmp x1, #0, #0, eq": 0xFA400820,
    "csel x0, x1, x2, eq": 0x9A820020,
    "cbz x1, .+8": 0xB4000041,
    "cbz w1, .+8": 0x34000041,
    "tbz w1, #3, .+8": 0x36180041,
    "sub sp, sp, #16": 0xD10043FF,
    "add sp, sp, #16": 0x910043FF,
    "str x1, [sp, #8]": 0xF90007E1,
    "ldr x1, [sp, #8]": 0xF94007E1,
    "fmov d0, x1": 0x9E670020,
    "prfm pldl1keep, [x1]": 0xF9800020,
    "blr x2": 0xD63F0040,
    "br x2": 0xD61F0040,
    "svc #0": 0xD4000001,
    "addvl x1, x0, #1": 0x04205021,
}
END = "mov x0, #0; mov x1, #0; ret"


def uses_of(code: str) -> tuple[Use, Use]:
    """Return the uses of the two variables by a function."""
    texts = [text for text in code.replace(TABLE, "page; rest").split("; ") if text]

    def file(vaddr: int, table: int) -> bytes:
        words = []
        for number, text in enumerate(texts):
            pages = (table >> 12) - (vaddr + 4 * number >> 12)
            page = 0x90000001 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
            words.append({"page": page, "rest": 0x91000021 | (table & 0xFFF) << 10}.get(text) or WORDS[text])
        raw = b"".join(word.to_bytes(4, "little") for word in words)
        symbols = [
            Sym("f", At(".text"), len(raw), STT_FUNC, STB_LOCAL),
            Sym("table", At(".data"), VARIABLE_BYTES),
            Sym("second", At(".data", VARIABLE_BYTES), VARIABLE_BYTES),
        ]
        sections = [
            Section(".text", flags=EXECUTABLE, data=raw),
            Section(".data", flags=RW, data=bytes(range(2 * VARIABLE_BYTES))),
        ]
        return write(ElfFile(machine=EM_AARCH64, sections=sections, symbols=symbols))

    image = read_image(file(0, 0), "program")
    vaddrs = {section.name: section.vaddr for section in image.sections}
    image = read_image(file(vaddrs[".text"], vaddrs[".data"]), "program")
    starts = [vaddrs[".data"] + number * VARIABLE_BYTES for number in range(2)]
    places = [ReferencedPlace(start, start + VARIABLE_BYTES, is_code=False) for start in starts]
    uses = Uses(image, read_functions(image), places, set(starts))
    first, second = (uses.of(start, Use.WRITTEN).use for start in starts)
    return first, second


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("ldr w0, [x1, #4]", Use.READ),
        ("ldr w0, [x1, w0, sxtw #2]", Use.READ),
        ("ldr w0, [x1], #4", Use.READ),
        ("ldr w0, [x1], #4; cmp x1, x2", Use.READ | Use.COMPARED),
        ("ldr q0, [x1, #16]", Use.READ),
        ("ldp x1, x2, [x1, #16]; cmp x1, x2", Use.READ),
        ("ldar w0, [x1]", Use.READ),
        ("ldr w0, [x1, #128]", Use.READ),
        ("ldr w0, [x0, w1, uxtw #2]", Use.READ | Use.HANDED_ON),
        ("madd x2, x0, x3, x1; cmp x2, x3", Use.READ | Use.COMPARED),
        ("cbz x1, .+8; ldr w0, [x1, #4]", Use.READ),
        ("cbz w1, .+8", Use.COMPARED | Use.HANDED_ON),
        ("tbz w1, #3, .+8", Use.HANDED_ON),
        ("prfm pldl1keep, [x1]", Use.READ),
        ("str w0, [x1]", Use.WRITTEN),
        ("ldxr w0, [x1]", Use.WRITTEN),
        ("ldaddal w0, w2, [x1]", Use.WRITTEN),
        ("str x1, [x0]", Use.HANDED_ON),
        ("and x0, x1, #7", Use.HANDED_ON),
        ("sub x0, x0, x1", Use.COMPARED),
        ("cmp x1, x2", Use.COMPARED),
        ("ccmp x1, #0, #0, eq", Use.HANDED_ON),
        ("csel x0, x1, x2, eq; str x1, [x0]", Use.HANDED_ON | Use.WRITTEN),
        ("mov x0, x1; ret", Use.HANDED_ON),
        ("mov x0, x1; blr x2", Use.HANDED_ON),
        ("br x2", Use.HANDED_ON),
        ("svc #0", Use.HANDED_ON),
        ("fmov d0, x1", Use.HANDED_ON),
        ("addvl x1, x0, #1", Use.HANDED_ON),
        ("sub sp, sp, #16; str x1, [sp, #8]; mov x1, #0; ldr x1, [sp, #8]; cmp x1, x2; add sp, sp, #16", Use.COMPARED),
    ],
)
def test_a_use_is_what_the_instructions_do(code: str, use: Use) -> None:
    found, _ = uses_of(f"{TABLE}; {code}; {END}")
    assert found & ~Use.READ == use & ~Use.READ


@pytest.mark.parametrize(
    ("code", "uses"),
    [
        pytest.param("ldr w0, [x1, #68]", (Use.READ, Use.READ), id="read"),
        pytest.param("str w0, [x1, #68]", (Use.READ, Use.WRITTEN), id="written"),
        pytest.param("add x2, x1, x0, lsl #2; ldr w0, [x2, #68]", (Use.HANDED_ON, Use.READ), id="read with an index"),
        pytest.param(
            # The number may be a part of the index: then a third variable may be meant.
            "add x2, x1, x0, lsl #2; add x2, x2, #68; cmp x2, x3",
            (Use.COMPARED | Use.HANDED_ON, Use.COMPARED | Use.HANDED_ON),
            id="compared with an index",
        ),
        pytest.param(
            "sub sp, sp, #16; str x1, [sp, #8]; blr x2; ldr x1, [sp, #8]; str w0, [x1, #68]; add sp, sp, #16",
            (Use.HANDED_ON, Use.WRITTEN),
            id="from the stack",
        ),
        pytest.param("fmov d0, x1", (Use.HANDED_ON, Use.HANDED_ON), id="maybe from a vector register"),
    ],
)
def test_the_variable_behind_it_is_used_by_its_address(code: str, uses: tuple[Use, Use]) -> None:
    first, second = uses_of(f"{TABLE}; {code}; {END}")
    assert (first | Use.READ, second | Use.READ) == tuple(use | Use.READ for use in uses)


@pytest.mark.parametrize(
    ("word", "scale"),
    [
        pytest.param(0x8B030041, 1, id="add x1, x2, x3"),
        pytest.param(0x8B030C41, 8, id="add x1, x2, x3, lsl #3"),
        pytest.param(0x8B430C41, 0, id="add x1, x2, x3, lsr #3"),
        pytest.param(0x8B236C41, 8, id="add x1, x2, x3, uxtx #3"),
        pytest.param(0x8B23CC41, -8, id="add x1, x2, w3, sxtw #3"),
        pytest.param(0x8B230041, 0, id="add x1, x2, w3, uxtb"),
    ],
)
def test_an_index_is_scaled_where_it_is_shifted_to_the_left(word: int, scale: int) -> None:
    (add,) = decoded(word.to_bytes(4, "little"), 0x400000)
    assert (add.operation, add.base, add.scaled, add.scale) == (Operation.ADDRESS, 2, 3, scale)


def test_what_nothing_refers_to_has_no_references() -> None:
    words = b"".join(word.to_bytes(4, "little") for word in (0x90000001, 0xD65F03C0))
    file = ElfFile(
        machine=EM_AARCH64,
        sections=[Section(".text", flags=EXECUTABLE, data=words), Section(".data", flags=RW, data=bytes(64))],
        symbols=[Sym("f", At(".text"), len(words), STT_FUNC), Sym("table", At(".data"), 64)],
    )
    image = read_image(write(file), "program")
    start = next(section.vaddr for section in image.sections if section.name == ".data")
    assert find_references(image, [ReferencedPlace(start, start + 64, is_code=False)]) == [[]]
