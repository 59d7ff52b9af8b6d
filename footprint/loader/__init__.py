"""The files that make a process, found by the rules of its loader. Nothing is ever run."""
