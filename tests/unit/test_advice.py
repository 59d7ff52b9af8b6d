"""What an audit proposes first: each byte in one proposal, and what the user builds before what packages bring."""

from footprint.model.finding import Confidence, Finding, advice_of

KIB = 1024
TABLES = "hold offsets instead of pointers"
SERVER, LIBRARY = "/srv/app/server", "/srv/app/libxml.so"
PACKAGED = "/usr/lib/x86_64-linux-gnu/libicuuc.so.72"


def finding(rule: str, subject: str, kib: float, path: str, remedy: str = TABLES, **more: object) -> Finding:
    more = {"confidence": Confidence.MEDIUM, "reasons": ()} | more
    return Finding(rule, "object", subject, f"{subject}.", int(kib * KIB), remedy=remedy, object=path, **more)  # type: ignore[arg-type]


def test_what_leaves_with_a_library_is_not_saved_by_another_remedy_again() -> None:
    drop = finding("unused-library", "libxml.so", 136, SERVER, "drop -lxml", leaves=(LIBRARY, PACKAGED))
    tables = [finding("relocated-tables", "x", 60, LIBRARY), finding("relocated-tables", "u", 64, PACKAGED)]
    advice = advice_of([*tables, drop])
    assert [(one.rule, one.saving_bytes) for one in advice.savings] == [("unused-library", 136 * KIB)]
    assert (advice.packaged_bytes, advice.packaged_count) == (0, 0)


def test_a_removal_counts_first_even_where_tables_of_what_leaves_seem_larger() -> None:
    drop = finding("unused-library", "libxml.so", 8, SERVER, "drop -lxml", leaves=(LIBRARY,))
    advice = advice_of([finding("relocated-tables", "x", 60, LIBRARY), drop])
    assert [one.rule for one in advice.savings] == ["unused-library"]


def test_a_variable_that_two_rules_name_is_saved_once_by_the_larger() -> None:
    both = [finding("mutable-constant", "table", 1, SERVER, "const"), finding("relocated-tables", "table", 8, SERVER)]
    assert [(one.rule, one.saving_bytes) for one in advice_of(both).savings] == [("relocated-tables", 8 * KIB)]


def test_findings_of_one_remedy_are_one_saving_with_the_weakest_confidence() -> None:
    first = finding("relocated-tables", "small", 4, SERVER, confidence=Confidence.HIGH)
    second = finding("relocated-tables", "large", 12, LIBRARY)
    (saving,) = advice_of([first, second]).savings
    assert (saving.subjects, saving.saving_bytes, saving.confidence) == (("large", "small"), 16 * KIB, "medium")


def test_files_of_packages_are_told_apart_but_not_the_audited_program() -> None:
    program = "/usr/sbin/server"
    some = [finding("relocated-tables", "libicuuc", 52, PACKAGED), finding("relocated-tables", "server", 4, program)]
    advice = advice_of(some, program)
    assert [one.subjects for one in advice.savings] == [("server",)]
    assert (advice.packaged_bytes, advice.packaged_count) == (52 * KIB, 1)
    assert advice_of(some).packaged_count == 2


def test_a_saving_of_the_least_size_is_one_of_the_largest() -> None:
    findings = [finding("relocated-tables", "x", 4, SERVER), finding("large-static", "y", 3, SERVER, "shrink it")]
    advice = advice_of(findings, least_bytes=4 * KIB)
    assert ([saving.saving_bytes for saving in advice.savings], advice.rest_bytes) == ([4 * KIB], 3 * KIB)


def test_what_saves_nothing_or_only_perhaps_is_no_advice() -> None:
    low = finding("unused-library", "libcap.so", 24, SERVER, confidence=Confidence.LOW, leaves=(LIBRARY,))
    blocked = finding("unused-library", "libz.so", 24, SERVER, confidence=Confidence.BLOCKED, leaves=("/srv/libz.so",))
    assert advice_of([low, blocked, finding("large-static", "x", 0, SERVER)]).savings == ()
