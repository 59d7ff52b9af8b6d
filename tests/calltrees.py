"""What tests look up in call trees."""

from collections.abc import Callable, Iterable

from footprint.heap.profile import CallTree, Frame

Name = str | int | None


def stack(tree: CallTree, node: int) -> list[Frame]:
    """Return the frames from the allocation to a node, without the root."""
    found = []
    while node > 0:
        found.append(tree.frame(node))
        node = tree.parents[node]
    return found[::-1]


def flat_amounts(tree: CallTree) -> dict[Name, tuple[int, int | None]]:
    """Return the bytes and blocks of each innermost function, or address."""
    return _added_up(tree, lambda frames: frames[:1])


def amounts_by_function(tree: CallTree) -> dict[Name, tuple[int, int | None]]:
    """Return the bytes and blocks of each function, or address, with those of the functions that it calls."""
    return _added_up(tree, lambda frames: frames)


def _added_up(tree: CallTree, charged: Callable[[list[Frame]], Iterable[Frame]]) -> dict[Name, tuple[int, int | None]]:
    own_bytes, own_blocks = tree.own_bytes(), tree.own_blocks()
    sums: dict[Name, list[int]] = {}
    for node, size_bytes in enumerate(own_bytes):
        count = own_blocks[node] if own_blocks else 0
        if not size_bytes and not count:
            continue
        # A function that calls itself is there once.
        for name in {frame.function or frame.addr for frame in charged(stack(tree, node))}:
            total = sums.setdefault(name, [0, 0])
            total[0] += size_bytes
            total[1] += count
    return {name: (size_bytes, count if own_blocks else None) for name, (size_bytes, count) in sums.items()}
