"""What is a finding: an input whose read raises an error that its target does not allow, or takes too much.

Both ways of fuzzing use it: `fuzz/run.py` with Atheris, which has limits of its own, and `fuzz/blind.py` without.
"""

import hashlib
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Final

from fuzz.targets import Target

__all__ = ("FOLDER", "LONGEST_SECONDS", "MOST_MEMORY_MB", "Findings", "read_checked")

FOLDER: Final = Path(__file__).resolve().parent / "findings"
LONGEST_SECONDS: Final = 5
MOST_MEMORY_MB: Final = 500


def read_checked(target: Target, data: bytes) -> None:
    """Read an input; raise what the target does not allow."""
    with suppress(target.errors):
        target.read(data)


class Findings:
    """The findings of one target: each new one is written to a folder, with its traceback."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: set[tuple[str, ...]] = set()

    def keep(self, data: bytes, error: BaseException) -> None:
        """Write an input, unless one that fails in the same way is there."""
        # The innermost frames of footprint tell defects apart.
        frames = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        key = (type(error).__name__, *[frame for frame in frames if "/footprint/" in frame][-2:])
        if key in self._known:
            return
        self._known.add(key)
        self._folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
        (self._folder / name).write_bytes(data)
        (self._folder / f"{name}.txt").write_text("".join(traceback.format_exception(error)))
        sys.stderr.write(f"finding {self._folder / name}: {type(error).__name__}: {error}"[:300] + "\n")
