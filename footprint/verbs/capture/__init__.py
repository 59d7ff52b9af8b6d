"""The verb `capture`."""

from typing import Final

LONGEST_STOP_SECONDS: Final = 5.0
"""How long a process may be stopped where nobody says otherwise."""
