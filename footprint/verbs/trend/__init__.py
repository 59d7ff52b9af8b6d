"""The verb `trend`."""
