"""How much of a mapping only this process holds, worked out by hand from each set of counters that a text may have.

All counters are in KiB here, as the kernel prints them.
"""

from collections.abc import Iterator

import pytest

from footprint.attribution.owned_range import MappingCounts, count_each, count_mapping
from footprint.model.row import Evidence
from footprint.process.mappings import Counters, Mapping
from footprint.process.pages import PageRange

KIB = 1024
START = 0x1000000


def mapping(permissions: str = "rw-p", name: str = "", **counters: int) -> Mapping:
    keys = {key: place for place, key in enumerate(counters)}
    values = tuple(kib * KIB for kib in counters.values())
    return Mapping(START, 2 * START, permissions, 0, "00:00", 0, name, Counters(keys, values))


def held(private: int | None, shared: int | None, relatives: int, uncertain: int, evidence: Evidence) -> MappingCounts:
    return MappingCounts(
        None if private is None else private * KIB,
        None if shared is None else shared * KIB,
        relatives * KIB,
        uncertain * KIB,
        evidence,
    )


def kib_of(mapping: Mapping) -> tuple[int, int, int, int]:
    """Return private, shared, relatives and uncertain, in KiB."""
    found = count_mapping(mapping)
    assert found.private_bytes is not None
    assert found.shared_bytes is not None
    sizes = (found.private_bytes, found.shared_bytes, found.cow_shared_bytes, found.uncertain_bytes)
    assert all(size % KIB == 0 for size in sizes)
    private, shared, relatives, uncertain = (size // KIB for size in sizes)
    return private, shared, relatives, uncertain


# --- smaps since Linux 2.6.37, which counts anonymous pages -----------------------------------------------------------


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        pytest.param(
            mapping(Rss=40, Shared_Clean=0, Shared_Dirty=0, Private_Clean=4, Private_Dirty=36, Anonymous=40, Swap=0),
            held(40, 0, 0, 0, Evidence.MEASURED),
            id="anonymous pages that nobody else maps are private",
        ),
        pytest.param(
            mapping(Rss=0, Shared_Clean=0, Shared_Dirty=0, Private_Clean=0, Private_Dirty=0, Anonymous=0, Swap=0),
            held(0, 0, 0, 0, Evidence.MEASURED),
            id="a mapping that was never touched holds nothing",
        ),
        pytest.param(
            # Private_Clean says that one process maps them, not that they are memory of its own.
            mapping("r-xp", "/usr/bin/node", Rss=100, Shared_Clean=30, Shared_Dirty=0, Private_Clean=70, Anonymous=0),
            held(0, 100, 0, 0, Evidence.MEASURED),
            id="pages of a file are shared once though only this process maps them",
        ),
        pytest.param(
            mapping("r-xp", "/srv/new", Rss=100, Shared_Dirty=0, Private_Clean=0, Private_Dirty=100, Anonymous=0),
            held(0, 100, 0, 0, Evidence.MEASURED),
            id="dirty pages of a file that was just written are no copies of it",
        ),
        pytest.param(
            mapping(Rss=40, Shared_Clean=4, Shared_Dirty=20, Private_Clean=0, Private_Dirty=16, Anonymous=40, Swap=0),
            held(16, 0, 24, 0, Evidence.MEASURED),
            id="anonymous pages that fork relatives map too are theirs as well",
        ),
        pytest.param(
            mapping(Rss=100, Shared_Clean=0, Shared_Dirty=0, Private_Clean=60, Private_Dirty=40, Anonymous=40),
            held(40, 60, 0, 0, Evidence.MEASURED),
            id="in a mapping of both kinds that nobody shares the anonymous pages are private",
        ),
        pytest.param(
            mapping(
                "rw-s",
                "/dev/shm/x",  # noqa: S108 # as the kernel names it
                Rss=64,
                Shared_Dirty=0,
                Private_Clean=0,
                Private_Dirty=64,
                Anonymous=0,
                Swap=0,
            ),
            held(0, 64, 0, 0, Evidence.MEASURED),
            id="shared memory is paid once whoever maps it",
        ),
        pytest.param(
            mapping(Rss=8, Shared_Dirty=0, Private_Dirty=8, Anonymous=8, Swap=100, SwapPss=100),
            held(108, 0, 0, 0, Evidence.MEASURED),
            id="swapped pages that nobody shares are private",
        ),
        pytest.param(
            mapping(Rss=8, Shared_Dirty=0, Private_Dirty=8, Anonymous=8, Swap=0),
            held(8, 0, 0, 0, Evidence.MEASURED),
            id="before linux 4 3 no swapped page at all is exact",
        ),
        pytest.param(
            mapping("rw-s", "/memfd:x (deleted)", Rss=8, Shared_Dirty=8, Anonymous=0, Swap=100, SwapPss=0),
            held(0, 8, 0, 0, Evidence.MEASURED),
            id="swap of shared memory belongs to the memory not to who maps it",
        ),
        pytest.param(
            mapping("r-xp", "/usr/lib/libc.so.6", Rss=100, Pss=10, Anonymous=0, Swap=0, SwapPss=0),
            held(0, 100, 0, 0, Evidence.MEASURED),
            id="of pmap x capital a mapping without anonymous pages is measured",
        ),
    ],
)
def test_what_counters_measure(mapping: Mapping, expected: MappingCounts) -> None:
    assert count_mapping(mapping) == expected


@pytest.mark.parametrize(
    ("mapping", "expected_kib"),
    [
        pytest.param(
            mapping(
                Rss=4096, Shared_Clean=4096, Shared_Dirty=0, Private_Clean=0, Private_Dirty=0, Anonymous=4096, KSM=4096
            ),
            (0, 0, 4096, 0),
            id="pages that ksm merged are like those of relatives",
        ),
        pytest.param(
            # The file has 60, and 50 are shared: all of them may be the file's, or 40 anonymous,
            # which leaves none private.
            mapping(Rss=100, Shared_Clean=50, Shared_Dirty=0, Private_Clean=10, Private_Dirty=40, Anonymous=40),
            (40, 60, 0, 40),
            id="in a mapping of both kinds shared pages are taken for those of the file",
        ),
        pytest.param(
            # At most 8 of the 40 anonymous pages are among the shared ones.
            mapping(Rss=100, Shared_Clean=8, Shared_Dirty=0, Private_Clean=52, Private_Dirty=40, Anonymous=40),
            (40, 60, 0, 8),
            id="the uncertain part is no larger than what is shared",
        ),
        pytest.param(
            # 70 are shared, 60 are the file's: 10 anonymous ones are shared at least, 30 are mapped once at most.
            mapping(Rss=100, Shared_Clean=20, Shared_Dirty=50, Private_Clean=0, Private_Dirty=30, Anonymous=40),
            (30, 60, 10, 30),
            id="more shared pages than the file has belong to relatives for sure",
        ),
        pytest.param(
            mapping(Rss=100, Shared_Clean=60, Shared_Dirty=40, Private_Clean=0, Private_Dirty=0, Anonymous=40),
            (0, 60, 40, 0),
            id="where all pages are shared nothing is private and nothing uncertain",
        ),
        pytest.param(
            mapping(Rss=0, Shared_Dirty=0, Private_Dirty=0, Anonymous=0, Shared_Hugetlb=0, Private_Hugetlb=2048),
            (0, 0, 0, 0),
            id="huge pages of the reserved pool are in no counter but their own",
        ),
        pytest.param(
            # The kernel counts the holes that the object fills from swap into Swap, but not into SwapPss.
            mapping("r--p", "/memfd:x (deleted)", Rss=8, Shared_Dirty=8, Anonymous=0, Swap=100, SwapPss=0),
            (0, 8, 0, 0),
            id="a private mapping of swapped out shared memory owns what swap pss says",
        ),
    ],
)
def test_private_shared_cow_shared_and_uncertain_kib(mapping: Mapping, expected_kib: tuple[int, int, int, int]) -> None:
    assert kib_of(mapping) == expected_kib


# --- swap -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mapping", "expected_kib"),
    [
        pytest.param(
            mapping(Rss=8, Shared_Dirty=0, Private_Dirty=8, Anonymous=8, Swap=100, SwapPss=25),
            (33, 0, 0, 0),
            id="of swapped pages that relatives share the proportional part counts and is not measured",
        ),
        pytest.param(
            mapping(Rss=8, Shared_Dirty=0, Private_Dirty=8, Anonymous=8, Swap=100),
            (108, 0, 0, 0),
            id="before linux 4 3 all swapped pages count and are not measured",
        ),
        pytest.param(
            mapping(Rss=100, Pss=70, Anonymous=40, Swap=4, SwapPss=4),
            (44, 60, 0, 0),
            id="of pmap x capital all anonymous pages are taken for private",
        ),
    ],
)
def test_where_sharers_are_not_counted_the_figures_are_not_measured(
    mapping: Mapping, expected_kib: tuple[int, int, int, int]
) -> None:
    assert kib_of(mapping) == expected_kib
    assert count_mapping(mapping).evidence is not Evidence.MEASURED


# --- pmap -X, which leaves out who shares -----------------------------------------------------------------------------


# --- kernels before 2.6.37, and pmap -x -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mapping", "shared_kib"),
    [
        pytest.param(
            mapping("rw-s", "/SYSV00000000 (deleted)", Rss=40, Shared_Dirty=0, Private_Dirty=40, Swap=24),
            40,
            id="of an old kernel",
        ),
        pytest.param(mapping("rw-s", "zero (deleted)", Rss=100, Dirty=100), 100, id="of pmap -x"),
        pytest.param(
            mapping("rw-s", "zero", Pss=70, Private_Dirty=40, Swap=8), 70, id="of toybox, with its proportional part"
        ),
    ],
)
def test_shared_memory_is_paid_once_where_anonymous_pages_are_not_counted(mapping: Mapping, shared_kib: int) -> None:
    assert count_mapping(mapping) == held(0, shared_kib, 0, 0, Evidence.ESTIMATED)


@pytest.mark.parametrize(
    "counters",
    [
        pytest.param(
            {"Shared_Clean": 60, "Shared_Dirty": 0, "Private_Clean": 28, "Private_Dirty": 12}, id="old kernel"
        ),
        pytest.param({"Dirty": 12}, id="pmap -x"),
    ],
)
def test_the_dirty_pages_of_a_file_are_taken_for_copies(counters: dict[str, int]) -> None:
    one = mapping("rw-p", "/lib/libc.so.6", Rss=100, **counters)
    assert count_mapping(one) == held(12, 88, 0, 0, Evidence.ESTIMATED)


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        pytest.param(
            mapping(Rss=40, Shared_Dirty=0, Private_Clean=0, Private_Dirty=40, Swap=24),
            held(64, 0, 0, 0, Evidence.ESTIMATED),
            id="of an old kernel swap counts as private",
        ),
        pytest.param(
            mapping(Rss=100, Dirty=12),
            held(100, 0, 0, 0, Evidence.ESTIMATED),
            id="of pmap x all resident pages without a file are taken for private",
        ),
        pytest.param(
            mapping(Pss=70, Private_Dirty=40, Swap=8),
            held(48, 30, 0, 0, Evidence.ESTIMATED),
            id="of toybox private dirty pages and swap are private",
        ),
        pytest.param(
            # Both are cut to whole KiB, so that Pss may be the smaller.
            mapping(Pss=39, Private_Dirty=40, Swap=0),
            held(40, 0, 0, 0, Evidence.ESTIMATED),
            id="of toybox a proportional part below the private one leaves nothing to share",
        ),
        *(
            pytest.param(
                mapping(name=name, Rss=100, Shared_Clean=0, Shared_Dirty=60, Private_Clean=4, Private_Dirty=36),
                held(40, 60, 0, 0, Evidence.ESTIMATED),
                id=f"of an old kernel all private pages without a file are private: {name or 'no name'}",
            )
            for name in ("", "[heap]", "[stack]", "[anon:libc_malloc]")
        ),
    ],
)
def test_where_anonymous_pages_are_not_counted_private_memory_is_estimated(
    mapping: Mapping, expected: MappingCounts
) -> None:
    assert count_mapping(mapping) == expected


@pytest.mark.parametrize(
    "mapping",
    [
        pytest.param(mapping(Rss=100), id="a resident size alone does not tell what is private"),
        pytest.param(mapping(Size=16_384), id="a size alone tells nothing either"),
        *(
            pytest.param(mapping(permissions), id=f"maps and pmap -d tell nothing of what is held: {permissions}")
            for permissions in ("rw-p", "rw-s", "r-xp")
        ),
    ],
)
def test_without_counters_of_private_pages_nothing_is_known(mapping: Mapping) -> None:
    assert count_mapping(mapping) == held(None, None, 0, 0, Evidence.VIRTUAL)


# --- pmap of toybox and busybox, and texts without counters -----------------------------------------------------------


# --- many mappings ----------------------------------------------------------------------------------------------------


def test_of_many_mappings_each_is_told_for_itself_even_where_they_share_their_counters() -> None:
    private = mapping(name="", Rss=100, Shared_Dirty=0, Private_Dirty=36, Private_Clean=4)
    file = private._replace(name="/lib/libc.so.6")
    shared = private._replace(permissions="rw-s")
    other = mapping(name="", Rss=8, Shared_Dirty=0, Private_Dirty=8)
    mappings = [private, file, shared, other, private]
    assert count_each(mappings) == [count_mapping(one) for one in mappings]
    assert [held.private_bytes for held in count_each(mappings)] == [40 * KIB, 36 * KIB, 0, 8 * KIB, 40 * KIB]


def test_of_mappings_that_are_made_one_after_the_other_each_is_told_for_itself() -> None:
    # Where nobody keeps a mapping, the next one may stand at its place in memory.
    def made() -> Iterator[Mapping]:
        for kib in range(1, 9):
            yield mapping(Rss=kib, Shared_Dirty=0, Private_Dirty=kib, Anonymous=kib)

    assert [held.private_bytes for held in count_each(made())] == [kib * KIB for kib in range(1, 9)]


# --- page bits --------------------------------------------------------------------------------------------------------


def test_page_bits_say_which_pages_are_private_where_counters_cannot() -> None:
    # By the counters 40 KiB are private or 0. By the bits 12 KiB are: the other 28 are held by relatives too.
    one = mapping(Rss=100, Shared_Clean=50, Shared_Dirty=0, Private_Clean=10, Private_Dirty=40, Anonymous=40)
    pages = [PageRange(START, START + 8 * KIB), PageRange(START + 64 * KIB, START + 68 * KIB)]
    assert count_each([one], {START: pages}) == [held(12, 60, 28, 0, Evidence.MEASURED)]


def test_swapped_pages_are_private_and_no_part_of_what_relatives_hold() -> None:
    # 8 KiB of the 20 resident anonymous ones are private, 12 the relatives' as well; 40 KiB are swapped out.
    one = mapping(Rss=20, Shared_Dirty=12, Private_Dirty=8, Anonymous=20, Swap=40, SwapPss=40)
    pages = [PageRange(START, START + 8 * KIB), PageRange(START + 64 * KIB, START + 104 * KIB, is_swapped=True)]
    assert count_each([one], {START: pages}) == [held(48, 0, 12, 0, Evidence.MEASURED)]


def test_bits_without_a_private_page_say_that_nothing_is_private() -> None:
    one = mapping(Rss=40, Shared_Dirty=40, Private_Dirty=0, Anonymous=40)
    assert count_each([one], {START: []}) == [held(0, 0, 40, 0, Evidence.MEASURED)]


def test_a_mapping_whose_bits_are_unknown_is_told_by_its_counters() -> None:
    one = mapping(Rss=8, Shared_Dirty=0, Private_Dirty=8, Anonymous=8)
    assert count_each([one], {START + 4096: []}) == [count_mapping(one)]
    assert count_each([one], None) == [count_mapping(one)]


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "counters"),
    [
        pytest.param(
            "", {"Rss": 4, "Shared_Dirty": 0, "Private_Dirty": 8, "Anonymous": 8}, id="more anonymous than resident"
        ),
        pytest.param("", {"Rss": 4, "Anonymous": 8}, id="more anonymous than resident, of pmap -X"),
        pytest.param("", {"Rss": 4, "Shared_Dirty": 0, "Private_Dirty": 8}, id="more private than resident"),
        pytest.param("libc.so.6", {"Rss": 4, "Dirty": 8}, id="more dirty than resident"),
        pytest.param(
            "", {"Rss": 8, "Shared_Dirty": 0, "Private_Clean": 4, "Anonymous": 6}, id="fewer of both than resident"
        ),
    ],
)
def test_counters_that_contradict_each_other_give_no_negative_figure_and_the_sum_stays(
    name: str, counters: dict[str, int]
) -> None:
    figures = kib_of(mapping("rw-p", name, **counters))
    assert min(figures) >= 0
    private, shared, relatives, _ = figures
    assert private + shared + relatives == counters["Rss"]
