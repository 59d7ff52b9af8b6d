"""The audit of a program that was not started: what a process of it would hold, as far as its files tell.

Its objects are laid out as a loader would, each page that is surely written counts as private, and the rest is the
audit of a process. So a prediction and a measurement have the same rows and can be compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from footprint.audit.audit import Audit
from footprint.audit.composition import Composition
from footprint.audit.finding import Finding
from footprint.audit.kernel import KernelConstants, KernelCost, kernel_costs
from footprint.audit.layout import Attribution, FileKey, Kind, lay_out
from footprint.audit.ledger import Files, Row, ledger_rows
from footprint.audit.measured import Held
from footprint.audit.models import project_process
from footprint.audit.predicted import Area, Predicted, StartMemory, start_memory
from footprint.audit.projection import Model, Point, Projection, Question
from footprint.audit.totals import Total, Totals, total_up
from footprint.elf import ET_EXEC, Image
from footprint.elf.image import PF_W, PF_X
from footprint.errors import Note, UsageError
from footprint.evidence import Evidence
from footprint.loader import Linked
from footprint.process import Mapping, MemoryMap, PageRange, Status

__all__ = ("predicted_audit",)

# Where Linux puts things without randomisation: a program, and the top of the libraries below the stack.
_PROGRAM_64: Final = 0x555555554000
_TOP_64: Final = 0x7FFFF7FFF000
_PROGRAM_32: Final = 0x56555000
_TOP_32: Final = 0xF7FFF000
_STACK_BYTES: Final = 132 * 1024
# [vvar], [vvar_vclock] and [vdso] are the kernel's, and mappings like others.
_KERNEL_MAPPINGS: Final = 3
_DEVICE: Final = "00:00"
_TABLE_ENTRY_BYTES: Final = 8
_TABLE_LEVELS: Final = 3  # the top one is counted with the process


def predicted_audit(
    composition: Composition,
    files: Files,
    *,
    target: str,
    question: Question,
    constants: KernelConstants,
    host: dict[str, str],
    findings: tuple[Finding, ...] = (),
    notes: tuple[Note, ...] = (),
) -> Audit:
    """Audit a program by its files.

    Args:
        composition: What it is made of.
        files: What its files say beside their headers.
        target: What the user called it.
        question: How many of it.
        constants: What the kernel spends on each process, thread, mapping.
        host: The kernel and machine of these constants.
        findings: What was found of its libraries.
        notes: What was odd.

    Raises:
        UsageError: For a model other than started copies.
    """
    if question.model is not Model.EXEC:
        raise UsageError(f"the {question.model.value} model needs a live process, not a file")
    page_bytes = composition.page_bytes
    places = list(_places(composition))
    tls_bytes = sum(predicted.tls_bytes for _, predicted, _, _ in places)
    start = start_memory(len(places), tls_bytes, page_bytes)
    mappings, pages, images = _mappings(places, start, page_bytes, is_64=places[0][2].is_64)
    memory = MemoryMap("prediction", tuple(mappings))
    held = [_held(mapping, pages) for mapping in mappings]
    parts = lay_out(memory, images, page_bytes)
    kernel = _kernel(mappings, pages, page_bytes, constants)
    assumed = _assumed_row(composition)
    rows = list(ledger_rows(parts, held, pages, files, page_bytes, kernel))
    if assumed is not None:
        rows.append(assumed)
        rows.sort(key=lambda row: -(row.bytes or 0))
        held.append(Held(assumed.bytes, None, 0, 0, Evidence.ESTIMATED))
    totals = _with_bounds(total_up(memory, held, kernel), composition)
    projection = project_process(
        totals,
        rows,
        kernel,
        status=None,
        mapping_count=len(mappings),
        costs=lambda _status, _count: (),
        question=question,
    )
    return Audit(
        target=target,
        pid=None,
        command="",
        source="prediction",
        is_live=False,
        mapping_count=len(mappings) + _KERNEL_MAPPINGS,
        page_bytes=page_bytes,
        host=host,
        totals=totals,
        ledger=tuple(rows),
        projection=_from_floor_to_ceiling(projection, totals),
        notes=(*notes, *constants.notes),
        findings=findings,
    )


_Place = tuple[Linked, Predicted, Image, int]


def _places(composition: Composition) -> Iterator[_Place]:
    """Give each object that can be read with the bias at which it would be loaded."""
    page_bytes = composition.page_bytes
    program = composition.objects[0].library.image
    top_addr = _TOP_64 if program.is_64 else _TOP_32
    for number, (linked, predicted) in enumerate(zip(composition.objects, composition.predicted, strict=True)):
        if predicted is None or not predicted.areas:
            continue
        image = linked.library.image
        first = predicted.areas[0].pages.start * page_bytes
        past = predicted.areas[-1].pages.stop * page_bytes
        if image.type == ET_EXEC:
            bias_addr = 0
        elif number == 0:
            bias_addr = (_PROGRAM_64 if program.is_64 else _PROGRAM_32) // page_bytes * page_bytes - first
        else:
            bias_addr = (top_addr - past) // page_bytes * page_bytes
            top_addr = bias_addr + first
        yield linked, predicted, image, bias_addr


def _mappings(
    places: Sequence[_Place], start: StartMemory, page_bytes: int, *, is_64: bool
) -> tuple[list[Mapping], dict[int, tuple[PageRange, ...]], dict[FileKey, Image]]:
    """Give the mappings of the process, which of their pages are private, and the files in them."""
    mappings: list[Mapping] = []
    pages: dict[int, tuple[PageRange, ...]] = {}
    images: dict[FileKey, Image] = {}
    for inode, (linked, predicted, image, bias_addr) in enumerate(places, 1):
        images[FileKey(_DEVICE, inode, linked.path)] = image
        for area in predicted.areas:
            mapping = _mapping(area, linked.path, inode, bias_addr, page_bytes)
            mappings.append(mapping)
            pages[mapping.start_addr] = tuple(
                [
                    PageRange(bias_addr + run.start * page_bytes, bias_addr + run.stop * page_bytes)
                    for run in _common(predicted.floor, area.pages)
                ]
            )
    top_addr = _TOP_64 if is_64 else _TOP_32
    # Behind all objects, where nothing else is.
    for name, size_bytes, private_bytes in (
        ("[loader and thread block]", start.loader_bytes, start.loader_bytes),
        ("[stack]", max(_STACK_BYTES, start.stack_bytes), start.stack_bytes),
    ):
        end_addr = top_addr + -(-size_bytes // page_bytes) * page_bytes
        mappings.append(Mapping(top_addr, end_addr, "rw-p", 0, _DEVICE, 0, name))
        pages[top_addr] = (PageRange(end_addr - private_bytes, end_addr),)
        top_addr = end_addr
    mappings.sort(key=lambda one: one.start_addr)
    return mappings, pages, images


def _common(runs: Sequence[range], pages: range) -> Iterator[range]:
    for run in runs:
        both = range(max(run.start, pages.start), min(run.stop, pages.stop))
        if both:
            yield both


def _mapping(area: Area, path: str, inode: int, bias_addr: int, page_bytes: int) -> Mapping:
    start_addr, end_addr = (bias_addr + page * page_bytes for page in (area.pages.start, area.pages.stop))
    flags = area.flags
    permissions = f"{'r' if flags else '-'}{'w' if flags & PF_W else '-'}{'x' if flags & PF_X else '-'}p"
    if area.first_in_file is None:
        return Mapping(start_addr, end_addr, permissions, 0, _DEVICE, 0, "")
    # A hole between segments is mapped from the file too, from a place that nothing refers to.
    offset = max(area.first_in_file, 0) * page_bytes if flags else 1 << 48
    return Mapping(start_addr, end_addr, permissions, offset, _DEVICE, inode, path)


def _held(mapping: Mapping, pages: dict[int, tuple[PageRange, ...]]) -> Held:
    private_bytes = sum([one.end_addr - one.start_addr for one in pages[mapping.start_addr]])
    is_estimate = mapping.name.startswith("[")
    return Held(private_bytes, None, 0, 0, Evidence.ESTIMATED if is_estimate else Evidence.PREDICTED)


def _kernel(
    mappings: Sequence[Mapping], pages: dict[int, tuple[PageRange, ...]], page_bytes: int, constants: KernelConstants
) -> tuple[KernelCost, ...]:
    """Estimate what the kernel would spend."""
    status = Status("", "", 1, _page_table_bytes(mappings, pages, page_bytes), has_memory=True)
    costs = kernel_costs(status, len(mappings) + _KERNEL_MAPPINGS, constants, mappings)
    written_count = sum(1 for mapping in mappings if pages[mapping.start_addr])
    # Which mappings are written is told by counters that a prediction does not have.
    written_bytes = written_count * constants.written_bytes
    return tuple(
        [
            KernelCost(
                cost.name, cost.size_bytes + (written_bytes if "objects" in cost.name else 0), Evidence.ESTIMATED
            )
            for cost in costs
        ]
    )


def _page_table_bytes(mappings: Sequence[Mapping], pages: dict[int, tuple[PageRange, ...]], page_bytes: int) -> int:
    """Count the tables for the pages that are written, and for the beginning of what is only read."""
    touched = {addr for mapping in mappings for addr in (mapping.start_addr, mapping.end_addr - 1)}
    touched |= {addr for ranges in pages.values() for one in ranges for addr in (one.start_addr, one.end_addr - 1)}
    count, span_bytes = 0, page_bytes
    for _ in range(_TABLE_LEVELS):
        span_bytes *= page_bytes // _TABLE_ENTRY_BYTES
        count += len({addr // span_bytes for addr in touched})
    return count * page_bytes


def _assumed_row(composition: Composition) -> Row | None:
    """Give what the C library writes in pages that are not known."""
    for linked, predicted in zip(composition.objects, composition.predicted, strict=True):
        if predicted is not None and predicted.assumed_pages:
            return Row(
                owner=linked.path,
                kind=Kind.DATA,
                section=None,
                symbol=None,
                name="[written by the first steps of the C library: footprint doctor --calibrate]",
                bytes=predicted.assumed_pages * predicted.page_bytes,
                mapped_bytes=0,
                shared_bytes=None,
                pages=predicted.assumed_pages,
                sole_pages=0,
                relocated_bytes=None,
                is_writable=True,
                evidence=Evidence.ESTIMATED,
                attribution=Attribution.PROGRAM_HEADERS,
            )
    return None


def _with_bounds(totals: Totals, composition: Composition) -> Totals:
    """Put in how much is surely written, and how much can ever be."""
    floor_bytes = sum(one.floor_bytes for one in composition.predicted if one)
    ceiling_bytes = sum(one.ceiling_bytes for one in composition.predicted if one)
    unknown = Total(None, Evidence.PREDICTED)
    return replace(
        totals,
        shared_once=unknown,
        shared_with_relatives=unknown,
        floor=Total(floor_bytes, Evidence.PREDICTED),
        ceiling=Total(ceiling_bytes, Evidence.PREDICTED),
    )


def _from_floor_to_ceiling(projection: Projection, totals: Totals) -> Projection:
    """Say what one costs at least, and at most as far as its objects go: heaps and stacks grow as they like."""
    each_bytes = projection.per_process_bytes
    rest_bytes = (totals.ceiling.bytes or 0) - (totals.floor.bytes or 0)
    points = tuple(
        [
            Point(name, size_bytes, size_bytes * projection.count, Evidence.ESTIMATED)
            for name, size_bytes in (
                ("just started", each_bytes),
                ("every variable written", each_bytes + rest_bytes),
            )
        ]
    )
    return Projection(
        projection.count,
        projection.per_process_bytes,
        projection.shared_once_bytes,
        projection.total_bytes,
        projection.basis,
        projection.evidence,
        projection.model,
        projection.terms,
        points,
        projection.memory_bytes,
    )
