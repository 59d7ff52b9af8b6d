"""The verb `whatif`."""
