"""What tests look up in call trees."""

from footprint.heap import CallTree, Frame


def stack(tree: CallTree, node: int) -> list[Frame]:
    """Return the frames from the allocation to a node, without the root."""
    found = []
    while node > 0:
        found.append(tree.frame(node))
        node = tree.parents[node]
    return found[::-1]
