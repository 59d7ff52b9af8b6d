"""The verb `scan`."""
