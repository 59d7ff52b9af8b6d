"""Compare audits, check budgets, keep a history."""
