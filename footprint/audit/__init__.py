"""Joining facts: which object, section and symbol each byte of a process belongs to, and what N processes cost."""
