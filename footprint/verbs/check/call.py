"""`footprint.check`: whether a process costs no more than a budget file allows."""

import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

from footprint.errors import FootprintError, InputError, UsageError
from footprint.files import StrPath, open_input
from footprint.formats.saved_audit import looks_like_audit
from footprint.model.audited import Audited
from footprint.model.audited_names import is_audited, is_reproducible, program_name
from footprint.model.projection import Question
from footprint.model.spread import ONE_START, Spreads
from footprint.release.budget import Budgets, Checked, check_audit, parse_budgets, propose
from footprint.release.matching import is_same_program
from footprint.release.places import with_places
from footprint.sources.debug_files import STANDARD_PLACES, DebugSearch
from footprint.sources.target import AnyTarget, AuditFile, Named, Process, Processes, Program, resolve
from footprint.verbs.audit.call import audit_any, with_objects_if_new
from footprint.verbs.audit.request import AuditRequest
from footprint.verbs.audit.saved import AuditedTarget

__all__ = (
    "check",
    "check_for_baseline",
    "has_project_budgets",
    "load_budgets",
    "proposal",
    "replaceable_baseline",
)

_FILE: Final = "footprint.toml"
_PROJECT_FILE: Final = "pyproject.toml"
_MOST_BYTES: Final = 1 << 20


def load_budgets(path: StrPath | None = None) -> Budgets:
    """Read a budget file: the one that is named, else `footprint.toml` here, else `[tool.footprint]` of pyproject.toml.

    Raises:
        AccessError: If it cannot be opened.
        InputError: If it is not TOML.
        UsageError: If no such file exists, if both files have budgets, if a key or value in it is not valid, or if
            it has no limit.
    """
    if path is None:
        if os.path.isfile(_FILE) and os.path.isfile(_PROJECT_FILE) and has_project_budgets(_PROJECT_FILE):
            # Only one would be read, and a user would believe that the limits of the other hold too.
            raise UsageError(
                f"there are budgets in {_FILE} and in {_PROJECT_FILE}: keep one, or name one with --config"
            )
        path = next((one for one in (_FILE, _PROJECT_FILE) if os.path.isfile(one)), None)
        if path is None:
            raise UsageError(f"there is no {_FILE} here: name one with --config, or let --propose write a first one")
    path = os.fspath(path)
    told, lines = _toml(path)
    if os.path.basename(path) == _PROJECT_FILE:
        told = _of_project(told)  # type: ignore[assignment]
        if not isinstance(told, dict):
            raise UsageError(f"{path} has no table [tool.footprint]: name a budget file with --config")
        lines = {name[2:]: line for name, line in lines.items() if name[:2] == ("tool", "footprint")}
    budgets = parse_budgets(told, path, lines)
    if budgets.is_empty:
        raise UsageError(
            f"{path} has no limit: write [budgets] or [libraries] there, or let --propose write a first file"
        )
    return budgets


def _of_project(told: Mapping[str, Any]) -> object:
    tool = told.get("tool")
    return tool.get("footprint") if isinstance(tool, dict) else None


def has_project_budgets(path: str) -> bool:
    """Return whether a pyproject.toml has a table of budgets; its own tools report a file that cannot be read."""
    try:
        return _of_project(_toml(path)[0]) is not None
    except FootprintError:
        return False


def _toml(path: str) -> tuple[dict[str, Any], Mapping[tuple[str, ...], int]]:
    from footprint.release.toml_lines import key_lines, read_toml  # noqa: PLC0415 # only this verb has budgets

    data = bytes(open_input(path))
    if len(data) > _MOST_BYTES:
        raise InputError(path, "longer than any budget file", _MOST_BYTES)
    told, text = read_toml(data, path)
    return told, key_lines(text)


def check(  # noqa: PLR0913 # all but the first two have their name
    target: Named | AnyTarget | Audited,
    budgets: Budgets,
    *,
    today: date | None = None,
    pid: int | None = None,
    root: StrPath | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
    has_page_maps: bool = False,
    map: StrPath | None = None,  # noqa: A002 # as the option is called
    spreads: Spreads = ONE_START,
) -> Checked:
    """Check a process, program, group or saved audit against budgets.

    Args:
        target: As for `audit`, or a target that is resolved, or an audit or group that was made already.
        budgets: What it may cost; `load_budgets` reads them.
        today: The day that decides whether a waiver has expired; None for the present day.
        pid: Which process of a text or capture that holds several; without it, those of a capture are a group.
        root: As for `audit`.
        debug: As for `audit`.
        has_page_maps: As for `audit`, for the report: it has the findings of what runs, too.
        map: As for `diff`.
        spreads: How far the starts differ, if the target is the audit of a `run`; a saved run has this itself.

    Raises:
        AccessError: If the target or the baseline cannot be read.
        InputError: If one of them is damaged, if the baseline is of another program, if one of them was measured and
            the other predicted, or if another linker than GNU ld wrote the map.
        UsageError: If a budget is about something that is missing, or needs a baseline that is not named.
    """
    audited = (
        AuditedTarget(target, spreads)
        if is_audited(target)
        else _audit(target, budgets, pid, root, debug, has_page_maps=has_page_maps)
    )
    found = audited.audit
    baseline, baseline_spreads = (None, ONE_START) if budgets.baseline is None else _baseline(budgets, found)
    if baseline is not None and not is_audited(target) and not isinstance(target, Processes):
        found = with_objects_if_new(found, baseline, resolve(target, root=root))
    day = today or date.today()  # noqa: DTZ011 # a waiver ends with the day of whoever reads it
    checked = check_audit(found, budgets, baseline, day, audited.spreads, baseline_spreads)
    if checked.comparison is None:
        return checked
    top, linker_map = (None if one is None else os.fspath(one) for one in (root, map))
    return checked._replace(comparison=with_places(checked.comparison, top, debug, ".", linker_map))


def _audit(
    target: Named | AnyTarget,
    budgets: Budgets,
    pid: int | None,
    root: StrPath | None,
    debug: DebugSearch | None,
    *,
    has_page_maps: bool,
    has_objects: bool = False,
) -> AuditedTarget[Audited]:
    found = target if isinstance(target, Processes) else resolve(target, root=root)
    question = Question(budgets.at_processes)
    if isinstance(found, AuditFile):
        own_model = question._replace(model=None)
        return audit_any(found, AuditRequest(own_model, pid=pid, has_page_maps=has_page_maps, has_question=True))
    # Only what reads the files of a process finds these. A report says what to do.
    needs_files = any(
        one.table == "findings" or one.name in {"floor_bytes", "ceiling_bytes"} for one in budgets.budgets
    )
    has_findings = isinstance(found, Process | Processes) and (has_page_maps or needs_files)
    has_objects |= any(one.table == "retained" or one.name == "tls_bytes" for one in budgets.budgets)
    asked = AuditRequest(
        question,
        pid=pid,
        root=None if root is None else os.fspath(root),
        has_findings=has_findings,
        has_page_maps=has_page_maps,
        debug=debug,
        is_reproducible=budgets.is_reproducible and isinstance(found, Program),
        doubtful_rules=frozenset(one.name for one in budgets.budgets if one.counts_doubtful),
        has_objects=has_objects,
    )
    return audit_any(found, asked)


def _baseline_path(budgets: Budgets) -> str:
    """Return the path of the baseline: the budget file names it relative to its own folder.

    Raises:
        UsageError: If the budget file names no baseline.
    """
    if budgets.baseline is None:
        raise UsageError(f'{budgets.file} names no baseline: write baseline = "footprint-baseline.json" there')
    return os.path.join(os.path.dirname(budgets.file), budgets.baseline)


def replaceable_baseline(budgets: Budgets) -> str:
    """Return the path of the baseline, after a check that writing it destroys nothing else.

    A budget file may come from a stranger: it must not choose any file of the user to be overwritten.

    Raises:
        UsageError: If the budget file names no baseline, one that is another file, or a new one far from it.
    """
    path = _baseline_path(budgets)
    if os.path.lexists(path):
        if not os.path.isfile(path) or (os.path.getsize(path) and not looks_like_audit(open_input(path))):
            raise UsageError(
                f"{path} is no saved audit: --update-baseline replaces nothing else; name another baseline"
            )
        return path
    place = os.path.realpath(path)
    folders = [os.path.realpath(one) for one in (os.path.dirname(budgets.file) or ".", ".")]
    if not any(os.path.commonpath([place, folder]) == folder for folder in folders):
        raise UsageError(
            f"{path} is neither below the folder of {budgets.file} nor below this one: make it yourself first"
        )
    return path


def _baseline(budgets: Budgets, found: Audited) -> tuple[Audited | None, Spreads]:
    path = _baseline_path(budgets)
    if not os.path.exists(path):
        if budgets.needs_baseline:
            raise UsageError(f"{path}: there is no baseline yet: --update-baseline writes it")
        return None, ONE_START
    file = resolve(Path(path))
    if not isinstance(file, AuditFile):
        raise InputError(path, "it is not a saved audit: --update-baseline writes a new one")
    saved = audit_any(file, AuditRequest())
    if saved.audit.noun != found.noun:
        raise InputError(path, f"it is the baseline of a {saved.audit.noun}, this is a {found.noun}")
    theirs, ours = program_name(saved.audit), program_name(found)
    if not is_same_program(theirs, ours):
        raise InputError(path, f"it is a baseline of {theirs or 'another kind'}, this is {ours or found.target}")
    _refuse_failed_run(saved.audit, path)
    is_predicted = saved.audit.source == "prediction"
    if is_predicted is not (found.source == "prediction"):
        how = "is predicted from its files, and this was measured"
        other = "was measured, and this is predicted from its files"
        raise InputError(path, f"the baseline {how if is_predicted else other}: growth cannot be computed from it")
    if is_predicted and is_reproducible(saved.audit) is not is_reproducible(found):
        theirs, ours = ("with", "without") if is_reproducible(saved.audit) else ("without", "with")
        cause = f"the baseline was predicted {theirs} `reproducible = true`, and this {ours} it"
        raise InputError(path, f"{cause}: --update-baseline writes a new one")
    return saved.audit, saved.spreads


def check_for_baseline(
    target: Named | AnyTarget,
    budgets: Budgets,
    *,
    pid: int | None = None,
    root: StrPath | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
    has_page_maps: bool = False,
) -> Checked:
    """Check the limits that need no baseline. An audit that keeps them may become the new baseline.

    Raises:
        UsageError: If no baseline is named. `check` has the other errors.
    """
    _baseline_path(budgets)
    # The new baseline has the findings that any budget needs, also one that is not checked here.
    found = _audit(target, budgets, pid, root, debug, has_page_maps=has_page_maps, has_objects=True).audit
    absolute = tuple(
        one._replace(limit=one.limit._replace(most_increase=None, most_increase_share=None))
        for one in budgets.budgets
        if one.limit.most is not None
    )
    return check(found, budgets._replace(budgets=absolute, allows_new=True, baseline=None))


def proposal(
    target: Named | AnyTarget,
    *,
    pid: int | None = None,
    root: StrPath | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
) -> str:
    """Write a first budget file for a target, from what it costs now.

    Raises:
        AccessError: If the target is gone or may not be read.
        InputError: If it is damaged.
    """
    found = target if isinstance(target, Processes) else resolve(target, root=root)
    is_saved = isinstance(found, AuditFile)
    asked = AuditRequest(pid=pid, root=None if root is None or is_saved else os.fspath(root), debug=debug)
    audit = audit_any(found, asked).audit
    _refuse_failed_run(audit, audit.saved_in or audit.target)
    return propose(audit)


def _refuse_failed_run(audit: Audited, name: str) -> None:
    """Refuse to measure other costs by those of a program that failed.

    Raises:
        InputError: If the audit is of a run that failed.
    """
    if audit.run_failures:
        raise InputError(
            name, f"it is of a run that failed ({audit.run_failures[0].detail}): its figures are no limits"
        )
