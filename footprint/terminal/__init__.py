"""Drawing a report on a terminal, with rich."""

from footprint.terminal.drawing import draw

__all__ = ("draw",)
