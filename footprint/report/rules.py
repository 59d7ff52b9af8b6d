"""What each rule looks for and what to do about it, as the formats of other programs want it told."""

from typing import Final, NamedTuple

__all__ = ("BUDGET", "FINDING_RULES", "RULES", "Rule", "rule_of")

BUDGET: Final = "budget-exceeded"


class Rule(NamedTuple):
    """What a rule is about.

    Attributes:
        title: What it finds, in a few words.
        cost: Why that costs memory, in a sentence or two.
        remedy: What to do, in one sentence.
    """

    title: str
    cost: str
    remedy: str


RULES: Final = {
    "unused-library": Rule(
        "A library that is needed by name, and of which nothing is used",
        "Each process loads it with all that it brings in: its data is relocated and written at start, and it has page "
        "tables and mappings of its own.",
        "Link without it, or with -Wl,--as-needed; `footprint whatif --drop` measures what that saves.",
    ),
    "underlinked": Rule(
        "An object that uses a library without needing it by name",
        "It costs nothing by itself, but it breaks when who brings the library in drops it.",
        "Link the object with the library.",
    ),
    "duplicate-static": Rule(
        "Data that a header defines once for each source file",
        "Each source file that includes the header has a copy; those in writable memory are private to each process.",
        "Declare it `extern` and define it in one source file, or make it `inline constexpr`.",
    ),
    "linked-twice": Rule(
        "A library or source file that a process holds several times",
        "Its tables are there once for each object that it was linked into; what is written of them is private.",
        "Link all of them with one shared library.",
    ),
    "large-static": Rule(
        "A large variable that nothing uses, or that could be constant",
        "Pages of .data and .bss are private to each process once they are written.",
        "Remove it, make it constant, or allocate it where it is used.",
    ),
    "relocated-tables": Rule(
        "A table of pointers that the loader writes at each start",
        "Each pointer is moved by the load address, so that its pages are private to each process.",
        "Store offsets or indexes in the place of pointers, or link the program at a fixed address.",
    ),
    "thread-locals": Rule(
        "An object with a page or more of thread-local variables",
        "Each thread of each process has them; with glibc all of them are written when a thread starts.",
        "Allocate them when they are first used, or share what need not be of one thread.",
    ),
    BUDGET: Rule(
        "A figure is larger than its budget allows",
        "The build costs each process more than was agreed on.",
        "Remove what grew, or raise the limit in the budget file, with a reason.",
    ),
}


# Those that look at what a process is made of.
FINDING_RULES: Final = tuple(name for name in RULES if name != BUDGET)


def rule_of(name: str) -> Rule:
    """Give what is known of a rule; one of a later version is known by its name only."""
    return RULES.get(name) or Rule(name, "It costs memory.", "See its message.")
