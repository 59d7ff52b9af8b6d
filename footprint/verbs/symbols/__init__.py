"""The verb `symbols`."""
