"""The verb `record`."""
