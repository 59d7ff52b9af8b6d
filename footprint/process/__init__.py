"""Readers of the kernel's data about a process: mappings, counters, and saved texts of them."""
