"""`footprint.save`: an audit, a group or a run as a file, which every verb reads again."""

from footprint import __version__
from footprint.files import StrPath
from footprint.formats.json import write
from footprint.model.audit import Audit
from footprint.model.group import Group
from footprint.verbs.audit.either import audited_members
from footprint.verbs.run.json import run_members
from footprint.verbs.run.result import RunResult
from footprint.whole_file import write_file

__all__ = ("save",)


def save(answer: Audit | Group | RunResult, path: StrPath) -> None:
    """Save an audit, a group, or a run with what its starts differ by, as the JSON that `-o` of the commands writes.

    Args:
        answer: What `audit`, `audit_group`, `project` or `run` returned.
        path: Where to write. An existing file is replaced; a new one with command lines is for its owner only.

    Raises:
        AccessError: If the file cannot be written.
    """
    members = (
        run_members(answer, __version__) if isinstance(answer, RunResult) else audited_members(answer, __version__)
    )
    mode = 0o666 if isinstance(answer, Audit) and answer.source == "prediction" else 0o600
    write_file(path, write(members).encode("utf-8", "backslashreplace"), mode=mode)
