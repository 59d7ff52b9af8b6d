"""Compare audits, check budgets, and keep a history of releases."""
