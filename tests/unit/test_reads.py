"""Which instructions only read the variable that they lead to; of an address in a register, those behind them too."""

import pytest

from footprint.elf import read_image
from footprint.elf.reads import only_reads
from tests.elfwriter import ET_DYN, ET_EXEC, RW, RX, ElfFile, Section, write

TEXT, TABLE, PAST = 0x401000, 0x403000, 0x404000


def reads(before: str, behind: str = "", *, kind: int = ET_DYN, is_fixed: bool = False) -> bool:
    """Ask about an instruction whose displacement, or address, stands between two pieces of code."""
    head, tail = b"\x90" * 8 + bytes.fromhex(before), bytes.fromhex(behind)
    vaddr = TEXT + len(head)
    address = TABLE if is_fixed else TABLE - vaddr - 4
    text = head + address.to_bytes(4, "little", signed=True) + tail + b"\xcc" * 32
    sections = [
        Section(".text", flags=RX, data=text, addr=TEXT),
        Section(".data", flags=RW, data=bytes(PAST - TABLE), addr=TABLE),
    ]
    return only_reads(read_image(write(ElfFile(type=kind, sections=sections)), "program"), vaddr, TABLE, PAST)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("8b 05", ""),  # mov eax, [rip + table]
        ("48 8b 05", ""),  # mov rax, [rip + table]
        ("8a 05", ""),  # mov al, [rip + table]
        ("0f b6 05", ""),  # movzx eax, byte [rip + table]
        ("48 63 05", ""),  # movsxd rax, [rip + table]
        ("3b 05", ""),  # cmp eax, [rip + table]
        ("83 3d", "01"),  # cmp dword [rip + table], 1
        ("f6 05", "01"),  # test byte [rip + table], 1
        ("03 05", ""),  # add eax, [rip + table]
        ("ff 15", ""),  # call [rip + table]
        ("f2 0f 10 05", ""),  # movsd xmm0, [rip + table]
        ("66 0f 6f 05", ""),  # movdqa xmm0, [rip + table]
    ],
)
def test_these_only_read(before: str, behind: str) -> None:
    assert reads(before, behind)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("89 05", ""),  # mov [rip + table], eax
        ("88 05", ""),  # mov [rip + table], al
        ("c7 05", "01 00 00 00"),  # mov dword [rip + table], 1
        ("c6 05", "01"),  # mov byte [rip + table], 1
        ("83 05", "01"),  # add dword [rip + table], 1
        ("01 05", ""),  # add [rip + table], eax
        ("ff 05", ""),  # inc dword [rip + table]
        ("f7 1d", ""),  # neg dword [rip + table]
        ("d1 25", ""),  # shl dword [rip + table], 1
        ("87 05", ""),  # xchg [rip + table], eax
        ("f0 0f b1 0d", ""),  # lock cmpxchg [rip + table], ecx
        ("0f ba 2d", "01"),  # bts dword [rip + table], 1
        ("0f 94 05", ""),  # sete [rip + table]
        ("8f 05", ""),  # pop [rip + table]
        ("f2 0f 11 05", ""),  # movsd [rip + table], xmm0
        ("66 0f 7f 05", ""),  # movdqa [rip + table], xmm0
        ("0f 2b 05", ""),  # movntps [rip + table], xmm0, in which stands sub eax, [rip + table]
        ("0f 13 05", ""),  # movlps [rip + table], xmm0
        ("c5 f8 2b 05", ""),  # vmovntps [rip + table], xmm0
        ("c5 f9 13 05", ""),  # vmovlpd [rip + table], xmm0
        ("c4 c1 78 2b 05", ""),  # vmovntps [rip + table], xmm0
        ("62 f1 7c 48 2b 05", ""),  # vmovntps [rip + table], zmm0
        ("66 0f 3a 16 05", "01"),  # pextrd [rip + table], xmm0, 1
        ("0f 38 f1 05", ""),  # movbe [rip + table], eax
        ("0c 05", ""),  # nothing that has a displacement
    ],
)
def test_these_write_or_are_not_known(before: str, behind: str) -> None:
    assert not reads(before, behind)


@pytest.mark.parametrize(
    "behind",
    [
        "8b 00",  # mov eax, [rax]
        "8b 04 90",  # mov eax, [rax + rdx * 4]
        "48 63 ff 8b 04 b8",  # movsxd rdi, edi; mov eax, [rax + rdi * 4]
        "0f b6 14 38 31 c0",  # movzx edx, byte [rax + rdi]; xor eax, eax
        "03 14 b8 89 d0",  # add edx, [rax + rdi * 4]; mov eax, edx
        "48 01 f8 0f b6 00",  # add rax, rdi; movzx eax, byte [rax]
        "48 8d 04 f8 8b 40 04",  # lea rax, [rax + rdi * 8]; mov eax, [rax + 4]
        "48 89 c2 8b 12 8b 00",  # mov rdx, rax; mov edx, [rdx]; mov eax, [rax]
        "89 3c 24 8b 00",  # mov [rsp], edi; mov eax, [rax]
        "b8 01 00 00 00",  # mov eax, 1
    ],
)
def test_an_address_in_a_register_is_followed_until_it_is_gone(behind: str) -> None:
    assert reads("48 8d 05", behind)  # lea rax, [rip + table]


@pytest.mark.parametrize(
    "behind",
    [
        "",  # what stands there is not known
        "c3",  # ret: it is the result
        "89 38",  # mov [rax], edi
        "89 3c b8",  # mov [rax + rdi * 4], edi
        "83 00 01 31 c0",  # add dword [rax], 1
        "48 89 04 24 31 c0",  # mov [rsp], rax
        "48 89 05 00 00 00 00 31 c0",  # mov [rip], rax
        "50 31 c0",  # push rax
        "e8 00 00 00 00 31 c0",  # call
        "ff d2 31 c0",  # call rdx
        "ff 22 31 c0",  # jmp [rdx]
        "eb 00 31 c0",  # jmp
        "74 00 31 c0",  # je
        "48 89 c2 31 c0 89 3a",  # mov rdx, rax; xor eax, eax; mov [rdx], edi
        "48 01 c2 31 c0 89 3a",  # add rdx, rax; xor eax, eax; mov [rdx], edi
        "48 8d 50 08 31 c0 89 3a",  # lea rdx, [rax + 8]; xor eax, eax; mov [rdx], edi
        "66 0f 6e c0 31 c0",  # movd xmm0, eax
        "66 8b 00 89 38",  # mov ax, [rax]; mov [rax], edi
        "90 " * 16 + "31 c0",  # further than is looked
    ],
)
def test_an_address_that_goes_elsewhere_is_not_told(behind: str) -> None:
    assert not reads("48 8d 05", behind)


@pytest.mark.parametrize(
    ("before", "behind", "is_read"),
    [
        ("8b 04 85", "", True),  # mov eax, [rax * 4 + table]
        ("8b 04 bd", "", False),  # mov eax, [rdi * 4 + table]: or mov ebp, table, behind something else
        ("8b 04 25", "", True),  # mov eax, [table]
        ("8b 87", "", True),  # mov eax, [rdi + table]
        ("0f be 84 07", "", True),  # movsx eax, byte [rdi + rax + table]
        ("bf", "8b 3f", True),  # mov edi, table; mov edi, [rdi]
        ("89 04 bd", "", False),  # mov [rdi * 4 + table], eax
        ("89 87", "", False),  # mov [rdi + table], eax
        ("bf", "e8 00 00 00 00", False),  # mov edi, table; call
        ("48 c7 c7", "", False),  # mov rdi, table
        ("68", "", False),  # push table
        ("48 bf", "00 00 00 00 8b 3f", False),  # mov rdi, table, of eight bytes
        ("c7 07", "8b 3f", False),  # mov dword [rdi], table
    ],
)
def test_addresses_in_code_at_a_fixed_place(before: str, behind: str, *, is_read: bool) -> None:
    assert reads(before, behind, kind=ET_EXEC, is_fixed=True) is is_read


def test_what_is_no_code_reads_nothing() -> None:
    image = read_image(
        write(ElfFile(type=ET_DYN, sections=[Section(".data", flags=RW, data=bytes(64), addr=TABLE)])), "p"
    )
    assert not only_reads(image, TABLE, TABLE, PAST)
    assert not only_reads(image, 0, TABLE, PAST)
