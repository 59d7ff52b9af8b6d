"""The graph of memory over time, drawn with characters."""

import pytest

from footprint.formats.document import Graph, GraphPoint
from footprint.formats.graph import format_time, graph_lines
from footprint.formats.text import plain
from footprint.terminal import draw

KIB = 1024
# Up by halves to 14 KiB at the peak, and down to nothing.
POINTS = (GraphPoint(0, 0), GraphPoint(100, 7 * KIB, "@"), GraphPoint(200, 14 * KIB, "#"), GraphPoint(300, 0))
GRAPH = Graph(POINTS, "ms", "# the peak, @ with a call tree")


def test_a_graph_in_ascii_has_its_marks_in_the_bars() -> None:
    # Of 23 columns 11 are for labels and margins: 12 for 300 ms, and what there is at the end has the last one.
    assert graph_lines(GRAPH, 23, has_blocks=False) == [
        "  14 KiB ^        #::",
        *["         |        #::"] * 6,
        "   7 KiB ^    @:::#::",
        *["         |    @:::#::"] * 6,
        "     0 B +------------",
        "          0 ms  300 ms",
        "          # the peak, @ with a call tree",
    ]


def bars(lines: list[str]) -> list[str]:
    return [line.rpartition("^")[2].rpartition("|")[2] for line in lines[:14]]


def test_each_column_shows_the_most_of_its_time_and_holds_until_more_is_known() -> None:
    lines = graph_lines(GRAPH, 5 + 6 + 12, has_blocks=False)
    top, half, bottom = bars(lines)[0], bars(lines)[7], bars(lines)[13]
    assert top == "        #::"
    assert half == "    @:::#::"
    assert bottom == "    @:::#::"


def test_no_peak_is_lost_between_columns() -> None:
    points = tuple(GraphPoint(time, 10 if time == 777 else 1) for time in range(1000))
    assert bars(graph_lines(Graph(points, "i", ""), 40, has_blocks=False))[0].count(":") == 1


def test_times_that_go_back_are_drawn_at_the_edge() -> None:
    # Of a damaged profile: its first moment says that it was later than all but the last.
    points = (GraphPoint(900, 14), GraphPoint(0, 7), GraphPoint(850, 7), GraphPoint(1000, 1))
    assert bars(graph_lines(Graph(points, "i", ""), 40, has_blocks=False))[0].strip() == ":"


def test_a_graph_of_blocks_has_its_marks_below_and_shows_eighths_of_a_row() -> None:
    points = (GraphPoint(0, 14 * 8), GraphPoint(1, 1), GraphPoint(2, 3), GraphPoint(3, 0), GraphPoint(4, 0, "#"))
    lines = graph_lines(Graph(points, "s", "# the peak"), 5 + 5 + 10, has_blocks=True)
    assert lines[13].partition("│")[2] == "██▁▁▁▃▃"
    assert lines[0].partition("┤")[2] == "██"
    assert lines[15] == " " * 18 + "#"
    assert lines[16].split() == ["0", "s", "4", "s"]


def test_a_graph_is_as_wide_as_it_may_be_and_no_wider() -> None:
    for width in (40, 80, 120, 200):
        for has_blocks in (False, True):
            lines = graph_lines(GRAPH, width, has_blocks=has_blocks)
            assert max(map(len, lines[:-1])) == width - 1


def test_nothing_at_all_is_an_empty_graph() -> None:
    lines = graph_lines(Graph((GraphPoint(5, 0), GraphPoint(5, 0)), "i", ""), 60, has_blocks=False)
    assert set("".join(bars(lines))) <= {" "}


@pytest.mark.parametrize(
    ("time", "unit", "text"),
    [
        (0, "i", "0 i"),
        (999, "i", "999 i"),
        (3_749_860, "i", "3.75 Mi"),
        (9_430_667_664, "i", "9.43 Gi"),
        (433, "ms", "433 ms"),
        (1500, "ms", "1.50 s"),
        (200_000, "ms", "3 min 20 s"),
        (3600, "s", "1 h"),
        (7_500, "s", "2 h 5 min"),
        (0.467, "s", "0.47 s"),
        (59_990, "ms", "59.99 s"),
        (200_900, "ms", "3 min 20 s"),
        (7540, "s", "2 h 5 min"),
        (2_127_272, "B", "2.03 MiB"),
        (7, "", "7"),
    ],
)
def test_a_time_is_written_with_its_unit(time: float, unit: str, text: str) -> None:
    assert format_time(time, unit) == text


def test_a_pipe_gets_ascii_and_a_terminal_blocks_where_it_has_them() -> None:
    assert plain((GRAPH,)).isascii()
    assert draw((GRAPH,), 80, has_colour=False, has_blocks=False).isascii()
    assert "█" in draw((GRAPH,), 80, has_colour=False, has_blocks=True)
    assert "\x1b[" in draw((GRAPH,), 80, has_colour=True)
