"""Join facts: charge every byte of a process to one object, section and symbol, and project what N processes cost."""
