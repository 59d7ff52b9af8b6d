"""Laws of what a mapping holds, against an oracle that knows each of its pages."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from footprint.attribution.owned_range import count_mapping
from footprint.process.mappings import Counters, Mapping

PAGE_BYTES = 4096


class Page(NamedTuple):
    """A resident page: of a file or anonymous, mapped by so many processes, dirty or not."""

    is_anonymous: bool
    sharers: int
    is_dirty: bool


PAGES = st.lists(st.builds(Page, st.booleans(), st.integers(1, 3), st.booleans()), max_size=12)
# How many processes share each swapped page; shares of 4096 bytes that are whole KiB.
SWAPPED = st.lists(st.sampled_from([1, 2, 4]), max_size=4)
COUNTERS = ["Rss", "Pss", "Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty"]
COUNTERS += ["Anonymous", "Dirty", "Swap", "SwapPss"]


def mapping(counters: dict[str, int], permissions: str = "rw-p", name: str = "") -> Mapping:
    keys = {key: place for place, key in enumerate(counters)}
    return Mapping(0x1000000, 0x2000000, permissions, 0, "00:00", 0, name, Counters(keys, tuple(counters.values())))


def counted(pages: list[Page], swapped: list[int]) -> dict[str, int]:
    """Count pages as smaps_account and smaps_pte_entry do."""

    def size_bytes(*, is_shared: bool, is_dirty: bool) -> int:
        return PAGE_BYTES * sum(page.is_dirty is is_dirty and (page.sharers > 1) is is_shared for page in pages)

    return {
        "Rss": PAGE_BYTES * len(pages),
        "Shared_Clean": size_bytes(is_shared=True, is_dirty=False),
        "Shared_Dirty": size_bytes(is_shared=True, is_dirty=True),
        "Private_Clean": size_bytes(is_shared=False, is_dirty=False),
        "Private_Dirty": size_bytes(is_shared=False, is_dirty=True),
        "Anonymous": PAGE_BYTES * sum(page.is_anonymous for page in pages),
        "Swap": PAGE_BYTES * len(swapped),
        "SwapPss": sum(PAGE_BYTES // sharers for sharers in swapped),
    }


def truly_private_bytes(pages: list[Page]) -> int:
    return PAGE_BYTES * sum(page.is_anonymous and page.sharers == 1 for page in pages)


@given(PAGES)
def test_private_bytes_are_the_anonymous_pages_mapped_once_but_for_what_is_called_uncertain(pages: list[Page]) -> None:
    held = count_mapping(mapping(counted(pages, [])))
    assert held.private_bytes is not None
    assert held.private_bytes - held.uncertain_bytes <= truly_private_bytes(pages) <= held.private_bytes


@given(PAGES)
def test_private_bytes_are_exact_where_no_relative_shares_an_anonymous_page(pages: list[Page]) -> None:
    alone = [page._replace(sharers=1) if page.is_anonymous else page for page in pages]
    held = count_mapping(mapping(counted(alone, [])))
    assert held.private_bytes == truly_private_bytes(alone)
    assert held.cow_shared_bytes == 0


@given(PAGES)
def test_private_bytes_are_exact_where_all_pages_are_anonymous(pages: list[Page]) -> None:
    anonymous = [page._replace(is_anonymous=True) for page in pages]
    held = count_mapping(mapping(counted(anonymous, [])))
    assert held.private_bytes == truly_private_bytes(anonymous)
    assert held.uncertain_bytes == 0


@given(PAGES, SWAPPED)
def test_private_relatives_and_shared_are_all_that_is_resident_and_the_own_part_of_swap(
    pages: list[Page], swapped: list[int]
) -> None:
    counters = counted(pages, swapped)
    held = count_mapping(mapping(counters))
    assert held.private_bytes is not None
    assert held.shared_bytes == PAGE_BYTES * sum(not page.is_anonymous for page in pages)
    assert held.private_bytes + held.cow_shared_bytes + held.shared_bytes == counters["Rss"] + counters["SwapPss"]


@given(
    st.dictionaries(st.sampled_from(COUNTERS), st.integers(0, 1 << 20)),
    st.sampled_from(["rw-p", "r--p", "rw-s"]),
    st.sampled_from(["", "[heap]", "/usr/lib/libc.so.6"]),
)
def test_whatever_counters_a_text_has_no_figure_is_negative_and_what_is_resident_is_conserved(
    counters: dict[str, int], permissions: str, name: str
) -> None:
    counts = count_mapping(mapping(counters, permissions, name))
    assert (counts.private_bytes is None) is (counts.shared_bytes is None)
    if counts.private_bytes is None or counts.shared_bytes is None:
        return
    assert min(counts.private_bytes, counts.shared_bytes, counts.cow_shared_bytes, counts.uncertain_bytes) >= 0
    if "Rss" in counters:
        own_swap_bytes = 0 if permissions.endswith("s") else counters.get("SwapPss", counters.get("Swap", 0))
        total_bytes = counts.private_bytes + counts.cow_shared_bytes + counts.shared_bytes
        assert total_bytes == counters["Rss"] + own_swap_bytes
