"""The processor time that an object takes at start, estimated from what the loader does for it.

The prices were fitted to the processor time from execve(2) to the entry point of 240 programs of Debian 12 (x86-64, 3
to 60 objects, 0.4 to 13 ms, Linux 6.18 in a virtual machine on an EPYC): they explain 97 % of its variance. Another
machine has other prices, so the time says which object costs more than another.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.attribution.object_prediction import ObjectPrediction, count_pages

if TYPE_CHECKING:
    from footprint.loader.start_cost import StartCost


class StartPrices(NamedTuple):
    """What the loader and the kernel need at start, in nanoseconds.

    Attributes:
        loader_ns: For the process and the loader itself.
        object_ns: For each object: to open its file and to map it.
        page_ns: For each page that is written.
        relocation_ns: For each relocation without a lookup.
        lookup_ns: For each lookup of a symbol.
        asked_ns: For each object that a lookup asks.
        failed_open_ns: For each file that is tried and not there.
    """

    loader_ns: int
    object_ns: int
    page_ns: int
    relocation_ns: int
    lookup_ns: int
    asked_ns: int
    failed_open_ns: int


# In hundredths: fitted to 848 programs of Debian 12 (Linux 6.18), each started five times.
_LOADER_FAULTS: Final = 1_274
_OBJECT_FAULTS: Final = 149
_PAGE_FAULTS: Final = 111
_WINDOW_FAULTS: Final = 156
_CONSTRUCTOR_FAULTS: Final = 184
# Where a page of a file is read, the kernel maps those around it that are in the page cache: of 16 pages that begin at
# any place (fault_around_bytes). It places files at random.
_WINDOW_PAGES: Final = 16
# Of the compiler's start-up files.
_USUAL_INITIALISERS: Final = 2
START_PRICES: Final = StartPrices(230_000, 38_000, 1_430, 10, 89, 15, 2_000)


def start_page_faults(cost: "StartCost | None", prediction: ObjectPrediction | None) -> int:
    """Estimate the page faults for one object up to the entry point; 0 for what is not there.

    Written pages, tables that are read, code, what constructors write, and for the loader the stack and its heap.
    """
    if cost is None or prediction is None:
        return 0
    pages = count_pages(prediction.startup_min) + prediction.assumed_pages
    windows = (cost.table_page_count + _WINDOW_PAGES - 1) * _WINDOW_FAULTS // _WINDOW_PAGES
    return (
        _LOADER_FAULTS * cost.is_loader
        + _OBJECT_FAULTS
        + _PAGE_FAULTS * pages
        + windows * bool(cost.table_page_count)
        + _CONSTRUCTOR_FAULTS * (cost.initialiser_count > _USUAL_INITIALISERS)
        + 50
    ) // 100


def start_us(cost: "StartCost | None", prediction: ObjectPrediction | None, prices: StartPrices = START_PRICES) -> int:
    """Estimate the processor time that one object takes at start, in microseconds; 0 for what is not there."""
    if cost is None or prediction is None:
        return 0
    total_ns = (
        (prices.loader_ns if cost.is_loader else prices.object_ns)
        + prices.page_ns * (count_pages(prediction.startup_min) + prediction.assumed_pages)
        + prices.relocation_ns * (cost.relocation_count + (cost.repeated_count or 0))
        + prices.lookup_ns * (cost.lookup_count or 0)
        + prices.asked_ns * (cost.asked_count or 0)
        + prices.failed_open_ns * sum([failed_open.file_count for failed_open in cost.failed_opens])
    )
    return total_ns // 1000
