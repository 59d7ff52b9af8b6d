"""Rules that read the dependency graph of a program or process: each module is one rule."""
