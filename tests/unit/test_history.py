"""Histories: how figures went over releases, and the file that they are kept in."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import footprint
from footprint.errors import AccessError, InputError, UnsupportedError, UsageError
from footprint.formats.text import plain
from footprint.model.figures import FigureUnit
from footprint.release.history import Recording, Release, Trend, TrendStep, history_of
from footprint.release.history_file import read_recordings, write_recording
from footprint.verbs.trend.answer import trend_document
from footprint.verbs.trend.recording import parse_time

ROOT = Path(__file__).resolve().parents[2]
SHADOW = ROOT / "sample_binaries" / "condor_shadow"


def recording(version: str, time: int, parts: dict[str, int], program: str = "server") -> Recording:
    """Return a recording of private memory that is made of some parts."""
    release = Release(program, version, is_commit=False, time=time, source="smaps", tool_version="0.1.0")
    figures = {"private_bytes": sum(parts.values()), "library_count": len(parts)}
    return Recording(release, figures, {"private_bytes": parts, "library_count": dict.fromkeys(parts, 1)})


FIRST = recording("1.0", 100, {"server": 4096, "libold.so": 8192})
SECOND = recording("1.1", 200, {"server": 8192, "libold.so": 8192})
THIRD = recording("1.2", 300, {"server": 8192, "libnew.so": 65536})


def trend_of(figure: str, *recordings: Recording, owner: str | None = None) -> Trend:
    (found,) = history_of(recordings, "history", figures=[figure], owner=owner).trends
    return found


# --- trends -----------------------------------------------------------------------------------------------------------


def test_a_trend_has_the_values_in_order_of_time_and_the_step_with_its_culprit() -> None:
    trend = trend_of("private_bytes", THIRD, FIRST, SECOND)
    assert trend.values == (12288, 16384, 73728)
    assert (trend.first, trend.last, trend.change) == (12288, 73728, 61440)
    # libnew.so came with 65,536 while libold.so left with 8,192.
    assert trend.largest_step == TrendStep("1.1", "1.2", 57344, "libnew.so", 65536)


def test_a_step_down_is_the_work_of_what_left() -> None:
    trend = trend_of("private_bytes", recording("1", 1, {"a": 10, "b": 100}), recording("2", 2, {"a": 20}))
    assert trend.largest_step == TrendStep("1", "2", -90, "b", -100)


def test_of_equal_parts_a_file_is_named_before_what_follows_from_one() -> None:
    trend = trend_of("private_bytes", recording("1", 1, {}), recording("2", 2, {"[heap]": 4096, "libz.so": 4096}))
    assert trend.largest_step is not None
    assert trend.largest_step.owner == "libz.so"


def test_releases_of_one_time_stay_in_the_order_in_which_they_were_recorded() -> None:
    found = history_of([recording("b", 5, {"x": 1}), recording("a", 5, {"x": 2})], "history")
    assert [one.version for one in found.releases["server"]] == ["b", "a"]


def test_what_never_changed_has_no_step() -> None:
    trend = trend_of("library_count", FIRST, SECOND)
    assert (trend.values, trend.largest_step, trend.unit) == ((2, 2), None, FigureUnit.THINGS)


def test_a_release_that_does_not_tell_a_figure_is_a_gap_and_no_step() -> None:
    untold = SECOND._replace(figures={}, parts={})
    trend = trend_of("private_bytes", FIRST, untold, THIRD)
    assert trend.values == (12288, None, 73728)
    assert trend.largest_step == TrendStep("1.0", "1.2", 61440, "libnew.so", 65536)


def test_the_part_of_one_owner_is_nothing_where_it_is_not_there() -> None:
    trend = trend_of("private_bytes", FIRST, SECOND, THIRD, owner="libold.so")
    assert trend.values == (8192, 8192, 0)
    assert trend.largest_step == TrendStep("1.1", "1.2", -8192, "libold.so", -8192)


def test_a_step_of_one_owner_is_its_own_work_whatever_else_grew() -> None:
    before, after = recording("1", 1, {"a": 10, "b": 10}), recording("2", 2, {"a": 20, "b": 100})
    assert trend_of("private_bytes", before, after, owner="a").largest_step == TrendStep("1", "2", 10, "a", 10)


def test_only_the_newest_releases_are_told_where_so_many_are_asked_for() -> None:
    found = history_of([FIRST, SECOND, THIRD], "history", last=2)
    assert [one.version for one in found.releases["server"]] == ["1.1", "1.2"]


def test_a_mistyped_figure_or_owner_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'private_bytes'"):
        history_of([FIRST], "history", figures=["privat_bytes"])
    with pytest.raises(UsageError, match=r"no owner 'libold'; did you mean 'libold.so'"):
        history_of([FIRST], "history", owner="libold")
    with pytest.raises(UsageError, match="no floor_bytes: no release has it"):
        history_of([FIRST], "history", figures=["floor_bytes"])


def test_a_step_between_a_prediction_and_a_measurement_is_noted() -> None:
    predicted = FIRST._replace(release=FIRST.release._replace(source="prediction"))
    (note,) = history_of([predicted, SECOND], "history").notes
    assert (note.slug, note.subject) == ("history-mixed", "server")


def test_a_sparkline_lies_between_the_smallest_and_the_largest_value() -> None:
    report = trend_document(history_of([FIRST, SECOND, THIRD], "history", figures=["private_bytes"]), has_blocks=True)
    # 12,288, 16,384 and 73,728 on eight levels: the second is a fifteenth of the way, which is less than one.
    assert "▁▁█    private_bytes" in plain(report)
    report = trend_document(history_of([FIRST, SECOND, THIRD], "history", figures=["private_bytes"]), has_blocks=False)
    assert "__#    private_bytes" in plain(report)


def test_a_name_that_could_do_something_to_a_terminal_is_escaped() -> None:
    hostile = recording("1\x1b[2J", 1, {"a": 1}, program="evil\u202e")
    text = plain(trend_document(history_of([hostile], "history"), has_blocks=True))
    assert "\x1b" not in text
    assert "evil\\u202e: 1 release" in text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (0, 0),
        ("1767225600", 1767225600),
        ("2026-01-01", 1767225600),
        ("20260101", 1767225600),
        ("2026-01-01T00:00:00Z", 1767225600),
        ("2026-01-01T01:00:00+01:00", 1767225600),
    ],
)
def test_times_are_seconds_or_iso_8601(text: int | str, seconds: int) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "-1", -1, "1" * 16, "1969-12-31", "2026-13-01", 253_402_300_800])
def test_what_is_no_time_is_told_as_such(text: int | str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        parse_time(text)


# --- the file ---------------------------------------------------------------------------------------------------------


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "history ?#%.sqlite")
    assert [write_recording(path, one) for one in (FIRST, SECOND)] == [(None, 1), (None, 2)]
    assert read_recordings(path) == (FIRST, SECOND)


def test_a_release_that_is_recorded_again_takes_the_place_of_the_first(tmp_path: Path) -> None:
    path = str(tmp_path / "history")
    for one in (FIRST, SECOND):
        write_recording(path, one)
    again = recording("1.0", 100, {"server": 1})
    assert write_recording(path, again) == (FIRST.release, 2)
    assert read_recordings(path) == (again, SECOND)


def test_programs_of_one_file_do_not_know_each_other(tmp_path: Path) -> None:
    path = str(tmp_path / "history")
    write_recording(path, FIRST)
    assert write_recording(path, recording("1.0", 1, {}, program="client")) == (None, 1)


def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE recording (id)")
    other.close()
    before = path.read_bytes()
    for act in (lambda: write_recording(str(path), FIRST), lambda: read_recordings(str(path))):
        with pytest.raises(InputError, match="not a history of footprint"):
            act()
    assert path.read_bytes() == before


def damaged(path: Path, *statements: str) -> str:
    write_recording(str(path), FIRST)
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    return str(path)


TRIGGER = "CREATE TRIGGER t AFTER INSERT ON part BEGIN DELETE FROM figure; END"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE part SET amount = 'many'",
        "UPDATE part SET amount = -1",
        "UPDATE figure SET amount = 1.5",
        "UPDATE figure SET name = x'00ff' WHERE name = 'private_bytes'",
        "UPDATE figure SET recording = 4711",
        "UPDATE recording SET time = -1",
        "UPDATE recording SET time = 253402300800",
        "UPDATE recording SET is_commit = 2",
        "UPDATE recording SET program = x'00'",
        "UPDATE recording SET program = ''",
        "UPDATE recording SET version = ''",
        "DROP TABLE part",
        "ALTER TABLE part ADD COLUMN another",
        "CREATE VIEW more AS WITH RECURSIVE a(b) AS (SELECT 1 UNION ALL SELECT b FROM a) SELECT * FROM a",
        TRIGGER,
    ],
)
def test_what_no_footprint_would_write_is_one_error(tmp_path: Path, statement: str) -> None:
    path = damaged(tmp_path / "history", statement)
    with pytest.raises(InputError):
        read_recordings(path)


def test_a_trigger_under_a_name_of_sqlite_is_refused_before_it_runs(tmp_path: Path) -> None:
    path = damaged(
        tmp_path / "history",
        TRIGGER,
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_master SET name = 'sqlite_t', sql = replace(sql, ' t ', ' sqlite_t ') WHERE name = 't'",
    )
    for act in (lambda: write_recording(path, SECOND), lambda: read_recordings(path)):
        with pytest.raises(InputError, match="its tables are not those of a history"):
            act()


def test_what_sqlite_keeps_beside_the_tables_of_a_history_is_no_damage(tmp_path: Path) -> None:
    assert read_recordings(damaged(tmp_path / "history", "ANALYZE")) == (FIRST,)


def test_a_history_of_a_newer_footprint_is_told_as_such(tmp_path: Path) -> None:
    path = damaged(tmp_path / "history", "PRAGMA user_version = 2")
    for act in (lambda: write_recording(path, FIRST), lambda: read_recordings(path)):
        with pytest.raises(UnsupportedError, match="a history of version 2; this footprint reads 1"):
            act()


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda data: data[: len(data) // 2], "malformed"),
        (lambda _: b"no database at all", "not a database"),
        (lambda data: data[:100] + bytes(len(data) - 100), "malformed"),
        (lambda _: b"", "it is empty"),
    ],
)
def test_a_damaged_file_is_one_error(tmp_path: Path, change: Callable[[bytes], bytes], cause: str) -> None:
    path = tmp_path / "history"
    write_recording(str(path), FIRST)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match=cause):
        read_recordings(str(path))


def test_a_record_that_claims_4_gib_is_damage_and_no_lack_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "history"
    owners = {f"[{'x' * 100} {number}]": number for number in range(9)}
    write_recording(str(path), FIRST._replace(parts={"private_bytes": owners}))
    data = bytearray(path.read_bytes())
    cell = data.index(b"[xxx") - len("private_bytes") - 1
    # Of a record its length (2^32 - 1, at which SQLite says that memory is short), the length of its header, the types
    # of its columns: the number 1, a text of 1,000 bytes, an empty text, the number 0.
    record = b"\x8f\xff\xff\xff\x7f" + b"\x06" + b"\x09\x8f\x5d\x0d\x08"
    page = cell - cell % 4096
    first = min(page + int.from_bytes(data[at : at + 2]) for at in range(page + 8, page + 26, 2))
    data[first : first + len(record)] = record
    path.write_bytes(data)
    with pytest.raises(InputError, match="it is damaged, or larger than the memory that is left"):
        read_recordings(str(path))


def test_every_byte_of_a_history_may_be_another_and_nothing_but_our_errors_comes(tmp_path: Path) -> None:
    path = tmp_path / "history"
    write_recording(str(path), FIRST)
    data = path.read_bytes()
    for offset in [*range(100), *range(100, len(data), 97)]:
        path.write_bytes(data[:offset] + bytes([data[offset] ^ 0xFF]) + data[offset + 1 :])
        with suppress(InputError, AccessError):
            read_recordings(str(path))


def test_no_file_is_made_of_the_beginning_of_a_name_with_a_nul(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is not a file"):
        write_recording(f"{tmp_path / 'history'}\0.sqlite", FIRST)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    path = tmp_path / "history"
    with pytest.raises(AccessError, match="No such file"):
        read_recordings(str(path))
    assert not path.exists()
    with pytest.raises(AccessError, match="No such file"):
        write_recording(str(tmp_path / "nowhere" / "history"), FIRST)
    with pytest.raises(InputError, match="it is not a file"):
        write_recording(str(tmp_path), FIRST)


def test_looking_does_not_need_the_right_to_write(tmp_path: Path) -> None:
    path = tmp_path / "history"
    write_recording(str(path), FIRST)
    path.chmod(0o444)
    assert read_recordings(str(path)) == (FIRST,)


def test_writers_at_the_same_time_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "history"
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from footprint.release.history import Recording, Release\n"
        "from footprint.release.history_file import write_recording\n"
        "for number in range(10):\n"
        "    release = Release('server', f'{sys.argv[3]}.{number}', False, number, 'smaps', '0')\n"
        "    write_recording(sys.argv[2], Recording(release, {'private_bytes': 1}, {'private_bytes': {'server': 1}}))\n"
    )
    words = [sys.executable, "-c", code, str(ROOT), str(path)]
    writers = [subprocess.Popen([*words, str(number)]) for number in range(4)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0, 0]
    assert len(read_recordings(str(path))) == 40


# --- the verbs --------------------------------------------------------------------------------------------------------


def test_the_figures_of_an_audit_are_kept_with_their_parts(tmp_path: Path) -> None:
    path = str(tmp_path / "history")
    target = str(SHADOW / "base")
    made = footprint.record(target, path, version="1.0", time="2026-01-01")
    audit = footprint.audit(target)
    assert made.recording.release.program == "base"
    assert made.recording.figures["private_bytes"] == audit.totals.private.bytes
    for figure in ("private_bytes", "per_process_bytes", "mapped_bytes", "mapped_writable_bytes", "kernel_bytes"):
        assert sum(made.recording.parts[figure].values()) == made.recording.figures[figure]
    # Its own segment takes 41 pages, of which one is sealed (RELRO).
    assert made.recording.parts["mapped_writable_bytes"]["libunused.so"] == 40 * 4096


def test_the_time_of_a_release_is_that_of_its_file(tmp_path: Path) -> None:
    target = tmp_path / "text"
    target.write_bytes((ROOT / "tests" / "corpus" / "smaps-sleep.txt").read_bytes())
    os.utime(target, (1_700_000_000, 1_700_000_000))
    made = footprint.record(str(target), str(tmp_path / "history"), commit="c0ffee", program="sleep")
    assert (made.recording.release.time, made.recording.release.is_commit) == (1_700_000_000, True)


@pytest.mark.parametrize("names", [{}, {"version": "1", "commit": "2"}])
def test_a_release_is_a_version_or_a_commit(tmp_path: Path, names: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="one of the two"):
        footprint.record(str(SHADOW / "base"), str(tmp_path / "history"), **names)  # type: ignore[arg-type]


def test_a_text_that_does_not_name_its_program_needs_a_name(tmp_path: Path) -> None:
    target = str(ROOT / "tests" / "corpus" / "smaps-sleep.txt")
    with pytest.raises(UsageError, match="name it with --program"):
        footprint.record(target, str(tmp_path / "history"), version="1")
    with pytest.raises(UsageError, match="is not a name of a version"):
        footprint.record(target, str(tmp_path / "history"), version=" ", program="sleep")


def test_a_program_that_was_never_recorded_is_told_with_those_that_were(tmp_path: Path) -> None:
    path = str(tmp_path / "history")
    write_recording(path, FIRST)
    with pytest.raises(UsageError, match=r"no program 'client': it has server"):
        footprint.trend(path, programs=["client"])
    with pytest.raises(UsageError, match="0 is not a number of releases: the least is 1"):
        footprint.trend(path, last=0)
