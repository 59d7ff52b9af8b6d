"""The file of a series: what was written is read, whatever happened; it stays small, and keeps what matters."""

import errno
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from footprint.errors import AccessError, InputError, Note
from footprint.model.over_time import ProcessCounters
from footprint.series import looks_like_series
from footprint.series.file import SeriesFile, read_series, thinned
from footprint.series.growth import KeptMapping, MappingGrowth, grown_mappings, largest_mappings
from footprint.series.moments import audit_at, over_time_of
from footprint.series.records import (
    AuditKept,
    Began,
    Came,
    Closed,
    Ended,
    GroupPeak,
    NoteRecord,
    Omitted,
    OwnersSeen,
    Record,
    Sampled,
    line_of,
    packed,
)
from footprint.series.timeline import Course, Timeline

KIB = 1024
MIB = 1 << 20
BEGAN = Began("4711", 1_700_000_000, 1000, 16 * KIB, {"kernel": "6.18", "machine": "x86_64"}, "0.1.0")


def figures(private_bytes: int, peak_bytes: int = 0) -> ProcessCounters:
    return ProcessCounters(private_bytes, 40 * KIB, 0, private_bytes, peak_bytes or private_bytes, 1)


def tick(ms: int, **private: int) -> Sampled:
    return Sampled(ms, {int(name[1:]): figures(size) for name, size in private.items()}, ms // 100)


EVERY: tuple[Record, ...] = (
    BEGAN,
    Came(0, 1, 4711, 1, "server --port 8080"),
    Sampled(0, {1: ProcessCounters(1 * MIB, 40 * KIB, 8 * KIB, 2 * MIB, 3 * MIB, 2)}, 3),
    AuditKept(1, "start", 2 * MIB, packed('{"schema": "footprint/1", "moment": 1}')),
    OwnersSeen(1, {"[heap]": 1 * MIB, "/usr/lib/libx\udcff.so": 4096}),
    GroupPeak(500, 9 * MIB, "memory.peak"),
    NoteRecord(600, Note("clock-set", "4711", "the clock was set by +3600 s")),
    Omitted(700, 12),
    Ended(800, 1, 3 * MIB, "taskstats", 0),
    AuditKept(
        900, "end", 3 * MIB, packed('{"schema": "footprint/1", "moment": 2}'), {"4711 7f00-8000 [heap] \udcff": 3 * MIB}
    ),
    Closed(1000, 20, 18, "events"),
)


def written(records: Sequence[Record]) -> bytes:
    return b"".join(map(line_of, records))


def test_every_record_is_read_as_it_was_written() -> None:
    assert tuple(read_series(written(EVERY), "x.fps")) == EVERY
    assert tuple(read_series(memoryview(written(EVERY)), "x.fps")) == EVERY
    assert looks_like_series(written(EVERY)[:64])


def test_each_line_is_json() -> None:
    for line in written(EVERY).splitlines():
        assert isinstance(json.loads(line), dict)


def test_what_was_written_before_a_kill_is_read() -> None:
    data = written(EVERY)
    for length in range(len(line_of(BEGAN)), len(data)):
        cut = data[:length]
        assert tuple(read_series(cut, "x.fps")) == EVERY[: cut.count(b"\n")]


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "not one whole line"),
        (line_of(BEGAN)[:-1], "not one whole line"),
        (line_of(EVERY[1]), "line 1: a series begins"),
        (line_of(BEGAN) + line_of(BEGAN), "line 2: a series begins"),
        (line_of(BEGAN) + b"{\n", "line 2 is not JSON"),
        (line_of(BEGAN) + b"[1]\n", "line 2 is not an object"),
        (line_of(BEGAN) + b"{}\n", "line 2 is no record"),
        (line_of(BEGAN) + b'{"figures":{"1":[1,2]},"ms":1,"own_cpu_ms":0}\n', "six numbers"),
        (
            line_of(BEGAN) + b'{"figures":{"1":[1,2,3,4,5,-6]},"ms":1,"own_cpu_ms":0}\n',
            r"line 2: `figures\[5\]` is not a size",
        ),
        (line_of(BEGAN) + b'{"owners":{"x":null},"ms":1}\n', "line 2: `owners` is not a size"),
        (line_of(BEGAN).replace(b'"series":1', b'"series":2'), "another footprint"),
    ],
)
def test_a_damaged_series_is_an_error_with_its_place(data: bytes, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        list(read_series(data, "x.fps"))


def test_the_audits_of_a_series_have_names() -> None:
    data = written(EVERY)
    assert json.loads(audit_at(data, "x.fps", None)[0])["moment"] == 2
    assert json.loads(audit_at(data, "x.fps", "start")[0])["moment"] == 1
    assert json.loads(audit_at(data, "x.fps", "0.5s")[0])["moment"] == 1
    assert json.loads(audit_at(data, "x.fps", "2s")[0])["moment"] == 2
    with pytest.raises(InputError, match=r"no audit of the moment 'peak': it has start \(0.001s\), end \(0.9s\)"):
        audit_at(data, "x.fps", "peak")
    with pytest.raises(InputError, match="it has no audit"):
        audit_at(line_of(BEGAN), "x.fps", None)


@pytest.mark.parametrize("text", ["", "not base64!", "AAAA", packed("{}")[:-8]])
def test_a_damaged_audit_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match=r"damaged|cut"):
        AuditKept(0, "start", 0, text).answer("x.fps")


# --- thinning ---------------------------------------------------------------------------------------------------------


def test_thinning_keeps_every_second_tick_the_peak_the_ends_and_the_last_state() -> None:
    records: list[Record] = [
        BEGAN,
        Came(0, 1, 1, None, "a"),
        Came(0, 2, 2, None, "b"),
        tick(1000, n1=10, n2=10),
        tick(2000, n1=20),
        tick(3000, n1=99, n2=99),
        tick(4000, n1=40),
        tick(5000, n2=50),
        Ended(5500, 2, 99, "taskstats", 0),
        tick(6000, n1=60),
        tick(7000, n1=70),
    ]
    result = list(thinned(lambda: records))
    ticks = [one for one in result if isinstance(one, Sampled)]
    # The peak is at 3 s, the last tick before an end at 5 s, and the last of all at 7 s.
    assert [one.ms for one in ticks] == [2000, 3000, 4000, 5000, 6000, 7000]
    # What changed at a tick that is left out is in the next one.
    assert ticks[0].figures == {1: figures(20), 2: figures(10)}
    before, after = Timeline.of(records, "x"), Timeline.of(result, "x")
    assert after.peak_bytes == before.peak_bytes
    assert after.peak_ms == before.peak_ms
    assert after.sums.cost_bytes == before.sums.cost_bytes


def test_thinning_keeps_the_audits_of_the_ends_the_last_peak_and_those_asked_for() -> None:
    moments = ["start", "peak", "growth", "signal", "peak", "growth", "end"]
    records: list[Record] = [BEGAN, *(AuditKept(ms, moment, 0, "") for ms, moment in enumerate(moments))]
    assert [one.ms for one in thinned(lambda: records) if isinstance(one, AuditKept)] == [0, 3, 4, 6]


def test_of_many_processes_thinning_keeps_those_that_held_most() -> None:
    ended: list[Record] = []
    for number in range(3000):
        ended += [Came(number, number, number, None, "x"), Ended(number, number, number * KIB, "taskstats", 0)]
    found = list(thinned(lambda: [BEGAN, *ended]))
    kept = [one.number for one in found if isinstance(one, Ended)]
    assert kept == list(range(2000, 3000))
    assert Timeline.of(found, "x").process_count == 3000
    # Once more: those that were left out before still count.
    assert Timeline.of(thinned(lambda: found), "x").process_count == 3000


def test_the_file_of_a_day_stays_within_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "day.fps"
    file = SeriesFile(str(path), 200 * KIB)
    file.add([BEGAN, *(Came(0, number, number, None, "worker") for number in range(10))])
    largest = 0
    peak_bytes = 10 * 300 * MIB
    for second in range(3000):
        size = 300 * MIB if second == 777 else 100 * MIB + second * KIB
        file.add([tick(second * 1000, **{f"n{number}": size for number in range(10)})])
        largest = max(largest, path.stat().st_size)
    file.close()
    assert largest < 210 * KIB
    found = Timeline.of(read_series(path.read_bytes(), "day.fps"), "day.fps")
    assert found.ms == 2_999_000
    assert found.peak_ms == 777_000
    assert found.peak_bytes == peak_bytes + 10 * (40 + 16) * KIB
    assert found.sums.cost_bytes == 10 * (100 * MIB + 2999 * KIB + 56 * KIB)
    assert file.notes == []


def test_where_the_disk_is_full_the_series_stays_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.fps"
    file = SeriesFile(str(path), MIB)
    file.add(EVERY[:3])
    write = os.pwrite

    def full(descriptor: int, data: bytes, offset: int) -> int:
        if len(data) > 10:
            return write(descriptor, data[:10], offset)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    file.add([tick(1000, n1=1)])
    file.add([tick(2000, n1=2)])
    monkeypatch.setattr(os, "pwrite", write)
    file.add([tick(3000, n1=3)])
    file.close()
    assert tuple(read_series(path.read_bytes(), "x.fps")) == (*EVERY[:3], tick(3000, n1=3))
    (note,) = file.notes
    assert note.slug == "series-incomplete"


def test_a_series_whose_begin_the_disk_refused_has_all_that_later_ticks_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "x.fps"
    file = SeriesFile(str(path), MIB)
    a, b, c = (Came(0, number, number, None, name) for number, name in enumerate("abc", start=1))
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        file.add([BEGAN, a, b])
        file.add([c])
        file.add([tick(1000, n1=MIB, n2=2 * MIB, n3=3 * MIB)])
        # The third comes and ends without a trace.
        file.add([Ended(1500, 3, MIB, "taskstats", 0)])
    file.add([tick(2000, n2=5 * MIB)])
    file.close()
    assert tuple(read_series(path.read_bytes(), "x.fps")) == (BEGAN, a, b, tick(2000, n1=MIB, n2=5 * MIB))
    (note,) = file.notes
    assert note.slug == "series-incomplete"


def test_what_still_fits_on_a_full_disk_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.fps"
    file = SeriesFile(str(path), MIB)
    write = os.pwrite

    def full(descriptor: int, data: bytes, offset: int) -> int:
        if len(data) > 10_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    file.add(EVERY[:3])
    file.add([AuditKept(900, "end", MIB, "A" * 10_000), *EVERY[-1:]])
    file.close()
    assert tuple(read_series(path.read_bytes(), "x.fps")) == (*EVERY[:3], EVERY[-1])
    (note,) = file.notes
    assert note.slug == "series-incomplete"


# --- what it comes to -------------------------------------------------------------------------------------------------


def test_the_cost_is_private_memory_page_tables_and_stacks_of_all_processes() -> None:
    result = Timeline.of([BEGAN, Came(0, 1, 1, None, "a"), Came(0, 2, 2, None, "b"), tick(0, n1=MIB, n2=MIB)], "x")
    assert result.sums.cost_bytes == 2 * (MIB + 40 * KIB + 16 * KIB)
    result.add(Ended(10, 1, 5 * MIB, "taskstats", 0))
    assert result.sums.cost_bytes == MIB + 40 * KIB + 16 * KIB
    assert result.peak_bytes == 2 * (MIB + 56 * KIB)
    assert result.ended[1].peak_resident_bytes == 5 * MIB
    assert (result.process_count, result.most_process_count, len(result.alive)) == (2, 2, 1)


def test_ninety_five_percent_of_the_time_counts_time_and_not_ticks() -> None:
    # 10 s at 1 MiB, then many ticks within half a second at 9 MiB.
    ticks = [tick(0, n1=MIB), *(tick(10_000 + ms, n1=9 * MIB) for ms in range(0, 500, 10))]
    found = Timeline.of([BEGAN, Came(0, 1, 1, None, "a"), *ticks], "x")
    assert found.usual_most_bytes == MIB + 56 * KIB


def test_the_audit_of_ninety_five_percent_is_the_nearest_to_that_cost() -> None:
    kept = [AuditKept(ms, "peak", size, packed(f'{{"schema": "footprint/1", "at": {ms}}}')) for ms, size in SIZES]
    ticks = [tick(ms, n1=size) for ms, size in SIZES]
    records: list[Record] = [BEGAN, Came(0, 1, 1, None, "a"), *ticks, *kept]
    answer, over_time = audit_at(written(records), "x.fps", "95%")
    # 9 MiB was there for 400 of 10,000 ms.
    assert json.loads(answer)["at"] == 5000
    assert over_time.usual_most_bytes == 5 * MIB + 56 * KIB
    assert over_time.peak_bytes == 9 * MIB + 56 * KIB
    assert over_time.most_process_count == 1


SIZES = [(0, 4 * MIB), (5000, 5 * MIB), (9600, 9 * MIB), (10_000, 4 * MIB)]


@pytest.mark.parametrize(
    ("growth", "hourly"),
    [(lambda at: at * MIB, 3600 * MIB), (lambda at: min(at, 20) * MIB, 0), (lambda at: (60 - at) * MIB, 0)],
)
def test_only_what_goes_on_growing_has_a_growth_in_an_hour(growth: Callable[[int], int], hourly: int) -> None:
    ticks = [tick(at * 1000, n1=growth(at)) for at in range(60)]
    over_time = over_time_of(Timeline.of([BEGAN, Came(0, 1, 1, None, "a"), *ticks], "x"))
    assert over_time.hourly_growth_bytes == hourly
    assert (over_time.hourly_trend is None) is not bool(hourly)


def test_an_owner_that_comes_later_held_nothing_before() -> None:
    seen = [OwnersSeen(ms * 1000, {"[heap]": MIB} | ({"libx.so": ms * MIB} if ms > 2 else {})) for ms in range(10)]
    (grown,) = Timeline.of([BEGAN, *seen], "x").owner_growth()
    assert (grown.owner, grown.first_bytes, grown.last_bytes) == ("libx.so", 0, 9 * MIB)


def began() -> Timeline:
    (first,) = (one for one in EVERY if isinstance(one, Began))
    return Timeline(first)


def test_of_owners_that_never_end_those_beyond_a_thousand_are_one() -> None:
    result = began()
    for place in range(3):
        names = {f"/srv/{place}-{number}": 1 for number in range(600)}
        result.add(OwnersSeen(1000 * place, {"[heap]": MIB, **names}))
    assert len(result.owners) == 1001
    assert result.owners["[heap]"].values == [MIB] * 3
    assert result.owners["[others]"].values == [0, 201, 600]


def test_a_series_whose_times_go_back_and_whose_sums_are_huge_is_read() -> None:
    found = began()
    found.add(Came(0, 1, 4711, None, "server"))
    for ms in (0, *range(2000, 1000, -10), 3000):
        found.add(tick(ms, n1=(1 << 62) - ms))
    assert found.growth().slope is not None


def test_two_watches_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "x.fps"
    file = SeriesFile(str(path), 2000)
    file.add(EVERY[:3])
    with pytest.raises(AccessError, match="another watch writes it"):
        SeriesFile(str(path), 2000)
    # Thinning replaces the file.
    file.add([tick(ms, n1=1) for ms in range(0, 100_000, 1000)])
    with pytest.raises(AccessError, match="another watch writes it"):
        SeriesFile(str(path), 2000)
    file.close()
    assert len(tuple(read_series(path.read_bytes(), "x.fps"))) > 10
    SeriesFile(str(path), 2000).close()


def test_a_file_that_somebody_else_has_changed_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "x.fps"
    file = SeriesFile(str(path), 2000)
    file.add(EVERY[:3])
    path.write_bytes(b"")
    file.add([tick(ms, n1=1) for ms in range(0, 100_000, 1000)])
    file.close()
    (note,) = file.notes
    assert note.slug == "series-incomplete"
    assert "line 1 is not JSON" in note.detail


def test_values_over_time_are_bounded() -> None:
    course = Course(8)
    for ms in range(100):
        course.add(ms, ms)
    assert len(course.values) <= 8
    assert course.points == sorted(course.points)
    assert course.values[-1] > 80


def mapping(start_mib: int, end_mib: int, name: str = "", pid: int = 7) -> str:
    return KeptMapping(pid, start_mib * MIB, end_mib * MIB, name).key


def test_a_mapping_that_grows_at_either_end_is_the_same() -> None:
    before = {mapping(10, 12, "[heap]"): 2 * MIB, mapping(100, 104): 4 * MIB, mapping(200, 201): MIB}
    now = {mapping(10, 15, "[heap]"): 5 * MIB, mapping(97, 104): 6 * MIB, mapping(200, 201): MIB}
    assert grown_mappings(before, now) == [
        MappingGrowth(7, 10 * MIB, 15 * MIB, "[heap]", 2 * MIB, 5 * MIB, 3 * MIB),
        MappingGrowth(7, 97 * MIB, 104 * MIB, "", 4 * MIB, 6 * MIB, 2 * MIB),
    ]


def test_neighbours_that_the_kernel_joined_held_what_both_held() -> None:
    before = {mapping(10, 12): 2 * MIB, mapping(12, 14): MIB}
    assert grown_mappings(before, {mapping(10, 15): 4 * MIB}) == [
        MappingGrowth(7, 10 * MIB, 15 * MIB, "", 3 * MIB, 4 * MIB, MIB)
    ]
    assert grown_mappings(before, {mapping(10, 14): 3 * MIB}) == []


def test_a_mapping_of_another_process_at_the_same_addresses_is_new() -> None:
    grown = grown_mappings({mapping(10, 12, pid=7): MIB}, {mapping(10, 12, pid=8): MIB})
    assert grown == [MappingGrowth(8, 10 * MIB, 12 * MIB, "", 0, MIB, MIB)]


def test_what_was_too_small_to_be_kept_held_no_more_than_the_smallest_that_was() -> None:
    before = largest_mappings((KeptMapping(7, at * MIB, (at + 1) * MIB, ""), 4096 * (at + 1)) for at in range(1001))
    assert len(before) == 1000
    now = {mapping(0, 1): 5 * 4096}
    assert grown_mappings(before, now) == [MappingGrowth(7, 0, MIB, "", 2 * 4096, 5 * 4096, 3 * 4096)]


@pytest.mark.parametrize("key", ["", "7", "7 10-20", "x 10-20 [heap]", "7 10-zz name", "7 -10-20 name"])
def test_a_mapping_without_its_pid_range_and_name_is_damaged(key: str) -> None:
    line = line_of(AuditKept(0, "start", 1, "", {key: 1}))
    with pytest.raises(InputError, match="mappings"):
        list(read_series(line_of(BEGAN) + line, "x.fps"))
