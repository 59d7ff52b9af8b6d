"""The verb `libraries`."""
