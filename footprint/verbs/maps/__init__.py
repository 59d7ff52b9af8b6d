"""The verb `maps`."""
