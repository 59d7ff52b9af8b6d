"""Rule `duplicate-static`: data that exists once for each source file, such as what a header defines."""

from collections.abc import Iterable
from typing import Final

from footprint.elf.names import lacks_function, shown_name
from footprint.findings.copies import PLAIN_TYPE, THREAD_GUARD, UNNAMED, CopiedVariable, CopyOrigin, Cost
from footprint.findings.registry import Fact, Rule
from footprint.findings.variables import Variables
from footprint.model.finding import Confidence, Finding
from footprint.text.units import counted, format_bytes


def _find(variables: Variables) -> tuple[Finding, ...]:
    return tuple(finding for file in variables.files for finding in duplicate_findings(file.copies))


RULE: Final = Rule("duplicate-static", "Data that a header defines once for each source file", (Fact.VARIABLES,), _find)


def duplicate_findings(copies: Iterable[CopiedVariable]) -> tuple[Finding, ...]:
    """Return what the copies in a file cost and how to have only one; stream initialisers are only counted."""
    return tuple([_finding(copy) for copy in copies if copy.origin is not CopyOrigin.STREAM_INIT])


def _finding(var: CopiedVariable) -> Finding:
    owner = var.file.rsplit("/", 1)[-1]
    inside = f" in {shown_name(var.function)}" if var.function and lacks_function(var.name, var.function) else ""
    message = f"{counted(len(var.copies), 'copy')} of {var.shown_name}{var.bounds}{inside}, "
    message += f"{format_bytes(var.size_bytes)} each, "
    when = var.cost.value
    if len(var.waste) > 1:
        when = ", ".join(f"{format_bytes(size_bytes)} {cost.value}" for cost, size_bytes in var.waste.items())
    message += f"in {var.section} of {owner}: {format_bytes(var.waste_bytes)} more than one takes, {when}"
    if var.heap_bytes:
        message += f"; at least {format_bytes(var.heap_bytes)} of it is heap that their initialisers take"
    if var.private_bytes is not None and (var.private_bytes or var.cost is not Cost.SHARED):
        part = f"{format_bytes(var.private_bytes)} of all" if var.private_bytes else "none"
        message += f"; {part} of them is private now"
    saving_bytes = var.waste.get(Cost.AT_START, 0) + var.waste.get(Cost.PER_THREAD, 0)
    return Finding(
        RULE.name,
        var.origin.value.replace(" ", "-"),
        var.shown_name,
        message,
        saving_bytes,
        var.confidence,
        var.reasons,
        _remedy(var),
        (),
        var.location,
        saving_per="thread" if var.cost is Cost.PER_THREAD else "process",
        private_bytes=var.private_bytes,
        object=var.file,
        size_bytes=var.waste_bytes,
    )


def _remedy(var: CopiedVariable) -> str:
    if var.name == THREAD_GUARD:
        return "declare the thread-local variables that headers define `inline` (C++17), without `static`"
    if var.confidence is Confidence.LOW and var.location is None:
        return "compile with -g: the lines that declare them tell whether they are one"
    if var.origin is CopyOrigin.SOURCE:
        remedy = _of_source(var)
    else:
        remedy = _in_function(var) if var.is_in_function else _declared(var)
    if var.objection is not None and var.objection.check:
        remedy = f"make sure that {var.objection.check}; then {remedy}"
    if var.is_cxx and _has_named_type(var) and UNNAMED not in var.name and not var.does_the_same_once:
        # Debug information says of a type only its own name.
        remedy += _TYPE_TOO
    is_shared = var.is_mutable and var.objection is not None and var.origin is CopyOrigin.HEADER
    return f"{remedy}{_SHARED}" if is_shared else remedy


def _of_source(var: CopiedVariable) -> str:
    if var.does_the_same_once and var.location is not None:
        return "link the source file, or the library that it is part of, only once"
    # Another build of the source file has other functions: both are needed.
    declared = f"extern{'' if var.is_mutable else ' const'}"
    named = "give its type a name, " if _has_unnamed_type(var) else ""
    return f"{named}define it in a source file that is compiled once, and declare it `{declared}` in this one"


# `long double` and `__int128`.
_LARGEST_SCALAR_BYTES: Final = 16
# One of such a type still exists once per source file, whatever declares it.
_TYPE_TOO: Final = "; if its type is in an unnamed namespace, take the type out of that, too"
_SHARED: Final = "; all then share one: check that no source file relies on a copy that the others do not write"


def _in_function(var: CopiedVariable) -> str:
    if not var.is_mutable and var.origin is CopyOrigin.HEADER and (var.name_count == 1 or var.is_of_both_languages):
        # The functions stay: in each source file macros may make other code of them.
        return f"move it out of the function that holds it, give it a name of its own, and {_declare(var)}"
    if not var.is_cxx and not (var.function or "").startswith("_Z"):
        # An inline function in C must not hold a static that is written to.
        return "define the function that holds it in one source file, and only declare it in the header"
    if var.name_count > 1:
        # Only constants are joined across instances of a template.
        return f"take it out of the template, and {_declare(var)}"
    if UNNAMED in var.name:
        return "take the function that holds it out of the unnamed namespace, and make it `inline`"
    return "make the function that holds it `inline`, without `static`, and all share one"


def _declared(var: CopiedVariable) -> str:
    # What is inline and static, or in an unnamed namespace, still exists once per source file.
    if var.name_count > 1 and not var.is_of_both_languages:
        return f"move it to one namespace that all of them use, and {_declare(var)}{_without_static(var)}"
    if UNNAMED in var.name:
        renamed = "give it a name that no other variable has, " if var.has_namesake else ""
        moved = "it and its type" if _has_named_type(var) else "it"
        return f"take {moved} out of the unnamed namespace, {renamed}and {_declare(var)}"
    renamed = "give it a name that no other variable has, and " if var.has_namesake else ""
    return f"{renamed}{_declare(var)}{_without_static(var)}"


def _without_static(var: CopiedVariable) -> str:
    return ", without `static`" if _has_inline_variables(var) else ""


def _declare(var: CopiedVariable) -> str:
    """Return how the language of the source files declares what exists once."""
    # What has a type without a name still exists once per source file.
    named = "give its type a name, and " if _has_unnamed_type(var) else ""
    aligned = f", aligned to {var.alignment_bytes} bytes as one of the copies may be" if var.alignment_bytes else ""
    # A library exports what nothing hides: it is then reached by way of a table that the loader writes at start.
    more = f"{aligned}, with hidden visibility" if var.is_in_library else aligned
    if _has_inline_variables(var):
        # Whether the rest of its declaration says `const` or `constexpr`, it stays as it is.
        return f"{named}declare it `inline` (C++17){more}"
    if var.is_cxx and not var.is_mutable:
        # The contents stay where the compiler may need them: in a static_assert, or as the argument of a template.
        return (
            f"{named}make it a static member of a class template of its own in the header, and define it behind the"
            f" class{more} ({var.standard_label} has no inline variables)"
        )
    keyword = f"`extern{'' if var.is_mutable else ' const'}`"
    if var.bounds:
        # Without the contents only the bound tells the size of it. The message names it, so that remedies are alike.
        keyword += " with its bound"
    elif var.location is None:
        keyword += ", an array with its bound and a structure with a named type,"
    linkage = ', within `extern "C"` for C++' if var.is_of_both_languages else ""
    declared = (
        f"{named}declare it {keyword} in the header{linkage}, and define it in one source file that has a copy{more}"
    )
    if not var.is_mutable and _is_scalar(var):
        declared += "; what needs its value when it is compiled takes a macro with that"
    return f"{declared} ({var.standard_label} has no inline variables)" if var.is_cxx else declared


def _is_scalar(var: CopiedVariable) -> bool:
    return not var.bounds and var.size_bytes <= _LARGEST_SCALAR_BYTES


def _has_named_type(var: CopiedVariable) -> bool:
    if var.location is None:
        # Without debug information the type is not known.
        return not _is_scalar(var)
    return PLAIN_TYPE.fullmatch(var.type_name or "") is None


def _has_unnamed_type(var: CopiedVariable) -> bool:
    return "{...}" in (var.type_name or "")


def _has_inline_variables(var: CopiedVariable) -> bool:
    return var.is_cxx and not (var.standard is not None and var.standard.lacks_inline_variables)
