"""What was audited: its kind, its program, and a name that lasts from run to run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import TypeIs  # what type checkers know

    from footprint.model.audited import Audited

__all__ = ("is_audited", "is_reproducible", "lasting_name", "program_name", "program_names", "program_path")


def is_audited(one: object) -> "TypeIs[Audited]":
    """Return whether something is an audit or a group that was made already, and no target."""
    return hasattr(one, "ledger")


def is_reproducible(audit: "Audited") -> bool:
    """Return whether an audit is a prediction without what the machine adds, as with `audit --reproducible`."""
    return audit.source == "prediction" and not audit.host


def program_name(audit: "Audited") -> str:
    """Return the name of the audited program: the last part of its path, as far as the audit has it."""
    return _last_part(audit.target) if audit.source == "prediction" else _program(audit.command)


def program_names(audit: "Audited") -> list[str]:
    """Return the names of the programs of a group, each once, that of its workers' parent first."""
    commands = [audit.command, *(one.command for one in audit.members)]
    return list(dict.fromkeys(filter(None, map(_program, commands))))


def _program(command: str) -> str:
    # Some programs write their title over their command: `nginx: master process nginx`.
    return _last_part(command.split(" ", 1)[0].rstrip(":"))


def _last_part(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def program_path(audit: "Audited") -> str:
    """Return the path of the program; "" if it is not known."""
    if audit.source == "prediction":
        return audit.target
    return audit.objects[0].path if audit.objects else ""


def lasting_name(audit: "Audited", given: str | None = None) -> str:
    """Return a name that stays the same from run to run: for a live process that of its program."""
    name = program_name(audit) if audit.is_live and audit.saved_in is None else ""
    return name or given or audit.saved_in or audit.target
