"""Rules that read the ledger of a program or process: each module is one rule."""
