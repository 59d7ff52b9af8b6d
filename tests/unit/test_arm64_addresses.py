"""Which addresses instructions of arm64 mean, by the numbers that registers and stack slots hold."""

from collections.abc import Callable, Mapping

import pytest

from footprint.elf.arm64_addresses import AddressResolver
from footprint.elf.arm64_code import decoded

START = 0x1000
ADRP_X1 = 0xB0000001  # adrp x1, 0x2000, from a vaddr below it
LDR_W0 = 0xB9400420  # ldr w0, [x1, #4]
STR_X1_SP_8, LDR_X1_SP_8 = 0xF90007E1, 0xF94007E1
# A slot is named by its distance from the end of the frame, which has 32 bytes.
SLOT = 8 - 32


def stated_by(
    *words: int, slots: Mapping[int, int] | None = None, is_address: Callable[[int], bool] = lambda _: False
) -> list[tuple[int, int]]:
    """Return the addresses that instructions mean, each with the number of the instruction."""
    instructions = [*decoded(b"".join(word.to_bytes(4, "little") for word in words), START)]
    by_vaddr = {START + 4 * number: slot for number, slot in (slots or {}).items()}
    resolver = AddressResolver(instructions, by_vaddr, lambda _: (), is_address, {}, (), may_catch=False)
    return [(address, (vaddr - START) // 4) for address, vaddr in resolver.resolved().stated]


@pytest.mark.parametrize(
    ("store", "slot", "is_kept"),
    [
        pytest.param(0xF90003E0, 0 - 32, True, id="str x0, [sp]: the 8 bytes before it"),
        pytest.param(0xF9000BE0, 16 - 32, True, id="str x0, [sp, #16]: the 8 bytes behind it"),
        pytest.param(0xB90013E0, 16 - 32, True, id="str w0, [sp, #16]: the 4 bytes behind it"),
        pytest.param(0xB90007E0, 4 - 32, True, id="str w0, [sp, #4]: the 4 bytes before it"),
        pytest.param(0xB9000BE0, 8 - 32, False, id="str w0, [sp, #8]: its first half"),
        pytest.param(0xB9000FE0, 12 - 32, False, id="str w0, [sp, #12]: its second half"),
        pytest.param(0xF80013E0, 1 - 32, False, id="stur x0, [sp, #1]: its first byte, and those before"),
        pytest.param(0x39003FE0, 15 - 32, False, id="strb w0, [sp, #15]: its last byte"),
    ],
)
def test_a_slot_keeps_an_address_until_one_of_its_bytes_is_written(store: int, slot: int, *, is_kept: bool) -> None:
    words = ADRP_X1, STR_X1_SP_8, store, LDR_X1_SP_8, LDR_W0
    assert stated_by(*words, slots={1: SLOT, 2: slot, 3: SLOT}) == [(0x2004, 4)] * is_kept


def test_an_address_of_a_slot_is_that_which_was_stored_last() -> None:
    # adrp x1, 0x2000; str x1, [sp, #8]; adrp x2, 0x3000; str x2, [sp, #8]; ldr x1, [sp, #8]; ldr w0, [x1, #4]
    words = ADRP_X1, STR_X1_SP_8, 0xD0000002, 0xF90007E2, LDR_X1_SP_8, LDR_W0
    assert stated_by(*words, slots={1: SLOT, 3: SLOT, 4: SLOT}) == [(0x3004, 5)]


@pytest.mark.parametrize(
    ("address", "stated"),
    [
        (0x2000, [(0x2000, 0)]),
        (0x422000, [(0x422000, 1), (0x422004, 2)]),
        (0x420000, []),
    ],
)
def test_a_number_that_is_made_in_two_parts_is_an_address_where_the_program_has_one_there(
    address: int, stated: list[tuple[int, int]]
) -> None:
    # mov x1, #0x2000; movk x1, #0x42, lsl #16; ldr w0, [x1, #4]
    words = 0xD2840001, 0xF2A00841, LDR_W0
    assert stated_by(*words, is_address=lambda number: number == address) == stated
