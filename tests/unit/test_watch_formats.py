"""A watch as a trace of Perfetto, as metrics by HTTP, and on a terminal."""

import json
import re
import select
import socket
import threading
import time
from contextlib import ExitStack, suppress

import pytest
from jsonschema import Draft202012Validator
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from footprint.errors import AccessError, Note, UsageError
from footprint.formats.document import About
from footprint.formats.perfetto import Trace, TraceCounter, TraceInstant, TraceProcess, perfetto
from footprint.formats.text import plain, sparkline
from footprint.model.over_time import ProcessCounters
from footprint.series.growth import GrowthKind, GrowthTrend, Slope
from footprint.series.records import (
    AuditKept,
    Began,
    Came,
    Closed,
    Ended,
    GroupPeak,
    NoteRecord,
    OwnersSeen,
    Sampled,
)
from footprint.series.timeline import Timeline
from footprint.verbs.watch.metrics import Listener, timeline_metrics, watch_trace
from footprint.verbs.watch.result import result_of
from footprint.verbs.watch.screen import SortKey, screen_document
from footprint.verbs.watch.text import duration_text, growth_text, tick_line, watch_document
from tests.formatschemas import TRACE_SCHEMA
from tests.hostile import HOSTILE

KIB = 1024
MIB = 1 << 20
BEGAN = Began("server", 1_700_000_000, 1000, 16 * KIB, {"kernel": "6.18", "machine": "x86_64"}, "0.1.0")


def timeline(command: str = "server --port 80", target: str = "server") -> Timeline:
    """Return a watch of 20 s: a process that grows by 1 MiB a second, and a short one that held 100 MiB."""
    result = Timeline(BEGAN._replace(target=target))
    result.add(Came(0, 1, 4711, 1, command))
    for second in range(21):
        size = (10 + second) * MIB
        result.add(Sampled(second * 1000, {1: ProcessCounters(size, 40 * KIB, 0, size, size, 1)}, 5 * second))
        result.add(OwnersSeen(second * 1000, {"[heap]": size - 2 * MIB, "/usr/lib/libx.so": 2 * MIB}))
    result.add(Came(5500, 2, 4712, 4711, "short"))
    result.add(Ended(5510, 2, 100 * MIB, "taskstats", 3))
    result.add(GroupPeak(5600, 130 * MIB, "memory.peak"))
    return result


# --- Perfetto ---------------------------------------------------------------------------------------------------------


def test_a_trace_has_counters_spans_and_instants() -> None:
    found = timeline()
    found.add(AuditKept(2000, "peak", 12 * MIB, ""))
    found.taken.clear()
    events = json.loads(perfetto(watch_trace(result_of(found, None)), About("watch server", "1.2.3")))["traceEvents"]
    names = {(event["pid"], event["args"]["name"]) for event in events if event["ph"] == "M"}
    assert names == {(0, "footprint watch: server"), (1, "server --port 80"), (2, "short")}
    costs = [(event["ts"], event["args"]["bytes"]) for event in events if (event["ph"], event["pid"]) == ("C", 1)]
    assert costs[0] == (0, 10 * MIB + 56 * KIB)
    assert costs[-1] == (20_000_000, 30 * MIB + 56 * KIB)
    (short,) = [event for event in events if (event["ph"], event["pid"]) == ("X", 2)]
    assert (short["ts"], short["dur"]) == (5_500_000, 10_000)
    assert short["args"] == {"pid": 4712, "peak_resident_bytes": 100 * MIB, "exit_code": 3}
    assert [event["name"] for event in events if event["ph"] == "i"] == ["peak"]
    assert {event["name"] for event in events if (event["ph"], event["pid"]) == ("C", 0)} == {
        "cost",
        "owner [heap]",
        "owner /usr/lib/libx.so",
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_a_trace_is_of_its_form_whatever_a_name_is(name: str) -> None:
    process = TraceProcess(name, 0, 5, [TraceCounter(name, [(0, 1)])], {name: name, "size": 1})
    text = perfetto(Trace(process, [process], [TraceInstant(3, name)]), About(name, "1.2.3"))
    Draft202012Validator(TRACE_SCHEMA).validate(json.loads(text))
    assert "\x1b" not in text


# --- OpenMetrics by HTTP ----------------------------------------------------------------------------------------------


def asked(request: bytes) -> bytes:
    """Send a request to a listener, and return its answer."""
    listener = Listener("127.0.0.1:0")
    answers = []

    def ask() -> None:
        with socket.create_connection(("127.0.0.1", listener.port), 10) as connection:
            connection.sendall(request)
            pieces = []
            while piece := connection.recv(65536):
                pieces.append(piece)
            answers.append(b"".join(pieces))

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive():
        listener.answer(timeline())
        asking.join(0.01)
    listener.close()
    return answers[0]


def test_the_figures_of_now_are_openmetrics() -> None:
    head, _, body = asked(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text")
    assert f"Content-Length: {len(body)}".encode() in head
    samples = {
        (sample.name, sample.labels.get("program") or sample.labels.get("owner")): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }
    assert samples["footprint_watch_cost_bytes", None] == 30 * MIB + 56 * KIB
    assert samples["footprint_watch_program_cost_bytes", "server"] == 30 * MIB + 56 * KIB
    assert samples["footprint_watch_program_processes", "server"] == 1
    assert samples["footprint_watch_owner_bytes", "[heap]"] == 28 * MIB
    assert samples["footprint_watch_processes", None] == 1
    assert samples["footprint_watch_processes_seen", None] == 2
    assert samples["footprint_watch_own_cpu_seconds", None] == 0.1


def test_a_process_id_is_no_label_of_a_series() -> None:
    families = timeline_metrics(timeline("/usr/sbin/server --port 80", target="4711"))
    assert {sample.labels["target"] for family in families for sample in family.samples} == {"server"}
    assert timeline_metrics(timeline(target="/usr/sbin/server"))[0].samples[0].labels == {"target": "/usr/sbin/server"}


def test_many_processes_with_many_command_lines_are_few_metrics() -> None:
    many = timeline(target=" ".join(map(str, range(4000, 4500))))
    for number in range(3, 503):
        many.add(Came(21_000, number, 5000 + number, 1, f"/opt/w/worker{number % 50} --job {number}"))
    many.add(Sampled(21_000, {number: ProcessCounters(MIB, 0, 0, MIB, MIB, 0) for number in range(3, 503)}, 0))
    (programs,) = [one for one in timeline_metrics(many) if one.name == "watch_program_cost"]
    assert [sample.labels["program"] for sample in programs.samples][:2] == ["server", "worker0"]
    assert programs.samples[-1].labels["program"] == "[others]"
    assert sum(sample.value for sample in programs.samples) == many.sums.cost_bytes
    every = [sample for family in timeline_metrics(many) for sample in family.samples]
    assert len(every) < 60
    assert max(len(value) for sample in every for value in sample.labels.values()) <= 60
    assert "pid" not in {label for sample in every for label in sample.labels}


def test_other_requests_are_refused() -> None:
    assert asked(b"POST / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9123", 200),
        ("127.0.0.1", 200),
        ("[::1]:9123", 200),
        ("10.0.0.7:9123", 200),
        (socket.gethostname(), 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:9123", 421),
        ("", 421),
    ],
)
def test_only_who_names_this_machine_gets_figures(host: str, status: int) -> None:
    # The name of a stranger's page, which leads to this machine for a moment, is in the Host of a browser.
    answer = asked(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert (b"footprint_watch" in answer) is (status == 200)
    assert (b"--listen" in answer) is (status == 421)  # who is refused by mistake sees what helps


def test_a_hundred_who_are_silent_hold_neither_the_watch_nor_who_asks() -> None:
    listener = Listener("127.0.0.1:0")
    with ExitStack() as opened:
        opened.callback(listener.close)
        silent: list[socket.socket] = []
        for _ in range(4):
            connections = (socket.create_connection(("127.0.0.1", listener.port), 60) for _ in range(25))
            silent += map(opened.enter_context, connections)
            listener.answer(timeline())
        assert {connection.peer.gettimeout() for connection in listener._connections} == {0}  # nobody is waited for
        silent[-1].sendall(b"G")
        asking = opened.enter_context(socket.create_connection(("127.0.0.1", listener.port), 60))
        asking.sendall(b"GET / HTTP/1.0\r\n\r\n")
        # It is answered in the turn after the request has come.
        for _ in range(1000):
            listener.answer(timeline())
            readable, _, _ = select.select([asking], [], [], 0.05)
            if readable:
                break
        assert asking.recv(100).startswith(b"HTTP/1.1 200 OK")
        # Those who have been silent longest were sent away, so that there is room for others.
        readable, _, _ = select.select(silent, [], [], 0)
        assert len(readable) >= 68
        assert silent[-1] not in readable


def test_who_is_slow_is_sent_away_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener("127.0.0.1:0")
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with socket.create_connection(("127.0.0.1", listener.port), 60) as asking:
        for _ in range(40):
            asking.sendall(b"G")
            listener.answer(timeline())
            now[0] += 0.1
            if select.select([asking], [], [], 0)[0]:
                break
        assert now[0] < 5
        now[0] = 6
        listener.answer(timeline())
        with suppress(ConnectionResetError):
            assert asking.recv(100) == b""
    listener.close()


def test_an_address_that_is_none_or_taken_is_an_error() -> None:
    for address in ("9123", "127.0.0.1", "127.0.0.1:", ":9123", "127.0.0.1:99999", "127.0.0.1:x", "127.0.0.1:\u00b2"):
        with pytest.raises(UsageError):
            Listener(address)
    one = Listener("127.0.0.1:0")
    with pytest.raises(AccessError, match="in use"):
        Listener(f"127.0.0.1:{one.port}")
    one.close()


# --- text -------------------------------------------------------------------------------------------------------------


def test_the_report_has_the_peak_the_growth_with_its_owner_and_the_short_process() -> None:
    text = " ".join(plain(watch_document(result_of(timeline(), None))).split())
    assert "peak 130 MiB measured (memory.peak), without page cache" in text
    assert "peak of the ticks 30.1 MiB at 20.0 s" in text
    assert "trend 3.52 GiB/h it grows" in text
    assert re.search(r"3.52 GiB/h 3.52 GiB/h 100 % grows \[heap\]", text)
    assert "100 MiB taskstats - 10 ms 4712 short" in text
    assert text.endswith("server grows 3.52 GiB/h, all of it [heap]; its peak is 130 MiB.")


def test_what_has_no_trend_has_no_rate() -> None:
    result = Timeline(BEGAN)
    result.add(Came(0, 1, 4711, 1, "server"))
    for second in range(30):
        size = 10 * MIB
        result.add(Sampled(second * 1000, {1: ProcessCounters(size, 0, 0, size, size, 1)}, 0))
        text = " ".join(plain(watch_document(result_of(result, None))).split())
        screen = " ".join(plain(screen_document(result, SortKey.COST, 5, has_blocks=True)).split())
        if second < 7:
            assert "trend unknown it was watched too short to tell whether it grows" in text
            assert "trend unknown" in screen
    assert "trend steady it does not grow" in text
    assert "trend steady does not grow" in screen


def test_what_a_program_frees_at_its_exit_does_not_hide_its_growth() -> None:
    result = timeline()
    result.add(Sampled(21_000, {1: ProcessCounters(5 * MIB, 0, 0, 5 * MIB, 5 * MIB, 1)}, 0))
    result.add(Ended(21_010, 1, 30 * MIB, "taskstats", 0))
    result.add(Closed(21_020, 2, 2, "events"))
    result.add(OwnersSeen(21_005, {"[heap]": 0, "/usr/lib/libx.so": 2 * MIB}))
    assert result.growth().kind is GrowthKind.GROWS
    assert [one.growth.kind for one in result.owner_growth()] == [GrowthKind.GROWS]


def test_processes_of_one_command_are_one_row_and_what_is_hidden_is_counted() -> None:
    result = timeline("/usr/lib/jvm/bin/java -jar \n  /srv/some/where/else.jar --port 80")
    for number in range(3, 43):
        result.add(Came(6000, number, 5000 + number, 4711, "bash"))
        result.add(Ended(6100, number, number * MIB, "taskstats", 0, 7))
    text = plain(watch_document(result_of(result, None)))
    assert re.search(
        r"30 MiB +status +30.1 MiB +20.0 s\+ +4711 +java -jar /srv/some/wh[a-z/]*\.\.\.$", text, re.MULTILINE
    )
    assert re.search(r"42 MiB  taskstats +- +7 ms +5042 +bash \[1 of 40\]$", text, re.MULTILINE)
    assert max(map(len, text[text.index("Processes") :].splitlines())) <= 80
    text = plain(watch_document(result_of(result, None), top=2))
    assert "[1 more: --top 0 shows all]" in text


def test_a_note_of_the_watch_is_in_the_report() -> None:
    found = timeline()
    found.add(NoteRecord(1, Note("clock-set", "server", "the clock was set by +3600 s")))
    assert "clock-set: the clock was set by +3600 s" in plain(watch_document(result_of(found, None)))


def test_a_long_command_is_cut_in_the_title() -> None:
    heading = plain(watch_document(result_of(timeline(target="x " * 100), None))).strip().splitlines()[0]
    assert len(heading) < 100


def test_the_screen_has_a_sparkline_and_the_processes_in_an_order() -> None:
    text = plain(screen_document(timeline(), SortKey.COST, 5, has_blocks=True))
    assert "▁" in text
    assert "█" in text
    assert "s: sort (by cost)  a: audit now  q: end" in text
    assert "1 process, 1 ended" in text
    assert re.search(r"30.1 MiB +30.1 MiB +\+20 MiB +4711 +server --port 80", text)
    assert [SortKey.COST.next, SortKey.PID.next] == [SortKey.PEAK, SortKey.COST]


def test_each_order_of_the_screen_is_what_it_is_called() -> None:
    result = Timeline(BEGAN)
    for number, sizes in ((1, (30, 20, 20)), (2, (10, 10, 25)), (3, (5, 4, 3))):
        result.add(Came(0, number, 100 - number, 1, f"p{number}"))
        for second, size in enumerate(sizes):
            result.add(Sampled(second * 1000, {number: ProcessCounters(size * MIB, 0, 0, 0, 0, 0)}, 0))
    orders = {
        sort: re.findall(r"\bp\d$", plain(screen_document(result, sort, 3, has_blocks=False)), re.MULTILINE)
        for sort in SortKey
    }
    assert orders == {
        SortKey.COST: ["p2", "p1", "p3"],
        SortKey.PEAK: ["p1", "p2", "p3"],
        SortKey.CHANGE: ["p2", "p3", "p1"],
        SortKey.PID: ["p3", "p2", "p1"],
    }


def test_times_and_ticks_are_short() -> None:
    assert [duration_text(ms) for ms in (850, 12_300, 200_000, 7_500_000)] == [
        "850 ms",
        "12.3 s",
        "3 min 20 s",
        "2 h 5 min",
    ]
    assert tick_line(timeline()).split("  ")[-1] == "1 process"


def test_a_sparkline_shows_the_newest_values() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 4, has_blocks=False) == "_-=#"
    assert sparkline([5, None, 5], 4, has_blocks=True) == "▄ ▄"
    assert sparkline([], 4, has_blocks=True) == ""


def test_an_interval_of_one_figure_is_written_once() -> None:
    # 3 MiB an hour in each pair of points, and a trend that is known less exactly.
    exact, rate = Slope(873.8, 873.8, 873.8), Slope(873.8, 800.0, 950.0)
    assert growth_text(GrowthTrend(GrowthKind.GROWS, exact, 0), []) == "grows 3.00 MiB/h"
    assert growth_text(GrowthTrend(GrowthKind.GROWS, rate, 0), []) == "grows 3.00 MiB/h (2.75 MiB/h to 3.26 MiB/h)"
