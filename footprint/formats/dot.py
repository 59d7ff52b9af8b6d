"""A directed graph in the language of Graphviz.

Source: https://graphviz.org/doc/info/lang.html: a quoted text ends at `"`; a backslash begins an escape of labels.
"""

from collections.abc import Sequence

from footprint.formats.document import About
from footprint.members import NamedTuple
from footprint.text.escape import printable


class DigraphNode(NamedTuple):
    """A node: the lines of its label, and whether it stands out."""

    lines: tuple[str, ...]
    is_marked: bool = False


class DigraphEdge(NamedTuple):
    """An edge between two nodes by their index, its label, and whether it is drawn dashed."""

    source: int
    target: int
    label: str
    is_dashed: bool = False


class Digraph(NamedTuple):
    """A directed graph: its title, nodes and edges."""

    title: str
    nodes: Sequence[DigraphNode]
    edges: Sequence[DigraphEdge]


def dot(graph: Digraph, _about: About) -> str:
    """Format a graph, from left to right, for `dot -Tsvg`."""
    nodes = [
        f"  n{number} [label={_quoted(*node.lines)}{', style=filled, fillcolor=gold' if node.is_marked else ''}];"
        for number, node in enumerate(graph.nodes)
    ]
    edges = [
        f"  n{edge.source} -> n{edge.target} [label={_quoted(edge.label)}{', style=dashed' if edge.is_dashed else ''}];"
        for edge in graph.edges
    ]
    head = [f"digraph {_quoted(graph.title)} {{", "  rankdir=LR;", "  node [shape=box];"]
    return "\n".join([*head, *nodes, *edges, "}\n"])


def _quoted(*lines: str) -> str:
    # Graphviz reads entities of HTML in labels.
    plain = [printable(line).replace("&", "&amp;") for line in lines]
    safe = [line.replace("\\", "\\\\").replace('"', '\\"') for line in plain]
    return '"' + "\\n".join(safe) + '"'
