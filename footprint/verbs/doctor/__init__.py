"""The verb `doctor`."""
