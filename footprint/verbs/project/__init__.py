"""The verb `project`."""
