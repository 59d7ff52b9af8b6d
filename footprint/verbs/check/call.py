"""`footprint.check`: whether a process costs no more than a budget file allows."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Final

from footprint.elf.notes import STANDARD_PLACES, DebugSearch
from footprint.errors import FootprintError, InputError, UsageError
from footprint.model.audit import ONE_START, Audit, AuditRecord, Spreads, is_audited, is_reproducible, program_name
from footprint.model.projection import Question
from footprint.release.budget import A_TWENTIETH, Checked, check_audit, propose
from footprint.release.budget_file import Budgets, limit_growth, parse_budgets, parse_share
from footprint.release.matching import is_same_program
from footprint.sources.target import AnyTarget, AuditFile, Named, Process, Processes, Program, looks_like_audit, resolve
from footprint.system.files import StrPath, open_input
from footprint.verbs.audit.call import audit_target, with_objects_if_new
from footprint.verbs.audit.request import AuditRequest

BUDGET_FILE: Final = "footprint.toml"
PROJECT_FILE: Final = "pyproject.toml"
BASELINE_FILE: Final = "footprint-baseline.json"
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
        if os.path.isfile(BUDGET_FILE) and os.path.isfile(PROJECT_FILE) and has_project_budgets(PROJECT_FILE):
            # Only one would be read, and a user would believe that the limits of the other hold too.
            raise UsageError(
                f"there are budgets in {BUDGET_FILE} and in {PROJECT_FILE}: keep one, or name one with --config"
            )
        path = next((name for name in (BUDGET_FILE, PROJECT_FILE) if os.path.isfile(name)), None)
        if path is None:
            raise UsageError(
                f"there is no {BUDGET_FILE} here: name one with --config, or let --propose write a first one"
            )
    path = os.fspath(path)
    document, lines = _toml(path)
    if os.path.basename(path) == PROJECT_FILE:
        document = _of_project(document)  # type: ignore[assignment]
        if not isinstance(document, dict):
            raise UsageError(f"{path} has no table [tool.footprint]: name a budget file with --config")
        lines = {name[2:]: line for name, line in lines.items() if name[:2] == ("tool", "footprint")}
    budgets = parse_budgets(document, path, lines)
    if budgets.is_empty:
        raise UsageError(
            f"{path} has no limit: write [budgets] or [libraries] there, or let --propose write a first file"
        )
    return budgets


def budgets_of(config: str | None, max_increase: str | None, baseline: str | None) -> Budgets:
    """Read the budget file, or make the budgets of `--max-increase`.

    Raises:
        UsageError: If the options contradict one another. `load_budgets` and `growth_budgets` have the other errors.
    """
    if max_increase is None and baseline is not None:
        raise UsageError("--baseline goes with --max-increase; a budget file names its own")
    if max_increase is not None and config is not None:
        raise UsageError("--max-increase is for a check without a budget file: write `max_increase` into the file")
    return load_budgets(config) if max_increase is None else growth_budgets(max_increase, baseline)


def growth_budgets(increase: str, baseline: StrPath | None = None) -> Budgets:
    """Make budgets that let the cost of what is checked grow by a part or an amount, without a budget file.

    A program is predicted as its baseline was; for a new baseline without what the machine adds.

    Args:
        increase: `5 %`, `64 KiB`, or `5 % or 64 KiB`: the larger one holds.
        baseline: The saved audit to compare with; None for `footprint-baseline.json` here.

    Raises:
        AccessError: If the baseline cannot be read.
        InputError: If it is damaged.
        UsageError: If it is neither a share nor a size.
    """
    path = os.fspath(baseline or BASELINE_FILE)
    saved = resolve(Path(path)) if os.path.exists(path) else None
    audit = audit_target(saved, AuditRequest()).audit if isinstance(saved, AuditFile) else None
    is_as_saved = audit is None or audit.source != "prediction" or is_reproducible(audit)
    return limit_growth(increase, path, is_reproducible=is_as_saved)


def _of_project(document: Mapping[str, Any]) -> object:
    tool = document.get("tool")
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
    document, text = read_toml(data, path)
    return document, key_lines(text)


def check(  # noqa: PLR0913 # keyword-only
    target: Named | AnyTarget | Audit,
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
        AuditRecord(target, spreads)
        if is_audited(target)
        else _audit(target, budgets, pid, root, debug, has_page_maps=has_page_maps)
    )
    audit = audited.audit
    baseline, baseline_spreads = (None, ONE_START) if budgets.baseline is None else _baseline(budgets, audit)
    if baseline is not None and not is_audited(target) and not isinstance(target, Processes):
        audit = with_objects_if_new(audit, baseline, resolve(target, root=root))
    day = today or date.today()  # noqa: DTZ011 # a waiver ends with the day of whoever reads it
    checked = check_audit(audit, budgets, baseline, day, audited.spreads, baseline_spreads)
    # A report says what to do, and so does a check that fails.
    if has_page_maps or any(result.fails for result in checked.limits):
        checked = checked._replace(audit=_searched(audit, debug))
    if checked.comparison is None:
        return checked
    from footprint.release.link_lines import with_places  # noqa: PLC0415 # only beside a baseline

    top, linker_map = (None if path is None else os.fspath(path) for path in (root, map))
    return checked._replace(comparison=with_places(checked.comparison, top, debug, linker_map))


def _searched(audit: Audit, debug: DebugSearch | None) -> Audit:
    """Add to the audit of a run what was found in the files of its program, where they are still the same."""
    program = next(iter(audit.objects), None)
    if program is None or program.build_id is None or audit.is_group or (audit.is_live and audit.saved_in is None):
        return audit
    if not os.path.isfile(program.path):
        return audit
    with suppress(FootprintError):
        files = audit_target(resolve(Path(program.path)), AuditRequest(debug=debug)).audit
        if files.objects and files.objects[0].build_id == program.build_id:
            # What was searched in the process itself is measured there.
            known = {searched.rule for searched in audit.searched_rules}
            more = [finding for finding in files.findings if finding.rule not in known]
            rules = [searched for searched in files.searched_rules if searched.rule not in known]
            return replace(audit, findings=(*audit.findings, *more), searched_rules=(*audit.searched_rules, *rules))
    return audit


def _audit(
    target: Named | AnyTarget,
    budgets: Budgets,
    pid: int | None,
    root: StrPath | None,
    debug: DebugSearch | None,
    *,
    has_page_maps: bool,
    has_objects: bool = False,
) -> AuditRecord:
    resolved = target if isinstance(target, Processes) else resolve(target, root=root)
    question = Question(budgets.at_processes)
    if isinstance(resolved, AuditFile):
        own_model = question._replace(model=None)
        return audit_target(resolved, AuditRequest(own_model, pid=pid, has_page_maps=has_page_maps, has_question=True))
    # Only what reads the files of a process finds these. A report says what to do.
    has_start = any(budget.name.startswith("start_") for budget in budgets.budgets)
    needs_files = has_start or any(
        budget.table == "findings" or budget.name in {"floor_bytes", "ceiling_bytes"} for budget in budgets.budgets
    )
    has_findings = isinstance(resolved, Process | Processes) and (has_page_maps or needs_files)
    has_objects |= any(budget.table == "retained" or budget.name == "tls_bytes" for budget in budgets.budgets)
    request = AuditRequest(
        question,
        pid=pid,
        root=None if root is None else os.fspath(root),
        has_findings=has_findings,
        has_page_maps=has_page_maps,
        debug=debug,
        is_reproducible=budgets.is_reproducible and isinstance(resolved, Program),
        doubtful_rules=frozenset(budget.name for budget in budgets.budgets if budget.counts_doubtful),
        has_objects=has_objects,
        has_start=has_start,
    )
    return audit_target(resolved, request)


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
    if budgets.cost_limit is not None:
        # The user named it.
        return path
    place = os.path.realpath(path)
    folders = [os.path.realpath(folder) for folder in (os.path.dirname(budgets.file) or ".", ".")]
    if not any(os.path.commonpath([place, folder]) == folder for folder in folders):
        raise UsageError(
            f"{path} is neither below the folder of {budgets.file} nor below this one: make it yourself first"
        )
    return path


def _baseline(budgets: Budgets, audit: Audit) -> tuple[Audit | None, Spreads]:
    path = _baseline_path(budgets)
    if not os.path.exists(path):
        if budgets.needs_baseline:
            raise UsageError(f"{path}: there is no baseline yet: the same command with --update-baseline writes it")
        return None, ONE_START
    file = resolve(Path(path))
    if not isinstance(file, AuditFile):
        raise InputError(path, "it is not a saved audit: --update-baseline writes a new one")
    saved = audit_target(file, AuditRequest())
    if saved.audit.noun != audit.noun:
        raise InputError(path, f"it is the baseline of a {saved.audit.noun}, this is a {audit.noun}")
    theirs, ours = program_name(saved.audit), program_name(audit)
    if not is_same_program(theirs, ours):
        raise InputError(path, f"it is a baseline of {theirs or 'another kind'}, this is {ours or audit.target}")
    _refuse_failed_run(saved.audit, path)
    is_predicted = saved.audit.source == "prediction"
    if is_predicted is not (audit.source == "prediction"):
        how = "is predicted from its files, and this was measured"
        other = "was measured, and this is predicted from its files"
        raise InputError(path, f"the baseline {how if is_predicted else other}: growth cannot be computed from it")
    if is_predicted and is_reproducible(saved.audit) is not is_reproducible(audit):
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
    audit = _audit(target, budgets, pid, root, debug, has_page_maps=has_page_maps, has_objects=True).audit
    absolute = tuple(
        budget._replace(limit=budget.limit._replace(most_increase=None, most_increase_share=None))
        for budget in budgets.budgets
        if budget.limit.most is not None
    )
    return check(audit, budgets._replace(budgets=absolute, allows_new=True, baseline=None, cost_limit=None))


def proposal(
    target: Named | AnyTarget,
    *,
    pid: int | None = None,
    root: StrPath | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
    room: str | None = None,
) -> str:
    """Format a first budget file for a target, from what it costs now, with `room` such as `5 %`.

    Raises:
        AccessError: If the target is gone or may not be read.
        InputError: If it is damaged.
    """
    resolved = target if isinstance(target, Processes) else resolve(target, root=root)
    is_saved = isinstance(resolved, AuditFile)
    request = AuditRequest(pid=pid, root=None if root is None or is_saved else os.fspath(root), debug=debug)
    audit = audit_target(resolved, request).audit
    _refuse_failed_run(audit, audit.saved_in or audit.target)
    return propose(audit, A_TWENTIETH if room is None else parse_share(room))


def _refuse_failed_run(audit: Audit, name: str) -> None:
    """Refuse to measure other costs by those of a program that failed.

    Raises:
        InputError: If the audit is of a run that failed.
    """
    if audit.run_failures:
        raise InputError(
            name, f"it is of a run that failed ({audit.run_failures[0].detail}): its figures are no limits"
        )
