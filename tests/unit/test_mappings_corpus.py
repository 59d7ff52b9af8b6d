"""Real texts of real processes: nothing is lost, and the kernel's own sums come out.

`tests/corpus/ORIGINS.md` says where each text comes from.
"""

import gzip
import re
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from footprint.process.mappings import Mapping, MemoryMap
from footprint.process.maps_text import parse_maps, parse_rollup

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
HEADER = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ ", re.MULTILINE)

TEXTS = sorted(
    path.name.removesuffix(".gz").removesuffix(".txt")
    for kind in ("maps", "smaps", "smaps_rollup")
    for path in CORPUS.glob(f"{kind}-*")
)
# Their smaps, and the kernel's sums of the same process.
SUMMED = ["manyvma30k", "node", "odd", "prometheus-procfs-26231", "python3", "sleep", "static64"]
# Read from Linux 6.18 together with maps and status.
RECORDED = ["node", "odd", "python3", "sleep", "static64"]
KIB = 1024


@cache
def text_of(name: str) -> bytes:
    plain = CORPUS / f"{name}.txt"
    return plain.read_bytes() if plain.exists() else gzip.decompress((CORPUS / f"{name}.txt.gz").read_bytes())


@cache
def memory_of(name: str) -> MemoryMap:
    return parse_maps(text_of(name), name)


def sum_of(key: str, mappings: tuple[Mapping, ...]) -> int:
    values = [mapping.counters.get(key) for mapping in mappings]
    assert None not in values, key
    return sum(value or 0 for value in values)


def sums_by_the_kernel(process: str) -> dict[str, int]:
    counters = parse_rollup(text_of(f"smaps_rollup-{process}"), process)
    assert counters is not None
    return dict(zip(counters.keys, counters.values, strict=True))


def test_the_corpus_is_there() -> None:
    assert len(TEXTS) == 40
    assert {f"smaps-{process}" for process in SUMMED} <= set(TEXTS)


@pytest.mark.parametrize("name", TEXTS)
def test_every_header_line_is_one_mapping(name: str) -> None:
    assert len(memory_of(name).mappings) == len(HEADER.findall(text_of(name)))


@pytest.mark.parametrize("name", TEXTS)
def test_every_mapping_of_a_text_has_its_place_above_the_one_before(name: str) -> None:
    mappings = memory_of(name).mappings
    assert all(mapping.start_addr < mapping.end_addr for mapping in mappings)
    assert all(one.end_addr <= other.start_addr for one, other in pairwise(mappings))


@pytest.mark.parametrize("name", [name for name in TEXTS if not name.startswith("maps-") and text_of(name)])
def test_every_line_of_a_block_is_a_counter_or_the_flags(name: str) -> None:
    mappings = memory_of(name).mappings
    counters = sum(len(mapping.counters.values) for mapping in mappings)
    flags = sum(mapping.vm_flags is not None for mapping in mappings)
    names = text_of(name).count(b"\nName: ")
    assert [mapping.unknown_lines for mapping in mappings] == [()] * len(mappings)
    assert len(mappings) + counters + flags + names == text_of(name).count(b"\n")


@pytest.mark.parametrize("name", [name for name in TEXTS if name.startswith("smaps-") and text_of(name)])
def test_the_kernel_prints_the_size_of_each_mapping_as_its_range_tells_it(name: str) -> None:
    mappings = memory_of(name).mappings
    assert [mapping.size_bytes for mapping in mappings] == [mapping.counters.get("Size") for mapping in mappings]


@pytest.mark.parametrize("name", [name for name in TEXTS if name.startswith("smaps-") and text_of(name)])
def test_private_and_shared_pages_of_each_mapping_are_its_resident_ones(name: str) -> None:
    parts = ("Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty")
    for mapping in memory_of(name).mappings:
        assert sum(mapping.counters.get(key) or 0 for key in parts) == mapping.counters.get("Rss")


# --- notes ----------------------------------------------------------------------------------------------------------

# Kernels that copy Pss into Locked: Linux 4.14, and Android's of that age.
WRONG_LOCKED = {
    "smaps-reconstructed-4.14-lockedbug",
    "smaps-android-libmeminfo-large",
    "smaps-android-libmeminfo-smaps_short",
}


@pytest.mark.parametrize("name", sorted(WRONG_LOCKED))
def test_locked_is_called_unreliable_where_the_kernel_copies_pss_into_it(name: str) -> None:
    assert [note.slug for note in memory_of(name).notes] == ["locked-unreliable"]


@pytest.mark.parametrize("name", sorted(set(TEXTS) - WRONG_LOCKED))
def test_all_other_texts_are_read_without_a_note(name: str) -> None:
    assert memory_of(name).notes == ()


# --- the same process, read in several ways -------------------------------------------------------------------------


@pytest.mark.parametrize("process", ["kthread", "zombie"])
def test_kernel_threads_and_zombies_have_empty_texts(process: str) -> None:
    assert memory_of(f"maps-{process}").mappings == ()
    assert memory_of(f"smaps-{process}").mappings == ()
    assert parse_rollup(text_of(f"smaps_rollup-{process}"), process) is None


@pytest.mark.parametrize("process", ["manyvma30k", *RECORDED])
def test_maps_and_smaps_of_a_process_have_the_same_mappings(process: str) -> None:
    def places(memory: MemoryMap) -> list[tuple[object, ...]]:
        return [mapping[: Mapping._fields.index("counters")] for mapping in memory.mappings]

    assert memory_of(f"maps-{process}").dialect == "maps"
    assert memory_of(f"smaps-{process}").dialect == "smaps"
    assert places(memory_of(f"smaps-{process}")) == places(memory_of(f"maps-{process}"))


@pytest.mark.parametrize("process", SUMMED)
def test_the_counters_of_all_mappings_add_up_to_the_sums_of_the_kernel(process: str) -> None:
    sums = sums_by_the_kernel(process)
    # The kernel keeps proportional figures in 4096ths of a byte and cuts each printed one to KiB, see below; and it
    # splits Pss in three only in the rollup.
    exact = [key for key in sums if "Pss" not in key]
    if process == "python3":
        exact = [key for key in exact if key not in {"Shared_Clean", "Private_Clean"}]
    mappings = memory_of(f"smaps-{process}").mappings
    assert len(exact) >= 10
    assert {key: sum_of(key, mappings) for key in exact} == {key: sums[key] for key in exact}


@pytest.mark.parametrize("process", [process for process in SUMMED if process != "python3"])
def test_proportional_figures_miss_less_than_one_kib_for_each_mapping_that_shares_pages(process: str) -> None:
    # Each mapping that shares no page has a whole number of KiB: nothing is cut off. Each other one loses less than 1
    # KiB, and the kernel's own sum, cut once, shows these losses in whole KiB.
    mappings = memory_of(f"smaps-{process}").mappings
    sharing = sum(
        bool(mapping.counters.get("Shared_Clean") or mapping.counters.get("Shared_Dirty")) for mapping in mappings
    )
    sums = sums_by_the_kernel(process)
    keys = [key for key in ("Pss", "Pss_Dirty", "SwapPss") if key in sums]
    assert {"Pss", "SwapPss"} <= set(keys)
    for key in keys:
        missing_bytes = sums[key] - sum_of(key, mappings)
        assert 0 <= missing_bytes <= max(0, sharing - 1) * KIB


def test_of_python3_six_pages_found_another_reader_between_smaps_and_rollup() -> None:
    # The two texts cannot be read at one moment: another process mapped 24 KiB of a file that python3 alone had.
    mappings = memory_of("smaps-python3").mappings
    sums = sums_by_the_kernel("python3")
    assert sums["Shared_Clean"] - sum_of("Shared_Clean", mappings) == 24 * KIB
    assert sum_of("Private_Clean", mappings) - sums["Private_Clean"] == 24 * KIB


@pytest.mark.parametrize("process", RECORDED)
def test_the_sizes_of_all_mappings_add_up_to_vm_size_of_status(process: str) -> None:
    # [vsyscall] stands in maps, but is no memory of the process.
    match = re.search(rb"^VmSize:\s+(\d+) kB$", text_of(f"status-{process}"), re.MULTILINE)
    assert match is not None
    sizes = [mapping.size_bytes for mapping in memory_of(f"maps-{process}").mappings if mapping.name != "[vsyscall]"]
    assert sum(sizes) == int(match[1]) * KIB


@pytest.mark.parametrize("process", RECORDED)
@pytest.mark.parametrize(("row", "key"), [("VmRSS", "Rss"), ("RssAnon", "Anonymous"), ("VmSwap", "Swap")])
def test_the_counters_of_all_mappings_add_up_to_the_row_of_status(process: str, row: str, key: str) -> None:
    match = re.search(rf"^{row}:\s+(\d+) kB$".encode(), text_of(f"status-{process}"), re.MULTILINE)
    assert match is not None
    assert sum_of(key, memory_of(f"smaps-{process}").mappings) == int(match[1]) * KIB


def test_the_odd_names_come_out_as_they_were_given_to_the_files() -> None:
    names = [mapping.name.rpartition("/")[2] for mapping in memory_of("maps-odd").mappings]
    odd = ["carriage\rreturn.bin", "tab\there.bin", "trailing space ", "back\\012slash.bin", "new\\012line.bin"]
    odd += ["fake (deleted)", "gone.bin (deleted)", "gone too (deleted) (deleted)", "[heap]"]
    odd += ["\udcff\udcfe-not-utf8.bin", 'colon:equals=comma,quote"semi;', "memfd: (deleted)"]
    assert [name for name in odd if names.count(name) != 1] == ["[heap]"]
    assert names.count("[heap]") == 2


def test_a_large_text_read_in_pieces_gives_what_the_whole_gives() -> None:
    name = "smaps-android-libmeminfo-large"
    text = text_of(name)
    pieces = (text[at : at + 65_536] for at in range(0, len(text), 65_536))
    assert parse_maps(pieces, name) == memory_of(name)


# --- what each kernel prints ----------------------------------------------------------------------------------------

OLDEST = "Size Rss Shared_Clean Shared_Dirty Private_Clean Private_Dirty"
PAGES = "Shared_Clean Shared_Dirty Private_Clean Private_Dirty Referenced"
HUGE = "Shared_Hugetlb Private_Hugetlb"
UNITS = "KernelPageSize MMUPageSize"
KEYS = {
    "smaps-reconstructed-2.6.14": OLDEST,
    "smaps-reconstructed-2.6.26": f"Size Rss Pss {PAGES} Swap",
    "smaps-reconstructed-2.6.38": f"Size Rss Pss {PAGES} Anonymous Swap {UNITS} Locked",
    "smaps-reconstructed-4.6-pkey": (
        f"Size Rss Pss {PAGES} Anonymous AnonHugePages {HUGE} Swap SwapPss {UNITS} Locked ProtectionKey"
    ),
    "smaps-reconstructed-4.12": (
        f"Size Rss Pss {PAGES} Anonymous LazyFree AnonHugePages ShmemPmdMapped {HUGE} Swap SwapPss {UNITS} Locked"
    ),
    "smaps-reconstructed-4.14-lockedbug": (
        f"Size Rss Pss {PAGES} Anonymous LazyFree AnonHugePages ShmemPmdMapped {HUGE} Swap SwapPss {UNITS} Locked"
    ),
    # 4.19 or an early 5: page sizes moved up, no THPeligible yet.
    "smaps-prometheus-procfs-26231": (
        f"Size {UNITS} Rss Pss {PAGES} Anonymous LazyFree AnonHugePages ShmemPmdMapped {HUGE} Swap SwapPss Locked"
    ),
    "smaps-reconstructed-5.0": (
        f"Size {UNITS} Rss Pss {PAGES} Anonymous LazyFree AnonHugePages ShmemPmdMapped {HUGE} Swap SwapPss Locked "
        "THPeligible"
    ),
    "smaps-reconstructed-6.0": (
        f"Size {UNITS} Rss Pss Pss_Dirty {PAGES} Anonymous LazyFree AnonHugePages ShmemPmdMapped FilePmdMapped {HUGE} "
        "Swap SwapPss Locked THPeligible"
    ),
    "smaps-sleep": (
        f"Size {UNITS} Rss Pss Pss_Dirty {PAGES} Anonymous KSM LazyFree AnonHugePages ShmemPmdMapped FilePmdMapped "
        f"{HUGE} Swap SwapPss Locked THPeligible"
    ),
}
RECONSTRUCTED = sorted(name for name in TEXTS if "reconstructed" in name)


def test_the_keys_of_every_reconstructed_kernel_are_checked() -> None:
    assert set(RECONSTRUCTED) - set(KEYS) == {"smaps-reconstructed-3.5-nonlinear"}


@pytest.mark.parametrize("name", sorted(KEYS))
def test_each_mapping_has_the_keys_of_its_kernel_in_their_order(name: str) -> None:
    keys = {" ".join(mapping.counters.keys) for mapping in memory_of(name).mappings}
    assert keys == {KEYS[name]}


def test_of_linux_3_5_only_the_nonlinear_mapping_has_the_key_nonlinear() -> None:
    expected = f"Size Rss Pss {PAGES} Anonymous AnonHugePages Swap {UNITS} Locked"
    found: dict[str, list[int]] = defaultdict(list)
    for mapping in memory_of("smaps-reconstructed-3.5-nonlinear").mappings:
        found[" ".join(mapping.counters.keys)].append(mapping.start_addr)
    assert found.pop(f"{expected} Nonlinear") == [0x55780ACFB000]
    assert list(found) == [expected]


@pytest.mark.parametrize("name", RECONSTRUCTED)
def test_flags_stand_in_texts_of_linux_3_8_and_later(name: str) -> None:
    has_flags = name.removeprefix("smaps-reconstructed-").startswith(("4.", "5.", "6."))
    assert {mapping.vm_flags is not None for mapping in memory_of(name).mappings} == {has_flags}


@pytest.mark.parametrize("name", RECONSTRUCTED)
def test_a_reconstructed_text_has_the_figures_of_the_process_it_was_made_of(name: str) -> None:
    # Only the layout is that of an old kernel; the one wrong figure is the one that 4.14 printed wrong.
    original = {mapping.start_addr: mapping.counters for mapping in memory_of("smaps-odd").mappings}
    made_up = {"Nonlinear", "ProtectionKey"} | ({"Locked"} if "lockedbug" in name else set())
    for mapping in memory_of(name).mappings:
        for key, value in zip(mapping.counters.keys, mapping.counters.values, strict=True):
            assert key in made_up or value == original[mapping.start_addr].get(key)


def test_android_names_every_anonymous_mapping_that_has_one() -> None:
    name = "smaps-android-libmeminfo-large"
    named = {
        line.removeprefix(b"Name:").strip().decode() for line in text_of(name).split(b"\n") if line.startswith(b"Name:")
    }
    assert len(named) > 10
    assert named <= {mapping.name for mapping in memory_of(name).mappings}
