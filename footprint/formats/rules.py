"""The text about a rule for the formats of other programs: its title, and its page of the documentation."""

from functools import cache
from typing import Final, NamedTuple

from footprint.findings.registry import rule_named
from footprint.formats.words import rule_page, without_links

BUDGET: Final = "budget-exceeded"
"""The rule of exceeded budgets, which are no findings."""
RUN_FAILED: Final = "run-failed"
"""The rule of programs that were run and failed, which no budget has to name."""
GROWN_VARIABLE: Final = "grown-variable"
"""The rule of variables that are new or grew, in a comparison."""
TOUCHED_VARIABLE: Final = "touched-variable"
"""The rule of variables as large as before, of which a process writes more."""
NEW_LIBRARY: Final = "new-library"
"""The rule of libraries that are new, in a comparison."""
# Title and page of the rules that are no findings.
_TEXTS: Final = {
    BUDGET: (
        "A figure is larger than its budget allows",
        (
            "**What it is.** A figure, a library or a number of findings is beyond a limit in the budget file.\n\n"
            "**Remedy.** Remove what grew, or raise the limit in the budget file, with a reason."
        ),
    ),
    RUN_FAILED: (
        "The program that was run failed",
        (
            "**What it is.** A signal ended the program, it exited with another code than expected, or it was not read "
            "at its moment. Its figures are those of a failure.\n\n"
            "**Remedy.** Mend the program, or accept the failure by name: `footprint run --allow`."
        ),
    ),
    GROWN_VARIABLE: (
        "A variable is new or grew",
        (
            "**What it is.** A variable of 1 KiB or more is new since the audit before, or grew by as much.\n\n"
            "**Remedy.** Make it smaller, or const, so that all processes share it."
        ),
    ),
    TOUCHED_VARIABLE: (
        "More of a variable is written",
        (
            "**What it is.** A variable is as large as before, and 1 KiB or more of it is private that was not in the "
            "audit before: this process writes pages of it that the other one did not.\n\n"
            "**Remedy.** Write less of it, or find what the process does now and did not do before."
        ),
    ),
    NEW_LIBRARY: (
        "A library is new, with all that it brings in",
        (
            "**What it is.** An object needs a library that was not there before. The libraries that this one needs "
            "came with it, and would leave with it.\n\n"
            "**Remedy.** Do without it, or load it only where it is used (dlopen)."
        ),
    ),
}
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
    if name in _TEXTS:
        return _TEXTS[name][0]
    try:
        return rule_named(name).title
    except KeyError:
        return name


@cache
def rule_text(name: str) -> RuleText:
    """Return the text about a rule; its title stands in for a page that is not installed."""
    title = title_of(name)
    page = without_links(_TEXTS[name][1] if name in _TEXTS else rule_page(name))
    paragraph = page.partition("\n\n")[0]
    what = " ".join(paragraph.removeprefix(_WHAT).replace("`", "").split()) if paragraph.startswith(_WHAT) else title
    return RuleText(title, what, page or title)
