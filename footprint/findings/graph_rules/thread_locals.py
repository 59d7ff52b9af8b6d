"""Rule `thread-locals`: objects whose thread-local variables cost each thread, whether it uses them or not.

glibc writes the whole block of the objects that a program starts with when it creates a thread: a zeroed .tbss costs
memory like any other. For an object that is opened later, a thread pays at its first use.
"""

from typing import Final

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.elf.contents import SectionKind, read_contents
from footprint.elf.names import shown_name
from footprint.errors import FootprintError
from footprint.findings.registry import Fact, Rule
from footprint.findings.removal import in_any_program
from footprint.model.finding import Confidence, Finding
from footprint.text.escape import shortened_name
from footprint.text.units import format_bytes

_MOST_NAMED: Final = 3
_LONGEST_NAME: Final = 60


def thread_locals(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Find the objects with a page or more of thread-local variables, the largest first."""
    findings = [
        in_any_program(graph, _finding(graph, number, prediction.tls_bytes))
        for number, prediction in enumerate(graph.predictions)
        if prediction is not None and prediction.tls_bytes >= graph.page_bytes
    ]
    return tuple(sorted(findings, key=lambda finding: (-finding.saving_bytes, finding.subject)))


RULE: Final = Rule("thread-locals", "An object with many thread-local variables", (Fact.GRAPH,), thread_locals, rank=1)


def _finding(graph: DependencyGraph, number: int, size_bytes: int) -> Finding:
    name = graph.name(number)
    is_unused = number not in graph.roots and not graph.bindings.users(number)
    is_eager = graph.has_eager_thread_locals(number)
    when = "each thread pays all of it at its start" if is_eager else "each thread pays what it touches of it"
    variables = _largest(graph, number)
    message = f"{name} has {format_bytes(size_bytes)} of thread-local variables{variables}: {when}"
    if is_unused:
        reasons = ("no other object binds to anything of it",)
        remedy = f"drop {name}; see its unused-library finding"
    else:
        reasons = (f"the variables may be needed: {name} is used",)
        remedy = "allocate large thread-local variables where a thread first needs them, and keep only pointers to them"
    return Finding(
        RULE.name,
        "at-thread-start" if is_eager else "when-touched",
        name,
        message,
        size_bytes if is_eager else 0,
        Confidence.HIGH if is_unused else Confidence.MEDIUM,
        reasons,
        remedy,
        saving_per="thread",
        object=graph.objects[number].path,
    )


def _largest(graph: DependencyGraph, number: int) -> str:
    """Return the names of the largest variables, where the file has symbols."""
    try:
        contents = read_contents(graph.objects[number].library.image)
    except FootprintError:
        return ""
    variables = [variable for s in contents.sections if s.kind is SectionKind.TLS for variable in s.variables]
    variables.sort(key=lambda variable: (-variable.size_bytes, variable.name))
    named = ", ".join(
        f"{shortened_name(shown_name(v.name), _LONGEST_NAME)} {format_bytes(v.size_bytes)}"
        for v in variables[:_MOST_NAMED]
        if v.size_bytes
    )
    return f" ({named})" if named else ""
