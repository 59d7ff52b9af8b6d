"""What N processes cost, and how many fit."""

from collections.abc import Callable

import pytest

from footprint.attribution.cost_models import project
from footprint.errors import UsageError
from footprint.model.projection import Basis, Model, Point, Projection, Question, Term
from footprint.model.row import Evidence

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def each(size_bytes: int, evidence: Evidence = Evidence.MEASURED) -> Term:
    return Term("private memory", size_bytes, is_once=False, evidence=evidence)


def once(size_bytes: int, evidence: Evidence = Evidence.MEASURED) -> Term:
    return Term("files and shared memory", size_bytes, is_once=True, evidence=evidence)


def cost_of(count: int, *terms: Term) -> Projection:
    return project(terms, Basis.PRIVATE, Question(count=count))


def fit_into(memory_bytes: int, *terms: Term) -> Projection:
    return project(terms, Basis.PRIVATE, Question(memory_bytes=memory_bytes))


# --- the cost of N ----------------------------------------------------------------------------------------------------


def test_ten_thousand_processes_of_972_kib_cost_9_27_gib() -> None:
    # 972 * 1024 = 995,328; times 10,000 = 9,953,280,000; divided by 2^30 = 9.2697.
    total_bytes = cost_of(10_000, each(972 * KIB)).total_bytes
    assert total_bytes == 9_953_280_000
    assert round(total_bytes / GIB, 2) == 9.27


@pytest.mark.parametrize(
    ("projection", "total_bytes"),
    [
        pytest.param(
            # 20 MiB + 3 * 5 MiB = 35 MiB.
            lambda: cost_of(3, each(5 * MIB), once(20 * MIB)),
            35 * MIB,
            id="what is shared is paid once",
        ),
        pytest.param(
            lambda: cost_of(1, each(5 * MIB), once(20 * MIB)),
            25 * MIB,
            id="one process costs its own memory and what it shares",
        ),
        pytest.param(
            lambda: cost_of(1000, each(0), once(4 * MIB)),
            4 * MIB,
            id="processes that cost nothing cost together what they share",
        ),
        pytest.param(
            lambda: cost_of(10**12, each(2**60 + 1)),
            10**12 * 2**60 + 10**12,
            id="counts and costs beyond 64 bits are exact",
        ),
    ],
)
def test_the_cost_of_n(projection: Callable[[], Projection], total_bytes: int) -> None:
    assert projection().total_bytes == total_bytes


def test_terms_of_one_kind_add_up_and_are_shown() -> None:
    # Each pays 5 + 2 = 7 MiB, all pay 20 + 1 = 21 MiB: 21 + 10 * 7 = 91 MiB.
    terms = (each(5 * MIB), once(20 * MIB), each(2 * MIB), once(MIB))
    projection = cost_of(10, *terms)
    assert projection.per_process_bytes == 7 * MIB
    assert projection.shared_once_bytes == 21 * MIB
    assert projection.total_bytes == 91 * MIB
    assert projection.terms == terms


def test_without_a_shared_term_the_shared_part_is_unknown_and_not_in_the_total_but_a_term_of_nothing_is_0() -> None:
    projection = cost_of(3, each(5 * MIB))
    assert projection.total_bytes == 15 * MIB
    assert projection.shared_once_bytes is None
    assert cost_of(3, each(5 * MIB), once(0)).shared_once_bytes == 0


def test_a_projection_is_as_weak_as_its_weakest_term() -> None:
    assert cost_of(1, each(MIB), each(MIB)).evidence is Evidence.MEASURED
    assert (
        cost_of(1, each(MIB), each(0, Evidence.ESTIMATED), once(MIB, Evidence.DERIVED)).evidence is Evidence.ESTIMATED
    )
    assert cost_of(1, each(MIB), once(MIB, Evidence.VIRTUAL)).evidence is Evidence.VIRTUAL


def test_a_projection_says_which_figure_was_multiplied_and_in_which_model() -> None:
    assert cost_of(1, each(MIB)).basis is Basis.PRIVATE
    assert cost_of(1, each(MIB)).model is Model.EXEC
    projection = project([each(MIB)], Basis.PER_PROCESS, Question(2, model=Model.THREADS))
    assert (projection.basis, projection.model) == (Basis.PER_PROCESS, Model.THREADS)


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match=f"is {count}: it must be 1 or more"):
        cost_of(count, each(MIB))


# --- how many fit -----------------------------------------------------------------------------------------------------


def test_as_many_fit_as_the_memory_holds_behind_the_shared_part_and_a_cost_of_n_names_no_memory() -> None:
    # (32 GiB - 20 MiB) / 5 MiB = 32,748 / 5 = 6,549.6.
    projection = fit_into(32 * GIB, each(5 * MIB), once(20 * MIB))
    assert projection.count == 6549
    assert projection.total_bytes == 20 * MIB + 6549 * 5 * MIB
    assert projection.memory_bytes == 32 * GIB
    assert cost_of(1, each(MIB)).memory_bytes is None


@pytest.mark.parametrize(
    ("projection", "count"),
    [
        # 34,359,738,368 / 995,328 = 34,521.02.
        pytest.param(lambda: fit_into(32 * GIB, each(972 * KIB)), 34_521, id="972 KiB each in 32 GiB"),
        pytest.param(
            lambda: fit_into(25 * MIB, each(5 * MIB), once(10 * MIB)),
            3,
            id="memory that is filled to the byte is enough",
        ),
        pytest.param(lambda: fit_into(25 * MIB - 1, each(5 * MIB), once(10 * MIB)), 2, id="a byte less is not"),
    ],
)
def test_how_many_fit(projection: Callable[[], Projection], count: int) -> None:
    assert projection().count == count


@pytest.mark.parametrize("memory_bytes", [0, 10 * MIB, 10 * MIB + 1, 15 * MIB - 1])
def test_where_not_one_fits_nothing_is_paid(memory_bytes: int) -> None:
    projection = fit_into(memory_bytes, each(5 * MIB), once(10 * MIB))
    assert (projection.count, projection.total_bytes) == (0, 0)


@pytest.mark.parametrize("shared", [(), (once(0),), (once(1),), (once(20 * MIB),)])
def test_what_fits_costs_no_more_than_the_memory_and_one_more_would(shared: tuple[Term, ...]) -> None:
    projection = fit_into(GIB, each(7_654_321), *shared)
    assert projection.count > 100
    assert projection.total_bytes <= GIB < projection.total_bytes + 7_654_321
    assert cost_of(projection.count, each(7_654_321), *shared).total_bytes == projection.total_bytes


@pytest.mark.parametrize("size_bytes", [0, -1])
def test_how_many_of_what_costs_nothing_fit_is_no_question(size_bytes: int) -> None:
    with pytest.raises(UsageError, match="any number fits"):
        fit_into(GIB, each(size_bytes), once(MIB))


# --- moments of a worker's life ---------------------------------------------------------------------------------------


def test_each_moment_of_a_worker_has_its_own_total_with_the_same_shared_part() -> None:
    # 20 MiB + 4 * 1 MiB = 24 MiB, 20 MiB + 4 * 9 MiB = 56 MiB.
    moments = (("just forked", MIB, Evidence.ESTIMATED), ("everything rewritten", 9 * MIB, Evidence.ESTIMATED))
    terms = [each(5 * MIB), once(20 * MIB)]
    projection = project(terms, Basis.PER_PROCESS, Question(4, model=Model.FORK), moments)
    assert projection.total_bytes == 40 * MIB
    assert projection.points == (
        Point("just forked", MIB, 24 * MIB, Evidence.ESTIMATED),
        Point("everything rewritten", 9 * MIB, 56 * MIB, Evidence.ESTIMATED),
    )


def test_where_not_one_worker_fits_no_moment_costs_anything() -> None:
    moments = (("now", 5 * MIB, Evidence.ESTIMATED),)
    projection = project([each(5 * MIB), once(MIB)], Basis.PER_PROCESS, Question(memory_bytes=MIB), moments)
    assert [point.total_bytes for point in projection.points] == [0]
