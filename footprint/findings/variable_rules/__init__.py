"""Rules that read the variables of ELF files: each module is one rule."""
