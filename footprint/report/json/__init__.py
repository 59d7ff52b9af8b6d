"""Reports as JSON, schema `footprint/1`: integers are bytes, additions keep the number, a change of meaning raises it.

The schema stands in this package and ships with it.
"""
