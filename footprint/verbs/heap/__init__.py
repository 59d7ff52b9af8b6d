"""The verb `heap`."""
