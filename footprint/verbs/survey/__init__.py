"""The verb `survey`."""
