"""Instructions of arm64 as footprint decodes them, compared with capstone: what they read, what they write, and where.

capstone names the operands; which of them are read and written follows from the mnemonic (Arm ARM, C6.2). footprint
may know fewer instructions, and may say that one reads more than it does. It must not say that one reads less, or that
it writes something else, unless that is read as well: then nothing passes.
"""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from footprint.elf.arm64_code import decoded
from footprint.elf.image import read_image
from footprint.elf.instruction import FLAGS, Access, Instruction, Jump, Operation

capstone: Any = pytest.importorskip("capstone")
Decoded = Any  # capstone has no types

VADDR = 0x400000
LIBC = "/usr/aarch64-linux-gnu/lib/libc.so.6"
STACK = 31
REGISTERS = {f"{letter}{number}": number for letter in "xw" for number in range(31)}
REGISTERS |= {"fp": 29, "lr": 30, "sp": STACK, "wsp": STACK, "nzcv": FLAGS}
SETS_FLAGS = {"adds", "subs", "ands", "bics", "adcs", "sbcs", "negs", "ngcs", "cmp", "cmn", "tst", "ccmp", "ccmn"}
SETS_FLAGS |= {"fcmp", "fcmpe", "fccmp", "fccmpe", "fjcvtzs"}
READS_FLAGS = {"adc", "adcs", "sbc", "sbcs", "ngc", "ngcs", "ccmp", "ccmn", "csel", "csinc", "csinv", "csneg", "cset"}
READS_FLAGS |= {"csetm", "cinc", "cinv", "cneg", "fcsel", "fccmp", "fccmpe"}
# Their first operand is read, too.
CHANGES_FIRST = ("movk", "bf", "paci", "pacd", "aut", "xpac")
WRITES_NONE: tuple[str, ...] = (
    "cmp",
    "cmn",
    "tst",
    "ccm",
    "fcmp",
    "fccmp",
    "cbz",
    "cbnz",
    "tbz",
    "tbnz",
    "br",
    "blr",
    "ret",
    "prf",
    "msr",
)
WRITES_NONE += ("st", "dc", "ic", "tlbi", "at", "sys", "hint", "svc")
WRITES_TWO = ("ldp", "ldpsw", "ldnp", "ldxp", "ldaxp", "mrrs")
# `ldadd` and its relatives: the first operand is read, the second written.
ATOMICS = ("ldadd", "ldclr", "ldeor", "ldset", "ldsmax", "ldsmin", "ldumax", "ldumin", "swp")
WRITES_STATUS = ("stxr", "stlxr", "stxp", "stlxp")
NOWHERE = Jump(None, falls_through=False)


def masks(its: Decoded) -> tuple[int, int]:
    """Return the bits of the registers that an instruction reads and writes, by the operands that capstone names."""
    name = its.mnemonic
    named = [1 << REGISTERS[text] if (text := its.reg_name(operand.reg)) in REGISTERS else 0 for operand in its.operands
             if operand.type == capstone.arm64.ARM64_OP_REG]  # fmt: skip
    memory = [operand.mem for operand in its.operands if operand.type == capstone.arm64.ARM64_OP_MEM]
    leads = [REGISTERS.get(its.reg_name(one) or "", -1) for mem in memory for one in (mem.base, mem.index)]
    reads = sum(1 << number for number in {*leads} - {-1})
    written = named[:2] if name.startswith(WRITES_TWO) else named[1:2] if name.startswith(ATOMICS) else named[:1]
    if name.startswith(WRITES_NONE) and not name.startswith(WRITES_STATUS):
        written = []
    if not written or name.startswith((*CHANGES_FIRST, "cas")):
        read = named
    elif name.startswith(ATOMICS):
        read = named[:1]
    else:
        read = named[len(written) :]
    for one in read:
        reads |= one
    writes = 0
    for one in written:
        writes |= one
    if its.writeback and leads[0] >= 0:
        writes |= 1 << leads[0]
    writes |= 1 << 30 if name in {"bl", "blr"} or name.startswith("blra") else 0
    writes |= 1 << FLAGS if name in SETS_FLAGS else 0
    reads |= 1 << FLAGS if name in READS_FLAGS or name.startswith("b.") else 0
    return reads, writes


def our_masks(ours: Iterable[Instruction]) -> tuple[int, int]:
    """Return the same of all parts of an instruction; what an earlier part made is not read from outside."""
    reads = writes = moved = 0
    for our in ours:
        leads = sum(1 << number for number in {our.base, our.scaled} if number is not None)
        reads |= (our.reads | leads) & ~moved
        moved |= our.writes if our.operation is Operation.MOVE and our.other is not None else 0
        writes |= our.writes
    return reads, writes


def difference(raw: bytes) -> str | None:
    """Return in what footprint differs from capstone about an instruction; None where it agrees or knows it not."""
    ours = [*decoded(raw, VADDR)]
    its = next(MACHINE.disasm(raw, VADDR), None)
    is_hint = its is not None and its.mnemonic.startswith("prf")
    if its is None or is_hint or (ours[0].jump == NOWHERE and ours[0].base is None):
        return None
    assert [our.end_vaddr for our in ours][-1] == VADDR + 4
    name = its.mnemonic
    reads, writes = masks(its)
    our_reads, our_writes = our_masks(ours)
    if reads & ~our_reads:
        return f"{name} {its.op_str}: reads {reads:#x} and not {our_reads:#x}"
    # What is read as well is an objection already.
    if writes & ~our_writes or our_writes & ~writes & ~our_reads:
        return f"{name} {its.op_str}: writes {writes:#x} and not {our_writes:#x}"
    return _of_memory(ours, its)


def _of_memory(ours: list[Instruction], its: Decoded) -> str | None:
    operand = next((one for one in its.operands if one.type == capstone.arm64.ARM64_OP_MEM), None)
    first = min(ours, key=lambda our: (our.memory is None, our.memory or 0))
    if operand is None or first.memory is None or first.access is Access.NONE:
        return None
    base, index = (REGISTERS.get(its.reg_name(one) or "") for one in (operand.mem.base, operand.mem.index))
    is_stored = its.mnemonic.startswith("st")
    if is_stored and not any(our.writes_memory for our in ours):
        return f"{its.mnemonic} {its.op_str}: writes memory"
    if (first.base, first.scaled) != (base, index) or (index is None and first.memory != operand.mem.disp):
        return f"{its.mnemonic} {its.op_str}: another address"
    return None


def machine() -> Decoded:
    found = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    found.detail = True
    return found


MACHINE = machine()


def test_the_instructions_of_libc_do_what_capstone_says() -> None:
    if not Path(LIBC).exists():
        pytest.skip(f"{LIBC} is not installed")
    data = Path(LIBC).read_bytes()
    (section,) = (one for one in read_image(data, LIBC).sections if one.name == ".text")
    code = data[section.offset : section.offset + section.size_bytes]
    words = {code[at : at + 4] for at in range(0, len(code) & ~3, 4)}
    assert len(words) > 10_000
    assert not {text for raw in words if (text := difference(raw)) is not None}


def test_random_words_do_what_capstone_says() -> None:
    chosen = random.Random(1)  # noqa: S311 # the same in each run
    words = {chosen.randbytes(4) for _ in range(100_000)}
    assert not {text for raw in words if (text := difference(raw)) is not None}
