"""`footprint.project`: what N processes cost, or how many fit."""

from footprint.errors import UsageError
from footprint.files import StrPath
from footprint.model.audit import Audit
from footprint.sources.target import Named
from footprint.verbs.audit.call import audit

__all__ = ("project",)


def project(
    target: Named,
    *,
    count: int | None = None,
    memory_bytes: int | None = None,
    model: str | None = None,
    pid: int | None = None,
    root: StrPath | None = None,
) -> Audit:
    """Audit a process for its projection: the cost at `count`, or how many fit into `memory_bytes`.

    Without a model, a live process that is a fork of its parent is projected as one of many workers, everything else as
    started copies.

    Raises:
        UsageError: If neither or both are given; and what `audit` raises.
    """
    if (count is None) == (memory_bytes is None):
        raise UsageError("say how many processes (-n), or how much memory they may take (--memory)")
    return audit(target, count=count or 1, memory_bytes=memory_bytes, model=model, pid=pid, root=root)
