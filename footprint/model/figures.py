"""The table of figures: what each figure of an answer is called, what it means, and how it adds up over N processes.

Reports, JSON, comparisons, budgets, histories, metrics and `footprint explain` all read this table. A figure that is
described nowhere else is described here once.
"""

from enum import StrEnum
from typing import Final

from footprint.members import NamedTuple
from footprint.model.row import Evidence


class FigureUnit(StrEnum):
    """What a figure counts."""

    BYTES = "bytes"
    THINGS = "things"
    MICROSECONDS = "microseconds"


class AddsUp(StrEnum):
    """How a figure adds up over N processes."""

    EACH = "each"
    """Each of the N processes pays it: multiply by N."""
    ONCE = "once"
    """All of the N processes pay it together once: do not multiply."""
    NOT_ADDITIVE = "not additive"
    """It has no sum over N processes."""


class Figure(NamedTuple):
    """One figure.

    Attributes:
        name: The key in JSON and in budget files.
        title: What reports call it.
        meaning: What it is: a clause that begins in lower case and has no full stop at its end.
        adds_up: How it adds up over N processes.
        detail: What else a reader may want to know, in sentences.
        unit: What it counts.
        evidence: How the figure is known, where that is the same for every target; else None.
        has_budget: Whether a budget file can limit it.
    """

    name: str
    title: str
    meaning: str
    adds_up: AddsUp
    detail: str = ""
    unit: FigureUnit = FigureUnit.BYTES
    evidence: Evidence | None = None
    has_budget: bool = False

    @property
    def is_count(self) -> bool:
        """Return whether values are numbers of things, or times, not bytes."""
        return self.unit is not FigureUnit.BYTES

    @property
    def sentence(self) -> str:
        """Return the meaning as a sentence."""
        return f"{self.meaning[:1].upper()}{self.meaning[1:]}."

    @property
    def is_once(self) -> bool | None:
        """Return whether all of N processes pay it once together; None where it has no sum."""
        return None if self.adds_up is AddsUp.NOT_ADDITIVE else self.adds_up is AddsUp.ONCE

    def at_count(self, value: int, count: int) -> int | None:
        """Compute what `value` for one process is for `count` processes; None where it has no sum."""
        if self.adds_up is AddsUp.NOT_ADDITIVE:
            return None
        return value * count if self.adds_up is AddsUp.EACH else value


_EACH, _ONCE, _NOT_ADDITIVE = AddsUp.EACH, AddsUp.ONCE, AddsUp.NOT_ADDITIVE
_VIRTUAL, _PREDICTED = Evidence.VIRTUAL, Evidence.PREDICTED

_ALL: Final = (
    # Of a whole process: the fields of `Totals`.
    Figure(
        "per_process_bytes",
        "per process",
        "what one more process costs: private memory, page tables, kernel stacks and kernel objects, and the shared"
        " memory that it makes for itself",
        _EACH,
        "A memory cgroup is charged the same amount for each started copy.",
        has_budget=True,
    ),
    Figure(
        "private_bytes",
        "private memory",
        "anonymous memory, resident or swapped, that only one process holds",
        _EACH,
        "Each further copy pays it again. ps and top do not show it; the nearest figure elsewhere is USS.",
        has_budget=True,
    ),
    Figure(
        "kernel_bytes",
        "kernel memory",
        "page tables, kernel stacks and kernel objects of the process",
        _EACH,
        "It is 43 % of the cost of an idle `sleep` (85.5 of 197.5 KiB). No other tool counts it.",
        has_budget=True,
    ),
    Figure(
        "shared_once_bytes",
        "shared, once per machine",
        "resident pages of files and of shared memory: the machine pays them once, however many processes map them",
        _ONCE,
        has_budget=True,
    ),
    Figure(
        "shared_with_relatives_bytes",
        "COW-shared",
        "anonymous memory that the process still shares with its fork relatives (copy on write), or that KSM merged",
        _EACH,
        "A started copy would pay it; a forked worker does not until it writes.",
    ),
    Figure(
        "mapped_writable_bytes",
        "mapped writable",
        "address space that is private and writable: `writeable/private` of pmap",
        _EACH,
        "It is an upper bound for the pages in it, but it misses the sealed ones (RELRO): it is 356 KiB for the 112 KiB"
        " of private memory of an idle `sleep`.",
        evidence=_VIRTUAL,
        has_budget=True,
    ),
    Figure(
        "mapped_shared_bytes",
        "mapped shared",
        "address space that is mapped shared: `shared` of pmap",
        _EACH,
        evidence=_VIRTUAL,
    ),
    Figure(
        "mapped_bytes",
        "mapped",
        "all address space of the process",
        _EACH,
        "It is the VSZ of ps and the VIRT of top. Address space costs nothing by itself.",
        evidence=_VIRTUAL,
        has_budget=True,
    ),
    Figure(
        "floor_bytes",
        "startup minimum",
        "pages that the loader surely writes before the program's own code runs, and constructors of libraries where "
        "`doctor --calibrate` measured them",
        _EACH,
        "It is predicted from the ELF files.",
        has_budget=True,
    ),
    Figure(
        "ceiling_bytes",
        "startup maximum",
        "all pages of the ELF files that can ever become private",
        _EACH,
        "It is predicted from the ELF files. Heaps and stacks come on top.",
        evidence=_PREDICTED,
        has_budget=True,
    ),
    # Of several processes as one group.
    Figure(
        "per_group_bytes",
        "together",
        "what one more group of these processes costs: their private memory, the memory that they share among"
        " themselves, the shared memory that they made, and their kernel memory",
        _EACH,
        "Of a group, `private_bytes` and `kernel_bytes` are the sums over its processes.",
        has_budget=True,
    ),
    Figure(
        "per_worker_bytes",
        "one more worker",
        "what one more worker in a group costs: the mean over the workers that are there",
        _NOT_ADDITIVE,
        "Where no process has a parent in the group, a worker is one more of the processes that are alike.",
        has_budget=True,
    ),
    Figure(
        "shared_between_bytes",
        "shared between them",
        "anonymous memory that several processes of the group have shared since a fork, counted once",
        _EACH,
        has_budget=True,
    ),
    Figure(
        "process_count",
        "processes",
        "processes of the group",
        _EACH,
        unit=FigureUnit.THINGS,
        has_budget=True,
    ),
    # Of a program that was run, or of a series.
    Figure(
        "peak_bytes",
        "peak",
        "the most memory that a program and all its descendants held at one time, until it was read",
        _NOT_ADDITIVE,
        "A memory cgroup counts it, page cache left out and kernel memory included, some 64 pages a processor too many."
        " Where no cgroup can be made it is resident memory, pages of files included. Peaks of N copies need not"
        " coincide.",
        has_budget=True,
    ),
    # Of a series.
    Figure(
        "usual_most_bytes",
        "95 % of the time",
        "the cost of all processes of a watch that was not exceeded in 95 % of the time",
        _NOT_ADDITIVE,
        "Private memory, page tables and kernel stacks, without kernel objects.",
        has_budget=True,
    ),
    Figure(
        "hourly_growth_bytes",
        "growth in an hour",
        "the growth of the cost of all processes of a watch in an hour, at least",
        _NOT_ADDITIVE,
        "It is the lower end of the interval of 95 % of its slope; 0 where it does not grow.",
        has_budget=True,
    ),
    Figure(
        "most_process_count",
        "processes at a time",
        "the largest number of processes of a watch at a time",
        _NOT_ADDITIVE,
        unit=FigureUnit.THINGS,
        has_budget=True,
    ),
    # What budgets and histories have in addition.
    Figure(
        "total_at_count_bytes",
        "cost of N processes",
        "the cost of `at_processes` processes in the model of their audit, with what all of them pay once",
        _NOT_ADDITIVE,
        has_budget=True,
    ),
    Figure(
        "mapping_count",
        "mappings",
        "mappings of the process, or of all processes of a group",
        _EACH,
        unit=FigureUnit.THINGS,
        has_budget=True,
    ),
    Figure(
        "library_count",
        "files",
        "files whose code or data the process maps, the program among them",
        _NOT_ADDITIVE,
        unit=FigureUnit.THINGS,
        has_budget=True,
    ),
    Figure(
        "tls_bytes",
        "thread-local variables",
        "thread-local variables of all objects: each thread has its own copy",
        _EACH,
        "It is known for a program, and for a process that is audited with `--findings` or saved in a file.",
        has_budget=True,
    ),
    Figure(
        "start_relocation_count",
        "relocations at start",
        "relocations that the loader applies to all objects before the program's own code runs",
        _EACH,
        "It is predicted from the ELF files, of a program, and of a process that is audited with `--findings`.",
        unit=FigureUnit.THINGS,
        evidence=_PREDICTED,
        has_budget=True,
    ),
    Figure(
        "start_lookup_count",
        "symbol lookups at start",
        "searches for a symbol by name that the loader of glibc makes before the program's own code runs",
        _EACH,
        "It is predicted from the ELF files, as `start_relocation_count`.",
        unit=FigureUnit.THINGS,
        evidence=_PREDICTED,
        has_budget=True,
    ),
    Figure(
        "start_failed_opens",
        "failed opens at start",
        "files that the loader of glibc tries in folders that do not have them: of RPATH, RUNPATH, LD_LIBRARY_PATH, and"
        " subfolders for the processor",
        _EACH,
        "It is predicted from the ELF files, as `start_relocation_count`.",
        unit=FigureUnit.THINGS,
        evidence=_PREDICTED,
        has_budget=True,
    ),
    Figure(
        "start_page_faults",
        "page faults at start",
        "page faults up to the entry point of the program: of pages that are written, of tables and of code",
        _EACH,
        "It is estimated from the ELF files, as `start_relocation_count` is predicted.",
        unit=FigureUnit.THINGS,
        evidence=Evidence.ESTIMATED,
        has_budget=True,
    ),
    Figure(
        "start_cpu_seconds",
        "processor time of a start",
        "processor time of a start from execve to the entry point of the program: the median of many starts",
        _EACH,
        "Only a saved `run --start-cost` has it. Growth that the spread of the starts covers is no growth.",
        unit=FigureUnit.MICROSECONDS,
        evidence=Evidence.MEASURED,
        has_budget=True,
    ),
    # Of libraries, findings and copies.
    Figure(
        "retained_bytes",
        "retained",
        "what leaves the process with a library: its own cost, and the cost of every object that only it brings in",
        _EACH,
        "These objects are its dominator tree.",
    ),
    Figure(
        "saving_bytes",
        "saving",
        "private memory that each process saves with the remedy of a finding",
        _EACH,
    ),
    Figure(
        "waste_bytes",
        "waste",
        "memory of all copies but one: (copies - 1) x size",
        _NOT_ADDITIVE,
        "Whether each process pays it depends on the kind of memory that the copies are in.",
    ),
    # Parts of the totals that behave differently: the fields of `OfWhich`.
    Figure(
        "swapped_bytes",
        "swapped out",
        "part of private memory: on a swap device, and back in memory when it is touched",
        _EACH,
    ),
    Figure(
        "lazy_free_bytes",
        "free for the kernel to take",
        "part of private memory: given back with MADV_FREE; the kernel takes it when it needs memory",
        _EACH,
    ),
    Figure("locked_bytes", "locked", "memory that is never swapped (mlock)", _NOT_ADDITIVE),
    Figure(
        "huge_page_bytes",
        "in transparent huge pages",
        "part of private memory, in transparent huge pages: one byte that is written costs a whole huge page",
        _EACH,
    ),
    Figure("ksm_bytes", "merged by KSM", "pages that KSM merged with equal pages", _NOT_ADDITIVE),
    Figure(
        "hugetlb_private_bytes",
        "huge pages, private",
        "pages of the reserved pool of huge pages that only this process holds",
        _EACH,
        "They are in no total: the machine paid for them when the pool was made.",
    ),
    Figure(
        "hugetlb_shared_bytes",
        "huge pages, shared",
        "pages of the reserved pool of huge pages that are mapped shared",
        _ONCE,
        "They are in no total: the machine paid for them when the pool was made.",
    ),
    Figure(
        "own_shared_bytes",
        "shared memory of its own",
        "part of `shared_once_bytes` and of `per_process_bytes`: files in memory that nobody else keeps (memfd, shared"
        " anonymous memory, SysV, files of tmpfs), with all that they hold, and mapped buffers of the kernel",
        _EACH,
        "Each started copy makes its own, and each group. A budget can limit it for a group.",
        has_budget=True,
    ),
)

FIGURES: Final = {figure.name: figure for figure in _ALL}
"""Every figure by its name, in the order of reports."""
BUDGETED: Final = tuple(figure.name for figure in _ALL if figure.has_budget)
"""The names of the figures that a budget file can limit."""
