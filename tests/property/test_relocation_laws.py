"""Laws of the size of a packed table of relocations, against an encoder that makes the table."""

from hypothesis import given
from hypothesis import strategies as st

from footprint.elf.image import read_image
from footprint.elf.relocations import pack_relative
from tests.elfwriter import DT_NEEDED, RO, RW, SHT_RELA, Dyn, ElfFile, Rel, Section, write

# Words beside one another, some words apart, and farther apart than the 63 words of a bitmap.
steps = st.sampled_from([8, 8, 8, 16, 63 * 8, 64 * 8, 1000 * 8])
uneven_steps = st.one_of(steps, st.integers(1, 9))


def packed_words(vaddrs: set[int]) -> int:
    """Count the words of RELR: each vaddr is taken into the bitmap that it is in, or into the next, or begins anew."""
    word_count, base, bitmap_count = 0, 0, 0
    for vaddr in sorted(vaddrs):
        bitmap, remainder = divmod(vaddr - base, 8)
        place = bitmap // 63
        if not word_count or remainder or place > bitmap_count:
            word_count, base, bitmap_count = word_count + 1, vaddr + 8, 0
        elif place == bitmap_count:
            word_count, bitmap_count = word_count + 1, bitmap_count + 1
    return word_count


@given(distances=st.lists(steps, max_size=300) | st.lists(uneven_steps, max_size=60), is_reversed=st.booleans())
def test_the_size_of_a_packed_table_is_that_of_packing_one_after_the_other(
    distances: list[int], *, is_reversed: bool
) -> None:
    vaddrs = [0x5000]
    for distance in distances:
        vaddrs.append(vaddrs[-1] + distance)
    # Some linkers put an entry into two tables.
    entries = [Rel(vaddr, 8, addend=0) for vaddr in (*vaddrs, *vaddrs[:3])]
    if is_reversed:
        entries.reverse()
    sections = [Section(".rela.dyn", SHT_RELA, RO, entries), Section(".data", flags=RW, data=bytes(8), addr=0x4000)]
    image = read_image(write(ElfFile(sections=sections, dynamic=[Dyn(DT_NEEDED, "libc.so.6")])), "file")
    even = {vaddr for vaddr in vaddrs if vaddr % 2 == 0}
    assert pack_relative(image) == (len(even), 8 * packed_words(even))
