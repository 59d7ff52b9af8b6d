"""The text about a rule for the formats of other programs: its title, and its page of the documentation."""

import re
from functools import cache
from typing import Final, NamedTuple

from footprint.findings.registry import rule_named
from footprint.formats.words import rule_page

__all__ = ("BUDGET", "RuleText", "rule_text", "title_of")

BUDGET: Final = "budget-exceeded"
"""The rule of exceeded budgets, which are no findings."""
_BUDGET_TITLE: Final = "A figure is larger than its budget allows"
_BUDGET_PAGE: Final = (
    "**What it is.** A figure, a library or a number of findings is beyond a limit in the budget file.\n\n"
    "**Remedy.** Remove what grew, or raise the limit in the budget file, with a reason."
)
_LINK: Final = re.compile(r"\[([^\]]{1,200})\]\([^)]{1,200}\)")
_WHAT: Final = "**What it is.** "


class RuleText(NamedTuple):
    """The text about a rule.

    Attributes:
        title: The title of the rule.
        what: What it finds, in a sentence or two.
        page: Its page of the documentation, in Markdown: what it is, why it costs, an example, the remedy.
    """

    title: str
    what: str
    page: str


def title_of(name: str) -> str:
    """Return the title of a rule; for an unknown rule, as in a saved audit, its name."""
    if name == BUDGET:
        return _BUDGET_TITLE
    try:
        return rule_named(name).title
    except KeyError:
        return name


@cache
def rule_text(name: str) -> RuleText:
    """Return the text about a rule; its title stands in for a page that is not installed."""
    title = title_of(name)
    # Links between pages of the documentation do not work elsewhere.
    page = _LINK.sub(r"\1", _BUDGET_PAGE if name == BUDGET else rule_page(name))
    paragraph = page.partition("\n\n")[0]
    what = " ".join(paragraph.removeprefix(_WHAT).replace("`", "").split()) if paragraph.startswith(_WHAT) else title
    return RuleText(title, what, page or title)
