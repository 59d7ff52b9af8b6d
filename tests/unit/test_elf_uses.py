"""What code does with a variable, told from its instructions: reads, writes, and addresses that are handed on."""

import pytest

from footprint.elf import read_image
from footprint.elf.functions import read_functions
from footprint.elf.references import ReferencedPlace
from footprint.elf.uses import FoundUse, Use, Uses
from footprint.elf.x86_code import decoded
from tests.elfwriter import RO, RW, STT_FUNC, At, ElfFile, Section, Sym, write

EXECUTABLE = RO | 4
RET = b"\xc3"
LEA_RAX, LEA_RDI, LEA_RDX, LEA_RCX = (b"\x48\x8d" + end for end in (b"\x05", b"\x3d", b"\x15", b"\x0d"))


def use_of(*code: bytes | str, others: bytes = RET) -> Use:
    """Return the use of a variable by a function, as `found_in` finds it."""
    return found_in(*code, others=others).use


def found_in(*code: bytes | str, others: bytes = RET, enough: Use = Use.WRITTEN) -> FoundUse:
    """Return what is found of a variable by a function; `TABLE` stands for the distance to the variable.

    The function at its end, `others`, is 64 bytes behind its start.
    """
    text, at = b"", []
    for one in code:
        if isinstance(one, str):
            at.append(len(text))
            text += bytes(4)
        else:
            text += one
    size_bytes = len(text)
    text = text.ljust(64, b"\xcc") + others
    symbols = [
        Sym("f", At(".text"), size_bytes, STT_FUNC),
        Sym("g", At(".text", 64), len(others), STT_FUNC),
        Sym("table", At(".data"), 256),
    ]

    def file(text: bytes) -> bytes:
        sections = [
            Section(".text", flags=EXECUTABLE, data=text),
            Section(".data", flags=RW, data=bytes(range(256))),
        ]
        return write(ElfFile(sections=sections, symbols=symbols))

    image = read_image(file(text), "program")
    vaddrs = {one.name: one.vaddr for one in image.sections}
    for place in at:
        distance = vaddrs[".data"] - (vaddrs[".text"] + place + 4)
        text = text[:place] + distance.to_bytes(4, "little", signed=True) + text[place + 4 :]
    image = read_image(file(text), "program")
    place_of_table = ReferencedPlace(vaddrs[".data"], vaddrs[".data"] + 256, is_code=False)
    return Uses(image, read_functions(image), [place_of_table], {vaddrs[".data"]}).of(vaddrs[".data"], enough)


TABLE = "TABLE"


def jump(opcode: bytes, start: int) -> bytes:
    """Return a jump or call to the other function from an instruction at `start`."""
    return opcode + (64 - start - len(opcode) - 4).to_bytes(4, "little", signed=True)


@pytest.mark.parametrize(
    ("code", "use"),
    [
        pytest.param([b"\x8b\x05", TABLE, RET], Use.READ, id="mov table(%rip), %eax"),
        pytest.param([b"\x89\x05", TABLE, RET], Use.WRITTEN, id="mov %eax, table(%rip)"),
        pytest.param([b"\x39\x05", TABLE, RET], Use.READ, id="cmp %eax, table(%rip)"),
        pytest.param([b"\xff\x05", TABLE, RET], Use.WRITTEN, id="incl table(%rip)"),
        pytest.param([b"\x0f\x11\x05", TABLE, RET], Use.WRITTEN, id="movups %xmm0, table(%rip)"),
        pytest.param([b"\x0f\x10\x05", TABLE, RET], Use.READ, id="movups table(%rip), %xmm0"),
        pytest.param([LEA_RAX, TABLE, b"\x8b\x04\xb8", RET], Use.READ, id="table[i]"),
        pytest.param([LEA_RAX, TABLE, b"\x89\x34\xb8", RET], Use.WRITTEN, id="table[i] = x"),
        pytest.param([LEA_RAX, TABLE, RET], Use.HANDED_ON, id="return table"),
        pytest.param([LEA_RCX, TABLE, RET], Use.READ, id="computed and not used"),
        pytest.param([LEA_RDX, TABLE, RET], Use.HANDED_ON, id="return {number, table}"),
        pytest.param([LEA_RDX, TABLE, b"\x8b\x04\xba", RET], Use.READ, id="table[i] by %rdx"),
        pytest.param([LEA_RAX, TABLE, b"\x48\xf7\xf1\x31\xc0", RET], Use.HANDED_ON, id="div %rcx"),
        pytest.param([LEA_RAX, TABLE, b"\x48\xf7\x37\x31\xc0", RET], Use.HANDED_ON, id="divq (%rdi)"),
        pytest.param([LEA_RDI, TABLE, b"\x48\xf7\xe7\x31\xc0", RET], Use.HANDED_ON, id="mul %rdi"),
        pytest.param([LEA_RAX, TABLE, b"\x48\x0f\xaf\xc2\x31\xc0", RET], Use.HANDED_ON, id="imul %rdx, %rax"),
        pytest.param([LEA_RAX, TABLE, b"\xf2\x48\x0f\x2a\xc0\x31\xc0", RET], Use.HANDED_ON, id="cvtsi2sd"),
        pytest.param([LEA_RAX, TABLE, b"\x48\x89\x07", RET], Use.HANDED_ON, id="*p = table"),
        pytest.param([LEA_RAX, TABLE, b"\x50", RET], Use.HANDED_ON, id="push %rax"),
        pytest.param([LEA_RAX, TABLE, b"\x66\x48\x0f\x6e\xc0\x31\xc0", RET], Use.HANDED_ON, id="movq %rax, %xmm0"),
        pytest.param([LEA_RAX, TABLE, b"\x48\x89\xc3\x31\xc0\xc6\x03\x01", RET], Use.WRITTEN, id="by a copy in %rbx"),
        pytest.param([LEA_RAX, TABLE, b"\x48\x83\xc0\x08\xc6\x00\x01", RET], Use.WRITTEN, id="behind its start"),
        pytest.param([LEA_RAX, TABLE, b"\x85\xff\x74\x03\xc6\x00\x01\x31\xc0", RET], Use.WRITTEN, id="in one branch"),
        pytest.param([LEA_RDI, TABLE, b"\xf3\xa4", RET], Use.WRITTEN, id="rep movsb"),
        pytest.param([LEA_RAX, TABLE, b"\xff\xe1"], Use.HANDED_ON, id="jmp *%rcx"),
        pytest.param([LEA_RAX, TABLE, b"\xff\xd1\x31\xc0", RET], Use.READ, id="call *%rcx: %rax is no argument"),
        pytest.param([LEA_RDI, TABLE, b"\xff\xd1\x31\xc0", RET], Use.HANDED_ON, id="call *%rcx with it in %rdi"),
        pytest.param([LEA_RAX, TABLE, b"\x06"], Use.HANDED_ON, id="no instruction of x86-64"),
        pytest.param([LEA_RAX, TABLE, b"\x48\x39\xc7\x31\xc0", RET], Use.COMPARED, id="p == table"),
        pytest.param([LEA_RAX, TABLE, b"\x48\x3b\x07\x31\xc0", RET], Use.COMPARED, id="*p == table"),
        pytest.param([LEA_RAX, TABLE, b"\x48\x29\xc7\x31\xc0", RET], Use.COMPARED, id="p - table"),
        pytest.param([LEA_RAX, TABLE, b"\x48\x29\xf8\x31\xc0", RET], Use.COMPARED, id="table - p"),
        pytest.param([LEA_RAX, TABLE, b"\x48\x31\xc7\x31\xc0", RET], Use.HANDED_ON, id="xor %rax, %rdi"),
        pytest.param([LEA_RAX, TABLE, b"\x48\xf7\xd8\x31\xc0", RET], Use.HANDED_ON, id="neg %rax"),
        pytest.param([LEA_RAX, TABLE, b"\x48\x87\xc2\xc6\x02\x01", RET], Use.WRITTEN, id="xchg %rax, %rdx"),
        pytest.param([LEA_RAX, TABLE, b"\x0f\x1f\x00\x31\xc0", RET], Use.READ, id="nopl (%rax)"),
        pytest.param(
            [LEA_RAX, TABLE, b"\x48\x0f\x45\xd0\x48\x39\xc2\x31\xc0", RET],
            Use.COMPARED,
            id="cmovne %rax, %rdx, which may leave another address in %rdx",
        ),
        pytest.param(
            [LEA_RAX, TABLE, b"\x48\x89\x04\x24\x31\xff\xe8\x2e\x00\x00\x00\x31\xc0", RET],
            Use.HANDED_ON,
            id="an argument on the stack of a function of the same file",
        ),
        pytest.param([LEA_RAX, TABLE, b"\x48\x85\xc0\x31\xc0", RET], Use.READ, id="table != NULL"),
        pytest.param(
            [LEA_RDX, TABLE, LEA_RAX, TABLE, b"\x48\x39\xd0\x31\xc0", RET], Use.READ, id="from its begin to its end"
        ),
        pytest.param(
            [b"\x55\x48\x89\xe5", LEA_RAX, TABLE, b"\x48\x89\x45\xf8\x48\x3b\x7d\xf8\x31\xc0\x5d", RET],
            Use.COMPARED,
            id="p == local, which holds the table",
        ),
        pytest.param(
            [b"\x55\x48\x89\xe5", LEA_RAX, TABLE, b"\x48\x89\x45\xf8\x48\x8d\x7d\xf0\x31\xc0\x5d", RET],
            Use.HANDED_ON,
            id="a part of a local whose address is taken",
        ),
        pytest.param(
            [b"\xff\xd1", LEA_RDX, TABLE, b"\x89\xdf\xff\xd1\x31\xc0", RET],
            Use.READ,
            id="call *%rcx with one argument, as %rsi is left from the call before",
        ),
    ],
)
def test_a_use_is_what_the_instructions_do(code: list[bytes | str], use: Use) -> None:
    assert use_of(*code) is use


@pytest.mark.parametrize(
    ("others", "use"),
    [
        (b"\x8b\x07" + RET, Use.READ),
        (b"\x89\x07" + RET, Use.WRITTEN),
        (b"\x48\x89\x3e" + RET, Use.HANDED_ON),
        (b"\x48\x39\xfe" + RET, Use.COMPARED),
    ],
)
@pytest.mark.parametrize("opcode", [b"\xe8", b"\xe9"])
def test_an_address_is_followed_into_functions_of_the_same_file(opcode: bytes, others: bytes, use: Use) -> None:
    assert use_of(LEA_RDI, TABLE, jump(opcode, 7), RET, others=others) is use


@pytest.mark.parametrize(
    ("code", "size_bytes"),
    [
        ("c3", 1),
        ("4889c3", 3),
        ("488d0512345678", 7),
        ("0f1f840000000000", 8),  # nopl 0(%rax,%rax,1)
        ("48b81122334455667788", 10),  # movabs
        ("66c7000100", 5),  # movw $1, (%rax)
        ("c7040502000000ffffffff"[:22], 11),  # movl $-1, 2(,%rax,1)
        ("c5f877", 3),  # vzeroupper
        ("c4e37d39c001", 6),  # vextracti128
        ("660f3a0fc108", 6),  # palignr
        ("f30f1efa", 4),  # endbr64
        ("0f8011223344", 6),
        ("ebfe", 2),
        ("8b4424", None),  # its SIB has no displacement
        ("0f", None),
        ("06", None),
    ],
)
def test_an_instruction_has_the_length_that_its_opcode_says(code: str, size_bytes: int | None) -> None:
    found = next(decoded(bytes.fromhex(code), 0x1000), None)
    assert (None if found is None else found.end_vaddr - found.vaddr) == size_bytes


def test_the_function_is_named_that_does_what_was_asked_for() -> None:
    stores: list[bytes | str] = [LEA_RAX, TABLE, b"\x48\x89\x07", RET]
    assert found_in(*stores, enough=Use.HANDED_ON) == (Use.HANDED_ON, "f")
    # `g` compares what `f` passes to it.
    passes: list[bytes | str] = [LEA_RDI, TABLE, jump(b"\xe8", 7), b"\x31\xc0", RET]
    compares = b"\x48\x39\xf7\x31\xc0" + RET
    assert found_in(*passes, others=compares, enough=Use.COMPARED) == (Use.COMPARED, "g")
    returns: list[bytes | str] = [LEA_RAX, TABLE, RET]
    assert found_in(*returns, enough=Use.HANDED_ON) == (Use.HANDED_ON, "f")
    assert found_in(*returns, enough=Use.WRITTEN) == (Use.HANDED_ON, None)
