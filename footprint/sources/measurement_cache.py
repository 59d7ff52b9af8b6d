"""What is measured once and kept: JSON files in a folder of the user, one table of entries each."""

import os
from collections.abc import Mapping
from typing import Any, Final

from footprint.errors import AccessError
from footprint.whole_file import whole_file

__all__ = ("MOST_BYTES", "keep", "kept_path", "read_kept")

MOST_BYTES: Final = 1 << 20
_FORMAT: Final = 1


def kept_path(name: str) -> str:
    """Return the path of a kept file, by the XDG Base Directory Specification."""
    folder = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(folder, "footprint", name)


def read_kept(path: str, table: str) -> dict[str, Any]:
    """Read the entries of a file; none where there is no file.

    Raises:
        OSError: Where the file cannot be read.
        ValueError: Where it is not what we write.
    """
    if not os.path.exists(path):
        return {}
    import json  # noqa: PLC0415 # most hosts are not calibrated

    with open(path, "rb") as file:
        text = file.read(MOST_BYTES)
    try:
        entries = json.loads(text)[table]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError("it is not a calibration of footprint") from error
    if not isinstance(entries, dict):
        raise ValueError("it is not a calibration of footprint")  # noqa: TRY004 # the file's fault, not a caller's
    return entries


def keep(path: str, table: str, added: Mapping[str, dict[str, Any]]) -> None:
    """Keep entries by their keys, beside those of other keys; the file is there whole or not at all.

    Raises:
        AccessError: Where it cannot be written.
    """
    import json  # noqa: PLC0415 # only calibrating needs it

    try:
        entries = read_kept(path, table)
    except (OSError, ValueError):
        entries = {}
    entries.update(added)
    text = json.dumps({"format": _FORMAT, table: entries}, indent=2, sort_keys=True) + "\n"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with whole_file(path, mode=0o600) as file:
            file.write(text.encode("ascii"))
    except OSError as error:
        raise AccessError(path, f"the calibration cannot be stored: {error.strerror}") from error
