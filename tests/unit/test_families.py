"""Families of processes: which are alike, how they start, what one more costs. Texts in, figures by hand out."""

import pytest

from footprint.attribution.families import Channel, fork_parent, fork_reasons
from footprint.attribution.group import group_up
from footprint.attribution.kernel import BUILT_IN
from footprint.errors import UsageError
from footprint.formats.document import Facts, Paragraph
from footprint.formats.group_json import GroupProjection, group_answer
from footprint.model.audit import Audit
from footprint.model.projection import FitLimit, LimitUnit, Model, Question
from footprint.verbs.audit.family_text import family_blocks, family_verdict
from tests.groupmembers import KIB, SEGMENT, TEXT, Member, block, file, heap, member

MIB = 1 << 20
# The same program after another exec: address randomisation has moved it.
MOVED_TEXT = TEXT.replace("40000000-40040000", "48000000-48040000")
PROGRAM = file(TEXT, 100)


def cost(member: Member) -> int:
    size_bytes = member[1].totals.per_process.bytes
    assert size_bytes is not None
    return size_bytes


def projection_of(group: Audit) -> GroupProjection:
    found = group_answer(group, "1").projection
    assert found is not None
    return found


def family(*privates: int, command: str = "server: worker %d") -> list[Member]:
    """Return a master of 200 KiB, 100 KiB of which its workers share, and forked workers with private memory in KiB."""
    holders = len(privates) + 1
    share = 100 // holders
    master = member(1, PROGRAM, heap(100, 100), pss_anon=100 + share, parent=0, command="server: master")
    return [
        master,
        *(
            member(10 + n, PROGRAM, heap(private, 100), pss_anon=private + share, parent=1, command=command % n)
            for n, private in enumerate(privates)
        ),
    ]


# --- how they start ---------------------------------------------------------------------------------------------------


def test_a_process_at_the_addresses_of_its_parent_that_shares_memory_is_a_fork() -> None:
    parent, child = member(1, PROGRAM, heap(5, 90)), member(2, PROGRAM, heap(10, 90), parent=1)
    reasons = fork_reasons(child[0], parent[0], 90 * KIB)
    assert reasons == (
        "its parent 1 has the same program at the same addresses, so there was no exec since the fork",
        "it shares 90 KiB of anonymous memory since then",
    )


def test_a_process_that_shares_no_memory_or_is_elsewhere_is_a_started_copy() -> None:
    parent = member(1, PROGRAM, heap(90))
    assert fork_reasons(member(2, PROGRAM, heap(90), parent=1)[0], parent[0], 0) == ()
    assert fork_reasons(member(2, file(MOVED_TEXT, 100), heap(5, 90), parent=1)[0], parent[0], 90 * KIB) == ()


# --- what one more costs ----------------------------------------------------------------------------------------------


def test_one_more_worker_costs_the_median_of_what_the_workers_have_for_themselves() -> None:
    master, *workers = family(40, 90, 50)
    group = group_up([master, *workers])
    found = projection_of(group)
    assert group.group.classes[0].pids == (10, 11, 12)
    assert (found.model, found.worker_count) == (Model.FORK, 3)
    assert found.per_worker_bytes == cost(workers[2])
    assert (group.group.classes[0].least_bytes, group.group.classes[0].most_bytes) == (
        cost(workers[0]),
        cost(workers[1]),
    )
    assert group.group.classes[0].all_bytes == sum(map(cost, workers))


def test_of_two_workers_one_more_costs_what_lies_between_them() -> None:
    master, *workers = family(40, 60)
    assert projection_of(group_up([master, *workers])).per_worker_bytes == sum(map(cost, workers)) // 2


def test_a_group_of_fewer_workers_than_there_are_costs_their_share() -> None:
    group = group_up(family(40, 90, 50), question=Question(worker_count=2))
    whole = group_up(family(40, 90, 50))
    assert whole.totals.per_process.bytes is not None
    fewer_bytes = whole.totals.per_process.bytes - projection_of(group).per_group_bytes
    assert fewer_bytes == whole.group.classes[0].all_bytes - whole.group.classes[0].all_bytes * 2 // 3


def test_one_more_group_costs_what_the_group_costs_and_the_files_are_paid_once() -> None:
    group = group_up(family(40, 50, 60), question=Question(count=7))
    found = projection_of(group)
    assert group.totals.per_process.bytes is not None
    # 100 KiB of the master alone, 150 KiB of the workers, 100 KiB between them, and the kernel's.
    assert found.per_group_bytes == group.totals.per_process.bytes == 350 * KIB + (group.totals.kernel.bytes or 0)
    assert found.total_bytes == 100 * KIB + 7 * found.per_group_bytes


def test_a_group_with_more_workers_costs_each_of_them_more_and_the_master_once() -> None:
    as_it_is = projection_of(group_up(family(40, 50, 60)))
    more = projection_of(group_up(family(40, 50, 60), question=Question(count=2, worker_count=10)))
    assert more.per_group_bytes == as_it_is.per_group_bytes + 7 * as_it_is.per_worker_bytes
    assert more.total_bytes == 2 * more.per_group_bytes + more.shared_once_bytes
    assert sum(term.size_bytes for term in more.terms if not term.is_once) == more.per_group_bytes


def test_shared_memory_that_only_a_worker_maps_is_part_of_the_worker() -> None:
    area = block(SEGMENT, Rss=64, Private_Dirty=64, Pss=64)
    with_area = member(10, PROGRAM, heap(40, 100), area, pss_anon=90, parent=1, command="server: worker")
    master = member(1, PROGRAM, heap(100, 100), pss_anon=150, command="server: master")
    found = group_up([master, with_area])
    assert {term.name: term.size_bytes for term in found.group.classes[0].terms}["shared memory of its own"] == 64 * KIB


def test_sockets_that_a_master_makes_for_each_worker_are_part_of_the_worker() -> None:
    # As nginx: a pair for each of three workers. One end only that worker has, the other one only the others have. A
    # pair from before the first fork all have.
    pairs = [Channel(2, 2000), Channel(3, 2000)] * 3
    inherited = [Channel(4, 2000)] * 2
    members = family(40, 40, 40)
    found = group_up(members, channels={1: [*pairs, *inherited]}).group.classes[0]
    assert {term.name: term.size_bytes for term in found.terms}["sockets and pipes of its parent for it"] == 4000
    assert found.each_bytes == cost(members[1]) + 4000


def test_the_workers_are_the_most_numerous_children_whatever_else_the_master_has() -> None:
    master, *workers = family(40, 50)
    helper = member(5, PROGRAM, heap(900, 100), pss_anon=925, parent=1, command="server: cache manager")
    group = group_up([master, helper, *workers])
    assert [one.command for one in group.group.classes[:2]] == ["server: worker 1", "server: cache manager"]
    assert projection_of(group).per_worker_bytes < 200 * KIB


def test_numbers_in_a_title_do_not_make_another_kind() -> None:
    titles = family(40, 50, 60, command="puma: cluster worker %d: 3fa85f64 [app]")
    assert group_up(titles).group.classes[0].pids == (10, 11, 12)


def test_a_session_is_a_started_process_with_all_that_it_forked() -> None:
    # As sshd does: each connection is a started monitor and its fork. They share 30 KiB.
    listener = member(1, PROGRAM, heap(50), command="sshd: listener")
    sessions = []
    for pid in (10, 20):
        sessions.append(member(pid, file(MOVED_TEXT, 100), heap(40, 30), pss_anon=55, parent=1, command="sshd: root"))
        sessions.append(
            member(pid + 1, file(MOVED_TEXT, 100), heap(20, 30), pss_anon=35, parent=pid, command="sshd: x")
        )
    found = group_up([listener, *sessions])
    assert found.group.classes[0].pids == (10, 20)
    assert found.group.classes[0].model is Model.EXEC
    assert found.group.classes[0].each_bytes == cost(sessions[0]) + cost(sessions[1]) + 30 * KIB


def test_processes_without_a_parent_among_them_are_started_copies() -> None:
    result = group_up([member(pid, PROGRAM, heap(60), pss_anon=60, command="sleep 1") for pid in (1, 2, 3)])
    assert (result.group.classes[0].noun, result.group.classes[0].model, len(result.group.classes[0].pids)) == (
        "process",
        Model.EXEC,
        3,
    )
    assert projection_of(result).per_group_bytes == 3 * projection_of(result).per_worker_bytes


def test_processes_that_claim_to_be_parents_of_each_other_have_no_class() -> None:
    circle = [member(1, PROGRAM, heap(60), parent=2), member(2, PROGRAM, heap(60), parent=1)]
    assert group_up(circle).group.classes == ()
    assert group_up(circle).projection.terms == ()


@pytest.mark.parametrize("question", [Question(count=0), Question(worker_count=0)])
def test_less_than_one_group_or_worker_is_no_question(question: Question) -> None:
    with pytest.raises(UsageError, match="the number is 0"):
        group_up(family(40), question=question)


# --- how many fit -----------------------------------------------------------------------------------------------------


def test_groups_fit_beside_the_files_and_the_reserve() -> None:
    each = projection_of(group_up(family(40, 50, 60))).per_group_bytes
    question = Question(memory_bytes=100 * KIB + 5 * each + MIB, reserve_bytes=MIB)
    found = projection_of(group_up(family(40, 50, 60), question=question))
    assert (found.count, found.limits[0].name) == (5, "memory")
    assert found.total_bytes == 100 * KIB + 5 * each


def test_workers_fit_into_one_group_beside_its_master() -> None:
    now = projection_of(group_up(family(40, 50, 60)))
    rest_bytes = now.per_group_bytes - 3 * now.per_worker_bytes
    room_bytes = 100 * KIB + rest_bytes + 20 * now.per_worker_bytes
    found = projection_of(group_up(family(40, 50, 60), question=Question(memory_bytes=room_bytes + 1)))
    assert found.worker_limits[0].count == 20


def test_the_first_limit_that_is_hit_decides() -> None:
    # Four threads a group: of 1,000 tasks 900 are taken, so 25 groups fit, whatever the memory.
    tasks = FitLimit("pid_max", LimitUnit.TASKS, most=1000, taken=900)
    found = projection_of(group_up(family(40, 50, 60), question=Question(memory_bytes=1 << 40, limits=(tasks,))))
    assert (found.count, [limit.name for limit in found.limits]) == (25, ["pid_max", "memory"])
    # One master and 99 workers.
    assert found.worker_limits[0] == tasks._replace(each=1, count=99, beside_cache_count=99)


@pytest.mark.parametrize(
    ("memory_kib", "count_text"), [(1024, "1 group of 1 process fits, "), (10240, "15 groups of 1 process fit, ")]
)
def test_processes_without_a_parent_fit_in_words_of_their_number(memory_kib: int, count_text: str) -> None:
    found = group_up([member(1, heap(600))], question=Question(memory_bytes=memory_kib * KIB))
    assert family_verdict(found).startswith(count_text)
    (facts,) = [block for block in family_blocks(found) if isinstance(block, Facts) and block.rows[0][0] == "groups"]
    assert facts.rows[1][0] == "or processes in one group"


@pytest.mark.parametrize(
    ("pids", "expected"),
    [((1,), "1 process costs 532 KiB together, "), ((1, 2), "2 processes cost 1.04 MiB together, ")],
)
def test_one_process_costs_and_two_cost(pids: tuple[int, ...], expected: str) -> None:
    assert family_verdict(group_up([member(pid, heap(500), page_tables=0) for pid in pids])).startswith(expected)


@pytest.mark.parametrize(
    ("others", "text"),
    [((), "with 3 workers"), (("cache", "log"), "with 3 workers among its 6 processes")],
    ids=["a master", "a master and other processes"],
)
def test_a_group_of_more_than_a_master_and_its_workers_says_how_many_it_has(others: tuple[str, ...], text: str) -> None:
    beside = [member(50 + n, PROGRAM, heap(10), parent=0, command=name) for n, name in enumerate(others)]
    blocks = family_blocks(group_up([*family(40, 50, 60), *beside]))
    (row,) = [row for block in blocks if isinstance(block, Facts) for row in block.rows if row[0] == "one more group"]
    assert row[2] == f"estimated: {text}"


# --- helpers ----------------------------------------------------------------------------------------------------------

HELPER = file(TEXT.replace("11 /usr/bin/server", "13 /usr/lib/helper"), 100)


def with_helpers(*helpers_kib: int) -> list[Member]:
    """Return a server of 9 MiB whose children run another program, the first of them with a child of its own."""
    below = [
        member(2 + number, HELPER, heap(size), parent=min(1 + number, 2), command=f"/lib/helper {number}")
        for number, size in enumerate(helpers_kib)
    ]
    return [member(1, PROGRAM, heap(9 * 1024), command="server"), *below]


def test_one_more_of_a_server_whose_children_are_helpers_is_one_more_server_with_them() -> None:
    members = with_helpers(50, 60, 60)
    group = group_up(members)
    assert [one.is_helper for one in group.group.classes] == [False, True, True]
    assert group.group.classes[0].pids == (1,)
    assert projection_of(group).per_worker_bytes == sum(cost(one) for one in members) == group.totals.per_process.bytes
    (text,) = [block.text for block in family_blocks(group) if isinstance(block, Paragraph)]
    assert (
        text == "It has no workers: its other processes are helpers (helper, helper), which each process brings along."
    )


def test_children_that_cost_more_than_a_twentieth_of_the_main_program_are_workers() -> None:
    # 10 x (50 KiB and its kernel memory) is more than 9 MiB / 20.
    group = group_up(with_helpers(*[50] * 11))
    assert not any(one.is_helper for one in group.group.classes)
    assert len(group.group.classes[0].pids) == 10


def test_a_process_that_runs_the_main_program_below_it_is_no_helper() -> None:
    shell = member(2, HELPER, heap(20), parent=1, command="sh")
    below = member(3, PROGRAM, heap(8 * 1024), parent=2, command="server")
    group = group_up([member(1, PROGRAM, heap(9 * 1024), command="server"), shell, below])
    assert not any(one.is_helper for one in group.group.classes)


# --- one worker and its parent ----------------------------------------------------------------------------------------


def test_the_parent_of_a_worker_is_what_was_read_of_it() -> None:
    master, worker = family(40)
    parent = fork_parent(worker[0], master[0], BUILT_IN)
    assert parent is not None
    assert (parent.pid, parent.totals.private.bytes) == (1, 100 * KIB)
    assert parent.totals.kernel.bytes == master[1].totals.kernel.bytes


def test_another_program_is_no_parent_of_a_worker() -> None:
    shell = member(1, file(MOVED_TEXT, 100), heap(100))
    assert fork_parent(family(40)[1][0], shell[0], BUILT_IN) is None
