"""Findings on the memory that one function asked for, as all rules on heap profiles write them."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from footprint.elf.names import shown_name
from footprint.model.heap_account import Share
from footprint.model.row import file_name, is_file
from footprint.text.units import counted, format_bytes

LEAST_BYTES: Final = 16 * 1024
"""Findings are about functions with so much memory."""

_LONGEST_NAME: Final = 120


def requested(share: Share) -> str:
    """Return how much a function asked for: `asks for 50,000 bytes in 1 block`."""
    blocks = "" if share.block_count is None else f" in {counted(share.block_count, 'block')}"
    return f"asks for {share.size_bytes:,} bytes{blocks}"


class FunctionFacts(NamedTuple):
    """The members of a finding that follow from the function alone.

    Attributes:
        subject: Owner and function.
        shown: The name to show: `load of libx.so`.
        object_path: The path of its object; "" where it is not known.
    """

    subject: str
    shown: str
    object_path: str


def function_facts(share: Share) -> FunctionFacts:
    """Return what findings say of a function."""
    name = shown_name(share.function)
    shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
    subject = f"{share.owner} {share.function}"
    if not is_file(share.owner):
        return FunctionFacts(subject, shown, "")
    return FunctionFacts(subject, f"{shown} of {file_name(share.owner)}", share.owner)


def at_most_held(
    saving_bytes: int, reasons: tuple[str, ...], share: Share, held_bytes: Mapping[tuple[str, str], int] | None
) -> tuple[int, tuple[str, ...]]:
    """Limit a saving to what the process surely holds, and add this reason; `held_bytes` is that of `HeapFacts`."""
    own_bytes = saving_bytes if held_bytes is None else held_bytes.get(share[:2], 0)
    if own_bytes >= saving_bytes:
        return saving_bytes, reasons
    return own_bytes, (*reasons, f"of it the process surely holds {format_bytes(own_bytes)}")
