"""The report of `footprint whatif --with`."""

import shlex
from typing import Final

from footprint.formats.document import Block, Document, Heading, Paragraph, Table, Verdict
from footprint.formats.sections.notes import note_blocks
from footprint.model.owner import file_name
from footprint.model.run_failure import RunFailureKind
from footprint.process.launch.moment import When
from footprint.units import format_bytes
from footprint.verbs.diff.text import comparison_names, many_text, owner_blocks, percent_text, signed, variable_blocks
from footprint.verbs.run.text import MOMENTS, failure_causes
from footprint.verbs.whatif.behaviour_text import behaviour_blocks, behaviour_sentence
from footprint.verbs.whatif.build_comparison import BuildComparison
from footprint.verbs.whatif.result import Saving

__all__ = ("builds_document", "builds_failure_text")

_MOST_OWNERS: Final = 3


def builds_document(found: BuildComparison, *, top: int = 20, has_whole_names: bool = False) -> Document:
    """Write what another build of a program saves or costs; `top` rows a table, 0 for all."""
    names = comparison_names(found.comparison, is_whole=has_whole_names)
    command = shlex.join(found.command)
    failure = builds_failure_text(found)
    return (
        Heading(f"footprint whatif: {command if len(command) <= 60 else command[:57] + '...'} with {found.build}"),
        Paragraph(_how(found)),
        *_figures(found),
        *owner_blocks(found.comparison, top, names),
        *variable_blocks(found.comparison, top, names),
        *behaviour_blocks(found.behaviour, ("before", "now")),
        *note_blocks(found.notes),
        Verdict(f"{failure}.{_other_moment(found)}", is_failure=True)
        if failure
        else Verdict(_verdict(found), at_count=_at_count(found)),
    )


def builds_failure_text(found: BuildComparison) -> str:
    """Write in one line which build failed, how, and in which of its starts; nothing where none did."""
    count = found.before.start_count
    both = zip(_names(found), found.failures, strict=True)
    return "; ".join([f"{name} failed: {failure_causes(each, count)}" for name, each in both if each])


def _other_moment(found: BuildComparison) -> str:
    """Write which programs are compared as they ended because that was before the moment asked for; "" for none."""
    sides = zip(_names(found), found.failures, (found.before, found.after), strict=True)
    early = [
        name
        for name, failures, ran in sides
        if ran.start.moment == When.EXIT and any(one.kind == RunFailureKind.MOMENT for one in failures)
    ]
    if not early:
        return ""
    whose = "its" if len(early) == 1 else "their"
    return f" The comparison is of {' and '.join(early)} at {whose} exit, not at the moment asked for."


def _names(found: BuildComparison) -> tuple[str, str]:
    """Return what to call the program and the other build: their file names, where these differ."""
    typed = found.command[0], found.build
    names = file_name(typed[0]), file_name(typed[1])
    return typed if names[0] == names[1] else names


def _how(found: BuildComparison) -> str:
    moments = [MOMENTS[one.start.moment] for one in (found.before, found.after)]
    count, name = found.before.start_count, _names(found)[1]
    how = f"{count} starts of each, in turn, each taken" if count > 1 else "One start of each, taken"
    if moments[0] == moments[1]:
        how += f" {moments[0]}"
    else:
        how += f" {moments[0]}, of {name} {moments[1]}"
    return f"{how}; {name} was started with the argv of {_names(found)[0]}."


def _figures(found: BuildComparison) -> list[Block]:
    rows = []
    for saving, name, label in (
        (found.private, "private", "private"),
        (found.per_process, "per_process", "in all"),
    ):
        total = found.comparison.total(name)
        if saving is not None and total is not None:
            rows.append((*_figure(saving), f"{label} ({total.new.evidence.value})"))
    columns = ("change", "least", "most", "before", "now", "one process")
    return [Heading("What one process costs; least and most over all starts"), Table(columns, tuple(rows))]


def _figure(saving: Saving) -> tuple[str, ...]:
    changes = (-saving.bytes, -saving.most_bytes, -saving.least_bytes)
    return (*map(signed, changes), format_bytes(saving.before_bytes), format_bytes(saving.after_bytes))


def _verdict(found: BuildComparison) -> str:
    name, new_name = _names(found)
    subject, behaviour = f"A process of {new_name} costs", behaviour_sentence(found.behaviour)
    saving = found.per_process or found.private
    if saving is None:
        return f"{subject} what could not be measured. {behaviour}"
    if not saving.bytes:
        return f"{subject} as much as one of {name}. {_sure_part(found)}{behaviour}"
    word = "less" if saving.bytes > 0 else "more"
    size = f"{format_bytes(abs(saving.bytes))} {word}"
    if found.is_noise:
        chance = "within the spread of the starts: it may be chance"
        return f"{subject} {size} than one of {name}, {chance}. {_sure_part(found)}{behaviour}"
    certainty = "by one start of each (--starts)" if found.is_noise is None else "beyond the spread of the starts"
    text = f"{subject} {size} ({percent_text(-saving.bytes, saving.before_bytes)}) than one of {name}, {certainty}"
    return f"{text}{_at_count(found)}. {_sure_part(found)}{behaviour}"


def _at_count(found: BuildComparison) -> str:
    saving = found.per_process or found.private
    if saving is None or not saving.bytes or found.is_noise:
        return ""
    return many_text(found.comparison, -saving.bytes).replace(", ", "; ", 1)


def _sure_part(found: BuildComparison) -> str:
    """Write what is beyond the spread of single owners; nothing where that is the whole difference, or not known."""
    changes, whole_bytes = found.sure_changes, sum([one.delta_bytes for one in found.comparison.owners])
    delta_bytes = sum([one.delta_bytes for one in changes])
    if not delta_bytes or signed(delta_bytes) == signed(whole_bytes):
        return ""
    size = f"{format_bytes(abs(delta_bytes))} {'less' if delta_bytes < 0 else 'more'}"
    names = comparison_names(found.comparison, is_whole=False)
    owners = [names.owner(one.owner) for one in changes[:_MOST_OWNERS]]
    rest = f" and {len(changes) - _MOST_OWNERS} more" if len(changes) > _MOST_OWNERS else ""
    return f"Beyond the spread of single owners: {size} in {', '.join(owners)}{rest}. "
