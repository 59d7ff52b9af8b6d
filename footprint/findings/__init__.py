"""Findings: one module a rule. Each looks at what a process is made of, and says what it could do without."""

from footprint.model.finding import Confidence, Finding, Location

__all__ = ("Confidence", "Finding", "Location")
