"""What each of N pays and all pay once, in the three models: literal totals in, terms by hand out."""

from collections.abc import Sequence

import pytest

from footprint.attribution.cost_models import ForkParent, project_process
from footprint.attribution.kernel import KernelCost
from footprint.attribution.owned_range import LoadedObject
from footprint.attribution.process_audit import audit_snapshot
from footprint.attribution.symbol_ranges import PageNumbers
from footprint.elf.contents import Contents
from footprint.errors import UsageError
from footprint.model.projection import Basis, Model, Point, Projection, Question
from footprint.model.row import Attribution, Evidence, MemoryKind, OfWhich, Row, Total, Totals
from footprint.process.mappings import FileKey
from footprint.process.snapshot import read_texts
from footprint.process.status import Status
from tests.ledgers import ledger_row

KIB, MIB = 1 << 10, 1 << 20

MEASURED, DERIVED, ESTIMATED, VIRTUAL = Evidence.MEASURED, Evidence.DERIVED, Evidence.ESTIMATED, Evidence.VIRTUAL
UNKNOWN = Total(None, Evidence.PREDICTED)
NOTHING_SPECIAL = OfWhich(0, 0, 0, 0, 0, 0, 0, 0)

# 10 MiB private, 30 MiB of files and shared memory, 20 MiB of them resident; a hundred mapped.
TOTALS = Totals(
    private=Total(10 * MIB, MEASURED),
    kernel=Total(100 * KIB, ESTIMATED),
    per_process=Total(10 * MIB + 100 * KIB, ESTIMATED),
    shared_once=Total(20 * MIB, DERIVED),
    cow_shared=Total(0, MEASURED),
    mapped_writable=Total(60 * MIB, VIRTUAL),
    mapped_shared=Total(0, VIRTUAL),
    mapped=Total(100 * MIB, VIRTUAL),
    startup_min=UNKNOWN,
    startup_max=UNKNOWN,
    of_which=NOTHING_SPECIAL,
)
STATUS = Status("server", "S", thread_count=1, page_table_bytes=60 * KIB, has_memory=True)


def costs(status: Status | None, mapping_count: int) -> Sequence[KernelCost]:
    """Price things so that each can be told from the sum: page tables as counted, 16 KiB a thread, 1 KiB a mapping."""
    assert status is not None
    return (
        KernelCost("[page tables]", status.page_table_bytes or 0, MEASURED),
        KernelCost("[kernel stacks]", 16 * KIB * (status.thread_count or 0), ESTIMATED),
        KernelCost("[kernel objects]", KIB * mapping_count, ESTIMATED),
    )


# 60 KiB of page tables, 16 KiB of stack, 24 mappings: 100 KiB.
KERNEL = costs(STATUS, 24)


def projected(
    totals: Totals = TOTALS,
    *,
    model: Model | None = Model.EXEC,
    count: int = 1,
    memory_bytes: int | None = None,
    status: Status | None = STATUS,
    ledger: Sequence[Row] = (),
    parent: ForkParent | None = None,
    is_live: bool = False,
    thread_table_bytes: int | None = None,
) -> Projection:
    """Project the process; its kernel memory is known where its status is."""
    return project_process(
        totals,
        ledger,
        costs(status, 24) if status else (),
        status=status,
        mapping_count=24,
        costs=costs,
        question=Question(count, memory_bytes, model),
        parent=parent,
        is_live=is_live,
        thread_table_bytes=thread_table_bytes,
    )


def each(projection: Projection) -> dict[str, int]:
    return {term.name: term.size_bytes for term in projection.terms if not term.is_once}


def once(projection: Projection) -> dict[str, int]:
    return {term.name: term.size_bytes for term in projection.terms if term.is_once}


def how_known(projection: Projection) -> dict[str, Evidence]:
    return {term.name: term.evidence for term in projection.terms}


def with_special(totals: Totals = TOTALS, **figures: int) -> Totals:
    return totals._replace(of_which=NOTHING_SPECIAL._replace(**figures))


def row(owner: str, size_bytes: int) -> Row:
    return ledger_row(owner, size_bytes, kind=MemoryKind.STACK, pages=None, relocated_bytes=None, evidence=MEASURED)


# --- started copies ---------------------------------------------------------------------------------------------------


def test_a_started_copy_pays_its_private_memory_and_each_part_of_the_kernels() -> None:
    projection = projected(count=100)
    assert each(projection) == {
        "private memory": 10 * MIB,
        "page tables": 60 * KIB,
        "kernel stacks": 16 * KIB,
        "kernel objects": 24 * KIB,
    }
    assert once(projection) == {"files and shared memory": 20 * MIB}
    assert projection.per_process_bytes == 10 * MIB + 100 * KIB
    assert projection.shared_once_bytes == 20 * MIB
    assert projection.total_bytes == 20 * MIB + 100 * (10 * MIB + 100 * KIB)
    assert (projection.basis, projection.model, projection.points) == (Basis.PER_PROCESS, Model.EXEC, ())


def test_as_many_copies_fit_as_the_memory_holds_and_fewer_beside_the_page_cache_of_their_files() -> None:
    # 1 GiB / (10 MiB + 100 KiB) = 1,048,576 KiB / 10,340 KiB = 101.4; without 20 MiB, 1,028,096 KiB, it is 99.4.
    projection = projected(memory_bytes=1024 * MIB)
    assert projection.count == 101
    assert projection.limits[0].beside_cache_count == 99
    assert projection.total_bytes == 20 * MIB + 101 * 10_340 * KIB
    assert projection.memory_bytes == 1024 * MIB


def test_a_text_without_status_is_projected_by_private_memory_alone_and_says_so() -> None:
    projection = projected(status=None, count=3)
    assert each(projection) == {"private memory": 10 * MIB}
    assert projection.basis is Basis.PRIVATE
    assert projection.total_bytes == 20 * MIB + 3 * 10 * MIB


def test_where_only_virtual_sizes_are_known_the_mapped_writable_memory_is_the_bound() -> None:
    totals = TOTALS._replace(private=Total(None, VIRTUAL), shared_once=Total(None, DERIVED))
    projection = projected(totals, status=None, count=10)
    assert each(projection) == {"mapped writable memory": 60 * MIB}
    assert once(projection) == {}
    assert projection.shared_once_bytes is None
    assert projection.total_bytes == 600 * MIB
    assert (projection.basis, projection.evidence) == (Basis.MAPPED_WRITABLE, VIRTUAL)


@pytest.mark.parametrize(
    ("totals", "term", "evidence"),
    [
        pytest.param(
            TOTALS._replace(cow_shared=Total(4 * MIB, MEASURED)),
            "memory shared with fork relatives",
            ESTIMATED,
            id="what forked relatives share now each started copy has for itself",
        ),
        pytest.param(
            with_special(hugetlb_private_bytes=4 * MIB),
            "huge pages of the reserved pool",
            MEASURED,
            id="huge pages of the pool are a term of each copy",
        ),
    ],
)
def test_a_started_copy_has_for_itself(totals: Totals, term: str, evidence: Evidence) -> None:
    projection = projected(totals)
    assert each(projection)[term] == 4 * MIB
    assert projection.per_process_bytes == 14 * MIB + 100 * KIB
    assert how_known(projection)[term] is evidence
    assert projection.basis is Basis.STARTED_COPY


def test_what_ksm_merged_it_merges_for_the_copies_again() -> None:
    # Of 4 MiB that others hold too, 3 MiB are merged pages: only 1 MiB is shared since a fork.
    totals = with_special(ksm_bytes=3 * MIB)._replace(cow_shared=Total(4 * MIB, MEASURED))
    assert each(projected(totals))["memory shared with fork relatives"] == 1 * MIB


@pytest.mark.parametrize("ksm_bytes", [4 * MIB, 9 * MIB])
def test_where_all_that_is_shared_is_merged_there_is_no_such_term(ksm_bytes: int) -> None:
    totals = with_special(ksm_bytes=ksm_bytes)._replace(cow_shared=Total(4 * MIB, MEASURED))
    assert "memory shared with fork relatives" not in each(projected(totals))
    assert projected(totals).per_process_bytes == 10 * MIB + 100 * KIB


def test_shared_memory_of_its_own_each_copy_makes_anew_so_it_is_not_paid_once() -> None:
    projection = projected(with_special(own_shared_bytes=3 * MIB), count=2)
    assert each(projection)["shared memory of its own"] == 3 * MIB
    assert once(projection) == {"files and shared memory": 17 * MIB}
    assert projection.total_bytes == 17 * MIB + 2 * (13 * MIB + 100 * KIB)
    # For one copy it does not matter who is charged: the memory is part of what one process costs.
    single = projected(with_special(own_shared_bytes=3 * MIB))
    assert (single.total_bytes, single.basis) == (projected().total_bytes, Basis.PER_PROCESS)


def test_swapped_freed_locked_and_transparent_huge_memory_is_part_of_private_and_no_term_of_its_own() -> None:
    special = with_special(swapped_bytes=MIB, lazy_free_bytes=MIB, locked_bytes=MIB, huge_page_bytes=2 * MIB)
    assert projected(special) == projected()


def test_a_projection_is_as_weak_as_its_weakest_term() -> None:
    assert projected(status=None).evidence is DERIVED  # measured private memory, derived shared memory
    assert projected().evidence is ESTIMATED  # the kernel's objects are priced by constants
    weak = TOTALS._replace(private=Total(10 * MIB, VIRTUAL))
    assert projected(weak).evidence is VIRTUAL


def test_how_each_term_is_known_is_told() -> None:
    assert how_known(projected()) == {
        "private memory": MEASURED,
        "page tables": MEASURED,
        "kernel stacks": ESTIMATED,
        "kernel objects": ESTIMATED,
        "files and shared memory": DERIVED,
    }


# --- forked workers ---------------------------------------------------------------------------------------------------


def test_the_workers_of_a_parent_that_has_none_yet_are_bounded_by_rewriting_all_of_it() -> None:
    """A parent of three threads: a worker begins with one, and with page tables of the parent's size.

    The parent: 10 MiB, 60 KiB of page tables, 48 KiB of stacks, 24 KiB of objects. A worker that has just been forked:
    60 + 16 + 24 KiB.
    """
    status = STATUS._replace(thread_count=3)
    projection = projected(model=Model.FORK, count=50, status=status)
    assert each(projection) == {
        "everything rewritten": 10 * MIB,
        "page tables": 60 * KIB,
        "kernel stacks": 16 * KIB,
        "kernel objects": 24 * KIB,
    }
    assert once(projection) == {"the parent": 10 * MIB + 132 * KIB, "files and shared memory": 20 * MIB}
    once_bytes, rewritten_bytes = 30 * MIB + 132 * KIB, 10 * MIB + 100 * KIB
    assert projection.total_bytes == once_bytes + 50 * rewritten_bytes
    assert projection.points == (
        Point("just forked", 100 * KIB, once_bytes + 50 * 100 * KIB, ESTIMATED),
        Point("everything rewritten", rewritten_bytes, once_bytes + 50 * rewritten_bytes, ESTIMATED),
    )
    assert (projection.model, projection.basis, projection.evidence) == (Model.FORK, Basis.REWRITTEN, ESTIMATED)


def test_a_worker_pays_what_it_has_rewritten_and_all_pay_once_what_they_share() -> None:
    """A worker that holds 10 MiB for itself and shares 90 MiB with its relatives."""
    totals = TOTALS._replace(cow_shared=Total(90 * MIB, MEASURED))
    projection = projected(totals, model=Model.FORK, count=4)
    assert each(projection) == {
        "private memory of a worker": 10 * MIB,
        "page tables": 60 * KIB,
        "kernel stacks": 16 * KIB,
        "kernel objects": 24 * KIB,
    }
    assert once(projection) == {
        "memory shared with its relatives": 90 * MIB,
        "the parent, taken to be like this worker": 10 * MIB + 100 * KIB,
        "files and shared memory": 20 * MIB,
    }
    once_bytes = 120 * MIB + 100 * KIB
    assert projection.total_bytes == once_bytes + 4 * (10 * MIB + 100 * KIB)
    assert projection.basis is Basis.PER_PROCESS
    assert [(point.name, point.each_bytes) for point in projection.points] == [
        ("just forked", 100 * KIB),
        ("now", 10 * MIB + 100 * KIB),
        ("everything rewritten", 100 * MIB + 100 * KIB),
    ]
    assert [point.total_bytes for point in projection.points] == [
        once_bytes + 4 * point.each_bytes for point in projection.points
    ]


# A parent with 2 MiB for itself, 80 MiB that it shares, 300 KiB of kernel memory, and 25 MiB of files.
PARENT = ForkParent(
    7,
    TOTALS._replace(
        private=Total(2 * MIB, MEASURED),
        kernel=Total(300 * KIB, ESTIMATED),
        cow_shared=Total(80 * MIB, MEASURED),
        shared_once=Total(25 * MIB, DERIVED),
    ),
    ("its parent 7 has the same program",),
)


def test_the_parent_of_a_live_worker_costs_what_was_read_of_it() -> None:
    """A worker that holds 10 MiB for itself and shares 90 MiB, the most that any of the two shares."""
    totals = TOTALS._replace(cow_shared=Total(90 * MIB, MEASURED))
    projection = projected(totals, model=Model.FORK, count=4, parent=PARENT, is_live=True)
    assert once(projection) == {
        "memory shared since the fork": 90 * MIB,
        "the parent 7": 2 * MIB,
        "kernel memory of the parent": 300 * KIB,
        "files and shared memory": 25 * MIB,
    }
    assert projection.total_bytes == 117 * MIB + 300 * KIB + 4 * (10 * MIB + 100 * KIB)


def test_each_worker_pays_for_the_shared_memory_that_only_it_maps() -> None:
    totals = with_special(own_shared_bytes=MIB)._replace(cow_shared=Total(90 * MIB, MEASURED))
    projection = projected(totals, model=Model.FORK, parent=PARENT, is_live=True)
    assert each(projection)["shared memory of its own"] == MIB
    assert once(projection)["files and shared memory"] == 25 * MIB


def test_without_a_model_a_process_whose_parent_was_read_is_a_forked_worker() -> None:
    totals = TOTALS._replace(cow_shared=Total(90 * MIB, MEASURED))
    seen = projected(totals, model=None, parent=PARENT, is_live=True)
    assert (seen.model, seen.reasons) == (Model.FORK, PARENT.reasons)
    asked = projected(totals, model=Model.FORK, parent=PARENT, is_live=True)
    assert (asked.model, asked.reasons) == (Model.FORK, ())
    assert projected(totals, model=None, is_live=True).model is Model.EXEC


def test_a_live_process_without_a_parent_to_share_with_is_the_parent_of_its_workers() -> None:
    # It shares 90 MiB with the workers that it has. A further one may come to rewrite all of its 100 MiB.
    totals = TOTALS._replace(cow_shared=Total(90 * MIB, MEASURED))
    projection = projected(totals, model=Model.FORK, is_live=True)
    assert projection.basis is Basis.REWRITTEN
    assert each(projection)["everything rewritten"] == 100 * MIB
    assert once(projection)["the parent"] == 100 * MIB + 100 * KIB


def test_a_worker_of_several_threads_pays_for_them_now_and_not_when_it_was_forked() -> None:
    totals = TOTALS._replace(cow_shared=Total(90 * MIB, MEASURED))
    projection = projected(totals, model=Model.FORK, status=STATUS._replace(thread_count=5))
    figures = {point.name: point.each_bytes for point in projection.points}
    assert figures["just forked"] == 100 * KIB
    assert figures["now"] == 10 * MIB + 100 * KIB + 4 * 16 * KIB
    assert each(projection)["kernel stacks"] == 80 * KIB


def test_a_parent_whose_pages_were_only_merged_by_ksm_is_no_worker() -> None:
    # 4 MiB that others hold too, all of them merged pages: nothing here is shared since a fork.
    totals = with_special(ksm_bytes=4 * MIB)._replace(cow_shared=Total(4 * MIB, MEASURED))
    projection = projected(totals, model=Model.FORK)
    assert "the parent" in once(projection)
    assert [point.name for point in projection.points] == ["just forked", "everything rewritten"]


def test_the_moments_of_a_worker_never_fall() -> None:
    for cow_shared_bytes in (0, 1, 90 * MIB):
        totals = TOTALS._replace(cow_shared=Total(cow_shared_bytes, MEASURED))
        figures = [point.each_bytes for point in projected(totals, model=Model.FORK).points]
        assert figures == sorted(figures)


def test_as_many_workers_fit_as_the_memory_holds_beside_the_parent() -> None:
    # Once: 10 MiB + 100 KiB of the parent, 20 MiB of files. (256 MiB - 10,340 KiB) / 10,340 KiB = 24.4, and 22.3.
    projection = projected(model=Model.FORK, memory_bytes=256 * MIB)
    assert (projection.count, projection.limits[0].beside_cache_count) == (24, 22)


# --- threads ----------------------------------------------------------------------------------------------------------


def test_a_thread_pays_what_those_that_are_there_have_touched_on_average() -> None:
    """Four threads beside the main one have touched 100 KiB of stacks and 2 MiB of arenas, in 8 page tables.

    One more takes a kernel stack of 16 KiB and two mappings of 1 KiB: its stack and the guard below it.
    """
    rows = [row("[thread stacks]", 60 * KIB), row("[thread stacks]", 40 * KIB), row("[malloc arenas]", 2 * MIB)]
    rows += [row("[heap]", 5 * MIB), row("[stack]", 100 * KIB)]
    status = STATUS._replace(thread_count=5)
    projection = projected(model=Model.THREADS, status=status, ledger=rows, count=100, thread_table_bytes=32 * KIB)
    assert each(projection) == {
        "stack and thread-local memory touched": 25 * KIB,
        "malloc arenas": 512 * KIB,
        "page tables of a thread": 8 * KIB,
        "kernel stack and objects of a thread": 18 * KIB,
    }
    process_bytes = 10 * MIB + (60 + 80 + 24) * KIB
    assert once(projection) == {"the process as it is": process_bytes, "files and shared memory": 20 * MIB}
    assert projection.per_process_bytes == 563 * KIB
    assert projection.total_bytes == process_bytes + 20 * MIB + 100 * 563 * KIB
    assert projection.points == ()
    assert how_known(projection)["stack and thread-local memory touched"] is DERIVED
    assert how_known(projection)["malloc arenas"] is ESTIMATED


def test_stacks_of_threads_that_have_ended_do_not_count_where_those_that_are_there_say_which_are_theirs() -> None:
    told = row("[thread stacks]", 16 * KIB)._replace(attribution=Attribution.STACK_POINTER)
    kept = row("[thread stacks]", 4 * MIB)._replace(attribution=Attribution.SHAPE)
    projection = projected(model=Model.THREADS, status=STATUS._replace(thread_count=3), ledger=[told, kept])
    assert each(projection)["stack and thread-local memory touched"] == 8 * KIB


def test_without_a_thread_to_measure_a_small_stack_is_assumed_and_said_to_be() -> None:
    projection = projected(model=Model.THREADS, ledger=[row("[malloc arenas]", 2 * MIB)])
    assert each(projection) == {
        "stack and thread-local memory (assumed)": 12 * KIB,
        "page tables of a thread (assumed)": 4 * KIB,
        "kernel stack and objects of a thread": 18 * KIB,
    }
    assert projection.evidence is ESTIMATED


def test_threads_whose_stacks_were_not_found_are_assumed_to_be_small_too() -> None:
    projection = projected(model=Model.THREADS, status=STATUS._replace(thread_count=9), ledger=[row("[heap]", MIB)])
    assert each(projection)["stack and thread-local memory (assumed)"] == 12 * KIB


def test_as_many_threads_fit_as_the_memory_holds_beside_the_process() -> None:
    # Once: 10 MiB + 100 KiB, and 20 MiB of files. A thread is 34 KiB: (40,960 - 10,340) / 34 = 900.6.
    projection = projected(model=Model.THREADS, memory_bytes=40 * MIB)
    assert projection.count == 900


# --- what cannot be answered ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("totals", "status"),
    [
        pytest.param(TOTALS, None, id="a text"),
        pytest.param(TOTALS._replace(private=Total(None, VIRTUAL)), STATUS, id="without private memory"),
    ],
)
@pytest.mark.parametrize("model", [Model.FORK, Model.THREADS])
def test_what_is_not_a_live_process_cannot_be_asked_for_forks_or_threads(
    model: Model, totals: Totals, status: Status | None
) -> None:
    with pytest.raises(UsageError, match=f"the {model.value} model needs a live process"):
        projected(totals, model=model, status=status)


@pytest.mark.parametrize("model", list(Model))
def test_a_count_below_one_is_refused_in_every_model(model: Model) -> None:
    with pytest.raises(UsageError, match="the number is 0: it must be 1 or more"):
        projected(model=model, count=0)


# --- from a text to its terms -----------------------------------------------------------------------------------------


class NoFiles:
    """Files that say nothing."""

    def contents_of(self, loaded: LoadedObject) -> Contents | None:  # noqa: ARG002 # a protocol
        return None

    def relocated_pages_of(self, loaded: LoadedObject, page_bytes: int) -> PageNumbers:  # noqa: ARG002 # a protocol
        return PageNumbers(())


def smaps(header: str, **kib: int) -> bytes:
    keys = ("Size", "Rss", "Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty", "Anonymous", "Swap")
    figures = dict.fromkeys((*keys, "KSM", "Private_Hugetlb"), 0) | kib
    return f"{header}\n".encode() + b"".join(f"{key}: {figure} kB\n".encode() for key, figure in figures.items())


HEAP = "55550000-55560000 rw-p 00000000 00:00 0 [heap]"
MEMFD = "7f000000-7f010000 rw-s 00000000 00:01 77 /memfd:buffer (deleted)"
HUGE = "40000000-40400000 rw-p 00000000 00:0f 78 /anon_hugepage (deleted)"


def terms_of_text(*blocks: bytes) -> Projection:
    snapshot, *_ = read_texts(b"".join(blocks), "smaps.txt")
    images: dict[FileKey, object] = {}
    return audit_snapshot(snapshot, images, NoFiles(), target="smaps.txt").projection  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("blocks", "each_pays", "all_pay_once"),
    [
        pytest.param(
            [
                smaps(HEAP, Size=64, Rss=64, Private_Dirty=64, Anonymous=64),
                smaps(MEMFD, Size=64, Rss=40, Private_Dirty=40),
            ],
            {"private memory": 64 * KIB, "shared memory of its own": 40 * KIB},
            {"files and shared memory": 0},
            id="a memfd that nobody else maps is shared memory of its own",
        ),
        pytest.param(
            [
                smaps(HEAP, Size=64, Rss=64, Private_Dirty=64, Anonymous=64),
                smaps(MEMFD, Size=64, Rss=40, Shared_Dirty=40),
            ],
            {"private memory": 64 * KIB},
            {"shared memory of others": 40 * KIB, "files and shared memory": 0},
            id="a memfd that others map too is paid once, and stays in memory",
        ),
        pytest.param(
            [smaps(HUGE, Size=4096, Private_Hugetlb=4096)],
            {"private memory": 0, "huge pages of the reserved pool": 4 * MIB},
            {"files and shared memory": 0},
            id="huge pages of the pool in a text are a term",
        ),
        pytest.param(
            # 64 KiB anonymous: 24 KiB alone, 40 KiB with others, of them 32 KiB by KSM: 8 KiB since a fork.
            [smaps(HEAP, Size=64, Rss=64, Private_Dirty=24, Shared_Dirty=40, Anonymous=64, KSM=32)],
            {"private memory": 24 * KIB, "memory shared with fork relatives": 8 * KIB},
            {"files and shared memory": 0},
            id="merged pages in a text are not shared since a fork",
        ),
    ],
)
def test_the_terms_of_a_text(blocks: list[bytes], each_pays: dict[str, int], all_pay_once: dict[str, int]) -> None:
    projection = terms_of_text(*blocks)
    assert each(projection) == each_pays
    assert once(projection) == all_pay_once


def test_a_text_may_say_anything_and_still_no_term_is_below_zero() -> None:
    # More private than resident: no kernel says so, but a text can.
    projection = terms_of_text(smaps(MEMFD, Size=64, Rss=8, Private_Dirty=40))
    assert [term for term in projection.terms if term.size_bytes < 0] == []
