"""What code does with a variable, told from its instructions: reads, writes, and addresses that are handed on."""

import pytest

from footprint.elf.code_reader import CodeReader, Stack
from footprint.elf.functions import read_functions
from footprint.elf.harmless import Step, Use, effect_of
from footprint.elf.image import read_image
from footprint.elf.instruction import RAX, RSI, X86_64, Operation
from footprint.elf.references import ReferencedPlace
from footprint.elf.uses import FoundUse, Uses
from footprint.elf.x86_shapes import Instructions
from tests.elfwriter import RO, RW, STB_LOCAL, STT_FUNC, At, ElfFile, Section, Sym, write

EXECUTABLE = RO | 4
RET = b"\xc3"
LEA_RAX, LEA_RDI, LEA_RDX, LEA_RCX = (b"\x48\x8d" + end for end in (b"\x05", b"\x3d", b"\x15", b"\x0d"))


# `call f; xor %edx, %edx; ret`: it shows that the first function returns nothing in rdx.
CALLS_FIRST = b"\xe8\xbb\xff\xff\xff\x31\xd2\xc3"


def use_of(*code: bytes | str, others: bytes = CALLS_FIRST) -> Use:
    """Return the use of a variable by a function, as `found_in` finds it."""
    return found_in(*code, others=others).use


def found_in(
    *code: bytes | str, others: bytes = CALLS_FIRST, enough: Use = Use.WRITTEN, words: dict[int, int] | None = None
) -> FoundUse:
    """Return what is found of a variable by a function.

    `TABLE` stands for the distance to the variable, `END` for that to its end. The function at its end, `others`, is 64
    bytes behind its start.
    """
    text, at = b"", []
    for one in code:
        if isinstance(one, str):
            at.append((len(text), 256 if one == END else 0))
            text += bytes(4)
        else:
            text += one
    size_bytes = len(text)
    text = text.ljust(64, b"\xcc") + others
    symbols = [
        Sym("f", At(".text"), size_bytes, STT_FUNC, STB_LOCAL),
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
    vaddrs = {section.name: section.vaddr for section in image.sections}
    for place, offset in at:
        distance = vaddrs[".data"] + offset - (vaddrs[".text"] + place + 4)
        text = text[:place] + distance.to_bytes(4, "little", signed=True) + text[place + 4 :]
    image = read_image(file(text), "program")
    place_of_table = ReferencedPlace(vaddrs[".data"], vaddrs[".data"] + 256, is_code=False)
    return Uses(image, read_functions(image), [place_of_table], {vaddrs[".data"]}).of(vaddrs[".data"], enough, words)


TABLE, END = "TABLE", "END"


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
            [LEA_RAX, TABLE, b"\x48\x85\xc0\x74\x00\x0f\x9a\xc1\x31\xc0", RET],
            Use.HANDED_ON,
            id="test %rax, %rax; je; setp %cl",
        ),
        # test %esi, %esi; lea table(%rip), %rax; setp %cl; mov (%rax), %eax
        pytest.param(
            [b"\x85\xf6", LEA_RAX, TABLE, b"\x0f\x9a\xc1\x8b\x00", RET], Use.READ, id="parity of another comparison"
        ),
        pytest.param(
            [LEA_RAX, TABLE, LEA_RDX, END, b"\x48\x39\xd0\x31\xc0", RET],
            Use.COMPARED,
            id="table < what is behind it, which compilers know of its own end",
        ),
        pytest.param(
            [LEA_RAX, TABLE, LEA_RDX, END, b"\x48\x83\xc0\x04\x48\x39\xd0\x75\xf7\x31\xc0", RET],
            Use.READ,
            id="from its begin to its end in a loop",
        ),
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
            [b"\xff\xd1", LEA_RDX, TABLE, b"\x8b\x1a\x89\xdf\xff\xd1\x31\xc0", RET],
            Use.READ,
            id="call *%rcx with one argument, as %rsi is left from the call before, and %rdx was read",
        ),
        pytest.param(
            [b"\xff\xd1", LEA_RDX, TABLE, b"\x89\xdf\xff\xd1\x31\xc0", RET],
            Use.HANDED_ON,
            id="call *%rcx with a third argument, as %rdx is set for it alone, and the second has no value",
        ),
        pytest.param([LEA_RDI, TABLE, b"\x31\xc0"], Use.HANDED_ON, id="a function that goes on in the next"),
        pytest.param(
            [b"\x53\x48\x8d\x1d", TABLE, b"\xe9\xf4\x0f\x00\x00"],
            Use.HANDED_ON,
            id="a jump to where no function is, with %rbx",
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
    found = Instructions(bytes.fromhex(code), 0x1000).get(0x1000)
    assert (None if found is None else found.end_vaddr - found.vaddr) == size_bytes


def test_the_function_is_named_that_does_what_was_asked_for() -> None:
    stores: list[bytes | str] = [LEA_RAX, TABLE, b"\x48\x89\x07", RET]
    assert found_in(*stores, enough=Use.HANDED_ON) == (Use.HANDED_ON, "f", 7)
    # `g` compares what `f` passes to it.
    passes: list[bytes | str] = [LEA_RDI, TABLE, jump(b"\xe8", 7), b"\x31\xc0", RET]
    compares = b"\x48\x39\xf7\x31\xc0" + RET
    assert found_in(*passes, others=compares, enough=Use.COMPARED) == (Use.COMPARED, "g", 0)
    returns: list[bytes | str] = [LEA_RAX, TABLE, RET]
    assert found_in(*returns, enough=Use.HANDED_ON) == (Use.HANDED_ON, "f", 0)
    assert found_in(*returns, enough=Use.WRITTEN) == (Use.HANDED_ON, None, 0)


@pytest.mark.parametrize(
    ("others", "use"),
    [
        pytest.param(CALLS_FIRST, Use.READ, id="a caller that sets rdx anew"),
        pytest.param(b"\xe8\xbb\xff\xff\xff\x48\x89\xd0\xc3", Use.HANDED_ON, id="a caller that returns rdx"),
        pytest.param(b"\xe9\xbb\xff\xff\xff", Use.HANDED_ON, id="a caller that nobody calls returns what it returns"),
        pytest.param(RET, Use.HANDED_ON, id="no caller that is known"),
    ],
)
def test_a_structure_of_two_words_is_returned_in_rdx_as_well(others: bytes, use: Use) -> None:
    assert use_of(LEA_RDX, TABLE, RET, others=others) is use


@pytest.mark.parametrize(
    ("code", "use"),
    [
        # Of the address the low half, or a number that is made of it, tells copies apart.
        ("39c7", Use.COMPARED | Use.HANDED_ON),  # cmp %eax, %edi
        ("a9ff000000", Use.COMPARED),  # test $255, %eax
        ("483d00104000", Use.COMPARED),  # cmp $0x401000, %rax
        ("89c7", Use.HANDED_ON),  # mov %eax, %edi
        ("0fb6f8", Use.HANDED_ON),  # movzbl %al, %edi
        ("4863f8", Use.HANDED_ON),  # movslq %eax, %rdi
        ("48c1e803", Use.HANDED_ON),  # shr $3, %rax
        ("48c1c007", Use.HANDED_ON),  # rol $7, %rax
        ("480fc8", Use.HANDED_ON),  # bswap %rax
        ("4869f81f000000", Use.HANDED_ON),  # imul $31, %rax, %rdi
        ("4883e0f0", Use.HANDED_ON),  # and $-16, %rax
        ("480107", Use.HANDED_ON),  # add %rax, (%rdi)
        ("480907", Use.HANDED_ON),  # or %rax, (%rdi)
        ("f2480f38f1f8", Use.HANDED_ON),  # crc32q %rax, %rdi
        ("c4e2faf5f8", Use.HANDED_ON),  # pext %rax, %rax, %rdi
        ("c4e2f8f2ff", Use.HANDED_ON),  # andn %rdi, %rax, %rdi
        ("f3480fb8f8", Use.HANDED_ON),  # popcnt %rax, %rdi
        ("480fa3c7", Use.HANDED_ON),  # bt %rax, %rdi
        ("480fbae004", Use.HANDED_ON),  # bt $4, %rax
        ("0f05", Use.HANDED_ON),  # syscall, which reads it
        ("f0480fc107", Use.HANDED_ON),  # lock xadd %rax, (%rdi)
        ("488d3c40", Use.HANDED_ON),  # lea (%rax,%rax,2), %rdi
        ("8d7808", Use.HANDED_ON),  # lea 8(%rax), %edi
        ("4805000100000f92c1", Use.HANDED_ON),  # add $256, %rax; setb %cl
        ("648b00", Use.HANDED_ON),  # mov %fs:(%rax), %eax
        ("8b8000100000", Use.READ | Use.HANDED_ON),  # mov 4096(%rax), %eax: it has 256 bytes
        # All of these read its bytes, or keep it an address.
        ("8b8080000000", Use.READ),  # mov 128(%rax), %eax
        ("0f1f00", Use.READ),  # nopl (%rax)
        ("f30f1000", Use.READ),  # movss (%rax), %xmm0
        ("660fef4010", Use.READ),  # pxor 16(%rax), %xmm0
        ("c4e279902438", Use.READ),  # vpgatherdd %xmm0, (%rax,%xmm7), %xmm4
        ("0faf38", Use.READ),  # imul (%rax), %edi
        ("4883f800", Use.READ),  # cmp $0, %rax
        ("4885c0", Use.READ),  # test %rax, %rax
        ("4801f88b00", Use.READ),  # add %rdi, %rax; mov (%rax), %eax
        ("0f95c00fb6c0", Use.READ),  # setne %al; movzbl %al, %eax: nothing of it is left
        ("48894424f0488b7c24f08b07", Use.READ),  # mov %rax, -16(%rsp); mov -16(%rsp), %rdi; mov (%rdi), %eax
        ("505f8b07", Use.READ),  # push %rax; pop %rdi; mov (%rdi), %eax
        ("48894424f08b7c24f0", Use.HANDED_ON),  # mov %rax, -16(%rsp); mov -16(%rsp), %edi
        ("48894424f0c74424f001000000488b7c24f0", Use.HANDED_ON),  # movl $1, -16(%rsp) between: a part is left of it
    ],
)
def test_only_what_is_listed_keeps_copies_interchangeable(code: str, use: Use) -> None:
    assert use_of(LEA_RAX, TABLE, bytes.fromhex(code) + b"\x31\xc0\x31\xff", RET) is use


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("4881350000000000f0ffff", Use.HANDED_ON),  # xorq $table, word(%rip)
        ("48810d0000000000f0ffff", Use.HANDED_ON),  # orq $table, word(%rip)
        ("4881050000000000f0ffff", Use.HANDED_ON),  # addq $table, word(%rip)
        ("4869c700f0ffff", Use.HANDED_ON),  # imul $table, %rdi, %rax
        ("48c7c000f0ffff", Use.HANDED_ON),  # mov $table, %rax, which is returned
    ],
)
def test_a_number_that_is_an_address_is_followed_as_one(code: str, use: Use) -> None:
    one = Instructions(bytes.fromhex(code), 0x1000)[0x1000]
    step = Step(one, is_own_number=True)
    effect = effect_of(step, frozenset())
    returned = Use.HANDED_ON if any(RAX in holders for holders in effect.holders) else Use.UNUSED
    assert effect.use | returned == use


@pytest.mark.parametrize(
    ("code", "is_copy"),
    [("a4", True), ("48a5", True), ("a6", False), ("aa", False), ("ac", False), ("ae", False)],
    ids=["movsb", "movsq", "cmpsb", "stosb", "lodsb", "scasb"],
)
def test_of_the_string_instructions_one_copies(code: str, *, is_copy: bool) -> None:
    insn = Instructions(bytes.fromhex(code), 0x1000)[0x1000]
    assert (insn.operation is Operation.COPY_STRING, insn.other == RSI) == (is_copy, is_copy)


@pytest.mark.parametrize(
    ("before_bytes", "section_bytes", "next_at", "size_bytes"),
    [
        pytest.param(0, 48, None, 48, id="it ends with its section"),
        pytest.param(16, 48, None, 32, id="so does one in its middle"),
        pytest.param(0, 48, 20, 20, id="it ends at the next function"),
        pytest.param(0, 1000, None, 256, id="of a large section 256 bytes are read"),
        pytest.param(0, 1000, 500, 256, id="also before the next function"),
    ],
)
def test_a_function_without_a_size_ends_at_the_next_or_with_its_section(
    before_bytes: int, section_bytes: int, next_at: int | None, size_bytes: int
) -> None:
    # The section before it ends where that of the function begins.
    symbols = [Sym("f", At(".text", before_bytes), 0, STT_FUNC, STB_LOCAL)]
    symbols += [] if next_at is None else [Sym("g", At(".text", next_at), 1, STT_FUNC, STB_LOCAL)]
    sections = [
        Section(".init", flags=EXECUTABLE, data=bytes(256), addr=0x1000),
        Section(".text", flags=EXECUTABLE, data=bytes(section_bytes), addr=0x1100),
    ]
    image = read_image(write(ElfFile(sections=sections, symbols=symbols)), "program")
    reader, start = CodeReader(image, read_functions(image)), 0x1100 + before_bytes
    last, behind = reader.function_at(start + size_bytes - 1), reader.function_at(start + size_bytes)
    assert last is not None
    assert (last.name, last.vaddr, last.size_bytes) == ("f", start, size_bytes)
    assert behind is None or behind.name == "g"


@pytest.mark.parametrize(
    ("code", "has_arguments"),
    [
        ("", True),
        ("48 83 c7 10", True),  # add $0x10, %rdi
        ("48 81 c7 90 00 00 00", False),  # add $0x90, %rdi
        ("48 8b 87 90 00 00 00", False),  # mov 0x90(%rdi), %rax
        ("48 8d b4 24 90 00 00 00", False),  # lea 0x90(%rsp), %rsi
        ("48 8b 34 c4", False),  # mov (%rsp,%rax,8), %rsi
        ("8b 34 84", True),  # mov (%rsp,%rax,4), %esi
        ("48 8b 07 48 83 ef 08", False),  # mov (%rdi), %rax; sub $8, %rdi: from one address to that before it
        ("48 8b 07 48 83 c7 08", True),  # mov (%rdi), %rax; add $8, %rdi
        ("48 8b 07 48 83 ef 04", True),  # mov (%rdi), %rax; sub $4, %rdi
        ("8b 07 48 83 ef 08", True),  # mov (%rdi), %eax; sub $8, %rdi
    ],
)
def test_the_address_of_a_variable_leads_to_the_arguments_on_the_stack_only_by_what_is_added(
    code: str, *, has_arguments: bool
) -> None:
    # sub $0x88, %rsp; mov %rsp, %rdi; the code; add $0x88, %rsp; ret
    raw = bytes.fromhex(f"48 81 ec 88 00 00 00 48 89 e7 {code} 48 81 c4 88 00 00 00 c3")
    assert Stack(Instructions(raw, 0x1000), 0x1000, X86_64).has_arguments == has_arguments


@pytest.mark.parametrize(
    ("code", "use"),
    [
        pytest.param([b"\x8b\x05", TABLE, RET], Use.READ, id="mov table(%rip), %eax: a number"),
        pytest.param([LEA_RAX, TABLE, b"\x8b\x40\x08", RET], Use.READ | Use.HANDED_ON, id="half of an address"),
        pytest.param(
            [b"\x48\xc1\xe7\x04", LEA_RAX, TABLE, b"\x8b\x04\x38", RET],
            Use.READ,
            id="table[i].number, of 16 bytes each",
        ),
        pytest.param(
            [b"\x48\xc1\xe7\x04", LEA_RAX, TABLE, b"\x0f\xb6\x44\x38\x0b", RET],
            Use.READ | Use.HANDED_ON,
            id="a byte of table[i].address",
        ),
        pytest.param(
            [LEA_RAX, TABLE, b"\x0f\xb6\x04\x38", RET], Use.READ | Use.HANDED_ON, id="any byte, by an index of bytes"
        ),
        pytest.param(
            [LEA_RAX, TABLE, b"\x8b\x08\x48\x83\xc0\x04\xeb\xf8"],
            Use.READ | Use.HANDED_ON,
            id="each four bytes, in a loop",
        ),
        pytest.param([LEA_RAX, TABLE, b"\x8b\x08\x48\x83\xc0\x10\xeb\xf8"], Use.READ, id="each number, in a loop"),
    ],
)
def test_a_part_of_an_address_that_a_table_holds_is_told_from_a_number_beside_it(
    code: list[bytes | str], use: Use
) -> None:
    held = dict.fromkeys(range(8, 256, 16), 28672)
    assert found_in(*code, enough=Use.HANDED_ON, words=held).use == use
