"""The verb `capture`."""
