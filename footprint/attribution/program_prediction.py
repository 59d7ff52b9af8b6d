"""The audit of a program that was not started: what a process of it would hold, as far as its files say.

The objects are laid out as a loader does it (`footprint.attribution.program_layout`), each page that is surely written
counts as private, and all else is as in the audit of a process. So a prediction and a measurement have the same rows
and can be compared.
"""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from footprint.attribution.cost_models import project_process
from footprint.attribution.counters import MappingCounts
from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.kernel import KernelConstants, KernelCost, kernel_costs
from footprint.attribution.layout import lay_out
from footprint.attribution.ledger import Files, ledger_rows
from footprint.attribution.process_audit import total_up
from footprint.attribution.program_layout import PlacedObject, ProgramLayout, lay_out_program
from footprint.errors import Note, UsageError
from footprint.model.audit import Audit
from footprint.model.projection import Model, Point, Projection, Question
from footprint.model.row import Attribution, Evidence, MemoryKind, Row, weakest
from footprint.model.totals import Total, Totals
from footprint.process.mappings import Mapping, MemoryMap
from footprint.process.pages import PageRange
from footprint.process.status import Status

if TYPE_CHECKING:
    from footprint.model.page_map import PageMap


# The kernel's [vvar], [vvar_vclock] and [vdso], and a second mapping of the loader.
_MORE_MAPPINGS: Final = 4
_TABLE_ENTRY_BYTES: Final = 8
_ADDRESS_BITS: Final = 48


def predicted_audit(
    graph: DependencyGraph,
    files: Files,
    *,
    target: str,
    question: Question,
    constants: KernelConstants,
    host: dict[str, str],
    notes: tuple[Note, ...] = (),
    has_page_maps: bool = False,
) -> Audit:
    """Audit a program by its files.

    Raises:
        InputError: Where no process could have its segments.
        UsageError: For a model other than started copies.
    """
    if question.model not in {None, Model.EXEC}:
        raise UsageError(f"the {question.model} model needs a live process, not a file")
    page_bytes, layout = graph.page_bytes, lay_out_program(graph)
    memory, counts = MemoryMap("prediction", tuple(layout.mappings)), layout.counts()
    ranges = lay_out(memory, layout.images, page_bytes)
    kernel = _kernel(layout, page_bytes, constants)
    # Variables that nothing writes at start are rows as well: they may be written later, and two builds differ in them.
    rows = ledger_rows(ranges, counts, layout.pages, files, page_bytes, kernel, has_untouched=True)
    page_maps: tuple[PageMap, ...] = ()
    if has_page_maps:
        from footprint.attribution.page_maps import page_maps as map_pages  # noqa: PLC0415 # for a picture only

        page_maps = map_pages(ranges, counts, layout.pages, files, page_bytes)
    assumed = _assumed_row(layout.objects)
    if assumed is not None:
        rows = tuple(sorted((*rows, assumed), key=lambda row: -(row.bytes or 0)))
        counts.append(MappingCounts(assumed.bytes, None, 0, 0, Evidence.ESTIMATED))
    totals = _with_bounds(total_up(memory, counts, kernel), layout.objects)
    return Audit(
        target=target,
        pid=None,
        command="",
        source="prediction",
        is_live=False,
        mapping_count=len(layout.mappings) + _MORE_MAPPINGS,
        page_bytes=page_bytes,
        host=host,
        totals=totals,
        ledger=rows,
        projection=_projection(totals, rows, kernel, len(layout.mappings), question),
        notes=(*notes, *layout.notes, *constants.notes),
        page_maps=page_maps,
    )


def _kernel(layout: ProgramLayout, page_bytes: int, constants: KernelConstants) -> tuple[KernelCost, ...]:
    """Estimate what the kernel would spend."""
    mappings, pages = layout.mappings, layout.pages
    status = Status("", "", 1, _page_table_bytes(mappings, pages, page_bytes), has_memory=True)
    costs = kernel_costs(status, len(mappings) + _MORE_MAPPINGS, constants, mappings)
    # Counters would say which mappings are written; a prediction has none.
    written_bytes = sum(1 for mapping in mappings if pages[mapping.start_addr]) * constants.written_bytes
    return tuple(
        [
            KernelCost(
                cost.name, cost.size_bytes + (written_bytes if "objects" in cost.name else 0), Evidence.ESTIMATED
            )
            for cost in costs
        ]
    )


def _page_table_bytes(mappings: Sequence[Mapping], pages: Dict[int, Sequence[PageRange]], page_bytes: int) -> int:
    """Count the page tables for the pages that are written, and for the first and last page of each mapping."""
    touched = [range(addr, addr + 1) for mapping in mappings for addr in (mapping.start_addr, mapping.end_addr - 1)]
    touched += [range(span.start_addr, span.end_addr) for ranges in pages.values() for span in ranges]
    count, span_bytes = 0, page_bytes
    entry_count = page_bytes // _TABLE_ENTRY_BYTES
    # The top table is part of the constants of a process.
    while span_bytes * entry_count < 1 << _ADDRESS_BITS:
        span_bytes *= entry_count
        numbers = sorted([(span.start // span_bytes, (span.stop - 1) // span_bytes) for span in touched])
        reached = -1
        for first, last in numbers:
            count += max(0, last - max(first - 1, reached))
            reached = max(reached, last)
    return count * page_bytes


def _assumed_row(objects: Sequence[PlacedObject]) -> Row | None:
    """Return the row of the pages that the C library is assumed to write, where its own are not known."""
    for path, prediction, image, _ in objects:
        if prediction.assumed_pages:
            # The C library of a static program is a part of it, and can be measured in no other.
            is_static = image is objects[0].image
            name = "written by the first steps of the C library"
            return Row(
                owner=path,
                kind=MemoryKind.DATA,
                section=None,
                symbol=None,
                name=f"[{name}]" if is_static else f"[{name}: footprint doctor --calibrate]",
                bytes=prediction.assumed_pages * prediction.page_bytes,
                mapped_bytes=0,
                shared_bytes=None,
                pages=prediction.assumed_pages,
                sole_pages=0,
                relocated_bytes=None,
                is_writable=True,
                evidence=Evidence.ESTIMATED,
                attribution=Attribution.PROGRAM_HEADERS,
            )
    return None


def _with_bounds(totals: Totals, objects: Sequence[PlacedObject]) -> Totals:
    """Return the totals with startup minimum and maximum; what is shared once a process runs is not known."""
    unknown = Total(None, Evidence.PREDICTED)
    minimum_bytes = sum(o.prediction.startup_min_bytes for o in objects)
    maximum_bytes = sum(o.prediction.startup_max_bytes for o in objects)
    return totals._replace(
        shared_once=unknown,
        cow_shared=unknown,
        startup_min=Total(minimum_bytes, weakest(o.prediction.evidence for o in objects)),
        startup_max=Total(maximum_bytes, Evidence.PREDICTED),
    )


def _projection(
    totals: Totals, rows: Sequence[Row], kernel: Sequence[KernelCost], mapping_count: int, question: Question
) -> Projection:
    """Compute the cost of started copies, and of one at its start and with every variable written."""
    projection = project_process(
        totals,
        rows,
        kernel,
        status=None,
        mapping_count=mapping_count,
        costs=lambda _status, _count: (),
        question=question,
    )
    started_bytes = projection.per_process_bytes
    written_bytes = started_bytes + (totals.startup_max.bytes or 0) - (totals.startup_min.bytes or 0)
    points = [
        Point(name, size_bytes, size_bytes * projection.count, Evidence.ESTIMATED)
        for name, size_bytes in (("just started", started_bytes), ("every variable written", written_bytes))
    ]
    return projection._replace(points=tuple(points))
