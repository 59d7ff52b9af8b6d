"""Owners: the objects of a process, and names in brackets for what no file owns."""

__all__ = ("DELETED", "file_name", "is_file")

DELETED = " (deleted)"


def is_file(owner: str) -> bool:
    """Return whether an owner is a file; memory without a file has an owner in brackets."""
    return not owner.startswith("[")


def file_name(owner: str) -> str:
    """Return the last part of an owner's path, without the kernel's remark that the file was deleted."""
    return owner.removesuffix(DELETED).rsplit("/", 1)[-1]
