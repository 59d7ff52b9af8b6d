"""The files of a project: what lies below its folder, without what was fetched, built or generated there."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ("project_files",)

# Folders that hold nothing of the project itself.
_FOREIGN: Final = frozenset({"node_modules", "vendor", "third_party", "CMakeFiles", "__pycache__"})
_MOST_FILES: Final = 100_000


def project_files(folder: Path) -> Iterator[Path]:
    """Return the files below a folder, without hidden folders and those of other projects."""
    count = 0
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _FOREIGN)
        for name in sorted(files):
            count += 1
            if count > _MOST_FILES:
                return
            yield Path(top, name)
