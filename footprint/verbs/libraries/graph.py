"""The objects of a process and who needs whom, to be drawn."""

from footprint.formats.dot import Digraph, DigraphEdge, DigraphNode
from footprint.units import format_bytes
from footprint.verbs.libraries.call import Libraries

__all__ = ("libraries_graph",)


def libraries_graph(found: Libraries) -> Digraph:
    """Return a node for each object with its cost and what leaves with it, and an edge for each need.

    An edge has the number of symbols that are used; it is dashed where none is. Objects that nobody uses stand out.
    """
    graph = found.graph
    nodes, edges = [], []
    for number in range(len(graph.objects)):
        is_unused = number not in graph.roots and not graph.bindings.users(number)
        cost = format_bytes(graph.cost_bytes((number,)))
        retained = [] if number in graph.roots else [f"retained {format_bytes(graph.retained_bytes[number])}"]
        nodes.append(DigraphNode((graph.name(number), cost, *retained), is_unused))
        answers = graph.answerers(number)
        for provider in graph.needed[number]:
            count = len(answers.get(provider, ()))
            edges.append(DigraphEdge(number, provider, str(count or ""), not count))
    return Digraph(found.target, nodes, edges)
