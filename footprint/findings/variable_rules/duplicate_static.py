"""Rule `duplicate-static`: data that exists once for each source file, such as what a header defines."""

from collections.abc import Iterable
from typing import Final

from footprint.elf import shown_name
from footprint.elf.names import lacks_function
from footprint.findings.copies import PLAIN_TYPE, THREAD_GUARD, UNNAMED, CopiedVariable, CopyOrigin, Cost
from footprint.findings.registry import Fact, Rule
from footprint.findings.variables import Variables
from footprint.model.finding import Confidence, Finding
from footprint.units import counted, format_bytes

__all__ = ("RULE", "duplicate_findings")


def _find(variables: Variables) -> tuple[Finding, ...]:
    return tuple(finding for file in variables.files for finding in duplicate_findings(file.copies))


RULE: Final = Rule("duplicate-static", "Data that a header defines once for each source file", (Fact.VARIABLES,), _find)


def duplicate_findings(copies: Iterable[CopiedVariable]) -> tuple[Finding, ...]:
    """Return what the copies in a file cost and how to have only one; stream initialisers are only counted."""
    return tuple([_finding(one) for one in copies if one.origin is not CopyOrigin.STREAM_INIT])


def _finding(one: CopiedVariable) -> Finding:
    owner = one.file.rsplit("/", 1)[-1]
    inside = f" in {shown_name(one.function)}" if one.function and lacks_function(one.name, one.function) else ""
    message = f"{counted(len(one.copies), 'copy')} of {one.shown_name}{one.bounds}{inside}, "
    message += f"{format_bytes(one.size_bytes)} each, "
    when = one.cost.value
    if len(one.waste) > 1:
        when = ", ".join(f"{format_bytes(size_bytes)} {cost.value}" for cost, size_bytes in one.waste.items())
    message += f"in {one.section} of {owner}: {format_bytes(one.waste_bytes)} more than one takes, {when}"
    if one.private_bytes is not None and (one.private_bytes or one.cost is not Cost.SHARED):
        part = f"{format_bytes(one.private_bytes)} of all" if one.private_bytes else "none"
        message += f"; {part} of them is private now"
    saving_bytes = one.waste.get(Cost.AT_START, 0) + one.waste.get(Cost.PER_THREAD, 0)
    return Finding(
        RULE.name,
        one.origin.value.replace(" ", "-"),
        one.shown_name,
        message,
        saving_bytes,
        one.confidence,
        one.reasons,
        _remedy(one),
        (),
        one.location,
        is_per_thread=one.cost is Cost.PER_THREAD,
        private_bytes=one.private_bytes,
        object_path=one.file,
        size_bytes=one.waste_bytes,
    )


def _remedy(one: CopiedVariable) -> str:
    if one.name == THREAD_GUARD:
        return "declare the thread-local variables that headers define `inline` (C++17), without `static`"
    if one.confidence is Confidence.LOW and one.location is None:
        return "compile with -g: the lines that declare them tell whether they are one"
    if one.origin is CopyOrigin.SOURCE:
        remedy = _of_source(one)
    else:
        remedy = _in_function(one) if _is_in_function(one) else _declared(one)
    if one.objection is not None and one.objection.check:
        remedy = f"make sure that {one.objection.check}; then {remedy}"
    if _is_cxx(one) and _has_named_type(one) and UNNAMED not in one.name and not one.does_the_same_once:
        # Debug information says of a type only its own name.
        remedy += _TYPE_TOO
    is_shared = one.is_mutable and one.objection is not None and one.origin is CopyOrigin.HEADER
    return f"{remedy}{_SHARED}" if is_shared else remedy


def _of_source(one: CopiedVariable) -> str:
    if one.does_the_same_once and one.location is not None:
        return "link the source file, or the library that it is part of, only once"
    # Another build of the source file has other functions: both are needed.
    declared = f"extern{'' if one.is_mutable else ' const'}"
    named = "give its type a name, " if _has_unnamed_type(one) else ""
    return f"{named}define it in a source file that is compiled once, and declare it `{declared}` in this one"


# One of such a type still exists once per source file, whatever declares it.
_TYPE_TOO: Final = "; if its type is in an unnamed namespace, take the type out of that, too"
_SHARED: Final = "; all then share one: check that no source file relies on a copy that the others do not write"


def _is_in_function(one: CopiedVariable) -> bool:
    return one.origin is CopyOrigin.GUARD or one.name.startswith("_ZZ") or one.function is not None


def _in_function(one: CopiedVariable) -> str:
    if not one.is_mutable and one.origin is CopyOrigin.HEADER and one.name_count == 1:
        # The functions stay: in each source file macros may make other code of them.
        return f"move it out of the function that holds it, give it a name of its own, and {_declare(one)}"
    if not _is_cxx(one) and not (one.function or "").startswith("_Z"):
        # An inline function in C must not hold a static that is written to.
        return "define the function that holds it in one source file, and only declare it in the header"
    if one.name_count > 1:
        # Only constants are joined across instances of a template.
        return f"take it out of the template, and {_declare(one)}"
    if UNNAMED in one.name:
        return "take the function that holds it out of the unnamed namespace, and make it `inline`"
    return "make the function that holds it `inline`, without `static`, and all share one"


def _declared(one: CopiedVariable) -> str:
    # What is inline and static, or in an unnamed namespace, still exists once per source file.
    if one.name_count > 1:
        return f"move it to one namespace that all of them use, and {_declare(one)}, without `static`"
    if UNNAMED in one.name:
        renamed = "give it a name that no other variable has, " if one.has_namesake else ""
        moved = "it and its type" if _has_named_type(one) else "it"
        return f"take {moved} out of the unnamed namespace, {renamed}and {_declare(one)}"
    renamed = "give it a name that no other variable has, and " if one.has_namesake else ""
    return f"{renamed}{_declare(one)}{', without `static`' if _has_inline_variables(one) else ''}"


def _declare(one: CopiedVariable) -> str:
    """Return how the language of the source files declares what exists once."""
    # What has a type without a name still exists once per source file.
    named = "give its type a name, and " if _has_unnamed_type(one) else ""
    aligned = f", aligned to {one.alignment_bytes} bytes as one of the copies may be" if one.alignment_bytes else ""
    if _has_inline_variables(one):
        # Whether the rest of its declaration says `const` or `constexpr`, it stays as it is.
        return f"{named}declare it `inline` (C++17){aligned}"
    keyword = f"`extern{'' if one.is_mutable else ' const'}`"
    # Without the contents only the bound tells the size of it. The message names it, so that remedies are alike.
    keyword += " with its bound" if one.bounds else ""
    declared = f"{named}declare it {keyword} in the header, and define it in one source file that has a copy{aligned}"
    return f"{declared} ({one.standard_label} has no inline variables)" if _is_cxx(one) else declared


def _has_named_type(one: CopiedVariable) -> bool:
    return PLAIN_TYPE.fullmatch(one.type_name or "") is None


def _has_unnamed_type(one: CopiedVariable) -> bool:
    return "{...}" in (one.type_name or "")


def _is_cxx(one: CopiedVariable) -> bool:
    return one.name.startswith("_Z") if one.standard is None else one.standard.is_cxx


def _has_inline_variables(one: CopiedVariable) -> bool:
    return _is_cxx(one) and not (one.standard is not None and one.standard.lacks_inline_variables)
