"""Texts: what is foreign in them made harmless."""
