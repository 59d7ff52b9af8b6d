"""One folder a verb: `call` (the library call), `text` (its report) and `command` (its options)."""
