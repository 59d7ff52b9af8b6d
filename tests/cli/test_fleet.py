"""`footprint fleet`: the figures of each question by hand, and SQL that can do nothing but read the dataset."""

import csv
import io
import json
import shutil
import signal
import subprocess
import sys
import time
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from footprint import fleet, scan
from footprint.cli import main
from footprint.errors import AccessError, FootprintError, InputError, UsageError
from footprint.formats.text import plain
from footprint.store.asking import Dataset
from footprint.store.parquet import write_part
from footprint.store.tables import FleetFile, FleetInput, FleetLibrary, FleetProgram
from footprint.system.limits import Limits, limited
from footprint.verbs.fleet.answer import fleet_document, fleet_members
from footprint.verbs.fleet.call import Fleet
from footprint.verbs.fleet.questions import definitions_of, question_names, question_of
from tests.fleets import DAY, Holding, Member, scan_in_one_process, write_fleet
from tests.hostile import HOSTILE

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SHADOW, SCHEDD = "/usr/sbin/condor_shadow", "/usr/sbin/condor_schedd"
LIBZ, HEAP = "/lib/libz.so.1", "[heap]"


def small(folder: Path) -> Path:
    """Write a fleet of two hosts: two shadows on each, and a schedd on the first one."""
    shadow = (Holding(HEAP, 100 * KIB), Holding(LIBZ, 20 * KIB), Holding(LIBZ, 8 * KIB, "table"))
    members = [
        Member(host, SHADOW, shadow, pid, kernel_bytes=10 * KIB, savings=(("unused-library", "libz.so.1", 28 * KIB),))
        for host in ("a", "b")
        for pid in (1, 2)
    ]
    schedd = Member("a", SCHEDD, (Holding(HEAP, 900 * KIB),), 3, savings=(("duplicate-static", "names", 4 * KIB),))
    return write_fleet(folder, [*members, schedd], [zlib()])


def zlib() -> FleetFile:
    """Return the row of the library that the shadows have."""
    return FleetFile("id-libz.so.1", LIBZ, "libz.so.1", False, 62, 1, 1, 1, 1, 1, 0, "zlib1g", "1.3", DAY)  # noqa: FBT003 # a row by its columns


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module")
def answers(dataset: Path) -> dict[str, Fleet]:
    """Ask each question once."""
    return {name: fleet(dataset, name) for name in question_names()}


def rows(dataset: Path, question: str, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 # as `fleet`
    found = fleet(dataset, question, **options).result
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main(["fleet", *map(str, words)]) == 0
    return capsys.readouterr().out


# --- the questions ----------------------------------------------------------------------------------------------------


def test_programs_hosts_and_owners_add_up_to_the_same_fleet(dataset: Path) -> None:
    # 4 shadows of 128 + 10 KiB, one schedd of 900 KiB.
    schedd, shadow = rows(dataset, "programs")
    assert (schedd["program"], schedd["total_bytes"], schedd["process_count"]) == (SCHEDD, 900 * KIB, 1)
    assert (shadow["total_bytes"], shadow["process_count"], shadow["host_count"]) == (4 * 138 * KIB, 4, 2)
    assert (shadow["private_bytes"], shadow["kernel_bytes"], shadow["median_bytes"]) == (512 * KIB, 40 * KIB, 138 * KIB)
    assert {row["host"]: row["total_bytes"] for row in rows(dataset, "hosts")} == {"a": 1176 * KIB, "b": 276 * KIB}
    owned = {row["owner"]: (row["private_bytes"], row["process_count"]) for row in rows(dataset, "owners")}
    assert owned == {HEAP: (1300 * KIB, 5), LIBZ: (112 * KIB, 4)}
    whole = fleet(dataset)
    assert (whole.host_count, whole.process_count, whole.total_bytes) == (2, 5, 1452 * KIB)
    assert sum(size for size, _ in owned.values()) == sum(row["private_bytes"] for row in rows(dataset, "programs"))


def test_libraries_variables_and_packages(dataset: Path) -> None:
    (library,) = rows(dataset, "libraries")
    assert (library["library"], library["private_bytes"], library["build_count"]) == ("libz.so.1", 80 * KIB, 1)
    (variable,) = rows(dataset, "variables")
    assert (variable["symbol"], variable["owner"], variable["private_bytes"]) == ("table", LIBZ, 32 * KIB)
    (package,) = rows(dataset, "packages")
    assert (package["package"], package["versions"], package["private_bytes"]) == ("zlib1g", "1.3", 112 * KIB)


def test_starts_are_those_of_the_program_with_the_build_id_of_each_process(tmp_path: Path) -> None:
    held = (Holding(HEAP, KIB),)
    # Three shadows on two hosts, one of them in another build that nobody scanned.
    members = [Member("a", SHADOW, held, 1), Member("a", SHADOW, held, 2), Member("b", SHADOW, held, 1)]
    members.append(Member("b", SHADOW, held, 2, build_id="b2"))
    moment = datetime(2026, 11, 23)  # noqa: DTZ001 # UTC, as there
    # The image was scanned twice: its last scan counts.
    for key, start_us in ((1, 90), (2, 40)):
        program = FleetProgram("image", DAY, moment.replace(hour=key), key, SHADOW, "b1", 3, 0, 0, 0, 0, 0, True)  # noqa: FBT003 # a row
        objects = (SHADOW, "shadow", 500), (LIBZ, "libz.so.1", start_us), ("/lib/musl.so", "musl.so", None)
        libraries = [
            FleetLibrary("image", DAY, key, False, SHADOW, path, name, None, None, None, 0, 0, 0, (), us)  # noqa: FBT003 # the same
            for path, name, us in objects
        ]
        scan = FleetInput("image", DAY, moment, "image", "image", "", "", f"image{key}", (), 0, 0, 0, 0, 0, 0)
        write_part(str(tmp_path), f"image{key}", {"programs": [program], "libraries": libraries, "inputs": [scan]})
    programs = [{"start_us": 40, "each_us": 40, "program_count": 1, "library": "libz.so.1"}]
    assert rows(tmp_path, "starts") == programs
    (library,) = rows(write_fleet(tmp_path, members), "starts")
    assert library == {"start_us": 120, "each_us": 40, "process_count": 3, "host_count": 2, "library": "libz.so.1"}


def test_savings_are_those_of_each_process(dataset: Path) -> None:
    (unused,) = rows(dataset, "unused")
    assert (unused["subject"], unused["saving_bytes"], unused["each_bytes"]) == ("libz.so.1", 112 * KIB, 28 * KIB)
    assert (unused["process_count"], unused["host_count"], unused["confidence"]) == (4, 2, "high")
    (copies,) = rows(dataset, "duplicates")
    assert (copies["subject"], copies["saving_bytes"], copies["rule"]) == ("names", 4 * KIB, "duplicate-static")
    assert [row["subject"] for row in rows(dataset, "savings")] == ["libz.so.1", "names"]


def test_a_finding_of_a_program_holds_for_its_processes_without_one_of_their_own(tmp_path: Path) -> None:
    held = (Holding(HEAP, 8 * KIB),)
    saving = (("unused-library", "libz.so.1", 4 * KIB),)
    # Of three processes one says itself that it saves more; the finding of the program counts for the two others.
    members = [Member("a", SHADOW, held, pid, savings=saving, is_judged=False) for pid in (1, 2)]
    members.append(Member("a", SHADOW, held, 3, savings=(("unused-library", "libz.so.1", 6 * KIB),)))
    (unused,) = rows(write_fleet(tmp_path, members), "unused")
    assert (unused["saving_bytes"], unused["process_count"]) == ((4 + 4 + 6) * KIB, 3)


def test_findings_of_one_process_are_not_said_to_be_known_of_another_host(tmp_path: Path) -> None:
    held, saving = (Holding(HEAP, KIB),), (("unused-library", "libz.so.1", KIB),)
    searched, other = Member("a", SHADOW, held, savings=saving), Member("b", SHADOW, held)
    (note,) = fleet(write_fleet(tmp_path, [searched, other]), "unused").notes
    assert (note.slug, note.subject) == ("fleet-findings-unknown", "0 of 1 program")
    assert note.detail.endswith(f"1 of 2 hosts run others: scan {SHADOW}")
    assert fleet(write_fleet(tmp_path / "searched", [searched]), "unused").notes == ()


def test_a_process_counts_once_at_its_last_moment_and_a_host_with_its_last_day(tmp_path: Path) -> None:
    def holders_of(size: int) -> tuple[Holding, ...]:
        return (Holding(HEAP, size * KIB),)

    before, long_ago = DAY - timedelta(days=1), DAY - timedelta(days=20)
    members = [
        Member("a", SHADOW, holders_of(1), 1, day=before),
        Member("a", SHADOW, holders_of(2), 1, hour=8),
        Member("a", SHADOW, holders_of(4), 1, hour=9),
        Member("a", SHADOW, holders_of(8), 2, hour=8),
        Member("b", SHADOW, holders_of(16), 1, day=before),
        Member("c", SHADOW, holders_of(32), 1, day=long_ago),
    ]
    dataset = write_fleet(tmp_path, members)
    now = fleet(dataset, "programs")
    assert (now.total_bytes, now.host_count) == ((4 + 8 + 16) * KIB, 2)
    assert [(note.slug, note.subject) for note in now.notes] == [("fleet-hosts-silent", "1 host")]
    assert fleet(dataset, "programs", day=str(before)).total_bytes == (1 + 16) * KIB
    assert fleet(dataset, "programs", day=str(long_ago)).total_bytes == 32 * KIB
    with pytest.raises(UsageError, match="the dataset begins on 2026-11-03"):
        fleet(dataset, "programs", day="2026-01-01")
    with pytest.raises(UsageError, match="no day"):
        fleet(dataset, "programs", day="yesterday")


def test_a_pattern_of_programs_does_not_bring_back_what_a_host_ran_before(tmp_path: Path) -> None:
    before = DAY - timedelta(days=1)
    members = [Member("a", SCHEDD, (Holding(HEAP, KIB),), 1, day=before), Member("a", SHADOW, (Holding(HEAP, KIB),), 2)]
    assert rows(write_fleet(tmp_path, members), "programs", program=SCHEDD) == []


def test_a_group_is_one_row_that_counts_for_its_processes_once_a_day(tmp_path: Path) -> None:
    holders, saving = (Holding(HEAP, 30 * KIB), Holding(LIBZ, 6 * KIB)), (("unused-library", "libz.so.1", 6 * KIB),)
    group = [Member("a", SHADOW, holders, None, hour, savings=saving, process_count=3) for hour in (8, 9)]
    single = Member("b", SHADOW, (Holding(HEAP, 14 * KIB), Holding(LIBZ, 4 * KIB)), 1)
    dataset = write_fleet(tmp_path, [*group, single])
    (program,) = rows(dataset, "programs")
    # A process of the group costs 36 / 3 KiB.
    assert (program["total_bytes"], program["process_count"]) == (54 * KIB, 4)
    assert (program["median_bytes"], program["largest_bytes"]) == (15 * KIB, 18 * KIB)
    owned = {row["owner"]: (row["private_bytes"], row["mean_bytes"]) for row in rows(dataset, "owners")}
    assert owned == {HEAP: (44 * KIB, 11 * KIB), LIBZ: (10 * KIB, 2560)}
    (library,) = rows(dataset, "libraries")
    assert (library["private_bytes"], library["mean_bytes"], library["process_count"]) == (10 * KIB, 2560, 4)
    (unused,) = rows(dataset, "unused")
    assert (unused["saving_bytes"], unused["each_bytes"], unused["process_count"]) == (6 * KIB, 2 * KIB, 3)
    # What a program finding saves, each process of a group saves; a process of another build does not have it.
    told = [one._replace(is_judged=False, hour=9) for one in group[:1]]
    other = Member("a", SHADOW, holders, 7, build_id="older")
    (unused,) = rows(write_fleet(tmp_path / "program", [*told, other]), "unused")
    assert (unused["saving_bytes"], unused["process_count"]) == (3 * 6 * KIB, 3)


def test_files_that_joined_datasets_have_twice_count_once(tmp_path: Path) -> None:
    dataset = small(tmp_path)
    write_fleet(dataset, [Member("c", SCHEDD, (Holding(HEAP, KIB),))], [zlib()], "joined")
    (package,) = rows(dataset, "packages")
    assert package["private_bytes"] == 112 * KIB


def test_growth_shows_programs_of_one_side_and_compares_a_host_on_its_last_day(tmp_path: Path) -> None:
    before = DAY - timedelta(days=1)
    members = [
        Member("a", SCHEDD, (Holding(HEAP, 5 * KIB),), 1, day=before),
        *(Member("a", SHADOW, (Holding(HEAP, 7 * KIB),), pid, build_id="cc") for pid in (2, 3)),
        Member("a", "/bin/kept", (Holding(HEAP, 2 * KIB),), 4, day=before, build_id="aa"),
        *(Member("a", "/bin/kept", (Holding(HEAP, size * KIB),), 4 + size, build_id="bb") for size in (3, 5)),
        Member("a", "/bin/kept", (Holding(HEAP, 9 * KIB),), 5, day=before, build_id="bb"),
    ]
    dataset = write_fleet(tmp_path, members)
    grown = fleet(dataset, "growth")
    (note,) = grown.notes
    assert (note.slug, note.subject) == ("fleet-programs-gone", "1 program")
    assert note.detail.endswith(f"they held 5 KiB, most of it {SCHEDD}")
    # The mean of the old side is (2 + 9) / 2 KiB, that of the new one (3 + 5) / 2: less.
    (new,) = rows(dataset, "growth")
    assert (new["program"], new["growth_bytes"], new["each_bytes"]) == (SHADOW, 14 * KIB, 7 * KIB)
    assert (new["old_bytes"], new["process_count"]) == (None, 2)
    # Of the build `bb`, the processes of the last day are compared: (3 + 5) / 2 - 2 KiB, twice.
    (kept,) = rows(dataset, "growth", before="aa", after="bb")
    assert (kept["each_bytes"], kept["growth_bytes"], kept["process_count"]) == (2 * KIB, 4 * KIB, 2)
    same = fleet(dataset, "growth", before=str(DAY), after=str(DAY))
    assert ([note.slug for note in same.notes], same.result.rows) == (["fleet-one-day"], ())


def test_growth_matches_names_across_versions_as_diff_does(tmp_path: Path) -> None:
    def server(day: date, version: str, heap: int, buffer: int, build_id: str) -> list[Member]:
        holders = (
            Holding(HEAP, heap * KIB),
            Holding(f"/usr/lib/libssl.so.{version}", 10 * KIB, "ssl_table"),
            Holding(f"/opt/server-{version}/bin/server", buffer * KIB, f"_ZN6server6bufferE17h{build_id * 8}E"),
        )
        return [
            Member(host, f"/opt/server-{version}/bin/server", holders, pid, day=day, build_id=build_id)
            for host in ("a", "b")
            for pid in (1, 2)
        ]

    before = DAY - timedelta(days=3)
    old, new = server(before, "1.1", 100, 5, "aa"), server(DAY, "2.0", 140, 6, "bb")
    dataset = write_fleet(tmp_path, [*old, *new])
    heap, buffer = rows(dataset, "growth")
    assert (heap["owner"], heap["each_bytes"], heap["growth_bytes"]) == (HEAP, 40 * KIB, 4 * 40 * KIB)
    assert (buffer["owner"], buffer["each_bytes"]) == ("/opt/server-2.0/bin/server", KIB)
    # Builds are compared as days are.
    assert rows(dataset, "growth", before="aa", after="bb") == [heap, buffer]
    assert rows(dataset, "growth", before="bb", after="aa") == []
    with pytest.raises(UsageError, match=r"no process is known with the build or version 9\.9"):
        fleet(dataset, "growth", before="9.9")
    (release,) = rows(
        write_fleet(tmp_path / "x", [*server(before, "1", 100, 5, "aa"), *server(DAY, "1", 140, 5, "bb")]), "releases"
    )
    assert (release["change_bytes"], release["build"], release["first_day"]) == (40 * KIB, "bb", "2026-11-23")


def test_outliers_are_far_above_their_siblings_and_name_the_owner(tmp_path: Path) -> None:
    members = [
        Member("a", SHADOW, (Holding(HEAP, 400 * KIB), Holding(LIBZ, (10 + pid) * KIB)), pid) for pid in range(20)
    ]
    members.append(Member("b", SHADOW, (Holding(HEAP, 9 * MIB), Holding(LIBZ, 10 * KIB)), 77))
    (found,) = rows(write_fleet(tmp_path, members), "outliers")
    # The one in the middle of 21 has 400 + 20 KiB.
    assert (found["host"], found["pid"], found["owner"], found["sibling_count"]) == ("b", 77, HEAP, 21)
    assert found["excess_bytes"] == 9 * MIB + 10 * KIB - 420 * KIB


def test_more_and_fit_are_about_the_memory_that_a_host_has_left(dataset: Path) -> None:
    (shadow,) = (row for row in rows(dataset, "more", count=1000) if row["program"] == SHADOW and row["host"] == "a")
    assert (shadow["more_bytes"], shadow["left_bytes"]) == (138_000 * KIB, GIB - 138_000 * KIB)
    assert shadow["is_fitting"]
    fits = {(row["host"], row["program"]): row["fit_count"] for row in rows(dataset, "fit")}
    assert fits == {
        ("a", SCHEDD): GIB // (900 * KIB),
        ("a", SHADOW): GIB // (138 * KIB),
        ("b", SHADOW): GIB // (138 * KIB),
    }


def test_a_pattern_chooses_programs(dataset: Path) -> None:
    assert [row["program"] for row in rows(dataset, "programs", program="*/condor_sh*")] == [SHADOW]
    assert rows(dataset, "duplicates", program="*/condor_sh*") == []


def test_an_unused_library_of_10000_processes_is_found_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 20 hosts with 500 shadows each; on 12 of them each shadow could do without a library of 150 to 170 KiB.
    members, expected = [], 0
    for number in range(20):
        for pid in range(500):
            saving = (150 + (number * 7 + pid) % 21) * KIB if number < 12 else 0
            savings = [("duplicate-static", f"table_{pid % 7}", 12 * KIB), ("unused-library", "libz3.so.4", saving)]
            held = (Holding(HEAP, 300 * KIB), Holding("/usr/lib/libz3.so.4", saving or 160 * KIB))
            members.append(Member(f"h{number}", SHADOW, held, pid, savings=tuple(one for one in savings if one[2])))
            expected += saving
    dataset = write_fleet(tmp_path, members)
    out = said(capsys, dataset)
    assert out.splitlines()[-2:] == [
        "libz3.so.4 (unused-library): the fleet saves 937.4 MiB in 6,000 processes on 12",
        f"hosts without it, such as {SHADOW}.",
    ]
    (unused,) = rows(dataset, "unused")
    assert unused["saving_bytes"] == expected
    assert abs(expected - 6000 * 160 * KIB) < 0.01 * expected


def test_of_texts_the_private_memory_is_what_a_program_costs_and_no_figure_is_said_to_be_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan_in_one_process(monkeypatch)
    corpus = Path(__file__).resolve().parents[1]
    with_smaps, of_pmap = tmp_path / "smaps", tmp_path / "pmap"
    scan(corpus / "corpus" / "smaps-sleep.txt", host="web", output=with_smaps, worker_count=1)
    for folder in (with_smaps, of_pmap):
        scan(corpus / "cases" / "condor_shadow" / "pmap-d.base.txt", host="db", output=folder, worker_count=1)
    # Of the smaps: 44 + 16 + 16 + 12 + 12 + 8 KiB of its owners.
    for question, name in (("programs", "/usr/bin/sleep"), ("hosts", "web")):
        answer = fleet(with_smaps, question)
        totals = [(row[0], row[-1]) for row in answer.result.rows]
        assert totals[0] == (108 * KIB, name)
        assert totals[1][0] is None
        assert [(note.slug, note.subject) for note in answer.notes] == [("fleet-kernel-unknown", "1 of 2 processes")]
    assert [row["each_bytes"] for row in rows(with_smaps, "more")] == [108 * KIB]
    text = plain(fleet_document(fleet(of_pmap, "programs")))
    assert text.splitlines()[-1] == "What they cost is not known."
    assert "[no name]" in text


def test_builds_that_texts_tell_of_are_compared_by_their_private_memory(tmp_path: Path) -> None:
    def build(program: str, build_id: str, size: int, age: int) -> Member:
        heap = (Holding(HEAP, size * KIB),)
        return Member("a", program, heap, day=DAY - timedelta(days=age), build_id=build_id, kernel_bytes=40 * KIB)

    shadows = [build(SHADOW, "b1", 100, 2), build(SHADOW, "b2", 130, 1), build(SHADOW, "b3", 150, 0)]
    dataset = write_fleet(tmp_path, [*shadows, build(SCHEDD, "c1", 10, 1), build(SCHEDD, "c2", 17, 0)])
    assert [row["median_bytes"] for row in rows(dataset, "releases")] == [170 * KIB, 190 * KIB, 57 * KIB]
    (text,) = dataset.glob(f"processes/day={DAY - timedelta(days=1)}/*")
    unknown = f"CASE WHEN program = '{SHADOW}' THEN NULL ELSE"
    columns = f"{unknown} per_process_bytes END AS per_process_bytes, {unknown} kernel_bytes END AS kernel_bytes"
    selected = f"SELECT * REPLACE ({columns}) FROM read_parquet('{text}', hive_partitioning=false)"
    duckdb.sql(f"COPY ({selected}) TO '{text}.new' (FORMAT parquet)")
    Path(f"{text}.new").replace(text)
    # Of one build in the middle, kernel memory is not known: it is in no figure of the program, and no change.
    changes = [(row["build"], row["change_bytes"], row["median_bytes"]) for row in rows(dataset, "releases")]
    assert changes == [("b2", 30 * KIB, 130 * KIB), ("b3", 20 * KIB, 150 * KIB), ("c2", 7 * KIB, 57 * KIB)]
    notes = fleet(dataset, "releases").notes
    assert [(note.slug, note.subject) for note in notes] == [("fleet-kernel-unknown", "1 of 2 programs")]


def test_processes_that_lie_of_their_size_take_no_answer_from_the_others(tmp_path: Path) -> None:
    # Each claims a byte less than a PiB, the most that a scan lets in: 8,193 of them are more than 63 bits.
    most, count = (1 << 50) - 1, 8193
    held, other = (Holding(LIBZ, most, "table"), Holding(LIBZ, most)), (Holding(HEAP, KIB),)
    saving = (("unused-library", "libz.so.1", most),)
    members = [Member(f"h{pid}", SHADOW, held, pid, savings=saving, is_judged=pid > 0) for pid in range(count)]
    old = [Member("h0", SHADOW, other, pid, day=DAY - timedelta(days=1)) for pid in range(count)]
    dataset = write_fleet(tmp_path, [*old, *members, Member("a", SCHEDD, other, 1, build_id="b2")])
    assert [row["private_bytes"] for row in rows(dataset, "programs")] == [count * 2 * most, KIB]
    assert [row["saving_bytes"] for row in rows(dataset, "unused")] == [count * most]
    assert max(row["more_bytes"] for row in rows(dataset, "more", count=count)) == pytest.approx(count * 2 * most)
    for name in question_names():
        answer = fleet(dataset, name)
        assert answer.total_bytes == count * 2 * most + KIB
        assert json.dumps(fleet_members(answer, "1"))
        assert plain(fleet_document(answer))


# --- what is written --------------------------------------------------------------------------------------------------


def test_without_a_question_the_questions_are_listed(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, dataset)
    for name in question_names():
        assert f"\n  {name}" in out
    assert out.splitlines()[1].split() == ["hosts", "2"]


def test_each_text_of_an_answer_has_a_column_beside_the_figures_or_below_them(
    dataset: Path, answers: dict[str, Fleet], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, answer in answers.items():
        document = fleet_document(answer)
        for width in (80, 120):
            table = [line for line in plain(document, width=width).splitlines() if line.startswith("  ")]
            assert max(map(len, table)) <= width, name
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        assert said(capsys, dataset, name) == plain(document, width=width)
    lines = [line for line in said(capsys, dataset, "fit").splitlines() if line.startswith("  ")]
    heading = next(line for line in lines if "program" in line and "host" in line)
    row = next(line for line in lines if SHADOW in line)
    assert (heading.index("program"), heading.index("host")) == (row.index(SHADOW), len(row) - 1)
    narrow = plain(fleet_document(answers["savings"]), width=80).splitlines()
    heading = next(line for line in narrow if "subject" in line)
    assert heading.split() == ["subject", "program", "rule", "confidence"]
    below = narrow[narrow.index(heading) + 2]
    assert [below.index(word) for word in ("libz.so.1", SHADOW, "unused-library", "high")] == [
        heading.index(word) for word in ("subject", "program", "rule", "confidence")
    ]


def test_long_names_are_cut_where_they_must_and_whole_with_v(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, symbol = "/opt/" + "folder/" * 12 + "program", "variable_" * 9
    dataset = write_fleet(tmp_path, [Member("a", program, (Holding(program, KIB, symbol),))])
    cut = said(capsys, dataset, "variables")
    assert symbol[:20] in cut
    assert program[-20:] in cut
    assert max(len(line) for line in cut.splitlines() if line.startswith("  ")) <= 80
    whole = "".join(said(capsys, dataset, "variables", "-v").split("costs")[0].split())
    assert symbol in whole
    assert program in whole


def test_a_name_that_is_escaped_is_whole_where_there_is_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = write_fleet(tmp_path, [Member("a", SHADOW, (Holding("/lib/\x1b\x1b\x1b.so", KIB, "v"),))])
    assert r"/lib/\x1b\x1b\x1b.so  " in f"{said(capsys, dataset, 'variables')}  "


def test_a_text_that_no_row_has_is_no_column(tmp_path: Path) -> None:
    days = [Member("a", SHADOW, (Holding(HEAP, size * KIB),), day=DAY.replace(day=size)) for size in (22, 23)]
    answer = fleet(write_fleet(tmp_path, days), "growth")
    assert answer.result.columns[5:] == ("symbol", "owner", "program")
    lines = plain(fleet_document(answer), width=120).splitlines()
    heading = next(line for line in lines if line.endswith("owner"))
    assert heading.split() == ["growth", "each", "old", "new", "processes", "program", "owner"]


def test_a_day_that_is_yet_to_come_is_told(tmp_path: Path, dataset: Path) -> None:
    ahead = write_fleet(tmp_path, [Member("a", SHADOW, (Holding(HEAP, KIB),), day=date(2999, 1, 1))])
    assert [note.slug for note in fleet(ahead, "programs").notes] == ["fleet-day-ahead"]
    assert fleet(dataset, "programs").notes == ()


def test_each_question_has_sql_that_can_be_asked_and_is_written_in_each_format_of_tables(
    dataset: Path, answers: dict[str, Fleet], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, result in answers.items():
        assert "{" not in plain(fleet_document(result))
        # What is printed runs in any DuckDB as it is; its last SELECT can be changed and asked.
        sql = said(capsys, dataset, name, "--sql")
        assert sql.endswith(f"\n{result.sql}")
        with duckdb.connect() as connection:
            answer = connection.execute(sql)
            assert tuple(one[0] for one in answer.description or ()) == result.result.columns
            assert len(answer.fetchall()) == len(result.result.rows)
        if not question_of(name).compares:
            assert fleet(dataset, query=result.sql).result == result.result
    document = json.loads(said(capsys, dataset, "programs", "--json"))
    assert document["question"] == "programs"
    assert list(document["rows"][0]) == document["columns"]
    table = list(csv.DictReader(io.StringIO(said(capsys, dataset, "programs", "--format", "csv"))))
    assert [row["program"] for row in table] == [SCHEDD, SHADOW]
    assert said(capsys, dataset, "duplicates", "--format", "csv", "--program", "none") == "\r\n"
    page = tmp_path / "page.html"
    said(capsys, dataset, "programs", "--html", page)
    assert SHADOW in page.read_text()


def test_metrics_have_the_texts_as_labels_and_no_process_ids(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, dataset, "programs", "--format", "openmetrics").splitlines()
    assert f'footprint_fleet_programs_total_bytes{{program="{SHADOW}"}} {4 * 138 * KIB}' in lines
    assert f'footprint_fleet_programs_process_count{{program="{SHADOW}"}} 4' in lines
    assert lines[-1] == "# EOF"
    assert "pid" not in said(capsys, dataset, "outliers", "--format", "openmetrics")


def test_of_outliers_with_the_same_texts_the_metrics_have_the_largest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = [Member("a", SHADOW, (Holding(HEAP, MIB),), pid) for pid in range(20)]
    large = [Member("a", SHADOW, (Holding(HEAP, size * MIB),), size) for size in (71, 91, 81)]
    lines = said(capsys, write_fleet(tmp_path, [*usual, *large]), "outliers", "--format", "openmetrics").splitlines()
    labels = f'{{host="a",owner="{HEAP}",program="{SHADOW}"}}'
    figures = {"excess": 90 * MIB, "per_process": 91 * MIB, "median": MIB}
    assert [line for line in lines if line[0] != "#"] == [
        *(f"footprint_fleet_outliers_{name}_bytes{labels} {size}" for name, size in figures.items()),
        f"footprint_fleet_outliers_sibling_count{labels} 23",
    ]


def test_names_of_the_fleet_do_nothing_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for name in HOSTILE.values() if "\0" not in name]
    members = [
        Member("h", f"/x/{name}", (Holding(f"/y/{name}", 4 * KIB, name),), pid, savings=(("unused-library", name, 1),))
        for pid, name in enumerate(names)
    ]
    dataset = write_fleet(tmp_path, members)
    for question in ("variables", "savings"):
        out = said(capsys, dataset, question, "--top", "0")
        assert all(one.isprintable() or one == "\n" for one in out)


# --- SQL of others ----------------------------------------------------------------------------------------------------


def test_a_query_sees_the_tables_and_the_state(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = fleet(dataset, query='SELECT host, count(*) AS n, count(*) FROM "rows" GROUP BY host ORDER BY host').result
    assert found.columns == ("host", "n", "count_star()")
    assert found.rows == (("a", 7, 7), ("b", 6, 6))
    found = fleet(dataset, query="SELECT 1 AS x, 2 AS x, DATE '2026-11-23', [1, 2], NULL, 0.5").result
    assert (found.columns[:2], found.rows) == (("x", "x_2"), ((1, 2, "2026-11-23", "1, 2", None, 0.5),))
    out = said(capsys, dataset, "--query", "SELECT max(private_bytes) AS most_bytes FROM current_processes")
    assert out.split("\n\n")[0].splitlines()[-2:] == ["  most", "  900 KiB"]


class Guarded(NamedTuple):
    """A dataset that is opened by a link, and the folder that has the link and a secret."""

    opened: Dataset
    folder: Path


@pytest.fixture(scope="module")
def guarded(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Guarded:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "secret").write_text("secret")
    (folder / "fleet").symlink_to(dataset)
    opened = Dataset(str(folder / "fleet"))
    opened.set_variables({"day": None, "program": None})
    for name, statements in definitions_of(None, opened.views).items():
        opened.define(name, statements)
    return Guarded(opened, folder)


@pytest.mark.parametrize(
    "attack",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_text('{dataset}/../secret')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM parquet_metadata('{secret}')",
        "SELECT * FROM read_duckdb('{secret}')",
        "EXPLAIN ANALYZE SELECT 1",
        "SELECT * FROM glob('{parent}/*')",
        "SELECT * FROM sniff_csv('{secret}')",
        "SELECT * FROM read_csv('https://example.com/a.csv')",
        "SELECT * FROM secret_of_python",
        "SELECT * FROM query('COPY (SELECT 1) TO ''{parent}/evil''')",
        "SELECT getenv('HOME')",
        "SELECT * FROM duckdb_secrets()",
        "COPY (SELECT 1) TO '{parent}/evil'",
        "COPY (SELECT 1) TO '{dataset}/evil'",
        "ATTACH '{parent}/evil'",
        "EXPORT DATABASE '{dataset}/evil'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET VARIABLE day = NULL",
        "CREATE TABLE evil AS SELECT 1",
        "DROP VIEW rows",
        "DELETE FROM current_processes",
        "PRAGMA database_list",
        "CALL enable_logging()",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY (SELECT 1) TO '{parent}/evil'",
        "",
        "SELECT",
        "SELECT * FROM nothing",
        "SELECT 'a'::INTEGER",
        "\0",
    ],
)
def test_a_query_reads_nothing_but_the_dataset_and_writes_nothing(guarded: Guarded, dataset: Path, attack: str) -> None:
    secret_of_python = [("secret",)]
    place = guarded.folder
    before = sorted(str(path) for folder in (dataset, place) for path in folder.rglob("*"))
    query = attack.format(secret=place / "secret", dataset=place / "fleet", parent=place)
    with pytest.raises(UsageError):
        guarded.opened.ask(query)
    assert sorted(str(path) for folder in (dataset, place) for path in folder.rglob("*")) == before
    assert secret_of_python


def test_a_query_of_the_command_is_guarded_in_the_same_way(guarded: Guarded) -> None:
    with pytest.raises(UsageError, match="file system operations are disabled"):
        fleet(guarded.folder / "fleet", query=f"SELECT * FROM read_text('{guarded.folder}/secret')")


def test_a_query_with_too_many_rows_or_bytes_ends_with_an_error(dataset: Path) -> None:
    with pytest.raises(FootprintError, match="entries"):
        fleet(dataset, query="SELECT * FROM range(1000000000000)")
    with limited(Limits(size_bytes=1 << 20)), pytest.raises(FootprintError, match="bytes"):
        fleet(dataset, query="SELECT repeat('x', 100000) FROM range(20)")


@pytest.mark.parametrize(
    ("query", "limits", "option"),
    [
        ("SELECT count(*) FROM range(20000000) a(x), range(20000000) b(y) WHERE x + y = 7", "seconds=1", "seconds=2"),
        # What DuckDB counts, and what only the system sees.
        ("SELECT list(x) FROM range(100000000000) t(x)", "bytes=64MiB", "bytes=128MiB"),
        ("SELECT length(printf('%2000000000d', 1))", "bytes=64MiB", "bytes=128MiB"),
    ],
)
def test_a_query_that_never_ends_or_takes_all_memory_ends_at_its_limits(
    dataset: Path, capsys: pytest.CaptureFixture[str], query: str, limits: str, option: str
) -> None:
    assert main(["fleet", str(dataset), "--query", query, "--limits", limits]) == 3
    err = capsys.readouterr().err
    assert err.startswith("footprint: --query: ")
    assert err.endswith(f"; raise it with --limits {option}\n")


def test_ctrl_c_ends_a_query_at_once(dataset: Path) -> None:
    query = "SELECT count(*) FROM range(20000000) a(x), range(20000000) b(y) WHERE x + y = 7"
    words = [sys.executable, "-m", "footprint", "fleet", str(dataset), "--query", query]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as command:
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
        while not (child := children.read_text().strip()):
            time.sleep(0.01)
        command.send_signal(signal.SIGINT)
        # It has no end of its own: the query alone takes hours.
        assert command.communicate()[1] == b""
    assert command.returncode == 130
    assert not Path(f"/proc/{child}").exists()


# --- errors -----------------------------------------------------------------------------------------------------------


def test_what_is_no_dataset_or_a_damaged_one_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FootprintError, match="no dataset"):
        fleet(tmp_path)
    dataset = small(tmp_path / "fleet")
    (cut,) = dataset.glob("rows/*/*")
    cut.write_bytes(cut.read_bytes()[:-100])
    assert main(["fleet", str(dataset), "variables"]) == 3
    err = capsys.readouterr().err
    assert err.startswith(f"footprint: {dataset}: it cannot be read: ")
    assert str(cut) in err
    # Neither the other questions nor the fault of a query is concerned.
    assert len(rows(dataset, "programs")) == 2
    with pytest.raises(InputError, match="it cannot be read"):
        fleet(dataset, query="SELECT sum(private_bytes) FROM current_rows")
    shutil.rmtree(dataset / "rows")
    with pytest.raises(InputError, match="fleet/rows: there are no Parquet files"):
        fleet(dataset, "owners")
    (dataset / "processes" / "host=a").mkdir()
    with pytest.raises(InputError, match="fleet/processes: it is of an earlier version of footprint, by host: scan"):
        fleet(dataset, "programs")


def test_growth_begins_with_the_first_day_that_was_not_deleted(tmp_path: Path) -> None:
    members = [
        Member("a", SCHEDD, (Holding(HEAP, (100 - age) * KIB),), day=DAY - timedelta(days=age)) for age in (0, 1, 2)
    ]
    dataset = write_fleet(tmp_path, members)
    for folder in [*dataset.glob(f"*/day={DAY - timedelta(days=2)}")]:
        shutil.rmtree(folder)
    (grown,) = rows(dataset, "growth")
    assert (grown["old_bytes"], grown["growth_bytes"]) == (99 * KIB, KIB)


def test_growth_between_two_days_reads_the_files_of_no_day_between(tmp_path: Path) -> None:
    members = [
        Member("a", SCHEDD, (Holding(HEAP, (100 - age) * KIB),), day=DAY - timedelta(days=age)) for age in (0, 10, 20)
    ]
    dataset = write_fleet(tmp_path, members)
    between, first = (str(DAY - timedelta(days=age)) for age in (10, 20))
    (damaged,) = dataset.glob(f"processes/day={between}/*")
    damaged.write_bytes(b"PAR1")
    for before in (None, first):
        (grown,) = rows(dataset, "growth", before=before)
        assert (grown["old_bytes"], grown["growth_bytes"]) == (80 * KIB, 20 * KIB)
    # A build or a version may be of any day, also one that is written like a day.
    with pytest.raises(InputError, match="it cannot be read"):
        fleet(dataset, "growth", before="b1")
    build = zlib()._replace(file="b2", package_version=first)
    write_fleet(dataset, [Member("b", SCHEDD, (Holding(HEAP, KIB),))], [build], "q")
    with pytest.raises(InputError, match="it cannot be read"):
        fleet(dataset, "growth", before=first)


def test_a_dataset_in_a_folder_that_reads_as_a_column_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "host=a").mkdir()
    dataset = small(tmp_path / "host=a")
    with pytest.raises(InputError, match="its path has a `=`, which stands for a column"):
        fleet(dataset, "hosts")


@pytest.mark.parametrize("name", ["a[1]", "st*r", "what?"])
def test_a_dataset_in_a_folder_that_reads_as_a_pattern_is_an_error_that_names_the_cause(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / name).mkdir()
    dataset = small(tmp_path / name)
    with pytest.raises(InputError, match="which stands for other names: move it"):
        fleet(dataset, "hosts")


@pytest.mark.parametrize("table", ["owners", "rows", "processes", "hosts"])
def test_a_file_that_is_missing_between_others_is_an_error(table: str, tmp_path: Path) -> None:
    held = (Holding(HEAP, KIB),)
    before = Member("d", SCHEDD, held, day=DAY - timedelta(days=1))
    dataset = write_fleet(small(tmp_path), [Member("c", SCHEDD, held), before], part="q")
    assert len(rows(dataset, "hosts")) == 4
    (one,) = (path for path in (dataset / table).rglob("q.parquet") if path.parent.name in {table, f"day={DAY}"})
    one.unlink()
    with pytest.raises(InputError, match=rf"{table}: .*q\.parquet is missing, but `inputs` tells of processes in it"):
        fleet(dataset, "owners")


def test_names_that_are_no_text_and_links_that_lead_nowhere_are_errors(tmp_path: Path) -> None:
    dataset = small(tmp_path)
    (damaged,) = dataset.glob("rows/*/*")
    damaged.write_bytes(damaged.read_bytes().replace(b"owner", b"own\x80r"))
    with pytest.raises(InputError, match="it cannot be read"):
        fleet(dataset, "variables")
    damaged.unlink()
    damaged.symlink_to("nowhere")
    with pytest.raises(AccessError, match="leads nowhere"):
        fleet(dataset, "owners")


def test_a_file_that_is_damaged_within_is_named(tmp_path: Path) -> None:
    dataset = small(tmp_path)
    damaged = dataset / "hosts" / "p.parquet"
    data = bytearray(damaged.read_bytes())
    data[4:200] = b"\xff" * 196
    damaged.write_bytes(data)
    with pytest.raises(InputError, match=r"p\.parquet: it cannot be read: "):
        fleet(dataset, "hosts")


def test_a_dataset_of_another_version_is_told_and_columns_that_are_new_are_left_out(tmp_path: Path) -> None:
    whole = small(tmp_path)
    write_fleet(whole, [Member("c", SCHEDD, (Holding(HEAP, KIB),))], part="q")

    def with_columns(columns: str, part: str = "*") -> None:
        for path in whole.glob(f"processes/*/{part}.parquet"):
            new = path.with_suffix(".new")
            selected = f"SELECT {columns} FROM read_parquet('{path}', hive_partitioning=false)"
            duckdb.sql(f"COPY ({selected}) TO '{new}' (FORMAT parquet)")
            new.replace(path)

    asked = rows(whole, "programs")
    with_columns("*, 7 AS of_tomorrow")
    assert rows(whole, "programs") == asked
    with_columns("* EXCLUDE (process_count)", "q")
    with pytest.raises(InputError, match=r"day=2026-11-23/q\.parquet.*process_count"):
        fleet(whole, "programs")
    with_columns("* EXCLUDE (process_count)", "p")
    with pytest.raises(InputError, match="a column of processes is missing, so it is of another"):
        fleet(whole, "programs")


def test_a_fleet_of_nothing_or_of_one_process_has_an_answer_to_each_question(tmp_path: Path) -> None:
    (tmp_path / "nothing" / "inputs").mkdir(parents=True)
    one = write_fleet(tmp_path / "one", [Member("a", SHADOW, (Holding(HEAP, KIB),), 1)])
    answered = set()
    for name in ("growth", "savings", "fit"):
        assert fleet(tmp_path / "nothing", name).result.rows == ()
    for name in question_names():
        found = fleet(one, name)
        assert plain(fleet_document(found))
        answered |= {name} if found.result.rows else set()
    assert answered == {"fit", "hosts", "more", "owners", "programs"}


def test_what_a_question_does_not_look_at_or_show_is_told(tmp_path: Path) -> None:
    siblings = [Member("a", SHADOW, (Holding(HEAP, KIB),), pid) for pid in range(5)]
    many = tuple(Holding(LIBZ, 64, f"v{number}") for number in range(10_001))
    dataset = write_fleet(tmp_path, [*siblings, Member("a", SCHEDD, many, 9), Member("a", "/bin/x", many[:1], 10)])
    (few,) = fleet(dataset, "outliers").notes
    assert (few.slug, few.subject) == ("fleet-few-siblings", "2 programs")
    cut = fleet(dataset, "variables")
    assert len(cut.result.rows) == 10_000
    assert [(note.slug, note.subject) for note in cut.notes] == [("fleet-rows-left-out", "10,000 rows")]
    assert fleet(dataset, "variables", program="/bin/x").notes == ()


def test_an_answer_replaces_no_file_of_the_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = small(tmp_path / "fleet")
    rows = next(dataset.glob("rows/*/*"))
    before = rows.read_bytes()
    assert main(["fleet", str(dataset), "owners", "-o", str(rows)]) == 2
    assert f"{rows} is what this answer was made from" in capsys.readouterr().err
    assert rows.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["nonsense"], "there is no question 'nonsense'"),
        (["unused", "--query", "SELECT 1"], "ask a question, or write a query"),
        (["unused", "--from", "2026-01-01"], "--from and --to go with"),
        (["unused", "--format", "sarif"], "does not write sarif"),
    ],
)
def test_a_wrong_question_is_a_wrong_use(
    dataset: Path, capsys: pytest.CaptureFixture[str], words: list[str], cause: str
) -> None:
    assert main(["fleet", str(dataset), *words]) == 2
    assert cause in capsys.readouterr().err


def test_without_duckdb_the_command_says_how_to_get_it(
    dataset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main(["fleet", str(dataset)]) == 2
    assert "pip install 'footprint-audit[fleet]'" in capsys.readouterr().err


def test_other_verbs_do_not_import_duckdb(dataset: Path) -> None:
    code = "import sys, footprint.cli; code = footprint.cli.main(sys.argv[1:]); sys.exit('duckdb' in sys.modules)"
    for words in (["symbols", sys.executable, "--top", "1"], ["fleet", str(dataset), "unused", "--sql"]):
        found = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=False)
        assert found.returncode == 0, found.stderr
