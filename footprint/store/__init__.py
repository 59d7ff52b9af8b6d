"""The dataset of a fleet: tables of Parquet files, written and read by DuckDB."""
