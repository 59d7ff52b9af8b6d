"""What each rule looks for, as the formats of other programs want it told: from the pages of the documentation."""

import re
from functools import cache
from typing import Final, NamedTuple

from footprint.errors import UsageError
from footprint.model.finding import RULES
from footprint.verbs.explain.words import explain

__all__ = ("BUDGET", "FINDING_RULES", "Rule", "rule_of", "title_of")

BUDGET: Final = "budget-exceeded"
_TITLES: Final = {
    "unused-library": "A library that is needed by name, and of which nothing is used",
    "underlinked": "An object that uses a library without needing it by name",
    "duplicate-static": "Data that a header defines once for each source file",
    "linked-twice": "A library or source file that a process holds several times",
    "large-static": "A large variable that nothing uses, or that could be elsewhere",
    "relocated-tables": "A table of addresses that the loader writes at each start",
    "thread-locals": "An object with many thread-local variables",
    "heap-at-start": "Memory of the allocator that is filled once, or kept from the start",
    BUDGET: "A figure is larger than its budget allows",
}
_OF_BUDGETS: Final = (
    "**What it is.** A figure, a library or a number of findings is beyond a limit in the budget file.\n\n"
    "**Remedy.** Remove what grew, or raise the limit in the budget file, with a reason."
)
# Those that look at what a process is made of.
FINDING_RULES: Final = RULES
_LINK: Final = re.compile(r"\[([^\]]{1,200})\]\([^)]{1,200}\)")
_WHAT: Final = "**What it is.** "


class Rule(NamedTuple):
    """What is known of a rule.

    Attributes:
        title: What it finds, in a few words.
        what: The same in a sentence or two.
        page: All that the documentation says, in Markdown: what it is, why it costs, an example, the remedy.
    """

    title: str
    what: str
    page: str


def title_of(name: str) -> str:
    """Give what a rule finds, in a few words; one of a later version is known by its name only."""
    return _TITLES.get(name, name)


@cache
def rule_of(name: str) -> Rule:
    """Give what is known of a rule; without the pages of the documentation that is its title."""
    title = title_of(name)
    page = _OF_BUDGETS if name == BUDGET else _page(name)
    paragraph = page.partition("\n\n")[0]
    what = " ".join(paragraph.removeprefix(_WHAT).replace("`", "").split()) if paragraph.startswith(_WHAT) else title
    return Rule(title, what, page or title)


def _page(name: str) -> str:
    try:
        found = [one for one in explain(name) if one.subject == "Findings"]
    except UsageError:
        return ""
    # A link of the documentation leads nowhere elsewhere.
    return _LINK.sub(r"\1", found[0].text) if found else ""
