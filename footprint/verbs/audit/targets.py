"""The target of `footprint audit`: one that is named, several processes, or folders of programs."""

from collections.abc import Sequence

from footprint.errors import UsageError
from footprint.sources.target import Folders, Target, check_options, resolve, resolve_processes
from footprint.verbs.audit.request import AuditRequest

__all__ = ("resolve_targets",)


def resolve_targets(
    targets: Sequence[str], asked: AuditRequest, *, tree: int | None, name: str | None, is_survey: bool
) -> Target:
    """Resolve what the command names, and check that its options go with that.

    Args:
        targets: The arguments.
        asked: What is asked.
        tree: The process that `--tree` names.
        name: The name that `--name` has.
        is_survey: Whether the arguments are folders (`--all`).

    Raises:
        AccessError: If a file cannot be opened, or there is no such process.
        UsageError: If nothing is named, or an option does not go with it.
    """
    is_family = tree is not None or name is not None
    target: Target
    if is_survey:
        if is_family:
            raise UsageError("--all goes with folders of programs; --tree and --name choose processes")
        target = Folders(" ".join(targets), tuple(targets))
    elif is_family or len(targets) > 1:
        target = resolve_processes(targets, tree=tree, name=name)
    elif not targets:
        raise UsageError("name a process or a file; `footprint audit -h` shows what can be audited")
    else:
        if asked.heap is not None and asked.heap.path == targets[0] == "-":
            raise UsageError("standard input is one of them: the process, or the profile of its heap")
        target = resolve(targets[0], root=asked.root)
    check_options(target, asked.options)
    return target
