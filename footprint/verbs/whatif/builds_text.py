"""The report of `footprint whatif --with`."""

import shlex
from collections.abc import Sequence
from typing import Final

from footprint.formats.document import Block, Document, Facts, Heading, Paragraph, Table, Verdict, note_blocks
from footprint.model.over_time import RunFailureKind
from footprint.model.row import file_name
from footprint.process.launch.moment import When
from footprint.text.units import counted, format_bytes
from footprint.verbs.diff.text import comparison_names, many_text, owner_blocks, percent_text, signed, variable_blocks
from footprint.verbs.run.text import MOMENTS, failure_causes, start_cost_blocks
from footprint.verbs.whatif.result import Agreement, BuildComparison, Compared, Saving, is_alike

_SEEN: Final = {"stdout": "standard output", "stderr": "standard error", "ending": "its end"}
_END: Final = "[there is none]"


def behaviour_blocks(behaviour: Sequence[Compared], variants: tuple[str, str]) -> list[Block]:
    """List what a user sees of two variants, with the first line that differs; `variants` has their names."""
    return [
        Heading(f"What a user sees, {' and '.join(variants)}"),
        Facts(tuple(map(_seen, behaviour)), "result"),
        *(block for part in behaviour for block in _lines(part, variants)),
    ]


def _seen(part: Compared) -> tuple[str, str, str]:
    remark = (part.before or "") if part.size_bytes is None else counted(part.size_bytes, "byte")
    if part.verdict is Agreement.VARYING:
        remark = "differs between starts of one program, and so says nothing"
    elif part.verdict is Agreement.DIFFERENT:
        remark = "beyond what is kept of it" if part.before is part.after is None else f"from line {part.line} on"
        remark = f"{part.before}, then {part.after}" if part.size_bytes is None else remark
    return _SEEN[part.name], part.verdict.value, remark


def _lines(part: Compared, variants: tuple[str, str]) -> list[Block]:
    """Show the first line that differs."""
    if part.line is None:
        return []
    place = f"{_SEEN[part.name]}, line {part.line}"
    shown = zip(variants, (part.before, part.after), strict=True)
    return [Paragraph(f"{place}, {label}: {_END if line is None else line}") for label, line in shown]


def behaviour_sentence(behaviour: Sequence[Compared]) -> str:
    """Describe whether a user sees a difference."""
    if not is_alike(behaviour):
        return "It does not behave as before."
    if any(part.verdict is Agreement.VARYING for part in behaviour):
        return "As far as that is steady, it behaves as before."
    return "It behaves as before."


_MOST_OWNERS: Final = 3


def builds_document(builds: BuildComparison, *, top: int = 20, has_whole_names: bool = False) -> Document:
    """Show what another build of a program saves or costs; `top` rows a table, 0 for all."""
    names = comparison_names(builds.comparison, is_whole=has_whole_names)
    command = shlex.join(builds.command)
    failure = builds_failure_text(builds)
    return (
        Heading(f"footprint whatif: {command if len(command) <= 60 else command[:57] + '...'} with {builds.build}"),
        Paragraph(_how(builds)),
        *_figures(builds),
        *owner_blocks(builds.comparison, top, names),
        *variable_blocks(builds.comparison, top, names),
        *start_cost_blocks((builds.before, builds.after)),
        *behaviour_blocks(builds.behaviour, ("before", "now")),
        *note_blocks(builds.notes),
        Verdict(f"{failure}.{_other_moment(builds)}", is_failure=True)
        if failure
        else Verdict(_verdict(builds), at_count=_at_count(builds)),
    )


def builds_failure_text(builds: BuildComparison) -> str:
    """Describe in one line which build failed, how, and in which of its starts; nothing where none did."""
    count = builds.before.start_count
    both = zip(_names(builds), builds.failures, strict=True)
    return "; ".join([f"{name} failed: {failure_causes(failures, count)}" for name, failures in both if failures])


def _other_moment(builds: BuildComparison) -> str:
    """Describe which programs are compared as they ended because that was before the moment asked for; "" for none."""
    sides = zip(_names(builds), builds.failures, (builds.before, builds.after), strict=True)
    early = [
        name
        for name, failures, ran in sides
        if ran.start.moment == When.EXIT and any(failure.kind == RunFailureKind.MOMENT for failure in failures)
    ]
    if not early:
        return ""
    whose = "its" if len(early) == 1 else "their"
    return f" The comparison is of {' and '.join(early)} at {whose} exit, not at the moment asked for."


def _names(builds: BuildComparison) -> tuple[str, str]:
    """Return what to call the program and the other build: their file names, where these differ."""
    typed = builds.command[0], builds.build
    names = file_name(typed[0]), file_name(typed[1])
    return typed if names[0] == names[1] else names


def _how(builds: BuildComparison) -> str:
    moments = [MOMENTS[side.start.moment] for side in (builds.before, builds.after)]
    count, name = builds.before.start_count, _names(builds)[1]
    how = f"{count} starts of each, in turn, each taken" if count > 1 else "One start of each, taken"
    if moments[0] == moments[1]:
        how += f" {moments[0]}"
    else:
        how += f" {moments[0]}, of {name} {moments[1]}"
    return f"{how}; {name} was started with the argv of {_names(builds)[0]}."


def _figures(builds: BuildComparison) -> list[Block]:
    rows = []
    for saving, name, label in (
        (builds.private, "private", "private"),
        (builds.per_process, "per_process", "in all"),
    ):
        total = builds.comparison.total(name)
        if saving is not None and total is not None:
            rows.append((*_figure(saving), f"{label} ({total.new.evidence.value})"))
    columns = ("change", "least", "most", "before", "now", "one process")
    return [Heading("What one process costs; least and most over all starts"), Table(columns, tuple(rows))]


def _figure(saving: Saving) -> tuple[str, ...]:
    changes = (-saving.bytes, -saving.most_bytes, -saving.least_bytes)
    return (*map(signed, changes), format_bytes(saving.before_bytes), format_bytes(saving.after_bytes))


def _verdict(builds: BuildComparison) -> str:
    name, new_name = _names(builds)
    subject, behaviour = f"A process of {new_name} costs", behaviour_sentence(builds.behaviour)
    saving = builds.per_process or builds.private
    if saving is None:
        return f"{subject} what could not be measured. {behaviour}"
    if not saving.bytes:
        return f"{subject} as much as one of {name}. {_sure_part(builds)}{behaviour}"
    word = "less" if saving.bytes > 0 else "more"
    size = f"{format_bytes(abs(saving.bytes))} {word}"
    if builds.is_noise:
        chance = "within the spread of the starts: it may be chance"
        return f"{subject} {size} than one of {name}, {chance}. {_sure_part(builds)}{behaviour}"
    certainty = "by one start of each (--starts)" if builds.is_noise is None else "beyond the spread of the starts"
    text = f"{subject} {size} ({percent_text(-saving.bytes, saving.before_bytes)}) than one of {name}, {certainty}"
    return f"{text}{_at_count(builds)}. {_sure_part(builds)}{behaviour}"


def _at_count(builds: BuildComparison) -> str:
    saving = builds.per_process or builds.private
    if saving is None or not saving.bytes or builds.is_noise:
        return ""
    return many_text(builds.comparison, -saving.bytes).replace(", ", "; ", 1)


def _sure_part(builds: BuildComparison) -> str:
    """Describe what is beyond the spread of single owners; nothing where that is the whole difference, or not known."""
    changes, whole_bytes = builds.sure_changes, sum([owner.delta_bytes for owner in builds.comparison.owners])
    delta_bytes = sum([change.delta_bytes for change in changes])
    if not delta_bytes or signed(delta_bytes) == signed(whole_bytes):
        return ""
    size = f"{format_bytes(abs(delta_bytes))} {'less' if delta_bytes < 0 else 'more'}"
    names = comparison_names(builds.comparison, is_whole=False)
    owners = [names.owner(change.owner) for change in changes[:_MOST_OWNERS]]
    rest = f" and {len(changes) - _MOST_OWNERS} more" if len(changes) > _MOST_OWNERS else ""
    return f"Beyond the spread of single owners: {size} in {', '.join(owners)}{rest}. "
