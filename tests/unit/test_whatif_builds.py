"""Starts of two builds of a program are compared: what differs beyond their spread, and which build failed."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from footprint.errors import Note
from footprint.formats.text import plain
from footprint.model.over_time import RunFailure, RunFailureKind
from footprint.model.row import Evidence, MemoryKind, Total
from footprint.process.launch.moment import When
from footprint.verbs.run.result import Expected, Start
from footprint.verbs.whatif.builds_text import builds_document
from footprint.verbs.whatif.json import builds_members
from footprint.verbs.whatif.result import BuildComparison, Output, Trial, compare_trials
from tests.jsonschemas import WRITTEN
from tests.ledgers import audit_of, ledger_row

KIB = 1024
NOTHING = Output(b"", 0, b"")
COMMAND = ("./agentd", "-v")


def start_of(
    program: str, program_kib: int, stack_kib: int, *, code: int | None = 0, signal: str | None = None
) -> Trial:
    """Return a start of a program with this much private memory in its data and its stack."""
    rows = [
        ledger_row(f"/srv/{program}", program_kib * KIB, symbol="table", name="table", section=".data"),
        ledger_row("[stack]", stack_kib * KIB, kind=MemoryKind.STACK),
    ]
    audit = replace(audit_of(*rows), target="./agentd -v")
    start = Start(audit=audit, children=(), snapshots=(), moment=When.EXIT, exit_code=code, signal=signal, notes=())
    return Trial(start, NOTHING, NOTHING)


def compared(before: Sequence[Trial], after: Sequence[Trial], count: int = 1) -> BuildComparison:
    return compare_trials(COMMAND, "./agentd.new", "exit", before[0], before, after, count=count)


def starts(program: str, program_kib: int, stacks_kib: Sequence[int]) -> list[Trial]:
    return [start_of(program, program_kib, stack_kib) for stack_kib in stacks_kib]


def verdict(builds: BuildComparison) -> str:
    return " ".join(plain(builds_document(builds)).rpartition("\n\n")[2].split())


@pytest.mark.parametrize(
    ("after_kib", "stacks_kib", "is_noise", "text"),
    [
        # 100 + 8, 12, 12 KiB before; the median is 112 KiB.
        (60, (8, 12, 12), False, "costs 40 KiB less (-35.7%) than one of agentd, beyond the spread of the starts"),
        (140, (8, 12, 12), False, "costs 40 KiB more (+35.7%) than one of agentd, beyond the spread of the starts"),
        # The largest start is of 108 KiB: as much as the smallest before.
        (
            96,
            (8, 8, 12),
            True,
            "costs 8 KiB less than one of agentd, within the spread of the starts: it may be chance",
        ),
        # 107 KiB is less than all before.
        (95, (8, 8, 12), False, "costs 9 KiB less (-8.0%) than one of agentd, beyond the spread of the starts"),
        (100, (12, 8, 12), True, "costs as much as one of agentd"),
    ],
)
def test_a_difference_counts_where_no_start_of_one_build_costs_what_one_of_the_other_does(
    after_kib: int, stacks_kib: Sequence[int], *, is_noise: bool, text: str
) -> None:
    found = compared(starts("agentd", 100, (12, 8, 12)), starts("agentd.new", after_kib, stacks_kib))
    assert found.is_noise is is_noise
    assert verdict(found).startswith(f"A process of agentd.new {text}.")


def test_what_the_stack_hides_in_the_whole_process_is_told_of_its_owner() -> None:
    result = compared(starts("agentd", 100, (8, 8, 16)), starts("agentd.new", 96, (8, 16, 16)))
    assert [(owner.owner, owner.delta_bytes, owner.is_noise) for owner in result.comparison.owners] == [
        ("[stack]", 8 * KIB, True),
        ("/srv/agentd.new", -4 * KIB, False),
    ]
    assert result.is_noise
    assert "Beyond the spread of single owners: 4 KiB less in agentd.new. It behaves as before." in verdict(result)


def test_one_start_of_each_has_no_spread_to_compare_with() -> None:
    found = compared(starts("agentd", 100, [8]), starts("agentd.new", 60, [8]), count=1000)
    assert (found.is_noise, [owner.is_noise for owner in found.comparison.owners]) == (None, [None])
    assert verdict(found) == (
        "A process of agentd.new costs 40 KiB less (-37.0%) than one of agentd, by one start of each (--starts); 1,000 "
        "of them 39.1 MiB less. It behaves as before."
    )


def test_two_programs_under_any_names_are_one_owner_and_what_changed_of_it_adds_up() -> None:
    before = compared(starts("agentd-1.0", 100, [8]), starts("agentd-2.0", 60, [8]))
    assert [(one.old_owner, one.owner) for one in before.comparison.owners] == [("/srv/agentd-1.0", "/srv/agentd-2.0")]
    assert [(change.symbol, change.delta_bytes) for change in before.comparison.changes] == [("table", -40 * KIB)]
    assert before.private is not None
    assert before.private.bytes == 40 * KIB


def test_the_build_that_failed_is_named_with_its_starts() -> None:
    crashed = [start_of("agentd.new", 60, 8), start_of("agentd.new", 60, 8, code=None, signal="SIGSEGV")]
    found = compared(starts("agentd", 100, (8, 8)), crashed)
    assert found.failures == ((), (RunFailure(RunFailureKind.SIGNAL, 2, "SIGSEGV ended it"),))
    assert verdict(found) == "agentd.new failed: SIGSEGV ended it (start 2 of 2)."
    assert not found.is_alike


def test_an_exit_code_that_is_expected_of_both_is_no_failure() -> None:
    trials = [start_of("agentd", 60, 8, code=3)], [start_of("agentd.new", 60, 8, code=3)]
    assert verdict(compared(*trials)).startswith("agentd failed: it exited with 3, not with 0; agentd.new failed: ")
    found = compare_trials(COMMAND, "./agentd.new", "exit", trials[0][0], *trials, expected=Expected(3))
    assert (found.failures, found.is_alike) == (((), ()), True)


def test_a_comparison_of_another_moment_than_asked_for_says_of_which() -> None:
    note = Note("moment-not-reached", "./agentd", "it ended first")
    trial = start_of("agentd", 60, 8)
    late, early = (
        [trial._replace(start=replace(trial.start, wanted_moment=When.TIME, moment=moment, notes=notes))]
        for moment, notes in ((When.TIME, ()), (When.EXIT, (note,)))
    )
    both = " The comparison is of agentd and agentd.new at their exit, not at the moment asked for."
    one = " The comparison is of agentd.new at its exit, not at the moment asked for."
    for before, told in ((late, one), (early, both)):
        assert verdict(compare_trials(COMMAND, "./agentd.new", "2s", before[0], before, early)).endswith(
            f"to read it.{told}"
        )


def test_two_builds_with_one_file_name_are_called_by_their_paths() -> None:
    trials = [starts("agentd", size_kib, [8]) for size_kib in (100, 60)]
    found = compare_trials(("old/agentd",), "new/agentd", "exit", trials[0][0], *trials)
    assert verdict(found).startswith("A process of new/agentd costs 40 KiB less (-37.0%) than one of old/agentd, ")


def test_a_note_on_a_start_names_the_build_that_was_started() -> None:
    note = Note("moment-not-reached", "./agentd", "it ended first")
    before, after = (
        [start._replace(start=replace(start.start, notes=(note,))) for start in starts(name, 60, [8])]
        for name in ("agentd", "agentd.new")
    )
    assert [one.subject for one in compared(before, after).notes] == ["./agentd", "./agentd.new"]


def test_where_private_memory_is_not_known_nothing_is_claimed() -> None:
    (known,) = starts("agentd", 100, [8])
    unknown = Total(None, Evidence.MEASURED)
    totals = known.start.audit.totals._replace(private=unknown, per_process=unknown)
    blind = known._replace(start=replace(known.start, audit=replace(known.start.audit, totals=totals)))
    found = compared([blind], [blind])
    assert (found.private, found.per_process, found.is_noise) == (None, None, None)
    assert verdict(found) == "A process of agentd.new costs what could not be measured. It behaves as before."


def test_the_json_is_what_the_schema_says_and_names_both_builds() -> None:
    found = builds_members(compared(starts("agentd", 100, (8, 8, 8)), starts("agentd.new", 60, (8, 8, 8)), 7), "1.0")
    WRITTEN.validate({"schema": "footprint/1"} | found)
    assert [found["target"][side]["name"] for side in ("old", "new")] == ["./agentd -v", "./agentd.new -v"]
    private = next(one for one in found["figures"] if one["name"] == "private_bytes")
    assert (private["delta_bytes"], private["delta_at_count_bytes"], private["is_noise"]) == (
        -40 * KIB,
        -280 * KIB,
        False,
    )
