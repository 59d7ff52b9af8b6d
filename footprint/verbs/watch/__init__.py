"""`footprint watch`: processes over time."""
