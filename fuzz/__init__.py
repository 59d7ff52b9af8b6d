"""Fuzzing: `make fuzz`. `fuzz/targets.py` has the table of targets."""
