"""The verb `duplicates`."""
