"""The figures of an answer as named series, for what watches them over time."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from footprint.attribution.heap_usage import HeapUsage
from footprint.elf.origins import Origins
from footprint.findings.linked_twice import Duplicates
from footprint.model.audit import Audit
from footprint.model.figures import FIGURES, Figure, total_figures
from footprint.model.finding import Finding
from footprint.model.group import Group
from footprint.model.projection import Projection
from footprint.model.row import Row
from footprint.model.totals import Total
from footprint.release.budget import Checked
from footprint.release.compare import Comparison
from footprint.verbs.libraries.result import Libraries
from footprint.verbs.survey.result import Survey

__all__ = (
    "Family",
    "Sample",
    "audit_figures",
    "check_figures",
    "diff_figures",
    "duplicates_figures",
    "group_figures",
    "heap_figures",
    "libraries_figures",
    "projection_figures",
    "survey_figures",
    "symbols_figures",
)


class Sample(NamedTuple):
    """One value.

    Attributes:
        labels: What it is of, by the names of the labels.
        value: Bytes, or a number of things.
    """

    labels: dict[str, str]
    value: int


class Family(NamedTuple):
    """All values of one meaning.

    Attributes:
        name: The series, without the unit and without `footprint_`.
        text: What it is.
        samples: The values, the largest first where there are many.
        unit: `bytes`, or "" for a number of things.
    """

    name: str
    text: str
    samples: Sequence[Sample]
    unit: str = "bytes"


def audit_figures(audit: Audit) -> list[Family]:
    """Give the figures of a process: the whole, its owners, what N cost, and what was found."""
    target = {"target": audit.target}
    families = [_total(figure, total, target) for figure, total in total_figures(audit.totals)]
    mappings = Family("mappings", FIGURES["mapping_count"].sentence, [Sample(target, audit.mapping_count)], "")
    projection = projection_figures(audit.projection, audit.target)
    return [*families, mappings, *_owners(audit.ledger, target), *projection, *_findings(audit.findings, target)]


def _total(figure: Figure, total: Total, target: dict[str, str]) -> Family:
    """Return one figure of the whole; without samples where the input cannot tell it."""
    samples = [] if total.bytes is None else [Sample(target | {"evidence": total.evidence.value}, total.bytes)]
    return Family(figure.name.removesuffix("_bytes"), figure.sentence, samples)


def projection_figures(projection: Projection, target: str) -> list[Family]:
    """Give what N processes cost."""
    labels = {"target": target, "model": projection.model.value, "evidence": projection.evidence.value}
    return [
        Family("projected", "What all of the processes cost.", [Sample(labels, projection.total_bytes)]),
        Family("projected_processes", "How many those are.", [Sample(labels, projection.count)], ""),
    ]


def group_figures(group: Group) -> list[Family]:
    """Give the figures of several processes as one."""
    names = ("per_group", "private", "kernel", "shared_between", "shared_once")
    return [
        *(_total(FIGURES[f"{name}_bytes"], getattr(group, name), {}) for name in names),
        Family("processes", "Processes.", [Sample({}, len(group.audits))], ""),
        *_owners(group.ledger, {}),
    ]


def diff_figures(found: Comparison) -> list[Family]:
    """Give the figures of the newer side, and by how much each is larger."""
    totals = [
        Sample({"figure": one.name}, delta_bytes)
        for one in found.totals
        if (delta_bytes := one.delta_bytes) is not None
    ]
    owners = [Sample({"owner": one.owner}, one.delta_bytes) for one in found.owners]
    return [
        *audit_figures(found.new),
        Family("change", "By how much a figure of the whole is larger than before.", totals),
        Family("owner_change", "By how much an owner is larger than before.", owners),
    ]


def check_figures(checked: Checked) -> list[Family]:
    """Give the figures of what was checked, and the budgets beside what is measured."""
    families = []
    for unit in ("bytes", ""):
        results = [one for one in checked.results if one.is_count is not bool(unit)]
        keys = [{"budget": one.key, "limit": "absolute" if one.grew_from is None else "growth"} for one in results]
        values = [Sample(key, one.value) for key, one in zip(keys, results, strict=True)]
        limits = [Sample(key, one.limit) for key, one in zip(keys, results, strict=True)]
        what = "budget" if unit else "budget_count"
        families.append(Family(f"{what}_used", "What is measured of what has a budget.", values, unit))
        families.append(Family(f"{what}_limit", "The most that passes.", limits, unit))
    failed = Family("budgets_exceeded", "Limits that are exceeded.", [Sample({}, len(checked.failures))], "")
    return [*audit_figures(checked.audit), *families, failed]


def survey_figures(survey: Survey) -> list[Family]:
    """Give what a process of each program costs."""

    def each(name: str, text: str, attribute: str) -> Family:
        samples = [Sample({"path": one.path}, getattr(one, attribute)) for one in survey.programs]
        return Family(name, text, samples)

    return [
        each("program_floor", "What the objects of a program have written at start.", "startup_min_bytes"),
        each("program_ceiling", "What can ever be written of them.", "startup_max_bytes"),
        each("program_start", "What a process has at start beside them.", "start_bytes"),
        each("program_unused", "What libraries cost that nobody uses.", "unused_bytes"),
    ]


def symbols_figures(files: Iterable[Origins]) -> list[Family]:
    """Give the sizes of writable sections, and how much of each has a name."""
    sizes, named = [], []
    for known in files:
        for one in known.contents.sections:
            labels = {"file": known.contents.file, "section": one.section.name, "kind": one.kind.value}
            sizes.append(Sample(labels, one.size_bytes))
            named.append(Sample(labels, one.named_bytes))
    return [
        Family("section", "The size of a section in memory.", sizes),
        Family("section_named", "How much of it symbols name.", named),
    ]


def libraries_figures(found: Libraries) -> list[Family]:
    """Give what each object of a program costs."""
    graph = found.graph
    series: dict[str, list[Sample]] = {name: [] for name in _OBJECTS}
    for number, linked in enumerate(graph.objects):
        labels = {"object": linked.path}
        prediction = graph.predictions[number]
        values = {
            "private": None if graph.private_bytes is None else graph.private_bytes[number],
            "floor": None if prediction is None else prediction.startup_min_bytes,
            "ceiling": None if prediction is None else prediction.startup_max_bytes,
            "mapped": None if prediction is None else prediction.mapped_bytes,
            "retained": graph.cost_bytes(graph.retained[number]),
        }
        for name, value in values.items():
            if value is not None:
                series[name].append(Sample(labels, value))
    families = [Family(f"object_{name}", text, series[name]) for name, text in _OBJECTS.items()]
    return [*families, *_findings(found.findings, {"target": found.target})]


_OBJECTS: Final = {
    "private": "What an object holds in the live process.",
    "floor": "What it surely has written at start.",
    "ceiling": "What can ever be written of it.",
    "mapped": "Its address space.",
    "retained": "What would leave with it.",
}


def duplicates_figures(found: Duplicates) -> list[Family]:
    """Give what copies take beyond one of each."""
    wastes: Counter[tuple[str, str]] = Counter()
    for file in found.files:
        for one in file.copies:
            wastes[file.file, one.cost.value] += one.waste_bytes
    samples = [Sample({"file": file, "cost": cost}, waste_bytes) for (file, cost), waste_bytes in wastes.items()]
    waste = Family("duplicate_waste", "What copies of header-defined data take beyond one of each.", samples)
    return [waste, *_findings(found.findings, {})]


def heap_figures(usages: Iterable[HeapUsage]) -> list[Family]:
    """Give what heap profiles say of their moment, by object."""
    live, extra, stacks, owners = [], [], [], []
    for usage in usages:
        file = {"file": usage.file}
        if (snapshot := usage.snapshot) is not None:
            labels = file | {"evidence": usage.evidence.value}
            live.append(Sample(labels, snapshot.live_bytes))
            if snapshot.extra_bytes is not None:
                extra.append(Sample(labels, snapshot.extra_bytes))
            if snapshot.stack_bytes is not None:
                stacks.append(Sample(labels, snapshot.stack_bytes))
        if usage.attribution is not None:
            owners += [Sample(file | {"owner": one.owner}, one.size_bytes) for one in usage.attribution.owners]
    return [
        Family("heap_live", "What the program asked for and has not freed.", live),
        Family("heap_overhead", "What the allocator uses beside it.", extra),
        Family("heap_stacks", "The stacks.", stacks),
        Family("heap_owner", "By the object that asked for it.", owners),
    ]


def _owners(ledger: Iterable[Row], target: dict[str, str]) -> list[Family]:
    """Add up the rows of each owner and kind."""
    private: Counter[tuple[str, str]] = Counter()
    mapped: Counter[tuple[str, str]] = Counter()
    for row in ledger:
        key = (row.owner, row.kind.value)
        if row.bytes is not None:
            private[key] += row.bytes
        if row.mapped_bytes:
            mapped[key] += row.mapped_bytes
    return [
        Family(f"owner_{name}", text, [_of_owner(target, *key, value) for key, value in sums.most_common()])
        for name, text, sums in (
            ("private", "Private memory by owner; the kernel's own is that of kind kernel.", private),
            ("mapped", "Virtual size by owner.", mapped),
        )
    ]


def _of_owner(target: dict[str, str], owner: str, kind: str, value: int) -> Sample:
    return Sample(target | {"owner": owner, "kind": kind}, value)


def _findings(findings: Iterable[Finding], target: dict[str, str]) -> list[Family]:
    found = tuple(findings)
    counts = Counter((one.rule, one.confidence.value) for one in found)
    savings: Counter[tuple[str, str]] = Counter()
    for one in found:
        savings[one.rule, one.confidence.value] += one.saving_bytes
    labels = {key: target | {"rule": key[0], "confidence": key[1]} for key in counts}
    return [
        Family("findings", "What was found.", [Sample(labels[key], count) for key, count in counts.items()], ""),
        Family(
            "findings_saving", "What a process is spared without it.", [Sample(labels[k], savings[k]) for k in counts]
        ),
    ]
